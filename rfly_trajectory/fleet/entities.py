"""Vehicles that join a fleet while it drives, and vehicles that are put elsewhere. No ROS."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError, PlacementError
from rfly_trajectory.fleet.fleet import Fleet, Kind, Vehicle
from rfly_trajectory.fleet.follow_path import deceleration, stop
from rfly_trajectory.motion.speed_profile import SpeedProfile
from rfly_trajectory.paths.shapes import Line

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap

SCHEME = "rfly://"
MAX_SPAWNED = 1000
MAX_AT_ONCE = 100
MAX_NAME = 100
"""characters of a name with its namespace: topics have room for more behind it"""
ROOM = 0.01
"""m of path before and behind a vehicle that stands"""
MAX_SPEED = 400.0
"""m/s that a vehicle may be given"""
ALONG = 1e-3
"""of its speed may point elsewhere than its nose"""
VEHICLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*(/[A-Za-z][A-Za-z0-9_]*)*")


@dataclass(frozen=True)
class Spawnable:
    """What a vehicle is that can be spawned."""

    name: str
    description: str
    vehicle_type: int
    """RflySim3D's"""
    kind: Kind
    profile: SpeedProfile
    shape: dict[str, Any] = field(default_factory=dict)
    """further arguments of Vehicle"""

    @property
    def uri(self) -> str:
        """By which it is asked for."""
        return SCHEME + self.name


SPAWNABLES = {
    each.name: each
    for each in (
        Spawnable(
            "car",
            "car on four wheels",
            100150,
            "ground",
            SpeedProfile(10.0, 1.5),
            {"wheelbase": 2.7, "track": 1.6},
        ),
        Spawnable("person", "person on foot", 30, "ground", SpeedProfile(1.4, 1.0)),
        Spawnable("quadcopter", "quadcopter", 3, "multirotor", SpeedProfile(8.0, 2.0)),
        Spawnable("fixed_wing", "aeroplane", 100, "fixed_wing", SpeedProfile(18.0, 2.0)),
    )
}
NOT_SPAWNED = frozenset({"land_air", "amphibious", "full", "scale", "scale_quad", "scale_six"})
"""what a land-air vehicle may be asked for by"""
NO_LAND_AIR = "land-air vehicles are not spawned: each is processes of its own, which rfly up amphibious starts"


def free_name(wanted: str, namespace: str, taken: Collection[str], default: str) -> str:
    """The wanted name below its namespace, or the first free one with a number; `default` where
    none is wanted.
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
    """Whether topics can lie below it."""
    return len(text) <= MAX_NAME and VEHICLE_NAME.fullmatch(text) is not None


def check_place(terrain: HeightMap | None, x: float, y: float, z: float | None = None) -> float:
    """z of the ground at a place, ENU m. Raises PlacementError where it is off the map or, with z,
    below the ground.
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
    what: Spawnable, name: str, id: int, fleet: Fleet, position: Floats, yaw: float
) -> Vehicle:
    """A vehicle that stands at a place (3,) ENU m from its start on, until a path is given to it.

    On the ground z does not count. Raises PlacementError for a place that is none.
    """
    nowhere = Line((0.0, 0.0), (1.0, 0.0)).path()
    vehicle = Vehicle(
        name,
        id,
        what.vehicle_type,
        nowhere,
        what.profile,
        "stop",
        what.kind,
        **what.shape,
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
    """The vehicle elsewhere from fleet time `time` [s] on: it goes straight on with a speed [m/s],
    brakes and stands.

    On the ground z does not count. Raises PlacementError for a place that is none.
    """
    x, y, z = position.tolist()
    flies = vehicle.kind != "ground"
    check_place(fleet.terrain, x, y, z if flies else None)
    brake = deceleration(vehicle.profile)
    reach = 0.5 * speed**2 / brake + ROOM
    ahead = reach * math.cos(yaw), reach * math.sin(yaw)
    path = Line((x - ahead[0], y - ahead[1]), (x + ahead[0], y + ahead[1])).path()
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


def speed_along(kind: str, velocity: Floats, turning: Floats, yaw: float) -> float:
    """m/s along the nose of a vehicle's wanted velocity (3,), world. Raises ConfigError for one
    that it can't have: its path is level or along the ground, straight and along its nose.
    """
    nose = np.array((math.cos(yaw), math.sin(yaw), 0.0))
    speed = float(velocity @ nose)
    aside = velocity - speed * nose
    if kind == "ground":
        aside[2] = 0.0  # the ground says
    if abs(speed) > MAX_SPEED:
        raise ConfigError(f"twist.linear: {speed:g} m/s, expected at most {MAX_SPEED:g}")
    if np.abs(aside).max() > ALONG * max(abs(speed), 1.0):
        raise ConfigError(
            "twist.linear: the vehicle goes along its nose, level or along the ground, and no "
            "other way"
        )
    if np.abs(turning).max() > ALONG:
        raise ConfigError("twist.angular: the vehicle goes straight on where it is put, expected 0")
    if speed < 0.0 and kind == "fixed_wing":
        raise ConfigError(f"twist.linear: a fixed_wing can't go backwards, asked for {speed:g} m/s")
    return speed
