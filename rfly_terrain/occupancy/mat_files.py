"""Maps in MATLAB's .mat files, such as exampleMaps.mat: matrices by name."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rfly_common.errors import TerrainFileNotFound, TerrainFormatError
from rfly_common.files import MAX_CELLS, StrPath, open_regular
from rfly_common.readers.mat_size import check_unpacked_size
from rfly_common.readers.reader_errors import reader_errors

EXAMPLE_MAPS = "exampleMaps.mat"
"""MATLAB's own file of that name; where there is none, `load_mat_maps` gives maps of our own under its names"""
MAX_MAPS = 100
MAX_BYTES = 4 * MAX_CELLS
"""of a file, and of what its packed matrices become"""
_NUMERIC = frozenset(
    {"logical", "double", "single"} | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
"""classes of MATLAB that are read; no cells, structures, objects or functions"""

Maps = dict[str, NDArray[np.generic]]


def load_mat_maps(path: StrPath) -> Maps:
    """The matrices (2-D, of numbers or logicals) of a .mat file by name; other variables are left out.

    The extension may be missing. "exampleMaps.mat" where there is no such file: `simpleMap`, `complexMap` and
    `ternaryMap` of our own. Raises TerrainFileNotFound, TerrainFormatError for a damaged file, one without a matrix,
    and one with more than 100 or with more than 100,000,000 numbers in all.
    """
    file = Path(path)
    file = file if file.suffix else file.with_suffix(".mat")
    if not file.is_file():
        if file.name == EXAMPLE_MAPS:
            return example_maps()
        raise TerrainFileNotFound(f"{os.fspath(path)}: no such file")
    with reader_errors(lambda text: TerrainFormatError(f"{file}: cannot be read as a .mat file ({text})")):
        maps = _read(file)
    if not maps:
        raise TerrainFormatError(f"{file}: holds no matrix of numbers")
    return maps


def _read(path: Path) -> Maps:
    from scipy.io import loadmat, whosmat

    with open_regular(path, MAX_BYTES) as file:
        check_unpacked_size(file, MAX_BYTES)
        wanted = [
            (name, shape)
            for name, shape, kind in whosmat(file)
            if kind in _NUMERIC and len(shape) == 2 and min(shape) > 1
        ]
        cells = sum(math.prod(shape) for _, shape in wanted)
        if len(wanted) > MAX_MAPS or cells > MAX_CELLS:
            raise ValueError(
                f"{len(wanted)} matrices of {cells:,} numbers, expected at most {MAX_MAPS} of {MAX_CELLS:,}"
            )
        if not wanted:
            return {}
        file.seek(0)
        variables = loadmat(file, variable_names=[name for name, _ in wanted])
        return {name: variables[name] for name, _ in wanted}


def example_maps() -> Maps:
    """Maps of our own under the names of MATLAB's exampleMaps.mat: two of 0 and 1, and one with 0.5 for unknown."""
    from rfly_terrain.occupancy.random_maps import map_clutter, map_maze

    simple = np.zeros((26, 27), bool)
    simple[[0, -1]], simple[:, [0, -1]] = True, True
    simple[8, :18], simple[17, 9:] = True, True
    complex_map = map_maze(4, 1, map_size=(52, 41), map_resolution=1, seed=1).occupancy_matrix()
    clutter = map_clutter(30, map_size=(501, 501), map_resolution=1, seed=2).occupancy_matrix()
    ternary = np.full(clutter.shape, 0.5)
    ternary[50:450, 50:450] = clutter[50:450, 50:450]
    return {"simpleMap": simple, "complexMap": complex_map, "ternaryMap": ternary}
