# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicle classes of the planner, from a YAML file: limits and energy use."""

from __future__ import annotations

import importlib.resources
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.config.documents import check_schema, decode_text, load_schema, read_limited
from rfly_common.config.marked_yaml import parse_yaml
from rfly_common.errors import ConfigError
from rfly_common.physics import GRAVITY
from rfly_terrain.costmap.traversability import TraversabilityLimits

MAX_FILE_BYTES = 1_000_000
"""Size of a file, at most."""
_UNFIT = {
    "ground": ("fly", "rolling"),
    "multirotor": ("drive", "rolling"),
    "fixed_wing": ("drive", "rolling", "fly.hover_power"),
}
"""Keys that do not apply to a kind of vehicle."""
_LIMITS = ("max_slope_deg", "max_roughness", "max_step", "half_wheelbase")
"""Keys of TraversabilityLimits."""


@dataclass(frozen=True)
class Driving:
    """Limits and energy use of driving."""

    speed: float
    """Speed, m/s."""
    turning_radius: float
    """Smallest turning radius, m."""
    limits: TraversabilityLimits
    """Limits of the ground."""
    rolling_resistance: float = 0.04
    """Force over weight."""
    efficiency: float = 0.8
    """Work at the wheels over energy used."""
    reverse: bool = False
    """True if plans may drive backwards."""
    reverse_cost: float = 2.0
    """Cost of a metre backwards, in metres ahead."""
    cusp_cost: float = 5.0
    """Cost of a change between forwards and backwards, m."""
    regeneration: float = 0.0
    """Energy recovered over work that the slope does on the wheels."""
    idle_power: float = 0.0
    """Power of everything but the motors, W."""
    start_energy: float = 0.0
    """Energy of a start and a stop on level ground beyond that of the way, J."""
    stopping_distance: float = 0.0
    """Distance of the stop at the end, in which the kinetic energy does the work, m."""

    def energy(self, mass: float, distance: Any, climb: Any) -> Any:
        """Return the energy, J, for pieces of `distance` that rise by `climb`.

        Both are in m, `distance` in the plane. The force along a slope is m g (μ cos θ + sin θ).
        Over distance / cos θ its work is m g (μ distance + climb). It is negative for pieces so
        steep downhill that more is recovered than used.
        """
        distance = np.asarray(distance)
        climb = np.asarray(climb)
        work = mass * GRAVITY * (self.rolling_resistance * distance + climb)
        idle = self.idle_power * np.hypot(distance, climb) / self.speed
        return np.where(work > 0.0, work / self.efficiency, work * self.regeneration) + idle

    def trip(self, mass: float, distance: Floats, climb: Floats) -> float:
        """Return the energy, J, of a drive from rest to rest in pieces; see `energy`.

        A slope at the end takes a part of the kinetic energy, or adds to it. A drive that is
        shorter than the stop does not get as fast. What is left over at the end counts as 0: a full
        battery cannot be charged.
        """
        left = np.maximum(distance.sum() - np.cumsum(distance), 0.0)  # rounded below 0 at the end
        stops = left < self.stopping_distance
        energy = float(self.energy(mass, distance[~stops], climb[~stops]).sum())
        energy += float(self.energy(mass, distance[stops], 0.0).sum())

        # start and stop
        share = 1.0
        if self.stopping_distance > 0.0:
            share = min(1.0, float(distance.sum()) / self.stopping_distance)
        weight = mass * GRAVITY
        resistance = weight * self.rolling_resistance
        spare = 0.5 * mass * self.speed**2 - resistance * self.stopping_distance
        lifted = weight * float(climb[stops].sum())
        braked = min(lifted, max(share * spare, 0.0))
        energy += share * self.start_energy
        energy += self.regeneration * braked + (lifted - braked) / self.efficiency
        return max(energy, 0.0)


