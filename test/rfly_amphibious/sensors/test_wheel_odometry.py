# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Dead reckoning against circles worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_amphibious import VehicleParameters
from rfly_amphibious.sensors.sensor_suite import WheelOdometry

SCALE = VehicleParameters.load("scale")
FRONT = 0.32
REAR = 0.34
HALF = 0.28


def test_straight_on_it_rolls_the_circumference():
    odometry = WheelOdometry(SCALE, np.zeros(4))
    got = odometry.update(2.0 / SCALE.rolling_radius, np.zeros(4), 0.5)
    assert got == pytest.approx((2.0, 0.0, 0.0, 4.0, 0.0, 0.0), abs=1e-12)


@pytest.mark.parametrize("steps", [1, 100])
def test_a_quarter_of_a_circle_about_a_point_abreast_of_the_rear_axle(steps):
    """The circle is about (-0.34, 3), from (0, 0) to (3 - 0.34, 3 + 0.34).

    One arc is as good as many.
    """
    hubs = np.array(
        (
            (FRONT, HALF),
            (FRONT, -HALF),
            (-REAR, HALF),
            (-REAR, -HALF),
        )
    )
    steering = np.arctan2(hubs[:, 0] + REAR, 3.0 - hubs[:, 1])
    ways = np.hypot(hubs[:, 0] + REAR, 3.0 - hubs[:, 1]) * math.pi / 2
    odometry = WheelOdometry(SCALE, np.zeros(4))
    for k in range(1, steps + 1):
        got = odometry.update(ways / SCALE.rolling_radius * k / steps, steering, 2.0 / steps)

    expected = (2.66, 3.34, math.pi / 2)
    assert got[:3] == pytest.approx(expected, abs=1e-9)

    rate = math.pi / 4
    expected = (3.0 * rate, REAR * rate, rate)
    assert got[3:] == pytest.approx(expected, abs=1e-9)


def test_skid_steer_turns_by_the_difference_of_its_sides():
    skid = SCALE.replace(steered="none", max_steering=0.0, front_axle=0.33, rear_axle=0.33)
    odometry = WheelOdometry(skid, np.zeros(4))
    got = odometry.update(np.array((-1, 1, -1, 1)) * 0.07 / skid.rolling_radius, np.zeros(4), 0.1)
    assert got == pytest.approx(
        (0.0, 0.0, 0.25, 0.0, 0.0, 2.5), abs=1e-12
    )  # 0.07 m on a radius of 0.28 m


def test_without_a_beginning_the_first_angles_are_it():
    odometry = WheelOdometry(SCALE)
    assert odometry.update(np.full(4, 50.0), np.zeros(4), 0.01)[:3] == (0.0, 0.0, 0.0)
    other = WheelOdometry(SCALE, np.full(4, 50.0))
    ahead = 50.0 + np.array((0.1, 0.2, 0.1, 0.2))
    assert other.update(ahead, np.full(4, 0.1), 0.01) == odometry.update(
        ahead, np.full(4, 0.1), 0.01
    )
    assert odometry.motion.x > 0.01
