# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""HeightMap: the ground as a grid of heights, with altitude, normal, ray and cloud queries."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Floats
from rfly_common.config.checks import check_unmasked, finite_number
from rfly_common.errors import TerrainFormatError
from rfly_common.files import MAX_CELLS
from rfly_terrain.height_map.arguments import check_finite, flat_arrays, run
from rfly_terrain.height_map.ground import GroundGrid, ground_of_grid, level_ground
from rfly_terrain.height_map.point_cloud import Region, point_cloud
from rfly_terrain.height_map.scalar import altitude_of, surface_at
from rfly_terrain.height_map.terrain import Terrain, finite_floats

if TYPE_CHECKING:
    from rfly_common.files import StrPath
    from rfly_terrain.height_map.ray_pyramid import Pyramid
    from rfly_terrain.map_files.calibration import ThirdPixelRule
    from rfly_terrain.map_files.png_txt import RflySimMap


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


class HeightMap(Terrain):
    """Immutable terrain of (rows, columns) samples, in ENU metres.

    `heights[r, c]` lies at

        x_east = origin_x + r·step_x,  y_north = origin_y + c·step_y.

    Between the samples the surface is bilinear. This is the layout of RflySim's png, whose rows run
    along east and whose columns run along north. Heights are float32, arithmetic is float64
    whatever the type of the coordinates.

    Points off the map are clamped, each axis on its own, and get the altitude of the edge, as in
    RflySim's tools. The queries are those of `Terrain`.
    """

    heights: NDArray[np.float32]
    """Heights, (rows, columns), m, z up; read-only."""
    _pyramid: Pyramid | None = None

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
        for heights, origin, steps or geo_origin that are not finite or masked, for a step of 0, and
        for a latitude beyond a pole.
        """
        check_unmasked("heights_up", heights_up, TerrainFormatError)
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

    @functools.cached_property
    def sha256(self) -> str:
        """SHA-256 (hexadecimal) of the heights as little-endian float32, row by row."""
        return hashlib.sha256(self.heights.astype("<f4", copy=False).data).hexdigest()

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

    def is_loaded(self, x: ArrayLike, y: ArrayLike) -> bool:
        """Return True: all samples are in memory."""
        return True

    def prepare(self, x: Floats, y: Floats) -> None:
        """Read nothing: all samples are in memory."""

    def window(self, x: float, y: float, samples: int) -> HeightMap:
        """Return the map itself."""
        return self

    def detail(self, region: Region, samples: int, tell: Callable[[str], None]) -> HeightMap:
        """Return the map itself."""
        return self

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

    def _surface_at(
        self, names: tuple[str, str], x: Any, y: Any
    ) -> tuple[float, float, float, bool, bool]:
        return surface_at(self.ground, *finite_floats(names, (x, y)))

    def _run(
        self,
        kernel: str,
        names: Sequence[str],
        values: Sequence[Any],
        outputs: Sequence[tuple[Any, type]],
        *options: Any,
    ) -> list[NDArray[Any]]:
        return run(kernel, self.ground, names, values, outputs, *options)

    def _cast(self, inputs: list[NDArray[Any]], ranges: Floats, normals: Floats) -> bool:
        from rfly_terrain.height_map import ray_cast

        return ray_cast.cast_over(self, inputs, ranges, normals)

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
            "cut or thin the map, or make tiles of its source with `rfly terrain tile`"
        )
    return heights


def _checked_geo_origin(geo_origin: Sequence[float] | None) -> tuple[float, float, float] | None:
    if geo_origin is None:
        return None
    values = tuple(float(value) for value in geo_origin)
    is_finite = len(values) == 3 and all(math.isfinite(value) for value in values)
    if not is_finite or abs(values[0]) > 90.0:
        raise TerrainFormatError(
            f"geo_origin is {geo_origin}, "
            "expected finite latitude within ±90, longitude (degrees), altitude (m)"
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


def ground_of(terrain: HeightMap | None) -> GroundGrid:
    """Return the ground of a terrain, with the least z of its smooth normals.

    None is level and endless ground at z = 0.
    """
    if terrain is None:
        return level_ground()
    return terrain.ground._replace(least_normal_z=_least_normal_z(terrain))


def _least_normal_z(terrain: HeightMap) -> float:
    """Return a lower bound of z of the smooth unit normals.

    A smooth gradient is a mean of gradients at the vertices, so none exceeds the largest of them.
    """
    steepest = 0.0
    for axis, step in ((0, terrain.step_x), (1, terrain.step_y)):
        # one-sided differences bound central ones, their mean
        largest = 0.0
        for block in _blocks(terrain.heights, axis):
            differences = np.diff(block.astype(np.float64), axis=axis)
            largest = max(largest, float(np.abs(differences).max(initial=0.0)))
        steepest += (largest / step) ** 2
    return float(0.999999 / np.sqrt(1.0 + steepest))


def _blocks(heights: NDArray[np.float32], axis: int) -> list[NDArray[np.float32]]:
    """Return pieces of 512 rows or columns that overlap by one: their copies stay small."""
    size = heights.shape[axis]
    pieces = []
    for start in range(0, size - 1, 512):
        stop = min(start + 512 + 1, size)
        pieces.append(heights.take(range(start, stop), axis=axis))
    return pieces
