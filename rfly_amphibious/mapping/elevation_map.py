"""Elevation map from lidar points: a height and its variance in each cell of a square that moves
with the sensor.

Each cell is a one-dimensional Kalman filter: Fankhauser, Bloesch, Gehring, Hutter and Siegwart,
"Robot-Centric Elevation Mapping with Uncertainty Estimates", CLAWAR 2014. Instead of propagating
the covariance of the robot's motion, what is known gets less certain with time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.errors import ConfigError

MAX_CELLS = 4_000_000
BELIEVED_AFTER = 4
"""clouds that say that the ground is lower than known, by more than the gate; the next one is
believed
"""


@dataclass(frozen=True)
class ElevationParameters:
    """Size of the map, and how far it trusts a point."""

    resolution: float = 0.1
    """m: side of a cell"""
    length: float = 20.0
    """m: side of the map, with the sensor in its middle"""
    range_sigma: float = 0.02
    """m: of a point along its ray"""
    angle_sigma: float = 0.003
    """rad: of a cloud's rays together, from the attitude"""
    cell_sigma: float = 0.01
    """m: of a cloud's mean in a cell that is not level, or not all of which is seen"""
    drift: float = 0.02
    """m/√s: by which what is known gets less certain"""
    gate: float = 3.0
    """standard deviations, beyond which a cloud sees another surface than the one that is known"""
    surface: float = 0.25
    """m: points of one cloud that lie farther below the highest one in their cell are not of its
    surface
    """

    def __post_init__(self) -> None:
        for name, value, low, high in (
            ("resolution", self.resolution, 0.01, 10.0),
            ("length", self.length, self.resolution, 10_000.0),
            ("range_sigma", self.range_sigma, 1e-4, 10.0),
            ("angle_sigma", self.angle_sigma, 0.0, 1.0),
            ("cell_sigma", self.cell_sigma, 1e-4, 10.0),
            ("drift", self.drift, 0.0, 10.0),
            ("gate", self.gate, 0.1, 100.0),
            ("surface", self.surface, 1e-3, 1000.0),
        ):
            if not low <= value <= high:
                raise ConfigError(f"{name} is {value}, allowed: {low:g} … {high:g}")
        if self.cells**2 > MAX_CELLS:
            raise ConfigError(
                f"length {self.length:g} m and resolution {self.resolution:g} m make {self.cells**2:,} cells, "
                f"allowed: up to {MAX_CELLS:,}"
            )

    @property
    def cells(self) -> int:
        """Along a side."""
        return max(1, round(self.length / self.resolution))


class ElevationBuffers(NamedTuple):
    """The map as grid_map keeps one: circular buffers, rows towards −y and columns towards −x."""

    elevation: NDArray[np.float32]
    """(n, n) m, z up; NaN where nothing is known"""
    variance: NDArray[np.float32]
    """(n, n) m²"""
    corner: tuple[float, float]
    """largest x and y, m"""
    start: tuple[int, int]
    """column and row of the cell there"""


