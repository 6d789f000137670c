# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Session with an external controller: a transport, heartbeats, and a queue of its commands."""

from __future__ import annotations

import abc
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

from rfly_common.files import Closing
from rfly_mavlink.links.transport import Handler, Transport

if TYPE_CHECKING:
    from typing_extensions import Self

HEARTBEAT_EVERY_S = 1.0
"""Period of the heartbeats, s."""

QUEUE_SIZE = 256
"""Commands that wait in the queue; of more the oldest go."""

Item = TypeVar("Item")


class ControllerSession(Handler, Closing, Generic[Item]):
    """Base of `LinkSession` (frames), `HilSession` (MAVLink) and `ArdupilotSession` (JSON).

    It speaks with the controller from `start` to `close`; `commands` returns what has come.
    `connect` makes the transport for its handler, which is this session. `wake`, called in the
    transport's thread when commands wait, neither raises nor closes the session. `counters`: names
    of the counters.
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

    def start(self) -> None:
        """Open the port. Raise LinkError if it cannot be opened."""
        self._transport.start()

    def close(self) -> None:
        """Close the port immediately."""
        self._transport.close()

    @property
    def port(self) -> int:
        """Port of this side; the real one while it is open."""
        return self._transport.port

    @property
    def peer(self) -> str:
        """Address of the controller, host:port; "" while there is none."""
        return self._transport.peer

    @property
    def rival(self) -> str:
        """Address of a second controller, whose datagrams are ignored; "" if there is none."""
        return self._transport.rival

    @property
    def counters(self) -> dict[str, int]:
        """Counters of everything that came and went; a copy."""
        return {**self._counts, **self._transport.counters}

    @property
    def gap(self) -> float:
        """Wall time since the last command, s; infinite before the first."""
        return time.monotonic() - self._commanded_at

    def commands(self) -> list[Item]:
        """Return the commands that have come, oldest first, without waiting."""
        return [self._queue.popleft() for _ in range(len(self._queue))]

    # --- in the transport's thread

    def tick(self) -> None:
        """Send a heartbeat, if it is time for one."""
        now = time.monotonic()
        if now - self._heartbeat_at >= HEARTBEAT_EVERY_S:
            self._heartbeat_at = now
            self._send_heartbeat()

    @abc.abstractmethod
    def _send_heartbeat(self) -> None:
        """Send a heartbeat to the controller, if there is one."""

    def _queue_command(self, command: Item) -> None:
        """Queue a command; the oldest of a full queue goes."""
        self._commanded_at = time.monotonic()
        if len(self._queue) == QUEUE_SIZE:
            self._counts["overflow"] += 1
        self._queue.append(command)

    def _wake_up(self) -> None:
        """Call `wake`."""
        if self._wake is not None:
            self._wake()
