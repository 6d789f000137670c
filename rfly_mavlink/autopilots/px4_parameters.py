# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameter file with which PX4's SITL flies a vehicle over MAVLink HIL.

Names and meanings: PX4's parameter reference. Scale of its torque commands:
`ControlAllocationPseudoInverse.cpp`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rfly_amphibious.sensors.sensor_parameters import Gps, Imu, Magnetometer, SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError
from rfly_common.frames import flu_to_frd
from rfly_mavlink.links.mavlink_hil import ControlMapping

AUTOSTART = 10016
"""PX4's frame `none_iris`: a multicopter over MAVLink HIL."""

_QUADROTOR = 2
"""MAV_TYPE of a multicopter with four rotors, and of those that have no type of their own."""

_MAV_TYPES = {3: 15, 6: 13, 8: 14}
"""MAV_TYPE by the number of rotors."""

_MOTOR_1 = 101
"""PWM_MAIN_FUNCn of motor 1."""

_FULL = 2
"""PWM_MAIN_FUNCn of an output that is 1 while armed."""

_MOST_HOVER = 0.8
"""Largest MPC_THR_HOVER."""

_RATE_CROSSOVER = 0.5
"""Crossover of the rate loops of roll and pitch, times the motors' lag."""

_YAW_CROSSOVER = 0.15
"""Crossover of the yaw rate's loop, times the motors' lag: PX4 filters its output at 2 Hz."""

_ANGLE_SHARE = 0.4
"""Gain of the angle loops, as a share of the rate loop's crossover."""

_MOST_GAIN = 0.6
"""Largest MC_…RATE_P; what exceeds it is the factor MC_…RATE_K."""

_YAW_LAG = 10.0
"""Angle by which the heading may lag behind PX4's own turns, degrees."""


class Setting(NamedTuple):
    """A parameter's value and the reason for it."""

    value: float
    reason: str


def px4_parameters(params: VehicleParameters, sensors: SensorParameters) -> dict[str, Setting]:
    """Return PX4's parameters by name, for outputs as in `ControlMapping.default`.

    Raise ConfigError for a vehicle or sensors with which PX4 cannot fly.
    """
    return _geometry(params) | _gains(params) | _estimator(sensors)


def _geometry(params: VehicleParameters) -> dict[str, Setting]:
    """Return frame, outputs and thrust."""
    hover = (params.hover_speed / params.max_rotor_speed) ** 2
    if hover > _MOST_HOVER:
        raise ConfigError(
            f"{params.name}: hovering takes {100 * hover:.0f} % of the largest thrust, "
            f"PX4 allows {100 * _MOST_HOVER:.0f} % at most: expected less mass, or stronger rotors"
        )

    values = {
        "MAV_TYPE": Setting(_MAV_TYPES.get(params.rotors, _QUADROTOR), "what stations show"),
        "CA_AIRFRAME": Setting(0, "multirotor"),
        "CA_ROTOR_COUNT": Setting(params.rotors, "rotors of the vehicle"),
    }
    mapping = ControlMapping.default(params.rotors)
    spun = params.torque_coefficient / params.thrust_coefficient
    for n, control in enumerate(mapping.rotors):
        arm = params.rotor_arm[n]
        azimuth = params.rotor_azimuth[n]
        spin = params.rotor_spin[n]
        turning = "counter-clockwise" if spin > 0 else "clockwise"
        values |= {
            f"CA_ROTOR{n}_PX": Setting(arm * math.cos(azimuth), "m ahead of the centre of mass"),
            f"CA_ROTOR{n}_PY": Setting(-arm * math.sin(azimuth), "m to the right of it"),
            f"CA_ROTOR{n}_KM": Setting(spin * spun, f"torque / thrust, m; + as it turns {turning}"),
            f"PWM_MAIN_FUNC{control + 1}": Setting(_MOTOR_1 + n, f"control {control}: rotor {n}"),
        }

    return values | {
        f"PWM_MAIN_FUNC{mapping.brake + 1}": Setting(
            _FULL, f"control {mapping.brake}: the brakes are on, so that it stays where it lands"
        ),
        "THR_MDL_FAC": Setting(1, "controls are rotor speeds, thrust grows with their square"),
        "MPC_THR_HOVER": Setting(hover, "weight / largest thrust"),
    }


def torque_authority(params: VehicleParameters) -> Floats:
    """Return the torques of PX4's commands 1 about roll, pitch and yaw, (3,), N m.

    PX4 scales roll and pitch alike, so that no rotor's share exceeds about 1, and yaw by its
    largest share.
    """
    forward = params.rotor_position[:, 0] - params.center_x
    left = params.rotor_position[:, 1]
    spun = np.array(params.rotor_spin) * params.torque_coefficient / params.thrust_coefficient
    mixer = np.linalg.pinv(np.array([left, -forward, spun, np.ones(params.rotors)]))

    used = np.count_nonzero(np.abs(mixer[:, :2]) > 1e-3, axis=0)
    level = np.sqrt(2.0 * (mixer[:, :2] ** 2).sum(axis=0) / used).max()
    most = params.thrust_coefficient * params.max_rotor_speed**2
    return most / np.array([level, level, mixer[:, 2].max()])


