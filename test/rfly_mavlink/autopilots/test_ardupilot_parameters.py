# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""ArduPilot's parameters for the vehicles: frame, order of motors, and gains worked out by hand."""

from __future__ import annotations

import math

import pytest

from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import ConfigError
from rfly_mavlink.autopilots.ardupilot_parameters import (
    ardupilot_parameters,
    frame_of,
    parameter_text,
)

QUAD = VehicleParameters.load("scale_quad")
SENSORS = SensorParameters.load("scale")


def turned(azimuths_deg, spins):
    arms = (0.75,) * len(spins)
    return QUAD.replace(
        rotor_azimuth=tuple(map(math.radians, azimuths_deg)), rotor_spin=spins, rotor_arm=arms
    )


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        # our angles grow to the left, ArduPilot's to the right: 45 is front left here and front
        # right there
        (QUAD, ("QUAD X", 1, 1, [1, 3, 2, 4])),
        (turned((-45, 45, 135, 225), (-1, 1, -1, 1)), ("QUAD H", 1, 3, [1, 3, 2, 4])),
        (turned((0, 90, 180, 270), (-1, 1, -1, 1)), ("QUAD PLUS", 1, 0, [3, 2, 4, 1])),
        (turned((-30, 30, 90, 150, 210, 270), (1, -1) * 3), ("HEXA X", 2, 1, [5, 3, 2, 6, 4, 1])),
        (turned((0, 60, 120, 180, 240, 300), (-1, 1) * 3), ("HEXA PLUS", 2, 0, [1, 5, 3, 2, 6, 4])),
    ],
)
def test_the_frame_whose_motors_turn_as_the_rotors(params, expected):
    assert frame_of(params) == expected


def test_rotors_that_no_frame_has_are_told():
    with pytest.raises(ConfigError, match=r"QUAD X.*30° clockwise, -30° counter-clockwise"):
        frame_of(VehicleParameters.load("scale"))
    with pytest.raises(ConfigError, match="none of ArduPilot's frames"):
        frame_of(turned((-45, 45, 120, 225), (1, -1, 1, -1)))


def test_outputs_and_gains_of_the_quad():
    values = ardupilot_parameters(QUAD, SENSORS)
    assert [values[f"SERVO{n}_FUNCTION"] for n in range(1, 5)] == [33, 35, 34, 36]
    assert (values["SIM_RATE_HZ"], values["SCHED_LOOP_RATE"]) == (250.0, 125.0)
    assert (values["INS_POS1_X"], values["INS_POS2_Z"]) == (0.05, -0.02)
    # hover: 30 kg against four rotors of 0.0012 * 350² = 147 N
    assert values["MOT_THST_HOVER"] == pytest.approx(30.0 * 9.80665 / (4 * 147.0), rel=1e-6)
    # a full roll command: four rotors, half of 147 N each, on levers of 0.75 sin 45° = 0.53033 m;
    # crossover 7.5 rad/s
    expected = 7.5 * 1.7307 / (4 * 73.5 * 0.53033)
    assert values["ATC_RAT_RLL_P"] == pytest.approx(expected, rel=2e-3)
    assert values["ATC_ANG_RLL_P"] == pytest.approx(3.75)
    assert values["SIM_BARO_RND"] == pytest.approx(5.0 / (1.225 * 9.80665))
    lines = parameter_text(values, "scale_quad", "copter").splitlines()
    assert lines[0].startswith("#")
    assert "FRAME_TYPE 1" in lines
    assert all(len(line.split()) == 2 for line in lines[1:])


def test_outputs_of_the_rover():
    """Steering and throttle are on outputs 9 and 10, as in ControlMapping, for any rotors."""
    values = ardupilot_parameters(VehicleParameters.load("scale"), SENSORS, "rover")
    assert (values["SERVO9_FUNCTION"], values["SERVO10_FUNCTION"], values["SERVO9_REVERSED"]) == (
        26,
        70,
        1,
    )
    assert values["MOT_SAFE_DISARM"] == 1
    assert values["ATC_STR_RAT_FF"] == pytest.approx(0.66 / 0.5)
    assert values["TURN_RADIUS"] == pytest.approx(0.66 / math.tan(0.5))


@pytest.mark.parametrize(
    ("sensors", "firmware", "why"),
    [
        (SENSORS.replace(imu=None), "copter", "needs an imu"),
        (SENSORS, "plane", "expected one of copter, rover"),
    ],
)
def test_what_cannot_be_is_refused(sensors, firmware, why):
    with pytest.raises(ConfigError, match=why):
        ardupilot_parameters(QUAD, sensors, firmware)
