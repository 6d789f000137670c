# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Lifting and lowering an axle: pitch and thrust over time, worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_amphibious.sensors.samples import SensorSamples, WheelLoadSamples
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.axle_lift import Assist, AssistWords, AxleLift
from rfly_autonomy.control.chassis_controller import ChassisController, wheel_grip
from rfly_autonomy.estimation.estimate import Estimate, EstimatedMotion

DT = 0.02


def motion(pitch_deg=0.0, speed=0.0):
    pitch = math.radians(pitch_deg)
    rotation = np.array(
        (
            (math.cos(pitch), 0.0, -math.sin(pitch)),
            (0.0, 1.0, 0.0),
            (math.sin(pitch), 0.0, math.cos(pitch)),
        )
    )
    return EstimatedMotion(np.zeros(3), speed * rotation[:, 0], rotation, np.zeros(3))


@pytest.mark.parametrize(
    ("order", "speed", "pitch", "thrust"),
    [
        # 0.8 weights/s and 15 deg/s for 2 s, at most 0.84 weights and 6 deg
        (Assist.LIFT_REAR, 0.0, -6.0, 0.84),
        # 0.2 rad for each m/s above 0.6: 4.58 deg at 1.0 m/s
        (Assist.LIFT_REAR, 1.0, -6.0 + 4.584, 0.84),
    ],
)
def test_a_rear_axle_that_is_lifted(order, speed, pitch, thrust):
    """The body follows at once, so the integral stays small: 1.5/s of one step's error."""
    lift = AxleLift()
    wanted = 0.0
    for _ in range(100):
        rotor_help = lift.update(order, motion(wanted, speed), DT)
        step = math.copysign(15.0 * DT, pitch)
        wanted = min(wanted + step, pitch) if pitch > 0.0 else max(wanted + step, pitch)
    assert rotor_help.thrust == pytest.approx(thrust)
    assert math.degrees(rotor_help.pitch) == pytest.approx(pitch, abs=0.6)
    assert not lift.stands


def lifted_front(seconds, speed, lift, pitch):
    """Return the pitch, deg, that a body which follows at once has after a time at a speed."""
    for _ in range(round(seconds / DT)):
        rotor_help = lift.update(Assist.LIFT_FRONT, motion(pitch, speed), DT)
        pitch = math.degrees(lift._pitch)
    assert rotor_help.thrust == pytest.approx(min(0.3, 0.8 * seconds))
    return pitch


def test_a_front_axle_is_lifted_until_the_vehicle_moves_and_lowered_while_it_slides_back():
    """The pitch goes to 8 deg at 15 deg/s, then at 3 deg/s; it goes back once the vehicle slides.

    The averaged speed, with 0.4 s, is 0.05 m/s of 0.2 after 0.4 s * ln(4/3) = 0.115 s.
    """
    lift = AxleLift()
    pitch = lifted_front(8.0 / 15.0 + 1.0, 0.0, lift, 0.0)
    assert pitch == pytest.approx(11.0, abs=0.15)
    pitch = lifted_front(2.0, 0.2, lift, pitch)
    assert pitch == pytest.approx(11.35, abs=0.15)
    pitch = lifted_front(4.0, 0.0, lift, pitch)
    assert pitch == pytest.approx(16.0, abs=0.15)
    pitch = lifted_front(0.5, -0.2, lift, pitch)
    assert pitch == pytest.approx(16.0 - 15.0 * (0.5 - 0.115), abs=0.4)
    assert lifted_front(1.0, -0.2, lift, pitch) == pytest.approx(8.0)


@pytest.mark.parametrize("vehicle", ["scale", "scale_six"])
def test_wheels_of_one_end_take_over_all_torque_by_their_load(vehicle):
    """The middle wheels hang as soon as an end is lifted: two of six wheels stand."""
    params = VehicleParameters.load(vehicle)
    wheels = len(params.wheels)
    traction = np.full(wheels, 0.5)
    shares = Assist.LIFT_FRONT.shares(traction, 1.0, params)
    expected = np.zeros(wheels)
    expected[2:4] = 0.5 * wheels / 2.0  # rear left and right
    assert shares == pytest.approx(expected)

    loads = np.where(np.arange(wheels) == 2, 0.15 * params.static_load, params.static_load)
    grip = wheel_grip(loads, params)
    expected[2] *= 0.5  # half of 0.3 of its load
    assert Assist.LIFT_FRONT.shares(traction, grip, params) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("steered", "order", "standing"),
    [
        ("front", Assist.LIFT_FRONT, (2, 3)),
        ("rear", Assist.LIFT_REAR, (0, 1)),
        ("front", Assist.LIFT_REAR, ()),
        ("all", Assist.LIFT_FRONT, ()),
    ],
)
def test_wheels_turn_a_vehicle_by_their_torque_where_no_steered_one_stands(
    steered, order, standing
):
    """6/s of 0.05 rad/s too little, to the left: the right wheel pushes, the left one brakes.

    Each has half of the moment, at 0.28 m. Much more than that is limited to 1.2 N m.
    """
    params = VehicleParameters.load("scale").replace(steered=steered)
    torque = order.turning(0.10, 0.05, params)
    moment = 6.0 * params.total_inertia[2, 2] * 0.05
    expected = np.zeros(4)
    for wheel, side in zip(standing, (-1.0, 1.0), strict=False):
        expected[wheel] = side * 0.5 * moment / 0.28 * params.rolling_radius[wheel]
    assert torque == pytest.approx(expected)
    assert order.turning(-9.0, 0.0, params) == pytest.approx(-1.2 * np.sign(expected))


