# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Tiles that moving points will need are read before they get there.

Queries name no vehicles. Two of the same number of points, one after the other, are taken for the
same vehicles if they have moved no faster than vehicles do.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.errors import TerrainError
from rfly_terrain.height_map.terrain import Terrain

AHEAD_S = 5.0
"""Time by which tiles are read before they are needed, s."""
REST_S = 2.0
"""Time for which nothing is read ahead after a tile could not be read, s."""
MAX_SPEED = 300.0
"""Points that have moved faster are others, m/s."""
MAX_POINTS = 10_000
"""Points of a query that is followed, at most."""


class _Query(NamedTuple):
    """Points of a query, (2, n), and the time of it, s."""

    time: float
    points: Floats


class ReadAhead:
    """Reader of tiles for the points of queries that repeat."""

    def __init__(
        self, start: Callable[[Callable[[], None]], None], clock: Callable[[], float]
    ) -> None:
        """`start(work)` runs work in a thread, one at a time; `clock()` is in seconds."""
        self._start = start
        self._clock = clock
        self._last: _Query | None = None
        self._rests_until = -math.inf
        self._reading = threading.Lock()

    def take(self, terrain: Terrain, x: Floats, y: Floats) -> None:
        """Take the points of a query, x east and y north; nothing is read here."""
        query = _Query(self._clock(), np.array([np.ravel(x), np.ravel(y)], float))
        last = self._last
        self._last = query
        count = query.points.shape[1]
        if last is None or last.points.shape[1] != count or not 0 < count <= MAX_POINTS:
            return

        moved = query.points - last.points
        passed = query.time - last.time
        if not (passed > 0.0 and np.abs(moved).max() <= MAX_SPEED * passed):
            return
        ahead = query.points + moved * (AHEAD_S / passed)
        both = np.concatenate([query.points, ahead], axis=1)
        if query.time < self._rests_until or terrain.is_loaded(*both):
            return
        if not self._reading.acquire(blocking=False):
            return

        def read() -> None:
            try:
                with suppress(TerrainError):  # the query that needs the tile says so
                    terrain.prepare(*both)
                if not terrain.is_loaded(*both):
                    self._rests_until = self._clock() + REST_S
            finally:
                self._reading.release()

        self._start(read)
