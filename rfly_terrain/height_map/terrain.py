# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Terrain: the queries that maps in memory and maps in tiles have in common."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Bools, Floats
from rfly_common.frames import ned_to_enu, up_to_down
from rfly_terrain.height_map import places
from rfly_terrain.height_map.ground import GroundGrid
from rfly_terrain.height_map.point_cloud import Region
from rfly_terrain.height_map.scalar import Altitude

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap


Scalar = float | np.floating[Any] | np.integer[Any]
INNER_SHARE = 0.25
"""Share of the window's side that a place keeps from its edges."""
RETRY_SHARE = 0.05
"""Share of the window's side by which a place has to move after a window could not be read."""
RETRY_S = 5.0
"""Time after which it is read again for a place that has not moved, s."""
_SCALARS = (float, int, np.floating, np.integer, np.bool_)
"""Types of a single number in a query, in addition to arrays and what becomes one."""


class TerrainQuery(NamedTuple):
    """Answer of `Terrain.query`: floats, or arrays of the points' shape."""

    altitude: Any
    """z of the ground in the axes of the query, m, float64."""
    inside: Any
    """False where the point is off the map and the altitude is that of the map's edge."""
    normal: Any
    """Unit vectors out of the ground, (…, 3); None if not wanted."""


class Terrain(abc.ABC):
    """Ground of (rows, columns) samples in ENU metres, bilinear between them.

    `HeightMap` holds all samples in memory, `TiledHeightMap` reads them when they are needed. Both
    answer these queries alike. Sample (r, c) lies at

        x_east = origin_x + r·step_x,  y_north = origin_y + c·step_y.

    Points off the map are clamped, each axis on its own, and get the altitude of the edge, as in
    RflySim's tools; `inside` distinguishes them. Coordinates that are NaN or infinite raise
    ValueError. Floats, ints and NumPy scalars give floats, and arrays broadcast. Several threads
    may call all methods at once.
    """

    rows: int
    columns: int
    origin_x: float
    """x_east of the first sample, m."""
    origin_y: float
    """y_north of the first sample, m."""
    step_x: float
    """Distance from one row to the next, east, m; may be negative, never 0."""
    step_y: float
    """Distance from one column to the next, north, m; may be negative, never 0."""
    z_min: float
    """No height is lower, m."""
    z_max: float
    """No height is higher, m."""
    name: str
    geo_origin: tuple[float, float, float] | None
    """Latitude and longitude (degrees, WGS 84) and altitude (m) of x = y = z = 0."""
    files: tuple[Path, ...]
    """Absolute paths of the files that the map is read from, or ()."""
    ground: GroundGrid
    """The grid as plain numbers, for kernels."""
    _point_altitude: Altitude

    @abc.abstractmethod
    def is_loaded(self, x: ArrayLike, y: ArrayLike) -> bool:
        """Return whether `query` answers at these points without reading a file first."""

    @abc.abstractmethod
    def prepare(self, x: Floats, y: Floats) -> None:
        """Read what queries at points (n,) need, as far as it can be read."""

    @abc.abstractmethod
    def window(self, x: float, y: float, samples: int) -> HeightMap:
        """Return the ground around a place as a map in memory.

        That is all of a map in memory, and about `samples` x `samples` of a map in tiles.
        """

    @abc.abstractmethod
    def detail(self, region: Region, samples: int, tell: Callable[[str], None]) -> HeightMap:
        """Return a region as a map in memory, for pictures.

        That is all of a map in memory. Of a map in tiles it is about `samples` means of heights a
        side; where a tile cannot be read, the ground has the lowest height, and `tell` gets why.
        """

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """x_min, x_max, y_min, y_max of the outermost samples, ENU, m."""
        return self.ground.x_min, self.ground.x_max, self.ground.y_min, self.ground.y_max

    @overload
    def altitude(self, x: Scalar, y: Scalar) -> float: ...
    @overload
    def altitude(self, x: ArrayLike, y: ArrayLike) -> Floats: ...
    def altitude(self, x: Any, y: Any) -> Any:
        """Return the height of the ground (m, z up) at x east, y north.

        It is a float for two floats, else a float64 array. Bilinear; RflySim's `getTerrainAltData`
        gives the same number with the other sign and the axes exchanged.
        """
        if type(x) is float and type(y) is float:
            z = self._point_altitude(x, y)
            if z == z:  # NaN: a coordinate is not finite, which the next lines report
                return z
        if isinstance(x, _SCALARS) and isinstance(y, _SCALARS):
            return self._point_altitude(*finite_floats(("x", "y"), (x, y)))
        return self._altitudes(("x", "y"), (x, y))

    @overload
    def altitude_ned(self, x_north: Scalar, y_east: Scalar) -> float: ...
    @overload
    def altitude_ned(self, x_north: ArrayLike, y_east: ArrayLike) -> Floats: ...
    def altitude_ned(self, x_north: Any, y_east: Any) -> Any:
        """Return z of the ground at x north, y east, m, down (negative above the origin).

        This is RflySim's own number.
        """
        if type(x_north) is float and type(y_east) is float:
            z = self._point_altitude(y_east, x_north)
            if z == z:
                return 0.0 - z  # up_to_down without its call, which costs as much as the look-up
        if isinstance(x_north, _SCALARS) and isinstance(y_east, _SCALARS):
            east, north = finite_floats(("y_east", "x_north"), (y_east, x_north))
            return up_to_down(self._point_altitude(east, north))
        return up_to_down(self._altitudes(("y_east", "x_north"), (y_east, x_north)))

    @overload
    def inside(self, x: Scalar, y: Scalar) -> bool: ...
    @overload
    def inside(self, x: ArrayLike, y: ArrayLike) -> Bools: ...
    def inside(self, x: Any, y: Any) -> Any:
        """Return whether x east, y north lies on the map, edges included (to within rounding).

        It is a bool for two floats, else an array.
        """
        if isinstance(x, _SCALARS) and isinstance(y, _SCALARS):
            *_, on_x, on_y = self._surface_at(("x", "y"), x, y)
            return on_x and on_y
        (inside,) = self._run("insides", ("x", "y"), (x, y), [((), np.bool_)])
        return inside if inside.ndim else bool(inside)

    def query(
        self, x: Any, y: Any, want_normals: bool = True, smooth: bool = False
    ) -> TerrainQuery:
        """Return altitude (z up), inside and, if wanted, the ENU normal of points."""
        return self._query(("x", "y"), x, y, want_normals, smooth)

    def query_ned(
        self, x_north: Any, y_east: Any, want_normals: bool = True, smooth: bool = False
    ) -> TerrainQuery:
        """Return the `query` in NED: x north, y east, altitude z down, normals NED (z < 0)."""
        altitude, inside, normal = self._query(
            ("y_east", "x_north"), y_east, x_north, want_normals, smooth
        )
        return TerrainQuery(
            up_to_down(altitude), inside, None if normal is None else ned_to_enu(normal)
        )

    def normal(self, x: Any, y: Any, smooth: bool = False) -> Floats:
        """Return the unit vectors (…, 3) (ENU, z > 0) that stand on the ground.

        Exact normals are those of the bilinear surface, with a jump at the borders of cells (there
        it is the cell of the higher index). `smooth` ones are those of the interpolated gradient of
        the samples, without jumps. See `gradient` for points off the map.
        """
        return self._query(("x", "y"), x, y, True, smooth).normal

    def gradient(self, x: ArrayLike, y: ArrayLike, smooth: bool = False) -> Floats:
        """Return dz/dx (east) and dz/dy (north) of the ground, (…, 2).

        Exact: the derivative of the bilinear surface; on a border of cells that of the cell with
        the higher index. `smooth`: central differences at the samples (one-sided at the map's
        edge), interpolated bilinearly: continuous everywhere on the map. Off the map the derivative
        along the clamped axis is 0, as the altitude does not change along it.
        """
        (gradient,) = self._run("gradients", ("x", "y"), (x, y), [((2,), np.float64)], bool(smooth))
        return gradient

    def gradient_rate(self, x: ArrayLike, y: ArrayLike, vx: ArrayLike, vy: ArrayLike) -> Floats:
        """Return the time derivative (…, 2) (1/s) of the smooth gradient at moving points.

        They move with vx east, vy north (m/s). The derivative is analytic within a cell, and on a
        border that of the cell with the higher index. Along a clamped axis nothing changes.
        """
        names = ("x", "y", "vx", "vy")
        values = (x, y, vx, vy)
        (rate,) = self._run("gradient_rates", names, values, [((2,), np.float64)])
        return rate

    @overload
    def slope(self, x: Scalar, y: Scalar, smooth: bool = False) -> float: ...
    @overload
    def slope(self, x: ArrayLike, y: ArrayLike, smooth: bool = False) -> Floats: ...
    def slope(self, x: ArrayLike, y: ArrayLike, smooth: bool = False) -> Any:
        """Return the angle (rad, 0 … π/2) between the ground and the horizontal.

        It is a float for two scalars, else an array.
        """
        gradient = self.gradient(x, y, smooth)
        slope = np.arctan(np.hypot(gradient[..., 0], gradient[..., 1]))
        return slope if slope.ndim else float(slope)

    def position_of(self, latitude: Any, longitude: Any) -> tuple[Any, Any]:
        """Return x east and y north, m, of places in degrees (WGS 84); numbers give floats.

        The projection is that of `rfly_common.geodesy.geodetic_to_ned` about `geo_origin`. Raises
        ConfigError for a map that names no place, ValueError for what is no place on the Earth.
        """
        return places.position_of(latitude, longitude, places.place_origin(self))

    def place_of(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Return latitude and longitude, degrees, of x east, y north: inverse of `position_of`."""
        return places.place_of(x, y, places.place_origin(self))

    def altitude_at(self, latitude: Any, longitude: Any) -> Any:
        """Return the altitude of the ground, m, at places in degrees (WGS 84).

        It counts from where the altitude of `geo_origin` counts from, usually sea level, not from
        z = 0. Places off the map get the altitude of its edge. Raises as `position_of` does.
        """
        return places.place_origin(self)[2] + self.altitude(*self.position_of(latitude, longitude))

    def profile(self, start: ArrayLike, end: ArrayLike, count: int = 1000) -> places.Profile:
        """Return the ground at evenly spaced points of the line from start to end.

        `start`, `end`: x east, y north, m. Raises ValueError for equal ends, ends that are not
        finite, and a count below 2 or above 1,000,000.
        """
        return places.profile(self, start, end, count)

    @abc.abstractmethod
    def point_cloud(self, stride: int = 1, region: Region | None = None) -> NDArray[np.float32]:
        """Return every `stride`-th sample as a point, (rows', columns', 3) float32.

        Points are x east, y north, z up. `region` (x_min, x_max, y_min, y_max; ENU metres, borders
        included) limits them; the first sample in it is always there. Raises ValueError for a
        stride below 1 and a region without samples.
        """

    @abc.abstractmethod
    def point_cloud_ned(self, stride: int = 1, region: Region | None = None) -> NDArray[np.float32]:
        """Return the same points in the same order as x north, y east, z down.

        The region remains x_min, x_max, y_min, y_max in ENU.
        """

    @overload
    def cast(
        self,
        origins: ArrayLike,
        directions: ArrayLike,
        max_range: ArrayLike = ...,
        *,
        normals: Literal[False] = ...,
    ) -> Any: ...
    @overload
    def cast(
        self,
        origins: ArrayLike,
        directions: ArrayLike,
        max_range: ArrayLike = ...,
        *,
        normals: Literal[True],
    ) -> tuple[Any, Floats]: ...
    def cast(
        self,
        origins: ArrayLike,
        directions: ArrayLike,
        max_range: ArrayLike = math.inf,
        *,
        normals: bool = False,
    ) -> Any:
        """Return the ranges (m) at which rays meet the ground, inf where they do not.

        With `normals` the pair ranges, normals is returned.

        `origins`, `directions` (…, 3): ENU metres, and directions of any length but 0; `max_range`
        (…): metres. The three broadcast; one ray gives a float. Ranges (…) float64 are metres along
        the direction, whatever its length. Normals (…, 3): unit vectors out of the ground (z > 0)
        as `normal` gives them, of the cell that was hit; NaN for a miss. Float32 input is read as
        it is; arithmetic is float64 in any case.

        Exact: the first point where the ray meets the bilinear surface, by the roots of its
        quadratic cell by cell, with no step and no triangles. All below the surface is ground: a
        ray that starts in or on it hits at 0, one that comes from the side meets the cut at the
        map's edge, both with the normal of the surface above. Unlike `altitude`, nothing lies
        outside the map. The first call builds a pyramid of 1/12 of the map's memory.

        Raises ValueError that names argument and index for coordinates that are NaN or infinite,
        directions of length 0 and a max_range that is NaN or negative; ray_cast.hit_points turns
        ranges into points.
        """
        from rfly_terrain.height_map import ray_cast

        ranges, out = ray_cast.cast(self, origins, directions, max_range, bool(normals))
        distance: Any = ranges if ranges.ndim else float(ranges)
        return distance if out is None else (distance, out)

    def line_of_sight(
        self, a: ArrayLike, b: ArrayLike, tolerance: float = 1e-3, earth_radius: float = math.inf
    ) -> Any:
        """Return whether the ground leaves the line from a to b free.

        It is a bool for two points, else an array. `a`, `b` (…, 3): ENU metres, which broadcast.
        Ground that rises above the line by no more than `tolerance` (m) does not count, so that
        points on the ground see and are seen. Nothing outside the map is in the way.

        By default the Earth counts as level, like the map. With `earth_radius`, m, it falls away
        from each point by d² / (2 earth_radius), 5.9 m at 10 km for radio: ray_cast has
        RADIO_EARTH_RADIUS and SIGHT_EARTH_RADIUS, which include the refraction of the air.

        Raises ValueError for coordinates that are not finite.
        """
        from rfly_terrain.height_map import ray_cast

        free = ray_cast.line_of_sight(self, a, b, tolerance, earth_radius)
        return free if free.ndim else bool(free)

    def _altitudes(self, names: Sequence[str], values: Sequence[Any]) -> Any:
        (altitude,) = self._run("altitudes", names, values, [((), np.float64)])
        return altitude if altitude.ndim else float(altitude)

    def _query(
        self, names: tuple[str, str], x: Any, y: Any, want_normals: bool, smooth: bool
    ) -> TerrainQuery:
        # one point
        if isinstance(x, _SCALARS) and isinstance(y, _SCALARS) and not smooth:
            z, along_x, along_y, on_x, on_y = self._surface_at(names, x, y)
            normal = np.array((0.0 - along_x, 0.0 - along_y, 1.0)) / math.sqrt(
                along_x * along_x + along_y * along_y + 1.0
            )
            return TerrainQuery(z, on_x and on_y, normal if want_normals else None)

        # several points
        if want_normals:
            outputs = [((), np.float64), ((3,), np.float64), ((), np.bool_)]
            altitude, normals, inside = self._run("queries", names, (x, y), outputs, bool(smooth))
        else:
            (altitude,) = self._run("altitudes", names, (x, y), [((), np.float64)])
            (inside,) = self._run("insides", names, (x, y), [((), np.bool_)])
            normals = None
        if altitude.ndim == 0:
            return TerrainQuery(float(altitude), bool(inside), normals)
        return TerrainQuery(altitude, inside, normals)

    def __repr__(self) -> str:
        x_min, x_max, y_min, y_max = self.bounds
        return (
            f"<{type(self).__name__} {self.name!r}: {self.rows} x {self.columns}, "
            f"x {x_min:g} … {x_max:g}, y {y_min:g} … {y_max:g}, "
            f"z {self.z_min:g} … {self.z_max:g} m>"
        )

    @abc.abstractmethod
    def _surface_at(
        self, names: tuple[str, str], x: Any, y: Any
    ) -> tuple[float, float, float, bool, bool]:
        """Return what `scalar.surface_at` returns."""

    @abc.abstractmethod
    def _run(
        self,
        kernel: str,
        names: Sequence[str],
        values: Sequence[Any],
        outputs: Sequence[tuple[Any, type]],
        *options: Any,
    ) -> list[NDArray[Any]]:
        """Return what `arguments.run` returns."""

    @abc.abstractmethod
    def _cast(self, inputs: list[NDArray[Any]], ranges: Floats, normals: Floats) -> bool:
        """Write ranges and normals of rays as `ray_kernels.cast` does."""


def finite_floats(names: tuple[str, str], values: tuple[Any, Any]) -> tuple[float, float]:
    """Return both as floats. Raise ValueError for the first that is NaN or infinite."""
    first = float(values[0])
    second = float(values[1])
    if not math.isfinite(first - second):
        for name, number in zip(names, (first, second), strict=True):
            if not math.isfinite(number):
                raise ValueError(f"{name} is {number}: coordinates must be finite")
    return first, second


def is_central(window: HeightMap, terrain: Terrain, x: float, y: float) -> bool:
    """Return whether a place is far from the window's edges, those of the map aside."""
    x_min, x_max, y_min, y_max = window.bounds
    west, east, south, north = terrain.bounds
    spare_x = INNER_SHARE * (x_max - x_min)
    spare_y = INNER_SHARE * (y_max - y_min)
    half_x = abs(terrain.step_x) / 2.0
    half_y = abs(terrain.step_y) / 2.0
    return (
        (x - x_min >= spare_x or x_min - half_x < west)
        and (x_max - x >= spare_x or x_max + half_x > east)
        and (y - y_min >= spare_y or y_min - half_y < south)
        and (y_max - y >= spare_y or y_max + half_y > north)
    )
