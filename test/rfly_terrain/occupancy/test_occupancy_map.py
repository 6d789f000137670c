# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""BinaryOccupancyMap against slow, obvious implementations: cell by cell, in rational numbers."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from node_harness import PATIENCE

import rfly_terrain
from rfly_terrain import BinaryOccupancyMap
from rfly_terrain.occupancy.cells import inflated

EIGHTHS = st.integers(-40, 140).map(lambda n: Fraction(n, 8))
PLACES = st.tuples(EIGHTHS, EIGHTHS)
SIZES = st.tuples(st.integers(1, 12), st.integers(1, 12))
CORNER = (12.3, -0.7)


def matrix_of(seed: int, size: tuple[int, int], share: float = 0.4) -> np.ndarray:
    return np.random.default_rng(seed).random(size) < share


def obvious_cell(point: tuple[Fraction, Fraction], rows: int) -> tuple[int, int]:
    """Return the row and column of a point.

    An edge belongs to the left or lower cell, the left and lower border to the first ones.
    """
    right, up = (ceil(value) - 1 if value != 0 else 0 for value in point)
    return rows - 1 - up, right


def floats(
    places: list[tuple[Fraction, Fraction]], resolution: float, corner: tuple[float, float]
) -> list[list[float]]:
    return [
        [float(v) / resolution + c for v, c in zip(place, corner, strict=True)] for place in places
    ]


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    size=SIZES,
    places=st.lists(PLACES, min_size=1, max_size=20),
    default=st.booleans(),
)
@pytest.mark.parametrize(
    ("resolution", "corner"), [(1, (0.0, 0.0)), (10, CORNER), (0.3, (-5.0, 1e4))]
)
def test_points(resolution, corner, seed, size, places, default):
    matrix = matrix_of(seed, size)
    origin = (2.0, 3.0)
    m = BinaryOccupancyMap.from_matrix(
        matrix,
        resolution,
        grid_origin_in_local=np.subtract(corner, origin),
        local_origin_in_world=origin,
        default_value=default,
    )
    xy = floats(places, resolution, corner)
    cells = [obvious_cell(place, size[0]) for place in places]
    inside = [all(0 <= v <= n for v, n in zip(place, size[::-1], strict=True)) for place in places]
    assert m.world2grid(xy).tolist() == [list(cell) for cell in cells]
    assert m.local2grid(m.world2local(xy)).tolist() == [list(cell) for cell in cells]
    values = [
        bool(matrix[cell]) if is_inside else default
        for cell, is_inside in zip(cells, inside, strict=True)
    ]
    found, valid = m.get_occupancy(xy, return_valid=True)
    assert (found.tolist(), valid.tolist()) == (values, inside)
    checked = [
        int(matrix[cell]) if is_inside else -1
        for cell, is_inside in zip(cells, inside, strict=True)
    ]
    assert m.check_occupancy(m.world2local(xy), frame="local").tolist() == checked
    assert m.world2grid(m.grid2world(cells)).tolist() == [list(cell) for cell in cells]
    assert m.local2grid(m.grid2local(cells)).tolist() == [list(cell) for cell in cells]

    written = np.random.default_rng(seed).integers(0, 2, len(places))
    for cell, is_inside, value in zip(cells, inside, written, strict=True):
        if is_inside:
            matrix[cell] = value
    # one location with a matrix would be a block
    assert m.set_occupancy(xy, written[:, None] if len(places) > 1 else written).tolist() == inside
    assert np.array_equal(m.occupancy_matrix(), matrix)


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    size=SIZES,
    corner=PLACES,
    lengths=st.tuples(st.integers(1, 60), st.integers(1, 60)),
    default=st.booleans(),
)
def test_blocks(seed, size, corner, lengths, default):
    matrix = matrix_of(seed, size)
    m = BinaryOccupancyMap.from_matrix(
        matrix, 10, local_origin_in_world=CORNER, default_value=default
    )
    x, y = (floor(value) for value in corner)
    width, height = (ceil(Fraction(length, 8)) for length in lengths)
    cells = [
        [(size[0] - 1 - (y + up), x + right) for right in range(width)]
        for up in reversed(range(height))
    ]
    inside = [[0 <= i < size[0] and 0 <= j < size[1] for i, j in row] for row in cells]
    values = [
        [bool(matrix[c]) if ok else default for c, ok in zip(*rows, strict=True)]
        for rows in zip(cells, inside, strict=True)
    ]
    place = floats([corner], 10, CORNER)[0]
    metres = [length / 80 for length in lengths]
    found, valid = m.get_occupancy(place, metres, return_valid=True)
    assert (found.tolist(), valid.tolist()) == (values, inside)
    assert np.array_equal(m.check_occupancy(place, metres), np.where(inside, values, -1))
    top_left = cells[0][0]
    assert m.get_occupancy(top_left, (height, width), frame="grid").tolist() == values

    block = matrix_of(seed + 1, (height, width))
    for row, row_of_block in zip(cells, block, strict=True):
        for cell, value in zip(row, row_of_block, strict=True):
            if 0 <= cell[0] < size[0] and 0 <= cell[1] < size[1]:
                matrix[cell] = value
    for where, frame in ((place, "world"), (m.world2local(place)[0], "local"), (top_left, "grid")):
        other = m.copy()
        assert other.set_occupancy(where, block, frame=frame).tolist() == inside
        assert np.array_equal(other.occupancy_matrix(), matrix)


