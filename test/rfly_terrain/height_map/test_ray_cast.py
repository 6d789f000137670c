# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rays against planes and saddles worked out by hand.

Rays are also compared with dense sampling of the bilinear function.
"""

from __future__ import annotations

import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from height_maps import grid_map, near, sampled
from hypothesis import given, settings
from hypothesis import strategies as st

from rfly_terrain import HeightMap
from rfly_terrain.height_map import ray_pyramid
from rfly_terrain.height_map.ray_cast import hit_points

DOWN = (0.0, 0.0, -1.0)
UP = np.array((0.0, 0.0, 1.0))


# The slow, obvious reference: the height above the ground at very many points of a ray, then
# bisection.


def above_ground(terrain: HeightMap, points: np.ndarray) -> np.ndarray:
    """Return z minus the bilinear height at (…, 3) points by its four weights; inf off the map."""
    u = (points[..., 0] - terrain.origin_x) / terrain.step_x
    v = (points[..., 1] - terrain.origin_y) / terrain.step_y
    # to within rounding: what crosses the very edge is on it
    on_x = (u >= -1e-9) & (u <= terrain.rows - 1 + 1e-9)
    on_y = (v >= -1e-9) & (v <= terrain.columns - 1 + 1e-9)

    i = np.clip(np.floor(u), 0, terrain.rows - 2).astype(int)
    j = np.clip(np.floor(v), 0, terrain.columns - 2).astype(int)
    a = u - i
    b = v - j
    z = terrain.heights.astype(float)
    ground = z[i, j] * (1 - a) * (1 - b)
    ground += z[i + 1, j] * a * (1 - b)
    ground += z[i, j + 1] * (1 - a) * b
    ground += z[i + 1, j + 1] * a * b
    return np.where(on_x & on_y, points[..., 2] - ground, np.inf)


def sampled_ranges(
    terrain: HeightMap,
    origins: np.ndarray,
    directions: np.ndarray,
    limit: float,
    samples: int = 200,
) -> tuple[np.ndarray, np.ndarray]:
    """Return (range, smallest |height| of a dip) of each ray between 0 and limit metres.

    The range is the first root of the height along the ray. Where the samples come close to the
    ground without reaching it, the lowest point is searched between them.
    """
    unit = units(directions)

    def height(ray: Any, t: np.ndarray) -> np.ndarray:
        return above_ground(terrain, origins[ray] + t[..., None] * unit[ray])

    # evenly, and where the rays cross lines of the grid: there the ground has its kinks
    evenly = np.linspace(0.0, limit, samples)
    times = [np.broadcast_to(evenly, (len(unit), samples))]
    for axis, origin, step, count in (
        (0, terrain.origin_x, terrain.step_x, terrain.rows),
        (1, terrain.origin_y, terrain.step_y, terrain.columns),
    ):
        lines = origin + step * np.arange(count)
        with np.errstate(divide="ignore", invalid="ignore"):
            crossed = (lines - origins[:, axis, None]) / unit[:, axis, None]
        times.append(np.clip(np.nan_to_num(crossed), 0.0, limit))

    t = np.sort(np.concatenate(times, axis=1), axis=1)
    every_ray = np.arange(len(unit))
    heights = height(every_ray[:, None], t)

    # between which samples each ray first meets the ground
    low = np.full(len(unit), np.nan)
    high = np.full(len(unit), np.nan)
    in_ground = heights <= 0.0
    first = np.argmax(in_ground, axis=1)
    hits = in_ground.any(axis=1)
    high[hits] = t[every_ray, first][hits]
    low[hits] = t[every_ray, np.maximum(first - 1, 0)][hits]

    # between two samples above the ground the height, a quadratic there, may dip: its lowest point
    # is searched
    before = heights[:, :-1]
    after = heights[:, 1:]
    lower = np.minimum(before, after)
    ray, k = np.nonzero((lower > 0.0) & (lower < 0.01 * limit))
    first_z = before[ray, k]
    middle_z = height(ray, (t[ray, k] + t[ray, k + 1]) / 2)
    last_z = after[ray, k]
    with np.errstate(invalid="ignore"):
        falls_first = 4 * middle_z < 3 * first_z + last_z
        rises_last = 4 * middle_z < first_z + 3 * last_z
    dips = falls_first & rises_last

    # golden section to the lowest point of each dip
    ray = ray[dips]
    k = k[dips]
    start_of_dip = t[ray, k]
    left = start_of_dip
    right = t[ray, k + 1]
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(36):
        one = right - golden * (right - left)
        two = left + golden * (right - left)
        lower = height(ray, one) < height(ray, two)
        left = np.where(lower, left, one)
        right = np.where(lower, two, right)

    # a dip that reaches the ground before the first sample below it comes first
    lowest = (left + right) / 2
    depth = height(ray, lowest)
    closest = np.full(len(unit), np.inf)
    np.minimum.at(closest, ray, np.abs(depth))
    for n in np.flatnonzero(depth <= 0.0):
        if not lowest[n] >= high[ray[n]]:
            low[ray[n]] = start_of_dip[n]
            high[ray[n]] = lowest[n]

    # bisection to the range
    hits = np.isfinite(high)
    hit_rays = np.flatnonzero(hits)
    left = low[hits]
    right = high[hits]
    left = np.where(height(hit_rays, left) <= 0.0, right, left)  # starts in the ground
    for _ in range(45):
        centre = (left + right) / 2
        below = height(hit_rays, centre) <= 0.0
        left = np.where(below, left, centre)
        right = np.where(below, centre, right)

    ranges = np.full(len(unit), np.inf)
    ranges[hit_rays] = right
    return ranges, closest


def agree(ranges: np.ndarray, expected: np.ndarray) -> np.ndarray:
    return np.isclose(ranges, expected, rtol=0, atol=1e-5)  # two misses are equal


def assert_close(result: np.ndarray, expected: Any, slack: float, equal_nan: bool = False) -> None:
    """Assert that arrays agree to an absolute slack."""
    assert np.allclose(result, expected, rtol=0, atol=slack, equal_nan=equal_nan)


def units(vectors: np.ndarray) -> np.ndarray:
    """Return vectors (n, 3) of length 1."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def random_points(rng: np.random.Generator, low: Any, high: Any, count: int) -> np.ndarray:
    """Return points (count, 3) in a box from its lowest to its highest corner."""
    columns = [rng.uniform(*limits, count) for limits in zip(low, high, strict=True)]
    return np.stack(columns, axis=1)


