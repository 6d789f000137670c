# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rays against planes and saddles worked out by hand.

Rays are also compared with dense sampling of the bilinear function.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from height_maps import grid_map, near, sampled
from hypothesis import given, settings
from hypothesis import strategies as st
from ray_scenes import DOWN, UP, above_ground, agree, random_points, sampled_ranges, scene, units

from rfly_terrain import HeightMap
from rfly_terrain.height_map.ray_cast import hit_points


def assert_close(result: np.ndarray, expected: Any, slack: float, equal_nan: bool = False) -> None:
    """Assert that arrays agree to an absolute slack."""
    assert np.allclose(result, expected, rtol=0, atol=slack, equal_nan=equal_nan)


def test_random_scenes_have_no_missed_and_no_invented_hit():
    """The ranges agree with sampling within 1e-5 m.

    The two may differ about a hit only where a ray touches to 1e-9 m.
    """
    rays = 0
    hits = 0
    touching = 0
    for seed in range(200):
        terrain, origins, directions, limit = scene(seed)
        expected, dip = sampled_ranges(terrain, origins, directions, limit)
        ranges = terrain.cast(origins, directions, limit)
        rays += len(ranges)
        hits += np.count_nonzero(np.isfinite(ranges))

        differs = ~agree(ranges, expected)
        touches = dip < 1e-9
        touching += np.count_nonzero(differs & touches)
        wrong = np.flatnonzero(differs & ~touches)
        assert wrong.size == 0, (
            f"scene {seed}, ray {wrong[0]}: {ranges[wrong[0]]!r}, "
            f"sampling {expected[wrong[0]]!r}, dip {dip[wrong[0]]}"
        )

    assert 0.3 < hits / rays < 0.9  # the scenes hold both
    assert touching < rays / 1_000


def test_where_it_hits_the_ground_is_and_before_that_it_is_not():
    for seed in range(1_000, 1_050):
        terrain, origins, directions, limit = scene(seed)
        ranges = terrain.cast(origins, directions, limit)
        hit = np.isfinite(ranges)
        points = hit_points(origins, directions, ranges)
        assert np.isnan(points[~hit]).all()

        # hits lie on the map, on the ground
        x, y, z = points[hit].T
        x_min, x_max, y_min, y_max = terrain.bounds
        slack = 1e-12 * limit
        assert (x >= x_min - slack).all()
        assert (x <= x_max + slack).all()
        assert (y >= y_min - slack).all()
        assert (y <= y_max + slack).all()
        assert (z - terrain.altitude(x, y) < 1e-9).all()

        # before them the ray is above it
        shares = np.linspace(0, 1, 500, endpoint=False)
        way = shares[:, None] * np.minimum(ranges, limit)
        before = origins + way[..., None] * units(directions)
        height = above_ground(terrain, before)
        assert (height[:, ranges > 0] > -1e-9).all()


def test_a_plane_by_its_formula():
    """The plane is z = 0.5 x - 0.25 y + 3, whose samples float32 holds exactly."""

    def plane(x: Any, y: Any) -> Any:
        return 0.5 * x - 0.25 * y + 3

    terrain = sampled(plane, 41, 33, origin_x=-20, origin_y=8, step_y=-0.5)
    rng = np.random.default_rng(4)
    x = rng.uniform(-19, 19, 5_000)
    y = rng.uniform(-7.5, 7.5, 5_000)
    target = np.stack([x, y, plane(x, y)], axis=1)
    origins = target + random_points(rng, (-30, -30, 30), (30, 30, 60), 5_000)
    ranges, normals = terrain.cast(origins, target - origins, normals=True)

    expected = np.linalg.norm(target - origins, axis=1)
    normal = np.array((-0.5, 0.25, 1)) / math.sqrt(0.25 + 0.0625 + 1)
    assert_close(ranges, expected, 1e-10)
    assert_close(normals, normal, 1e-12)
    assert np.isinf(terrain.cast(origins, origins - target)).all()


ROOT_2 = math.sqrt(2)


