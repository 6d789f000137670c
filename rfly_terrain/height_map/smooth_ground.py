# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Height map as flat arrays for the kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rfly_terrain.height_map.ground import GroundGrid, level_ground
from rfly_terrain.height_map.height_map import HeightMap


def ground_of(terrain: HeightMap | None) -> GroundGrid:
    """Return the ground of a terrain, with the least z of its smooth normals.

    None is level and endless ground at z = 0.
    """
    if terrain is None:
        return level_ground()
    return terrain.ground._replace(least_normal_z=_least_normal_z(terrain))


def _least_normal_z(terrain: HeightMap) -> float:
    """Return a lower bound of z of the smooth unit normals.

    A smooth gradient is a mean of gradients at the vertices, so none exceeds the largest of them.
    """
    steepest = 0.0
    for axis, step in ((0, terrain.step_x), (1, terrain.step_y)):
        # one-sided differences bound central ones, their mean
        largest = 0.0
        for block in _blocks(terrain.heights, axis):
            differences = np.diff(block.astype(np.float64), axis=axis)
            largest = max(largest, float(np.abs(differences).max(initial=0.0)))
        steepest += (largest / step) ** 2
    return float(0.999999 / np.sqrt(1.0 + steepest))


def _blocks(heights: NDArray[np.float32], axis: int) -> list[NDArray[np.float32]]:
    """Return pieces of 512 rows or columns that overlap by one: their copies stay small."""
    size = heights.shape[axis]
    pieces = []
    for start in range(0, size - 1, 512):
        stop = min(start + 512 + 1, size)
        pieces.append(heights.take(range(start, stop), axis=axis))
    return pieces
