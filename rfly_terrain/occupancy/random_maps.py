# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Occupancy maps to try planners on: random mazes, scattered obstacles, and MATLAB's .mat files.

The random ones accept the arguments of MATLAB's `mapMaze` and `mapClutter` (MathWorks, Navigation
Toolbox, reference page mapMaze: 50 x 50 m, 5 cells/m, passages of 4 cells, walls of 1). The mazes
themselves are our own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Bools
from rfly_common.errors import TerrainFileNotFound, TerrainFormatError
from rfly_common.files import MAX_CELLS, StrPath, open_regular
from rfly_common.untrusted_files.mat_size import check_unpacked_size
from rfly_common.untrusted_files.reader_errors import reader_errors
from rfly_terrain.occupancy.call_forms import in_call_forms
from rfly_terrain.occupancy.cell_grid import cells_for, checked_size, number, pair
from rfly_terrain.occupancy.occupancy_map import BinaryOccupancyMap

MAP_SIZE = (50.0, 50.0)
MAP_RESOLUTION = 5.0
SHAPES = ("box", "circle")
SMALLEST = 0.02
LARGEST = 0.08
"""Half the width of an obstacle, as a share of the map's shorter side."""
TRIES = 1000
"""Places that are tried for each obstacle."""


@in_call_forms
def map_maze(
    passage_width: int = 4,
    wall_thickness: int = 1,
    *,
    map_size: ArrayLike = MAP_SIZE,
    map_resolution: float = MAP_RESOLUTION,
    seed: int | None = None,
) -> BinaryOccupancyMap:
    """Return a random maze with one way between any two places, closed outside.

    Widths are numbers of cells. `map_size`: width and height, m; `map_resolution`: cells/m. What is
    left over at the right and the bottom is wall. The same `seed` gives the same maze. Raises
    ValueError where not even one passage has room.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    shape, per_metre = _shape(map_size, map_resolution)
    passage = _whole(passage_width, "passage_width")
    wall = _whole(wall_thickness, "wall_thickness")
    pitch = passage + wall
    rooms = [(side - wall) // pitch for side in shape]
    if min(rooms) < 1:
        raise ValueError(
            f"map_size: {shape[1]} x {shape[0]} cells, "
            f"expected at least {pitch + wall} each way for a passage of "
            f"{passage} between walls of {wall}"
        )
    # a random spanning tree of the rooms; SciPy 1.11 takes no other integers in graphs
    index = np.arange(rooms[0] * rooms[1], dtype=np.int32).reshape(rooms)
    first = np.concatenate((index[:, :-1].ravel(), index[:-1].ravel()))
    second = np.concatenate((index[:, 1:].ravel(), index[1:].ravel()))
    weight = 1.0 + np.random.default_rng(seed).random(first.size)
    tree = minimum_spanning_tree(
        coo_array((weight, (first, second)), shape=(index.size, index.size))
    ).tocoo()

    # rooms, then the passages between them
    cells = np.ones(shape, bool)
    top, left = (wall + pitch * axis for axis in np.divmod(np.arange(index.size), rooms[1]))
    _free(cells, top, left, passage, passage)
    low = np.minimum(tree.row, tree.col)
    beside = np.abs(tree.row - tree.col) == 1
    if rooms[1] == 1:
        beside = np.zeros_like(beside)
    _free(cells, top[low[beside]], left[low[beside]], passage, passage + pitch)
    _free(cells, top[low[~beside]], left[low[~beside]], passage + pitch, passage)
    return BinaryOccupancyMap.from_matrix(cells, per_metre)


@in_call_forms
def map_clutter(
    number_of_obstacles: int = 20,
    shapes: str | Sequence[str] = ("Box", "Circle"),
    *,
    map_size: ArrayLike = MAP_SIZE,
    map_resolution: float = MAP_RESOLUTION,
    collision_free: bool = True,
    seed: int | None = None,
) -> BinaryOccupancyMap:
    """Return a map with this number of random boxes and circles, which lie wholly on it.

    `shapes`: "Box", "Circle" or both. `collision_free`: with a free cell between any two. The same
    `seed` gives the same map. Raises ValueError if they do not fit.
    """
    shape, per_metre = _shape(map_size, map_resolution)
    names = [shapes] if isinstance(shapes, str) else list(shapes)
    kinds = [str(name).lower() for name in names]
    if not kinds or not set(kinds) <= set(SHAPES):
        raise ValueError(f"shapes: {names!r}, expected 'Box', 'Circle' or both")
    count = _whole(number_of_obstacles, "number_of_obstacles")

    cells = np.zeros(shape, bool)
    random = np.random.default_rng(seed)
    side = min(shape)
    least = max(0, round(SMALLEST * side))
    most = max(1, round(LARGEST * side))
    for placed in range(count):
        for _ in range(TRIES):
            half = random.integers(least, most + 1, 2)
            is_circle = kinds[random.integers(len(kinds))] == "circle"
            if is_circle:
                half[1] = half[0]
            if (2 * half + 1 > shape).any():
                continue

            row, column = random.integers(half, np.array(shape) - half)
            if _place(cells, int(row), int(column), half, is_circle, bool(collision_free)):
                break
        else:
            size = f"{shape[1]} x {shape[0]} cells"
            raise ValueError(f"number_of_obstacles: {count}, there is room for {placed} in {size}")
    return BinaryOccupancyMap.from_matrix(cells, per_metre)


def _place(
    cells: Bools, row: int, column: int, half: Any, is_circle: bool, collision_free: bool
) -> bool:
    """Occupy an obstacle's cells and return True; False where it would touch another one.

    Obstacles may touch unless `collision_free` is set.
    """
    above = int(half[0])
    beside = int(half[1])
    around = cells[
        max(0, row - above - 1) : row + above + 2, max(0, column - beside - 1) : column + beside + 2
    ]
    if collision_free and around.any():
        return False

    target = cells[row - above : row + above + 1, column - beside : column + beside + 1]
    i, j = np.ogrid[-above : above + 1, -beside : beside + 1]
    target |= (i * i + j * j <= above * above + above) if is_circle else True
    return True


def _shape(map_size: ArrayLike, map_resolution: Any) -> tuple[tuple[int, int], float]:
    width, height = pair(map_size, "map_size")
    per_metre = number(map_resolution, "map_resolution", above=0.0)
    return checked_size(cells_for(height, per_metre), cells_for(width, per_metre)), per_metre


def _whole(value: Any, what: str) -> int:
    result = number(value, what, at_least=1.0)
    if result != int(result):
        raise ValueError(f"{what}: {result:g}, expected a whole number")
    return int(result)


def _free(cells: Bools, top: Any, left: Any, rows: int, columns: int) -> None:
    """Free a block of cells at each place."""
    for i in range(rows):
        for j in range(columns):
            cells[top + i, left + j] = False


EXAMPLE_MAPS = "exampleMaps.mat"
"""Name of MATLAB's file of examples.

