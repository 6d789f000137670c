# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Throw random and mutated datagrams at a listening `FeedbackReceiver`, through a real socket.

    python test/fuzz/fuzz_feedback.py 1000000 [seed]

Each of them must be read, and either come out as the packet that it holds or be counted under the
reason for which the decoder refuses it; whatever escapes the receiver ends its thread, and nothing
more is read. Ends with exit code 1 then, or where the memory has grown.
"""

from __future__ import annotations

import os
import random
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from feedback_datagrams import DATAGRAMS
from fuzz.fuzz_packets import mutated

from rfly_common.errors import PacketError
from rfly_ue_bridge.codec.from_rflysim3d import FROM_RFLYSIM3D
from rfly_ue_bridge.sockets.feedback_receiver import FeedbackReceiver

WHOLE = [bytes.fromhex(spelled) for spelled, _, _ in DATAGRAMS.values()]
OUTCOMES = {"unknown_length", "wrong_checksum", "text", *DATAGRAMS}
_REASONS = {"length": "unknown_length", "checksum": "wrong_checksum", "text": "text"}
_BATCH = 50
_MAX_GROWTH_BYTES = 5 << 20


def datagrams(count: int, seed: int) -> Iterator[bytes]:
    """Yield random bytes, right heads with random bodies, and mutated whole datagrams."""
    rng = random.Random(seed)
    for number in range(count):
        whole = rng.choice(WHOLE)
        kind = number % 5
        if kind == 0:
            yield rng.randbytes(rng.choice((rng.randrange(200), rng.randrange(5000))))
        elif kind == 1:
            yield rng.randbytes(len(whole))
        elif kind == 2:
            yield whole[:4] + rng.randbytes(len(whole) - 4)
        else:
            yield mutated(rng, whole, rng.choice(WHOLE))


def expected(datagram: bytes) -> tuple[str, str]:
    """The packet's name or the reason of its refusal; its values."""
    try:
        packet = FROM_RFLYSIM3D.decode(datagram)
    except PacketError as error:
        return _REASONS[error.reason], ""
    return packet.name, repr(dict(packet.values))


def resident_bytes() -> int:
    """Return the memory of this process, bytes; 0 where the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf(
            "SC_PAGE_SIZE"
        )
    except OSError:
        return 0


def run(count: int, seed: int = 1) -> Counter[str]:
    """Send `count` datagrams and return their outcomes.

    Raises AssertionError if a datagram is lost, changed or miscounted.
    """
    outcome: Counter[str] = Counter()
    source = datagrams(count, seed)
    sent = 0
    memory = 0

    with (
        FeedbackReceiver(port=0) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock,
    ):
        sock.connect(("127.0.0.1", receiver.port))
        while batch := [datagram for _, datagram in zip(range(_BATCH), source, strict=False)]:
            for datagram in batch:
                sock.send(datagram)
            sent += len(batch)

            # all of the batch are received
            deadline = time.monotonic() + 120.0
            while receiver.counters["received"] < sent:
                assert time.monotonic() < deadline, (
                    f"of {sent} datagrams {receiver.counters} after 120 s, seed {seed}"
                )
                time.sleep(0.0005)

            # packets come out as the decoder reads them, in order
            packets = [(packet.name, repr(dict(packet.values))) for packet in receiver.take()]
            wanted = [expected(datagram) for datagram in batch]
            outcome.update(name for name, _ in wanted)
            assert packets == [pair for pair in wanted if pair[0] in DATAGRAMS], [
                d.hex() for d in batch
            ]

            if not memory and sent >= count // 10:
                memory = resident_bytes()
        counters = receiver.counters

    for reason in _REASONS.values():
        assert counters[reason] == outcome[reason], (
            f"{reason}: counted {counters}, expected {outcome}"
        )
    assert counters["overflow"] == counters["system_dropped"] == counters["socket_errors"] == 0, (
        counters
    )

    grown = resident_bytes() - memory
    assert grown < _MAX_GROWTH_BYTES, f"{grown} bytes of memory more at the end than after a tenth"

    return outcome


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    start = time.perf_counter()

    try:
        outcome = run(count, seed)
    except AssertionError as error:
        print(error, file=sys.stderr)
        return 1

    print(
        f"{count} datagrams in {time.perf_counter() - start:.0f} s, seed {seed}: none lost, none "
        "miscounted"
    )
    for name, number in outcome.most_common():
        print(f"{number:9d}  {name}")

    return 0


if __name__ == "__main__":
    sys.exit(main())
