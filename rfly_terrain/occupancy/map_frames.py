# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Frames of an occupancy map, world, local and grid, with its size and default value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats, Ints
from rfly_terrain.occupancy.cell_grid import (
    MatrixGrid,
    binary,
    check_frame,
    number,
    pair,
    points,
    whole,
)


class MapFrames:
    """Grid of square cells in three frames.

    world: x right, y up, metres, fixed. local: the same axes, moved: local = world −
    `local_origin_in_world`. grid: (row, column), row 0 on top, column 0 on the left, both from 0;
    from 1, as in MATLAB, if `one_based` is set.

    The bottom-left corner of the grid lies at `grid_origin_in_local`. The names in camelCase are
    those of MATLAB's `binaryOccupancyMap`, for scripts that were written for it.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        resolution: Any,
        grid_origin_in_local: ArrayLike,
        local_origin_in_world: ArrayLike,
        default_value: Any,
        layer_name: str = "binaryLayer",
        one_based: Any = False,
    ) -> None:
        self._rows, self._columns = shape
        self._resolution = number(resolution, "resolution", above=0.0)
        self._grid_origin = pair(grid_origin_in_local, "grid_origin_in_local")
        self._local_origin = pair(local_origin_in_world, "local_origin_in_world")
        self._default_value = binary(default_value, "default_value")
        self._layer_name = str(layer_name)
        self._first_index = int(binary(one_based, "one_based"))

    @property
    def resolution(self) -> float:
        """Cells per metre."""
        return self._resolution

    @property
    def grid_size(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._rows, self._columns

    @property
    def default_value(self) -> bool:
        """Value of places outside the map, and of places that `move` reveals."""
        return self._default_value

    @default_value.setter
    def default_value(self, value: Any) -> None:
        self._default_value = binary(value, "default_value")

    @property
    def grid_origin_in_local(self) -> Floats:
        """Bottom-left corner, (2,), m, in the local frame.

        Assigning relabels the grid: no cell changes.
        """
        return np.array(self._grid_origin)

    @grid_origin_in_local.setter
    def grid_origin_in_local(self, value: ArrayLike) -> None:
        self._grid_origin = pair(value, "grid_origin_in_local")

    @property
    def local_origin_in_world(self) -> Floats:
        """Origin of the local frame, (2,), m; assigning relabels the grid, `move` shifts cells."""
        return np.array(self._local_origin)

    @local_origin_in_world.setter
    def local_origin_in_world(self, value: ArrayLike) -> None:
        self._local_origin = pair(value, "local_origin_in_world")

    @property
    def grid_location_in_world(self) -> Floats:
        """Bottom-left corner, (2,), m, in the world frame.

        Assigning moves the local origin with it.
        """
        return self.local_origin_in_world + self.grid_origin_in_local

    @grid_location_in_world.setter
    def grid_location_in_world(self, value: ArrayLike) -> None:
        x, y = pair(value, "grid_location_in_world")
        self._local_origin = x - self._grid_origin[0], y - self._grid_origin[1]

    @property
    def x_local_limits(self) -> Floats:
        """Left and right border in the local frame, (2,), m."""
        return self._limits(self._grid_origin[0], self._columns)

    @property
    def y_local_limits(self) -> Floats:
        """Lower and upper border in the local frame, (2,), m."""
        return self._limits(self._grid_origin[1], self._rows)

    @property
    def x_world_limits(self) -> Floats:
        """Left and right border in the world frame, (2,), m."""
        return self._limits(float(self.grid_location_in_world[0]), self._columns)

    @property
    def y_world_limits(self) -> Floats:
        """Lower and upper border in the world frame, (2,), m."""
        return self._limits(float(self.grid_location_in_world[1]), self._rows)

    def _limits(self, low: float, cells: int) -> Floats:
        return np.array([low, low + cells / self._resolution])

    @property
    def data_type(self) -> str:
        """Type of a cell: "logical", free or occupied."""
        return "logical"

    @property
    def layer_name(self) -> str:
        """Name of the only layer, "binaryLayer" unless the constructor got another."""
        return self._layer_name

    @property
    def one_based(self) -> bool:
        """True if rows and columns count from 1, as in MATLAB, wherever they are given or returned.

        NumPy's own indices, such as those of `occupancy_matrix`, count from 0 all the same.
        """
        return self._first_index == 1

    @one_based.setter
    def one_based(self, value: Any) -> None:
        self._first_index = int(binary(value, "one_based"))

    def _from_zero(self, ij: ArrayLike, what: str) -> Ints:
        """Return rows and columns (n, 2) of the caller as they count in the matrix."""
        return whole(points(ij, what), what) - self._first_index

    def _grid(self, frame: str) -> MatrixGrid:
        """Return the grid in metres of the world or of the local frame."""
        x, y = self._grid_origin if frame == "local" else self.grid_location_in_world.tolist()
        side = 1.0 / self._resolution
        return MatrixGrid(self._rows, self._columns, side, side, x, y)

    def world2grid(self, xy: ArrayLike) -> Ints:
        """Convert (n, 2) metres to (n, 2) row, column.

        A point on an edge belongs to the cell on its left, or below.

        A point outside the map gets an index outside the array.
        """
        grid = self._grid("world")
        return grid.indices(_coordinates(grid, xy, "xy")) + self._first_index

    def local2grid(self, xy: ArrayLike) -> Ints:
        """Convert (n, 2) metres in the local frame to (n, 2) row, column, as `world2grid`."""
        grid = self._grid("local")
        return grid.indices(_coordinates(grid, xy, "xy")) + self._first_index

    def grid2world(self, ij: ArrayLike) -> Floats:
        """Convert (n, 2) row, column to (n, 2) centres of the cells, m.

        Indices outside the map are accepted too.
        """
        return self._grid("world").centres_of(self._from_zero(ij, "ij"))

    def grid2local(self, ij: ArrayLike) -> Floats:
        """Convert (n, 2) row, column to (n, 2) centres of the cells in the local frame, m."""
        return self._grid("local").centres_of(self._from_zero(ij, "ij"))

    def world2local(self, xy: ArrayLike) -> Floats:
        """Convert points (n, 2), m, of the world to the local frame."""
        return points(xy, "xy") - self._local_origin

    def local2world(self, xy: ArrayLike) -> Floats:
        """Convert points (n, 2), m, of the local frame to the world."""
        return points(xy, "xy") + self._local_origin

    def _corner(self, corner: ArrayLike, frame: str) -> ArrayLike:
        """Return the corner of a block, in the frame "grid" as rows and columns count from 0."""
        return self._from_zero(corner, "corner") if frame == "grid" else corner

    def _find(self, places: ArrayLike, frame: str) -> tuple[Ints, Any]:
        """Return ((k, 2) row, column of the points on the map, (n,) bool which are on it).

        Rows and columns count from 0, whatever `one_based` says.
        """
        check_frame(frame)
        if frame == "grid":
            ij = self._from_zero(places, "points")
            inside = self._grid("world").holds(*ij.T)
            return ij[inside], inside
        grid = self._grid(frame)
        uv = _coordinates(grid, places, "points")
        inside = grid.inside(uv)
        return grid.indices(uv[inside]), inside

    Resolution = resolution
    GridSize = grid_size
    DefaultValue = default_value
    GridOriginInLocal = grid_origin_in_local
    LocalOriginInWorld = local_origin_in_world
    GridLocationInWorld = grid_location_in_world
    XLocalLimits = x_local_limits
    YLocalLimits = y_local_limits
    XWorldLimits = x_world_limits
    YWorldLimits = y_world_limits
    DataType = data_type
    LayerName = layer_name


def _coordinates(grid: MatrixGrid, xy: ArrayLike, what: str) -> Floats:
    """Return (n, 2) cell coordinates of points.

    Those of single precision that are whole numbers but for its rounding are whole: 1.2 m of cells
    of 0.1 m is on the edge of the twelfth in either precision.
    """
    places = points(xy, what)
    uv = grid.cell_coordinates(places)
    if not (isinstance(xy, np.ndarray) and xy.dtype == np.float32):
        return uv
    nearest = np.rint(uv)
    rounding = np.finfo(np.float32).eps * np.abs(places) / grid.step_x
    return np.where(np.abs(uv - nearest) <= rounding, nearest, uv)
