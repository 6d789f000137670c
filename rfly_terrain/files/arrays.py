# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Height maps from and to NumPy files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rfly_common.errors import ConfigError, TerrainFormatError
from rfly_common.files import MAX_CELLS, StrPath, open_regular, open_whole, write_array
from rfly_common.geodesy import geo_point
from rfly_common.untrusted_files.numpy_files import (
    ArrayHeader,
    NpzReader,
    read_npy_header,
    read_npy_values,
)
from rfly_common.untrusted_files.reader_errors import reader_errors, terrain_file_errors
from rfly_terrain.files.gaps import (
    Gaps,
    GapSearch,
    HeightScale,
    Nodata,
    check_gaps,
    drop_voids,
    fill_gaps,
    holds_number,
)
from rfly_terrain.height_map.height_map import HeightMap

_ReadValues = Callable[[str, type[np.number[Any]], int], NDArray[Any]]
_MAX_FILE_BYTES = 8 * MAX_CELLS + 65_536
"""Size of a file, at most, bytes."""
_ROWS_AT_ONCE = 256
_MAX_ROWS = 1_000_000
"""Coordinates of an axis, at most."""


def import_array(
    path: StrPath,
    *,
    cell_size: tuple[float, float] | None = None,
    key: str | None = None,
    first_row: Literal["north", "south"] = "north",
    geo_origin: tuple[float, float, float] | None = None,
    metres: float = 1.0,
    nodata: Nodata = None,
    fill_nodata: bool = False,
    name: str | None = None,
    on_read: Callable[[Gaps], None] | None = None,
) -> HeightMap:
    """Return a height map from a .npy or .npz file of heights, z up.

    The array is an elevation raster: columns run west to east, `first_row` is its northern edge (as
    usual) or its southern one. Its middle becomes x = y = 0. cell_size: (east, north) m from one
    cell to the next; an .npz of `write_npz` needs none. key: the array of an .npz; by default the
    only one with two dimensions. metres: unit of the heights, m. nodata, fill_nodata: numbers that
    are no heights, as in `import_dem`. on_read: called with the cells without a height.

    Raises TerrainFileNotFound, TerrainFormatError (the file), ConfigError (an argument). Nothing is
    unpickled.
    """
    path = Path(path)
    name = name or path.stem
    if cell_size is not None and not all(0 < size < np.inf for size in cell_size):
        raise ConfigError(
            f"cell size {cell_size[0]} x {cell_size[1]}: expected two lengths above 0 m"
        )
    if geo_origin is not None:
        geo_origin = geo_point(geo_origin, "geo_origin")
    with _opened(path) as (headers, read):
        if cell_size is None:
            if not {"heights_up", "x_east", "y_north"} <= headers.keys():
                raise ConfigError(
                    f"{path}: holds heights alone; say how large a cell is, such as "
                    "--cell-size 10 10 (m)"
                )
            key = "heights_up"
            heights, origin, step = _read_own_npz(path, headers, read)
            place = headers.get("geo_origin")
            if geo_origin is None and place is not None and place.shape == (3,):
                values = read("geo_origin", np.float64, 3).tolist()
                geo_origin = geo_point(values, f"{path}: geo_origin")
        else:
            key = _choose(path, headers, key)
            raster = read(key, np.float32, MAX_CELLS)
            if min(raster.shape) < 2:
                rows, columns = raster.shape
                raise TerrainFormatError(
                    f"{path}: {rows} x {columns} heights, expected at least 2 x 2"
                )
            heights = np.ascontiguousarray((raster[::-1] if first_row == "north" else raster).T)
            step = cell_size
            origin = -(heights.shape[0] - 1) * step[0] / 2, -(heights.shape[1] - 1) * step[1] / 2

    scale = HeightScale(metres)
    gaps = _drop_gaps(heights, scale, headers[key].dtype, nodata, path)
    check_gaps(gaps, fill_nodata, path, "")
    fill_gaps(heights)
    if on_read is not None:
        on_read(gaps)

    try:
        return HeightMap(
            heights,
            origin_x=origin[0],
            origin_y=origin[1],
            step_x=step[0],
            step_y=step[1],
            name=name,
            geo_origin=geo_origin,
        )
    except TerrainFormatError as error:
        raise TerrainFormatError(f"{path}: {error}") from None


def _drop_gaps(
    heights: NDArray[np.float32],
    scale: HeightScale,
    dtype: np.dtype[Any],
    nodata: Nodata,
    path: Path,
) -> Gaps:
    """Make metres of the numbers of an array of a type, and NaN of those that are no heights."""
    suspects = None if nodata == "none" else scale.suspects(dtype)
    search = GapSearch(path, scale, suspects)
    for start in range(0, len(heights), _ROWS_AT_ONCE):
        block = heights[start : start + _ROWS_AT_ONCE]
        if isinstance(nodata, float | int):
            block[holds_number(block, nodata)] = np.nan
        block[...] = scale.heights(block)
        search.add(block.copy())

    if search.voids is not None:
        drop_voids(heights, search.voids)
    return search.result()


