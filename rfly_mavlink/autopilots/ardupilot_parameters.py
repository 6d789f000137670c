# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameter file with which ArduPilot SITL flies or drives a vehicle over its JSON interface.

Names and meanings: ArduPilot's parameter reference. Angles and spins of its motors:
`AP_MotorsMatrix.cpp`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from rfly_amphibious.sensors.sensor_parameters import NoisySensor, SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.speed_controller import steering_lever
from rfly_common.errors import ConfigError
from rfly_common.frames import flu_to_frd
from rfly_common.physics import AIR_DENSITY, GRAVITY
from rfly_mavlink.links.ardupilot_session import HIGH, LOW, MIDDLE
from rfly_mavlink.links.mavlink_hil import ControlMapping

FIRMWARE = ("copter", "rover")
"""Firmware for which there are parameters."""

_FRAMES: dict[str, tuple[int, int, tuple[float, ...], str]] = {
    "QUAD PLUS": (1, 0, (90, -90, 0, 180), "++--"),
    "QUAD PLUSREV": (1, 6, (90, -90, 0, 180), "--++"),
    "QUAD X": (1, 1, (45, -135, -45, 135), "++--"),
    "QUAD H": (1, 3, (45, -135, -45, 135), "--++"),
    "HEXA PLUS": (2, 0, (0, 180, -120, 60, -60, 120), "-+-++-"),
    "HEXA X": (2, 1, (90, -90, -30, 150, 30, -150), "-+-++-"),
    "OCTA PLUS": (3, 0, (0, 180, 45, 135, -45, -135, -90, 90), "--++++--"),
    "OCTA X": (3, 1, (22.5, -157.5, 67.5, 157.5, -22.5, -112.5, -67.5, 112.5), "--++++--"),
}
"""ArduPilot's frames: FRAME_CLASS, FRAME_TYPE, and angles and spins of the motors from motor 1.

Angles are in degrees clockwise from ahead; +: counter-clockwise seen from above.
"""

_TOLERANCE_DEG = 5.0
"""Largest difference between the angles of a rotor and its motor, degrees."""

_SPEED_CROSSOVER = 4.0
"""Crossover of Rover's speed loop, whose drive has a negligible lag, rad/s."""

_MOTOR_1 = 33
"""SERVOn_FUNCTION of motor 1."""

_GROUND_STEERING = 26
"""SERVOn_FUNCTION of the steering."""

_THROTTLE = 70
"""SERVOn_FUNCTION of the drive."""

_CALIBRATED = {
    **{f"INS_ACC{k}_{axis}": v for k, v in (("OFFS", 0.001), ("SCAL", 1.001)) for axis in "XYZ"},
    **{f"INS_ACC2{k}_{axis}": v for k, v in (("OFFS", 0.001), ("SCAL", 1.001)) for axis in "XYZ"},
    **{
        f"COMPASS_OFS{n}_{axis}": v
        for n in ("", 2, 3)
        for axis, v in (("X", 5), ("Y", 13), ("Z", -18))
    },
    **{
        f"RC{n}_{end}": v
        for n in range(1, 9)
        for end, v in (("MIN", LOW), ("MAX", HIGH), ("TRIM", MIDDLE))
    },
}
"""Calibration of sensors and radio that ArduPilot needs to arm, as its own SITL has it."""


def frame_of(params: VehicleParameters) -> tuple[str, int, int, list[int]]:
    """Return name, FRAME_CLASS, FRAME_TYPE and the motor at each rotor of a vehicle's frame.

    Raise ConfigError if ArduPilot has no such frame.
    """
    azimuths = [math.remainder(-math.degrees(azimuth), 360.0) for azimuth in params.rotor_azimuth]
    rotors = list(zip(azimuths, params.rotor_spin, strict=True))
    for name, (frame_class, frame_type, angles, spins) in _FRAMES.items():
        if len(angles) != len(rotors):
            continue
        motors = [_motor_at(azimuth, spin, angles, spins) for azimuth, spin in rotors]
        if all(motors):
            return name, frame_class, frame_type, motors

    wanted = ", ".join(
        f"{azimuth:.0f}° {'counter-clockwise' if spin > 0 else 'clockwise'}"
        for azimuth, spin in rotors
    )
    raise ConfigError(
        f"{params.name}: none of ArduPilot's frames ({', '.join(_FRAMES)}) has rotors as its own, "
        f"at degrees clockwise from ahead: {wanted}"
    )


def _motor_at(azimuth: float, spin: int, angles: tuple[float, ...], spins: str) -> int:
    """Return the motor (from 1) at an azimuth with a spin; 0: there is none."""
    for motor, (angle, turn) in enumerate(zip(angles, spins, strict=True), 1):
        near = abs(math.remainder(angle - azimuth, 360.0)) < _TOLERANCE_DEG
        if near and (turn == "+") == (spin > 0):
            return motor
    return 0