@pytest.mark.parametrize("radius", [0, 1, 2, 3, 7, 10, 11, 25, 1001])
@pytest.mark.parametrize("seed", range(3))
def test_inflate(radius, seed):
    """OpenCV's two ways and SciPy's agree with a look at all pairs of cells."""
    matrix = matrix_of(seed, (23, 31), 0.01)
    i, j = np.mgrid[:23, :31]
    expected = np.zeros_like(matrix)
    for a, b in np.argwhere(matrix):
        expected |= (i - a) ** 2 + (j - b) ** 2 <= radius * radius + radius
    m = BinaryOccupancyMap.from_matrix(matrix, 10)
    m.inflate(radius / 10)
    assert np.array_equal(m.occupancy_matrix(), expected if radius else matrix)
    m = BinaryOccupancyMap.from_matrix(matrix, 10)
    m.inflate(radius - 0.5 if radius else 0, "grid")
    assert np.array_equal(m.occupancy_matrix(), expected if radius else matrix)


@pytest.mark.parametrize("radius", [10, 30, 300, 1000, 1400])
def test_inflating_counts_to_the_last_cell(radius):
    """A quarter of a large disc: each column ends where i² + j² ≤ r² + r does."""
    cells = np.zeros((radius + 3, radius + 3), bool)
    cells[0, 0] = True
    heights = [math.isqrt(radius * radius + radius - j * j) + 1 for j in range(radius + 1)]
    assert inflated(cells, radius).sum(axis=0).tolist() == [*heights, 0, 0]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    size=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    resolution=st.integers(1, 12),
    new=st.integers(1, 20),
)
def test_resampled(seed, size, resolution, new):
    """Areas in rational numbers: an occupied cell marks every new cell that it overlaps."""
    matrix = matrix_of(seed, size, 0.2)
    rows, columns = (ceil(Fraction(n * new, resolution)) for n in size)
    expected = np.zeros((rows, columns), bool)

    for row, column in np.argwhere(matrix).tolist():
        up = size[0] - 1 - row
        for i, j in itertools.product(range(rows), range(columns)):
            overlaps = [
                max(Fraction(k, new), Fraction(c, resolution))
                < min(Fraction(k + 1, new), Fraction(c + 1, resolution))
                for k, c in ((rows - 1 - i, up), (j, column))
            ]
            expected[i, j] |= all(overlaps)

    source = BinaryOccupancyMap.from_matrix(matrix, resolution, local_origin_in_world=CORNER)
    made = BinaryOccupancyMap.from_map(source, new)
    assert np.array_equal(made.occupancy_matrix(), expected)
    assert np.allclose(made.grid_location_in_world, CORNER)
    assert np.array_equal(source.occupancy_matrix(), matrix)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    size=SIZES,
    moves=st.lists(
        st.tuples(PLACES, st.sampled_from(["absolute", "relative"])), min_size=1, max_size=4
    ),
    origin=PLACES,
    fill=st.sampled_from([None, 0, 1]),
    with_world=st.booleans(),
)
def test_move(seed, size, moves, origin, fill, with_world):
    """The map is a window of a dictionary of cells in the world."""
    rows, columns = size
    resolution = 4
    world = BinaryOccupancyMap.from_matrix(
        matrix_of(seed + 1, (15, 11)), 4, local_origin_in_world=(0.03, 0.03)
    )
    matrix = matrix_of(seed, size)
    m = BinaryOccupancyMap.from_matrix(
        matrix,
        resolution,
        grid_origin_in_local=(-0.5, 0.25),
        local_origin_in_world=[float(v) / resolution for v in origin],
        default_value=True,
    )
    place = origin  # cells

    for value, kind in moves:
        offset = [v - floor(v) for v in place]
        if kind == "relative":
            shift = [int(v) for v in value]  # int() cuts towards zero
        else:
            shift = [int(int(v - f) + f - o) for v, f, o in zip(value, offset, place, strict=True)]
        moved = np.full(size, True if fill is None else bool(fill))
        place = tuple(o + n for o, n in zip(place, shift, strict=True))
        m.move(
            [float(v) / resolution for v in value],
            move_type=kind,
            fill_value=fill,
            sync_with=world if with_world else None,
        )
        assert np.allclose(
            m.local_origin_in_world * resolution, [float(v) for v in place], rtol=0, atol=1e-9
        )
        for i, j in itertools.product(range(rows), range(columns)):
            old = i - shift[1], j + shift[0]
            if 0 <= old[0] < rows and 0 <= old[1] < columns:
                moved[i, j] = matrix[old]
            elif with_world and (value := world.check_occupancy(m.grid2world([i, j]))[0]) >= 0:
                moved[i, j] = value
        matrix = moved
        assert np.array_equal(m.occupancy_matrix(), matrix)


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    size=SIZES,
    corner=PLACES,
    resolution=st.sampled_from([1, 3, 4, 0.7]),
)
def test_sync_with(seed, size, corner, resolution):
    source = BinaryOccupancyMap.from_matrix(
        matrix_of(seed, (9, 11)), 2, local_origin_in_world=(1, 1)
    )
    before = source.occupancy_matrix()
    m = BinaryOccupancyMap.from_matrix(
        matrix_of(seed + 1, size),
        resolution,
        local_origin_in_world=[float(v) / 4 for v in corner],
        default_value=seed % 2,
    )
    expected = np.empty(size, bool)

    for i, j in itertools.product(*map(range, size)):
        value = source.check_occupancy(m.grid2world([i, j]))[0]
        expected[i, j] = value if value >= 0 else seed % 2

    returned = m.sync_with(source)
    assert np.array_equal(m.occupancy_matrix(), expected)
    assert np.array_equal(returned, expected)
    assert np.array_equal(source.occupancy_matrix(), before)