def _gains(params: VehicleParameters) -> dict[str, Setting]:
    """Return the gains of the loops of rates, attitude and velocity, and limits of attitude."""
    lag = params.rotor_lag
    agility = torque_authority(params) / np.diag(params.total_inertia)  # rad/s² of a command 1
    fastest = np.array([_RATE_CROSSOVER, _RATE_CROSSOVER, _YAW_CROSSOVER]) / lag
    gains = fastest / agility
    factors = np.maximum(gains / _MOST_GAIN, 1.0)
    angle = _ANGLE_SHARE * fastest

    values: dict[str, Setting] = {}
    axes = ("ROLL", "PITCH", "YAW")
    for axis, gain, factor, angle_gain in zip(axes, gains, factors, angle, strict=True):
        share = float(gain / factor)
        integral = 10.0 if axis == "YAW" else 1.0
        damping = 0.0 if axis == "YAW" else 0.5 * lag
        values |= {
            f"MC_{axis}RATE_P": Setting(share, "from inertia, thrust and the motors' lag"),
            f"MC_{axis}RATE_I": Setting(share / integral, f"the integral takes {integral:.0f} s"),
            f"MC_{axis}RATE_D": Setting(share * damping, f"{damping:.3g} s: against the lag"),
            f"MC_{axis}RATE_K": Setting(float(factor), "times these three"),
            f"MC_{axis}_P": Setting(
                float(angle_gain), f"{_ANGLE_SHARE} of the rate loop's crossover"
            ),
        }

    velocity = min(max(0.5 * float(angle[:2].min()), 1.2), 1.8)
    return values | {
        "MPC_XY_VEL_P_ACC": Setting(velocity, "half the angle loop's gain, within PX4's range"),
        "MPC_XY_P": Setting(0.5 * velocity, "half the velocity loop's gain"),
        "MPC_TILTMAX_AIR": Setting(
            max(math.degrees(params.max_tilt), 20.0), "deg, the vehicle's, at least PX4's 20"
        ),
        "MPC_YAWRAUTO_ACC": Setting(
            min(max(_YAW_LAG * float(angle[2] * fastest[2]), 5.0), 20.0),
            f"deg/s², so that the heading lags by {_YAW_LAG:.0f} deg at most",
        ),
    }


def _estimator(sensors: SensorParameters) -> dict[str, Setting]:
    """Return the parameters of the estimator. Raise ConfigError without a sensor it needs."""
    imu, gps, magnetometer = _needed(sensors)
    values = {
        "IMU_INTEG_RATE": Setting(
            round(min(max(imu.rate, 100.0), 1000.0)), "Hz, rate of the IMU, within PX4's range"
        ),
        "EKF2_GPS_DELAY": Setting(1000.0 * gps.latency, "ms, latency of the GPS"),
        "EKF2_REQ_HDRIFT": Setting(1.0, "m/s, the GPS's slow errors look like drift"),
        "EKF2_REQ_VDRIFT": Setting(1.5, "m/s, the same upwards"),
        "EKF2_HGT_REF": Setting(0, "barometer: drifts less than the GPS's altitude"),
    }
    for name, sensor in (("IMU", imu), ("GPS", gps)):
        for axis, place in zip("XYZ", flu_to_frd(sensor.position).tolist(), strict=True):
            values[f"EKF2_{name}_POS_{axis}"] = Setting(
                place, f"m, place of the {name} in forward-right-down"
            )

    if magnetometer.earth_field is None:
        values["EKF2_DECL_TYPE"] = Setting(3, "the field is the world's: PX4's own declination")
        return values

    east, north, _ = magnetometer.earth_field
    return values | {
        "EKF2_DECL_TYPE": Setting(0, "the declination is EKF2_MAG_DECL, not the place's"),
        "EKF2_MAG_DECL": Setting(
            math.degrees(math.atan2(east, north)), "deg, of the field in the sensors' file"
        ),
    }


def _needed(sensors: SensorParameters) -> tuple[Imu, Gps, Magnetometer]:
    """Return the sensors that PX4 cannot do without. Raise ConfigError if one is missing."""
    imu = sensors.imu
    gps = sensors.gps
    magnetometer = sensors.magnetometer
    if imu is None or gps is None or magnetometer is None or sensors.barometer is None:
        names = ("imu", "gps", "magnetometer", "barometer")
        missing = ", ".join(name for name in names if getattr(sensors, name) is None)
        raise ConfigError(
            f"sensors {sensors.name!r}: no {missing}; PX4 needs {', '.join(names)} for missions"
        )
    if any(imu.rotation):
        raise ConfigError(f"sensors {sensors.name!r}: PX4 needs an imu along the axes of the body")
    return imu, gps, magnetometer


def parameter_text(values: Mapping[str, Setting], vehicle: str, sensors: str) -> str:
    """Return a file for a POSIX shell: variables that PX4's start script sets as parameters."""
    head = (
        f"# {vehicle} with the sensors {sensors}, for PX4's SITL over MAVLink HIL. Start PX4 with\n"
        "# (set -a; . ./FILE; exec build/px4_sitl_default/bin/px4)\n"
    )
    frame = f"PX4_SYS_AUTOSTART={AUTOSTART}  # multicopter over MAVLink HIL (none_iris)\n"
    lines = [
        f"PX4_PARAM_{name}={setting.value:.6g}  # {setting.reason}\n"
        for name, setting in values.items()
    ]
    return head + frame + "".join(lines)
