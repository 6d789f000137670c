# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Ray casting against a height map: checks of arguments, threads, hit points and lines of sight.

The conventions are those of `Terrain.cast`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Bools, Floats
from rfly_terrain.height_map import arguments
from rfly_terrain.height_map.ray_pyramid import pyramid_of

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.height_map.terrain import Terrain

CHUNK = 2_048
"""Rays that a thread takes at once, about 0.7 ms of work."""

START_LEVEL = 3
"""Level of the pyramid on which a ray begins, with blocks of 32 x 32 cells.

From the root near rays would take more steps down; from small blocks far rays would take more up.
"""

EARTH_RADIUS = 6_371_000.0
"""Mean radius of the Earth, m."""
RADIO_EARTH_RADIUS = EARTH_RADIUS * 4.0 / 3.0
"""Radius of the Earth over which radio waves run straight, m.

The usual refraction of the air bends them (ITU-R P.310: effective Earth-radius factor k = 4/3), so
that the horizon of an antenna h metres high is at 4.12 √h km.
"""
SIGHT_EARTH_RADIUS = EARTH_RADIUS / (1.0 - 0.13)
"""Radius of the Earth over which light runs straight, m: 0.13 is Gauss's coefficient of refraction
by day, and a horizon is at 3.83 √h km.
"""
SMALLEST_EARTH_RADIUS = 1e6
PIECE = 1_000.0
"""Length of the straight pieces of a line over a round Earth, m: they are 17 mm off at most."""
MAX_PIECES = 1_000


def cast(
    terrain: Terrain,
    origins: ArrayLike,
    directions: ArrayLike,
    max_range: ArrayLike,
    normals: bool,
) -> tuple[Floats, Floats | None]:
    """Return ranges (…,) and, if wanted, normals (…, 3), else None; see `Terrain.cast`."""
    names = ("origins", "directions", "max_range")
    arrays = [
        arguments.real_array(*pair)
        for pair in zip(names, (origins, directions, max_range), strict=True)
    ]
    for name, array in zip(names[:2], arrays[:2], strict=True):
        if array.ndim == 0 or array.shape[-1] != 3:
            raise ValueError(f"{name}: expected shape (…, 3), got {array.shape}")
    shape = arguments.common_shape(
        names, arrays, (arrays[0].shape[:-1], arrays[1].shape[:-1], arrays[2].shape)
    )

    # one or two types of numbers, for which kernels are compiled
    single = arrays[0].dtype == arrays[1].dtype == np.float32
    dtypes = (*(2 * [np.float32 if single else np.float64]), np.float64)
    rows = [
        _rows(array, shape, trailing, dtype)
        for array, trailing, dtype in zip(arrays, ((3,), (3,), ()), dtypes, strict=True)
    ]

    count = int(np.prod(shape))
    ranges = np.empty(count)
    # a shape (0, 3) makes the kernel leave normals out
    out = np.empty((count, 3) if normals else (0, 3))
    if count and not terrain._cast(rows, ranges, out):
        _refuse(*arrays)
    return ranges.reshape(shape), out.reshape((*shape, 3)) if normals else None


def cast_over(
    height_map: HeightMap, inputs: list[NDArray[Any]], ranges: Floats, normals: Floats
) -> bool:
    """Write ranges and normals of origins, directions and lengths; return False for a bad one."""
    from rfly_terrain.height_map import ray_kernels

    pyramid = pyramid_of(height_map)
    surface = (height_map.ground, height_map.z_max)

    def work(start: int, stop: int) -> bool:
        rays = ray_kernels.Rays(
            *(array if len(array) == 1 else array[start:stop] for array in inputs)
        )
        return bool(
            ray_kernels.cast(
                *surface, pyramid, START_LEVEL, rays, ranges[start:stop], normals[start:stop]
            )
        )

    return arguments.all_in_chunks(work, ranges.size, CHUNK)