def test_nothing_is_shared():
    matrix = np.zeros((3, 3), bool)
    m = BinaryOccupancyMap.from_matrix(matrix)
    other = m.copy()
    matrix[:] = True
    m.occupancy_matrix()[:] = True
    m.get_occupancy()[:] = True
    m.x_world_limits[:] = 7
    m.local_origin_in_world[:] = 7

    assert m.occupancy_matrix().sum() == 0
    assert m.x_world_limits.tolist() == [0, 3]
    assert m.local_origin_in_world.tolist() == [0, 0]

    m.set_occupancy([0.5, 0.5], 1)
    m.default_value = 1
    m.grid_origin_in_local = (4, 4)

    assert (other.occupancy_matrix().sum(), other.default_value, other.x_local_limits.tolist()) == (
        0,
        False,
        [0, 3],
    )


def test_moving_a_map_with_itself():
    m = BinaryOccupancyMap.from_matrix(np.eye(4))
    m.move((1, 0), fill_value=1, sync_with=m)
    assert m.occupancy_matrix().tolist() == [[0, 0, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1]]


def test_read_only_properties():
    m = BinaryOccupancyMap()
    assert (m.data_type, m.layer_name) == ("logical", "binaryLayer")
    for name in (
        "resolution",
        "grid_size",
        "x_world_limits",
        "y_local_limits",
        "data_type",
        "layer_name",
    ):
        with pytest.raises(AttributeError):
            setattr(m, name, 1)


