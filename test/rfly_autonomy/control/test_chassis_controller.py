# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The parts of the driving law by themselves, and the chassis computer in each mode."""

import math

import numpy as np
import pytest
from control_rig import understeer_gradient

from rfly_amphibious.sensors.samples import JointSamples, SensorSamples, WheelLoadSamples
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.chassis_controller import ChassisController, TractionControl
from rfly_autonomy.control.path_following import PoseFollower
from rfly_autonomy.control.speed_controller import (
    ForceObserver,
    SpeedController,
)
from rfly_autonomy.estimation.estimate import Estimate
from rfly_common.errors import CommandError

G = 9.80665


@pytest.fixture(scope="module")
def params():
    return VehicleParameters.load("scale")


def still(time, speed=0.0):
    return Estimate(
        time, np.zeros(3), np.array((0, 0, 0, 1.0)), np.array((speed, 0.0, 0.0)), np.zeros(3)
    )


def loads(value, time=0.0):
    return SensorSamples(wheel_loads=WheelLoadSamples(np.array([time]), np.full((1, 4), value)))


def joints(time, wheel_rate):
    zero = np.zeros((1, 4))
    rotors = np.zeros((1, 6))
    return SensorSamples(
        joints=JointSamples(
            np.array([time]), zero, np.full((1, 4), wheel_rate), zero, zero, zero, rotors, rotors
        )
    )


def test_understeer_gradient_of_the_validation_table(params):
    assert understeer_gradient(params) == pytest.approx(0.001669, rel=1e-3)
    assert understeer_gradient(VehicleParameters.load("full")) == pytest.approx(0.001777, rel=1e-3)


def test_traction_cuts_by_a_fifth_and_restores_by_a_twentieth(params):
    traction = TractionControl(params)
    assert traction.peak == pytest.approx(0.148, abs=5e-4)  # docs/model, section 15.1
    radius = params.rolling_radius
    ones = np.ones(4)

    def see(slip, drive=1.0):
        spin = 4.0 * (1.0 + slip) / radius
        traction.update(
            spin,
            np.zeros(4),
            np.array((4.0, 0, 0)),
            np.zeros(3),
            drive * ones,
            0.01,
        )
        return traction.share

    assert see(0.21) == pytest.approx(ones)
    assert see(0.23) == pytest.approx(0.8 * ones)
    assert see(np.array((0.3, 0.1, 0.3, 0.1))) == pytest.approx((0.64, 0.85, 0.64, 0.85))
    assert see(0.3, drive=-1.0) == pytest.approx(
        (0.69, 0.9, 0.69, 0.9)
    )  # braking motors do not spin wheels up
    assert see(-0.3, drive=-1.0) == pytest.approx((0.552, 0.72, 0.552, 0.72))
    # in a turn each wheel has its own way: the inner front one, 0.28 m left of the middle, at 1
    # rad/s
    spin = np.full(4, 4.0) / radius
    traction.update(
        spin,
        np.zeros(4),
        np.array((4.0, 0, 0)),
        np.array((0, 0, 1.0)),
        ones,
        0.01,
    )
    assert traction.slip[0] == pytest.approx(4.0 / 3.72 - 1.0, rel=1e-9)


def test_a_wheel_that_spins_uphill_while_the_vehicle_slides_back_is_cut(params):
    """The torque acts against the speed, as that of a brake, but with the spin."""

    def share(spin, torque=10.0):
        traction = TractionControl(params)
        spins = np.full(4, spin / params.rolling_radius)
        back = np.array((-1.0, 0.0, 0.0))
        traction.update(spins, np.zeros(4), back, np.zeros(3), np.full(4, torque), 0.01)
        return traction.share

    assert share(spin=2.0) == pytest.approx(0.8)
    assert share(spin=-0.5) == pytest.approx(1.0)  # the torque still slows the wheel down


def test_motors_take_back_what_they_can_and_brakes_the_rest(params):
    law = SpeedController(params)
    drive, brake = law.torques(0.5, 2.5, 0.01)
    force = params.effective_mass * 1.5 * -2.0 + law.resistance(2.5, 0.0)
    assert (drive / params.rolling_radius).sum() == pytest.approx(force, rel=1e-9)
    assert not brake.any()

    law = SpeedController(params)
    drive, brake = law.torques(0.5, 12.0, 0.01)  # 3000 W / 4 / 111 rad/s = 6.75 N m a motor
    limit = 3000.0 / 4.0 / (12.0 / params.rolling_radius.mean())
    assert drive == pytest.approx(
        -limit * params.rolling_radius / params.rolling_radius.mean(), rel=1e-9
    )
    assert brake[0] > brake[2] > 0.0  # the load goes to the front


