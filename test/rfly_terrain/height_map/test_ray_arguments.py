# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Arguments of ray casts, their threads, and the pyramid of highest points that they use."""

from __future__ import annotations

import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from height_maps import grid_map, sampled
from ray_scenes import DOWN, agree, random_points, sampled_ranges, scene

from rfly_terrain.height_map import ray_pyramid
from rfly_terrain.height_map.ray_cast import hit_points


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
