# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Queue between the thread that joins frames and the one that decodes them."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

Item = TypeVar("Item")
MAX_BYTES = 64_000_000
"""Bytes that wait at most, a little more than the largest frame."""


class FrameQueue(Generic[Item]):
    """Bounded queue, which drops the oldest items: a newer frame is worth more."""

    def __init__(self, max_items: int, max_bytes: int = MAX_BYTES) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._items: deque[tuple[Item, int]] = deque()
        self._size = 0
        self._changed = threading.Condition()
        self._closed = False

    def put(self, item: Item, size: int) -> list[Item]:
        """Append an item of `size` bytes, and return those that were dropped for it."""
        dropped = []
        with self._changed:
            self._items.append((item, size))
            self._size += size
            while len(self._items) > 1 and (
                len(self._items) > self._max_items or self._size > self._max_bytes
            ):
                dropped.append(self._pop())
            self._changed.notify()
        return dropped

    def get(self, timeout_s: float | None = None) -> Item | None:
        """Wait for the oldest item and return it; None after the time-out, or when closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._closed, timeout_s)
            return None if self._closed or not self._items else self._pop()

    def close(self) -> None:
        """Drop the frames that wait, and return None to all readers that wait."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _pop(self) -> Item:
        item, size = self._items.popleft()
        self._size -= size
        return item