@pytest.mark.parametrize(
    ("origin", "direction", "expected"),
    [
        pytest.param(
            (0, 0, 2),
            (1, 1, 0),
            4 * ROOT_2,
            id="up the rising diagonal: x^2 / 8 = 2",
        ),
        pytest.param(
            (0, 0, 2),
            (-3, -3, 0),
            4 * ROOT_2,
            id="up the other rising diagonal",
        ),
        pytest.param(
            (1, 7, 2),
            (1, -1, 0),
            3 * ROOT_2,
            id="touches (8 x - x^2) / 8 at its highest point",
        ),
        pytest.param(
            (1, 7, 2 + 1e-9),
            (1, -1, 0),
            math.inf,
            id="passes it by a nanometre",
        ),
        pytest.param(
            (0, 8, 1.5),
            (1, -1, 0),
            2 * ROOT_2,
            id="through the hill: 8 x - x^2 = 12, x = 2",
        ),
        pytest.param(
            (8, 0, 1.5),
            (-1, 1, 0),
            2 * ROOT_2,
            id="the same from the other side",
        ),
        pytest.param(
            (4, 4, 2.5),
            (1, 1, -1),
            math.sqrt(3) * (math.sqrt(68) - 8),
            id="(4+s)^2 / 8 = 2.5 - s",
        ),
        pytest.param(
            (-3, 3, 0),
            (1, 1, 0),
            3 * ROOT_2,
            id="(s - 3)(s + 3) = 0: out of the valley onto the rise",
        ),
        pytest.param(
            (0, 5, 8),
            (1, -1, 0),
            math.inf,
            id="above all",
        ),
        pytest.param(
            (3.3, -2.2, 5),
            DOWN,
            5 + 3.3 * 2.2 / 8,
            id="straight down",
        ),
    ],
)
def test_a_saddle_by_hand(origin, direction, expected):
    """The saddle is z = x y / 8, bilinear in every cell: a hyperbolic paraboloid."""
    terrain = sampled(lambda x, y: x * y / 8, 17, 17, origin_x=-8, origin_y=-8)
    ranges, normal = terrain.cast(origin, direction, normals=True)
    touches = expected == 3 * ROOT_2
    assert ranges == near(expected, 1e-6 if touches else 1e-12)
    if math.isfinite(expected):
        x, y, _ = hit_points(origin, direction, ranges)
        upwards = np.array((-y, -x, 8))
        assert normal == near(upwards / np.linalg.norm(upwards), 1e-6)
    else:
        assert np.isnan(normal).all()


def test_the_diagonal_on_which_triangles_differ():
    """The middle of a cell with corners 0, 1, 1, 0 is 0.5, where two triangles have 0 or 1."""
    terrain = grid_map([[0, 1], [1, 0]])
    assert terrain.cast((0.5, 0.5, 2), DOWN) == 1.5

    # along one diagonal the ground is 2 a (1 - a), along the other 1 - 2 a (1 - a)
    along = (1, 1, 0)
    across = (1, -1, 0)
    rises_to_0_4 = ROOT_2 * (1 - math.sqrt(0.2)) / 2
    rises_to_0_6 = ROOT_2 * math.sqrt(0.05)
    assert terrain.cast((0, 0, 0.4), along) == near(rises_to_0_4, 1e-14)
    assert terrain.cast((0, 0, 0.5 - 1e-9), along) == near(math.sqrt(0.5), 1e-4)
    assert terrain.cast((0, 0, 0.5 + 1e-9), along) == math.inf
    assert terrain.cast((0.5, 0.5, 0.6), across) == near(rises_to_0_6, 1e-14)
    assert terrain.cast((0.5, 0.5, 0.6), along) == math.inf


def test_vertical_rays_give_the_altitude():
    rng = np.random.default_rng(5)
    heights = rng.normal(0, 3, (37, 23))
    terrain = grid_map(heights, origin_x=5, step_x=-0.7, step_y=2.3)
    x_min, x_max, y_min, y_max = terrain.bounds
    x = rng.uniform(x_min, x_max, 4_000)
    y = rng.uniform(y_min, y_max, 4_000)
    nodes = terrain.point_cloud().reshape(-1, 3)
    x[: len(nodes)] = nodes[:, 0]
    y[: len(nodes)] = nodes[:, 1]
    x = np.clip(x, x_min, x_max)
    y = np.clip(y, y_min, y_max)
    origins = np.stack([x, y, np.full(4_000, 50.0)], axis=1)
    altitude, _, normal = terrain.query(x, y)
    ranges, normals = terrain.cast(origins, DOWN, normals=True)

    off_nodes = slice(len(nodes), None)
    assert_close(50 - ranges, altitude, 1e-12)
    assert_close(normals[off_nodes], normal[off_nodes], 1e-12)
    assert np.isinf(terrain.cast(origins, UP)).all()
    off_map = origins + np.array((x_max - x_min + 1, 0, 0))
    assert np.isinf(terrain.cast(off_map, DOWN)).all()


