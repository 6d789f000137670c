# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Datagrams of a recording at their times, in the place of a listener's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator

from rfly_common.files import Closing


class Playback(Closing):
    """Source of recorded datagrams: `take` returns those whose time has come.

    `datagrams` are times, s, and contents. The first is due at the first call. `clock` returns
    seconds.
    """

    overflow = 0

    def __init__(
        self,
        name: str,
        datagrams: Iterable[tuple[float, bytes]],
        clock: Callable[[], float],
        speed: float = 1.0,
    ) -> None:
        self.name = name
        self.arrived = threading.Event()
        """Set until the end."""
        self.arrived.set()
        self._left: Iterator[tuple[float, bytes]] = iter(datagrams)
        self._next = next(self._left, None)
        self._clock = clock
        self._speed = speed
        self._first = self._next[0] if self._next else 0.0
        self._began: float | None = None

    def take(self) -> list[bytes]:
        """Return the datagrams since the last call, in their order."""
        now = self._clock()
        if self._began is None:
            self._began = now
        due = self._first + self._speed * (now - self._began)

        taken = []
        while self._next is not None and self._next[0] <= due:
            taken.append(self._next[1])
            self._next = next(self._left, None)
        if self._next is None:
            self.arrived.clear()
        return taken

    def close(self) -> None:
        """End: nothing is open here."""
