# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Receive a fleet of `ring_fleet` as RflySim3D would, and compare it with the plain formula.

    python benchmarks/fleet_receiver.py VEHICLES SECONDS [MAP]

It prints JSON lines: {"port": …} at once, {"begin": …} when it starts to count, {"end": …} after
SECONDS, and then its findings (see `examine`). It starts to count when the fleet has moved for two
seconds. While it receives it only stores; the system stamps each datagram's arrival, and counts the
datagrams that it had to drop.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

if not __package__:  # a program of its own
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.ring_fleet import CLOCK_SPEED, PER_PACKET, RingFleet

PACKET_BYTES = 3804
KEPT_BYTES = 4 + 200 + 200 + 1200  # checksum, ids, types, positions
CHECKSUM = 1234567890
BUFFER_BYTES = 1 << 25
SETTLED_S = 2.0
FIRST_PACKET_TIMEOUT_S = 120.0
SILENCE_S = 10.0
# SO_TIMESTAMPNS, SO_RXQ_OVFL of <asm-generic/socket.h>
_TIMESTAMP_NS = 35
_DROPS = 40
_RECEIVE_BUFFER_FORCE = 33  # SO_RCVBUFFORCE

Floats = NDArray[np.float64]


class Received:
    """Datagrams as they came: their beginnings, lengths and arrival times."""

    def __init__(self, capacity: int) -> None:
        self.kept = np.zeros((capacity, KEPT_BYTES), np.uint8)
        self.size = np.zeros(capacity, np.int64)
        self.arrival = np.zeros(capacity)
        """Times of arrival by the system clock, s."""
        self.count = 0
        self.dropped = 0
        """Datagrams that the system dropped because its buffer was full."""

    def take(self, opened: socket.socket) -> float:
        """Wait for one datagram; return its clock's time if it begins a series, else NaN."""
        n = self.count
        size, ancillary, _, _ = opened.recvmsg_into([self.kept[n]], 128, socket.MSG_TRUNC)
        self.size[n] = size

        # the system's stamp, and the datagrams that it has dropped
        for _, kind, data in ancillary:
            if kind == _TIMESTAMP_NS:
                seconds, nanoseconds = struct.unpack("=qq", data)
                self.arrival[n] = seconds + 1e-9 * nanoseconds
            elif kind == _DROPS:
                (self.dropped,) = struct.unpack("=I", data)

        # the clock of a series' first packet
        self.count = n + 1
        head = self.kept[n]
        is_first = head[4] == 1 and head[5] == 0
        return float(head[408:412].view("<f4")[0]) / CLOCK_SPEED if is_first else float("nan")


def open_socket() -> socket.socket:
    """Return a socket on a free port of the loopback, with the largest buffer that is granted."""
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    with contextlib.suppress(PermissionError):  # then it is what net.core.rmem_max allows
        opened.setsockopt(socket.SOL_SOCKET, _RECEIVE_BUFFER_FORCE, BUFFER_BYTES)
    for option in (_TIMESTAMP_NS, _DROPS):
        opened.setsockopt(socket.SOL_SOCKET, option, 1)
    opened.bind(("127.0.0.1", 0))
    return opened


def receive(opened: socket.socket, received: Received, seconds: float) -> tuple[float, float]:
    """Store until `seconds` after the fleet has settled.

    Return the clock's times of the first and the last series that count.
    """
    opened.settimeout(FIRST_PACKET_TIMEOUT_S)

    begin = latest = float("nan")
    while True:
        t = received.take(opened)
        opened.settimeout(SILENCE_S)
        if t != t:
            continue

        if begin != begin and t >= SETTLED_S:
            begin = t
            say(begin=begin)
        if t >= begin + seconds:
            say(end=t)
            return begin, latest

        latest = t


