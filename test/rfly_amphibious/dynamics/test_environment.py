# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Pieces of the kernels: the ground they see, and one vehicle among many."""

from __future__ import annotations

import numpy as np
import pytest
from amphibious_cases import model, parameters, plane

from rfly_amphibious import Controls, ModelState
from rfly_amphibious.dynamics.environment import ground_normal, heights_above_ground
from rfly_amphibious.dynamics.records import POINTS_RECORD
from rfly_terrain.height_map.height_map import HeightMap, ground_of


def looks_up():
    """Return the kernels' look-up of a place.

    It returns the height of a point at z = 100 above the ground, and the ground's normal.
    """
    import numba

    @numba.njit
    def look_up(ground, x, y, records):
        points = records[0]
        points.x[3] = x
        points.y[3] = y
        points.height[3] = 100.0
        heights_above_ground(ground, points, 3, 1)
        return points.height[3], ground_normal(ground, points, 3)

    return look_up


def test_the_ground_is_the_height_maps():
    rng = np.random.default_rng(2)
    terrain = HeightMap(
        rng.normal(0, 5, (30, 40)), origin_x=-50.0, origin_y=80.0, step_x=3.7, step_y=-4.1
    )
    ground = ground_of(terrain)
    x = rng.uniform(-70, 80, 500)
    y = rng.uniform(-100, 100, 500)
    look_up = looks_up()

    for k in range(500):
        height, normal = look_up(
            ground,
            x[k],
            y[k],
            np.zeros(1, POINTS_RECORD),
        )
        assert 100.0 - height == pytest.approx(terrain.altitude(x[k], y[k]), abs=1e-12)
        assert normal == pytest.approx(terrain.normal(x[k], y[k], smooth=True), abs=1e-13)
        assert normal[2] >= ground.least_normal_z

    assert ground_of(plane(0.5)).least_normal_z == pytest.approx(1 / np.sqrt(1.25), rel=1e-5)


def test_one_of_a_batch_is_the_vehicle_alone():
    p = parameters("full")
    m = model("full")
    singles = [m.standing(5.0 * k, 0.0, 0.3 * k, speed=float(k)) for k in range(4)]
    singles.append(m.flying((0.0, 0.0, 5.0)))
    batch = ModelState(np.stack([s.x for s in singles]), np.stack([s.memory for s in singles]))
    steering = np.linspace(-0.2, 0.2, 5)
    rotor_speed = 0.5 * p.hover_speed
    controls = Controls(rotor_speed=rotor_speed, steering=steering, drive_torque=100.0)

    end = m.step(batch, controls, steps=500)
    dx = m.derivative(batch.x, rotor_speed=50.0)

    for k, single in enumerate(singles):
        own = Controls(rotor_speed=rotor_speed, steering=steering[k], drive_torque=100.0)
        alone = m.step(single, own, steps=500)
        assert np.array_equal(alone.x, end.x[k])
        assert np.array_equal(alone.memory, end.memory[k])
        assert np.array_equal(m.derivative(single.x, rotor_speed=50.0), dx[k])
