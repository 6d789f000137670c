"""Upper bound of the ground's height near points of a path, for flight altitudes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import cv2
import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap


SAMPLES_PER_CELL = 10
"""points of a path for each cell of the map"""
RIM = 32
"""points of a disc's rim that are looked at"""
_FEW_CELLS = 3


class HighestGround:
    """The highest ground within `radius` (m) of points of one terrain."""

    def __init__(self, terrain: HeightMap, radius: float) -> None:
        self._terrain, self._radius = terrain, float(radius)
        z = terrain.heights
        self._steps = np.array([terrain.step_x, terrain.step_y])
        # between two points a tenth of a cell apart the ground is above the chord by (1/10)² / 8 of how far a cell's
        # corners are from a plane, at most
        twist = float(np.abs(z[1:, 1:] - z[:-1, 1:] - z[1:, :-1] + z[:-1, :-1]).max())
        self._spare = twist / 8 / SAMPLES_PER_CELL**2
        self._reach = np.ceil(self._radius / np.abs(self._steps) + 0.5).astype(int)
        if self._radius > 0:
            self._steepest = self._steepest_near(z)
            few = self._reach.max() <= _FEW_CELLS
            self._grown = None if few else self._highest_near(z)

    def highest(self, xy: Floats) -> Floats:
        """(n,) m, z up, at points (n, 2): at least the highest ground, and little more.

        Bilinear ground is highest in a disc at a sample of the map within it, or on its rim, of which RIM points are
        looked at; the others are so near to one of these that the steepest slope says how much higher they can be.
        """
        if self._radius == 0.0:
            return np.asarray(self._terrain.altitude(xy[:, 0], xy[:, 1]), float) + self._spare
        angle = np.arange(RIM) * (2.0 * math.pi / RIM)
        rim = xy[:, None, :] + self._radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        highest = np.asarray(self._terrain.altitude(rim[..., 0], rim[..., 1])).max(axis=1)
        at = (xy - (self._terrain.origin_x, self._terrain.origin_y)) / self._steps
        row, column = (np.clip(np.floor(at[:, k]).astype(int), 0, self._steepest.shape[k] - 1) for k in (0, 1))
        highest += self._steepest[row, column] * (self._radius * math.pi / RIM)
        return np.maximum(highest, self._highest_sample(at)) + self._spare

    def _steepest_near(self, z: NDArray[np.float32]) -> NDArray[np.float32]:
        """(rows - 1, columns - 1) slope (m/m) that no cell within reach of a cell exceeds."""
        along_x, along_y = np.abs(np.diff(z, axis=0)), np.abs(np.diff(z, axis=1))
        x = np.maximum(along_x[:, 1:], along_x[:, :-1]) / abs(self._terrain.step_x)
        y = np.maximum(along_y[1:], along_y[:-1]) / abs(self._terrain.step_y)
        wide = 2 * (self._reach + 1) + 1
        return np.asarray(cv2.dilate(np.hypot(x, y).astype(np.float32), np.ones(wide.tolist(), np.uint8)))

    def _highest_near(self, z: NDArray[np.float32]) -> NDArray[np.float32]:
        """(rows, columns) the highest sample within the radius and half a cell's diagonal of each sample."""
        x, y = (np.arange(-n, n + 1) * step for n, step in zip(self._reach.tolist(), self._steps.tolist(), strict=True))
        disc = np.hypot(x[:, None], y) <= self._radius + 0.5 * math.hypot(*self._steps.tolist())
        return np.asarray(cv2.dilate(z, disc.astype(np.uint8)))

    def _highest_sample(self, at: Floats) -> Floats:
        """(n,) the highest sample of the map within the radius of points (rows, columns), -inf where there is none.

        Of many cells a larger disc is taken, that about the nearest sample.
        """
        z, nearest = self._terrain.heights, np.rint(at).astype(int)
        if self._grown is not None:
            row, column = (np.clip(nearest[:, k], 0, z.shape[k] - 1) for k in (0, 1))
            return self._grown[row, column].astype(float)
        highest = np.full(len(at), -np.inf)
        for d_row in range(-self._reach[0], self._reach[0] + 1):
            for d_column in range(-self._reach[1], self._reach[1] + 1):
                cell = nearest + np.array([d_row, d_column])
                within = np.hypot(*((cell - at) * self._steps).T) <= self._radius
                within &= (cell >= 0).all(axis=1) & (cell < z.shape).all(axis=1)
                row, column = cell[within].T
                highest[within] = np.maximum(highest[within], z[row, column])
        return highest
