# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Elevation map from lidar points: heights and variances in a square that moves with the sensor.

Each cell is a one-dimensional Kalman filter: Fankhauser, Bloesch, Gehring, Hutter and Siegwart,
"Robot-Centric Elevation Mapping with Uncertainty Estimates", CLAWAR 2014. Instead of propagating
the covariance of the robot's motion, heights get less certain with time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.errors import ConfigError
from rfly_common.ros.node_parameters import check_ranges, parameter

MAX_CELLS = 4_000_000
"""Most cells of a map."""
BELIEVED_AFTER = 4
"""Clouds that show the ground lower than known by more than the gate before it is believed."""


@dataclass(frozen=True)
class ElevationParameters:
    """Size of the map, and the uncertainty of points."""

    PREFIX: ClassVar[str] = "elevation_"

    resolution: float = parameter(0.1, "side of a cell", unit="m", low=0.01, high=10.0)
    length: float = parameter(
        20.0, "side of the map, with the sensor in its middle", unit="m", low=0.01, high=10_000.0
    )
    range_sigma: float = parameter(
        0.02, "standard deviation of a point along its ray", unit="m", low=1e-4, high=10.0
    )
    angle_sigma: float = parameter(
        0.003,
        "standard deviation of a cloud's rays together, from the attitude",
        unit="rad",
        low=0.0,
        high=1.0,
    )
    cell_sigma: float = parameter(
        0.01,
        "standard deviation of a cloud's mean in a cell that is not level",
        unit="m",
        low=1e-4,
        high=10.0,
    )
    drift: float = parameter(
        0.02, "growth of the uncertainty of known cells", unit="m/√s", low=0.0, high=10.0
    )
    gate: float = parameter(
        3.0,
        "standard deviations, beyond which a cloud sees another surface",
        low=0.1,
        high=100.0,
    )
    surface: float = parameter(
        0.25,
        "points farther below the highest one of a cloud in a cell are not of its surface",
        unit="m",
        low=1e-3,
        high=1000.0,
    )

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.length < self.resolution:
            raise ConfigError(
                f"length is {self.length}, expected at least the resolution, {self.resolution:g}"
            )
        if self.cells**2 > MAX_CELLS:
            cells = f"{self.cells**2:,} cells"
            raise ConfigError(
                f"length {self.length:g} m and resolution {self.resolution:g} m make {cells}, "
                f"allowed: up to {MAX_CELLS:,}"
            )

    @property
    def cells(self) -> int:
        """Cells along a side."""
        return max(1, round(self.length / self.resolution))


class ElevationBuffers(NamedTuple):
    """The map in grid_map's form: circular buffers, rows towards −y and columns towards −x."""

    elevation: NDArray[np.float32]
    """Heights, m, z up, (n, n); NaN if unknown."""
    variance: NDArray[np.float32]
    """Variances, m², (n, n)."""
    corner: tuple[float, float]
    """Largest x and y, m."""
    start: tuple[int, int]
    """Column and row of the cell there."""


