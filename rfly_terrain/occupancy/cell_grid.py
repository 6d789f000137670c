# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Cell geometry of an occupancy map: cell coordinates, edge rule, blocks, argument checks.

Cell coordinates u (to the right) and v (upwards) count cells from the bottom-left corner of the
grid, as those of `Grid`. Row 0 of a matrix is the top row. All rules use snapped coordinates:
within SNAP of a whole number a coordinate is that number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.config.checks import check_unmasked
from rfly_common.files import MAX_CELLS
from rfly_terrain.height_map.grid import Grid, snap

SNAP = 1e-9
"""Distance from a whole number within which a cell coordinate is that number, cells."""

FRAMES = ("world", "local", "grid")
_LARGEST_INDEX = 2.0**62


def points(values: ArrayLike, what: str) -> Floats:
    """Return a pair or n pairs as (n, 2) float64.

    Raises ValueError for other shapes and for numbers that are not finite.
    """
    array = numbers(values, what)
    if array.shape == (2,):
        array = array[None]
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"{what}: expected n-by-2 or one pair, got the shape {array.shape}")
    return array


def pair(values: ArrayLike, what: str) -> tuple[float, float]:
    """Return one pair of finite numbers, also of a (1, 2) array."""
    array = numbers(values, what)
    if array.shape not in ((2,), (1, 2)):
        raise ValueError(f"{what}: expected one pair of numbers, got the shape {array.shape}")
    first, second = array.reshape(2).tolist()
    return first, second


def numbers(values: ArrayLike, what: str) -> Floats:
    """Return finite real numbers as float64 of any shape."""
    array = real_numbers(values, what)
    if not np.isfinite(array).all():
        where = np.unravel_index(int(np.argmin(np.isfinite(array))), array.shape)
        place = f" at {tuple(map(int, where))}" if where else ""
        raise ValueError(f"{what}: {array[where]}{place}, expected finite numbers")
    return array


def real_numbers(values: ArrayLike, what: str) -> Floats:
    """Return real numbers, also NaN and infinity, as float64 of any shape."""
    check_unmasked(what, values)
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(
            f"{what}: expected an array of numbers, got rows of different lengths"
        ) from None
    if array.size == 0:
        array = array.astype(np.float64)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{what}: expected real numbers, got {array.dtype}")
    return array.astype(np.float64)


def not_zero(values: ArrayLike, what: str) -> Bools:
    """Return a new array of bool: True for finite real numbers other than 0."""
    if isinstance(values, np.ndarray) and values.dtype == bool:
        return np.array(values, order="C")
    result: Bools = numbers(values, what) != 0
    return np.ascontiguousarray(result)


def number(
    value: Any, what: str, *, above: float | None = None, at_least: float | None = None
) -> float:
    """Return one finite number within its limits."""
    array = numbers(value, what)
    if array.size != 1:
        raise ValueError(f"{what}: expected one number, got the shape {array.shape}")
    result = float(array.reshape(()))
    if above is not None and not result > above:
        raise ValueError(f"{what}: {result:g}, expected more than {above:g}")
    if at_least is not None and not result >= at_least:
        raise ValueError(f"{what}: {result:g}, expected at least {at_least:g}")
    return result


def binary(value: Any, what: str) -> bool:
    """Return 0, 1, False or True as bool. Raise ValueError for anything else."""
    if np.ndim(value) != 0 or value not in (0, 1):
        raise ValueError(f"{what}: {value!r}, expected 0 or 1")
    return bool(value)


def whole(values: Floats, what: str) -> Ints:
    """Return rows and columns as int64."""
    if not (values == np.rint(values)).all() or np.abs(values).max(initial=0.0) >= _LARGEST_INDEX:
        raise ValueError(f"{what}: expected whole rows and columns, got {values.tolist()[:3]}")
    return values.astype(np.int64)


def check_frame(frame: str, allowed: tuple[str, ...] = FRAMES) -> None:
    if frame not in allowed:
        raise ValueError(f"frame: {frame!r}, expected {' or '.join(map(repr, allowed))}")


def checked_size(rows: Any, columns: Any) -> tuple[int, int]:
    """Return a grid size that fits into memory."""
    for name, count in (("rows", rows), ("columns", columns)):
        if not count >= 1 or not math.isfinite(count) or count != int(count):
            raise ValueError(f"{name}: {count}, expected a whole number of at least 1")
    if rows * columns > MAX_CELLS:
        raise ValueError(
            f"{rows:.0f} rows x {columns:.0f} columns, expected at most {MAX_CELLS:,} cells"
        )
    return int(rows), int(columns)