def ardupilot_parameters(
    params: VehicleParameters, sensors: SensorParameters, firmware: str = "copter"
) -> dict[str, float]:
    """Return values by name, for outputs as in `ControlMapping.default`.

    Raise ConfigError for a vehicle or sensors that ArduPilot cannot use.
    """
    if firmware not in FIRMWARE:
        raise ConfigError(f"firmware: {firmware!r}, expected one of {', '.join(FIRMWARE)}")
    imu = sensors.imu
    if imu is None or any(imu.rotation):
        raise ConfigError(
            f"sensors {sensors.name!r}: ArduPilot needs an imu along the axes of the body"
        )

    place = flu_to_frd(imu.position).tolist()
    values: dict[str, float] = {
        f"INS_POS{n}_{axis}": v for n in (1, 2) for axis, v in zip("XYZ", place, strict=True)
    }

    # it arms only if the gyroscope is read 1.8 times in a loop
    values |= {
        "SIM_RATE_HZ": imu.rate,
        "SCHED_LOOP_RATE": min(0.5 * imu.rate, 400.0) if firmware == "copter" else 50.0,
    }

    if sensors.barometer is not None:
        values["SIM_BARO_RND"] = _white(sensors.barometer) / (AIR_DENSITY * GRAVITY)
    if sensors.magnetometer is not None:
        values["SIM_MAG_RND"] = _white(sensors.magnetometer) * 1e7  # milligauss
    if sensors.height is not None:
        values |= {"RNGFND1_TYPE": 100, "RNGFND1_ORIENT": 25}  # SITL, downward

    return values | _CALIBRATED | (_copter(params) if firmware == "copter" else _rover(params))


def _white(sensor: NoisySensor) -> float:
    """Return the standard deviation of a sensor's white noise."""
    return float(np.asarray(sensor.noise.white_sigma)[0])


def _copter(params: VehicleParameters) -> dict[str, float]:
    """Return the values of the copter: frame, motors and gains of its loops."""
    _, frame_class, frame_type, motors = frame_of(params)
    values: dict[str, float] = {"FRAME_CLASS": frame_class, "FRAME_TYPE": frame_type}
    for output, motor in enumerate(motors, 1):
        values |= {f"SERVO{output}_FUNCTION": _MOTOR_1 + motor - 1}

    most = params.thrust_coefficient * params.max_rotor_speed**2
    values |= {
        "MOT_PWM_MIN": LOW,
        "MOT_PWM_MAX": HIGH,
        "MOT_SPIN_ARM": 0.03,
        "MOT_SPIN_MIN": 0.05,
        "MOT_SPIN_MAX": 1.0,
        # thrust grows with the square of the speed, and the speed with the pulse
        "MOT_THST_EXPO": 1.0,
        "MOT_THST_HOVER": (params.hover_speed / params.max_rotor_speed) ** 2,
        "MOT_BAT_VOLT_MAX": 0,
    }

    # gains: a full command takes half of the thrust's range
    x = np.abs(params.rotor_position[:, 0] - params.center_x)
    y = np.abs(params.rotor_position[:, 1])
    inertia = np.diag(params.total_inertia)
    spun = params.rotors * params.torque_coefficient / params.thrust_coefficient
    levers = (y @ y / y.max(), x @ x / x.max(), spun)
    fastest = (0.3 / params.rotor_lag, 0.3 / params.rotor_lag, 0.15 / params.rotor_lag)

    for axis, lever, moment, crossover in zip(
        ("RLL", "PIT", "YAW"), levers, inertia, fastest, strict=True
    ):
        gain = crossover * moment / (0.5 * most * lever)
        values[f"ATC_RAT_{axis}_P"] = gain
        values[f"ATC_RAT_{axis}_I"] = gain if axis != "YAW" else 0.1 * gain
        values[f"ATC_RAT_{axis}_D"] = 0.5 * params.rotor_lag * gain if axis != "YAW" else 0.0
        values[f"ATC_ANG_{axis}_P"] = 0.5 * crossover
    return values


def _rover(params: VehicleParameters) -> dict[str, float]:
    """Return the values of the rover: outputs, speed and steering."""
    if params.steered == "none":
        raise ConfigError(
            f"{params.name}: steering.wheels: none, expected steered wheels for ArduPilot's Rover"
        )

    mapping = ControlMapping.default(params.rotors)
    values: dict[str, float] = {
        "FRAME_CLASS": 1,
        "FRAME_TYPE": 0,
        "SERVO1_FUNCTION": 0,
        "SERVO3_FUNCTION": 0,
    }

    # outputs
    for control, function in ((mapping.steering, _GROUND_STEERING), (mapping.drive, _THROTTLE)):
        values |= {f"SERVO{control + 1}_FUNCTION": function, f"SERVO{control + 1}_TRIM": MIDDLE}
        values |= {f"SERVO{control + 1}_MIN": LOW, f"SERVO{control + 1}_MAX": HIGH}
    values[f"SERVO{mapping.steering + 1}_REVERSED"] = 1  # ours is positive to the left

    # speed and steering
    push = len(params.driven) * params.max_drive_torque / float(params.rolling_radius.mean())
    gain = _SPEED_CROSSOVER * params.effective_mass / push  # of the throttle per m/s
    lever = params.wheelbase if params.middle_axle is None else steering_lever(params)
    turn = lever / params.max_steering
    return values | {
        "MOT_SAFE_DISARM": 1,  # no pulse for the throttle while disarmed, which brakes the wheels
        "CRUISE_SPEED": 2.0,
        "CRUISE_THROTTLE": max(
            100.0 * params.rolling_resistance * params.mass * GRAVITY / push, 1.0
        ),
        "ATC_SPEED_P": gain,
        "ATC_SPEED_I": gain,
        "ATC_STR_RAT_FF": turn,
        "ATC_STR_RAT_P": 0.25 * turn,
        "ATC_STR_RAT_I": 0.25 * turn,
        "TURN_RADIUS": lever / math.tan(params.max_steering),
        "WP_SPEED": 2.0,
        "WP_RADIUS": 1.0,
    }


def parameter_text(values: Mapping[str, float], vehicle: str, firmware: str) -> str:
    """Return a file for `--defaults` of ArduPilot's SITL."""
    head = f"# {vehicle} for ArduPilot's {firmware} over the JSON interface\n"
    return head + "".join(f"{name} {value:.6g}\n" for name, value in values.items())
