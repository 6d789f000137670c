"""The result of an action's goal, asked for again."""

from __future__ import annotations

import time
from typing import Any

ASK_AGAIN_S = 10.0


class GoalResult:
    """The result of an accepted goal of an `ActionClient`, to wait for as for a future.

    It is asked for every ASK_AGAIN_S: DDS loses the response of a server that has not yet
    discovered who asked (rmw_fastrtps waits 0.1 s for it), and a client that asked once would wait
    for ever.
    """

    def __init__(self, goal: Any) -> None:
        self._goal = goal
        self._asked: list[Any] = []
        self._asked_at = 0.0
        self.done()

    def done(self) -> bool:
        """Whether it has come."""
        if not self._asked or time.monotonic() > self._asked_at + ASK_AGAIN_S:
            self._asked.append(self._goal.get_result_async())
            self._asked_at = time.monotonic()
        return any(future.done() for future in self._asked)

    def result(self) -> Any:
        """Once it has come."""
        return next(future.result() for future in self._asked if future.done())
