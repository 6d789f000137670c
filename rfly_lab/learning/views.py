# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Views of an environment's vehicles: truth or sensors, lidar and depth, and their names."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.config.checks import check_choice, whole_number
from rfly_common.errors import ConfigError
from rfly_common.files import StrPath
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.world import World

TRUTH = "truth"
"""Observations that are the state itself."""
SENSORS = "sensors"
"""Observations that are what the vehicle's sensors read, with noise."""
OBSERVATIONS = (TRUTH, SENSORS)
"""Kinds of observations."""
MOST_RAYS = 1024
"""Most rays of a lidar."""
MOST_PIXELS = 64
"""Most rows or columns of a depth image."""
NAMES = ("imu", "gps", "barometer", "height", "encoders", "wheel_loads")
"""Sensors that `SENSORS` are, in the order of their arrays; a set needs the first two."""


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

    # ages of all readings
    return names + [f"{name}_age_s" for name in NAMES if getattr(sensors, name) is not None]


class View(NamedTuple):
    """View of an environment's vehicles."""

    observations: str = TRUTH
    """A name of `OBSERVATIONS`."""
    lidar: int = 0
    """Rays of the planar lidar; 0: it is not seen."""
    depth: tuple[int, ...] = ()
    """Rows and columns of the depth image; none: it is not seen."""
    sensors: SensorParameters | None = None
    """Sensors of it; None: none is seen."""

    @property
    def is_sensed(self) -> bool:
        """True if vehicles see by their sensors, with noise."""
        return self.observations == SENSORS

    def seen_sensors(self) -> dict[str, Any]:
        """Return the sensors that are seen, and what places their rays, by name."""
        names: list[str] = []
        if self.is_sensed:
            names += NAMES
        if self.lidar:
            names += ["lidar", "scan"]
        if self.depth:
            names += ["depth_camera", "gimbal"]
        own = {name: getattr(self.sensors, name) for name in names}
        return {name: sensor for name, sensor in own.items() if sensor is not None}

    def range_names(self) -> list[str]:
        """Return the name of each number of the lidar and the depth image."""
        age = ("age_s",) if self.is_sensed else ()
        names = []
        if self.lidar:
            names += [f"lidar_{ray}_m" for ray in range(self.lidar)]
            names += [f"lidar_{name}" for name in age]
        if self.depth:
            rows, columns = self.depth
            names += [f"depth_{r}_{c}_m" for r in range(rows) for c in range(columns)]
            names += [f"depth_{name}" for name in age]
        return names


def view_of(
    p: VehicleParameters,
    observations: str = TRUTH,
    sensors: StrPath | SensorParameters | None = None,
    lidar: int = 0,
    depth: Sequence[int] | None = None,
) -> View:
    """Return what the arguments of an environment say; without `sensors` by the vehicle's own.

    Raise ConfigError for those that can't be used, and for sensors by which nothing is observed.
    """
    check_choice("observations", observations, OBSERVATIONS)
    rays = whole_number("lidar", lidar, at_least=0, at_most=MOST_RAYS)
    size = () if depth is None else depth
    if isinstance(size, np.ndarray):
        size = size.tolist()
    if not isinstance(size, tuple | list) or len(size) not in (0, 2):
        raise ConfigError(f"depth: {depth!r}, expected rows and columns")
    pixels = tuple(
        whole_number("depth", number, at_least=1, at_most=MOST_PIXELS) for number in size
    )

    if observations == TRUTH and not rays and not pixels:
        if sensors is not None:
            raise ConfigError("sensors: nothing is observed by them, expected observations=sensors")
        return View()
    return View(observations, rays, pixels, sensors_of(p, sensors))


KINDS: Mapping[str, type] = {
    "vehicle": VehicleParameters,
    "terrain": HeightMap,
    "world": World,
    "sensors": SensorParameters,
}
"""Types of the options that may also be a name or a path."""


def check_kind(name: str, value: Any) -> None:
    """Raise ConfigError for an option of KINDS that is neither a name, a path nor of its type."""
    kind = KINDS[name]
    if not isinstance(value, (str, os.PathLike, kind)):
        raise ConfigError(f"{name}: {value!r}, expected a name, a path or {kind.__name__}")


def vehicle_of(vehicle: StrPath | VehicleParameters) -> VehicleParameters:
    """Return a vehicle's parameters, or load them by their name or path."""
    check_kind("vehicle", vehicle)
    return vehicle if isinstance(vehicle, VehicleParameters) else VehicleParameters.load(vehicle)


def sensors_of(
    p: VehicleParameters, sensors: StrPath | SensorParameters | None
) -> SensorParameters:
    """Return a set of sensors, or load it by its name or path; None: the vehicle's own."""
    if sensors is None:
        return SensorParameters.for_vehicle(p.name)
    check_kind("sensors", sensors)
    return sensors if isinstance(sensors, SensorParameters) else SensorParameters.load(sensors)
