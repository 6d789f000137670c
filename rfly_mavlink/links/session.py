# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Session with one external controller, over UDP or TCP: claimed actuators, staleness, status.

docs/model, section 12.2.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from rfly_amphibious.simulation.commands import RotorCommand, WheelCommand
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_amphibious.vehicle.state_layout import OUTER_WHEELS
from rfly_common.errors import CommandError, ConfigError, LinkFrameError
from rfly_mavlink.links.controller_session import HEARTBEAT_EVERY_S, ControllerSession
from rfly_mavlink.links.link_frames import (
    LOCK_STEP,
    REASONS,
    SUPPLIES_CHASSIS,
    SUPPLIES_ROTORS,
    FrameReader,
    FrameType,
    GpsReport,
    Heartbeat,
    LinkFrame,
    StateReport,
    decode,
    encode,
)
from rfly_mavlink.links.transport import Handler, StreamTransport, Transport

PORT = 14660
"""Port of the platform."""

CONTROLLER_PORT = 14661
"""Port of the controller."""

LINK_LOSS_S = 0.2
"""Time without a command after which the link counts as lost, free-running, s."""

ANSWER_WITHIN_S = 1.0
"""Wall time after which a controller in lock-step counts as failed, s."""

Command = RotorCommand | WheelCommand

_FROM_CONTROLLERS = (FrameType.ROTORS, FrameType.CHASSIS, FrameType.HEARTBEAT)
_SUPPLIED_BY = {FrameType.ROTORS: SUPPLIES_ROTORS, FrameType.CHASSIS: SUPPLIES_CHASSIS}

_REMEMBERED = 512
"""States of which the time of sending is remembered."""

COUNTERS = ("received", *REASONS, "direction", "older", "not_supplied", "refused", "overflow")
"""Counters of a session.

- received: complete frames
- those of `REASONS`: data that is no frame
- direction: frames of a type that only the platform sends
- older: frames older than one of the same type before
- not_supplied: commands that the last heartbeat does not announce
- refused: commands that do not fit the vehicle
- overflow: the oldest commands of a full queue
"""


