"""Height map as flat arrays for the kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rfly_terrain.height_map.ground import GroundGrid, level_ground
from rfly_terrain.height_map.height_map import HeightMap


def ground_of(terrain: HeightMap | None) -> GroundGrid:
    """The ground of a terrain with the least z of its smooth normals; None: level and endless, at z
    = 0.
    """
    return (
        level_ground()
        if terrain is None
        else terrain.ground._replace(least_normal_z=_least_normal_z(terrain))
    )


def _least_normal_z(terrain: HeightMap) -> float:
    """A lower bound: no smooth gradient exceeds the largest at the vertices, of which it is a mean."""
    steepest = 0.0
    for axis, step in ((0, terrain.step_x), (1, terrain.step_y)):
        # one-sided differences bound central ones, their mean
        largest = max(
            (
                float(np.abs(np.diff(block.astype(np.float64), axis=axis)).max(initial=0.0))
                for block in _blocks(terrain.heights, axis)
            ),
            default=0.0,
        )
        steepest += (largest / step) ** 2
    return float(0.999999 / np.sqrt(1.0 + steepest))


def _blocks(heights: NDArray[np.float32], axis: int) -> list[NDArray[np.float32]]:
    """Pieces of some hundred rows or columns that overlap by one, so that copies stay small."""
    size = heights.shape[axis]
    block = 512
    return [
        heights.take(range(s, min(s + block + 1, size)), axis=axis)
        for s in range(0, size - 1, block)
    ]
