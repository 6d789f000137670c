# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Height map as plain numbers: the record that all kernels take."""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class GroundGrid(NamedTuple):
    """Heights on a grid, bilinear between the samples, with extended edges.

    `heights[i·columns + j]` lies at

        x = origin_x + i·step_x,  y = origin_y + j·step_y.

    u = (x - origin_x) / step_x and v = (y - origin_y) / step_y are row and column as real numbers.
    """

    heights: NDArray[np.float32]
    """Heights, (rows·columns,), m, z up, row by row; read-only."""
    rows: int
    columns: int
    origin_x: float
    origin_y: float
    step_x: float
    """Distance from one row to the next, m; may be negative, never 0."""
    step_y: float
    """Distance from one column to the next, m; may be negative, never 0."""
    slack_u: float
    """Rounding error of u, by which a point on the edge may seem to lie outside."""
    slack_v: float
    """Rounding error of v."""
    x_min: float
    x_max: float
    y_min: float
    y_max: float
    least_normal_z: float = 0.0
    """Lower bound of z of its smooth unit normals; 0 where it is not known."""


def ground_of_grid(
    heights: NDArray[np.float32],
    origin_x: float,
    origin_y: float,
    step_x: float,
    step_y: float,
    *,
    shape: tuple[int, int] | None = None,
) -> GroundGrid:
    """Return the record of contiguous heights (rows, columns).

    `shape`: rows and columns of a grid whose heights are elsewhere, for kernels that need none.
    """
    rows, columns = shape or heights.shape
    x = (origin_x, origin_x + (rows - 1) * step_x)
    y = (origin_y, origin_y + (columns - 1) * step_y)
    slack_u = _slack(origin_x, step_x, rows)
    slack_v = _slack(origin_y, step_y, columns)
    return GroundGrid(
        heights=heights.reshape(-1),
        rows=rows,
        columns=columns,
        origin_x=origin_x,
        origin_y=origin_y,
        step_x=step_x,
        step_y=step_y,
        slack_u=slack_u,
        slack_v=slack_v,
        x_min=min(x),
        x_max=max(x),
        y_min=min(y),
        y_max=max(y),
    )


def level_ground() -> GroundGrid:
    """Return endless ground at z = 0."""
    heights = np.zeros((2, 2), np.float32)
    heights.flags.writeable = False
    return ground_of_grid(heights, 0.0, 0.0, 1.0, 1.0)._replace(
        x_min=-math.inf, x_max=math.inf, y_min=-math.inf, y_max=math.inf, least_normal_z=1.0
    )


def _slack(origin: float, step: float, count: int) -> float:
    """Return how far, in cells, rounding can move a point that lies on the edge.

    Some units in the last place of the largest coordinate.
    """
    largest = max(abs(origin), abs(origin + (count - 1) * step))
    return 4 * sys.float_info.epsilon * (largest / abs(step) + count)
