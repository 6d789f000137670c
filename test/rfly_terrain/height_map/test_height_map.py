# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""HeightMap against formulas, numbers worked out by hand, and a slow obvious implementation."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from height_maps import grid_map, map_e, near, sampled
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rfly_common.errors import RflyError, TerrainFormatError
from rfly_terrain import HeightMap
from rfly_terrain.height_map.height_map import MAX_CELLS


def slow_altitude(
    heights: Any, origin: tuple[float, float], step: tuple[float, float], x: float, y: float
) -> float:
    """Return the height by the documented formula: clamp each axis, floor, four weights."""
    rows, columns = heights.shape
    u = (x - origin[0]) / step[0]
    v = (y - origin[1]) / step[1]
    u = min(max(u, 0.0), rows - 1)
    v = min(max(v, 0.0), columns - 1)
    i = math.floor(u)
    j = math.floor(v)
    a = u - i
    b = v - j

    weights = {
        (i, j): (1 - a) * (1 - b),
        (i + 1, j): a * (1 - b),
        (i, j + 1): (1 - a) * b,
        (i + 1, j + 1): a * b,
    }
    total = 0.0
    for sample, weight in weights.items():
        if weight:
            total += weight * float(heights[sample])
    return total


@pytest.mark.parametrize(
    ("x_north", "y_east", "z_down"),
    [
        pytest.param(-3, -2, -6, id="left-bottom corner"),
        pytest.param(3, -2, -12, id="right-bottom corner"),
        pytest.param(-3, 2, -8, id="left-top corner"),
        pytest.param(3, 2, -16, id="right-top corner"),
        pytest.param(0, 0, -10, id="middle"),
        pytest.param(-2, -1, -7.5, id="middle of the first cell"),
        pytest.param(2.5, 1.5, -14.375, id="in the last cell"),
        pytest.param(100, 0, -13, id="beyond north"),
        pytest.param(0, -50, -9, id="beyond west"),
        pytest.param(-1000, 1000, -8, id="beyond a corner"),
        pytest.param(-2, 50, -9, id="beyond east"),
    ],
)
def test_worked_examples_of_the_format(x_north, y_east, z_down):
    """Examples 2 to 4 of RflySim's format, by each way of asking."""
    terrain = map_e()
    assert terrain.altitude_ned(x_north, y_east) == near(z_down)
    assert terrain.altitude(y_east, x_north) == near(-z_down)
    assert terrain.query(y_east, x_north).altitude == near(-z_down)

    # arrays
    norths = np.array([x_north])
    easts = np.array([y_east])
    assert terrain.altitude_ned(norths, easts) == near([z_down])
    twice = np.full(2, x_north)
    answer = terrain.query_ned(twice, y_east)
    assert answer.altitude == near([z_down] * 2)


def test_layout_of_rows_and_columns():
    """The height heights[r, c] lies at origin_x + r·step_x east, origin_y + c·step_y north.

    Nothing is exchanged or mirrored.
    """
    heights = np.arange(12, dtype=np.float32).reshape(3, 4)
    terrain = HeightMap(
        heights,
        origin_x=10,
        origin_y=-20,
        step_x=3,
        step_y=5,
    )
    assert terrain.rows == 3
    assert terrain.columns == 4
    assert terrain.bounds == (10, 16, -20, -5)
    assert terrain.z_min == 0
    assert terrain.z_max == 11

    for (r, c), height in np.ndenumerate(heights):
        x = 10.0 + 3 * r
        y = -20.0 + 5 * c
        assert terrain.altitude(x, y) == height
        assert terrain.altitude_ned(y, x) == -height


