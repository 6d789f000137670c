# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicles that join a fleet while it drives, and vehicles that are moved elsewhere. No ROS."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.config.checks import VEHICLE_NAME
from rfly_common.config.vehicle_models import model_of, model_text, type_number, vehicle_models
from rfly_common.errors import ConfigError, PlacementError
from rfly_trajectory.fleet.fleet import Fleet, Kind, Vehicle
from rfly_trajectory.fleet.follow_path import deceleration, stop
from rfly_trajectory.motion.speed_profile import SpeedProfile
from rfly_trajectory.paths.shapes import Line

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap

# scheme of the names that can be spawned
SCHEME = "rfly://"
# largest numbers of spawned vehicles, and of requests in one call
MAX_SPAWNED = 1000
MAX_AT_ONCE = 100
MAX_NAME = 100
"""Largest length of a name with its namespace, characters: topics need room behind it."""
ROOM = 0.01
"""Length of path before and behind a vehicle that stands, m."""
MAX_SPEED = 400.0
"""Largest speed that a vehicle may be given, m/s."""
ALONG = 1e-3
"""Largest share of the speed that may point away from the vehicle's nose."""
GROUND_REACH = 100.0
"""Largest distance of a given z from the ground, m, at which a ground vehicle is put onto it."""


@dataclass(frozen=True)
class Spawnable:
    """A kind of vehicle that can be spawned."""

    name: str
    description: str
    vehicle_type: int
    """vehicleType of RflySim3D."""
    kind: Kind
    profile: SpeedProfile
    shape: dict[str, Any] = field(default_factory=dict)
    """Further arguments of Vehicle."""

    @property
    def uri(self) -> str:
        """Name in a request to spawn, with the scheme."""
        return SCHEME + self.name


class _Motion(NamedTuple):
    """Way in which the models of one look move."""

    description: str
    kind: Kind
    profile: SpeedProfile
    shape: dict[str, Any]
    """Further arguments of Vehicle."""


_MOTIONS = {
    "car": _Motion(
        "car on four wheels",
        "ground",
        SpeedProfile(10.0, 1.5),
        {"wheelbase": 2.7, "track": 1.6},
    ),
    "truck": _Motion(
        "truck on six wheels",
        "ground",
        SpeedProfile(8.0, 1.0),
        {"wheelbase": 4.6, "track": 1.9},
    ),
    "person": _Motion("person on foot", "ground", SpeedProfile(1.4, 1.0), {}),
    "multirotor": _Motion("quadcopter", "multirotor", SpeedProfile(8.0, 2.0), {}),
    "aeroplane": _Motion("aeroplane", "fixed_wing", SpeedProfile(18.0, 2.0), {}),
}
"""Motion by the look of a model; models of other looks are objects that stand still."""

SPAWNABLES = {
    name: Spawnable(
        name,
        _MOTIONS[model.look].description,
        model.vehicle_type,
        _MOTIONS[model.look].kind,
        _MOTIONS[model.look].profile,
        _MOTIONS[model.look].shape,
    )
    for model in vehicle_models()
    if model.look in _MOTIONS
    for name in (model.name, *model.aliases)
}
"""Vehicles that can be spawned, by the names and aliases of the model list."""
NOT_SPAWNED = frozenset({"land_air", "amphibious", "full", "scale", "scale_quad", "scale_six"})
"""Names that a request for a land-air vehicle may use, which spawner_node spawns."""
NO_LAND_AIR = (
    "land-air vehicles have dynamics and processes of their own: spawner_node spawns them "
    "(rfly up --spawner)"
)


def find_spawnable(name_or_number: str) -> Spawnable:
    """Return what a request names by a model's name, or by its vehicleType.

    Raises ConfigError that proposes similar names, or says that the model is no vehicle.
    """
    if name_or_number in SPAWNABLES:
        return SPAWNABLES[name_or_number]
    vehicle_type = type_number(name_or_number)
    model = model_of(vehicle_type)
    if model is None or model.name not in SPAWNABLES:
        raise ConfigError(
            f"{model_text(vehicle_type)} is no vehicle that moves by itself; place_object puts it "
            "down"
        )
    return dataclasses.replace(SPAWNABLES[model.name], vehicle_type=vehicle_type)


def free_name(wanted: str, namespace: str, taken: Collection[str], default: str) -> str:
    """Return the wanted name below its namespace, or the first free one with a number.

    Without a wanted name the name is built from `default`.
    """
    prefix = f"{namespace}/" if namespace else ""
    if wanted and prefix + wanted not in taken:
        return prefix + wanted
    stem = prefix + (wanted or default)
    number = 2 if wanted else 1
    while f"{stem}_{number}" in taken:
        number += 1
    return f"{stem}_{number}"


