"""Height map as flat arrays for the kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_terrain.height_map.height_map import HeightMap


class Ground(NamedTuple):
    """Heights and grid as `HeightMap` holds them, its bounds, and the least z of its smooth normals."""

    heights: NDArray[np.float32]
    """row by row, one-dimensional"""
    rows: int
    columns: int
    origin_x: float
    origin_y: float
    step_x: float
    step_y: float
    slack_u: float
    slack_v: float
    x_min: float
    x_max: float
    y_min: float
    y_max: float
    least_normal_z: float


def ground_of(terrain: HeightMap | None) -> Ground:
    """The ground of a terrain; None: level and endless, at z = 0."""
    if terrain is None:
        flat = np.zeros(4, np.float32)
        flat.flags.writeable = False
        return Ground(flat, 2, 2, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, -np.inf, np.inf, -np.inf, np.inf, 1.0)
    flat = terrain.heights.reshape(-1)
    return Ground(flat, terrain.rows, terrain.columns, *terrain.grid, *terrain.bounds, _least_normal_z(terrain))


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
    size, block = heights.shape[axis], 512
    return [heights.take(range(s, min(s + block + 1, size)), axis=axis) for s in range(0, size - 1, block)]