`load_mat_maps` gives maps of our own under their names where there is no such file.
"""

MAX_MAPS = 100
"""Largest number of matrices of a file."""

MAX_BYTES = 4 * MAX_CELLS
"""Largest size of a file, and of its unpacked matrices."""

_NUMERIC = frozenset(
    {"logical", "double", "single"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
"""Classes of MATLAB that are read; no cells, structures, objects or functions."""

Maps = dict[str, NDArray[np.generic]]


def load_mat_maps(path: StrPath) -> Maps:
    """Return the matrices (2-D, of numbers or logicals) of a .mat file by name.

    The extension may be missing. "exampleMaps.mat" where there is no such file: `emptyMap`,
    `simpleMap`, `complexMap` and `ternaryMap` of our own. Raises TerrainFileNotFound,
    TerrainFormatError for a damaged file, one without a matrix, and one with more than 100 or with
    more than 100,000,000 numbers in all.
    """
    file = Path(path)
    if file.suffix.lower() != ".mat" and not file.is_file():
        file = file.with_name(f"{file.name}.mat")
    if not file.is_file():
        if file.name == EXAMPLE_MAPS:
            return example_maps()
        raise TerrainFileNotFound(f"{os.fspath(path)}: no such file")
    with reader_errors(
        lambda text: TerrainFormatError(f"{file}: cannot be read as a .mat file ({text})")
    ):
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
                f"{len(wanted)} matrices of {cells:,} numbers, "
                f"expected at most {MAX_MAPS} of {MAX_CELLS:,}"
            )
        if not wanted:
            return {}
        file.seek(0)
        variables = loadmat(file, variable_names=[name for name, _ in wanted])
        return {name: variables[name] for name, _ in wanted}


COMPLEX_WAYS = (
    ((5.0, 2.0), (8.0, 2.0), (8.0, 8.0), (30.0, 8.0)),
    ((3.0, 3.0), (3.0, 3.0)),
    ((45.0, 35.0), (45.0, 35.0)),
)
"""Ways, m, that MATLAB's examples drive on complexMap, with start and goal of its planner's."""
TERNARY_WAYS = (((100.0, 100.0), (100.0, 250.0), (200.0, 250.0), (300.0, 250.0)),)
"""Way, m, that MATLAB's examples drive on ternaryMap."""


def example_maps() -> Maps:
    """Return maps of our own under the names of MATLAB's exampleMaps.mat.

    Three hold 0 and 1, and one 0.5 for unknown as well. They have MATLAB's sizes, and are free
    where its examples start, drive and arrive.
    """
    empty = np.zeros((26, 27), bool)

    simple = empty.copy()
    simple[[0, -1]] = True
    simple[:, [0, -1]] = True
    simple[8, :18] = True
    simple[17, 9:] = True
    simple[-1, 1:8] = False  # the examples start close to this wall, and one closes the gap

    maze = map_maze(4, 1, map_size=(52, 41), map_resolution=1, seed=1).occupancy_matrix()
    complex_map = _freed(maze, COMPLEX_WAYS)
    complex_map[[0, -1]] = True
    complex_map[:, [0, -1]] = True

    clutter = map_clutter(30, map_size=(501, 501), map_resolution=1, seed=2).occupancy_matrix()
    ternary = np.full(clutter.shape, 0.5)
    ternary[50:450, 50:450] = _freed(clutter, TERNARY_WAYS)[50:450, 50:450]
    return {
        "emptyMap": empty,
        "simpleMap": simple,
        "complexMap": complex_map,
        "ternaryMap": ternary,
    }


def _freed(cells: Bools, ways: Sequence[Sequence[tuple[float, float]]]) -> Bools:
    """Return the cells, free wherever ways at one cell a metre touch them, and one cell around."""
    touched = BinaryOccupancyMap(np.zeros_like(cells))
    for way in ways:
        for start, end in pairwise(way):
            for places in touched.raycast(start, end):
                touched.set_occupancy(places, True, frame="grid")
    touched.inflate(1, "grid")
    return cells & ~touched.occupancy_matrix()
