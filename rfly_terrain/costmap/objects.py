"""Rasterisation of boxes on the ground to cells, all boxes at once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats, Ints
from rfly_common.config.checks import finite_array
from rfly_common.frames import quat_rotate
from rfly_terrain.height_map.grid import Grid

_CELLS_AT_ONCE = 2_000_000
_TOLERANCE = 1e-6
"""cells: by which outlines without an area (walls, or 0 0 0: a size that is not known) are wider, and others smaller"""


@dataclass(frozen=True, eq=False)
class ObjectBoxes:
    """n boxes in ENU metres, in any attitude. Raises ValueError for shapes that differ and what is not finite."""

    centre: Floats
    """(n, 3) m: x east, y north, z up"""
    half_extent: Floats
    """(n, 3) m: half the box along its own axes; 0 0 0: the size is not known, and the object is a point"""
    orientation: Floats
    """(n, 4) unit quaternions x y z w: the box's axes into ENU"""

    def __init__(self, centre: ArrayLike, half_extent: ArrayLike, orientation: ArrayLike | None = None) -> None:
        """`orientation` None: all stand along the axes."""
        places = _array("centre", centre, 3)
        turned = np.tile((0.0, 0.0, 0.0, 1.0), (len(places), 1)) if orientation is None else orientation
        object.__setattr__(self, "centre", places)
        object.__setattr__(self, "half_extent", _array("half_extent", half_extent, 3))
        object.__setattr__(self, "orientation", _array("orientation", turned, 4))
        for name in ("half_extent", "orientation"):
            if len(getattr(self, name)) != len(places):
                raise ValueError(f"{name}: {len(getattr(self, name))} for {len(places)} centres")
        if (self.half_extent < 0).any():
            raise ValueError(f"half_extent: {self.half_extent.min():g}, expected at least 0")

    def __len__(self) -> int:
        return len(self.centre)


def _array(name: str, values: ArrayLike, width: int) -> Floats:
    array = np.array(values, np.float64).reshape(-1, width) if np.size(values) == 0 else np.array(values, np.float64)
    if array.ndim != 2 or array.shape[1] != width:
        raise ValueError(f"{name}: expected the shape (n, {width}), got {array.shape}")
    finite_array(name, array, error=ValueError)
    array.flags.writeable = False
    return array


def cells_under(objects: ObjectBoxes, grid: Grid) -> tuple[Ints, Ints]:
    """(row, column) of the cells of which some part lies under a box, seen from above; a cell may come twice.

    The outline of a box from above, whatever its attitude, is the sum of three segments, its half axes seen from above;
    a cell is the sum of two. They overlap if, along the normal of each of the five, their middles are nearer to each
    other than the five reach together.
    """
    middle = np.stack(grid.coordinates(*objects.centre.T[:2]), axis=-1) - 0.5  # cells from the first centre
    axes = quat_rotate(objects.orientation[:, None], np.eye(3) * objects.half_extent[:, None])[..., :2]
    axes /= grid.step_x, grid.step_y
    cell = np.broadcast_to(((0.5, 0.0), (0.0, 0.5)), (len(axes), 2, 2))
    sides = np.concatenate((axes, cell), axis=1)  # (n, 5, 2)
    length = np.linalg.norm(sides, axis=2)
    normals = np.stack((-sides[..., 1], sides[..., 0]), axis=-1) / np.maximum(length, _TOLERANCE)[..., None]
    normals[length < _TOLERANCE] = (1.0, 0.0)  # what has no length has no normal: one of the cell's once more
    reach = np.abs(np.einsum("nij,nkj->nik", normals, sides)).sum(axis=2)
    following = axes[:, (1, 2, 0)]
    across = axes[..., 0] * following[..., 1] - axes[..., 1] * following[..., 0]
    has_area = np.abs(across).sum(axis=1) > _TOLERANCE
    reach += np.where(has_area, -_TOLERANCE, _TOLERANCE)[:, None]
    half = np.abs(sides).sum(axis=1) + _TOLERANCE  # (n, 2) of the outline's frame along x and y
    size = np.array((grid.columns, grid.rows))
    first = np.clip(np.ceil(middle - half), 0, size).astype(np.int64)
    last = np.clip(np.floor(middle + half), -1, size - 1).astype(np.int64)
    counts = np.maximum(last - first + 1, 0)
    found_rows, found_columns = [], []
    for which, position in _in_portions(counts.prod(axis=1)):
        width = counts[which, 0]
        column = first[which, 0] + position % width
        row = first[which, 1] + position // width
        away = np.stack((column, row), axis=-1) - middle[which]
        distance = np.abs(np.einsum("mij,mj->mi", normals[which], away))
        hit = (distance < reach[which]).all(axis=1)
        found_rows.append(row[hit])
        found_columns.append(column[hit])
    if not found_rows:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return np.concatenate(found_rows), np.concatenate(found_columns)


def _in_portions(counts: Ints) -> Iterator[tuple[Ints, Ints]]:
    """(which, position): each number n repeated counts[n] times with 0 … counts[n] − 1, so many at once."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    for portion in range(math.ceil(total / _CELLS_AT_ONCE)):
        place = np.arange(portion * _CELLS_AT_ONCE, min((portion + 1) * _CELLS_AT_ONCE, total))
        which = np.searchsorted(ends, place, side="right")
        yield which, place - (ends - counts)[which]
