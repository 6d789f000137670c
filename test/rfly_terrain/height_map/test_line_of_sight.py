"""Lines of sight over ridges and between points on the ground."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_terrain import HeightMap

UP = np.array((0.0, 0.0, 1.0))


def grid_map(heights, step_x=1.0, step_y=1.0):
    return HeightMap(heights, origin_x=0.0, origin_y=0.0, step_x=step_x, step_y=step_y)


def test_line_of_sight_over_a_ridge():
    """A ridge of 10 m at x = 20: from 1 m at x = 0 a point at x = 40 is seen from 19 m up."""
    heights = np.zeros((41, 31))
    heights[20] = 10
    terrain = grid_map(heights)
    start = (0, 15, 1)
    seen = terrain.line_of_sight(
        start, np.stack(np.broadcast_arrays(40.0, 15.0, [0, 10, 18.99, 19.01, 40]), axis=-1)
    )

    assert seen.tolist() == [False, False, False, True, True]
    assert terrain.line_of_sight((40, 15, 19.01), start) is True
    assert terrain.line_of_sight(start, (19, 15, 1)) is True
    assert terrain.line_of_sight(start, (21, 3, 1)) is False
    assert (
        terrain.line_of_sight((-1, 15, 1), (-1, 40, -5)) is True
    )  # outside the map nothing is in the way
    assert terrain.line_of_sight((5, 5, 0), (5, 5, 0)) is True
    assert terrain.line_of_sight((5, 5, -1), (5, 5, -1)) is False


def test_points_on_the_ground_see_and_are_seen():
    rng = np.random.default_rng(8)
    terrain = grid_map(rng.normal(0, 1, (30, 30)), step_x=2, step_y=3)
    x = rng.uniform(0, 58, 500)
    y = rng.uniform(0, 87, 500)
    ground = np.stack([x, y, terrain.altitude(x, y)], axis=1)
    aloft = ground + 30 * UP

    assert terrain.line_of_sight(aloft, ground).all()
    assert terrain.line_of_sight(ground, aloft).all()
    assert terrain.line_of_sight(ground, ground).all()
    assert not terrain.line_of_sight(aloft, ground - 0.01 * UP).any()
    assert terrain.line_of_sight(aloft, ground - 0.01 * UP, tolerance=0.02).all()

    there = terrain.line_of_sight(ground[:250], ground[250:])
    back = terrain.line_of_sight(ground[250:], ground[:250])
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
    with pytest.raises(ValueError, match=message):
        grid_map(np.zeros((3, 3))).line_of_sight(a, b, **options)
