# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""HeightMap: the ground as a grid of heights, with altitude, normal, ray and cloud queries."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Bools, Floats
from rfly_common.config.checks import finite_number
from rfly_common.errors import TerrainFormatError
from rfly_common.files import MAX_CELLS
from rfly_common.frames import ned_to_enu, up_to_down
from rfly_terrain.height_map import places
from rfly_terrain.height_map.arguments import check_finite, flat_arrays, run
from rfly_terrain.height_map.ground import GroundGrid, ground_of_grid
from rfly_terrain.height_map.point_cloud import Region, point_cloud
from rfly_terrain.height_map.scalar import Altitude, altitude_of, surface_at

if TYPE_CHECKING:
    from rfly_common.files import StrPath
    from rfly_terrain.height_map.ray_pyramid import Pyramid
    from rfly_terrain.map_files.calibration import ThirdPixelRule
    from rfly_terrain.map_files.png_txt import RflySimMap

Scalar = float | np.floating[Any] | np.integer[Any]
_SCALARS = (float, int, np.floating, np.integer, np.bool_)
"""Types of a single number in a query, in addition to arrays and what becomes one."""


class TerrainQuery(NamedTuple):
    """Answer of `HeightMap.query`: floats, or arrays of the points' shape."""

    altitude: Any
    """z of the ground in the axes of the query, m, float64."""
    inside: Any
    """False where the point is off the map and the altitude is that of the map's edge."""
    normal: Any
    """Unit vectors out of the ground, (…, 3); None if not wanted."""


class Surface(NamedTuple):
    """The ground under n moving points."""

    altitude: Floats
    """Height, (n,), m, z up."""
    gradient: Floats
    """dz/dx and dz/dy of the exact ground, (n, 2)."""
    smooth_gradient: Floats
    """dz/dx and dz/dy of the smooth ground, (n, 2)."""
    smooth_gradient_rate: Floats
    """Its derivative by time along the points' motion, (n, 2), 1/s."""


