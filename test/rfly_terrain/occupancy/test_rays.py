# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rays over random maps against exact geometry: compiled kernels, their Python and the oracle."""

from __future__ import annotations

import contextlib
import itertools
import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import exhaustively
from oracles import in_place_of
from oracles import occupancy_rays as oracle
from scipy.ndimage import distance_transform_cdt

from rfly_terrain import BinaryOccupancyMap
from rfly_terrain.occupancy import cell_ray_kernels as ray_kernels
from rfly_terrain.occupancy import rays as ray_module

Point = tuple[Fraction, Fraction]


def first_meeting(
    start: Point, way: Point, longest: Fraction | None, low: Point
) -> Fraction | None:
    """Return the least t ≥ 0 for which start + t·way lies in a closed unit square, or None.

    The square's lower corner is `low`.
    """
    begin = Fraction(0)
    end = longest
    for s, d, edge in zip(start, way, low, strict=True):
        if d == 0:
            if not edge <= s <= edge + 1:
                return None
            continue
        t_in, t_out = sorted(((edge - s) / d, (edge + 1 - s) / d))
        begin = max(begin, t_in)
        end = t_out if end is None else min(end, t_out)
    return begin if end is None or begin <= end else None


def reference_cells(
    start: Point, end: Point, rows: int, columns: int
) -> tuple[list[Any], list[Any]]:
    """(endpoints, midpoints in order) of a segment in cell coordinates: every cell is looked at."""
    way = end[0] - start[0], end[1] - start[1]
    ends = []
    others = []

    for row in range(rows):
        for column in range(columns):
            low = Fraction(column), Fraction(rows - 1 - row)
            met = first_meeting(start, way, Fraction(1), low)
            if met is None:
                continue
            holds_end = all(edge <= e <= edge + 1 for edge, e in zip(low, end, strict=True))
            (ends if holds_end else others).append((met, row, column))

    return [cell[1:] for cell in sorted(ends)], [cell[1:] for cell in sorted(others)]


EIGHTHS = st.integers(-24, 120).map(lambda n: Fraction(n, 8))
PLACES = st.tuples(EIGHTHS, EIGHTHS)
"""Points on and around a map of 12 x 12 cells.

Every eighth lies on a grid line, every 64th on a corner.
"""


def as_floats(point: Point, resolution: int, corner: tuple[float, float]) -> list[float]:
    return [float(value) / resolution + low for value, low in zip(point, corner, strict=True)]


@settings(max_examples=80, deadline=None)
@given(
    rows=st.integers(1, 12),
    columns=st.integers(1, 12),
    rays=st.lists(st.tuples(PLACES, PLACES), min_size=1, max_size=6),
)
@pytest.mark.parametrize(
    ("resolution", "corner"), [exhaustively(1, (0.0, 0.0)), (10, (-3.3, 17.7))]
)
def test_every_touched_cell_and_no_other_in_order(resolution, corner, rows, columns, rays):
    for path in (contextlib.nullcontext(), in_place_of(ray_kernels, oracle)):
        with path:
            m = BinaryOccupancyMap.from_grid_size(
                rows, columns, resolution, local_origin_in_world=corner
            )
            starts, ends = ([as_floats(ray[i], resolution, corner) for ray in rays] for i in (0, 1))
            many = m.raycast_many(starts, ends)

            for n, (start, end) in enumerate(rays):
                wanted_ends, wanted_others = reference_cells(start, end, rows, columns)
                endpoints, midpoints = m.raycast(starts[n], ends[n])
                assert sorted(map(tuple, endpoints.tolist())) == sorted(wanted_ends)
                assert list(map(tuple, midpoints.tolist())) == wanted_others
                mine = slice(many.offsets[n], many.offsets[n + 1])
                assert np.array_equal(many.cells[mine][many.is_end[mine]], endpoints)
                assert np.array_equal(many.cells[mine][~many.is_end[mine]], midpoints)


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(1, 12),
    columns=st.integers(1, 12),
    share=st.sampled_from([0.02, 0.1, 0.4]),
    start=PLACES,
    ways=st.lists(
        st.tuples(st.integers(-9, 9), st.integers(-9, 9)).filter(any), min_size=1, max_size=8
    ),
    max_range=st.floats(0.3, 30.0) | st.just(math.inf),
    leaps=st.booleans(),
)
@pytest.mark.parametrize("resolution", [1, 20])
def test_first_point_on_an_occupied_cell(
    resolution, seed, rows, columns, share, start, ways, max_range, leaps
):
    matrix = np.random.default_rng(seed).random((rows, columns)) < share
    heading = 0.3
    angles = [math.atan2(y, x) - heading for x, y in ways]
    wanted = []

    for way in ways:
        direction = Fraction(way[0]), Fraction(way[1])
        met = [
            t
            for row, column in np.argwhere(matrix).tolist()
            if (
                t := first_meeting(
                    start, direction, None, (Fraction(column), Fraction(rows - 1 - row))
                )
            )
            is not None
        ]
        t = min(met, default=None)
        far = t is not None and float(t) * math.hypot(*way) / resolution >= max_range * (1 - 1e-12)
        wanted.append(
            (math.nan, math.nan)
            if t is None or far
            else [float(s + t * d) for s, d in zip(start, direction, strict=True)]
        )

    for path in (contextlib.nullcontext(), in_place_of(ray_kernels, oracle)):
        with path:
            m = BinaryOccupancyMap.from_matrix(matrix, resolution)
            if leaps:
                m._clearance = ray_module.clearance_of(matrix)
            found = m.ray_intersection(
                [*as_floats(start, resolution, (0, 0)), heading], angles, max_range
            )
            np.testing.assert_allclose(found * resolution, wanted, rtol=0, atol=2e-9)


