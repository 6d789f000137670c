"""Session with one ArduPilot SITL, by its JSON interface over UDP."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from rfly_amphibious.links.ardupilot_json import ServoFrame, decode_servos
from rfly_amphibious.links.controller_session import ControllerSession
from rfly_amphibious.links.transport import UdpTransport
from rfly_common.errors import LinkError, PacketError

PORT = 9002
"""ArduPilot's; its instance n sends to 10 n more"""
LATE_FRAMES = 100
"""a count that is so much lower is a frame that comes late; one that is lower still comes from a new start"""
REPEAT_AFTER_S = 0.5
"""ArduPilot sends a frame again 1 s after the last at the earliest: what comes sooner is the same datagram, doubled"""
COUNTERS = ("frames", "no_frame", "late", "doubled", "replies_sent_again", "starts", "overflow")
"""frames: new ones · no_frame: datagrams of somebody or something else · late: older than the newest · doubled: as the
newest · replies_sent_again: because ArduPilot asked once more · starts: of ArduPilot · overflow: of a full queue"""


class ArdupilotSession(ControllerSession[ServoFrame]):
    """Takes servo frames, each once and in order; each is to be answered once, with a state.

    A reply that was lost is sent again when ArduPilot sends its frame again.
    """

    def __init__(self, bind: str, port: int, host: str, wake: Callable[[], None] | None = None) -> None:
        super().__init__(lambda handler: UdpTransport(bind, port, host, 0, handler), wake, COUNTERS)
        self._lock = threading.Lock()
        self._newest = -1
        self._reply: tuple[int, float, bytes] | None = None

    def start(self) -> None:
        """Raises LinkError where the port cannot be opened."""
        try:
            super().start()
        except LinkError as error:
            raise LinkError(
                f"{error}. Betaflight's motors come to UDP {PORT} too: betaflight_node and ardupilot_json_node "
                "do not run together on one machine, nor two of these with one port"
            ) from error

    def reply(self, frame: ServoFrame, state: bytes) -> None:
        """The answer to a frame. Never waits."""
        with self._lock:
            self._reply = frame.number, time.monotonic(), state
        self._transport.send(state)

    # --- in the transport's thread

    def opened(self, peer: str) -> None:
        """ArduPilot runs, or another one."""
        self._begin(-1)

    def closed(self) -> None:
        """UDP has no end."""

    def parse(self, data: bytes) -> list[ServoFrame]:
        """Of a datagram: one, or none."""
        try:
            return [decode_servos(data)]
        except PacketError:
            self._counts["no_frame"] += 1
            return []

    def take(self, items: list[ServoFrame]) -> bool:
        """Whether it was the newest frame, or a newer one."""
        alive = False
        for frame in items:
            if frame.number == self._newest:
                self._repeat(frame.number)
            elif frame.number and 0 < self._newest - frame.number < LATE_FRAMES:
                self._counts["late"] += 1
                continue
            else:
                if frame.number < self._newest:
                    self._begin(frame.number)
                self._newest = frame.number
                self._counts["frames"] += 1
                self._queue_command(frame)
                self._wake_up()
            alive = True
        return alive

    def _begin(self, count: int) -> None:
        self._counts["starts"] += 1
        self._newest = count
        with self._lock:
            self._reply = None

    def _repeat(self, count: int) -> None:
        """What was lost once more; a second reply to a doubled frame would leave ArduPilot a frame behind for ever."""
        self._counts["doubled"] += 1
        now = time.monotonic()
        with self._lock:
            if self._reply is None or self._reply[0] != count or now - self._reply[1] < REPEAT_AFTER_S:
                return
            self._reply = count, now, self._reply[2]
            state = self._reply[2]
        self._counts["replies_sent_again"] += 1
        self._transport.send(state)

    def _send_heartbeat(self) -> None:
        """ArduPilot speaks first, always."""
