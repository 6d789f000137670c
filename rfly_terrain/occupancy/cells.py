# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Operations on cell matrices: inflation, shift, resampling, look-up. Row 0 is the top row."""

from __future__ import annotations

import math
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Bools, Floats
from rfly_terrain.height_map.grid import snap
from rfly_terrain.occupancy.cell_grid import SNAP, MatrixGrid, checked_size

_LARGEST_KERNEL = 10
"""Radius up to which a dilation by a disc is quicker than a distance transform, cells."""
_LARGEST_FLOAT32 = 1000.5
"""Distance up to which float32 holds the squares of distances, whole numbers, exactly, cells."""


def inflated(cells: Bools, radius: int) -> Bools:
    """Return which cells are occupied after the occupied ones grew by a radius.

    A cell is occupied if an occupied one is i rows and j columns away with i² + j² ≤ radius² +
    radius. That is a distance below radius + ½, since both sides are whole numbers and (radius +
    ½)² = radius² + radius + ¼.
    """
    if radius == 0 or not cells.any():
        return cells.copy()
    if radius <= _LARGEST_KERNEL:
        return cv2.dilate(cells.view(np.uint8), _disc(radius)).astype(bool)
    return near_cells(cells, radius + 0.5)


def _disc(radius: int) -> NDArray[np.uint8]:
    """Return the cells i rows and j columns away with i² + j² ≤ radius² + radius."""
    offset = np.arange(-radius, radius + 1)
    disc = offset[:, None] ** 2 + offset**2 <= radius * (radius + 1)
    return disc.astype(np.uint8)


def near_cells(cells: Bools, radius: float) -> Bools:
    """Return the cells whose centres are less than `radius` cells away from that of a set one.

    There is at least one set cell. Squares of distances are whole numbers: a radius² that is none
    leaves no doubt.
    """
    free = np.logical_not(cells)
    if radius <= _LARGEST_FLOAT32:
        distance = cv2.distanceTransform(free.view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    else:
        from scipy.ndimage import distance_transform_edt

        distance = distance_transform_edt(free)
    return distance < radius


def shifted(cells: NDArray[Any], shift: Floats, fill: Any) -> tuple[NDArray[Any], Bools]:
    """Return the window moved by (columns to the right, rows upwards).

    The results are the new matrix, and which of its cells were not seen before. These hold `fill`.
    """
    rows, columns = cells.shape
    right, up = (int(n) for n in np.clip(shift, (-columns, -rows), (columns, rows)))
    result = np.full(cells.shape, fill, cells.dtype)
    revealed = np.ones(cells.shape, bool)
    kept_rows = slice(max(up, 0), rows + min(up, 0))
    kept_columns = slice(max(-right, 0), columns + min(-right, 0))
    old_rows = slice(kept_rows.start - up, kept_rows.stop - up)
    old_columns = slice(kept_columns.start + right, kept_columns.stop + right)
    result[kept_rows, kept_columns] = cells[old_rows, old_columns]
    revealed[kept_rows, kept_columns] = False
    return result, revealed


def sampled(cells: NDArray[Any], grid: MatrixGrid, at: MatrixGrid) -> tuple[NDArray[Any], Bools]:
    """Return the cells of `grid` at the centres of another grid's cells.

    The results are the values, and which centres lie on `grid`.
    """
    x, y = at.centres(np.arange(at.rows)[::-1], np.arange(at.columns))
    column_uv = grid.cell_coordinates(np.column_stack((x, np.full(x.size, grid.y_corner))))
    row_uv = grid.cell_coordinates(np.column_stack((np.full(y.size, grid.x_corner), y)))
    in_columns = grid.inside(column_uv)
    in_rows = grid.inside(row_uv)
    values = np.zeros((at.rows, at.columns), cells.dtype)
    source_columns = grid.indices(column_uv[in_columns])[:, 1]
    source_rows = grid.indices(row_uv[in_rows])[:, 0]
    values[np.ix_(in_rows, in_columns)] = cells[np.ix_(source_rows, source_columns)]
    return values, in_rows[:, None] & in_columns


def resample(cells: NDArray[Any], factor: float) -> NDArray[Any]:
    """Return cells `factor` times as fine, from the bottom-left corner.

    A new cell has the largest value of those that it shares area with: it is occupied if one of
    them is.
    """
    rows, columns = (math.ceil(float(snap(size * factor, SNAP))) for size in cells.shape)
    checked_size(rows, columns)
    from_below = _largest_along_rows(cells[::-1], rows, factor)
    return np.ascontiguousarray(_largest_along_rows(from_below.T, columns, factor).T[::-1])


def _largest_along_rows(cells: NDArray[Any], rows: int, factor: float) -> NDArray[Any]:
    """Return the cells with `rows` rows; each row joins some of the source's rows.

    Row i of the result is the largest of the source's rows that share length with i/factor …
    (i + 1)/factor.
    """
    edges = np.arange(rows + 1) / factor
    first = np.floor(snap(edges[:-1], SNAP)).astype(np.int64)
    last = np.minimum(np.ceil(snap(edges[1:], SNAP)).astype(np.int64), len(cells))
    result = cells[np.minimum(first, len(cells) - 1)]
    for step in range(1, int((last - first).max())):
        result = np.maximum(result, cells[np.minimum(first + step, last - 1)])
    return result