def test_negative_steps():
    """A map may run westwards and southwards.

    Bounds are sorted, and positions are those of the samples.
    """
    heights = np.array([[0, 10, 20], [1, 11, 21]])
    terrain = HeightMap(
        heights,
        origin_x=5,
        origin_y=8,
        step_x=-2,
        step_y=-4,
    )
    assert terrain.bounds == (3, 5, 0, 8)
    assert terrain.altitude(5.0, 8.0) == 0
    assert terrain.altitude(3.0, 0.0) == 21
    assert terrain.altitude(4.0, 6.0) == pytest.approx(5.5)
    assert terrain.altitude(100.0, 100.0) == 0

    # z = 0.5·(5 - x) + 2.5·(8 - y)
    expected = pytest.approx([-0.5, -2.5])
    assert terrain.gradient(4.0, 6.0) == expected
    assert terrain.gradient(4.0, 6.0, smooth=True) == expected

    inside = terrain.inside([3, 2.9, 5, 5.1], [4, 4, 8, 8])
    assert inside.tolist() == [True, False, True, False]


slopes = st.floats(-3, 3)
unit = st.floats(0, 1)
steps = st.floats(0.01, 50).flatmap(lambda s: st.sampled_from([s, -s]))


@settings(deadline=None)
@given(
    a=slopes,
    b=slopes,
    u=unit,
    v=unit,
    step_x=steps,
    step_y=steps,
)
def test_plane_is_exact_up_to_the_border(a, b, u, v, step_x, step_y):
    """Bilinear interpolation reproduces a plane, edges included.

    That holds for heights, both gradients, slope and normal.
    """
    terrain = sampled(
        lambda x, y: a * x + b * y,
        rows=5,
        columns=7,
        origin_x=-3.5,
        origin_y=40.0,
        step_x=step_x,
        step_y=step_y,
    )
    x = -3.5 + 4 * u * step_x
    y = 40.0 + 6 * v * step_y
    size = 1 + abs(terrain.z_min) + abs(terrain.z_max)  # heights are float32

    z = a * x + b * y
    assert terrain.altitude(x, y) == near(z, 1e-6 * size)

    slack = 1e-6 * size * (1 / abs(step_x) + 1 / abs(step_y))
    norm = math.sqrt(a * a + b * b + 1)
    normal = [-a / norm, -b / norm, 1 / norm]
    slope = math.acos(1 / norm)
    for smooth in (False, True):
        assert terrain.gradient(x, y, smooth) == near([a, b], slack)
        assert terrain.normal(x, y, smooth) == near(normal, slack)
        assert terrain.slope(x, y, smooth) == near(slope, max(slack, 1e-7))

    assert terrain.inside(x, y) is True


def test_saddle_is_exact_everywhere():
    """The surface z = x·y is bilinear: exact in each cell, and its gradient is (y, x)."""
    terrain = sampled(lambda x, y: x * y, 9, 9, origin_x=-4.0, origin_y=-4.0)
    x, y = np.random.default_rng(0).uniform(-4, 4, (2, 500))
    gradient = np.stack([y, x], -1)
    assert terrain.altitude(x, y) == near(x * y)
    assert terrain.gradient(x, y) == near(gradient)
    assert terrain.gradient(x, y, smooth=True) == near(gradient)


def test_sine_terrain_within_the_error_of_interpolation():
    """The bilinear error is at most h²/8 times the second derivatives.

    The smooth gradient's error is of second order too.
    """
    h = 0.05
    terrain = sampled(lambda x, y: np.sin(x) * np.cos(y), 127, 127, step_x=h, step_y=h)

    # off the edges, where differences are one-sided
    x, y = np.random.default_rng(0).uniform(h, 125 * h, (2, 2000))
    z = np.sin(x) * np.cos(y)
    z_error = np.abs(terrain.altitude(x, y) - z)
    assert z_error.max() < h * h / 4 + 1e-6

    along_x = np.cos(x) * np.cos(y)
    along_y = -np.sin(x) * np.sin(y)
    gradient = np.stack([along_x, along_y], -1)
    smooth_error = np.abs(terrain.gradient(x, y, smooth=True) - gradient)
    exact_error = np.abs(terrain.gradient(x, y) - gradient)
    assert smooth_error.max() < h * h
    assert exact_error.max() < h


