"""Vehicle classes of the planner: limits and energy use of each kind of vehicle, from a YAML file."""

from __future__ import annotations

import importlib.resources
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rfly_common.config.documents import check_schema, decode_text, load_schema, read_limited
from rfly_common.config.marked_yaml import parse_yaml
from rfly_common.errors import ConfigError
from rfly_common.physics import GRAVITY
from rfly_terrain.costmap.traversability import TraversabilityLimits

MAX_FILE_BYTES = 1_000_000
_UNFIT = {"ground": ("fly",), "multirotor": ("drive",), "fixed_wing": ("drive", "fly.hover_power")}
"""keys that a kind of vehicle has no use for"""
_LIMITS = ("max_slope_deg", "max_roughness", "max_step", "half_wheelbase")
"""keys of TraversabilityLimits"""


@dataclass(frozen=True)
class Driving:
    """How a vehicle drives."""

    speed: float
    """m/s"""
    turning_radius: float
    """m, the smallest"""
    limits: TraversabilityLimits
    rolling_resistance: float = 0.04
    """force / weight"""
    efficiency: float = 0.8
    """work at the wheels / energy taken"""
    reverse: bool = False
    """whether plans may drive backwards"""
    reverse_cost: float = 2.0
    """what a metre backwards counts, one ahead being 1"""
    cusp_cost: float = 5.0
    """m, that a change between forwards and backwards counts"""

    def energy(self, mass: float, distance: Any, climb: Any) -> Any:
        """J for pieces of `distance` (m, in the plane) that rise by `climb` (m).

        The force along a slope is m g (μ cos θ + sin θ); over distance / cos θ its work is m g (μ
        distance + climb). Downhill nothing is gained back.
        """
        work = mass * GRAVITY * (self.rolling_resistance * np.asarray(distance) + np.asarray(climb))
        return np.maximum(work, 0.0) / self.efficiency


@dataclass(frozen=True)
class Flying:
    """How a vehicle flies."""

    min_height: float
    """m above the ground"""
    speed: float
    """m/s over ground"""
    climb_rate: float
    """m/s, at most"""
    sink_rate: float
    """m/s, at most"""
    power: float
    """W, in level flight"""
    hover_power: float | None = None
    """W, straight up or down; None: it cannot"""
    max_climb_deg: float = 90.0
    max_descent_deg: float = 90.0
    turning_radius: float = 0.0
    """m; 0: turns where it is"""
    efficiency: float = 0.5
    """gained potential energy / energy taken for it"""
    max_takeoff_slope_deg: float = 10.0

    @property
    def steepest(self) -> tuple[float, float]:
        """(up, down): m of height a metre over ground, at most."""
        up, down = (
            math.tan(math.radians(min(a, 89.9))) for a in (self.max_climb_deg, self.max_descent_deg)
        )
        return min(up, self.climb_rate / self.speed), min(down, self.sink_rate / self.speed)

    def duration(self, distance: Any, climb: Any) -> Any:
        """s for pieces of `distance` (m over ground) that rise by `climb` (m): as fast as all three
        limits allow.
        """
        climb = np.asarray(climb)
        vertical = np.where(climb > 0, climb / self.climb_rate, -climb / self.sink_rate)
        return np.maximum(np.asarray(distance) / self.speed, vertical)

    def energy(self, mass: float, distance: Any, climb: Any) -> Any:
        """J: power · time, and what height takes: m g climb / efficiency. Sinking gives nothing
        back.
        """
        upright = np.asarray(distance) < 1e-9
        power = np.where(upright, self.hover_power or self.power, self.power)
        lifted = mass * GRAVITY * np.maximum(np.asarray(climb), 0.0) / self.efficiency
        return power * self.duration(distance, climb) + lifted


@dataclass(frozen=True)
class VehicleClass:
    """A kind of vehicle."""

    name: str
    kind: str
    """ground, multirotor, fixed_wing or land_air"""
    mass: float
    """kg"""
    radius: float
    """m, of the circle around it"""
    drive: Driving | None = None
    fly: Flying | None = None

    def cannot(self, what: str, kinds: str) -> str:
        """That this class can't do what others can, for errors."""
        return f"vehicle class {self.name!r} is of the kind {self.kind} and cannot {what}, expected {kinds}"


def load_vehicle_classes(path: str | os.PathLike[str] | None = None) -> dict[str, VehicleClass]:
    """The classes of a file by name, in its order; None or "": of the shipped file.

    Raises ConfigError that names file, line, key and what is allowed.
    """
    if path is None or os.fspath(path) == "":
        shipped = importlib.resources.files("rfly_terrain") / "data" / "vehicle_classes.yaml"
        return parse_vehicle_classes(shipped.read_bytes(), "vehicle_classes.yaml")
    return parse_vehicle_classes(
        read_limited(path, "vehicle classes", MAX_FILE_BYTES), os.fspath(path)
    )


def parse_vehicle_classes(data: bytes, file: str) -> dict[str, VehicleClass]:
    """The classes of a file's content; `file` is what errors call it."""
    document = parse_yaml(decode_text(data, file), file)
    check_schema(document, load_schema("rfly_terrain", "vehicle_classes"))
    classes: dict[str, VehicleClass] = {}
    for index, entry in enumerate(document.value["classes"]):
        if entry["name"] in classes:
            raise document.error(
                ("classes", index, "name"), f"there is a class {entry['name']!r} already"
            )
        for key in _UNFIT.get(entry["kind"], ()):
            part, _, inner = key.partition(".")
            if part in entry and (not inner or inner in entry[part]):
                raise document.error(
                    ("classes", index, *key.split(".")),
                    f"a {entry['kind']} vehicle has no such key",
                )
        classes[entry["name"]] = _class(entry)
    return classes


def vehicle_class(classes: Mapping[str, VehicleClass], name: str) -> VehicleClass:
    """The class of that name; "": the first one. Raises ConfigError that lists the names."""
    if not name:
        return next(iter(classes.values()))
    if name not in classes:
        raise ConfigError(f"vehicle class {name!r}: there are {', '.join(classes)}")
    return classes[name]


def _class(entry: Mapping[str, Any]) -> VehicleClass:
    drive = fly = None
    if "drive" in entry:
        values = dict(entry["drive"])
        limits = {key: values.pop(key) for key in _LIMITS if key in values}
        drive = Driving(
            limits=TraversabilityLimits(**limits, vehicle_radius=float(entry["radius"])), **values
        )
    if "fly" in entry:
        fly = Flying(**entry["fly"])
    return VehicleClass(
        entry["name"], entry["kind"], float(entry["mass"]), float(entry["radius"]), drive, fly
    )