@pytest.mark.parametrize(
    ("x", "y"), [(0, 0), (0, 7), (9, 0), (9, 7), (9, 3.5), (4.5, 7), (0, 2), (4, 0), (4, 4), (8, 4)]
)
def test_corners_and_edges_belong_to_the_map(x, y):
    terrain = sampled(lambda x, y: x, 10, 8)
    assert terrain.cast((x, y, 20), DOWN) == 20 - x

    # along a line of the grid or the map's edge, 1 m above it, and on it
    along_y = (0, 2 * y - 7 or 1, 0)
    assert terrain.cast((x, 7 - y, x + 1), along_y) == math.inf
    assert terrain.cast((x, y, x), (0, 1, 0)) == 0

    # from outside straight at it, 1 mm below the edge
    outwards = np.array((x - 4.25, y - 3.25, 0))
    length = 3 * np.linalg.norm(outwards)
    start = (x, y, x - 1e-3) + 3 * outwards
    from_outside = terrain.cast(start, -outwards, length + 1e-9)
    if x in (0, 9) or y in (0, 7):
        assert from_outside == near(length, 1e-9)
    else:
        assert from_outside < length  # the map's edge or the slope before it


NEIGHBOURS = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))


def test_a_peak_on_a_line_of_the_grid_is_not_passed_between_blocks():
    """Rays just below the top of one sample of 1 m among zeros hit it, wherever it lies.

    They run along lines and diagonals.
    """
    for i in range(1, 18):
        heights = np.zeros((19, 11))
        heights[i, 5] = 1
        terrain = grid_map(heights)
        for direction in NEIGHBOURS:
            length = math.hypot(*direction)
            unit = np.array((*direction, 0)) / length
            start = (i, 5, 0.75) - 30 * unit

            # along a line the cell falls linearly, along a diagonal its height is (1 - s)^2
            before = 0.25 if length == 1.0 else length * (1 - math.sqrt(0.75))
            assert terrain.cast(start, unit) == near(30 - before), (i, direction)
            above_top = start + (0.25 + 1e-9) * UP
            assert terrain.cast(above_top, unit) == math.inf


def test_below_the_surface_all_is_ground():
    terrain = sampled(lambda x, y: 2 + 0.5 * x, 9, 9)
    normal = near(np.array((-0.5, 0, 1)) / math.sqrt(1.25))
    for origin in ((4, 4, 4), (4, 4, 3.9), (4, 4, -100)):
        for direction in ((0, 0, 1), (1, 2, 3), DOWN):
            ranges, normals = terrain.cast(origin, direction, normals=True)
            assert ranges == 0
            assert normals == normal

    # from the side into the cut at the map's edge
    ranges, normals = terrain.cast((-3, 4, 1), (1, 0, 0), normals=True)
    assert ranges == 3
    assert normals == normal
    assert terrain.cast((-3, 4, 1), (-1, 0, 0)) == math.inf
    assert terrain.cast((4, 4, -100), (0, 0, 1), 0.0) == 0

    # outside the map there is nothing
    assert terrain.cast((-1e-6, 4, 100), DOWN) == math.inf
    assert terrain.cast((4, 8.001, 100), (0, 1e-3, -1)) == math.inf


def test_max_range_counts_metres_and_is_inclusive():
    # the direction has length 5, and the ray is 3 m above, so 3.75 m long
    origin = (2, 2, 3)
    direction = (0, 3, -4)
    large = grid_map(np.zeros((9, 9)))
    too_short = np.nextafter(3.75, 0)
    assert large.cast(origin, direction, 3.75) == 3.75
    assert large.cast(origin, direction, too_short) == math.inf

    terrain = grid_map(np.zeros((5, 5)))
    ranges = terrain.cast(origin, DOWN, [1, 3, 5, math.inf])
    assert list(ranges) == [math.inf, 3, 3, 3]
    assert terrain.cast((2, 2, 0), DOWN, 0) == 0