class HeightMap:
    """Immutable terrain of (rows, columns) samples, in ENU metres.

    `heights[r, c]` lies at

        x_east = origin_x + r·step_x,  y_north = origin_y + c·step_y.

    Between the samples the surface is bilinear. This is the layout of RflySim's png, whose rows run
    along east and whose columns run along north. Heights are float32, arithmetic is float64
    whatever the type of the coordinates.

    Points off the map are clamped, each axis on its own, and get the altitude of the edge, as in
    RflySim's tools; `inside` distinguishes them. Coordinates that are NaN or infinite raise
    ValueError. Floats, ints and NumPy scalars give floats, and arrays broadcast. Several threads
    may call all methods at once.
    """

    heights: NDArray[np.float32]
    """Heights, (rows, columns), m, z up; read-only."""
    rows: int
    columns: int
    origin_x: float
    """x_east of heights[0, 0], m."""
    origin_y: float
    """y_north of heights[0, 0], m."""
    step_x: float
    """Distance from one row to the next, east, m; may be negative, never 0."""
    step_y: float
    """Distance from one column to the next, north, m; may be negative, never 0."""
    z_min: float
    """Lowest height, m."""
    z_max: float
    """Highest height, m."""
    name: str
    geo_origin: tuple[float, float, float] | None
    """Latitude and longitude (degrees, WGS 84) and altitude (m) of x = y = z = 0."""
    files: tuple[Path, ...]
    """Absolute paths of the files that the map was read from, or ()."""
    ground: GroundGrid
    """The same map as plain numbers, for kernels."""
    _pyramid: Pyramid | None = None
    _point_altitude: Altitude

    def __init__(
        self,
        heights_up: ArrayLike,
        *,
        origin_x: float,
        origin_y: float,
        step_x: float,
        step_y: float,
        name: str = "",
        geo_origin: tuple[float, float, float] | None = None,
        files: Sequence[StrPath] | None = None,
    ) -> None:
        """Make a map of heights (rows, columns), m, z up, rounded to float32.

        The heights are copied, except a contiguous float32 array that can no longer be written to,
        which is shared.

        Raises TerrainFormatError (a ValueError) for less than 2 x 2 or more than MAX_CELLS samples,
        for heights, origin, steps or geo_origin that are not finite, and for a step of 0.
        """
        heights = _frozen(_checked_shape(np.asarray(heights_up)))
        # either is NaN where any height is
        z_min = float(heights.min())
        z_max = float(heights.max())
        if not (math.isfinite(z_min) and math.isfinite(z_max)):
            row, column = np.argwhere(~np.isfinite(heights))[0].tolist()
            raise TerrainFormatError(
                f"heights_up[{row}, {column}] is {heights[row, column]}: "
                "heights must be finite float32 numbers"
            )

        # the grid
        numbers = {"origin_x": origin_x, "origin_y": origin_y, "step_x": step_x, "step_y": step_y}
        for key, value in numbers.items():
            finite_number(key, value, "m", error=TerrainFormatError)
        for key, step in (("step_x", step_x), ("step_y", step_y)):
            if step == 0 or not math.isfinite(1.0 / step):
                raise TerrainFormatError(
                    f"{key} is {step}: the samples of a map cannot all lie in one line"
                )

        # the fields, set once
        ground = ground_of_grid(heights, *map(float, numbers.values()))
        self._set(
            heights=heights,
            **{key: getattr(ground, key) for key in ("rows", "columns", *numbers)},
            z_min=z_min,
            z_max=z_max,
            name=str(name),
            geo_origin=_checked_geo_origin(geo_origin),
            files=tuple(Path(file).absolute() for file in files or ()),
            ground=ground,
            _point_altitude=altitude_of(ground),
        )

    @classmethod
    def load(
        cls,
        name_or_path: StrPath,
        search_path: Sequence[StrPath] = (),
        third_pixel: ThirdPixelRule = "truncate",
    ) -> HeightMap:
        """Load the RflySim map of a name on the search path, or of a path.

        The extension may be missing. `third_pixel` says how the third point of the txt becomes a
        pixel: "truncate" as RflySim's Python tool, "round" as MATLAB's. Raises TerrainFileNotFound,
        TerrainFormatError.
        """
        from rfly_terrain.map_files.png_txt import read_map
        from rfly_terrain.map_files.search import find_map

        return cls.of_map(read_map(find_map(name_or_path, search_path), third_pixel))

    @classmethod
    def of_map(cls, rfly_map: RflySimMap) -> HeightMap:
        """Return RflySim's map in ENU metres. The heights are shared, not copied."""
        calibration = rfly_map.calibration
        return cls(
            rfly_map.heights_up,
            origin_x=calibration.pos_offset_y_cm / 100,
            origin_y=calibration.pos_offset_x_cm / 100,
            step_x=calibration.pos_scale_y_cm / 100,
            step_y=calibration.pos_scale_x_cm / 100,
            name=rfly_map.files.name,
            geo_origin=calibration.points.geo_origin,
            files=(rfly_map.files.png, rfly_map.files.txt),
        )

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """x_min, x_max, y_min, y_max of the outermost samples, ENU, m."""
        return self.ground.x_min, self.ground.x_max, self.ground.y_min, self.ground.y_max

    @functools.cached_property
    def sha256(self) -> str:
        """SHA-256 (hexadecimal) of the heights as little-endian float32, row by row."""
        return hashlib.sha256(self.heights.astype("<f4", copy=False).data).hexdigest()

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
            return self._point_altitude(*_finite_floats(("x", "y"), (x, y)))
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
            east, north = _finite_floats(("y_east", "x_north"), (y_east, x_north))
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

    def surface(self, x: ArrayLike, y: ArrayLike, vx: ArrayLike, vy: ArrayLike) -> Surface:
        """Return altitude, both gradients and `gradient_rate` of n points (one axis)."""
        from rfly_terrain.height_map import altitude_kernels as kernels

        names = ("x", "y", "vx", "vy")
        (n,), arrays = flat_arrays(names, (x, y, vx, vy))
        flat_x, flat_y, flat_vx, flat_vy = arrays
        out = np.empty((7, n))
        if not kernels.surfaces(self.ground, flat_x, flat_y, flat_vx, flat_vy, out):
            check_finite(names, arrays)
        return Surface(out[0], out[1:3].T, out[3:5].T, out[5:7].T)

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

    def point_cloud(self, stride: int = 1, region: Region | None = None) -> NDArray[np.float32]:
        """Return every `stride`-th sample as a point, (rows', columns', 3) float32.

        Points are x east, y north, z up. `region` (x_min, x_max, y_min, y_max; ENU metres, borders
        included) limits them; the first sample in it is always there. Raises ValueError for a
        stride below 1 and a region without samples.
        """
        return point_cloud(self, stride, region)

    def point_cloud_ned(self, stride: int = 1, region: Region | None = None) -> NDArray[np.float32]:
        """Return the same points in the same order as x north, y east, z down.

        The region remains x_min, x_max, y_min, y_max in ENU.
        """
        return point_cloud(self, stride, region, ned=True)

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

    def _surface_at(
        self, names: tuple[str, str], x: Any, y: Any
    ) -> tuple[float, float, float, bool, bool]:
        return surface_at(self.ground, *_finite_floats(names, (x, y)))

    def _run(
        self,
        kernel: str,
        names: Sequence[str],
        values: Sequence[Any],
        outputs: Sequence[tuple[Any, type]],
        *options: Any,
    ) -> list[NDArray[Any]]:
        return run(kernel, self.ground, names, values, outputs, *options)

    def _set(self, **values: Any) -> None:
        for key, value in values.items():
            object.__setattr__(self, key, value)

    def __setattr__(self, key: str, value: Any) -> NoReturn:
        raise AttributeError(f"a HeightMap is immutable: {key} cannot be set; build a new one")

    def __delattr__(self, key: str) -> NoReturn:
        raise AttributeError(f"a HeightMap is immutable: {key} cannot be deleted")

    def __reduce__(self) -> tuple[Any, ...]:
        keys = ("origin_x", "origin_y", "step_x", "step_y", "name", "geo_origin", "files")
        return functools.partial(HeightMap, **{key: getattr(self, key) for key in keys}), (
            self.heights,
        )

    def __repr__(self) -> str:
        x_min, x_max, y_min, y_max = self.bounds
        return (
            f"<HeightMap {self.name!r}: {self.rows} x {self.columns}, x {x_min:g} … {x_max:g}, "
            f"y {y_min:g} … {y_max:g}, z {self.z_min:g} … {self.z_max:g} m>"
        )


