# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""REP-105's `odom` is continuous where the estimate jumps.

`map` → `odom` → `base_link` is the estimate all the same.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.estimation.odometry_frame import OdometryFrame
from rfly_common.frames import euler_to_quat, quat_rotate, quat_to_euler

RATE = 100.0
SPEED = 5.0
TURN = 0.5


def circle(time, shift=(0.0, 0.0, 0.0), yaw=0.0):
    """Return estimates at 5 m/s on a circle of 10 m to the left, nose 0.1 rad up.

    The estimator is off by a shift and a yaw.
    """
    heading = TURN * time
    place = np.array((10.0 * math.sin(heading), 10.0 * (1.0 - math.cos(heading)), 2.0)) + shift
    orientation = euler_to_quat((0.0, -0.1, heading + yaw))
    velocity = SPEED * np.array((math.cos(heading + yaw), math.sin(heading + yaw), 0.0))
    # the rate is about the world's z: in body axes by the pitch
    rates = TURN * np.array((math.sin(0.1), 0.0, math.cos(0.1)))
    return Estimate(time, place, orientation, velocity, rates)


def run(estimates):
    way = OdometryFrame()
    rows = []
    for estimate in estimates:
        way.update(estimate)
        rows.append((estimate, *way.transforms()))
    return rows


def test_without_corrections_odom_stays_where_map_is():
    for estimate, place, odom in run(circle(k / RATE) for k in range(400)):
        assert place.translation == pytest.approx(estimate.position, abs=1e-3), (
            "the trapezoidal rule over 4 s"
        )
        assert abs(place.quat_xyzw @ estimate.orientation) == pytest.approx(1.0, abs=1e-9)
        assert odom.translation == pytest.approx(np.zeros(3), abs=2e-3)


def test_corrections_go_into_map_to_odom_and_leave_no_jump():
    """GPS moves the estimate by metres and turns it by 6° after 2 s; the wheels have not moved."""
    jump = [
        circle(k / RATE) if k < 200 else circle(k / RATE, (3.0, -2.0, 0.5), 0.1) for k in range(400)
    ]
    rows = run(jump)
    places = np.array([place.translation for _, place, _ in rows])
    steps = np.linalg.norm(np.diff(places, axis=0), axis=1)

    expected = np.full(399, SPEED / RATE)
    assert steps == pytest.approx(expected, rel=2e-3)

    yaws = np.unwrap([quat_to_euler(place.quat_xyzw)[2] for _, place, _ in rows])
    expected = np.full(399, TURN / RATE)
    assert np.diff(yaws) == pytest.approx(expected, abs=1e-4)

    for estimate, place, odom in rows:
        together = odom @ place
        assert together.translation == pytest.approx(estimate.position, abs=1e-9)
        assert abs(together.quat_xyzw @ estimate.orientation) == pytest.approx(1.0, abs=1e-9)
        assert quat_rotate(odom.quat_xyzw, (0.0, 0.0, 1.0)) == pytest.approx(
            (0.0, 0.0, 1.0), abs=1e-9
        ), "z is up"
    before = rows[199][2]
    after = rows[-1][2]
    assert before.translation == pytest.approx(np.zeros(3), abs=2e-3)
    assert quat_to_euler(after.quat_xyzw)[2] == pytest.approx(0.1, abs=1e-3)


def test_its_covariance_grows_by_the_corrections_that_it_leaves_out():
    """The covariance is the estimate's own plus the squares of GPS's corrections of 3 m and 2 m."""
    way = OdometryFrame()
    for k in range(20):
        moved = (0.0, 0.0, 0.0) if k < 10 else (3.0, -2.0, 0.0)
        now = circle(k / RATE, moved)._replace(covariance=np.eye(9))
        way.update(now)
    place, _ = way.transforms()
    local = way.local()

    assert local.position == pytest.approx(place.translation)
    assert local.orientation == pytest.approx(place.quat_xyzw)
    assert local.velocity == pytest.approx(now.velocity, abs=1e-6)
    expected = np.eye(3) + np.outer((-3, 2, 0), (-3, 2, 0))
    assert local.covariance[:3, :3] == pytest.approx(expected, abs=1e-2)
    assert local.covariance[3:, 3:] == pytest.approx(np.eye(6), abs=1e-6)


def test_a_reset_begins_anew_at_the_next_estimate():
    way = OdometryFrame()
    for k in range(100):
        way.update(circle(k / RATE))
    way.reset()
    way.update(circle(0.0, (50.0, 60.0, 70.0)))
    place, odom = way.transforms()
    assert place.translation.tolist() == [50.0, 60.0, 72.0]
    assert odom.translation == pytest.approx(np.zeros(3), abs=1e-12)
