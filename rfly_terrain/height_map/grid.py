# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Regular grid of cells: places of cells, cells of positions, and one rule for those on an edge."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

SNAP = 1e-6
"""Distance from a whole number within which a cell coordinate is that number, cells."""


def snap(cells: ArrayLike, within: float = SNAP) -> Any:
    """Return lengths or coordinates in cells, those near a whole number rounded to it.

    Infinite ones stay infinite.
    """
    values = np.asarray(cells, np.float64)
    whole = np.rint(values)
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(values - whole) <= within, whole, values)


@dataclass(frozen=True)
class Grid:
    """Grid of rows x columns cells along x and y, as an unrotated GeoTransform of GDAL.

    Coordinates u, v count cells from the corner: cell (row, column) reaches from u = column to
    column + 1 and from v = row to row + 1, its centre has u = column + ½, v = row + ½. Row 0 is the
    southernmost where `step_y` is above 0 (nav_msgs/OccupancyGrid), the northernmost where it is
    below 0 (images).
    """

    rows: int
    columns: int
    step_x: float
    """Distance from column to column, m; negative: westwards."""
    step_y: float
    """Distance from row to row, m; negative: southwards."""
    x_corner: float
    """x of the outer corner of cell 0, 0, where u = v = 0, m."""
    y_corner: float
    """y of the same corner, m."""

    def coordinates(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Return (u, v), cells, not rounded, of positions in metres."""
        return (x - self.x_corner) / self.step_x, (y - self.y_corner) / self.step_y

    def positions(self, u: Any, v: Any) -> tuple[Any, Any]:
        """Return (x, y) in metres of coordinates in cells, also outside the grid."""
        return self.x_corner + u * self.step_x, self.y_corner + v * self.step_y

    def centres(self, rows: Any, columns: Any) -> tuple[Any, Any]:
        """Return (x of columns, y of rows), m, of the cells' centres, also outside the grid."""
        return self.positions(columns + 0.5, rows + 0.5)

    def cells(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Return (rows, columns), int64, of the cells that hold positions.

        A position on an edge belongs to the higher index. Positions outside the grid give numbers
        outside the array, see `holds`.
        """
        u, v = self.coordinates(np.asarray(x), np.asarray(y))
        return np.floor(snap(v)).astype(np.int64), np.floor(snap(u)).astype(np.int64)

    def holds(self, rows: Any, columns: Any) -> Any:
        """Return whether rows and columns are those of a cell."""
        return (rows >= 0) & (rows < self.rows) & (columns >= 0) & (columns < self.columns)

    def finer(self, factor: int) -> Grid:
        """Return the grid whose cells are `factor` times as small."""
        return replace(
            self,
            rows=self.rows * factor,
            columns=self.columns * factor,
            step_x=self.step_x / factor,
            step_y=self.step_y / factor,
        )
