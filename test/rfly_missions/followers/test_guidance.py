# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Guidance models against solutions on paper: oscillators, coordinated turns, wind triangles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from rfly_missions import FixedWingGuidance, MultirotorGuidance

angles = st.floats(-1.2, 1.2)
rates = st.floats(-3, 3)


def run(model, state, control, seconds, environment=None, **options):
    return solve_ivp(
        lambda _, x: model.derivative(x, control, environment),
        (0, seconds),
        state,
        rtol=1e-9,
        atol=1e-10,
        **options,
    )


def test_defaults_are_those_of_matlab():
    wing = FixedWingGuidance().Configuration
    assert wing.PDRoll == (3402.97, 116.67)
    assert (wing.PHeight, wing.PFlightPathAngle, wing.PAirSpeed) == (3.9, 39.0, 0.39)
    assert wing.FlightPathAngleLimits == (-math.pi / 2, math.pi / 2)
    rotor = MultirotorGuidance().Configuration
    assert (rotor.PDRoll, rotor.PDPitch) == ((3402.97, 116.67), (3402.97, 116.67))
    assert (rotor.PYawRate, rotor.PThrust, rotor.Mass) == (1950.0, 3900.0, 0.1)
    assert MultirotorGuidance().environment().Gravity == 9.81
    assert FixedWingGuidance().state().shape == (8,)
    assert MultirotorGuidance().state().shape == (13,)


def test_roll_answers_as_a_critically_damped_oscillator():
    """The gains are ω² and 2ω: φ = φc (1 − (1 + ωt) exp(−ωt))."""
    model = FixedWingGuidance()
    state = model.state()
    state[3] = 20.0
    seconds = 0.05
    end = run(model, state, model.control(RollAngle=0.3, AirSpeed=20), seconds).y[:, -1]
    omega = math.sqrt(3402.97)
    expected = 0.3 * (1 - (1 + omega * seconds) * math.exp(-omega * seconds))
    assert end[6] == pytest.approx(expected, rel=1e-4)


def test_a_coordinated_turn_is_a_circle():
    model = FixedWingGuidance()
    roll = 0.4
    state = np.array([0, 0, 100, 20, 0, 0, roll, 0], float)
    radius = 20**2 / (9.81 * math.tan(roll))
    half = math.pi * radius / 20
    control = model.control(RollAngle=roll, AirSpeed=20, Height=100)
    end = run(model, state, control, half).y[:, -1]
    assert end[:3] == pytest.approx([0, 2 * radius, 100], abs=1e-4)
    assert end[4] == pytest.approx(math.pi)


def test_airspeed_and_height_approach_their_commands():
    model = FixedWingGuidance()
    state = np.array([0, 0, 100, 10, 0, 0, 0, 0], float)
    seconds = 2.0
    end = run(model, state, model.control(AirSpeed=15, Height=100), seconds).y[:, -1]
    assert end[3] == pytest.approx(15 - 5 * math.exp(-0.39 * seconds), rel=1e-8)
    model.Configuration.FlightPathAngleLimits = [-0.1, 0.1]
    climbing = run(model, state, model.control(AirSpeed=10, Height=1000), 10.0)
    assert climbing.y[5].max() == pytest.approx(0.1, abs=1e-6)
    assert climbing.y[2, -1] == pytest.approx(100 + 10 * 10 * math.sin(0.1), rel=5e-3)


@given(st.floats(0, 6), st.floats(-8, 8), st.floats(-8, 8), st.floats(-1, 1), st.floats(-0.3, 0.3))
def test_wind_triangle(course, north, east, down, climb):
    """Speed over the ground less wind has the airspeed, and lies along the course."""
    model = FixedWingGuidance()
    state = np.array([0, 0, 0, 20, course, climb, 0, 0], float)
    air = model.environment(WindNorth=north, WindEast=east, WindDown=down)
    rate = model.derivative(state, model.control(AirSpeed=20), air)
    ground = np.array([rate[0], rate[1], -rate[2]])
    assert np.linalg.norm(ground - [north, east, down]) == pytest.approx(20)
    assert math.remainder(math.atan2(ground[1], ground[0]) - course, 2 * math.pi) == (
        pytest.approx(0, abs=1e-9)
    )


def test_a_crosswind_slows_the_turn_by_the_cosine_of_the_drift():
    model = FixedWingGuidance()
    state = np.array([0, 0, 0, 20, 0, 0, 0.3, 0], float)
    air = model.environment(WindEast=12)
    rate = model.derivative(state, model.control(AirSpeed=20, RollAngle=0.3), air)
    ground = 16.0  # a right triangle of 12, 16 and 20
    assert rate[0] == pytest.approx(ground)
    assert rate[4] == pytest.approx(9.81 * math.tan(0.3) / ground * (16 / 20))


