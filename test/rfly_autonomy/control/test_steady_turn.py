# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Steering that is fed forward, against turns of the simulated vehicle and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from amphibious_cases import holding, model, parameters
from control_rig import understeer_gradient

from rfly_amphibious import AmphibiousModel
from rfly_amphibious.vehicle import state_layout
from rfly_autonomy.control.speed_controller import steering_lever
from rfly_autonomy.control.steady_turn import SteadyTurn

NO_DRAG = {
    "linear_drag": (0.0,) * 3,
    "drag_area": (0.0,) * 3,
    "rotational_drag": (0.0,) * 3,
    "rolling_resistance": 0.0,
}


def turned(m, p, speed, steering):
    """Return the curvature and the speed in which a held steering ends."""
    run = m.run(m.standing(speed=speed), holding(p, speed, steering), 8.0, control_period=0.01)
    x = run.final.x
    end_speed = float(np.linalg.norm(x[state_layout.VELOCITY : state_layout.VELOCITY + 2]))
    return x[state_layout.RATES + 2] / end_speed, end_speed


def gradient(p, steering, curvature, speed):
    return (steering - math.atan(steering_lever(p) * curvature)) / (speed**2 * curvature)


@pytest.mark.parametrize(
    ("name", "speed", "steering"),
    [
        ("full", 15.0, 0.01),
        ("full", 15.0, 0.03),
        ("full", 8.0, 0.1),
        ("scale", 5.0, 0.01),
        ("scale", 5.0, 0.04),
        ("scale_six", 5.0, 0.04),
    ],
)
def test_the_steering_is_that_of_the_simulated_vehicle(name, speed, steering):
    p = parameters(name)
    curvature, end_speed = turned(model(name), p, speed, steering)
    assert SteadyTurn(p).steering(curvature, end_speed) == pytest.approx(steering, rel=0.004)

    # the linear model's alone would be wrong by 1 to 3 %
    lever = steering_lever(p)
    aside = lever / p.wheelbase * understeer_gradient(p) * end_speed**2 * curvature
    assert math.atan(lever * curvature) + aside < 0.992 * steering


@pytest.mark.parametrize("name", ["full", "scale"])
def test_without_drag_a_wide_turn_is_that_of_the_linear_model(name):
    p = parameters(name).replace(**NO_DRAG)
    curvature, speed = turned(AmphibiousModel(p), p, 6.0, 0.003)
    assert gradient(p, 0.003, curvature, speed) == pytest.approx(understeer_gradient(p), rel=0.01)
    fed = gradient(p, SteadyTurn(p).steering(1e-4, 6.0), 1e-4, 6.0)
    assert fed == pytest.approx(understeer_gradient(p), rel=1e-3)


def test_a_deficit_that_does_not_vanish_with_the_lateral_acceleration():
    """Drag unloads the front axle, whose tyres then slip more; the wheels resist unequally."""
    p = parameters("full")
    slow_turn = SteadyTurn(p).steering(1e-5, 15.0)
    measured = gradient(p, slow_turn, 1e-5, 15.0)
    assert 0.00025 < measured - understeer_gradient(p) < 0.00029


def test_left_and_right_are_alike_and_skid_steering_has_no_gradient():
    p = parameters("scale")
    turn = SteadyTurn(p)
    assert turn.steering(-0.05, 6.0) == -turn.steering(0.05, 6.0)
    skid = p.replace(steered="none", max_steering=0.0)
    assert SteadyTurn(skid).steering(0.05, 6.0) == math.atan(0.05 * steering_lever(skid))
