# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Receive the soak's one-packet fleet in RflySim3D's place: count series, compare clocks.

The first vehicle of `benchmarks.ring_fleet` is a clock: its position encodes the fleet time at
which the packet was made.
"""

from __future__ import annotations

import socket
import struct
import threading
from array import array
from bisect import bisect_right

from benchmarks.fleet_receiver import CHECKSUM, PACKET_BYTES, open_socket
from benchmarks.ring_fleet import CLOCK_SPEED
from rfly_common.files import Closing

WINDOW_S = 10.0
"""The quickest packet of each window stands for the clock: the others waited longer for their turn.
"""
ROUNDED_S = 0.006
"""Largest lead of the packet's clock over a fleet time in a diagnostic, s.

Fleet times in diagnostics have hundredths only.
"""
# SO_TIMESTAMPNS, SO_RXQ_OVFL of <asm-generic/socket.h>
_TIMESTAMP_NS = 35
_DROPS = 40
_CLOCK = struct.Struct("<4xf")
_CLOCK_AT = 4 + 200 + 200
"""Offset of the first vehicle's north and east, behind checksum, ids and types."""


class SeriesReceiver(Closing):
    """A receiver on window 1, in RflySim3D's place; `viewer_port` is that of window 0."""

    def __init__(self) -> None:
        self._socket, self.viewer_port = _second_window()
        self.wrong = self.dropped = 0
        self.first_s = 0.0
        """Fleet time of the first series, s."""
        self._times = array("d")
        self._offsets = array("d")
        """Fleet time of each series less the machine's time of its arrival."""
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    @property
    def count(self) -> int:
        """Number of series that have arrived."""
        return len(self._times)

    def arrived_until(self, fleet_time: float) -> int:
        """Return the number of series up to that time that have arrived."""
        return bisect_right(self._times, fleet_time + ROUNDED_S)

    def least_offsets(self, from_s: float) -> tuple[list[float], list[float]]:
        """Return fleet times from `from_s` on, one in each window, and the least offset there."""
        windows: dict[int, tuple[float, float]] = {}
        for t, offset in zip(self._times, self._offsets, strict=False):
            if t >= from_s:
                number = int((t - from_s) / WINDOW_S)
                if number not in windows or offset < windows[number][1]:
                    windows[number] = t, offset
        return [t for t, _ in windows.values()], [offset for _, offset in windows.values()]

    def close(self) -> None:
        self._done.set()
        self._thread.join()
        self._socket.close()

    def _receive(self) -> None:
        """Receive until closed, with the system's stamps and counts of lost datagrams."""
        self._socket.settimeout(0.2)
        while not self._done.is_set():
            try:
                data, ancillary, _, _ = self._socket.recvmsg(65536, 128)
            except TimeoutError:
                continue

            # the system's stamp, and the datagrams that it has dropped
            arrival = float("nan")
            for _, kind, value in ancillary:
                if kind == _TIMESTAMP_NS:
                    seconds, nanoseconds = struct.unpack("=qq", value)
                    arrival = seconds + 1e-9 * nanoseconds
                elif kind == _DROPS:
                    (self.dropped,) = struct.unpack("=I", value)

            self._take(data, arrival)

    def _take(self, data: bytes, arrival: float) -> None:
        """Note the clocks of one series, or count a wrong datagram."""
        if len(data) != PACKET_BYTES or struct.unpack_from("<i", data)[0] != CHECKSUM:
            self.wrong += 1
            return

        fleet_time = _CLOCK.unpack_from(data, _CLOCK_AT)[0] / CLOCK_SPEED
        if not self._times:
            self.first_s = fleet_time
        self._offsets.append(arrival - fleet_time)
        self._times.append(fleet_time)


def _second_window() -> tuple[socket.socket, int]:
    """Return a socket, and the free port before its own."""
    while True:
        window = open_socket()
        port = int(window.getsockname()[1]) - 1
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as viewer:
            try:
                viewer.bind(("127.0.0.1", port))
            except OSError:
                window.close()
                continue
        return window, port