@pytest.mark.parametrize("length", [5e-324, 1e-300, 1e-30, 1.0, 1e30, 1e300])
def test_the_length_of_a_direction_does_not_matter(length):
    terrain = sampled(lambda x, y: 0.125 * x * y, 9, 9)
    assert terrain.cast((1, 2, 9), np.array(DOWN) * length) == 8.75
    if length > 1e-300:
        level = np.array((length, length, 0))
        assert terrain.cast((1, 1, 0.5), level) == near(ROOT_2)


def test_nearly_vertical_and_nearly_parallel_rays():
    terrain = sampled(lambda x, y: 0.125 * x * y, 9, 9)
    for tiny in (5e-324, 1e-200, 1e-100, 1e-50, 1e-16):
        for a, b in ((tiny, tiny), (tiny, -tiny), (-tiny, tiny), (-tiny, -tiny)):
            assert terrain.cast((3, 5, 9), (a, b, -1)) == near(9 - 15 / 8)
            assert terrain.cast((3, 5, 2), (1, a, b)) == near(0.2)


def test_far_origins_cost_no_more_than_their_own_rounding():
    terrain = sampled(lambda x, y: 0.125 * x * y, 9, 9, origin_x=0)
    target = np.array((3.3, 5.1, 0.125 * 3.3 * 5.1))
    for distance in (1e3, 1e6, 1e9):
        origin = target + distance * np.array((2, 3, 6)) / 7
        slack = 1e-14 * distance + 1e-12
        assert terrain.cast(origin, target - origin) == near(distance, slack)
    assert terrain.cast((3, 5, 1e300), DOWN) == 1e300


def test_a_map_turned_over_with_negative_steps_is_the_same_ground():
    for seed in range(30):
        terrain, origins, directions, limit = scene(seed)
        x_last = terrain.origin_x + (terrain.rows - 1) * terrain.step_x
        y_last = terrain.origin_y + (terrain.columns - 1) * terrain.step_y
        turned = HeightMap(
            terrain.heights[::-1, ::-1],
            origin_x=x_last,
            origin_y=y_last,
            step_x=-terrain.step_x,
            step_y=-terrain.step_y,
        )
        # away from tangents, where rounding decides
        free = slice(0, 16)
        rays = (origins[free], directions[free], limit)
        ranges, normals = terrain.cast(*rays, normals=True)
        turned_ranges, turned_normals = turned.cast(*rays, normals=True)
        assert_close(ranges, turned_ranges, 1e-7)
        assert_close(normals, turned_normals, 1e-6, equal_nan=True)


def test_east_is_x_and_north_is_y():
    """Rows run along x: there is one peak off the diagonal."""
    heights = np.zeros((30, 20))
    heights[22, 4] = 10
    terrain = grid_map(
        heights,
        origin_x=100,
        origin_y=-50,
        step_x=2,
        step_y=5,
    )
    north = (0, 1, 0)
    east = (1, 0, 0)

    assert terrain.cast((144, -30, 60), DOWN) == 50
    assert terrain.cast((144, -49, 9), north) == near(19 - 0.5)
    assert terrain.cast((101, -30, 9), east) == near(43 - 0.2)
    assert terrain.cast((101, -36, 9), east) == math.inf


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), share=st.floats(0.0, 1.0))
def test_a_ray_that_starts_later_hits_where_it_did(seed, share):
    terrain, origins, directions, limit = scene(seed)
    ranges = terrain.cast(origins, directions, limit)
    hit = np.isfinite(ranges) & (ranges > 1e-3)
    origins = origins[hit]
    directions = directions[hit]
    ranges = ranges[hit]

    unit = units(directions)
    gone = share * 0.999 * ranges
    later = terrain.cast(origins + gone[:, None] * unit, unit)
    # tangents, rays 16 to 23, may start in the ground by rounding
    clear = ~np.isin(np.flatnonzero(hit), range(16, 24))
    assert_close((later + gone)[clear], ranges[clear], 1e-6)

    # a shorter ray does not reach it, one of that length does
    longer = terrain.cast(origins, directions, ranges * (1 + 1e-12))
    shorter = terrain.cast(origins, directions, ranges * (1 - 1e-12))
    assert np.array_equal(longer, ranges)
    assert np.isinf(shorter).all()
