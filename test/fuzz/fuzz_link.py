# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Throw random and mutated frames at the decoder of the link, and streams of them at its reader.

    python test/fuzz/fuzz_link.py 1000000 [seed]

A datagram either decodes, and then encodes to the very same bytes but for the six of nothing in a
rotor command, or is refused for one of the reasons that are counted. Of a stream that is cut
anywhere exactly the frames come out that a slow search finds at every byte. Ends with exit code 1
otherwise.
"""

from __future__ import annotations

import random
import struct
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.fuzz_packets import mutated

from rfly_amphibious.simulation.commands import RotorCommand, WheelCommand
from rfly_common.errors import LinkFrameError
from rfly_mavlink.links.link_frames import (
    REASONS,
    FrameReader,
    GpsReport,
    Heartbeat,
    StateReport,
    decode,
    encode,
)

WHOLE = [
    encode(StateReport(0.25, *map(np.ones, (3, 3, 4, 3, 3, 4, 2, 4, 6)), 1e5, np.ones(3)), 1, 1),
    encode(GpsReport(0.5, 47.0, 8.0, 488.0, np.zeros(3), 1.0, 2.0), 2),
    encode(RotorCommand(0.25, np.full(6, 255.0)), 3, 1),
    encode(WheelCommand(0.25, 0.1, np.ones(4), np.zeros(4)), 4, 1),
    encode(Heartbeat(0.25, 3), 5),
]
OUTCOMES = {*REASONS, "STATE", "GPS", "ROTORS", "CHASSIS", "HEARTBEAT"}


def checked(body: bytes) -> bytes:
    return body + struct.pack("<I", zlib.crc32(body))


def datagrams(count: int, seed: int) -> Iterator[bytes]:
    """Yield `count` datagrams of six kinds, from random bytes to whole frames."""
    rng = random.Random(seed)
    for number in range(count):
        whole = rng.choice(WHOLE)
        kind = number % 6

        # random bytes
        if kind == 0:
            yield rng.randbytes(rng.randrange(400))

        # a right head with a random body
        elif kind == 1:
            yield whole[: rng.randrange(4, 24)] + rng.randbytes(rng.randrange(200))

        # a mutated body with a right checksum
        elif kind == 2:
            yield checked(mutated(rng, whole[:-4], rng.choice(WHOLE)))

        # a random payload with a right head and checksum
        elif kind == 3:
            payload = rng.randbytes(rng.choice((0, 4, 8, 64, 72, 288)))
            time_s = rng.choice(
                (
                    struct.pack("<d", 1.0),
                    rng.randbytes(8),
                    struct.pack("<d", float("nan")),
                )
            )
            head = (
                b"LAV1"
                + bytes((rng.randrange(8), 1))
                + struct.pack("<HQ", len(payload), number)
                + time_s
            )
            yield checked(head + payload)

        # a mutated frame
        elif kind == 4:
            yield mutated(rng, whole, rng.choice(WHOLE))

        else:
            yield whole


def outcome_of(datagram: bytes) -> str:
    """Return the name of the frame's type, or the reason of its refusal.

    Raises AssertionError if the frame does not encode to the bytes that it came from.
    """
    try:
        frame = decode(datagram)
    except LinkFrameError as error:
        return error.reason
    again = encode(frame.message, frame.sequence, frame.flags)
    if isinstance(frame.message, RotorCommand):
        datagram = checked(datagram[:26] + bytes(6) + datagram[32:-4])
    assert again == datagram, datagram.hex()
    return frame.type.name


def frames_in(stream: bytes) -> list[bytes]:
    """Return the frames of a stream, found by trying at every byte."""
    found = []
    at = 0
    while at < len(stream):
        size = 28 + int.from_bytes(stream[at + 6 : at + 8], "little")
        piece = stream[at : at + size]
        outcome = "" if len(piece) < 28 else outcome_of(piece)
        if outcome.isupper():
            found.append(piece)
        whole = len(piece) == size <= 1052 and piece[:4] == b"LAV1" and checked(piece[:-4]) == piece
        at += size if whole else 1
    return found


def run(count: int, seed: int = 1) -> Counter[str]:
    """Decode `count` datagrams, alone and as streams, and return their outcomes."""
    outcome: Counter[str] = Counter()
    rng = random.Random(seed + 1)
    pieces = list[bytes]()
    for datagram in datagrams(count, seed):
        outcome[outcome_of(datagram)] += 1
        pieces.append(datagram)
        if len(pieces) < 20:
            continue

        # a whole frame after room for the longest payload, so that none of the garbage's own
        # lengths is still open
        stream = b"".join(pieces) + bytes(1100) + WHOLE[4]
        pieces = []

        # read in pieces of any length
        reader = FrameReader()
        found = []
        at = 0
        while at < len(stream):
            step = rng.randrange(1, 700)
            found += [(f.type, f.sequence) for f in reader.feed(stream[at : at + step])]
            at += step

        wanted = [(f.type, f.sequence) for f in map(decode, frames_in(stream))]
        assert found == wanted, stream.hex()
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
        f"{count} frames in {time.perf_counter() - start:.0f} s, seed {seed}: all as they should be"
    )
    for name, number in outcome.most_common():
        print(f"{number:9d}  {name}")

    return 0


if __name__ == "__main__":
    sys.exit(main())
