# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""PX4's parameters for the vehicles: geometry, gains and estimator worked out by hand."""

from __future__ import annotations

import dataclasses
import math
import subprocess

import pytest

from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import ConfigError
from rfly_mavlink.autopilots.px4_parameters import parameter_text, px4_parameters, torque_authority

QUAD = VehicleParameters.load("scale_quad")
SENSORS = SensorParameters.load("scale_quad")
ARM = 0.75 * math.sqrt(0.5)
THRUST = 0.0012 * 350.0**2  # N of one rotor: 147


def values_of(params=QUAD, sensors=SENSORS):
    return {name: setting.value for name, setting in px4_parameters(params, sensors).items()}


def test_rotors_stand_and_turn_as_the_vehicles():
    values = values_of()
    assert values["CA_ROTOR_COUNT"] == 4
    places = [(values[f"CA_ROTOR{n}_PX"], values[f"CA_ROTOR{n}_PY"]) for n in range(4)]
    # front right, front left, rear left, rear right; PX4's y is to the right
    expected = [(ARM, ARM), (ARM, -ARM), (-ARM, -ARM), (-ARM, ARM)]
    assert places == [pytest.approx(place) for place in expected]
    # Q / T = sqrt(c_T) / (FM sqrt(2 rho pi R²)); front right turns counter-clockwise, PX4's +
    spun = math.sqrt(0.0012) / (0.65 * math.sqrt(2 * 1.225 * math.pi * 0.355**2))
    signs = [spun, -spun, spun, -spun]
    assert [values[f"CA_ROTOR{n}_KM"] for n in range(4)] == pytest.approx(signs)
    assert [values[f"PWM_MAIN_FUNC{n}"] for n in range(1, 5)] == [101, 102, 103, 104]


def test_six_rotors_keep_their_order():
    values = values_of(VehicleParameters.load("scale"), SensorParameters.load("scale"))
    assert (values["CA_ROTOR_COUNT"], values["MAV_TYPE"]) == (6, 13)
    assert [values[f"PWM_MAIN_FUNC{n}"] for n in range(1, 7)] == list(range(101, 107))
    assert "CA_ROTOR6_PX" not in values


def test_the_wheels_are_braked_while_armed():
    """The 11th output, control 10, is the brake; PX4's function 2 is a constant 1."""
    assert values_of()["PWM_MAIN_FUNC11"] == 2


def test_thrust_grows_with_the_square_of_the_control():
    values = values_of()
    assert values["THR_MDL_FAC"] == 1
    # 30 kg on four rotors
    assert values["MPC_THR_HOVER"] == pytest.approx(30.0 * 9.80665 / (4 * THRUST))


def test_gains_of_the_quad():
    # a command 1 adds sqrt(1/2) of a rotor's thrust at each corner for roll and pitch, all for yaw
    corner = math.sqrt(0.5) * THRUST
    km = values_of()["CA_ROTOR0_KM"]
    assert torque_authority(QUAD) == pytest.approx([4 * ARM * corner] * 2 + [4 * km * THRUST])
    values = values_of()
    # crossover: half of 1 / 0.04 s, for yaw 0.15 of it
    inertia = 1.73070
    assert values["MC_ROLLRATE_P"] == pytest.approx(12.5 * inertia / (4 * ARM * corner), rel=1e-4)
    assert values["MC_ROLLRATE_D"] == pytest.approx(0.02 * values["MC_ROLLRATE_P"])
    assert values["MC_ROLL_P"] == pytest.approx(5.0)
    assert values["MC_YAW_P"] == pytest.approx(0.4 * 3.75)


def test_a_slow_vehicle_gets_slow_loops():
    """The motors of `full` lag by 0.12 s; a factor takes its yaw gain beyond what P may be."""
    values = values_of(VehicleParameters.load("full"), SensorParameters.load("full"))
    assert values["MC_PITCH_P"] == pytest.approx(0.4 * 0.5 / 0.12)
    params = VehicleParameters.load("full")
    gain = 0.15 / 0.12 * params.total_inertia[2, 2] / torque_authority(params)[2]
    assert gain > 0.6
    assert values["MC_YAWRATE_P"] == pytest.approx(0.6)
    assert values["MC_YAWRATE_K"] == pytest.approx(gain / 0.6)
    assert values["MC_ROLLRATE_K"] == 1.0
    assert values["MPC_YAWRAUTO_ACC"] == pytest.approx(10.0 * 1.25 * 0.4 * 1.25)
    assert values["MPC_XY_VEL_P_ACC"] == 1.2
    assert values["MPC_TILTMAX_AIR"] == 20.0


def test_the_estimator_knows_the_sensors():
    values = values_of()
    assert values["EKF2_GPS_DELAY"] == 100
    assert [values[f"EKF2_GPS_POS_{axis}"] for axis in "XYZ"] == [-0.15, 0.0, -0.22]
    assert [values[f"EKF2_IMU_POS_{axis}"] for axis in "XYZ"] == [0.05, 0.0, -0.02]
    assert (values["EKF2_REQ_HDRIFT"], values["EKF2_REQ_VDRIFT"]) == (1.0, 1.5)
    assert values["EKF2_HGT_REF"] == 0
    # the shipped field points to the north
    assert (values["EKF2_DECL_TYPE"], values["EKF2_MAG_DECL"]) == (0, 0.0)


@pytest.mark.parametrize(
    ("field", "declination"),
    [((10e-6, 10e-6, -40e-6), (0, 45.0)), (None, (3, None))],
)
def test_the_declination_is_that_of_the_simulated_field(field, declination):
    magnetometer = dataclasses.replace(SENSORS.magnetometer, earth_field=field)
    values = values_of(sensors=SENSORS.replace(magnetometer=magnetometer))
    assert (values["EKF2_DECL_TYPE"], values.get("EKF2_MAG_DECL")) == declination


@pytest.mark.parametrize(
    ("params", "sensors", "why"),
    [
        (QUAD, SENSORS.replace(gps=None, barometer=None), "no gps, barometer"),
        (
            QUAD,
            SENSORS.replace(imu=dataclasses.replace(SENSORS.imu, rotation=(0.0, 0.0, 1.0))),
            "imu along the axes",
        ),
        (QUAD.replace(mass_body=40.0), SENSORS, "hovering takes 85 %.*80 % at most"),
    ],
)
def test_what_px4_cannot_fly_is_refused(params, sensors, why):
    with pytest.raises(ConfigError, match=why):
        px4_parameters(params, sensors)


def test_the_file_is_read_by_a_shell(tmp_path):
    file = tmp_path / "quad.px4"
    settings = px4_parameters(QUAD, SENSORS)
    file.write_text(parameter_text(settings, "scale_quad", "scale_quad"), encoding="utf-8")
    assert all(setting.reason for setting in settings.values())
    script = f"set -a; . '{file}'; env"
    run = subprocess.run(["sh", "-euc", script], capture_output=True, text=True, check=True)
    read = dict(line.split("=", 1) for line in run.stdout.splitlines() if line.startswith("PX4_"))
    assert read.pop("PX4_SYS_AUTOSTART") == "10016"
    assert read["PX4_PARAM_CA_ROTOR_COUNT"] == "4"
    assert len(read) == len(settings)
