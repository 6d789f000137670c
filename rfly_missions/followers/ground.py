# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Terrain below a mission, in NED: lowest flight height at a point and along a path."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_number

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap

SAMPLES = 48
"""Number of points of the ground that a look ahead takes."""
SLOPE_STEP = 0.02
"""Step of the slopes, m/m, for which surfaces are made: vehicles of many speeds share a few."""
CHAMFER = 1.0824
"""Steepest gradient of a surface that rises by no more than 1 along a grid's axes and diagonals."""


def cone_envelope(
    heights: NDArray[np.floating], step_x: float, step_y: float, slope: float
) -> Floats:
    """Return the lowest surface above heights (rows, columns) that rises by no more than `slope`.

    Dilation with a cone, in two passes over the rows (Rosenfeld and Pfaltz, Sequential Operations
    in Digital Picture Processing, 1966); distances are those along rows, columns and diagonals.
    """
    surface = np.array(heights, dtype=float)
    along = slope * step_y * np.arange(surface.shape[1])
    straight = slope * step_x
    across = slope * math.hypot(step_x, step_y)

    def spread(row: Floats) -> None:
        """Raise a row to the cones of its own samples, both ways."""
        np.maximum(row, np.maximum.accumulate(row + along) - along, out=row)
        back = row[::-1]
        np.maximum(back, np.maximum.accumulate(back + along) - along, out=back)

    spread(surface[0])
    for rows in (surface, surface[::-1]):
        for before, row in pairwise(rows):
            np.maximum(row, before - straight, out=row)
            np.maximum(row[1:], before[:-1] - across, out=row[1:])
            np.maximum(row[:-1], before[1:] - across, out=row[:-1])
            spread(row)

    return surface


class Ground:
    """Terrain, and the minimum height above it, as NED z, m.

    A vehicle without a terrain meets no obstacle.
    """

    def __init__(self, terrain: HeightMap | None = None, min_height: float = 2.0) -> None:
        self.terrain = terrain
        self.min_height = finite_number(
            "min_height", min_height, "m", at_least=0.0, error=ValueError
        )
        self._envelopes: dict[float, HeightMap] = {}

    @classmethod
    def level(cls, down: float, min_height: float = 2.0) -> Ground:
        """Return level ground at a z everywhere, to be assumed while the terrain is unknown."""
        from rfly_terrain.height_map.height_map import HeightMap

        flat = HeightMap(np.full((2, 2), -down), origin_x=0.0, origin_y=0.0, step_x=1.0, step_y=1.0)
        return cls(flat, min_height)

    def down(self, north: float, east: float) -> float:
        """Return the z of the ground; infinite without a terrain."""
        return math.inf if self.terrain is None else float(self.terrain.altitude_ned(north, east))

    def clear(self, north: float, east: float, down: float) -> float:
        """Return `down`, raised to the minimum height above the ground of a place."""
        return min(down, self.down(north, east) - self.min_height)

    def envelope_down(self, north: float, east: float, slope: float) -> float:
        """Return the lowest z from which a vehicle that climbs with `slope` (m/m) can fly on.

        A vehicle above this surface keeps the minimum height in every direction: the surface lies
        above the ground, and rises nowhere more steeply than the vehicle climbs. Infinite without a
        terrain.
        """
        if self.terrain is None:
            return math.inf
        slope = max(math.floor(slope / SLOPE_STEP) * SLOPE_STEP, SLOPE_STEP)
        envelope = self._envelopes.get(slope)
        if envelope is None:
            envelope = self._envelopes[slope] = self._make_envelope(self.terrain, slope)
        return float(envelope.altitude_ned(north, east)) - self.min_height

    def envelope_around(self, north: float, east: float, radius: float, slope: float) -> float:
        """Return the highest point (the least z) of that surface on a circle."""
        angles = np.linspace(0.0, 2 * math.pi, SAMPLES).tolist()
        return min(
            self.envelope_down(north + radius * math.cos(a), east + radius * math.sin(a), slope)
            for a in angles
        )

    @staticmethod
    def _make_envelope(terrain: HeightMap, slope: float) -> HeightMap:
        step = slope / CHAMFER
        heights = cone_envelope(terrain.heights, abs(terrain.step_x), abs(terrain.step_y), step)
        return type(terrain)(
            heights,
            origin_x=terrain.origin_x,
            origin_y=terrain.origin_y,
            step_x=terrain.step_x,
            step_y=terrain.step_y,
        )

    def profile(
        self, north: float, east: float, course: float, length: float
    ) -> tuple[Floats, Floats]:
        """Return distances (k,) along a course up to a length, and the lowest z allowed there."""
        distance = np.linspace(0.0, max(length, 1e-3), SAMPLES)
        if self.terrain is None:
            return distance, np.full(SAMPLES, np.inf)
        n = north + distance * math.cos(course)
        e = east + distance * math.sin(course)
        return distance, np.asarray(self.terrain.altitude_ned(n, e), dtype=float) - self.min_height

    def clear_ahead(self, north: float, east: float, course: float, length: float) -> float:
        """Return the lowest z allowed here for a vehicle that keeps its height along a course."""
        if self.terrain is None:
            return math.inf
        return float(self.profile(north, east, course, length)[1].min())

    def clear_circle(self, north: float, east: float, radius: float, down: float) -> float:
        """Return `down`, raised to the minimum height above the ground of a whole circle."""
        if self.terrain is None:
            return down
        angle = np.linspace(0.0, 2 * math.pi, 2 * SAMPLES)
        z = np.asarray(
            self.terrain.altitude_ned(north + radius * np.cos(angle), east + radius * np.sin(angle))
        )
        return min(down, float(z.min()) - self.min_height)