class ElevationMap:
    """Heights (ENU, z up) around a sensor that moves; what it leaves behind is forgotten."""

    def __init__(self, parameters: ElevationParameters = ElevationParameters()) -> None:
        self.parameters = parameters
        self._first: tuple[int, int] | None = (
            None  # the cell with the smallest x and y: its x, y in cells
        )
        self.clear()

    def clear(self) -> None:
        """Forget everything but where the map is."""
        n = self.parameters.cells
        self._height = np.full((n, n), np.nan)
        self._variance = np.full((n, n), np.nan)
        self._time: float | None = None

    @property
    def known(self) -> int:
        """Cells of which something is known."""
        return int(np.count_nonzero(np.isfinite(self._height)))

    def insert(self, origins: ArrayLike, ends: ArrayLike, time: float) -> int:
        """Points (n, 3) m of one cloud, seen from (3,) or (n, 3) m, at a time (s); how many of them
        lie on the map.

        The map moves to where the last one was seen from. Points that are not finite are left out.
        Raises ConfigError for other shapes.
        """
        to = np.asarray(ends, np.float64)
        if to.ndim != 2 or to.shape[1] != 3:
            raise ConfigError(f"points are an array {to.shape}, expected (n, 3)")
        start = np.asarray(origins, np.float64)
        if start.shape not in ((3,), to.shape):
            raise ConfigError(f"origins are an array {start.shape}, expected (3,) or {to.shape}")
        if not len(to):
            return 0
        start = np.broadcast_to(start, to.shape)
        there = np.isfinite(to).all(axis=1) & np.isfinite(start).all(axis=1)
        if not there.any():
            return 0
        start = start[there]
        to = to[there]
        self._move(start[-1])
        self._age(time)
        return self._look(start, to)

    def elevation(self, x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
        """(heights m, variances m²) of the cells around points x, y (m); NaN where nothing is
        known.
        """
        x, y = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
        height = np.full(x.shape, np.nan)
        variance = np.full(x.shape, np.nan)
        if self._first is not None:
            inside, places = self._places(x, y)
            height[inside] = self._height[places]
            variance[inside] = self._variance[places]
        return height, variance

    def buffers(self) -> ElevationBuffers | None:
        """The map for grid_map; None before the first cloud."""
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
        """Bring the middle of the map there; the cells that it has not covered before are unknown."""
        n = self.parameters.cells
        x, y = (int(np.floor(v / self.parameters.resolution)) - n // 2 for v in middle[:2].tolist())
        old = self._first or (x, y)
        for axis, (before, now) in enumerate(zip(old, (x, y), strict=True)):
            new = np.arange(before + n, now + n) if now > before else np.arange(now, before)
            where = n - 1 - new[:n] % n
            for layer in (self._height, self._variance):
                layer[(slice(None), where) if axis == 0 else where] = np.nan
        self._first = x, y

    def _age(self, time: float) -> None:
        if self._time is not None and time > self._time:
            self._variance += self.parameters.drift**2 * (time - self._time)
        self._time = time

    def _places(self, x: Floats, y: Floats) -> tuple[Bools, tuple[Ints, Ints]]:
        """Which points lie on the map, and rows and columns of those."""
        assert self._first is not None
        n = self.parameters.cells
        side = self.parameters.resolution
        column = np.floor(x / side) - self._first[0]
        row = np.floor(y / side) - self._first[1]
        inside = (column >= 0) & (column < n) & (row >= 0) & (row < n)
        columns = column[inside].astype(np.int64)
        rows = row[inside].astype(np.int64)
        return inside, (n - 1 - (rows + self._first[1]) % n, n - 1 - (columns + self._first[0]) % n)

    def _look(self, start: Floats, to: Floats) -> int:
        """Fuses each cell's mean and variance; how many points are on the map."""
        inside, (rows, columns) = self._places(to[:, 0], to[:, 1])
        if not len(rows):
            return 0
        p = self.parameters
        n = self.parameters.cells
        start = start[inside]
        to = to[inside]
        order = np.argsort(rows * n + columns)
        cell = (rows * n + columns)[order]
        firsts = np.flatnonzero(np.diff(cell, prepend=-1))
        which = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(cell)))
        z = to[order, 2]
        ray = (to - start)[order]
        on_surface = z >= np.maximum.reduceat(z, firsts)[which] - p.surface
        z = z[on_surface]
        ray = ray[on_surface]
        which = which[on_surface]
        level = (ray[:, :2] ** 2).sum(axis=1)
        rise = ray[:, 2] ** 2
        # a ray of no length says nothing of its direction: the worst
        along = p.range_sigma**2 * np.divide(
            rise, level + rise, out=np.ones_like(rise), where=level + rise > 0
        )
        weight = 1.0 / (along + p.cell_sigma**2)
        total = np.bincount(which, weight)
        count = np.bincount(which)
        height = np.bincount(which, weight * z) / total
        # noise of points averages out, that of the attitude and of the cell's shape is common to
        # them
        common = p.angle_sigma**2 * np.bincount(which, level) / count + p.cell_sigma**2
        self._fuse(
            np.divmod(cell[firsts], n),
            height,
            np.bincount(which, along * weight**2) / total**2 + common,
        )
        return len(rows)

    def _fuse(self, cells: tuple[Ints, Ints], seen: Floats, seen_variance: Floats) -> None:
        """What a cloud says of the cells, rows and columns in the buffers, that it has points in:
        m, m².
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
