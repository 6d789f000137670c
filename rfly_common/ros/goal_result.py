# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The result of an action's goal, requested repeatedly."""

from __future__ import annotations

import time
from typing import Any

REQUEST_EVERY_S = 10.0
"""Time between two requests, s."""


class GoalResult:
    """The result of an accepted goal of an `ActionClient`, with the interface of a future.

    It is requested every ASK_AGAIN_S: DDS loses the response of a server that has not yet
    discovered the client (rmw_fastrtps waits 0.1 s for it), and a client that asked once would wait
    for ever.
    """

    def __init__(self, goal: Any) -> None:
        self._goal = goal
        self._requests: list[Any] = []
        self._requested_at = 0.0
        self.done()

    def done(self) -> bool:
        """Return whether the result has arrived; request it again if that takes long."""
        if not self._requests or time.monotonic() > self._requested_at + REQUEST_EVERY_S:
            self._requests.append(self._goal.get_result_async())
            self._requested_at = time.monotonic()
        return any(future.done() for future in self._requests)

    def result(self) -> Any:
        """Return the result after it has arrived."""
        return next(future.result() for future in self._requests if future.done())