def test_a_stop_uses_the_friction_and_the_load_of_each_wheel(params):
    """The braking force at 5 m/s is 0.88 μ M g from the first tick on, by brakes at first.

    The load has moved to the front after a while: M g μ h / L of it.
    """
    p = params
    law = SpeedController(p)
    for _ in range(100):
        drive, brake = law.torques(0.0, 5.0, 0.01)
    braking = (brake - drive) / p.rolling_radius
    limit = 0.88 * p.friction_x * p.mass * G
    assert braking.sum() == pytest.approx(limit, rel=1e-4)
    moved = limit * p.center_height / p.wheelbase / 2.0
    static = p.mass * G * np.array((p.rear_axle, p.front_axle)) / p.wheelbase / 2.0
    share = (static + np.array((moved, -moved))) / (p.mass * G)
    assert braking[[0, 2]] / limit == pytest.approx(share, rel=1e-3)

    drive, brake = SpeedController(p).torques(0.0, 5.0, 0.01)
    assert (brake / p.rolling_radius).sum() == pytest.approx(limit, rel=1e-6)


def test_the_observer_finds_the_force_that_the_model_does_not_know():
    """A mass of 30 kg, pushed by a motor with 50 N and by the wind with 20 N."""
    observer = ForceObserver(30.0)
    speed = 0.0
    for _ in range(300):
        observer.update(speed, 50.0, 0.01)
        speed += 0.01 * 70.0 / 30.0
    # first order, 2 1/s: e^-6 is left
    assert observer.force == pytest.approx(20.0 * (1.0 - math.exp(-6.0)), rel=1e-2)


@pytest.mark.parametrize(
    ("mode", "share", "expected"),
    [
        (None, 1.0, 0.3),
        (Mode.DISARMED, 1.0, 0.3),
        (Mode.DRIVE, 1.0, 0.3),
        (Mode.TAKEOFF, 1.0, 1.0),
        (Mode.TAKEOFF, 0.0, 0.0),
        (Mode.FLIGHT, 0.0, 0.0),
        (Mode.FLIGHT, 1.0, 1.0),
        (Mode.LAND, 0.0, 0.0),
        (Mode.SPOOL_DOWN, 0.9, 0.3),
        (Mode.ABORT, 0.0, 0.0),
        (Mode.ABORT, 0.5, 1.0),
    ],
)
def test_brakes_in_every_mode(params, mode, share, expected):
    chassis = ChassisController(params)
    chassis.sense(loads(share * params.mass * G / 4.0))
    command = chassis.step(still(0.1), mode, 0.004)
    assert command.brake_torque == pytest.approx(expected * params.max_brake_torque)
    assert not command.drive_torque.any()
    assert command.steering_angle == 0.0


def test_an_estimate_that_is_lost_brakes(params):
    chassis = ChassisController(params)
    chassis.sense(joints(0.01, 0.0))
    chassis.set_speed(1.0)
    assert chassis.step(still(0.01), Mode.DRIVE, 0.01).drive_torque.min() > 0.0
    chassis.sense(joints(0.6, 0.0))
    chassis.set_speed(1.0)
    assert chassis.step(still(0.01), Mode.DRIVE, 0.01).brake_torque.min() > 0.0
    assert chassis.step(None, Mode.DRIVE, 0.01).brake_torque.min() > 0.0


def test_a_twist_becomes_a_bend(params):
    """The steering is that of the bend and the understeer.

    0.5 rad/s at 2 m/s forward: a quarter of a bend to the left, and for 1 m/s² more than the linear
    gradient of 0.00167; backwards: to the right.
    """
    chassis = ChassisController(params)
    chassis.set_twist(2.0, 0.5, 0.0)
    command = chassis.step(still(0.0, 2.0), Mode.DRIVE, 0.01)
    assert 0.0017 < command.steering_angle - math.atan(0.66 * 0.25) < 0.0023

    chassis.set_twist(-1.0, 0.3, 0.1)
    assert chassis.step(still(0.1, -1.0), Mode.DRIVE, 0.01).steering_angle < -0.1

    # standing
    chassis.set_twist(0.0, 1.0, 0.2)
    standing = chassis.step(still(0.2), Mode.DRIVE, 0.01)
    assert standing.steering_angle == 0.0
    assert not standing.drive_torque.any()

    with pytest.raises(CommandError, match="yaw_rate"):
        chassis.set_twist(0.0, math.nan)


def test_a_leading_pose_far_and_near(params):
    lead = PoseFollower(params)
    lead.set_pose(np.array((20.0, 0.0)), None, 0.0)
    speed, bend = lead.command(np.zeros(2), 0.0, 0.0, 0.0)
    assert 3.0 < speed < math.sqrt(2 * 0.8 * 20.0)
    assert bend == 0.0
    speed, bend = lead.command(np.zeros(2), math.pi / 2, 0.0, 0.0)  # the pose lies to the right
    assert bend < 0.0

    # the vehicle has arrived, and does not come back for a small distance
    assert lead.command(np.array((19.95, 0.0)), 0.0, 0.2, 0.0) == (0.0, 0.0)
    assert lead.command(np.array((20.3, 0.0)), 0.0, 0.2, 0.0) == (0.0, 0.0)

    # a preview behind a moving pose: as fast as it
    moving = PoseFollower(params)
    for k in range(50):
        moving.set_pose(np.array((0.02 * k * 1.5, 0.0)), None, 0.02 * k)
    place = np.array((0.98 * 1.5 - 1.2, 0.0))
    speed, _ = moving.command(place, 0.0, 1.5, 0.98)
    assert speed == pytest.approx(1.5, abs=0.05)