def scene(seed: int) -> tuple[HeightMap, np.ndarray, np.ndarray, float]:
    """Return a rough map and rays: free, grazing, at vertices, along grid lines, vertical."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(2, 14, 2)
    step_x, step_y = rng.choice([-1, 1], 2) * rng.uniform(0.3, 3.0, 2)
    rough = 10 ** rng.uniform(-1, 0.7)
    terrain = HeightMap(
        rng.normal(0, rough, (rows, columns)),
        origin_x=rng.normal(0, 10),
        origin_y=rng.normal(0, 10),
        step_x=step_x,
        step_y=step_y,
    )
    x_min, x_max, y_min, y_max = terrain.bounds
    size = math.hypot(x_max - x_min, y_max - y_min, terrain.z_max - terrain.z_min)

    def on_ground(count: int) -> np.ndarray:
        x = rng.uniform(x_min, x_max, count)
        y = rng.uniform(y_min, y_max, count)
        return np.stack([x, y, terrain.altitude(x, y)], axis=1)

    def random_units(count: int) -> np.ndarray:
        return units(rng.normal(size=(count, 3)))

    vertices = terrain.point_cloud().reshape(-1, 3).astype(float)
    origins = []
    directions = []

    def add(origin: np.ndarray, direction: np.ndarray) -> None:
        origins.append(origin)
        directions.append(direction)

    # free rays from above and towards the map
    place = rng.uniform((x_min, y_min), (x_max, y_max), (8, 2))
    start = np.column_stack([place, rng.uniform(-1, 3, 8) * rough])
    add(start, random_units(8))
    far_start = start + rng.normal(0, 1, (8, 3)) * size
    add(far_start, -random_units(8) - rng.normal(0, 0.2, (8, 3)))

    # tangents, from both sides of touching the ground
    touched = on_ground(8)
    gradient = terrain.gradient(touched[:, 0], touched[:, 1])
    heading = rng.uniform(0, 2 * np.pi, 8)
    along = np.stack([np.cos(heading), np.sin(heading), np.zeros(8)], axis=1)
    along[:, 2] = (along[:, :2] * gradient).sum(axis=1)
    along = units(along)
    lift = rng.choice([-1e-3, -1e-6, 1e-6, 1e-3], 8)
    distance = rng.uniform(0, 1, (8, 1)) * size / 3
    add(touched - along * distance + lift[:, None] * UP, along)

    # at vertices, but not at the map's own edge, where rounding decides whether a ray is over it:
    # see the tests of corners and edges
    inner_low = (x_min + 1e-6, y_min + 1e-6)
    inner_high = (x_max - 1e-6, y_max - 1e-6)
    aimed = vertices[rng.integers(0, len(vertices), 6)]
    aimed[:, :2] = np.clip(aimed[:, :2], inner_low, inner_high)
    away = random_units(6)
    away[:, 2] = np.abs(away[:, 2])
    lift = rng.choice([-1e-4, 1e-4], (6, 1))
    add(aimed + away * size / 3 + lift * UP, -away)

    # along the lines between vertices
    lines = vertices[rng.integers(0, len(vertices), 4)] + rough * UP
    above_low = lines[:, :2] > inner_low
    below_high = lines[:, :2] < inner_high
    inner = (above_low & below_high).all(axis=1)
    turn = rng.integers(0, 2, 4)[:, None]
    fall = rng.uniform(-0.5, 0.1, (4, 1))
    slanted = np.concatenate([turn, 1 - turn, fall], axis=1) * rng.choice([-1, 1])
    add(lines[inner], slanted[inner])

    # straight down
    start = on_ground(3) + rng.uniform(-0.5, 2, (3, 1)) * UP
    add(start, np.array(DOWN) * rng.uniform(0.1, 9, (3, 1)))
    return terrain, np.concatenate(origins), np.concatenate(directions), 2 * size


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


@pytest.mark.parametrize(
    ("rows", "columns"),
    [(2, 2), (2, 3), (3, 2), (2, 60), (60, 2), (5, 5), (6, 5), (17, 18), (33, 4)],
)
def test_maps_of_any_shape(rows, columns):
    """Blocks that the map does not fill, and maps of one cell or one strip of cells."""
    rng = np.random.default_rng(rows * 100 + columns)
    terrain = grid_map(rng.normal(0, 1, (rows, columns)))
    origins = random_points(rng, (-1, -1, 0), (rows, columns, 5), 400)
    directions = rng.normal(0, 1, (400, 3))
    expected, dip = sampled_ranges(terrain, origins, directions, 100.0, 4_000)
    ranges = terrain.cast(origins, directions, 100.0)
    assert (agree(ranges, expected) | (dip < 1e-9)).all()


def test_shapes_broadcast_and_one_ray_gives_a_float():
    terrain = sampled(lambda x, y: 0.25 * x, 9, 9)
    azimuth = np.linspace(0, 2 * np.pi, 7)
    fall = np.linspace(-1, -0.1, 4)[:, None]
    columns = np.broadcast_arrays(np.cos(azimuth), np.sin(azimuth), fall)
    sweep = np.stack(columns, axis=-1)
    ranges, normals = terrain.cast((4, 4, 3), sweep, normals=True)

    assert ranges.shape == (4, 7)
    assert ranges.dtype == np.float64
    assert normals.shape == (4, 7, 3)

    for index in np.ndindex(4, 7):
        single = terrain.cast((4, 4, 3), sweep[index])
        assert isinstance(single, float)
        assert single == ranges[index]

    origins = np.array([[[4, 4, 3]], [[4, 4, 2]]])
    several = terrain.cast(origins, DOWN, [1.5, 2.5, 0.5])
    assert several.tolist() == [[math.inf, 2, math.inf], [1, 1, math.inf]]

    # no rays
    assert terrain.cast(np.zeros((0, 3)), DOWN).shape == (0,)
    ranges, normals = terrain.cast(np.zeros((2, 0, 3)), DOWN, normals=True)
    assert ranges.shape == (2, 0)
    assert normals.shape == (2, 0, 3)


def test_float32_rays_are_read_as_they_are():
    terrain, origins, directions, limit = scene(3)
    origins32 = origins.astype(np.float32)
    directions32 = directions.astype(np.float32)
    single = terrain.cast(origins32, directions32, limit)
    double = terrain.cast(origins32.astype(float), directions32.astype(float), limit)
    assert np.array_equal(single, double)

    strided = np.asfortranarray(origins)[::-1]
    backwards = terrain.cast(strided, directions[::-1], limit)
    forwards = terrain.cast(origins, directions, limit)
    assert np.array_equal(backwards, forwards[::-1])


@pytest.mark.parametrize(
    ("origins", "directions", "max_range", "message"),
    [
        pytest.param(
            (0, math.nan, 0),
            DOWN,
            1,
            r"origins\[1\] is nan",
            id="NaN origin",
        ),
        pytest.param(
            np.full((2, 3), [[0, 0, 0], [0, 0, np.inf]]),
            DOWN,
            1,
            r"origins\[1, 2\] is inf",
            id="inf origin",
        ),
        pytest.param(
            (0, 0, 9),
            [DOWN, (0, math.nan, 1)],
            1,
            r"directions\[1, 1\] is nan",
            id="NaN direction",
        ),
        pytest.param(
            (0, 0, 9),
            [DOWN, (0, 0, -math.inf)],
            1,
            r"directions\[1, 2\] is -inf",
            id="inf direction",
        ),
        pytest.param(
            (0, 0, 9),
            [[DOWN, (0, 0, 0)]],
            1,
            r"directions\[0, 1\] is 0, 0, 0",
            id="no direction",
        ),
        pytest.param(
            (0, 0, 9),
            (0, -0.0, 0),
            1,
            r"directions is 0, 0, 0: a ray needs a direction",
            id="negative zero",
        ),
        pytest.param(
            (0, 0, 9), DOWN, math.nan, "max_range is nan, expected 0 or more", id="NaN range"
        ),
        pytest.param(
            (0, 0, 9),
            DOWN,
            [1, -1],
            r"max_range\[1\] is -1",
            id="negative range",
        ),
        pytest.param(
            (0, 0), DOWN, 1, r"origins: expected shape \(…, 3\), got \(2,\)", id="two numbers"
        ),
        pytest.param(0.0, DOWN, 1, r"origins: expected shape", id="one number"),
        pytest.param(
            np.zeros((2, 3)),
            np.ones((5, 3)),
            1,
            r"do not broadcast: origins \(2, 3\)",
            id="shapes",
        ),
    ],
)
def test_an_invalid_ray_is_refused_by_name(origins, directions, max_range, message):
    terrain = grid_map(np.zeros((3, 3)))
    with pytest.raises(ValueError, match=message):
        terrain.cast(origins, directions, max_range)


def test_not_a_number_is_refused():
    with pytest.raises(TypeError, match="directions: expected real numbers, got complex128"):
        grid_map(np.zeros((3, 3))).cast((0, 0, 1), (0, 0, 1j))


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


def test_rays_in_several_threads_and_pieces():
    terrain = grid_map(np.random.default_rng(6).normal(0, 1, (120, 90)))
    rng = np.random.default_rng(7)
    origins = random_points(rng, (0, 0, 3), (119, 89, 9), 9_001)
    directions = rng.normal(0, 1, (9_001, 3))
    whole, normals = terrain.cast(origins, directions, normals=True)
    parts = []
    for start in range(0, 9_001, 500):
        part = slice(start, start + 500)
        parts.append(terrain.cast(origins[part], directions[part]))

    assert np.array_equal(whole, np.concatenate(parts))
    assert np.array_equal(np.isnan(normals[:, 0]), np.isinf(whole))

    bad = directions.copy()
    bad[8_000] = 0
    with pytest.raises(ValueError, match=r"directions\[8000\]"):
        terrain.cast(origins, bad)


def test_the_pyramid_holds_the_highest_point_of_every_block():
    for rows, columns in ((2, 2), (5, 5), (6, 9), (40, 131), (300, 7)):
        heights = np.random.default_rng(rows).normal(0, 1, (rows, columns))
        heights = heights.astype(np.float32)
        maxima, levels = ray_pyramid.build(heights)

        for level, (begin, wide) in enumerate(levels):
            size = ray_pyramid.BLOCK << level
            expected = []
            for i in range(0, rows - 1, size):
                for j in range(0, columns - 1, size):
                    block = heights[i : i + size + 1, j : j + size + 1]
                    expected.append(block.max())

            assert wide == len(range(0, columns - 1, size))
            end = begin + len(expected)
            assert maxima[begin:end].tolist() == expected

        assert len(expected) == 1
        assert begin + 1 == maxima.size


def test_the_pyramid_is_built_once_and_small(monkeypatch):
    builds = []
    build = ray_pyramid.build

    def counted_build(heights: np.ndarray) -> Any:
        builds.append(1)
        return build(heights)

    monkeypatch.setattr(ray_pyramid, "build", counted_build)
    terrain = grid_map(np.zeros((1_000, 900)))
    with ThreadPoolExecutor(8) as pool:
        pyramids = list(pool.map(lambda _: ray_pyramid.pyramid_of(terrain), range(32)))
    first = pyramids[0]
    assert builds == [1]
    assert all(pyramid is first for pyramid in pyramids)
    assert sum(array.nbytes for array in first) < terrain.heights.nbytes / 11
    assert not first.maxima.flags.writeable

    twin = pickle.loads(pickle.dumps(terrain))
    assert twin.cast((1, 1, 5), DOWN) == 5


def test_hit_points_lie_at_the_range_along_the_direction():
    directions = [(0, 0, -2), (3, 4, 0), (1e200, 0, 0)]
    points = hit_points((1, 2, 3), directions, [1.5, 10, math.inf])
    assert points[:2].tolist() == [[1, 2, 1.5], [7, 10, 3]]
    assert np.isnan(points[2]).all()
