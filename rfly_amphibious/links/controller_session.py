"""Session with a controller outside: a transport, heartbeats to it, and a queue of what it
commands.
"""

from __future__ import annotations

import abc
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

from rfly_amphibious.links.transport import Handler, Transport

if TYPE_CHECKING:
    from typing_extensions import Self

HEARTBEAT_EVERY_S = 1.0
QUEUE_SIZE = 256

Item = TypeVar("Item")


class ControllerSession(Handler, abc.ABC, Generic[Item]):
    """What all protocols share: `LinkSession` (frames) and `HilSession` (MAVLink) make sense of the
    bytes.

    It speaks with the controller from `start` to `close`; `commands` gives what has come. `connect`
    makes the transport for the handler that it is given, which is the session. `wake` is called in
    the transport's thread when there is something to take; it neither raises nor closes the
    session. `counters`: names of what is counted.
    """

    def __init__(
        self,
        connect: Callable[[Handler], Transport],
        wake: Callable[[], None] | None,
        counters: Iterable[str],
    ) -> None:
        self._wake = wake
        self._counts = dict.fromkeys(counters, 0)
        self._queue: deque[Item] = deque(maxlen=QUEUE_SIZE)
        self._heartbeat_at = -HEARTBEAT_EVERY_S
        self._commanded_at = float("-inf")
        self._transport = connect(self)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def start(self) -> None:
        """Raises LinkError where the port cannot be opened."""
        self._transport.start()

    def close(self) -> None:
        """At once."""
        self._transport.close()

    @property
    def port(self) -> int:
        """Ours, as it really is."""
        return self._transport.port

    @property
    def peer(self) -> str:
        """host:port of the controller, "" while there is none."""
        return self._transport.peer

    @property
    def counters(self) -> dict[str, int]:
        """What became of all that came and went; a copy."""
        return {**self._counts, **self._transport.counters}

    @property
    def gap(self) -> float:
        """s of wall time since the last command that was taken; infinite before the first."""
        return time.monotonic() - self._commanded_at

    def commands(self) -> list[Item]:
        """What has come, oldest first. Never waits."""
        return [self._queue.popleft() for _ in range(len(self._queue))]

    # --- in the transport's thread

    def tick(self) -> None:
        """A heartbeat, when it is time for one."""
        now = time.monotonic()
        if now - self._heartbeat_at >= HEARTBEAT_EVERY_S:
            self._heartbeat_at = now
            self._send_heartbeat()

    @abc.abstractmethod
    def _send_heartbeat(self) -> None:
        """To the controller, if there is one."""

    def _queue_command(self, command: Item) -> None:
        self._commanded_at = time.monotonic()
        if len(self._queue) == QUEUE_SIZE:
            self._counts["overflow"] += 1
        self._queue.append(command)

    def _wake_up(self) -> None:
        if self._wake is not None:
            self._wake()
