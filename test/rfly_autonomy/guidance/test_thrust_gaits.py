# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Gaits of a vehicle with thrust assistance: what it does on a slope and at corrections."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.guidance.thrust_assist import Ascent, Gait, ThrustAssist

PARAMS = VehicleParameters.load("scale")
SLOPE = math.radians(20.0)
DT = 0.02


def on_slope(heading, slope):
    """Return the attitude, (3, 3), of a vehicle on a plane that rises along the world's x."""
    up = np.array((-math.sin(slope), 0.0, math.cos(slope)))
    forward = np.array((math.cos(heading), math.sin(heading), 0.0))
    forward[2] = -(up[:2] @ forward[:2]) / up[2]
    forward /= np.linalg.norm(forward)
    return np.column_stack((forward, np.cross(up, forward), up))


def quaternion(rotation):
    """Return x y z w of a rotation, (3, 3), by less than a half turn."""
    w = 0.5 * math.sqrt(1.0 + np.trace(rotation))
    skew = rotation - rotation.T
    return np.array((skew[2, 1], skew[0, 2], skew[1, 0], 4.0 * w * w)) / (4.0 * w)


def seen(time, rotation, speed, place=(0.0, 0.0, 0.0)):
    return Estimate(
        time, np.array(place), quaternion(rotation), speed * rotation[:, 0], np.zeros(3)
    )


@pytest.mark.parametrize("heading_deg", [-60.0, -25.0, 0.0, 40.0])
def test_the_ascent_lies_where_the_plane_rises(heading_deg):
    """The angle is one of the plane, up to 2° from that on the map at a slope of 20°."""
    heading = math.radians(heading_deg)
    ascent = Ascent(PARAMS.wheelbase)
    ascent.update(on_slope(heading, SLOPE), True, 0.01)
    assert math.degrees(ascent.askew(heading)) == pytest.approx(-heading_deg, abs=2.0)
    assert ascent.askew(heading + 0.3) == pytest.approx(ascent.askew(heading) - 0.3)


def test_the_ascent_is_forgotten_on_level_ground_and_not_seen_from_above_or_in_the_air():
    ascent = Ascent(PARAMS.wheelbase)
    ascent.update(on_slope(math.pi - 0.2, SLOPE), True, 0.01)
    assert ascent.askew(0.0) is None
    ascent.update(on_slope(0.2, SLOPE), False, 0.01)
    assert ascent.askew(0.0) is None

    ascent.update(on_slope(0.2, SLOPE), True, 0.01)
    for _ in range(10):
        ascent.update(np.eye(3), True, 0.04 * PARAMS.wheelbase)
        assert ascent.askew(0.0) is not None
    for _ in range(3):
        ascent.update(np.eye(3), True, 0.04 * PARAMS.wheelbase)
    assert ascent.askew(0.0) is None


def test_a_correction_of_the_position_is_no_stall():
    """It drives at 0.5 m/s while a correction takes its position back at 0.4 m/s for 3 s."""
    assist = ThrustAssist(PARAMS)
    for k in range(150):
        now = seen(DT * k, np.eye(3), 0.5, (0.1 * DT * k, 0.0, 0.0))
        step = assist.update(now, 1.0, DT)
    assert assist.gait is Gait.ROLL
    assert step.assist is None
    assert step.steering is None

    for k in range(150, 230):
        assist.update(seen(DT * k, np.eye(3), 0.0, (0.5, 0.0, 0.0)), 1.0, DT)
    assert assist.gait is Gait.FRONT_UP


@pytest.mark.parametrize("askew_deg", [-40.0, 25.0])
def test_a_vehicle_that_stalls_askew_rolls_back_until_it_looks_straight_up(askew_deg):
    """It stalls forwards, and rolls back as a single track by the steering that is commanded.

    Before, it steers to the ascent where the slope begins.
    """
    assist = ThrustAssist(PARAMS)
    heading = -math.radians(askew_deg)
    gaits = []
    steps = []
    for k in range(600):
        speed = -0.3 if assist.gait is Gait.TURN else 0.0
        step = assist.update(seen(DT * k, on_slope(heading, SLOPE), speed), 1.0, DT)
        if step.speed < 0.0 and speed < 0.0:
            heading += DT * speed * math.tan(step.steering) / PARAMS.wheelbase
        steps.append(step)
        if not gaits or gaits[-1] is not assist.gait:
            gaits.append(assist.gait)
    assert steps[0].speed > 0.0
    assert steps[0].steering * askew_deg > 0.0

    back = next(step for step in steps if step.speed < 0.0)
    assert back.steering * askew_deg < 0.0, "backwards it steers away from the ascent"
    assert gaits[:4] == [Gait.ROLL, Gait.TURN, Gait.ROLL, Gait.REAR_UP]
    assert abs(math.degrees(heading)) < 5.0


def test_on_a_slope_that_its_wheels_climb_it_follows_its_path():
    """It rolls askew, stalls once, and follows its path again 4 wheelbases later."""
    assist = ThrustAssist(PARAMS)
    rotation = on_slope(math.radians(6.0), SLOPE)

    ticks = itertools.count()

    def rolled(seconds, speed, wanted=1.0):
        """Return the last step of a drive at a speed, m/s, for a time, s."""
        for k in itertools.islice(ticks, round(seconds / DT)):
            step = assist.update(seen(DT * k, rotation, speed / math.cos(SLOPE)), wanted, DT)
        return step

    assert rolled(20.0, 0.5).steering is None
    assert rolled(2.0, 0.0).steering < 0.0
    assert assist.gait is Gait.REAR_UP
    rolled(5.0, 0.0, wanted=0.0)
    assert assist.gait is Gait.ROLL
    assert rolled(3.9 * PARAMS.wheelbase / 0.5, 0.5).steering < 0.0
    assert rolled(0.2 * PARAMS.wheelbase / 0.5, 0.5).steering is None


def test_across_a_slope_it_follows_its_path():
    assist = ThrustAssist(PARAMS)
    step = assist.update(seen(0.0, on_slope(math.radians(60.0), SLOPE), 0.5), 1.0, DT)
    assert step.speed > 0.0
    assert step.steering is None


def test_a_vehicle_that_cannot_turn_gives_up_and_follows_its_path():
    """Three turns in vain at the same place are the last ones: detours have their turn then."""
    assist = ThrustAssist(PARAMS)
    rotation = on_slope(0.6, SLOPE)
    turns = 0
    gait = assist.gait
    for k in range(6000):
        step = assist.update(seen(DT * k, rotation, 0.0), 1.0, DT)
        turns += assist.gait is Gait.TURN and gait is not Gait.TURN
        gait = assist.gait
    assert turns == 3
    assert gait is Gait.ROLL
    assert step.speed > 0.0
    assert step.steering is None
