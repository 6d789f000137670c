"""Session with one controller outside, over UDP or TCP: claimed actuators, command staleness,
status.

docs/model, section 12.2.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from rfly_amphibious.control.commands import RotorCommand, WheelCommand
from rfly_amphibious.links.controller_session import HEARTBEAT_EVERY_S, ControllerSession
from rfly_amphibious.links.frames import (
    LOCK_STEP,
    REASONS,
    SUPPLIES_CHASSIS,
    SUPPLIES_ROTORS,
    Frame,
    FrameReader,
    FrameType,
    GpsReport,
    Heartbeat,
    StateReport,
    decode,
    encode,
)
from rfly_amphibious.links.transport import Handler, StreamTransport, Transport
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_amphibious.vehicle.state_layout import OUTER_WHEELS
from rfly_common.errors import CommandError, ConfigError, LinkFrameError

PORT = 14660
CONTROLLER_PORT = 14661
LINK_LOSS_S = 0.2
"""without a command, free-running: the link counts as lost"""
ANSWER_WITHIN_S = 1.0
"""of wall time, in lock-step: later the controller counts as failed"""

Command = RotorCommand | WheelCommand
_FROM_CONTROLLERS = (FrameType.ROTORS, FrameType.CHASSIS, FrameType.HEARTBEAT)
_SUPPLIED_BY = {FrameType.ROTORS: SUPPLIES_ROTORS, FrameType.CHASSIS: SUPPLIES_CHASSIS}
_REMEMBERED = 512

COUNTERS = ("received", *REASONS, "direction", "older", "not_supplied", "refused", "overflow")
"""received: whole frames · those of `REASONS`: no frames · direction: of a type that only the
platform sends · older: than one of the same type before · not_supplied: a command that the last
heartbeat does not announce · refused: does not fit the vehicle · overflow: the oldest of a full
queue
"""


class LinkSession(ControllerSession[Command]):
    """Frames over a UdpTransport or StreamTransport; `commands` gives those that fit the vehicle.

    Raises ConfigError for a vehicle with six wheels: a frame holds the numbers of four.
    """

    def __init__(
        self,
        params: VehicleParameters,
        connect: Callable[[Handler], Transport],
        wake: Callable[[], None] | None = None,
    ) -> None:
        if len(params.wheels) != OUTER_WHEELS:
            raise ConfigError(
                f"vehicle {params.name!r}: {len(params.wheels)} wheels, and frames to controllers have room for "
                f"{OUTER_WHEELS}; expected a vehicle without chassis.middle_axle_m"
            )
        super().__init__(connect, wake, COUNTERS)
        self.params = params
        self._stream = isinstance(self._transport, StreamTransport)
        self._reader = FrameReader()
        self._newest: dict[FrameType, int] = {}
        """sequence of the last frame of each type"""
        self._lock = threading.Lock()
        self._sequence = 0
        self._flags = 0
        self._time = 0.0
        self._sent: OrderedDict[float, float] = OrderedDict()
        self._taken = 0
        self._peer = ""
        self.supplies = 0
        """what the controller's last heartbeat announces: `SUPPLIES_ROTORS`, `SUPPLIES_CHASSIS`; 0
        before it
        """
        self.age = math.nan
        """s of wall time from a state's being sent to the arrival of the last command that answers
        it; NaN: none yet
        """
        self.jitter = 0.0
        """s, of that age, smoothed as RFC 3550 (6.4.1) does"""
        self.last_refused = ""
        """why the last command was refused"""

    @property
    def counters(self) -> dict[str, int]:
        """What became of all that came and went; a copy."""
        found = super().counters
        if self._stream:
            found.update(self._reader.counters)
        return found

    def send(self, message: StateReport | GpsReport, lock_step: bool = False) -> None:
        """To the controller, if there is one. Never waits."""
        self._flags = LOCK_STEP if lock_step else 0
        self._time = message.time
        if isinstance(message, StateReport):
            self._sent[message.time] = time.monotonic()
            if len(self._sent) > _REMEMBERED:
                self._sent.popitem(last=False)
        self._send(message)

    def _send(self, message: StateReport | GpsReport | Heartbeat) -> None:
        with self._lock:
            sequence = self._sequence
            self._sequence = self._sequence + 1
            self._transport.send(encode(message, sequence, self._flags))

    # --- in the transport's thread

    def opened(self, peer: str) -> None:
        """A new controller, or one that was silent for long: its sequence numbers start again."""
        if self._stream:
            before = self._reader.counters
            self._reader = FrameReader()
            self._reader.counters = before
        if peer != self._peer:
            self._peer = peer
            self.supplies = 0
            self._commanded_at = -math.inf
            self.age = math.nan
            self.jitter = 0.0
        self._newest = {}
        self._heartbeat_at = -HEARTBEAT_EVERY_S

    def closed(self) -> None:
        """Nobody supplies anything."""
        self._peer = ""
        self.supplies = 0

    def parse(self, data: bytes) -> list[Frame]:
        """The frames in a datagram or a piece of the stream."""
        if self._stream:
            return self._reader.feed(data)
        try:
            return [decode(data)]
        except LinkFrameError as error:
            self._counts[error.reason] += 1
            return []

    def take(self, items: list[Frame]) -> bool:
        """Whether one was such as a controller may send, and newer than those before."""
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

    def _take(self, frame: Frame) -> bool:
        self._counts["received"] += 1
        if frame.type not in _FROM_CONTROLLERS:
            self._counts["direction"] += 1
            return False
        if frame.sequence <= self._newest.get(
            frame.type, -1
        ):  # frames overtake each other on their way by UDP
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
        try:
            command.check(self.params)
        except CommandError as error:
            self._counts["refused"] += 1
            self.last_refused = str(error)
            return
        self._queue_command(command)
        self._taken += 1
        sent = self._sent.get(command.time)
        if sent is not None:
            age = self._commanded_at - sent
            if not math.isnan(self.age):
                self.jitter += (abs(age - self.age) - self.jitter) / 16.0
            self.age = age


class LockStep:
    """What a tick still waits for: one command of each kind that the controller supplies, stamped
    with the tick.
    """

    def __init__(self) -> None:
        self._time: float | None = None
        self._since = 0.0
        self._answered = 0
        self.other_time = 0
        """commands that answer another tick, or answered this one before"""

    def ask(self, time_s: float) -> None:
        """A tick's state has been sent, or sent again: now its answers are taken."""
        if time_s != self._time:
            self._time = time_s
            self._since = time.monotonic()
            self._answered = 0

    def takes(self, command: Command) -> bool:
        """Whether it is an answer that is waited for."""
        bit = SUPPLIES_ROTORS if isinstance(command, RotorCommand) else SUPPLIES_CHASSIS
        if command.time != self._time or self._answered & bit:
            self.other_time += 1
            return False
        self._answered |= bit
        return True

    def complete(self, supplies: int) -> bool:
        """Whether all that the controller supplies has been answered; False as long as it supplies
        nothing.
        """
        return bool(supplies) and not supplies & ~self._answered

    def overdue_s(self, supplies: int) -> float:
        """Wall time since the tick's state was first sent, where that is too long and something is
        missing; else 0.
        """
        if self._time is None or self.complete(supplies):
            return 0.0
        waited = time.monotonic() - self._since
        return waited if waited > ANSWER_WITHIN_S else 0.0