def test_the_names_of_matlab():
    """Each does what its snake_case twin does, and there is one for every documented name."""
    methods = (
        "checkOccupancy copy getOccupancy grid2local grid2world inflate insertRay "
        "local2grid local2world move "
        "occupancyMatrix raycast rayIntersection setOccupancy show syncWith world2grid world2local"
    )

    for name in methods.split():
        twin = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        assert getattr(BinaryOccupancyMap, name) is getattr(BinaryOccupancyMap, twin)

    m = BinaryOccupancyMap(4, 2, 2, grid_origin_in_local=(1, 2))
    m.DefaultValue = True
    m.GridLocationInWorld = (5, 5)

    assert m.GridSize == (4, 8)
    assert (m.LocalOriginInWorld.tolist(), m.GridOriginInLocal.tolist(), m.DefaultValue) == (
        [4, 3],
        [1, 2],
        True,
    )
    assert m.XLocalLimits.tolist() + m.YLocalLimits.tolist() == [1, 5, 2, 4]
    assert m.XWorldLimits.tolist() + m.YWorldLimits.tolist() == [5, 9, 5, 7]
    assert (m.Resolution, m.DataType, m.LayerName) == (2, "logical", "binaryLayer")


@pytest.mark.parametrize(
    "call",
    [
        lambda m: BinaryOccupancyMap(1e6, 1e6, 1),
        lambda m: BinaryOccupancyMap(math.inf, 1, 1),
        lambda m: BinaryOccupancyMap.from_grid_size(2.5, 1),
        lambda m: BinaryOccupancyMap.from_grid_size(0, 1),
        lambda m: BinaryOccupancyMap.from_matrix([[1, 0], [1]]),
        lambda m: BinaryOccupancyMap.from_matrix(np.empty((0, 3))),
        lambda m: BinaryOccupancyMap.from_matrix([["a"]]),
        lambda m: BinaryOccupancyMap.from_map(m, 1e9),
        lambda m: BinaryOccupancyMap.from_map(5),
        lambda m: BinaryOccupancyMap.from_map([[1, 0]], 2),
        lambda m: m.world2grid([[1e300, 0]]),
        lambda m: m.grid2world([[0.5, 0]]),
        lambda m: m.get_occupancy([[0.5, 0]], frame="grid"),
        lambda m: m.get_occupancy(None, (1, 1)),
        lambda m: m.get_occupancy([[0, 0], [1, 1]], (1, 1)),
        lambda m: m.get_occupancy((0, 0), (0, 1)),
        lambda m: m.get_occupancy((0, 0), (1e9, 1e9)),
        lambda m: m.get_occupancy((0, 0), (1.5, 1), frame="grid"),
        lambda m: m.set_occupancy([[0, 0]], math.nan),
        lambda m: m.set_occupancy([[0, 0], [1, 1]], [[1, 1]]),
        lambda m: m.inflate(1, "local"),
        lambda m: m.inflate(math.nan),
        lambda m: m.move((math.nan, 0)),
        lambda m: setattr(m, "default_value", 0.5),
        lambda m: setattr(m, "local_origin_in_world", (1, math.inf)),
        lambda m: m.show("map"),
    ],
)
def test_refused(call):
    m = BinaryOccupancyMap(3, 3, 1)
    with pytest.raises(ValueError, match=r"expected|too far|needs"):
        call(m)
    assert not m.occupancy_matrix().any()