grids = hnp.arrays(
    np.float32,
    st.tuples(st.integers(2, 6), st.integers(2, 6)),
    elements=st.floats(-8000, 8000, width=32),
)


@settings(max_examples=200, deadline=None)
@given(
    heights=grids,
    x=st.floats(-30, 30),
    y=st.floats(-30, 30),
    step_x=steps,
    step_y=steps,
)
def test_altitude_is_the_documented_formula(heights, x, y, step_x, step_y):
    """The altitude is the formula's on and off the map, for one point and for an array."""
    origin = (1.5, -2.25)
    terrain = HeightMap(
        heights,
        origin_x=origin[0],
        origin_y=origin[1],
        step_x=step_x,
        step_y=step_y,
    )
    expected = slow_altitude(heights, origin, (step_x, step_y), x, y)
    tolerance = 1e-11 * (1 + float(np.abs(heights).max()))
    z = terrain.altitude(x, y)

    assert isinstance(z, float)
    assert z == near(expected, tolerance)
    assert heights.min() - tolerance <= z
    assert z <= heights.max() + tolerance
    assert terrain.altitude(np.array([x]), np.array([y]))[0] == z


@settings(deadline=None)
@given(
    heights=grids,
    i=st.integers(0, 4),
    j=st.integers(0, 4),
    a=unit,
    b=unit,
)
def test_a_cell_stays_between_its_corners(heights, i, j, a, b):
    rows, columns = heights.shape
    i = min(i, rows - 2)
    j = min(j, columns - 2)
    terrain = grid_map(heights)
    corners = heights[i : i + 2, j : j + 2].astype(float)
    tolerance = 1e-12 * (1 + float(np.abs(corners).max()))
    z = terrain.altitude(i + a, j + b)
    assert corners.min() - tolerance <= z
    assert z <= corners.max() + tolerance


@pytest.mark.parametrize("shape", [(2, 2), (2, 5), (5, 2), (3, 4)])
def test_borders(shape):
    """Corners, edges, the last cell, one step and one bit outside: each axis clamps on its own."""
    heights = np.random.default_rng(5).normal(0, 100, shape).astype(np.float32)
    terrain = grid_map(heights)
    last_x = float(shape[0] - 1)
    last_y = float(shape[1] - 1)

    for x in (
        -1.0,
        -1e-9,
        0.0,
        0.25,
        last_x - 1e-9,
        last_x,
        math.nextafter(last_x, 99),
        last_x + 1,
        1e300,
    ):
        on_x = -1e-12 < x < last_x + 1e-12
        for y in (
            -1.0,
            -1e-9,
            0.0,
            0.75,
            last_y - 1e-9,
            last_y,
            math.nextafter(last_y, 99),
            last_y + 1,
            -1e300,
        ):
            on_y = -1e-12 < y < last_y + 1e-12
            expected = slow_altitude(heights, (0, 0), (1, 1), x, y)
            z = terrain.altitude(x, y)
            assert z == pytest.approx(expected, rel=1e-13)
            assert terrain.altitude([x], [y])[0] == z

            inside = on_x and on_y
            assert terrain.inside(x, y) is inside
            assert terrain.inside([x], [y]).tolist() == [inside]

            along_x, along_y = terrain.gradient(x, y)
            assert (along_x == 0) == (not on_x)
            assert (along_y == 0) == (not on_y)

            normals = terrain.query([x], [y]).normal
            assert terrain.query(x, y).normal == pytest.approx(normals[0], rel=1e-15)


