# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Throw random and mutated datagrams at the decoder; only PacketError may come out of it.

    python test/fuzz/fuzz_packets.py 1000000 [seed]

Ends with exit code 1 at the first datagram that raises anything else, or that is decoded to
something else than what it holds; it is printed as hex, with the seed.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Iterator

from rfly_common.errors import PacketError
from rfly_ue_bridge.codec.packets import Packet
from rfly_ue_bridge.codec.to_rflysim3d import TO_RFLYSIM3D, decode

SIZES = sorted({packet_type.size for packet_type in TO_RFLYSIM3D})


def seeds() -> list[tuple[bytes, bytes]]:
    """Head and body of a datagram for each packet and checksum, with a text or zeros inside."""
    out = []
    for packet_type in TO_RFLYSIM3D:
        for checksum in packet_type.checksums:
            head = packet_type.checksum_struct.pack(checksum)
            text = "RflyShowText größer".encode() if packet_type.fields[-1].is_text else b""
            out.append((head, text.ljust(packet_type.size - len(head), b"\0")))
    return out


def datagrams(count: int, seed: int) -> Iterator[bytes]:
    """Yield random bytes, right heads with random bodies, and mutated whole datagrams."""
    rng = random.Random(seed)
    parts = seeds()
    whole = [head + body for head, body in parts]
    for number in range(count):
        kind = number % 5
        if kind == 0:
            yield rng.randbytes(rng.choice((rng.randrange(300), rng.randrange(5000))))
        elif kind == 1:
            yield rng.randbytes(rng.choice(SIZES))
        elif kind == 2:
            head, body = rng.choice(parts)
            yield head + rng.randbytes(len(body))
        else:
            yield mutated(rng, rng.choice(whole), rng.choice(whole))


def mutated(rng: random.Random, datagram: bytes, other: bytes) -> bytes:
    """A few changes: bytes, bits, cuts, repeats, the head of one packet on the body of another."""
    data = bytearray(datagram)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(data)) if data else 0
        change = rng.randrange(7)
        if change == 0 and data:
            data[place] ^= 1 << rng.randrange(8)
        elif change == 1 and data:
            data[place] = rng.randrange(256)
        elif change == 2:
            del data[place : place + rng.randint(1, 8)]
        elif change == 3:
            data[place:place] = rng.randbytes(rng.randint(1, 8))
        elif change == 4:
            data[place : place + 4] = rng.choice(
                (b"\xff" * 4, b"\x00\x00\xc0\x7f", b"\x00\x00\x80\x7f", bytes(4))
            )
        elif change == 5:
            data[:4] = other[:4]
        else:
            data = data[:place] + other[place:]

    return bytes(data)


def check(datagram: bytes) -> str:
    """Return the packet's name or the reason of the refusal.

    Raises AssertionError if the packet does not encode to its datagram.
    """
    try:
        packet = decode(datagram)
    except PacketError as error:
        return error.reason
    assert len(datagram) == packet.type.size
    assert packet[packet.type.mark] in packet.type.checksums
    assert_encodes_back(packet, datagram)
    return packet.name


def assert_encodes_back(packet: Packet, datagram: bytes) -> None:
    """Compare byte by byte, except in two cases.

    Signalling NaNs become quiet, and texts may have zeros before their end.
    """
    again = packet.encode()
    if again == datagram:
        return
    second = decode(again)
    assert second.type is packet.type
    for name, value in packet.values.items():
        if repr(value) != repr(second[name]):
            raise AssertionError(f"{packet.name}.{name}: {value!r} became {second[name]!r}")


def run(count: int, seed: int = 1) -> Counter[str]:
    """Check `count` datagrams and return their outcomes.

    A datagram that raises an error is printed before the error is passed on.
    """
    outcome: Counter[str] = Counter()
    datagram = b""
    good = True

    try:
        for datagram in datagrams(count, seed):
            good = False
            outcome[check(datagram)] += 1
            good = True
    finally:
        if not good:
            print(
                f"datagram {outcome.total()} of seed {seed}: {datagram.hex()}",
                file=sys.stderr,
            )

    return outcome


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    start = time.perf_counter()
    outcome = run(count, seed)
    strange = set(outcome) - {
        "length",
        "checksum",
        "text",
        *(packet_type.name for packet_type in TO_RFLYSIM3D),
    }

    if strange:
        print(f"reasons that no packet has: {', '.join(strange)}", file=sys.stderr)
        return 1

    print(
        f"{count} datagrams in {time.perf_counter() - start:.0f} s, seed {seed}: only PacketError "
        "came out"
    )
    for name, number in outcome.most_common():
        print(f"{number:9d}  {name}")

    return 0


if __name__ == "__main__":
    sys.exit(main())