class ElevationMap:
    """Heights (ENU, z up) around a sensor that moves. Those it leaves behind are forgotten."""

    def __init__(self, parameters: ElevationParameters = ElevationParameters()) -> None:
        self.parameters = parameters
        self._first: tuple[int, int] | None = None
        """Cell with the smallest x and y: its x, y in cells."""
        self.clear()

    def clear(self) -> None:
        """Forget everything but where the map is."""
        n = self.parameters.cells
        self._height = np.full((n, n), np.nan)
        self._variance = np.full((n, n), np.nan)
        self._time: float | None = None

    @property
    def known(self) -> int:
        """Number of known cells."""
        return int(np.count_nonzero(np.isfinite(self._height)))

    def insert(self, origins: ArrayLike, ends: ArrayLike, time: float) -> int:
        """Fuse the points (n, 3) m of one cloud, seen from (3,) or (n, 3) m, at a time, s.

        Returns how many lie on the map. The map moves to where the last one was seen from. Points
        that are not finite are left out. Raises ConfigError for other shapes.
        """
        end = np.asarray(ends, np.float64)
        if end.ndim != 2 or end.shape[1] != 3:
            raise ConfigError(f"points are an array {end.shape}, expected (n, 3)")
        start = np.asarray(origins, np.float64)
        if start.shape not in ((3,), end.shape):
            raise ConfigError(f"origins are an array {start.shape}, expected (3,) or {end.shape}")
        if not len(end):
            return 0

        start = np.broadcast_to(start, end.shape)
        finite = np.isfinite(end).all(axis=1) & np.isfinite(start).all(axis=1)
        if not finite.any():
            return 0
        start = start[finite]
        end = end[finite]
        self._move(start[-1])
        self._age(time)
        return self._look(start, end)

    def elevation(self, x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
        """Return heights (m) and variances (m²) of the cells around points (m); NaN: unknown."""
        x, y = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
        height = np.full(x.shape, np.nan)
        variance = np.full(x.shape, np.nan)
        if self._first is not None:
            inside, places = self._places(x, y)
            height[inside] = self._height[places]
            variance[inside] = self._variance[places]
        return height, variance

    def buffers(self) -> ElevationBuffers | None:
        """Return the map for grid_map; None before the first cloud."""
        if self._first is None:
            return None
        n = self.parameters.cells
        side = self.parameters.resolution
        first_x, first_y = self._first
        return ElevationBuffers(
            self._height.astype(np.float32),
            self._variance.astype(np.float32),
            ((first_x + n) * side, (first_y + n) * side),
            (n - 1 - (first_x + n - 1) % n, n - 1 - (first_y + n - 1) % n),
        )

    def _move(self, middle: Floats) -> None:
        """Bring the middle of the map to a place. New cells are unknown."""
        n = self.parameters.cells
        x, y = (int(np.floor(v / self.parameters.resolution)) - n // 2 for v in middle[:2].tolist())
        old = self._first or (x, y)
        for axis, (before, now) in enumerate(zip(old, (x, y), strict=True)):
            new = np.arange(before + n, now + n) if now > before else np.arange(now, before)
            places = n - 1 - new[:n] % n
            for layer in (self._height, self._variance):
                layer[(slice(None), places) if axis == 0 else places] = np.nan
        self._first = x, y

    def _age(self, time: float) -> None:
        if self._time is not None and time > self._time:
            self._variance += self.parameters.drift**2 * (time - self._time)
        self._time = time

    def _places(self, x: Floats, y: Floats) -> tuple[Bools, tuple[Ints, Ints]]:
        """Return which points lie on the map, and rows and columns of those."""
        assert self._first is not None
        n = self.parameters.cells
        side = self.parameters.resolution
        column = np.floor(x / side) - self._first[0]
        row = np.floor(y / side) - self._first[1]
        inside = (column >= 0) & (column < n) & (row >= 0) & (row < n)

        columns = column[inside].astype(np.int64)
        rows = row[inside].astype(np.int64)
        return inside, (n - 1 - (rows + self._first[1]) % n, n - 1 - (columns + self._first[0]) % n)

    def _look(self, start: Floats, end: Floats) -> int:
        """Fuse each cell's mean and variance. Return the number of points on the map."""
        inside, (rows, columns) = self._places(end[:, 0], end[:, 1])
        if not len(rows):
            return 0
        p = self.parameters
        n = self.parameters.cells
        start = start[inside]
        end = end[inside]

        # points by cell
        order = np.argsort(rows * n + columns)
        cell = (rows * n + columns)[order]
        firsts = np.flatnonzero(np.diff(cell, prepend=-1))

        which = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(cell)))
        z = end[order, 2]
        ray = (end - start)[order]

        # points on the surface
        on_surface = z >= np.maximum.reduceat(z, firsts)[which] - p.surface
        z = z[on_surface]
        ray = ray[on_surface]
        which = which[on_surface]

        # weighted mean of each cell
        level = (ray[:, :2] ** 2).sum(axis=1)
        rise = ray[:, 2] ** 2
        # a ray without length has no direction: take the worst
        along = p.range_sigma**2 * np.divide(
            rise, level + rise, out=np.ones_like(rise), where=level + rise > 0
        )
        weight = 1.0 / (along + p.cell_sigma**2)
        total = np.bincount(which, weight)
        count = np.bincount(which)
        height = np.bincount(which, weight * z) / total
        # noise of points averages out, that of the attitude and the cell's shape does not
        common = p.angle_sigma**2 * np.bincount(which, level) / count + p.cell_sigma**2
        variance = np.bincount(which, along * weight**2) / total**2 + common
        self._fuse(np.divmod(cell[firsts], n), height, variance)
        return len(rows)

    def _fuse(self, cells: tuple[Ints, Ints], seen: Floats, seen_variance: Floats) -> None:
        """Fuse measured heights (m) and variances (m²) of cells.

        The cells are rows and columns of the buffers.
        """
        gate = self.parameters.gate
        height = self._height[cells]
        variance = self._variance[cells]
        off = seen - height
        total = variance + seen_variance
        new = np.isnan(height) | (off > gate * np.sqrt(total))
        lower = ~new & (off < -gate * np.sqrt(total))

        share = np.where(lower, 0.0, variance / total)
        height = height + share * off
        variance = (1.0 - share) * variance
        variance[lower] += (off[lower] / gate) ** 2 / BELIEVED_AFTER
        self._height[cells] = np.where(new, seen, height)
        self._variance[cells] = np.where(new, seen_variance, variance)
