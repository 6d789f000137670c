# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Gradients and normals of the ground: exact, smooth, and at the edges of cells and map."""

from __future__ import annotations

import math

import numpy as np
import pytest
from height_maps import grid_map, near, sampled

from rfly_terrain import HeightMap


def test_the_gradient_on_the_last_edge_is_that_of_the_last_cell():
    """The gradient on an inner border is that of the cell with the higher index."""
    terrain = grid_map([[0, 0], [1, 1], [5, 5]])
    along_x = terrain.gradient([0.0, 0.5, 1.0, 1.5, 2.0], 0.5)[:, 0]
    assert along_x.tolist() == [1, 1, 4, 4, 4]


def test_the_smooth_gradient_is_continuous_where_the_exact_one_jumps():
    """Vertex gradients by hand: one-sided at the ends, central inside, linear in between."""
    terrain = grid_map([[0, 0], [1, 1], [5, 5], [5, 5]], step_x=2)
    vertices = [1 / 2, 5 / 4, 4 / 4, 0]  # (1-0)/2, (5-0)/4, (5-1)/4, (5-5)/2
    between = [(1 / 2 + 5 / 4) / 2, (5 / 4 + 4 / 4) / 2]
    along_x = terrain.gradient([0, 2, 4, 6, 1, 3], 0.5, smooth=True)[:, 0]
    assert along_x == pytest.approx([*vertices, *between])

    # on both sides of a border
    x = [2 - 1e-9, 2 + 1e-9]
    before, after = terrain.gradient(x, 0.5, smooth=True)
    assert before == near(after, 1e-8)
    jump = terrain.gradient(x, 0.5)[:, 0]
    assert jump == pytest.approx([0.5, 2.0])


@pytest.mark.parametrize("outside", [False, True])
def test_gradient_rate_is_the_derivative_of_the_smooth_gradient(outside):
    """Against a central difference along the velocity, inside cells; clamped axes stand still."""
    rng = np.random.default_rng(3)
    heights = rng.normal(0, 5, (8, 9))
    terrain = HeightMap(
        heights,
        origin_x=-2,
        origin_y=3,
        step_x=0.7,
        step_y=-1.3,
    )
    u = rng.integers(0, 7, 300) + rng.uniform(0.1, 0.9, 300)
    v = rng.integers(0, 8, 300) + rng.uniform(0.1, 0.9, 300)

    if outside:
        u[::2] = -3.0
        v[1::3] = 40.0

    x = -2 + 0.7 * u
    y = 3 - 1.3 * v
    vx, vy = rng.normal(0, 10, (2, 300))
    dt = 1e-6
    ahead = terrain.gradient(x + dt * vx, y + dt * vy, smooth=True)
    behind = terrain.gradient(x - dt * vx, y - dt * vy, smooth=True)
    rate = terrain.gradient_rate(x, y, vx, vy)

    assert rate.shape == (300, 2)
    assert rate == near((ahead - behind) / (2 * dt), 1e-6)
    assert np.abs(rate).max() > 1

    first = [float(numbers[0]) for numbers in (x, y, vx, vy)]
    assert terrain.gradient_rate(*first) == pytest.approx(rate[0])


def test_gradient_is_the_derivative_of_altitude():
    rng = np.random.default_rng(4)
    heights = rng.normal(0, 5, (8, 9))
    terrain = HeightMap(
        heights,
        origin_x=-2,
        origin_y=3,
        step_x=-0.7,
        step_y=1.3,
    )
    u = rng.integers(0, 7, 200) + rng.uniform(0.1, 0.9, 200)
    v = rng.integers(0, 8, 200) + rng.uniform(0.1, 0.9, 200)
    x = -2 - 0.7 * u
    y = 3 + 1.3 * v
    h = 1e-5
    z_change_x = terrain.altitude(x + h, y) - terrain.altitude(x - h, y)
    z_change_y = terrain.altitude(x, y + h) - terrain.altitude(x, y - h)
    expected = np.stack([z_change_x, z_change_y], -1) / (2 * h)

    assert terrain.gradient(x, y) == near(expected, 1e-7)


def test_normals_in_both_frames():
    """The normal of z = x_east/2 leans to the west.

    In NED its second component is negative and its third points up.
    """
    terrain = sampled(lambda x, y: 0.5 * x, 3, 3)
    norm = math.sqrt(1.25)
    enu = [-0.5 / norm, 0, 1 / norm]
    ned = [0, -0.5 / norm, -1 / norm]
    assert terrain.query(1.0, 1.0).normal == pytest.approx(enu)
    assert terrain.query_ned(1.0, 1.0).normal == pytest.approx(ned)
    assert terrain.query_ned([1.0], [1.0]).normal == pytest.approx(np.array([ned]))
    assert terrain.query_ned(1.0, 1.5).altitude == -0.75

    # off the map
    assert terrain.normal(-9.0, 1.0).tolist() == [0, 0, 1]
    assert not np.signbit(terrain.normal([-9.0], [1.0])).any()
