"""MAVLink HIL with one autopilot: it connects by TCP, as PX4's simulation does, or is at the end of a serial line."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from rfly_amphibious.links.controller_session import HEARTBEAT_EVERY_S, ControllerSession
from rfly_amphibious.links.mavlink_hil import COMPONENT_ID, SYSTEM_ID, HilMessages
from rfly_amphibious.links.transport import Handler, Transport
from rfly_trajectory.mavlink.wire import load_dialect

PORT = 4560
FIRST_WORD_S = 1.0
"""of wall time after it has connected, in which an autopilot may say that it wants to be waited for from the start"""
_MOST_KEPT = 1 << 16
COUNTERS = ("received", "controls", "bad_data", "overflow")
"""received: whole messages · controls: of them HIL_ACTUATOR_CONTROLS · bad_data: places that hold no message ·
overflow: the oldest of a full queue"""


class ActuatorControls(NamedTuple):
    """HIL_ACTUATOR_CONTROLS."""

    time_usec: int
    controls: tuple[float, ...]
    """(16,)"""


class HilSession(ControllerSession[ActuatorControls]):
    """Sends messages, takes HIL_ACTUATOR_CONTROLS. `connect` makes a TcpTransport or a SerialTransport."""

    def __init__(
        self, messages: HilMessages, connect: Callable[[Handler], Transport], wake: Callable[[], None] | None = None
    ) -> None:
        super().__init__(connect, wake, COUNTERS)
        self._dialect, self._messages = load_dialect(), messages
        self._parser = self._new_parser()
        self._packer = self._dialect.MAVLink(None, SYSTEM_ID, COMPONENT_ID)
        self._lock = threading.Lock()
        self._opened_at = float("-inf")
        self._spoke = False
        self.up = False
        """whether the autopilot that is connected has sent controls: from then on it is waited for"""
        self.connections = 0

    @property
    def booting(self) -> bool:
        """Whether the autopilot is connected, and does not control yet: it gets its sensors without being waited for.

        In its first second, until it has said anything, it may still turn out to control from the start.
        """
        if not self.peer or self.up:
            return False
        return self._spoke or time.monotonic() - self._opened_at > FIRST_WORD_S

    def send(self, *messages: Any) -> None:
        """To the autopilot, if there is one. Never waits."""
        if not self._transport.peer:
            return
        with self._lock:
            for message in messages:
                self._transport.send(bytes(message.pack(self._packer)))
                self._packer.seq = (self._packer.seq + 1) % 256

    # --- in the transport's thread

    def opened(self, peer: str) -> None:
        """An autopilot has connected."""
        self._parser, self.up, self._spoke = self._new_parser(), False, False
        self._opened_at, self._commanded_at = time.monotonic(), float("-inf")
        self._heartbeat_at = -HEARTBEAT_EVERY_S
        self._queue.clear()
        self.connections += 1

    def closed(self) -> None:
        """It has gone."""
        self.up = False

    def parse(self, data: bytes) -> list[Any]:
        """The messages of a piece of the stream."""
        parser = self._parser
        found = parser.parse_buffer(data) or []
        if parser.buf_index > _MOST_KEPT:  # it lets go of what it has read only where nothing is left over
            del parser.buf[: parser.buf_index]
            parser.buf_index = 0
        whole = [message for message in found if message.get_type() != "BAD_DATA"]
        self._counts["bad_data"] += len(found) - len(whole)
        self._counts["received"] += len(whole)
        return whole

    def take(self, items: list[Any]) -> bool:
        """Whatever it says is a sign of life."""
        controls = False
        for message in items:
            if message.get_type() != "HIL_ACTUATOR_CONTROLS":
                continue
            self._queue_command(ActuatorControls(message.time_usec, tuple(message.controls)))
            self._counts["controls"] += 1
            self.up = controls = True
        first, self._spoke = not self._spoke, True
        if controls or first:
            self._wake_up()
        return True

    def _send_heartbeat(self) -> None:
        self.send(self._messages.heartbeat())

    def _new_parser(self) -> Any:
        parser = self._dialect.MAVLink(None)
        parser.robust_parsing = True
        return parser