def test_numbers_that_are_not_finite_are_named_with_their_place():
    m = BinaryOccupancyMap(3, 3, 1)
    with pytest.raises(ValueError, match=r"radius: nan, expected"):
        m.inflate(math.nan)
    with pytest.raises(ValueError, match=r"nan at \(1, 0\), expected"):
        m.get_occupancy([[1, 2], [math.nan, 2]])


def test_points_far_away_are_outside():
    m = BinaryOccupancyMap(3, 3, 1, default_value=True)
    assert m.check_occupancy([[1e200, 1], [1, -1e200], [1, 1]]).tolist() == [-1, -1, 1]
    assert m.set_occupancy([[1e200, 1]], 0).tolist() == [False]


def test_no_points():
    m = BinaryOccupancyMap(3, 3, 1)
    none = np.empty((0, 2))
    assert m.world2grid(none).shape == m.grid2world(none).shape == (0, 2)
    assert m.get_occupancy(none).shape == m.set_occupancy(none, 1).shape == (0,)
    assert m.ray_intersection([0, 0, 0], [], 1).shape == (0, 2)
    assert m.raycast_many(none, none).offsets.tolist() == [0]
    m.insert_ray([0, 0, 0], [], [], 3)
    m.insert_ray([0, 0], none)


def test_show():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    m = BinaryOccupancyMap.from_matrix([[1, 0, 0], [0, 0, 1]], 2, local_origin_in_world=(10, 20))
    figure, (left, right) = plt.subplots(1, 2)
    try:
        image = m.show(ax=left)
        assert (image.get_extent(), left.get_xlim(), left.get_ylim()) == (
            [10, 11.5, 20, 21],
            (10, 11.5),
            (20, 21),
        )
        assert (left.get_title(), left.get_xlabel(), left.get_ylabel()) == (
            "Binary Occupancy Grid",
            "X [meters]",
            "Y [meters]",
        )
        assert (image.get_clim(), image.get_interpolation(), left.get_aspect()) == (
            (0, 1),
            "nearest",
            1,
        )
        colours = image.cmap(image.norm(np.array([0, 1])))[:, :3].tolist()
        assert colours == [[1, 1, 1], [0, 0, 0]]
        plt.sca(right)
        grid = m.show("grid")
        assert grid.axes is right
        assert (grid.get_extent(), right.get_ylim()) == ([-0.5, 2.5, 1.5, -0.5], (1.5, -0.5))
        assert (right.get_xlabel(), right.get_ylabel()) == ("Column", "Row")

        m.set_occupancy([[0, 1]], 1, frame="grid")
        m.move((11, 20))
        again = m.show(ax=left, fast_update=True)
        assert again is image
        assert again.get_extent() == [11, 12.5, 20, 21]
        assert np.array_equal(again.get_array(), m.occupancy_matrix())
        assert m.show("local", ax=left) is not image
        assert m.copy().show(ax=left, fast_update=True) is not image
        left.clear()
        assert m.show(ax=left, fast_update=True).axes is left
        figure.canvas.draw()
        pixels = np.asarray(figure.canvas.buffer_rgba())
        colours = []
        for place in ((11.2, 20.2), (11.2, 20.8)):
            x, y = left.transData.transform(place)
            colours.append(pixels[pixels.shape[0] - 1 - int(y), int(x), :3].tolist())
        assert colours == [[0, 0, 0], [255, 255, 255]]
    finally:
        plt.close(figure)


def test_maps_need_neither_matplotlib_nor_scipy_nor_ros():
    program = (
        "import sys\nfrom rfly_terrain import BinaryOccupancyMap\nm = BinaryOccupancyMap()\n"
        "m.ray_intersection([1, 1, 0], [0], 5)\n"
        "print([name for name in ('matplotlib', 'scipy.spatial', 'rclpy') if name in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert run.stdout.strip() == "[]"


def test_public_names():
    assert {"BinaryOccupancyMap", "image_to_cells", "cells_to_image"} <= set(dir(rfly_terrain))