def test_a_wind_that_is_too_strong_is_refused():
    model = FixedWingGuidance()
    state = np.array([0, 0, 0, 10, 0, 0, 0, 0], float)
    with pytest.raises(ValueError, match="faster than the vehicle"):
        model.derivative(state, model.control(), model.environment(WindEast=11))


def test_a_vehicle_that_does_not_move_does_not_turn():
    rate = FixedWingGuidance().derivative(np.zeros(8), FixedWingGuidance().control(AirSpeed=10))
    assert rate == pytest.approx([0, 0, 0, 3.9, 0, 0, 0, 0])


def test_matlabs_multirotor_example_falls_to_the_side():
    """Roll π/12 and 1 N on 0.1 kg: g − F/m cos φ down, F/m sin φ to the right (east)."""
    model = MultirotorGuidance()
    state = model.state()
    state[:3] = [3, 2, 1]
    end = run(model, state, model.control(Roll=math.pi / 12, Thrust=1), 3.0, method="LSODA").y[
        :, -1
    ]
    assert end[8] == pytest.approx(math.pi / 12)
    assert end[12] == pytest.approx(1)
    assert end[1] == pytest.approx(2 + 0.5 * 10 * math.sin(math.pi / 12) * 9, rel=0.03)
    assert end[2] == pytest.approx(1 + 0.5 * (9.81 - 10 * math.cos(math.pi / 12)) * 9, rel=0.06)
    assert end[2] > 1


def test_thrust_and_yaw_rate_are_first_order():
    model = MultirotorGuidance()
    end = run(model, model.state(), model.control(Thrust=2, YawRate=0.5), 1e-3).y[:, -1]
    assert end[12] == pytest.approx(2 * (1 - math.exp(-3.9)), rel=1e-6)
    assert end[11] == pytest.approx(0.5 * (1 - math.exp(-1.95)), rel=1e-6)


@given(angles, angles, angles, rates, rates, rates)
def test_euler_angles_obey_their_own_oscillators_and_thrust_acts_along_the_body(
    yaw, pitch, roll, p, q, r
):
    """Body rates and Euler angles by differences of rotations, not by the model's formulas."""
    model = MultirotorGuidance()
    state = np.array([0, 0, 0, 1, 2, 3, yaw, pitch, roll, p, q, r, 4.0])
    control = model.control(Roll=0.1, Pitch=-0.2, YawRate=0.3)
    rate = model.derivative(state, control)
    attitude = Rotation.from_euler("ZYX", [yaw, pitch, roll])
    assert rate[:3].tolist() == [1, 2, 3]
    assert rate[3:6] == pytest.approx([0, 0, 9.81] - attitude.apply([0, 0, 40.0]), abs=1e-9)

    # the attitude a moment later, by the body rates
    moment = 1e-6
    moved = (attitude * Rotation.from_rotvec(moment * np.array([p, q, r]))).as_euler("ZYX")
    assert rate[6:9] == pytest.approx((moved - [yaw, pitch, roll]) / moment, abs=2e-4)

    # second derivatives of the Euler angles, by the same
    later = state + moment * rate
    second = (model.derivative(later, control)[6:9] - rate[6:9]) / moment
    wanted = [
        1950 * (0.3 - rate[6]),
        3402.97 * (-0.2 - pitch) - 116.67 * rate[7],
        3402.97 * (0.1 - roll) - 116.67 * rate[8],
    ]
    assert second == pytest.approx(wanted, rel=2e-3, abs=2.0)


@pytest.mark.parametrize("model", [FixedWingGuidance(), MultirotorGuidance()])
def test_many_vehicles_at_once_are_the_same_as_one_by_one(model):
    states = np.random.default_rng(3).uniform(0.1, 1, (len(model.state()), 5))
    many = model.derivative(states, model.control())
    for i in range(5):
        assert many[:, i] == pytest.approx(model.derivative(states[:, i], model.control()))


def test_bad_states_and_settings_are_refused():
    with pytest.raises(ValueError, match=r"state: the shape \(7,\), expected \(8,\) or \(8, n\)"):
        FixedWingGuidance().derivative(np.zeros(7))
    with pytest.raises(ValueError, match="mass: 0"):
        MultirotorGuidance().Configuration.Mass = 0
    with pytest.raises(ValueError, match="flight_path_angle_limits"):
        FixedWingGuidance().Configuration.FlightPathAngleLimits = [0.2, 0.1]