def cells_for(length: float, resolution: float) -> float:
    """Return the number of whole cells that cover a length in metres."""
    return float(np.ceil(snap(length * resolution, SNAP)))


def resolution_of(cell_size: Any, what: str) -> float:
    """Return the cells per metre of a cell's side in metres.

    The side may have been stored as float32: 0.05000000075 m is 20.
    """
    per_metre = 1.0 / number(cell_size, what, above=0.0)
    nearest = round(per_metre)
    return float(nearest) if nearest and abs(per_metre - nearest) <= 1e-5 * nearest else per_metre


@dataclass(frozen=True)
class MatrixGrid(Grid):
    """Grid from the bottom-left corner upwards, with a matrix of cells whose row 0 is on top."""

    def cell_coordinates(self, xy: Floats) -> Floats:
        """Convert (n, 2) metres to (n, 2) snapped u, v."""
        with np.errstate(over="ignore"):
            uv = np.column_stack(self.coordinates(*xy.T))
        if not np.isfinite(uv).all():
            raise ValueError("a point is too far away to be counted in cells")
        return snap(uv, SNAP)

    def metres(self, uv: Floats) -> Floats:
        """Convert (n, 2) cell coordinates to (n, 2) metres."""
        return np.column_stack(self.positions(*uv.T))

    def inside(self, uv: Floats) -> Bools:
        """Return, (n,), whether snapped cell coordinates lie on the grid, all borders included."""
        u, v = uv.T
        return (u >= 0) & (u <= self.columns) & (v >= 0) & (v <= self.rows)

    def indices(self, uv: Floats) -> Ints:
        """Return (n, 2) row, column of snapped cell coordinates.

        An edge belongs to the cell on its left, or below; the left and bottom edges of the grid are
        the grid's own. Outside the grid the indices are outside the array.
        """
        if np.abs(uv).max(initial=0.0) >= _LARGEST_INDEX:
            raise ValueError("a point is too far away for its cell to have a number")
        right_up = np.ceil(uv).astype(np.int64) - 1
        right_up[uv == 0] = 0
        return np.column_stack((self.rows - 1 - right_up[:, 1], right_up[:, 0]))

    def centres_of(self, ij: Floats | Ints) -> Floats:
        """Convert (n, 2) row, column of the matrix to (n, 2) metres, also outside the grid."""
        i, j = ij.T
        return np.column_stack(self.centres(self.rows - 1 - i, j))


@dataclass(frozen=True)
class Block:
    """Rectangle of cells that may reach over the border of the grid."""

    top: int
    left: int
    rows: int
    columns: int

    def overlap(self, grid: Grid) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
        """Return the cells on the grid: slices of the grid's matrix, and of the block's."""
        first_row = max(self.top, 0)
        last_row = min(self.top + self.rows, grid.rows)
        first_column = max(self.left, 0)
        last_column = min(self.left + self.columns, grid.columns)
        last_row = max(last_row, first_row)
        last_column = max(last_column, first_column)
        in_grid = slice(first_row, last_row), slice(first_column, last_column)
        in_block = (
            slice(first_row - self.top, last_row - self.top),
            slice(first_column - self.left, last_column - self.left),
        )
        return in_grid, in_block


def block_at(grid: MatrixGrid, corner: ArrayLike, rows: int, columns: int, in_cells: bool) -> Block:
    """Return the block with its bottom-left corner or its top-left cell at a place.

    The corner is in metres, the cell is (row, column). Unlike a point, a corner on a grid line
    starts to the right of it and above.
    """
    place = points([pair(corner, "corner")], "corner")
    if in_cells:
        top, left = whole(place, "corner")[0].tolist()
        return Block(top, left, rows, columns)
    u, v = whole(np.floor(grid.cell_coordinates(place)), "corner")[0].tolist()
    return Block(grid.rows - v - rows, u, rows, columns)


def block_size(grid: Grid, size: ArrayLike, in_cells: bool) -> tuple[int, int]:
    """Return (rows, columns) of a block of `size`.

    `size` is (rows, columns), or (x length, y length) in metres.
    """
    first, second = pair(size, "size")
    if not (first > 0 and second > 0):
        raise ValueError(f"size: ({first:g}, {second:g}), expected two numbers above 0")
    if in_cells:
        return checked_size(first, second)
    return checked_size(cells_for(second, 1.0 / grid.step_y), cells_for(first, 1.0 / grid.step_x))
