"""The ground under a mission, in NED: how high a vehicle has to be here and along what lies ahead."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rfly_terrain.height_map import HeightMap

SAMPLES = 48
"""points of the ground that one look ahead takes"""


class Ground:
    """z (down, m) of a terrain and of the minimum height above it; without a terrain nothing is ever in the way."""

    def __init__(self, terrain: HeightMap | None = None, min_height: float = 2.0) -> None:
        if not (math.isfinite(min_height) and min_height >= 0.0):
            raise ValueError(f"min_height: {min_height!r}, expected at least 0 m")
        self.terrain = terrain
        self.min_height = min_height

    def down(self, north: float, east: float) -> float:
        """z of the ground; infinite without a terrain."""
        return math.inf if self.terrain is None else float(self.terrain.altitude_ned(north, east))

    def clear(self, north: float, east: float, down: float) -> float:
        """`down`, raised to the minimum height above the ground of a place."""
        return min(down, self.down(north, east) - self.min_height)

    def profile(
        self, north: float, east: float, course: float, length: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Distances (k,) along a course up to a length, and the lowest z allowed there."""
        distance = np.linspace(0.0, max(length, 1e-3), SAMPLES)
        if self.terrain is None:
            return distance, np.full(SAMPLES, np.inf)
        n, e = north + distance * math.cos(course), east + distance * math.sin(course)
        return distance, np.asarray(self.terrain.altitude_ned(n, e), dtype=float) - self.min_height

    def clear_ahead(self, north: float, east: float, course: float, length: float) -> float:
        """The lowest z allowed here for a vehicle that keeps its height along a course."""
        if self.terrain is None:
            return math.inf
        return float(self.profile(north, east, course, length)[1].min())

    def clear_circle(self, north: float, east: float, radius: float, down: float) -> float:
        """`down`, raised to the minimum height above the ground of a whole circle."""
        if self.terrain is None:
            return down
        angle = np.linspace(0.0, 2 * math.pi, 2 * SAMPLES)
        z = np.asarray(self.terrain.altitude_ned(north + radius * np.cos(angle), east + radius * np.sin(angle)))
        return min(down, float(z.min()) - self.min_height)
