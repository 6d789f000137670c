"""Height maps from and to NumPy files."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rfly_common.errors import ConfigError, TerrainFileNotFound, TerrainFormatError
from rfly_common.files import MAX_CELLS, StrPath
from rfly_terrain.height_map.height_map import HeightMap

_BYTES_A_CELL = 8
_MAX_MEMBER_BYTES = MAX_CELLS * _BYTES_A_CELL + 65_536


def import_array(
    path: StrPath,
    *,
    cell_size: tuple[float, float] | None = None,
    key: str | None = None,
    first_row: Literal["north", "south"] = "north",
    geo_origin: tuple[float, float, float] | None = None,
    name: str | None = None,
) -> HeightMap:
    """A height map from a .npy or .npz file of heights in metres, z up.

    The array is taken as an elevation raster: columns run west to east, `first_row` is its northern edge (as usual) or
    its southern one. Its middle becomes x = y = 0.
    cell_size: (east, north) m from one cell to the next; only an .npz that `write_npz` made does without.
    key: the array of an .npz; by default the only one with two dimensions.

    Raises TerrainFileNotFound, TerrainFormatError (the file), ConfigError (an argument). Nothing is unpickled.
    """
    path = Path(path)
    arrays = _read(path)
    name = name or path.stem
    if cell_size is None:
        if not {"heights_up", "x_east", "y_north"} <= arrays.keys():
            raise ConfigError(f"{path}: holds heights alone; say how large a cell is, such as --cell-size 10 10 (m)")
        return _from_own_npz(path, arrays, geo_origin, name)
    if not all(0 < size < np.inf for size in cell_size):
        raise ConfigError(f"cell size {cell_size[0]} x {cell_size[1]}: expected two lengths above 0 m")
    raster = _choose(path, arrays, key)
    south_up = raster[::-1] if first_row == "north" else raster
    heights = np.ascontiguousarray(south_up.T)
    with _named(path):
        return HeightMap(
            heights,
            origin_x=-(heights.shape[0] - 1) * cell_size[0] / 2,
            origin_y=-(heights.shape[1] - 1) * cell_size[1] / 2,
            step_x=cell_size[0],
            step_y=cell_size[1],
            name=name,
            geo_origin=geo_origin,
        )


def write_npy(height_map: HeightMap, path: StrPath) -> None:
    """(rows, columns) float32 heights, z up, as a raster: row 0 the northern edge, columns west to east."""
    with Path(path).open("wb") as file:
        np.save(file, north_up(height_map))


def write_npz(height_map: HeightMap, path: StrPath) -> None:
    """Compressed: heights_up[i, j] (float32, m) at x_east[i], y_north[j] (m), and geo_origin where the map has one."""
    extra: dict[str, Any] = {} if height_map.geo_origin is None else {"geo_origin": np.array(height_map.geo_origin)}
    with Path(path).open("wb") as file:
        np.savez_compressed(
            file,
            heights_up=height_map.heights,
            x_east=height_map.origin_x + np.arange(height_map.rows) * height_map.step_x,
            y_north=height_map.origin_y + np.arange(height_map.columns) * height_map.step_y,
            **extra,
        )


def north_up(height_map: HeightMap) -> NDArray[np.float32]:
    """The heights as an image or raster has them: row 0 the northern edge, columns west to east."""
    raster = height_map.heights.T
    return np.ascontiguousarray(raster[:: -1 if height_map.step_y > 0 else 1, :: 1 if height_map.step_x > 0 else -1])


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Puts the file before the text of what HeightMap refuses."""
    try:
        yield
    except TerrainFormatError as error:
        raise TerrainFormatError(f"{path}: {error}") from None


def _read(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a file by name; that of a .npy has none. Sizes are checked before anything is unpacked."""
    if not path.is_file():
        raise TerrainFileNotFound(f"{path}: no such file")
    if path.suffix.lower() not in (".npy", ".npz"):
        raise ConfigError(f"{path}: expected a .npy or .npz file")
    try:
        if path.suffix.lower() == ".npy":
            _check_size(path, path.name, path.stat().st_size)
            array = np.load(path, mmap_mode="r", allow_pickle=False)
            if not isinstance(array, np.ndarray):
                raise TerrainFormatError(f"{path}: is a zip file of arrays, expected one array; name it .npz")
            return {"": array}
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                _check_size(path, member.filename, member.file_size)
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, KeyError, MemoryError, zipfile.BadZipFile, NotImplementedError) as error:
        if isinstance(error, TerrainFormatError):
            raise
        raise TerrainFormatError(f"{path}: cannot be read as NumPy arrays: {' '.join(str(error).split())}") from error


def _check_size(path: Path, member: str, size: int) -> None:
    if size > _MAX_MEMBER_BYTES:
        raise TerrainFormatError(f"{path}: {member} is {size:,} bytes, expected heights of at most {MAX_CELLS:,} cells")


def _choose(path: Path, arrays: dict[str, NDArray[Any]], key: str | None) -> NDArray[Any]:
    if key is not None and key not in arrays:
        raise ConfigError(
            f"{path}: holds no array {key!r}, only {', '.join(filter(None, arrays)) or 'one without a name'}"
        )
    candidates = [name for name, array in arrays.items() if array.ndim == 2 and array.dtype.kind in "fiu"]
    if key is None and len(candidates) != 1:
        shapes = ", ".join(f"{name or 'the array'} {array.dtype}{array.shape}" for name, array in arrays.items())
        raise ConfigError(f"{path}: {len(candidates)} arrays with rows and columns ({shapes}); choose one with --key")
    chosen = arrays[candidates[0] if key is None else key]
    if chosen.ndim != 2 or chosen.dtype.kind not in "fiu":
        raise TerrainFormatError(f"{path}: {key} is {chosen.dtype}{chosen.shape}, expected numbers in rows and columns")
    return chosen


def _from_own_npz(
    path: Path, arrays: dict[str, NDArray[Any]], geo_origin: tuple[float, float, float] | None, name: str
) -> HeightMap:
    x, y, heights = (arrays[key] for key in ("x_east", "y_north", "heights_up"))
    if x.ndim != 1 or y.ndim != 1 or heights.shape != (x.size, y.size) or min(heights.shape) < 2:
        raise TerrainFormatError(f"{path}: heights_up {heights.shape} at {x.shape} x_east and {y.shape} y_north")
    steps = []
    for axis, values in (("x_east", x), ("y_north", y)):
        gaps = np.diff(values.astype(float))
        if not np.allclose(gaps, gaps.mean(), rtol=1e-6, atol=0):
            raise TerrainFormatError(f"{path}: {axis} is not evenly spaced")
        steps.append((float(values[-1]) - float(values[0])) / (values.size - 1))
    stored = arrays.get("geo_origin")
    if geo_origin is None and stored is not None and stored.shape == (3,):
        geo_origin = (float(stored[0]), float(stored[1]), float(stored[2]))
    with _named(path):
        return HeightMap(
            heights,
            origin_x=float(x[0]),
            origin_y=float(y[0]),
            step_x=steps[0],
            step_y=steps[1],
            name=name,
            geo_origin=geo_origin,
        )
