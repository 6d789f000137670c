# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Control of six wheels: steering, braking, and turning on the spot."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from control_rig import understeer_gradient
from marks import exhaustively

from rfly_amphibious.dynamics.model import AmphibiousModel
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.commands import Mode, WheelCommand
from rfly_amphibious.simulation.simulation import Simulation
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.chassis_controller import ChassisController, turning_on_the_spot
from rfly_autonomy.control.drive_laws import brake_shares
from rfly_autonomy.control.pilot import abort_pilot
from rfly_autonomy.control.speed_controller import (
    SpeedController,
    drive_law,
    steering_lever,
)
from rfly_autonomy.estimation.estimate import Estimate
from rfly_common.errors import CommandError

G = 9.80665
SIX = VehicleParameters.load("scale_six")
LEVEL = SIX.replace(front_axle=0.4, rear_axle=0.4, middle_axle=0.0, cornering_factor_front=1.0)
LEVEL = LEVEL.replace(cornering_factor_rear=1.0)
"""Vehicle with its centre of mass above the middle axle, and equal tyres."""


def test_two_axles_that_do_not_steer_take_more_steering():
    """The steering lever is Winkler's equivalent wheelbase l + t²/l (1 + C_r/C_f).

    l is to the middle between both rear axles, 0.6 m, t half their distance, 0.2 m, with twice the
    stiffness of the front. The centre of the turn lies where moments about the front axle balance:
    C 0.4 (x_t) = C 0.8 (-0.4 - x_t), x_t = -0.8/3.
    """
    front = LEVEL.replace(steered="front")
    assert steering_lever(front) == pytest.approx(0.6 + 0.04 / 0.6 * 3.0)
    assert front.turn_x == pytest.approx(-0.8 / 3.0)
    assert front.steering_lever == pytest.approx(0.4 + 0.8 / 3.0)
    rear = LEVEL.replace(steered="rear")
    assert steering_lever(rear) == pytest.approx(0.8)
    assert rear.turn_x == pytest.approx(0.8 / 3.0)
    assert steering_lever(LEVEL) == pytest.approx(0.4)
    assert steering_lever(LEVEL.replace(steered="none", max_steering=0.0)) == pytest.approx(0.8)


@pytest.mark.parametrize("steered", ["front", "rear", "all"])
def test_steering_for_a_curvature_is_that_of_linear_tyres_in_a_steady_turn(steered):
    """A steering angle gives the wanted yaw rate in a plane model with three axles."""
    p = SIX.replace(steered=steered, cornering_factor_rear=1.0)
    stiffness = p.axle_stiffness
    x = np.array((0.42, -0.44, -0.01)) - p.center_x
    expected = 2.0 * 15.0 * 60.0 * math.sin(2.0 * math.atan(58.8399 / 120.0))
    assert stiffness[2] == pytest.approx(expected, rel=1e-5)
    turns = np.array(
        {
            "front": (1, 0, 0),
            "rear": (0, -1, 0),
            "all": (1, -1, 0),
        }[steered]
    )
    speed = 3.0
    angle = 0.01
    # M V r = Σ C_a (ε_a δ - β - x_a r/V),  0 = Σ x_a C_a (…)
    of_slip = np.array((stiffness.sum(), stiffness @ x))
    of_rate = np.array((stiffness @ x, stiffness @ x**2)) / speed
    of_rate[0] += p.mass * speed
    _, rate = np.linalg.solve(
        np.column_stack([of_slip, of_rate]), angle * np.array((stiffness, stiffness * x)) @ turns
    )
    lever = steering_lever(p)
    wanted = math.atan(lever * rate / speed)
    wanted += lever / p.wheelbase * understeer_gradient(p) * rate * speed
    assert wanted == pytest.approx(angle, rel=1e-3)  # atan