def _rows(
    array: NDArray[Any], shape: tuple[int, ...], trailing: tuple[int, ...], dtype: Any
) -> NDArray[Any]:
    """Return (n, *trailing), or (1, *trailing) where one serves all.

    An origin need not be repeated for a whole sweep.
    """
    if array.size != np.prod(trailing, dtype=int):
        array = np.broadcast_to(array, (*shape, *trailing))
    return arguments.for_kernels(array, dtype, (-1, *trailing))


def _refuse(origins: NDArray[Any], directions: NDArray[Any], max_range: NDArray[Any]) -> None:
    """Raise ValueError for the first number that no ray can be cast with, as a kernel met one."""
    arguments.check_finite(("origins", "directions"), (origins, directions))
    zero = np.argwhere(~directions.any(axis=-1))
    if len(zero):
        raise ValueError(
            f"{arguments.element('directions', zero[0])} is 0, 0, 0: a ray needs a direction"
        )
    bad = np.argwhere(~(max_range >= 0.0))
    if len(bad):
        where = arguments.element("max_range", bad[0])
        raise ValueError(f"{where} is {max_range[tuple(bad[0])]}, expected 0 or more metres")


def hit_points(origins: ArrayLike, directions: ArrayLike, ranges: ArrayLike) -> Floats:
    """Return the points (…, 3) where rays end after `ranges` metres; NaN for a miss.

    Directions have any length, as `Terrain.cast` takes them.
    """
    start, along, length = (
        np.asarray(value, dtype=np.float64) for value in (origins, directions, ranges)
    )
    with np.errstate(invalid="ignore"):
        # squares of the largest floats would overflow
        unit = along / np.abs(along).max(axis=-1, keepdims=True)
        unit /= np.linalg.norm(unit, axis=-1, keepdims=True)
        points: Floats = start + np.where(np.isfinite(length), length, np.nan)[..., None] * unit
    return points


def line_of_sight(
    terrain: Terrain, a: ArrayLike, b: ArrayLike, tolerance: float, earth_radius: float
) -> Bools:
    """Return whether the ground leaves lines free; see `Terrain.line_of_sight`."""
    start, end = (
        arguments.real_array(name, value).astype(np.float64) for name, value in (("a", a), ("b", b))
    )
    for name, points in (("a", start), ("b", end)):
        if points.ndim == 0 or points.shape[-1] != 3:
            raise ValueError(f"{name}: expected shape (…, 3), got {points.shape}")
        arguments.check_finite((name,), (points,))
    if not 0.0 <= tolerance < np.inf:
        raise ValueError(f"tolerance is {tolerance}, expected 0 or more metres")
    if not earth_radius >= SMALLEST_EARTH_RADIUS:  # nor NaN
        raise ValueError(
            f"earth_radius is {earth_radius}, expected metres from {SMALLEST_EARTH_RADIUS:g} up, "
            "infinite for a level Earth"
        )
    try:
        along = end - start
    except ValueError:
        raise ValueError(f"shapes do not broadcast: a {start.shape}, b {end.shape}") from None

    # pieces of the line as it lies over an Earth that is as level as the map
    distance = np.hypot(along[..., 0], along[..., 1])
    longest = float(distance.max(initial=0.0)) if np.isfinite(earth_radius) else 0.0
    ends = np.linspace(0.0, 1.0, int(np.clip(np.ceil(longest / PIECE), 1, MAX_PIECES)) + 1)
    sag = np.zeros((*distance.shape, 3))
    sag[..., 2] = distance**2 / (2.0 * earth_radius)
    free: Bools = np.ones(distance.shape, bool)
    before = start
    for share in ends[1:].tolist():
        after = start + share * along - share * (1.0 - share) * sag
        free &= _is_free(terrain, before, after, tolerance)
        before = after
    return free


def _is_free(terrain: Terrain, start: Floats, end: Floats, tolerance: float) -> Bools:
    """Return whether the ground leaves straight lines free."""
    along = end - start
    length = np.linalg.norm(along, axis=-1)
    along[length == 0.0] = (0.0, 0.0, -1.0)  # a point sees itself unless it lies in the ground
    ranges, _ = cast(terrain, start + np.array((0.0, 0.0, tolerance)), along, length, False)
    return np.isinf(ranges)