def test_query_holds_what_single_questions_give():
    rng = np.random.default_rng(8)
    terrain = grid_map(rng.normal(0, 5, (20, 30)))
    x, y = rng.uniform(-5, 35, (2, 400))

    for smooth in (False, True):
        altitude, inside, normal = terrain.query(x, y, smooth=smooth)
        assert np.array_equal(altitude, terrain.altitude(x, y))
        assert np.array_equal(inside, terrain.inside(x, y))
        assert np.linalg.norm(normal, axis=-1) == pytest.approx(np.ones(400))

        gradient = terrain.gradient(x, y, smooth)
        assert -normal[:, :2] / normal[:, 2:] == near(gradient)

        first = terrain.query(float(x[0]), float(y[0]), smooth=smooth)
        assert type(first.altitude) is float
        assert type(first.inside) is bool
        assert first.normal == pytest.approx(normal[0], rel=1e-15)

    without = terrain.query(x, y, want_normals=False)
    assert without.normal is None
    assert np.array_equal(without.altitude, terrain.altitude(x, y))
    assert terrain.query(1.0, 2.0, want_normals=False).normal is None


@pytest.mark.parametrize(
    "number",
    [2, True, np.float32(1.5), np.float64(1.5), np.int16(2), np.array(1.5), np.uint8(1)],
    ids=lambda v: f"{type(v).__name__}",
)
def test_kinds_of_one_number(number):
    """Ints, NumPy scalars and 0-d arrays are answered by a plain float."""
    terrain = map_e()
    expected = terrain.altitude(float(number), 0.0)
    for z in (
        terrain.altitude(number, 0),
        terrain.altitude(number, 0.0),
        -terrain.altitude_ned(0.0, number),
    ):
        assert type(z) is float
        assert z == expected
    assert type(terrain.inside(number, 0)) is bool
    assert type(terrain.slope(number, 0)) is float


def test_kinds_of_arrays():
    """Any shape, order, byte order, type; all give what a loop over the points gives."""
    terrain = map_e()
    x, y = np.random.default_rng(1).uniform(-4, 4, (2, 6, 8))
    one_by_one = [terrain.altitude(*point) for point in zip(x.flat, y.flat, strict=True)]
    expected = np.reshape(one_by_one, x.shape)

    def assert_altitudes(x: Any, y: Any, expected: Any) -> None:
        assert np.array_equal(terrain.altitude(x, y), expected)

    assert_altitudes(x, y, expected)
    assert_altitudes(x[::2, ::-3], y[::2, ::-3], expected[::2, ::-3])
    assert_altitudes(np.asfortranarray(x), y, expected)
    assert_altitudes(x.T, y.T, expected.T)
    assert_altitudes(x.astype(">f8"), y, expected)
    assert_altitudes(x.tolist(), y.tolist(), expected)

    # an unaligned column
    packed = np.zeros(48, np.dtype([("pad", "u1"), ("x", "f8")]))
    packed["x"] = x.ravel()
    assert_altitudes(packed["x"], y.ravel(), expected.ravel())

    # float32
    x32 = x.astype(np.float32)
    y32 = y.astype(np.float32)
    rounded = terrain.altitude(x32.astype(float), y32.astype(float))
    assert_altitudes(x32, y32, rounded)
    assert_altitudes(x32, y32.astype(float), rounded)
    assert terrain.altitude(x32, y32).dtype == np.float64

    x.flags.writeable = False
    assert_altitudes(x, y, expected)


