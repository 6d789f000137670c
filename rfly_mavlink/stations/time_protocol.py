# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink's time synchronization and ping, the vehicle's side.

https://mavlink.io/en/services/timesync.html and https://mavlink.io/en/services/ping.html. The time
is that of the node's clock, which also stamps poses and so telemetry; with simulated time it is the
time of the simulation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rfly_mavlink.dialect.wire import Address, Send, load_dialect, newer_message, sender_of


class TimeProtocol:
    """Answers to requests of HANDLED; what answers a request of others is left alone."""

    HANDLED = frozenset({"TIMESYNC", "PING"})

    def __init__(self, send: Send, clock_ns: Callable[[], int]) -> None:
        self._d = load_dialect()
        self._send = send
        self._clock_ns = clock_ns

    def handle(self, message: Any, address: Address) -> None:
        """Take one of HANDLED, for this vehicle; `address` is its sender's."""
        sender = sender_of(message)
        if message.get_type() == "PING":
            if (message.target_system, message.target_component) == (0, 0):
                ping = self._d.MAVLink_ping_message(message.time_usec, message.seq, *sender)
                self._send(ping, address)
        elif message.tc1 == 0:
            now = max(1, self._clock_ns())  # 0 would make it a request
            self._send(newer_message("TIMESYNC", now, message.ts1, *sender), address)