class LinkSession(ControllerSession[Command]):
    """Session of frames over a UdpTransport or StreamTransport.

    `commands` returns those that fit the vehicle. Raise ConfigError for a vehicle with six wheels:
    a frame holds the numbers of four.
    """

    def __init__(
        self,
        params: VehicleParameters,
        connect: Callable[[Handler], Transport],
        wake: Callable[[], None] | None = None,
    ) -> None:
        if len(params.wheels) != OUTER_WHEELS:
            raise ConfigError(
                f"vehicle {params.name!r}: {len(params.wheels)} wheels, and frames to controllers "
                f"have room for {OUTER_WHEELS}; expected a vehicle without chassis.middle_axle_m"
            )
        super().__init__(connect, wake, COUNTERS)
        self.params = params
        self._stream = isinstance(self._transport, StreamTransport)
        self._reader = FrameReader()
        self._newest: dict[FrameType, int] = {}
        """Sequence of the last frame of each type."""

        self._lock = threading.Lock()
        self._sequence = 0
        self._flags = 0
        self._time = 0.0
        self._sent: OrderedDict[float, float] = OrderedDict()
        """Wall time at which each of the last states was sent, by its time, s."""

        self._taken = 0
        self._peer = ""

        self.supplies = 0
        """Actuators that the last heartbeat announces, `SUPPLIES_…`; 0 before the first."""

        self.age = math.nan
        """Wall time from sending a state to the last command that answers it, s; NaN before."""

        self.jitter = 0.0
        """Jitter of that age, s, smoothed as in RFC 3550 (6.4.1)."""

        self.last_refused = ""
        """Reason for refusing the last refused command."""

    @property
    def counters(self) -> dict[str, int]:
        """Counters of everything that came and went; a copy."""
        counters = super().counters
        if self._stream:
            counters.update(self._reader.counters)
        return counters

    def send(self, message: StateReport | GpsReport, lock_step: bool = False) -> None:
        """Send to the controller, if there is one, without waiting."""
        self._flags = LOCK_STEP if lock_step else 0
        self._time = message.time
        if isinstance(message, StateReport):
            self._sent[message.time] = time.monotonic()
            if len(self._sent) > _REMEMBERED:
                self._sent.popitem(last=False)
        self._send(message)

    def _send(self, message: StateReport | GpsReport | Heartbeat) -> None:
        with self._lock:
            self._transport.send(encode(message, self._sequence, self._flags))
            self._sequence += 1

    # --- in the transport's thread

    def opened(self, peer: str) -> None:
        """Take note of a new or returning controller: its sequence numbers start again."""
        if self._stream:
            counters = self._reader.counters
            self._reader = FrameReader()
            self._reader.counters = counters
        if peer != self._peer:
            self._peer = peer
            self.supplies = 0
            self._commanded_at = -math.inf
            self.age = math.nan
            self.jitter = 0.0
        self._newest = {}
        self._heartbeat_at = -HEARTBEAT_EVERY_S

    def closed(self) -> None:
        """Take note that the controller is gone and supplies nothing."""
        self._peer = ""
        self.supplies = 0

    def parse(self, data: bytes) -> list[LinkFrame]:
        """Return the frames in a datagram or a piece of the stream."""
        if self._stream:
            return self._reader.feed(data)
        try:
            return [decode(data)]
        except LinkFrameError as error:
            self._counts[error.reason] += 1
            return []

    def take(self, items: list[LinkFrame]) -> bool:
        """Take the frames; return whether one is allowed from a controller and is new."""
        alive = False
        before = self._taken
        for frame in items:
            alive |= self._take(frame)
        if self._taken != before:
            self._wake_up()
        return alive

    def _send_heartbeat(self) -> None:
        if self.peer or not self._stream:
            self._send(Heartbeat(self._time, 0))

    def _take(self, frame: LinkFrame) -> bool:
        """Take one frame; return whether it is allowed and new."""
        self._counts["received"] += 1
        if frame.type not in _FROM_CONTROLLERS:
            self._counts["direction"] += 1
            return False

        # frames overtake each other by UDP
        if frame.sequence <= self._newest.get(frame.type, -1):
            self._counts["older"] += 1
            return False
        self._newest[frame.type] = frame.sequence

        if isinstance(frame.message, Heartbeat):
            self.supplies = frame.message.status & (SUPPLIES_ROTORS | SUPPLIES_CHASSIS)
        elif not self.supplies & _SUPPLIED_BY[frame.type]:
            self._counts["not_supplied"] += 1
        else:
            self._command(frame.message)
        return True

    def _command(self, command: Command) -> None:
        """Queue a command that fits the vehicle, and measure the age of its state."""
        try:
            command.check(self.params)
        except CommandError as error:
            self._counts["refused"] += 1
            self.last_refused = str(error)
            return

        self._queue_command(command)
        self._taken += 1

        # age of the answer
        sent = self._sent.get(command.time)
        if sent is not None:
            age = self._commanded_at - sent
            if not math.isnan(self.age):
                self.jitter += (abs(age - self.age) - self.jitter) / 16.0
            self.age = age


class LockStep:
    """Answers for which a tick still waits.

    One command of each kind that the controller supplies has to come, with the tick's time.
    """

    def __init__(self) -> None:
        self._time: float | None = None
        self._since = 0.0
        self._answered = 0
        self.other_time = 0
        """Commands that answer another tick, or repeat an answer to this one."""

    def ask(self, time_s: float) -> None:
        """Begin to take the answers to a tick whose state has been sent, perhaps once more."""
        if time_s != self._time:
            self._time = time_s
            self._since = time.monotonic()
            self._answered = 0

    def takes(self, command: Command) -> bool:
        """Return whether a command is an answer that the tick waits for."""
        bit = SUPPLIES_ROTORS if isinstance(command, RotorCommand) else SUPPLIES_CHASSIS
        if command.time != self._time or self._answered & bit:
            self.other_time += 1
            return False

        self._answered |= bit
        return True

    def complete(self, supplies: int) -> bool:
        """Return whether everything that the controller supplies has been answered.

        Return False while it supplies nothing.
        """
        return bool(supplies) and not supplies & ~self._answered

    def overdue_s(self, supplies: int) -> float:
        """Return the wall time since the tick's state was first sent, s, if it is too long.

        Return 0 if nothing is missing or there is time left.
        """
        if self._time is None or self.complete(supplies):
            return 0.0
        waited = time.monotonic() - self._since
        return waited if waited > ANSWER_WITHIN_S else 0.0
