# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Motor outputs against numbers worked out by hand, and the limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfly_amphibious.simulation.commands import RotorCommand, WheelCommand
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.motor_output import MotorModel, MotorParameters, shipped_motor_sets
from rfly_common.errors import ConfigError

SCALE = VehicleParameters.load("scale")
MOTORS = MotorParameters(
    battery_voltage=40.0,
    rotor_torque_constant=0.1,
    rotor_resistance=0.05,
    rotor_no_load_current=1.0,
    wheel_torque_constant=0.5,
    wheel_resistance=0.2,
    wheel_no_load_current=0.5,
)


def test_a_rotor_by_torque_and_one_by_speed():
    """Voltages of rotors by the motor model.

    2 N m at 200 rad/s: 20 A + 1 A, 0.05 Ω · 21 A = 1.05 V, 0.1 V s/rad · 200 rad/s = 20 V: 21.05 V
    of 40 V.
    """
    model = MotorModel(SCALE, MOTORS)
    by_torque = model.output(
        RotorCommand(0.0, np.full(6, 2.0), torques=True), None, rotor_speed=np.full(6, -200.0)
    )
    assert by_torque.voltage[:6] == pytest.approx(np.full(6, 21.05))
    assert by_torque.duty[:6] == pytest.approx(np.full(6, 0.52625))
    assert by_torque.pulse[:6] == pytest.approx(np.full(6, 1526.25))
    # no torque is off at any reported speed: without a propeller nothing else would stop the motor
    assert not model.output(
        RotorCommand(0.0, np.zeros(6), torques=True), None, rotor_speed=np.full(6, 200.0)
    ).duty.any()
    # at 250 rad/s the rotor takes c_Q · 62,500; c_Q = c_T^1.5 / (FM √(2 ρ π r²)) = 2.054e-5 / (0.65
    # · 0.98498)
    by_speed = model.output(RotorCommand(0.0, np.full(6, 250.0)), None)
    torque = 0.00075**1.5 / (0.65 * (2 * 1.225 * np.pi * 0.355**2) ** 0.5) * 250.0**2
    assert torque == pytest.approx(2.005, abs=0.002)
    expected = 0.05 * (torque / 0.1 + 1.0) + 25.0
    assert by_speed.voltage[0] == pytest.approx(expected)


def test_wheels_forward_backward_and_braking():
    """Voltages of wheels by the motor model.

    5 N m at 40 rad/s: 10.5 A · 0.2 Ω + 20 V = 22.1 V; -5 N m there: (-10 + 0.5) · 0.2 + 20 = 18.1
    V; at rest backwards: -10.5 · 0.2 = -2.1 V.
    """
    model = MotorModel(SCALE, MOTORS)
    wheels = WheelCommand(
        0.0, 0.25, np.array((5.0, -5.0, -5.0, 0.0)), np.array((0.0, 3.0, 0.0, 0.0))
    )
    output = model.output(None, wheels, wheel_speed=np.array((40.0, 40.0, 0.0, 40.0)))
    assert output.voltage[6:] == pytest.approx((22.1, 18.1, -2.1, 0.0))
    # steering 0.25 of 0.5 rad: half way to the left; brake 3 of 15 N m: a fifth
    assert output.pulse[-2:] == pytest.approx((1750.0, 1200.0))
    expected = 1500.0 + 500.0 * output.voltage[6:] / 40.0
    assert output.pulse[6:10] == pytest.approx(expected)


def test_at_rest_everything_is_off_and_the_brake_is_on():
    rest = MotorModel(SCALE, MOTORS).rest
    assert not rest.voltage.any()
    expected = [1000.0] * 6 + [1500.0] * 4 + [1500.0, 2000.0]
    assert rest.pulse.tolist() == expected


@given(
    st.lists(st.floats(0.0, 1e9), min_size=6, max_size=6),
    st.lists(st.floats(-1e9, 1e9), min_size=4, max_size=4),
    st.lists(st.floats(-1e3, 1e3), min_size=4, max_size=4),
    st.floats(0.01, 1.0),
)
def test_nothing_exceeds_the_limit_whatever_is_commanded(speeds, drive, turning, limit):
    output = MotorModel(SCALE, MOTORS, limit).output(
        RotorCommand(0.0, np.array(speeds)),
        WheelCommand(0.0, 9.0, np.array(drive)),
        None,
        np.array(turning),
    )
    assert np.abs(output.duty).max() <= limit
    assert (output.duty[:6] >= 0.0).all()
    assert output.pulse.min() >= 1000.0
    assert output.pulse.max() <= 2000.0


def test_shipped_motors_reach_the_largest_speeds_of_their_vehicles():
    assert shipped_motor_sets() == ["full", "scale"]
    for vehicle, motors in (("scale", "scale"), ("scale_quad", "scale"), ("full", "full")):
        params = VehicleParameters.load(vehicle)
        model = MotorModel(params, MotorParameters.load(motors))
        output = model.output(
            RotorCommand(0.0, np.full(params.rotors, params.max_rotor_speed)), None
        )
        assert output.limited == 0
        assert 0.8 < output.duty[0] < 0.95


def test_a_file_names_what_is_wrong(tmp_path):
    (tmp_path / "m.yaml").write_text("version: 1\nbattery: {voltage_v: -1}\nrotor: {}\nwheel: {}\n")
    with pytest.raises(ConfigError, match=r"m\.yaml.*2.*battery\.voltage_v"):
        MotorParameters.load(tmp_path / "m.yaml")