@dataclass(frozen=True)
class Flying:
    """Limits and energy use of flying."""

    min_height: float
    """Height above the ground, at least, m."""
    speed: float
    """Speed over ground, m/s."""
    climb_rate: float
    """Rate of climb, at most, m/s."""
    sink_rate: float
    """Rate of descent, at most, m/s."""
    power: float
    """Power in level flight, W."""
    hover_power: float | None = None
    """Power of vertical flight, W; None: not possible."""
    max_climb_deg: float = 90.0
    """Angle of climb, at most, degrees."""
    max_descent_deg: float = 90.0
    """Angle of descent, at most, degrees."""
    turning_radius: float = 0.0
    """Turning radius, m; 0: turns on the spot."""
    efficiency: float = 0.5
    """Potential energy gained over energy used for it."""
    max_takeoff_slope_deg: float = 10.0
    """Slope for take-off and landing, at most, degrees."""
    sink_power: float | None = None
    """Power of vertical descent, W; None: that of hover."""
    takeoff_energy: float = 0.0
    """Energy of a take-off beyond that of the climb, J."""
    landing_energy: float = 0.0
    """Energy of a landing beyond that of the descent, J."""
    acceleration: float | None = None
    """Acceleration along a path, m/s²; None: speed changes at once."""
    corner_step: float = 1.0
    """Change of the velocity at a corner, at most, m/s; only with an acceleration."""

    @property
    def steepest(self) -> tuple[float, float]:
        """Steepest climb and descent, (up, down), metres of height a metre over ground."""
        up = math.tan(math.radians(min(self.max_climb_deg, 89.9)))
        down = math.tan(math.radians(min(self.max_descent_deg, 89.9)))
        return min(up, self.climb_rate / self.speed), min(down, self.sink_rate / self.speed)

    def duration(self, distance: Any, climb: Any) -> Any:
        """Return the duration, s, for pieces of `distance` that rise by `climb`.

        Both are in m, `distance` over ground. The vehicle is as fast as all three limits allow.
        """
        climb = np.asarray(climb)
        vertical = np.where(climb > 0, climb / self.climb_rate, -climb / self.sink_rate)
        return np.maximum(np.asarray(distance) / self.speed, vertical)

    def energy(self, mass: float, distance: Any, climb: Any) -> Any:
        """Return the energy, J: power · time, and m g climb / efficiency.

        Descent recovers nothing.
        """
        lifted = mass * GRAVITY * np.maximum(np.asarray(climb), 0.0) / self.efficiency
        return self._power(distance, climb) * self.duration(distance, climb) + lifted

    def energy_between(self, mass: float, distance: Any, rise: Any) -> Any:
        """Return the energy, J, between places; a rise steeper than it climbs takes a longer path.

        Both are in m, `distance` over ground.
        """
        up, down = self.steepest
        longer = np.maximum(distance, np.maximum(rise / up, -rise / down))
        return self.energy(mass, longer, rise)

    def _power(self, distance: Any, climb: Any) -> Any:
        """Return the power beyond that for the potential energy, W."""
        hover = self.hover_power or self.power
        vertical = np.where(np.asarray(climb) < 0.0, self.sink_power or hover, hover)
        return np.where(np.asarray(distance) < 1e-9, vertical, self.power)

    def path(
        self, mass: float, position: Floats, begin: float = 0.0, end: float = 0.0
    ) -> tuple[float, float]:
        """Return (energy, J, duration, s) of a flight through places (n, 3).

        `begin`, `end`: speeds at its ends, m/s. With an acceleration the vehicle slows down before
        corners. It has the mean of the powers of hover and flight while it changes its speed.
        """
        steps = np.diff(position, axis=0)
        distance = np.hypot(steps[:, 0], steps[:, 1])
        climb = steps[:, 2]
        energy = self.energy(mass, distance, climb)
        duration = self.duration(distance, climb)
        if self.acceleration is None or not len(steps):
            return float(energy.sum()), float(duration.sum())

        longer = self._times(steps, duration, begin, end) - duration
        hover = self.hover_power or self.power
        energy += longer * 0.5 * (self._power(distance, climb) + hover)
        return float(energy.sum()), float((duration + longer).sum())

    def _times(self, steps: Floats, duration: Floats, begin: float, end: float) -> Floats:
        """Return the time of each step (n, 3) of a path, s, with limited acceleration.

        `duration`: at the full speed; `begin`, `end`: speeds at the path's ends, m/s.
        """
        assert self.acceleration is not None
        length = np.maximum(np.linalg.norm(steps, axis=1), 1e-9)
        direction = steps / length[:, None]
        full = length / np.maximum(duration, 1e-9)

        # speeds at the corners, as low as both neighbours and the ways between need
        change = np.linalg.norm(np.diff(direction, axis=0), axis=1)
        corner = np.concatenate([[begin], self.corner_step / np.maximum(change, 1e-3), [end]])
        corner[:-1] = np.minimum(corner[:-1], full)
        corner[1:] = np.minimum(corner[1:], full)
        reach = 2.0 * self.acceleration * length
        for k in range(len(steps)):
            corner[k + 1] = min(corner[k + 1], math.sqrt(corner[k] ** 2 + reach[k]))
        for k in range(len(steps) - 1, -1, -1):
            corner[k] = min(corner[k], math.sqrt(corner[k + 1] ** 2 + reach[k]))

        # speed up, go on, slow down
        top = np.minimum(full, np.sqrt(0.5 * (corner[:-1] ** 2 + corner[1:] ** 2 + reach)))
        changing = (2.0 * top - corner[:-1] - corner[1:]) / self.acceleration
        squares = 2.0 * top**2 - corner[:-1] ** 2 - corner[1:] ** 2
        constant = np.maximum(length - squares / (2.0 * self.acceleration), 0.0)
        return np.asarray(changing + constant / top)


