# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Steering angles of single wheels: commands, the vehicle that takes them, and its encoders."""

import math

import numpy as np
import pytest

from rfly_amphibious import AmphibiousModel, SensorParameters, VehicleParameters
from rfly_amphibious.dynamics.model import Controls
from rfly_amphibious.simulation.commands import RotorCommand, WheelCommand, controls_of
from rfly_amphibious.simulation.simulation import Simulation
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.ackermann import virtual_steering, wheel_angles
from rfly_autonomy.control.pilot import abort_pilot
from rfly_common.errors import CommandError

SCALE = VehicleParameters.load("scale")


@pytest.mark.parametrize("steering", [0.3, -0.45])
def test_the_inner_wheel_turns_more_by_the_track_over_the_wheelbase(steering):
    """cot δ_o - cot δ_i = track / wheelbase, and their mean is cot δ: both about one point."""
    left, right, *rear = wheel_angles(SCALE, steering)
    inner, outer = (left, right) if steering > 0.0 else (right, left)
    difference = abs(1.0 / math.tan(outer)) - abs(1.0 / math.tan(inner))
    assert difference == pytest.approx(0.56 / 0.66, rel=1e-12)  # scale.yaml: 0.56; 0.32 + 0.34
    mean = 0.5 * (1.0 / math.tan(inner) + 1.0 / math.tan(outer))
    assert mean == pytest.approx(1.0 / math.tan(steering), rel=1e-12)
    assert not np.any(rear)
    assert virtual_steering(SCALE, np.array((left, right, *rear))) == pytest.approx(steering)


def test_all_wheels_of_four_wheel_steering_turn_about_the_middle():
    """The point lies L / (2 tan δ) to the left of the middle: L 2 m, track 1 m, δ 45°."""
    p = SCALE.replace(steered="all", front_axle=1.0, rear_axle=1.0, track=1.0, max_steering=1.0)
    fl, fr, rl, rr = wheel_angles(p, math.pi / 4)
    assert (math.tan(fl), math.tan(fr)) == pytest.approx((1 / 0.5, 1 / 1.5))
    assert (rl, rr) == pytest.approx((-fl, -fr))


def test_angles_of_the_linkage_are_those_of_its_one_angle():
    both = WheelCommand(0.0, 0.3, wheel_steering=wheel_angles(SCALE, 0.3))
    assert controls_of(SCALE, None, both).steering == 0.3
    assert not np.any(controls_of(SCALE, None, both).steering_trim)


INNER = math.atan(1.0 / (1.0 / math.tan(0.5) - 0.28 / 0.66))
"""Angle of the inner wheel at the largest steering, 0.5 rad."""


@pytest.mark.parametrize(
    ("angles", "virtual"),
    [((-0.02, 0.02, 0.0, 0.0), 0.0), ((INNER, INNER, 0.0, 0.0), 0.5)],
    ids=["toed in", "both at their limit"],
)
def test_each_wheel_of_the_vehicle_takes_its_own_angle(angles, virtual):
    """The mean of two virtual wheels with toe-in on both sides is straight on."""
    simulation = Simulation(
        AmphibiousModel(SCALE), SensorParameters.load("scale"), noise=False, fail_safe=abort_pilot
    )
    command = np.array(angles)
    measured = []
    for _ in range(150):  # 0.6 s: the rate limit, then ten time constants of the steering
        simulation.command_rotors(RotorCommand(simulation.time, np.zeros(6)))
        simulation.command_wheels(WheelCommand(simulation.time, wheel_steering=command))
        joints = simulation.tick().joints
        if joints is not None:
            measured.append(joints.steering[-1])
    assert measured[-1] == pytest.approx(command, abs=2e-6)
    columns = state_layout.state_columns(6, 4)
    assert simulation.state.x[columns["steering"]] == pytest.approx(virtual, abs=1e-6)


def test_wheels_toed_in_push_each_other_and_the_vehicle_goes_straight_on():
    """Side forces of the front tyres are opposite, by their slip angles, and brake a little."""
    model = AmphibiousModel(SCALE)
    start = model.standing(speed=4.0)
    toe = Controls(steering_trim=(-0.02, 0.02, 0.0, 0.0))
    run = model.run(start, toe, 0.8)
    slip = run.outputs.slip_angle[-1]
    assert slip[:2] == pytest.approx((-0.02, 0.02), abs=2e-4)
    left, right = run.outputs.tyre_force_y[-1, :2]
    assert left == pytest.approx(-right, rel=1e-3)
    assert left < -5.0
    assert abs(run.x[-1, 1]) < 1e-6  # metres beside its way

    free = model.run(start, Controls(), 0.8)
    assert run.x[-1, 3] < free.x[-1, 3]


def test_angles_are_limited_as_the_joints_are():
    controls = controls_of(
        SCALE, None, WheelCommand(0.0, wheel_steering=np.array((9.0, 9.0, 0.0, 0.0)))
    )
    virtual, trim = controls.steering, np.asarray(controls.steering_trim)
    assert wheel_angles(SCALE, virtual) + trim == pytest.approx((INNER, INNER, 0.0, 0.0))


@pytest.mark.parametrize(
    ("angles", "text"),
    [
        ((0.1, 0.1, 0.0, 0.1), "rr cannot be steered"),
        ((0.1, math.nan, 0.0, 0.0), "wheel_steering"),
        ((0.1, 0.1), "wheel_steering"),
    ],
)
def test_angles_that_do_not_fit_are_refused(angles, text):
    with pytest.raises(CommandError, match=text):
        WheelCommand(0.0, wheel_steering=np.array(angles)).check(SCALE)
