# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Organised point cloud of a height map, filled by a kernel where kernels are loaded.

A cloud alone does not load them: that takes longer than 10 million points in NumPy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rfly_common.kernels.parallel import in_chunks

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.height_map.terrain import Terrain

Region = tuple[float, float, float, float]
"""Rectangle x_min, x_max, y_min, y_max, ENU, m."""

_KERNELS = "rfly_terrain.height_map.altitude_kernels"
"""Module whose kernel is used once a process has imported it."""
_POINTS_PER_PIECE = 1_048_576
"""Points of a third of a millisecond; threads for less cost more than they save."""


def point_cloud(
    height_map: HeightMap, stride: int, region: Region | None, *, ned: bool = False
) -> NDArray[np.float32]:
    """Return (rows', columns', 3) float32 points, ENU or NED; see `Terrain.point_cloud`."""
    if isinstance(stride, bool) or not isinstance(stride, (int, np.integer)) or stride < 1:
        raise ValueError(f"stride is {stride}, expected a whole number of at least 1")

    # the samples, and their coordinates
    stride = min(int(stride), max(height_map.rows, height_map.columns))
    rows, columns = selected(height_map, region)
    first_row = rows.start
    first_column = columns.start
    row, column = (np.arange(part.start, part.stop, stride) for part in (rows, columns))
    x_of_row = (height_map.origin_x + row * height_map.step_x).astype(np.float32)
    y_of_column = (height_map.origin_y + column * height_map.step_y).astype(np.float32)

    points = np.empty((row.size, column.size, 3), np.float32)
    fill: Callable[..., None] = _fill
    if _KERNELS in sys.modules:
        from rfly_terrain.height_map import altitude_kernels as kernels

        fill = kernels.cloud

    def work(start: int, stop: int) -> None:
        first = first_row + start * stride
        part = slice(start, stop)
        fill(
            height_map.heights,
            x_of_row[part],
            y_of_column,
            first,
            first_column,
            stride,
            ned,
            points[part],
        )

    in_chunks(work, row.size, max(1, _POINTS_PER_PIECE // column.size))
    return points


def _fill(
    heights: NDArray[np.float32],
    x_of_row: NDArray[np.float32],
    y_of_column: NDArray[np.float32],
    first_row: int,
    first_column: int,
    stride: int,
    ned: bool,
    points: NDArray[np.float32],
) -> None:
    """Write points as `kernels.cloud` does, bit by bit."""
    z = heights[first_row::stride, first_column::stride][: len(x_of_row), : len(y_of_column)]
    points[..., int(ned)] = x_of_row[:, None]
    points[..., 1 - int(ned)] = y_of_column
    if ned:
        np.subtract(np.float32(0.0), z, out=points[..., 2])  # no negative zeros
    else:
        points[..., 2] = z


def selected(terrain: Terrain, region: Region | None) -> tuple[slice, slice]:
    """Return the rows and columns whose samples lie in the region, borders included.

    The region is x_min, x_max, y_min, y_max; ENU, m. Raises ValueError for a region that is
    malformed or holds no sample.
    """
    if region is None:
        return slice(0, terrain.rows), slice(0, terrain.columns)

    limits = np.asarray(region, dtype=float)
    if limits.shape != (4,) or not np.isfinite(limits).all():
        raise ValueError(
            f"region is {region}, expected x_min, x_max, y_min, y_max, "
            "four finite numbers of metres"
        )
    x_min, x_max, y_min, y_max = limits.tolist()
    if x_min > x_max or y_min > y_max:
        raise ValueError(f"region is {region}, expected x_min <= x_max and y_min <= y_max")

    rows = _between(
        x_min,
        x_max,
        terrain.origin_x,
        terrain.step_x,
        terrain.ground.slack_u,
        terrain.rows,
    )
    columns = _between(
        y_min,
        y_max,
        terrain.origin_y,
        terrain.step_y,
        terrain.ground.slack_v,
        terrain.columns,
    )

    if rows.start >= rows.stop or columns.start >= columns.stop:
        raise ValueError(
            f"region {region} holds no sample of the map, "
            f"whose bounds are {terrain.bounds} with steps of "
            f"{abs(terrain.step_x):g} and {abs(terrain.step_y):g} m"
        )
    return rows, columns


def _between(
    low: float, high: float, origin: float, step: float, slack: float, count: int
) -> slice:
    """Return the samples of 0 … count - 1 that lie between two coordinates."""
    first, last = sorted(((low - origin) / step, (high - origin) / step))
    # clipped before they become integers: a region may reach to 1e300
    start = np.ceil(np.clip(first - slack, 0, count))
    stop = np.floor(np.clip(last + slack, -1, count - 1)) + 1
    return slice(int(start), int(stop))