@pytest.mark.parametrize("order", [Assist.LOWER_FRONT, None])
def test_an_axle_is_lowered_until_it_stands_with_or_without_an_order(order):
    """The wheels touch at 10 deg; the target turns by 15 deg/s and is 4 deg lower 0.27 s later."""
    lift = AxleLift()
    lift.update(Assist.LIFT_FRONT, motion(10.0), 1e-6)
    steps = 1
    while lift.update(order, motion(10.0), DT) is not None:
        steps += 1
    assert steps == math.ceil(4.0 / 15.0 / DT)
    assert lift.stands
    assert lift.update(order, motion(10.0), DT) is None


@pytest.mark.parametrize(
    ("before", "after", "pitch"),
    [(Assist.LIFT_FRONT, Assist.LIFT_REAR, 10.0), (Assist.LIFT_REAR, Assist.LIFT_FRONT, -6.0)],
)
def test_an_axle_is_lowered_before_the_other_one_is_lifted(before, after, pitch):
    """The thrust does not rise before the lowered axle stands, 4 deg / (15 deg/s) later."""
    lift = AxleLift()
    for _ in range(100):
        thrust = lift.update(before, motion(pitch), DT).thrust
    for _ in range(math.ceil(4.0 / 15.0 / DT) - 1):
        rotor_help = lift.update(after, motion(pitch), DT)
        assert rotor_help.thrust == pytest.approx(thrust)
        assert lift.text == before.lowered.value
    assert lift.update(after, motion(pitch), DT) is None
    assert lift.update(after, motion(0.0), DT).thrust == pytest.approx(0.8 * DT)
    assert lift.text == after.value


@pytest.mark.parametrize(
    ("order", "speed"),
    [(Assist.LOWER_FRONT, 0.0), (None, 0.0), (Assist.LIFT_FRONT, 1.6)],
)
def test_no_axle_is_lifted_without_an_order_or_at_speed(order, speed):
    lift = AxleLift()
    assert lift.update(order, motion(0.0, speed), DT) is None
    assert lift.stands


def test_off_is_said_once():
    words = AssistWords()
    orders = [None, Assist.LIFT_REAR, Assist.LOWER_REAR, None, None]
    said = [words.word(order) for order in orders]
    assert said == ["", "lift_rear", "lower_rear", "off", ""]


def test_wheels_that_stand_drive_slowly_until_the_order_is_too_old():
    """The speed is at most 0.3 m/s with a lifted front axle: at 1 m/s the rear wheels brake."""
    params = VehicleParameters.load("scale")
    chassis = ChassisController(params)
    level = np.array((0.0, 0.0, 0.0, 1.0))

    def command(time):
        chassis.advance_clock(time)
        chassis.set_speed(2.0, time=time)
        velocity = np.array((1.0, 0.0, 0.0))
        estimate = Estimate(time, np.zeros(3), level, velocity, np.zeros(3))
        return chassis.step(estimate, Mode.DRIVE, DT)

    assert (command(1.0).drive_torque > 0.0).all()
    chassis.set_assist(Assist.LIFT_FRONT, 1.0)
    lifted = command(1.02)
    torque = lifted.drive_torque - lifted.brake_torque
    assert torque[:2] == pytest.approx(0.0)
    assert (torque[2:] < 0.0).all()
    assert (command(1.6).drive_torque > 0.0).all()


def test_wheels_that_hang_do_not_spin_once_an_assist_has_ended():
    """For 1 s the front wheels have 5 % of the torque of those that stand: nothing damps them."""
    params = VehicleParameters.load("scale")
    chassis = ChassisController(params)
    level = np.array((0.0, 0.0, 0.0, 1.0))
    torques = {}
    for tick in range(125):
        time = 1.0 + 0.016 * tick
        chassis.sense(
            SensorSamples(
                wheel_loads=WheelLoadSamples(np.array([time]), np.array([[0.0, 0.0, 150.0, 150.0]]))
            )
        )
        chassis.set_speed(0.5, time=time)
        if time < 1.5:
            chassis.set_assist(Assist.LIFT_FRONT, time)
        elif time < 1.52:
            chassis.set_assist(None, time)
        estimate = Estimate(time, np.zeros(3), level, np.zeros(3), np.zeros(3))
        torques[tick] = chassis.step(estimate, Mode.DRIVE, 0.016).drive_torque

    assert torques[30][:2] == pytest.approx(0.0), "lifted"
    assert torques[35][0] == pytest.approx(0.05 * torques[35][2], rel=0.01), "1.56 s: it comes down"
    assert torques[110][0] == pytest.approx(torques[110][2], rel=0.01), "2.76 s"
