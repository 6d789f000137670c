"""Regular grid of cells: where cells lie, which cell a position is in, and one rule for positions
on an edge.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

SNAP = 1e-6
"""cells: how far from a whole number a cell coordinate still is that number"""


def snap(cells: ArrayLike, within: float = SNAP) -> Any:
    """Lengths or coordinates in cells; those that near to a whole number are that number. Infinite
    ones stay.
    """
    values = np.asarray(cells, np.float64)
    whole = np.rint(values)
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(values - whole) <= within, whole, values)


@dataclass(frozen=True)
class Grid:
    """rows x columns cells whose sides lie along x and y, as a GeoTransform of GDAL that is not
    turned.

    Coordinates u, v count cells from the corner: cell (row, column) reaches from u = column to
    column + 1 and from v = row to row + 1, its centre has u = column + ½, v = row + ½. Row 0 is the
    southernmost where `step_y` is above 0 (nav_msgs/OccupancyGrid), the northernmost where it is
    below 0 (images).
    """

    rows: int
    columns: int
    step_x: float
    """m from column to column"""
    step_y: float
    """m from row to row"""
    x_corner: float
    """m: outer corner of cell 0, 0, where u = v = 0"""
    y_corner: float

    def coordinates(self, x: Any, y: Any) -> tuple[Any, Any]:
        """(u, v) of positions in metres, cells, not rounded."""
        return (x - self.x_corner) / self.step_x, (y - self.y_corner) / self.step_y

    def positions(self, u: Any, v: Any) -> tuple[Any, Any]:
        """(x, y) in metres of coordinates in cells, also outside the grid."""
        return self.x_corner + u * self.step_x, self.y_corner + v * self.step_y

    def centres(self, rows: Any, columns: Any) -> tuple[Any, Any]:
        """(x of columns, y of rows) in metres: the cells' centres, also outside the grid."""
        return self.positions(columns + 0.5, rows + 0.5)

    def cells(self, x: Any, y: Any) -> tuple[Any, Any]:
        """(rows, columns), int64, of the cells that hold positions; a position on an edge belongs
        to the higher index.

        Outside the grid they are outside the array, see `holds`.
        """
        u, v = self.coordinates(np.asarray(x), np.asarray(y))
        return np.floor(snap(v)).astype(np.int64), np.floor(snap(u)).astype(np.int64)

    def holds(self, rows: Any, columns: Any) -> Any:
        """Whether rows and columns are those of a cell."""
        return (rows >= 0) & (rows < self.rows) & (columns >= 0) & (columns < self.columns)

    def finer(self, factor: int) -> Grid:
        """The cells of which `factor` to a side make up one of these."""
        return replace(
            self,
            rows=self.rows * factor,
            columns=self.columns * factor,
            step_x=self.step_x / factor,
            step_y=self.step_y / factor,
        )