def is_name(text: str) -> bool:
    """Return True if topics can lie below this name."""
    return len(text) <= MAX_NAME and VEHICLE_NAME.fullmatch(text) is not None


def check_place(terrain: HeightMap | None, x: float, y: float, z: float | None = None) -> float:
    """Return the ground's z at a position, ENU, m.

    Raises PlacementError for a position off the map or, with z, below the ground.
    """
    if terrain is None:
        ground = 0.0
    elif terrain.inside(x, y):
        ground = float(terrain.altitude(x, y))
    else:
        raise PlacementError(
            f"position x {x:g}, y {y:g} lies off the map, which spans {terrain.bounds}"
        )
    if z is not None and z < ground:
        raise PlacementError(
            f"position z {z:g} lies below the ground, which is at {ground:g} there"
        )
    return ground


def spawned(
    spawnable: Spawnable, name: str, id: int, fleet: Fleet, position: Floats, yaw: float
) -> Vehicle:
    """Return a vehicle that stands at a position (3,), ENU, m, until it is given a path.

    A ground vehicle is put onto the ground; its z may be 0 or near it. Raises PlacementError for an
    impossible position.
    """
    placeholder = Line((0.0, 0.0), (1.0, 0.0)).path()
    vehicle = Vehicle(
        name,
        id,
        spawnable.vehicle_type,
        placeholder,
        spawnable.profile,
        "stop",
        spawnable.kind,
        **spawnable.shape,
    )
    return moved(vehicle, fleet, 0.0, position, yaw, 0.0)


def moved(
    vehicle: Vehicle,
    fleet: Fleet,
    time: float,
    position: Floats,
    yaw: float,
    speed: float,
) -> Vehicle:
    """Return the vehicle moved to another place at fleet time `time`, s.

    It continues straight ahead, brakes and stops.

    The speed is in m/s. A ground vehicle stands on the ground: its z may be 0 or near the ground.
    Raises PlacementError for an impossible position.
    """
    x, y, z = position.tolist()
    flies = vehicle.kind != "ground"
    ground = check_place(fleet.terrain, x, y, z if flies else None)
    if not flies and z != 0.0 and abs(z - ground) > GROUND_REACH:
        raise PlacementError(
            f"position z {z:g}: {vehicle.name!r} stands on the ground, which is at {ground:g} "
            f"there; expected 0 or a z within {GROUND_REACH:g} m of it"
        )

    # a straight path, just long enough to brake
    brake = deceleration(vehicle.profile)
    reach = 0.5 * speed**2 / brake + ROOM
    dx = reach * math.cos(yaw)
    dy = reach * math.sin(yaw)
    path = Line((x - dx, y - dy), (x + dx, y + dy)).path()

    return dataclasses.replace(
        vehicle,
        path=path,
        at_end="stop",
        delay=max(time, 0.0),
        phase=0.0,
        shift=(0.0, 0.0),
        offset=(0.0, 0.0),
        height=z if flies else 0.0,
        absolute=flies,
        timing=stop(reach, speed, brake),
    )


def speed_along(kind: str, velocity: Floats, angular_velocity: Floats, yaw: float) -> float:
    """Return the speed, m/s, along the nose of a vehicle with the wanted velocity (3,), world axes.

    Raises ConfigError for a velocity that the vehicle can't have: it moves straight along its nose,
    level or along the ground.
    """
    nose = np.array((math.cos(yaw), math.sin(yaw), 0.0))
    speed = float(velocity @ nose)
    sideways = velocity - speed * nose
    if kind == "ground":
        sideways[2] = 0.0  # the ground determines it

    if abs(speed) > MAX_SPEED:
        raise ConfigError(f"twist.linear: {speed:g} m/s, expected at most {MAX_SPEED:g}")
    if np.abs(sideways).max() > ALONG * max(abs(speed), 1.0):
        raise ConfigError(
            "twist.linear: the vehicle moves along its nose only, level or along the ground"
        )
    if np.abs(angular_velocity).max() > ALONG:
        raise ConfigError("twist.angular: the vehicle moves straight on, expected 0")
    if speed < 0.0 and kind == "fixed_wing":
        raise ConfigError(f"twist.linear: a fixed_wing can't go backwards, asked for {speed:g} m/s")
    return speed