def examine(
    received: Received, fleet: RingFleet, terrain: Any, begin: float, end: float
) -> dict[str, Any]:
    """Return what arrived, and how it compares with the formula.

    - wrong_packets: packets of another length or content than a hundred vehicles of the fleet;
    - times: of all series since the start, by the clock of the first packet;
    - series: those of `begin` … `end` [s];
    - incomplete_series: those of them that lack one of their packets or have it twice;
    - worst_m: the largest distance between any vehicle and its place by the formula;
    - intervals: between the last datagrams of successive series, by the system's stamps;
    - delay_spread: arrival after the packet's time, less that of the quickest one.
    """
    # the parts of every packet
    n = received.count
    raw = received.kept[:n]
    arrival = received.arrival[:n]
    checksum = raw[:, :4].copy().view("<i4")[:, 0]
    ids = raw[:, 4:204].copy().view("<u2").astype(np.int64)
    packet = (ids[:, 0] - 1) // PER_PACKET

    # those that are of the fleet
    is_right = (received.size[:n] == PACKET_BYTES) & (checksum == CHECKSUM)
    is_right &= (ids == PER_PACKET * packet[:, None] + np.arange(1, PER_PACKET + 1)).all(axis=1)
    is_right &= (packet >= 0) & (packet < fleet.packets)
    raw = raw[is_right]
    arrival = arrival[is_right]
    packet = packet[is_right]

    # the clock and the series in time
    north_east_down = raw[:, 404:].copy().view("<f4").reshape(-1, PER_PACKET, 3)
    t = north_east_down[:, 0, 1].astype(float) / CLOCK_SPEED
    in_time = (t >= begin) & (t <= end)
    series, which = np.unique(t[in_time], return_inverse=True)

    # packets of each series, and the arrival of its last
    table = np.zeros((len(series), fleet.packets), np.int64)
    np.add.at(table, (which, packet[in_time]), 1)
    last = np.full(len(series), -np.inf)
    np.maximum.at(last, which, arrival[in_time])

    interval = np.diff(last)
    delay = last - series

    return {
        "datagrams": n,
        "wrong_packets": int(np.count_nonzero(~is_right)),
        "dropped_by_system": received.dropped,
        "times": np.round(t[packet == 0], 6).tolist(),
        "begin": begin,
        "seconds": float(series[-1] - series[0]),
        "arrival_seconds": float(last[-1] - last[0]),
        "series": len(series),
        "incomplete_series": int(np.count_nonzero((table != 1).any(axis=1))),
        "states": int(np.count_nonzero(in_time)) * PER_PACKET,
        "compared": int(np.count_nonzero(in_time)) * (PER_PACKET - 1),
        "worst_m": worst_error(
            fleet, terrain, packet[in_time], t[in_time], north_east_down[in_time]
        ),
        "interval_median": float(np.median(interval)),
        "interval_p99": float(np.percentile(interval, 99)),
        "interval_max": float(interval.max()),
        "delay_spread_p99": float(np.percentile(delay - delay.min(), 99)),
    }


def worst_error(
    fleet: RingFleet,
    terrain: Any,
    packet: NDArray[np.int64],
    t: Floats,
    north_east_down: NDArray[np.float32],
) -> float:
    """Return the largest error over all vehicles except the clocks, m."""
    worst = 0.0
    for first in range(0, len(t), 2000):
        part = slice(first, first + 2000)
        shown = north_east_down[part, 1:].astype(float)[..., [1, 0, 2]] * (1.0, 1.0, -1.0)
        error = np.linalg.norm(shown - fleet.positions(packet[part], t[part], terrain), axis=-1)
        worst = max(worst, float(error.max()) if np.isfinite(error).all() else float("inf"))
    return worst


def say(**values: Any) -> None:
    """Print values as a line of JSON."""
    print(json.dumps(values), flush=True)


def main() -> None:
    """Receive a fleet and print what came."""
    vehicles = int(sys.argv[1])
    seconds = float(sys.argv[2])
    name = sys.argv[3] if len(sys.argv) > 3 else "JacksboroFault"
    from rfly_terrain.height_map.height_map import HeightMap

    fleet = RingFleet(vehicles)
    terrain = HeightMap.load(name)
    received = Received(round(1.5 * (seconds + 30.0) * 50.0) * fleet.packets)
    with open_socket() as opened:
        say(port=opened.getsockname()[1])
        begin, end = receive(opened, received, seconds)

    started = time.perf_counter()
    result = examine(received, fleet, terrain, begin, end)
    say(**result, examined_in=time.perf_counter() - started)


if __name__ == "__main__":
    main()
