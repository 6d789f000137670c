# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""LoadPngData and getTerrainAltData: RflySim's two MATLAB tools as functions.

They have the tools' search, rounding and file. Axes: x north, y east, z down, metres. The third
point of the txt is rounded to a pixel. All values are double precision.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats
from rfly_common.errors import TerrainFileNotFound, TerrainFormatError, TerrainNotLoaded
from rfly_common.files import MAX_CELLS, StrPath, open_regular
from rfly_common.frames import up_to_down
from rfly_common.untrusted_files.mat_size import check_unpacked_size
from rfly_common.untrusted_files.reader_errors import reader_errors
from rfly_terrain.map_files.calibration import calibrate, heights_up
from rfly_terrain.map_files.png_txt import read_header, read_pair
from rfly_terrain.map_files.search import (
    MATLAB_MAP_FOLDERS,
    MapFiles,
    existing_file,
    find_in_folders,
    installation_folders,
    search_folders,
)

MAT_FILE = "MapHeightData.mat"
DEFAULT_MAP = "MountainTerrain"
_logger = logging.getLogger(__name__)
_NUMBERS = ("PosOffsetX", "PosScaleX", "PosOffsetY", "PosScaleY")


class _MapHeightData(NamedTuple):
    """Variables of MapHeightData.mat: binmap in metres, the others in cm and cm a pixel."""

    binmap: Floats
    PosOffsetX: float
    PosScaleX: float
    PosOffsetY: float
    PosScaleY: float


class _Cache:
    """Map of `getTerrainAltData`, kept between calls."""

    data: _MapHeightData | None = None


def LoadPngData(pngMapName: StrPath = DEFAULT_MAP, *, search_further: bool = False) -> None:
    r"""Read a map, and save its binmap and calibration to MapHeightData.mat in the current folder.

    Variables: binmap (rows, columns; m, z down), PosOffsetX, PosScaleX, PosOffsetY, PosScaleY (cm,
    cm a pixel).

    It finds what MATLAB's tool finds, and fails where that fails: the name is one without an
    extension, the png counts that lies first in map\, ..\..\CopterSim\external\map or the
    installation's CopterSim\external\map, its txt lies next to it, and it is grey. With
    `search_further` the name may also be a path or have an extension, all other places of
    `find_map` follow (the maps of this package too), a png without a txt is passed over, and colour
    becomes grey. A map that `getTerrainAltData` has read before stays until `clear_terrain`.

    Raises TerrainFileNotFound, TerrainFormatError.
    """
    from scipy.io import savemat

    folders = [*MATLAB_MAP_FOLDERS, *installation_folders()]
    if search_further:
        files = find_in_folders(pngMapName, [*folders, *search_folders()])
    else:
        files = _find_as_matlab(os.fspath(pngMapName), folders)
    points, pixels = read_pair(files, "matlab")
    calibration = calibrate(points, pixels, str(files.txt), "round")
    binmap: Floats = up_to_down(heights_up(calibration, pixels, np.float64))

    data = _MapHeightData(
        binmap,
        calibration.pos_offset_x_cm,
        calibration.pos_scale_x_cm,
        calibration.pos_offset_y_cm,
        calibration.pos_scale_y_cm,
    )
    savemat(MAT_FILE, data._asdict())
    kept = _Cache.data
    if kept is not None and not (kept[1:] == data[1:] and np.array_equal(kept.binmap, data.binmap)):
        _logger.warning(
            "getTerrainAltData still answers for the map that it has read before; "
            "rfly_terrain.clear_terrain() makes it read %s",
            files.png,
        )