def test_broadcasting_and_empty_arrays():
    terrain = map_e()
    x = np.linspace(-3, 3, 5)
    y = np.linspace(-4, 4, 7)
    column = x[:, None]
    table = terrain.altitude(column, y)

    assert table.shape == (5, 7)
    assert table[3, 2] == terrain.altitude(float(x[3]), float(y[2]))
    assert terrain.altitude(x, 0).shape == (5,)
    assert terrain.altitude_ned(y, 1.0).shape == (7,)
    assert terrain.gradient(column, y).shape == (5, 7, 2)
    assert terrain.normal(column, y, smooth=True).shape == (5, 7, 3)
    assert terrain.gradient_rate(x, 0, 1.0, 0).shape == (5, 2)

    for shape in ((0,), (3, 0)):
        empty = np.zeros(shape)
        assert terrain.altitude(empty, empty).shape == shape
        assert terrain.normal(empty, 1.0).shape == (*shape, 3)
        assert terrain.inside(empty, empty).dtype == bool

    with pytest.raises(ValueError, match=r"x \(3,\), y \(4,\)"):
        terrain.altitude(np.zeros(3), np.zeros(4))
    with pytest.raises(TypeError, match="y: expected real numbers"):
        terrain.altitude(np.zeros(1), np.zeros(1, complex))
    with pytest.raises(TypeError, match="x: expected real numbers"):
        terrain.altitude(["one"], [2.0])
    # what is below a mask is no number
    with pytest.raises(ValueError, match="y: 1 masked"):
        terrain.altitude([1.0, 2.0], np.ma.masked_invalid([2.0, math.nan]))
    whole = np.ma.masked_invalid([2.0, 3.0])
    assert terrain.altitude([1.0, 2.0], whole).tolist() == [
        terrain.altitude(1.0, 2.0),
        terrain.altitude(2.0, 3.0),
    ]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_coordinates_that_are_not_finite(bad):
    """Every method raises ValueError with the argument's name and the first offending index."""
    terrain = map_e()
    for ask in (
        terrain.altitude,
        terrain.inside,
        terrain.query,
        terrain.normal,
        terrain.gradient,
        terrain.slope,
    ):
        with pytest.raises(ValueError, match=rf"x is {bad}"):
            ask(bad, 0.0)
        with pytest.raises(ValueError, match=rf"y is {bad}"):
            ask(0, np.float64(bad))
    with pytest.raises(ValueError, match=rf"x_north is {bad}"):
        terrain.altitude_ned(bad, 0.0)
    with pytest.raises(ValueError, match=rf"y_east\[1\] is {bad}"):
        terrain.altitude_ned([0.0, 0.0], [1.0, bad])

    grid = np.zeros((3, 4))
    grid[1, 2] = bad
    grid[2, 0] = bad
    for ask in (terrain.altitude, terrain.inside, terrain.query, terrain.gradient):
        with pytest.raises(ValueError, match=rf"y\[1, 2\] is {bad}"):
            ask(np.zeros((3, 4)), grid)
    with pytest.raises(ValueError, match=rf"vy\[2\] is {bad}"):
        terrain.gradient_rate(np.zeros(3), 0, 1, np.array([0, 0, bad]))

    x = np.zeros(100_000)
    x[-1] = bad  # far enough to be another thread's piece
    with pytest.raises(ValueError, match=rf"x\[99999\] is {bad}"):
        terrain.altitude(x, x)


def test_large_arrays_are_shared_among_threads():
    """The pieces fit together, and callers in several threads don't disturb each other."""
    rng = np.random.default_rng(6)
    terrain = grid_map(rng.normal(0, 100, (300, 200)))
    x, y = rng.uniform(-10, 310, (2, 150_001))
    inside = (x >= 0) & (x <= 299) & (y >= 0) & (y <= 199)
    pieces = []
    for start in range(0, x.size, 1000):
        piece = slice(start, start + 1000)
        pieces.append(terrain.altitude(x[piece], y[piece]))
    altitude = np.concatenate(pieces)

    with ThreadPoolExecutor(4) as pool:
        for answer in pool.map(lambda _: terrain.query(x, y), range(8)):
            assert np.array_equal(answer.altitude, altitude)
            assert np.array_equal(answer.inside, inside)


def test_edges_count_as_inside_in_spite_of_rounding():
    """The map ends at 9, although -9 + 7·(18/7) is 9.000000000000002.

    A point a thousandth of a cell beyond is outside.
    """
    terrain = grid_map(np.zeros((2, 8)), origin_y=-9, step_y=18 / 7)
    assert terrain.inside(0.0, 9.0)
    assert terrain.inside([1.0], [9.0]).all()
    assert not terrain.inside(0.0, 9.002)

    far = HeightMap(
        np.zeros((4, 4)),
        origin_x=500_000.1,
        origin_y=4_000_000.7,
        step_x=0.1,
        step_y=0.1,
    )
    assert far.inside(500_000.4, 4_000_001.0)
    assert not far.inside(500_000.4001, 4_000_001.0)