def test_brakes_follow_the_load_that_moves_forward():
    """The brakes share by the loads at rest; the changes of load have no sum and the moment h F."""
    law = drive_law(SIX)
    control = SpeedController(SIX)
    x = SIX.hub_position[:, 0]
    weight = 36.0 * G
    assert brake_shares(law, 0.0) * weight == pytest.approx(SIX.static_load)
    change = brake_shares(law, 100.0) * weight - SIX.static_load
    assert change.sum() == pytest.approx(0.0, abs=1e-9)
    assert change @ x == pytest.approx(SIX.center_height * 100.0)
    assert change[0] > change[4] > change[2]
    _, brake = control.torques(0.0, 5.0, 0.004)
    assert brake.shape == (6,)
    drive, brake = control.torques(0.0, 0.0, 0.004)
    assert drive.tolist() == [0.0] * 6
    assert brake == pytest.approx(0.3 * 12.0 * np.ones(6))


def test_driven_wheels_share_the_force():
    p = LEVEL.replace(driven=("ml", "mr"))
    drive, brake = SpeedController(p).torques(1.0, 0.9, 0.004)
    pull = p.effective_mass * 1.5 * 0.1 + SpeedController(p).resistance(0.9, 0.0)
    expected = np.array((0, 0, 0, 0, 0.5, 0.5)) * pull * p.rolling_radius
    assert drive == pytest.approx(expected)
    assert not brake.any()


def test_on_the_spot_all_slide():
    """Equal loads at x = ±a and 0: treads slide along by s per rad.

    4 (s b/2 - a²)/√(s² + a²) + b = 0.
    """
    b = 0.56
    a = 0.4
    width, along, whole = turning_on_the_spot(LEVEL)
    slide = 0.5 * (width - b)
    assert 4.0 * (slide * b / 2.0 - a**2) / math.hypot(slide, a) + b == pytest.approx(0.0, abs=1e-9)
    expected = (2.0 * slide / math.hypot(slide, a) + 1.0) / 3.0
    assert along / whole == pytest.approx(expected)
    four = VehicleParameters.load("scale")
    expected = (0.56**2 + 0.66**2) / 0.56
    assert turning_on_the_spot(four)[0] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("speed", "yaw_rate", "share"),
    [(0.0, 0.8, 0.05), exhaustively(1.5, 0.6, 0.08)],
)
def test_six_wheels_that_do_not_steer_turn_as_fast_as_asked(speed, yaw_rate, share):
    p = SIX.replace(steered="none", max_steering=0.0)
    simulation = Simulation(
        AmphibiousModel(p), SensorParameters.load("scale_six"), fail_safe=abort_pilot
    )
    chassis = ChassisController(p)
    rates = []

    for tick in range(1500):
        chassis.sense(simulation.tick())
        now = simulation.state
        state = (part.copy() for part in (now.position, now.orientation, now.velocity, now.rates))
        if tick % 20 == 0:
            chassis.set_twist(speed, yaw_rate, simulation.time)
        command = chassis.step(Estimate(simulation.time, *state), Mode.DRIVE, simulation.period)
        assert command.drive_torque.shape == command.brake_torque.shape == (6,)
        simulation.command_wheels(dataclasses.replace(command, time=simulation.time))
        rates.append(now.rates[2])

    assert np.mean(rates[-250:]) == pytest.approx(yaw_rate, rel=share)


def test_commands_of_another_number_of_wheels_are_refused_by_name():
    simulation = Simulation(
        AmphibiousModel(SIX), SensorParameters.load("scale_six"), fail_safe=abort_pilot
    )
    with pytest.raises(
        CommandError,
        match="drive_torque: 4 values, expected one for each of fl, fr, rl, rr, ml, mr",
    ):
        simulation.command_wheels(WheelCommand(0.0))
    with pytest.raises(CommandError, match="brake_torque: 5 values, expected"):
        simulation.command_wheels(WheelCommand(0.0, 0.0, np.zeros(6), np.zeros(5)))

    assert simulation.command_wheels(WheelCommand.braked(SIX, 0.0, 3.0))