def _finite_floats(names: tuple[str, str], values: tuple[Any, Any]) -> tuple[float, float]:
    """Return both as floats. Raise ValueError for the first that is NaN or infinite."""
    first = float(values[0])
    second = float(values[1])
    if not math.isfinite(first - second):
        for name, number in zip(names, (first, second), strict=True):
            if not math.isfinite(number):
                raise ValueError(f"{name} is {number}: coordinates must be finite")
    return first, second


def _checked_shape(heights: NDArray[Any]) -> NDArray[Any]:
    if heights.dtype.kind not in "fiub":
        raise TerrainFormatError(f"heights_up: expected real numbers, got {heights.dtype}")
    if heights.ndim != 2:
        raise TerrainFormatError(f"heights_up: expected shape (rows, columns), got {heights.shape}")
    if min(heights.shape) < 2:
        raise TerrainFormatError(
            f"heights_up: {heights.shape[0]} rows x {heights.shape[1]} columns, "
            "expected at least 2 x 2: a single row or column has no extent and no slope"
        )
    if heights.size > MAX_CELLS:
        raise TerrainFormatError(
            f"heights_up: {heights.shape[0]:,} rows x {heights.shape[1]:,} columns "
            f"are {heights.size:,} samples, expected at most {MAX_CELLS:,} (10,000 x 10,000); "
            "cut or thin the map"
        )
    return heights


def _checked_geo_origin(geo_origin: Sequence[float] | None) -> tuple[float, float, float] | None:
    if geo_origin is None:
        return None
    values = tuple(float(value) for value in geo_origin)
    if len(values) != 3 or not all(math.isfinite(value) for value in values):
        raise TerrainFormatError(
            f"geo_origin is {geo_origin}, "
            "expected finite latitude, longitude (degrees), altitude (m)"
        )
    return values[0], values[1], values[2]


def _frozen(heights: NDArray[Any]) -> NDArray[np.float32]:
    """Return the heights as read-only, contiguous float32.

    This is the array itself where it cannot be written to, else a copy.
    """
    fits = heights.dtype == np.float32 and heights.flags.c_contiguous and heights.flags.aligned
    if not (fits and _is_read_only(heights)):
        # what float32 cannot hold becomes infinite and is refused by name
        with np.errstate(over="ignore"):
            heights = np.array(heights, dtype=np.float32, order="C")
        heights.flags.writeable = False
    return heights.view(np.ndarray)  # a view of a read-only array cannot be made writable again


def _is_read_only(array: Any) -> bool:
    """Return whether neither the array nor one that it is a view of can be written to."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return array is None or isinstance(array, bytes)