def test_immutable():
    """A height map is immutable.

    No attribute can be set or deleted, the heights can't be written, and the caller's own array is
    not shared.
    """
    mine = np.ones((3, 3), np.float32)
    terrain = grid_map(mine)
    mine[:] = 7

    assert terrain.altitude(1.0, 1.0) == 1
    for name in ("heights", "origin_x", "name", "anything"):
        with pytest.raises(AttributeError):
            setattr(terrain, name, 1)
    with pytest.raises(AttributeError):
        del terrain.heights
    with pytest.raises(ValueError, match="read-only"):
        terrain.heights[0, 0] = 5
    with pytest.raises(ValueError, match="WRITEABLE"):
        terrain.heights.flags.writeable = True


def test_read_only_heights_are_shared():
    data = np.arange(6, dtype=np.float32).tobytes()
    heights = np.frombuffer(data, np.float32).reshape(2, 3)
    terrain = grid_map(heights)
    assert np.shares_memory(terrain.heights, heights)

    writable = np.zeros((4, 4), np.float32)
    seen = writable.view()
    seen.flags.writeable = False  # the owner can still write
    terrain = grid_map(seen)
    assert not np.shares_memory(terrain.heights, writable)


def test_the_hash_is_of_the_little_endian_heights():
    heights = np.array([[1.5, -2], [0, 1e6]])
    terrain = grid_map(heights)
    little_endian = heights.astype("<f4").tobytes()
    assert terrain.sha256 == sha256(little_endian).hexdigest()
    assert terrain.sha256 == terrain.sha256


def test_copies_and_pickles_answer_the_same(tmp_path):
    terrain = HeightMap(
        [[1, 2], [3, 5]],
        origin_x=1,
        origin_y=2,
        step_x=3,
        step_y=-4,
        name="n",
        geo_origin=(47, 8, 400),
        files=[tmp_path / "n.png"],
    )

    pickled = pickle.loads(pickle.dumps(terrain))
    for twin in (pickled, copy.copy(terrain), copy.deepcopy(terrain)):
        assert twin.altitude(2.0, 1.0) == terrain.altitude(2.0, 1.0)
        assert twin.name == "n"
        assert twin.geo_origin == (47, 8, 400)
        assert twin.files == terrain.files
        assert twin.ground[1:] == terrain.ground[1:]
        assert twin.sha256 == terrain.sha256
    assert "2 x 2" in repr(terrain)


LEVEL = np.zeros((2, 2))


@pytest.mark.parametrize(
    ("heights", "grid", "text"),
    [
        pytest.param(
            np.zeros((1, 5)), {}, "1 rows x 5 columns, expected at least 2 x 2", id="one row"
        ),
        pytest.param(
            np.zeros((5, 1)),
            {},
            "at least 2 x 2",
            id="one column",
        ),
        pytest.param(
            np.zeros((0, 0)),
            {},
            "at least 2 x 2",
            id="nothing",
        ),
        pytest.param(np.zeros(4), {}, r"expected shape \(rows, columns\)", id="flat"),
        pytest.param(
            np.zeros((2, 2, 3)),
            {},
            r"expected shape \(rows, columns\)",
            id="colour",
        ),
        pytest.param(
            [["a", "b"], ["c", "d"]],
            {},
            "expected real numbers",
            id="text",
        ),
        pytest.param(
            np.broadcast_to(np.float32(0), (10_000, 10_001)),
            {},
            "at most 100,000,000",
            id="too large",
        ),
        pytest.param(
            [[0, 1], [np.nan, 2]],
            {},
            r"heights_up\[1, 0\] is nan",
            id="NaN",
        ),
        pytest.param(
            [[0, 1], [2, -np.inf]],
            {},
            r"heights_up\[1, 1\] is -inf",
            id="infinity",
        ),
        pytest.param(
            [[0, 1], [2, 1e39]],
            {},
            r"heights_up\[1, 1\] is inf",
            id="beyond float32",
        ),
        pytest.param(
            np.ma.masked_equal([[0, 1], [2, -9999]], -9999),
            {},
            "heights_up: 1 masked, expected numbers",
            id="masked",
        ),
        pytest.param(LEVEL, {"step_x": 0}, "step_x is 0", id="no step"),
        pytest.param(LEVEL, {"step_y": 1e-320}, "step_y is", id="step of no size"),
        pytest.param(LEVEL, {"step_y": math.nan}, "step_y: nan m", id="NaN step"),
        pytest.param(LEVEL, {"origin_x": math.inf}, "origin_x: inf m", id="infinite origin"),
        pytest.param(LEVEL, {"geo_origin": (1, 2)}, "geo_origin", id="two geodetic numbers"),
        pytest.param(
            LEVEL,
            {"geo_origin": (1, 2, math.nan)},
            "geo_origin",
            id="NaN altitude",
        ),
        pytest.param(LEVEL, {"geo_origin": (116, 40, 0)}, "within ±90", id="longitude first"),
    ],
)
def test_maps_that_are_refused(heights, grid, text):
    """The reason names the argument; it is a typed error and a ValueError."""
    with pytest.raises(TerrainFormatError, match=text) as refused:
        grid_map(heights, **grid)
    assert isinstance(refused.value, (RflyError, ValueError))


