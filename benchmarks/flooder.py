# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Flood a UDP port of this machine with RflySim3D's answers and with other data, at an even rate.

    python benchmarks/flooder.py PORT DATAGRAMS_PER_SECOND SECONDS

It prints one JSON line at the end: the number of datagrams sent of each kind, and the seconds. The
number is exact; a machine that cannot keep up takes longer.
"""

from __future__ import annotations

import json
import struct
import sys
import time
from pathlib import Path

if not __package__:  # a program of its own
    sys.path.insert(0, str(Path(__file__).parents[1]))

from rfly_ue_bridge.codec.state_datagrams import DatagramRun
from rfly_ue_bridge.sockets.udp_sender import UdpSender

TICK_S = 0.002


def crash(copter_id: int) -> bytes:
    """Return the report of a crash."""
    return struct.pack("<3i", 1234567890, copter_id, -1)


def report(copter_id: int) -> bytes:
    """Return the report of a vehicle."""
    numbers = (0.25 * n for n in range(29))
    return struct.pack("<4id29f20s", 1234567897, copter_id, 3, -2, 12.5, *numbers, b"Landscape_0")


def kinds() -> dict[str, list[bytes]]:
    """Return a quarter each: two sorts of answers, a wrong checksum, and a length of no packet."""
    return {
        "crash": [crash(number) for number in range(1, 1001)],
        "report": [report(number) for number in range(1, 1001)],
        "wrong_checksum": [struct.pack("<2i", 7, number) + bytes(152) for number in range(1000)],
        "unknown_length": [struct.pack("<i", 1234567890) + bytes(95)] * 1000,
    }


def main() -> None:
    """Send answers at a rate, and print the counts."""
    port = int(sys.argv[1])
    rate = float(sys.argv[2])
    seconds = float(sys.argv[3])
    sender = UdpSender("127.0.0.1", port)

    # runs of each kind for a tick
    per_tick = round(rate * TICK_S)
    ticks = round(seconds / TICK_S)
    sizes = {name: (per_tick + place) // 4 for place, name in enumerate(kinds())}
    runs = {
        name: [
            _run(datagrams[n : n + sizes[name]]) for n in range(0, 1000 - sizes[name], sizes[name])
        ]
        for name, datagrams in kinds().items()
        if sizes[name]
    }

    start = time.monotonic()

    for tick in range(ticks):
        wait = start + tick * TICK_S - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        sender.send_runs(series[tick % len(series)] for series in runs.values())

    elapsed = time.monotonic() - start
    errors = sender.windows[0].errors
    print(
        json.dumps(
            {"sent": sender.sent, "seconds": elapsed, "errors": errors}
            | {n: sizes[n] * ticks for n in sizes}
        )
    )
    sender.close()


def _run(datagrams: list[bytes]) -> DatagramRun:
    """Return datagrams of the same length as one run."""
    return DatagramRun(memoryview(b"".join(datagrams)), len(datagrams[0]))


if __name__ == "__main__":
    main()
