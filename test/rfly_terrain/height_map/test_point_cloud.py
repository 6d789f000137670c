# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Clouds of a height map: every sample once, at its place, in its order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from height_maps import grid_map, map_e
from hypothesis import given, settings
from hypothesis import strategies as st

from rfly_terrain import HeightMap


def test_worked_example_of_the_format():
    """Example 12: tuples 0, 1, 4 and 11 of outTerrainPoint, x north, y east, z down."""
    points = map_e().point_cloud_ned()
    assert points.dtype == np.float32
    assert points.shape == (3, 4, 3)
    flat = points.reshape(-1, 3)
    assert flat[0].tolist() == [-3, -2, -6]
    assert flat[1].tolist() == [-1, -2, -8]
    assert flat[4].tolist() == [-3, 0, -7]
    assert flat[11].tolist() == [3, 2, -16]


def test_enu_is_the_same_points_in_the_same_order():
    """x and y are exchanged and z is turned: rows run east, columns north."""
    terrain = map_e()
    enu = terrain.point_cloud()
    ned = terrain.point_cloud_ned()
    x_north, y_east, z_down = np.moveaxis(ned, -1, 0)
    assert np.array_equal(enu[..., 0], y_east)
    assert np.array_equal(enu[..., 1], x_north)
    assert np.array_equal(enu[..., 2], -z_down)
    assert enu[2, 0].tolist() == [2, -3, 8]
    assert enu.flags.c_contiguous


def slow_cloud(terrain: HeightMap, stride: int) -> list[list[list[float]]]:
    rows = []
    for r in range(0, terrain.rows, stride):
        x = np.float32(terrain.origin_x + r * terrain.step_x)
        row = []
        for c in range(0, terrain.columns, stride):
            y = np.float32(terrain.origin_y + c * terrain.step_y)
            row.append([x, y, terrain.heights[r, c]])
        rows.append(row)
    return rows


@settings(deadline=None)
@given(
    rows=st.integers(2, 12),
    columns=st.integers(2, 12),
    stride=st.integers(1, 15),
    turned=st.booleans(),
)
def test_stride_takes_every_nth_sample(rows, columns, stride, turned):
    rng = np.random.default_rng(rows * 100 + columns)
    heights = rng.normal(0, 50, (rows, columns))
    step = -0.3 if turned else 0.3
    terrain = HeightMap(heights, origin_x=0.1, origin_y=-7.7, step_x=step, step_y=1.7)
    points = terrain.point_cloud(stride)
    expected = np.array(slow_cloud(terrain, stride))
    assert points.shape[0] == math.ceil(rows / stride)
    assert points.shape[1] == math.ceil(columns / stride)
    assert points.shape[2] == 3
    assert np.array_equal(points, expected)


@pytest.mark.parametrize(
    ("region", "x", "y"),
    [
        pytest.param((-2, 2, -3, 3), [-2, 0, 2], [-3, -1, 1, 3], id="the whole map with borders"),
        pytest.param((-1, 1, -2, 2), [0], [-1, 1], id="inside"),
        pytest.param((0, 0, 1, 1), [0], [1], id="one sample"),
        pytest.param((-100, -1, 0, 1e300), [-2], [1, 3], id="over the edge"),
        pytest.param((0.1, 2, -3, -2.9), [2], [-3], id="a corner"),
    ],
)
def test_region(region, x, y):
    points = map_e().point_cloud(region=region)
    assert np.unique(points[..., 0]).tolist() == x
    assert np.unique(points[..., 1]).tolist() == y
    assert points.shape == (len(x), len(y), 3)


def test_region_with_negative_steps_and_stride():
    """The region is in ENU metres whichever way the map runs.

    The stride counts from the first sample in it.
    """
    heights = np.arange(30.0).reshape(5, 6)
    terrain = HeightMap(heights, origin_x=4, origin_y=10, step_x=-1, step_y=-2)
    region = (0, 3, 2, 8)
    x, y, z = np.moveaxis(terrain.point_cloud(2, region), -1, 0)
    assert x.tolist() == [[3, 3], [1, 1]]
    assert y.tolist() == [[8, 4], [8, 4]]
    assert z.tolist() == [[7, 9], [19, 21]]
    z_down = terrain.point_cloud_ned(2, region)[..., 2]
    assert np.array_equal(z_down, -z)


def test_a_border_that_rounding_moved_is_in_the_region():
    """-9 + 7·(18/7) is 9.000000000000002: a region up to 9 holds that sample."""
    terrain = grid_map(np.zeros((2, 8)), origin_y=-9, step_y=18 / 7)
    points = terrain.point_cloud(region=(0, 1, -9, 9))
    assert points.shape == (2, 8, 3)


def test_large_clouds_are_filled_by_several_threads():
    """Pieces of rows fit together, with a stride and a region too."""
    heights = np.random.default_rng(0).normal(0, 1, (1200, 700))
    heights = heights.astype(np.float32)
    terrain = grid_map(heights)
    points = terrain.point_cloud()
    assert np.array_equal(points[..., 2], heights)
    assert np.array_equal(points[:, 3, 0], np.arange(1200))
    assert np.array_equal(points[5, :, 1], np.arange(700))

    # every third sample of a region
    points = terrain.point_cloud(3, (100, 1100, 50, 690))
    assert np.array_equal(points[..., 2], heights[100:1101:3, 50:691:3])
    assert np.array_equal(points[:, 0, 0], np.arange(100, 1101, 3))


@pytest.mark.parametrize("stride", [0, -1, 1.5, True, math.inf])
def test_strides_that_are_refused(stride):
    with pytest.raises(ValueError, match="stride"):
        map_e().point_cloud(stride)


@pytest.mark.parametrize(
    ("region", "text"),
    [
        pytest.param((1, 0, 0, 1), "x_min <= x_max", id="turned round"),
        pytest.param((0, 1, math.nan, 1), "four finite numbers", id="NaN"),
        pytest.param((0, 1, 2), "four finite numbers", id="three numbers"),
        pytest.param((0.1, 0.2, -3, 3), "holds no sample", id="between two rows"),
        pytest.param((50, 60, -3, 3), "holds no sample", id="off the map"),
        pytest.param((-2, 2, -60, -50), "holds no sample", id="off the map on the other axis"),
    ],
)
def test_regions_that_are_refused(region, text):
    with pytest.raises(ValueError, match=text):
        map_e().point_cloud(region=region)


def test_a_stride_beyond_the_map_leaves_its_first_sample():
    assert map_e().point_cloud(10**30).tolist() == [[[-2, -3, 6]]]


def test_no_negative_zeros():
    """Level ground at 0 is 0 in both frames, not -0."""
    terrain = grid_map(np.zeros((2, 2)))
    assert not np.signbit(terrain.point_cloud()).any()
    assert not np.signbit(terrain.point_cloud_ned()).any()
