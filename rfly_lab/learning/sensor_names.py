# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Names of what vehicles see by their sensors, number by number."""

from __future__ import annotations

from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters

NAMES = ("imu", "gps", "barometer", "height", "encoders", "wheel_loads")
"""Sensors that are seen, in the order of their arrays; a set needs the first two."""


def sensor_names(p: VehicleParameters, sensors: SensorParameters) -> list[str]:
    """Return the name of each number that a vehicle sees by its sensors; vectors in body axes."""
    vectors = {
        "gps_to_target": "_m",
        "gps_to_target_after": "_m",
        "gps_velocity": "_mps",
        "imu_up": "",
        "imu_rate": "_radps",
        "imu_force": "_mps2",
    }
    names = [f"{name}_{axis}{unit}" for name, unit in vectors.items() for axis in "xyz"]
    if sensors.barometer is not None:
        names.append("barometer_to_target_up_m")
    if sensors.height is not None:
        names.append("height_m")
    if sensors.encoders is not None:
        names.append("encoder_steering_rad")
        names += [f"encoder_rotor_{j + 1}_share" for j in range(p.rotors)]
        names += [f"encoder_wheel_speed_{wheel}_mps" for wheel in p.wheels]
    if sensors.wheel_loads is not None:
        names += [f"measured_wheel_load_{wheel}_share" for wheel in p.wheels]
    return names + [f"{name}_age_s" for name in NAMES if getattr(sensors, name) is not None]