@overload
def getTerrainAltData(xin: float, yin: float) -> float: ...
@overload
def getTerrainAltData(xin: ArrayLike, yin: ArrayLike) -> Floats: ...
def getTerrainAltData(xin: Any, yin: Any) -> Any:
    """Return z of the ground (m, down) at xin north, yin east.

    It is a float for two numbers, else an array of their common shape. Outside the map each axis is
    clamped to the edge. MapHeightData.mat of the current folder is read at the first call and kept.
    After another `LoadPngData` call `clear_terrain()`, as MATLAB users call `clear
    getTerrainAltData`.

    Raises TerrainNotLoaded if there is no such file, TerrainFormatError if it holds no map,
    ValueError for NaN or infinity.
    """
    if _Cache.data is None:
        _Cache.data = _read_mat(Path(MAT_FILE))
    binmap, offset_x, scale_x, offset_y, scale_y = _Cache.data
    x, y = np.broadcast_arrays(np.asarray(xin, float), np.asarray(yin, float))
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError(f"getTerrainAltData: x {xin}, y {yin}: expected finite metres")

    last_row = binmap.shape[0] - 1
    last_column = binmap.shape[1] - 1
    u = np.clip((100.0 * x - offset_x) / scale_x, 0.0, last_column)
    v = np.clip((100.0 * y - offset_y) / scale_y, 0.0, last_row)
    column = np.minimum(u.astype(np.intp), last_column - 1)
    row = np.minimum(v.astype(np.intp), last_row - 1)

    a = u - column
    b = v - row
    first = binmap[row, column] * (1 - a) + binmap[row, column + 1] * a
    second = binmap[row + 1, column] * (1 - a) + binmap[row + 1, column + 1] * a
    z = first * (1 - b) + second * b
    return float(z) if z.ndim == 0 else z


GetTerrainAltData = getTerrainAltData
"""The same function, as RflySim's manual also spells it."""


def _find_as_matlab(name: str, folders: Sequence[Path]) -> MapFiles:
    """Return the files of a map in the first folder that holds its png, as MATLAB's tool does.

    Raises TerrainFileNotFound, also for a png without its txt, and TerrainFormatError for a colour
    image.
    """
    further = " (LoadPngData(name, search_further=True) takes more than MATLAB's tool)"
    has_extension = name[-4:].lower() in (".png", ".txt")
    if not name or "\0" in name or has_extension or Path(name).is_absolute():
        raise TerrainFileNotFound(
            f"map {name!r}: expected a name without folder and extension, such as {DEFAULT_MAP}"
            f"{further}"
        )

    stems = [folder / name for folder in folders]
    stem = next((stem for stem in stems if existing_file(stem, ".png")), None)
    if stem is None:
        looked = "; ".join(os.path.abspath(folder) for folder in folders)
        raise TerrainFileNotFound(f"map {name!r} not found: no {name}.png in {looked}{further}")
    files = find_in_folders(os.path.abspath(stem), [])
    if not read_header(files.png).is_grey:
        raise TerrainFormatError(f"{files.png}: a colour picture, expected grey{further}")
    return files


def clear_terrain() -> None:
    """Forget the map of `getTerrainAltData`: the next call reads MapHeightData.mat again."""
    _Cache.data = None


def _read_mat(path: Path) -> _MapHeightData:
    """Return the variables of MapHeightData.mat; sizes are checked before the data is read."""
    from scipy.io import loadmat, whosmat

    if not path.is_file():
        raise TerrainNotLoaded(
            f"{path.absolute()}: no such file; call LoadPngData(name) in this folder first"
        )
    with reader_errors(
        lambda text: TerrainFormatError(
            f"{path.absolute()}: cannot be read as LoadPngData writes it ({text}); "
            "call LoadPngData(name) again"
        )
    ):
        with open_regular(path, 8 * MAX_CELLS) as file:
            check_unpacked_size(file, 9 * MAX_CELLS)
            shapes = {name: shape for name, shape, _ in whosmat(file)}
            file.seek(0)
            for name, most in (("binmap", MAX_CELLS), *((name, 1) for name in _NUMBERS)):
                if math.prod(shapes[name]) > most:
                    raise ValueError(
                        f"{name} has the shape {shapes[name]}, expected at most {most:,} numbers"
                    )
            variables = loadmat(file, variable_names=("binmap", *_NUMBERS))
        binmap = np.array(variables["binmap"], np.float64, order="C")
        numbers = [np.array(variables[name], np.float64).item() for name in _NUMBERS]

    finite = np.isfinite(binmap).all() and np.isfinite(numbers).all()
    if binmap.ndim != 2 or min(binmap.shape) < 2 or not finite:
        raise TerrainFormatError(
            f"{path.absolute()}: binmap {binmap.shape} is no finite map of at least 2 x 2"
        )
    if numbers[1] == 0 or numbers[3] == 0:
        raise TerrainFormatError(
            f"{path.absolute()}: PosScaleX {numbers[1]}, PosScaleY {numbers[3]}, "
            "expected other than 0"
        )

    return _MapHeightData(binmap, *numbers)