def write_npy(height_map: HeightMap, path: StrPath) -> None:
    """Write (rows, columns) float32 heights, z up, as a raster.

    Row 0 is the northern edge; columns run west to east.
    """
    write_array(path, north_up(height_map, height_map.heights))


def write_npz(height_map: HeightMap, path: StrPath) -> None:
    """Write a compressed file with the heights and the axes of a map.

    The arrays are heights_up[i, j] (float32, m) at x_east[i], y_north[j] (m), and geo_origin if the
    map has one.
    """
    extra: dict[str, Any] = {}
    if height_map.geo_origin is not None:
        extra["geo_origin"] = np.array(height_map.geo_origin)
    with open_whole(path) as file:
        np.savez_compressed(
            file,
            heights_up=height_map.heights,
            x_east=height_map.origin_x + np.arange(height_map.rows) * height_map.step_x,
            y_north=height_map.origin_y + np.arange(height_map.columns) * height_map.step_y,
            **extra,
        )


def north_up(height_map: HeightMap, values: NDArray[Any]) -> NDArray[Any]:
    """Return values of a map's samples, (rows, columns), in the order of images and rasters.

    Row 0 is the northern edge; columns run west to east.
    """
    raster = values.T
    return np.ascontiguousarray(
        raster[:: -1 if height_map.step_y > 0 else 1, :: 1 if height_map.step_x > 0 else -1]
    )


@contextmanager
def _opened(path: Path) -> Iterator[tuple[dict[str, ArrayHeader], _ReadValues]]:
    """Yield the headers of a file's arrays by name, and a function that reads one of the arrays.

    The name in a .npy is empty. Raises TerrainFileNotFound, and TerrainFormatError for any fault of
    the file.
    """
    ending = path.suffix.lower()
    if ending not in (".npy", ".npz"):
        raise ConfigError(f"{path}: expected a .npy or .npz file")

    with terrain_file_errors(path):
        file = open_regular(path, _MAX_FILE_BYTES)

    with (
        file,
        reader_errors(
            lambda text: TerrainFormatError(f"{path}: cannot be read as NumPy arrays: {text}")
        ),
    ):
        if ending == ".npy":
            header = read_npy_header(file)
            yield {"": header}, lambda name, dtype, most: read_npy_values(file, header, dtype, most)
        else:
            archive = NpzReader(file)
            yield archive.headers, archive.read


def _choose(path: Path, arrays: dict[str, ArrayHeader], key: str | None) -> str:
    """Return the name of the array of heights."""
    if key is not None and key not in arrays:
        raise ConfigError(
            f"{path}: holds no array {key!r}, "
            f"only {', '.join(filter(None, arrays)) or 'one without a name'}"
        )

    candidates = [name for name, array in arrays.items() if len(array.shape) == 2 and array.numbers]
    if key is None and len(candidates) != 1:
        shapes = ", ".join(f"{name or 'the array'} {array}" for name, array in arrays.items())
        raise ConfigError(
            f"{path}: {len(candidates)} arrays with rows and columns ({shapes}); "
            "choose one with --key"
        )

    chosen = candidates[0] if key is None else key
    if chosen not in candidates:
        raise TerrainFormatError(
            f"{path}: {key} is {arrays[chosen]}, expected numbers in rows and columns"
        )
    return chosen


def _read_own_npz(
    path: Path, headers: dict[str, ArrayHeader], read: _ReadValues
) -> tuple[NDArray[Any], tuple[float, float], tuple[float, float]]:
    """Return heights, origin (x, y) and steps (x, y), m, of a file of `write_npz`."""
    x_shape, y_shape, shape = (headers[key].shape for key in ("x_east", "y_north", "heights_up"))
    if len(x_shape) != 1 or len(y_shape) != 1 or shape != (*x_shape, *y_shape) or min(shape) < 2:
        raise TerrainFormatError(
            f"{path}: heights_up {shape} at {x_shape} x_east and {y_shape} y_north"
        )

    starts = []
    steps = []
    for axis in ("x_east", "y_north"):
        values = read(axis, np.float64, _MAX_ROWS)
        gaps = np.diff(values)
        if not (np.isfinite(values).all() and np.allclose(gaps, gaps.mean(), rtol=1e-6, atol=0)):
            raise TerrainFormatError(f"{path}: {axis} is not evenly spaced")
        starts.append(float(values[0]))
        steps.append((float(values[-1]) - float(values[0])) / (values.size - 1))

    return read("heights_up", np.float32, MAX_CELLS), (starts[0], starts[1]), (steps[0], steps[1])
