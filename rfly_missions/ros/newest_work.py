# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Work on missions that would stop a node for seconds if they are long: it is done in a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node

from rfly_common.ros.run_loop import in_thread

MOST_AT_ONCE = 200
"""Number of items of the longest mission that is worked on at once, in some 10 ms."""


class NewestWork:
    """Work whose newest result alone counts."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._number = 0

    def start(self, items: int, work: Callable[[], Any], take: Callable[[Any], None]) -> None:
        """Pass the result of `work` on a mission of some items to `take`, at once or later."""
        self._number += 1
        executor = self._node.executor
        if items <= MOST_AT_ONCE or executor is None:
            take(work())
        else:
            executor.create_task(self._finish(work, take, self._number))

    async def _finish(
        self, work: Callable[[], Any], take: Callable[[Any], None], number: int
    ) -> None:
        result = await in_thread(self._node, work)
        if number == self._number:
            take(result)