def test_the_largest_map():
    """10,000 x 10,000 heights that can't be written are shared, not copied.

    Corners and cells are found.
    """
    heights = np.broadcast_to(np.float32(3), (10_000, 10_000))
    assert heights.size == MAX_CELLS

    heights = np.zeros((10_000, 10_000), np.float32)  # untouched pages take no memory
    heights[-1, -1] = 8
    heights[-1, -2] = 4
    heights[5000, 7000] = 16
    heights.flags.writeable = False
    terrain = grid_map(heights, step_x=0.5, step_y=0.5)

    assert np.shares_memory(terrain.heights, heights)

    def altitude_of_array(x: float, y: float) -> float:
        return terrain.altitude([x], [y])[0]

    for altitude in (terrain.altitude, altitude_of_array):
        assert altitude(9999 * 0.5, 9999 * 0.5) == 8
        assert altitude(9999 * 0.5, 9998.5 * 0.5) == 6
        assert altitude(9998.5 * 0.5, 9998.5 * 0.5) == 3
        assert altitude(2500.0, 3500.0) == 16
        assert altitude(1e9, 1e9) == 8
    assert terrain.point_cloud(stride=2500).shape == (4, 4, 3)


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


FEW_LOOK_UPS = """
import sys
from rfly_terrain import HeightMap
terrain = HeightMap([[0, 1], [2, 3]], origin_x=0, origin_y=0, step_x=1, step_y=1)
assert terrain.altitude(0.5, 0.5) == 1.5 and terrain.inside(0.5, 0.5)
assert terrain.query(0.5, 0.5).altitude == 1.5 and terrain.altitude_ned(0.5, 0.5) == -1.5
print([name for name in ("numba", "scipy", "cv2", "matplotlib") if name in sys.modules])
"""


def test_single_points_import_nothing_heavy():
    """A script or command that asks for single points does not wait for numba."""
    assert run_python(FEW_LOOK_UPS).strip() == "[]"


def test_fork_after_the_threads_started():
    """A forked child has none of the parent's threads and must not wait for them."""
    code = """
import os, sys
import numpy as np
from rfly_terrain import HeightMap
terrain = HeightMap([[0, 1], [2, 3]], origin_x=0, origin_y=0, step_x=1, step_y=1)
x = np.linspace(0, 1, 300_000)
before = terrain.altitude(x, x)
child = os.fork() if hasattr(os, "fork") else 0
if child == 0:
    same = np.array_equal(terrain.altitude(x, x), before)
    sys.stdout.flush()
    os._exit(0 if same else 1) if hasattr(os, "fork") else print("ok")
else:
    print("ok" if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 else "the child differs")
"""

    assert run_python(code).strip() == "ok"