@dataclass(frozen=True)
class Rolling:
    """Take-offs and landings on rolling wheels: the ground and the energy that they need."""

    takeoff_speed: float
    """Speed on the ground of a take-off, m/s."""
    climb_rate: float
    """Rate of climb up to the height of the flight, m/s."""
    climb_power: float
    """Power of this climb, W."""
    landing_speed: float
    """Speed on the ground of a landing, m/s."""
    sink_rate: float
    """Rate of descent of the glide, m/s."""
    sink_power: float
    """Power of the glide, W."""
    lift_off_energy: float
    """Energy of the rotors from the rise of their thrust to the climb, J."""
    flare_energy: float
    """Energy of the flare beyond that of the glide, J."""
    run_up: float
    """Way on the ground from the place where the vehicle is on course to the climb, m."""
    braking: float
    """Way in which it stops if it does not lift off, m."""
    flare: float
    """Way of the flare beyond that of the glide, and to come on course before the glide, m."""
    roll_out: float
    """Way on the ground after the touch-down, m."""
    track: float
    """Distance between the wheels of an axle, m."""
    max_roughness: float
    """Deviation of the ground from a straight track, at most, m."""
    highest_takeoff: float
    """Height above the ground up to which a flight begins on rolling wheels, m."""
    highest_landing: float
    """The same of a flight that ends on rolling wheels, m."""

    def climb_way(self, height: float) -> float:
        """Return the way of the climb to a height, m."""
        return self.takeoff_speed * height / self.climb_rate

    def takeoff_way(self, height: float) -> float:
        """Return the way on which the vehicle comes to a height, m, or could still stop."""
        return self.run_up + max(self.climb_way(height), self.braking)

    def glide_way(self, height: float) -> float:
        """Return the way of a landing from a height to the touch-down, m."""
        return self.landing_speed * height / self.sink_rate + self.flare


@dataclass(frozen=True)
class VehicleClass:
    """A class of vehicles with its limits."""

    name: str
    """Name."""
    kind: str
    """Kind: ground, multirotor, fixed_wing or land_air."""
    mass: float
    """Mass, kg."""
    radius: float
    """Radius of the circle around it, m."""
    drive: Driving | None = None
    """Driving; None: it cannot drive."""
    fly: Flying | None = None
    """Flying; None: it cannot fly."""
    rolling: Rolling | None = None
    """Take-offs and landings on rolling wheels; None: only straight up and down."""

    def cannot(self, what: str, kinds: str) -> str:
        """Return an error message: this class cannot do `what`, the `kinds` can."""
        return (
            f"vehicle class {self.name!r} is of the kind {self.kind} and cannot {what}, "
            f"expected {kinds}"
        )


def load_vehicle_classes(path: str | os.PathLike[str] | None = None) -> dict[str, VehicleClass]:
    """Return the classes of a file by name, in its order; None or "": of the shipped file.

    Raises ConfigError with file, line, key and what is allowed.
    """
    if path is None or os.fspath(path) == "":
        shipped = importlib.resources.files("rfly_terrain") / "data" / "vehicle_classes.yaml"
        return parse_vehicle_classes(shipped.read_bytes(), "vehicle_classes.yaml")
    return parse_vehicle_classes(
        read_limited(path, "vehicle classes", MAX_FILE_BYTES), os.fspath(path)
    )


def parse_vehicle_classes(data: bytes, file: str) -> dict[str, VehicleClass]:
    """Return the classes of a file's content; `file` is its name in errors."""
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
    """Return the class of that name; "": the first one. Raises ConfigError that lists the names."""
    if not name:
        return next(iter(classes.values()))
    if name not in classes:
        raise ConfigError(f"vehicle class {name!r}: there are {', '.join(classes)}")
    return classes[name]


def _class(entry: Mapping[str, Any]) -> VehicleClass:
    """Return a class from its entry, which the schema allows."""
    drive = None
    fly = None
    if "drive" in entry:
        values = dict(entry["drive"])
        limits = {key: values.pop(key) for key in _LIMITS if key in values}
        drive = Driving(
            limits=TraversabilityLimits(**limits, vehicle_radius=float(entry["radius"])), **values
        )
    if "fly" in entry:
        fly = Flying(**entry["fly"])
    return VehicleClass(
        entry["name"],
        entry["kind"],
        float(entry["mass"]),
        float(entry["radius"]),
        drive,
        fly,
        Rolling(**entry["rolling"]) if "rolling" in entry else None,
    )
