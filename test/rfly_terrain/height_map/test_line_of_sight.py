# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Lines of sight over ridges and between points on the ground."""

from __future__ import annotations

import math

import numpy as np
import pytest
from height_maps import grid_map

from rfly_terrain import HeightMap
from rfly_terrain.height_map.ray_cast import RADIO_EARTH_RADIUS, SIGHT_EARTH_RADIUS

UP = np.array((0.0, 0.0, 1.0))


def test_line_of_sight_over_a_ridge():
    """A point at x = 40 is seen from 19 m up, over a ridge of 10 m at x = 20.

    The eye is 1 m up at x = 0.
    """
    heights = np.zeros((41, 31))
    heights[20] = 10
    terrain = grid_map(heights)
    start = (0, 15, 1)
    heights_up = [0, 10, 18.99, 19.01, 40]
    points = [(40.0, 15.0, z) for z in heights_up]
    seen = terrain.line_of_sight(start, points)

    assert seen.tolist() == [False, False, False, True, True]
    assert terrain.line_of_sight((40, 15, 19.01), start) is True
    assert terrain.line_of_sight(start, (19, 15, 1)) is True
    assert terrain.line_of_sight(start, (21, 3, 1)) is False

    # outside the map nothing is in the way
    assert terrain.line_of_sight((-1, 15, 1), (-1, 40, -5)) is True

    # one point, on the ground and in it
    on_ground = (5, 5, 0)
    in_ground = (5, 5, -1)
    assert terrain.line_of_sight(on_ground, on_ground) is True
    assert terrain.line_of_sight(in_ground, in_ground) is False


def test_points_on_the_ground_see_and_are_seen():
    rng = np.random.default_rng(8)
    terrain = grid_map(rng.normal(0, 1, (30, 30)), step_x=2, step_y=3)
    x = rng.uniform(0, 58, 500)
    y = rng.uniform(0, 87, 500)
    ground = np.stack([x, y, terrain.altitude(x, y)], axis=1)
    aloft = ground + 30 * UP
    in_ground = ground - 0.01 * UP

    assert terrain.line_of_sight(aloft, ground).all()
    assert terrain.line_of_sight(ground, aloft).all()
    assert terrain.line_of_sight(ground, ground).all()
    assert not terrain.line_of_sight(aloft, in_ground).any()
    assert terrain.line_of_sight(aloft, in_ground, tolerance=0.02).all()

    one_half = ground[:250]
    other_half = ground[250:]
    there = terrain.line_of_sight(one_half, other_half)
    back = terrain.line_of_sight(other_half, one_half)
    assert (there == back).mean() > 0.99
    assert 0.0 < there.mean() < 0.9


@pytest.mark.parametrize(
    ("a", "b", "options", "message"),
    [
        ((0, 0, math.nan), (1, 1, 1), {}, r"a\[2\] is nan"),
        ((0, 0, 0), [(1, 1, 1), (1, math.inf, 1)], {}, r"b\[1, 1\] is inf"),
        ((0, 0), (1, 1, 1), {}, r"a: expected shape"),
        (np.zeros((2, 3)), np.zeros((4, 3)), {}, "do not broadcast"),
        ((0, 0, 0), (1, 1, 1), {"tolerance": -1.0}, "tolerance is -1.0"),
    ],
)
def test_an_invalid_line_is_refused_by_name(a, b, options, message):
    terrain = grid_map(np.zeros((3, 3)))
    with pytest.raises(ValueError, match=message):
        terrain.line_of_sight(a, b, **options)


LEVEL = HeightMap(
    np.zeros((2, 2)), origin_x=-100.0, origin_y=-100.0, step_x=60_000.0, step_y=60_000.0
)


@pytest.mark.parametrize(
    ("radius", "kilometres"),
    [(RADIO_EARTH_RADIUS, 4.122), (SIGHT_EARTH_RADIUS, 3.827), (6_371_000.0, 3.570)],
)
@pytest.mark.parametrize(("low", "high"), [(2.0, 15.0), (1.0, 5.9), (30.0, 30.0), (1.0, 100.0)])
def test_the_horizon_of_two_heights(radius, kilometres, low, high):
    """ITU-R P.310: an antenna h metres high has its radio horizon at 4.12 √h km."""
    horizon = 1000.0 * kilometres * (math.sqrt(low) + math.sqrt(high))
    east = 0.6 * horizon * np.array([0.1, 0.99, 1.01, 1.5])
    north = 0.8 * horizon * np.array([0.1, 0.99, 1.01, 1.5])
    points = np.stack([east, north, np.full(4, high)], axis=-1)
    seen = LEVEL.line_of_sight((0.0, 0.0, low), points, earth_radius=radius)
    assert seen.tolist() == [True, True, False, False]
    back = LEVEL.line_of_sight(points, (0.0, 0.0, low), earth_radius=radius)
    assert back.tolist() == seen.tolist()
    assert LEVEL.line_of_sight((0.0, 0.0, low), points).all()


def test_a_round_earth_with_hills_as_slow_steps_see_it():
    """The ground at x of a line d long stands x (d - x) / 2 R higher over the chord."""
    rng = np.random.default_rng(5)
    hills = HeightMap(
        rng.uniform(0.0, 60.0, (40, 40)), origin_x=0.0, origin_y=0.0, step_x=800.0, step_y=800.0
    )
    a, b = rng.uniform(0.0, 31_000.0, (2, 200, 2))
    s = np.linspace(0.0, 1.0, 4001)
    compared = 0
    for start, end in zip(a, b, strict=True):
        line = start + s[:, None] * (end - start)
        ground = hills.altitude(line[:, 0], line[:, 1])
        d = math.dist(start, end)
        bulge = s * (1.0 - s) * d * d / (2.0 * RADIO_EARTH_RADIUS)
        low = ground[0] + 20.0
        high = ground[-1] + 20.0
        room = (low + s * (high - low) - ground - bulge).min()
        if abs(room) < 0.1:
            continue
        seen = hills.line_of_sight((*start, low), (*end, high), earth_radius=RADIO_EARTH_RADIUS)
        assert seen is bool(room > 0.0)
        compared += 1

    assert compared > 150


@pytest.mark.parametrize("radius", [0.0, -6.4e6, math.nan, 1e5])
def test_no_such_earth(radius):
    with pytest.raises(ValueError, match="earth_radius"):
        LEVEL.line_of_sight((0, 0, 1), (10, 0, 1), earth_radius=radius)