def example(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """A map of scattered blocks, and rays on and near it, some along grid lines and to corners."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(1, 120, 2)
    matrix = np.zeros((rows, columns), bool)

    for _ in range(rng.integers(0, 8)):
        row = rng.integers(0, rows)
        column = rng.integers(0, columns)
        height, width = rng.integers(1, 9, 2)
        matrix[row : row + height, column : column + width] = True

    segments = rng.uniform(-40, 160, (count, 4))
    segments[::3] = np.round(segments[::3])
    segments[1::7, 2] = segments[1::7, 0]
    segments[2::7, 3] = segments[2::7, 1]
    segments[5::11, 2:] = segments[5::11, :2]
    segments[4::13] *= 1e6

    return matrix, segments


def results(
    kernels: Any, matrix: np.ndarray, segments: np.ndarray, plain: bool = False
) -> list[np.ndarray]:
    def function(name: str) -> Any:
        kernel = getattr(kernels, name)
        return kernel.py_func if plain else kernel

    rows, columns = matrix.shape
    offsets = np.zeros(len(segments) + 1, np.int64)
    one_way = np.zeros(len(segments), bool)
    function("count_touched")(segments, rows, columns, offsets[1:], one_way)
    offsets = np.cumsum(offsets)
    cells = np.full((offsets[-1], 2), -9, np.int32)
    is_end = np.zeros(offsets[-1], bool)
    function("fill_touched")(segments, rows, columns, offsets, one_way, cells, is_end)
    freed = np.ones_like(matrix)
    function("free_touched")(segments, freed)
    made = [offsets, cells, is_end, freed]
    for clearance in (ray_module.clearance_of(matrix), ray_module.occupancy_as_clearance(matrix)):
        distances = np.zeros(len(segments))
        hits = np.zeros((len(segments), 2))
        function("first_hits")(segments, clearance, distances, hits)
        made += [distances, hits]
    return made


def same(a: list[np.ndarray], b: list[np.ndarray]) -> None:
    for one, other in zip(a, b, strict=True):
        if one.dtype.kind == "f":
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
        else:
            assert np.array_equal(one, other)


@pytest.mark.parametrize("seed", range(25))
def test_leaps_and_the_oracle_give_the_same(seed):
    matrix, segments = example(seed, 300)
    expected = results(oracle, matrix, segments)
    same(expected[4:6], expected[6:])
    same(results(ray_kernels, matrix, segments), expected)


@pytest.mark.parametrize("seed", range(100, 103))
def test_the_python_source_gives_the_same(seed):
    """The Python source gives the same as the compiled kernels.

    In Python an index beyond an array is an error: compiled code would read on in silence.
    """
    matrix, segments = example(seed, 60)
    same(results(ray_kernels, matrix, segments, plain=True), results(ray_kernels, matrix, segments))


@pytest.mark.parametrize("seed", range(5))
def test_clearance_is_the_chessboard_distance(seed):
    matrix, _ = example(seed, 1)
    expected = (
        distance_transform_cdt(~matrix, "chessboard")
        if matrix.any()
        else np.full(matrix.shape, 255)
    )
    assert np.array_equal(ray_module.clearance_of(matrix), np.minimum(expected, 255))


def test_leaps_over_wide_free_space():
    """More than 255 free cells in a row, a wall of one cell, and rays that graze its end."""
    matrix = np.zeros((900, 1100), bool)
    matrix[300:600, 1000] = True
    m = BinaryOccupancyMap.from_matrix(matrix)
    m._clearance = ray_module.clearance_of(matrix)
    found = m.ray_intersection([0.5, 600.0, 0.0], [0.0, 0.001, -0.4], 2000)
    expected = [[1000.0, 600.0], [math.nan] * 2, [1000.0, 600.0 - 999.5 * math.tan(0.4)]]
    expected[2] = (
        [1000.0, 600 - 999.5 * math.tan(0.4)]
        if 600 - 999.5 * math.tan(0.4) >= 300
        else [math.nan] * 2
    )

    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_ray_does_not_depend_on_what_was_cast_before():
    """The distances for leaps appear after some rays and go when the map changes."""
    m = BinaryOccupancyMap(30, 30, 1)
    m.set_occupancy([20.5, 10.5], 1)
    for _ in range(150):
        assert m.ray_intersection([0.5, 10.5, 0], [0.0], 50).tolist() == [[20.0, 10.5]]
    assert m._clearance is not None
    m.set_occupancy([12.5, 10.5], 1)
    assert m.ray_intersection([0.5, 10.5, 0], [0.0], 50).tolist() == [[12.0, 10.5]]


def test_several_poses_at_once():
    m = BinaryOccupancyMap.from_matrix(np.random.default_rng(4).random((40, 50)) < 0.05, 2)
    poses = np.array([[3.0, 4.0, 0.1], [10.2, 11.3, 2.0], [-5.0, 4.0, 0.0]])
    angles = np.linspace(-1, 1, 7)
    together = m.ray_intersection(poses, angles, 30)
    assert together.shape == (3, 7, 2)
    for pose, found in zip(poses, together, strict=True):
        assert np.array_equal(m.ray_intersection(pose, angles, 30), found, equal_nan=True)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    start=PLACES,
    ends=st.lists(PLACES, min_size=1, max_size=6),
)
def test_inserted_rays(seed, start, ends):
    matrix = np.random.default_rng(seed).random((9, 12)) < 0.5
    wanted = matrix.copy()
    for end in ends:
        for row, column in itertools.chain(*reference_cells(start, end, 9, 12)):
            wanted[row, column] = False

    for end in ends:
        for row, column in reference_cells(start, end, 9, 12)[0]:
            wanted[row, column] = True

    for path in (contextlib.nullcontext(), in_place_of(ray_kernels, oracle)):
        with path:
            m = BinaryOccupancyMap.from_matrix(matrix)
            m.insert_ray(as_floats(start, 1, (0, 0)), [as_floats(end, 1, (0, 0)) for end in ends])
            assert np.array_equal(m.occupancy_matrix(), wanted)


def test_a_scan_is_its_ranges_and_angles():
    ranges = [3.0, math.inf, math.nan, 2.0]
    angles = [0.0, 1.0, 2.0, -0.5]
    scan = SimpleNamespace(ranges=ranges, angles=angles)
    maps = [BinaryOccupancyMap(10, 10, 5, default_value=True) for _ in range(4)]
    maps[0].insert_ray([5, 5, 0.2], ranges, angles, 4)
    maps[1].insert_ray([5, 5, 0.2], scan, 4)
    maps[2].insert_ray([5, 5, 0.2], scan, max_range=4)
    maps[3].insertRay([5, 5, 0.2], scan, 4)
    assert 0 < maps[0].occupancy_matrix().sum() < 2500
    for other in maps[1:]:
        assert np.array_equal(other.occupancy_matrix(), maps[0].occupancy_matrix())


def test_far_ends_cost_no_accuracy():
    """The cells are those of the line, even from far away.

    The start is off the map, a range is infinite, and an end lies as far as the moon.
    """
    m = BinaryOccupancyMap(5, 3, 1, default_value=True)
    m.insert_ray([-1e6, 1.5, 0], [math.inf], [0.0], math.inf)
    assert m.occupancy_matrix().tolist() == [[True] * 5, [False] * 5, [True] * 5]
    endpoints, midpoints = m.raycast([0.5, 0.5], [4e8 + 0.5, 2e8 + 0.5])
    assert len(endpoints) == 0
    assert midpoints.tolist() == reference_list(
        (Fraction(1, 2), Fraction(1, 2)), (Fraction(9, 2), Fraction(5, 2))
    )


def reference_list(start: Point, end: Point) -> list[list[int]]:
    """Ends in the middle of a cell, where the line goes on to the border of the map."""
    ends, others = reference_cells(start, end, 3, 5)
    return [list(cell) for cell in others + ends]


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.raycast([1, 1], [math.inf, 1]),
        lambda m: m.raycast([1, 1, 0], math.inf, 0),
        lambda m: m.raycast([1, 1], 5, 0),
        lambda m: m.raycast_many([[0, 0], [1, 1], [2, 2]], [[1, 1], [2, 2]]),
        lambda m: m.ray_intersection([1, 1], [0], 5),
        lambda m: m.ray_intersection([1, 1, 0], [math.nan], 5),
        lambda m: m.ray_intersection([1, 1, 0], [0], math.nan),
        lambda m: m.insert_ray([1, 1, 0], [-1], [0], 5),
        lambda m: m.insert_ray([1, 1, 0], [-math.inf], [0], 5),
        lambda m: m.insert_ray([1, 1, 0], [1], [0]),
        lambda m: m.insert_ray([1, 1, 0], SimpleNamespace(ranges=[1], angles=[0])),
        lambda m: m.insert_ray([1, 1, 0], [1], [math.inf], 5),
        lambda m: m.insert_ray([1, 1, 0], [1], [0], -5),
        lambda m: m.insert_ray([1, 1, 0], [[1, 1]]),
        lambda m: m.raycast([1e308, 1], [1, 1]),
    ],
)
def test_refused(call):
    m = BinaryOccupancyMap(3, 3, 10, default_value=True)
    with pytest.raises(ValueError, match=r"expected|too far"):
        call(m)
    assert m.occupancy_matrix().all()
