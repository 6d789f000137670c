"""Parameters of a land-air vehicle: YAML files, checked against `data/schemas/vehicle_parameters.schema.json`."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rfly_amphibious.vehicle.key_changes import Change
from rfly_amphibious.vehicle.parameter_files import checked_document, load_schema, read_parameters, shipped_sets
from rfly_amphibious.vehicle.state_layout import WHEELS, state_size
from rfly_common.config.marked_yaml import Key
from rfly_common.config.schema_errors import key_path
from rfly_common.errors import ConfigError

GRAVITY = 9.80665
"""m/s²"""
AIR_DENSITY = 1.225
"""kg/m³ at sea level, for which the coefficients hold"""

Steered = Literal["front", "rear", "all", "none"]
Triple = tuple[float, float, float]


@dataclasses.dataclass(frozen=True)
class VehicleParameters:
    """What a vehicle is made of, SI units; the sign conventions of `state_layout`.

    Immutable: `replace(track=1.7)` gives a changed copy. Raises ConfigError for what cannot be a vehicle.
    """

    name: str
    mass_body: float
    mass_rotor_frame: float
    mass_unsprung: float
    """one wheel with hub, motor and brake, kg"""
    inertia: tuple[float, float, float, float, float, float]
    """xx, yy, zz, xy, xz, yz of body and rotor frame about their common centre of mass, kg m²"""
    front_axle: float
    """from the sprung centre of mass forward, m"""
    rear_axle: float
    """from it back, m"""
    track: float
    origin_height: float
    """of the sprung centre of mass above level ground, m"""
    steered: Steered
    max_steering: float
    max_steering_rate: float
    steering_lag: float
    driven: tuple[str, ...]
    max_drive_torque: float
    """of one wheel, N m"""
    max_drive_power: float
    """of all driven wheels together, W"""
    drive_lag: float
    max_brake_torque: float
    wheel_radius: float
    wheel_inertia: float
    tyre_stiffness: float
    tyre_damping: float
    nominal_load: float
    friction_x: float
    friction_y: float
    friction_load_loss: float
    slip_stiffness: float
    cornering_stiffness_per_rad: float
    cornering_load_ratio: float
    cornering_factor_front: float
    cornering_factor_rear: float
    shape_x: float
    curvature_x: float
    shape_y: float
    curvature_y: float
    relaxation_x: float
    relaxation_y: float
    low_speed: float
    low_speed_damping: float
    max_slip_deflection: float
    rolling_resistance: float
    rolling_speed: float
    front_spring: float
    rear_spring: float
    front_anti_roll: float
    rear_anti_roll: float
    bump_damping: float
    rebound_damping: float
    bump_stop: float
    rebound_stop: float
    bump_stop_stiffness: float
    rebound_stop_stiffness: float
    stop_damping: float
    rotor_azimuth: tuple[float, ...]
    """rad, from x, counter-clockwise seen from above"""
    rotor_arm: tuple[float, ...]
    """from the total centre of mass, m"""
    rotor_spin: tuple[int, ...]
    """1 counter-clockwise seen from above, -1 clockwise"""
    rotor_height: float
    """above the sprung centre of mass, m"""
    rotor_radius: float
    thrust_coefficient: float
    """c_T, N s²/rad²"""
    figure_of_merit: float
    zero_thrust_advance_ratio: float
    rotor_drag_coefficient: float
    """c_H, N s²/(m rad)"""
    rotor_inertia: float
    max_rotor_speed: float
    max_rotor_torque: float
    rotor_lag: float
    linear_drag: Triple
    drag_area: Triple
    rotational_drag: Triple
    body_box: Triple
    body_stiffness: float
    body_damping: float
    body_friction: float
    attitude_frequency: float
    attitude_damping: float
    position_gain: float
    velocity_gain: float
    max_tilt: float

    def __post_init__(self) -> None:
        for key, text in _contradictions(self):
            raise ConfigError(f"{self.name}: {key}: {text}")

    @classmethod
    def load(cls, name_or_path: str | os.PathLike[str], changes: Sequence[Change] = ()) -> VehicleParameters:
        """A shipped set (`shipped_parameter_sets()`) or a YAML file; `changes`: values by key path (`key_changes`).

        Raises ConfigError that names file, line, key and what is allowed.
        """
        return cls.parse(*read_parameters("vehicle parameters", "vehicles", name_or_path), changes)

    @classmethod
    def parse(cls, data: bytes, file: str, name: str = "", changes: Sequence[Change] = ()) -> VehicleParameters:
        """The parameters of a file's content; `file` is what errors call it."""
        document = checked_document(data, file, "vehicle_parameters", "version, mass, inertia", changes)
        values = _fields(document.value)
        candidate = object.__new__(cls)  # to be looked at before the checks, which know fields, not lines
        for key, value in {"name": name or file, **values}.items():
            object.__setattr__(candidate, key, value)
        for key, text in _contradictions(candidate):
            path = _SOURCES[key]
            raise ConfigError(f"{file}:{document.line(path)}: {key_path(path)}: {text}")
        return cls(name=name or file, **values)

    def replace(self, **changes: Any) -> VehicleParameters:
        """A copy with other values."""
        return dataclasses.replace(self, **changes)

    @property
    def rotors(self) -> int:
        """Their number."""
        return len(self.rotor_azimuth)

    @property
    def state_size(self) -> int:
        """Numbers in the flat state."""
        return state_size(self.rotors)

    @property
    def mass_sprung(self) -> float:
        """Body and rotor frame, kg."""
        return self.mass_body + self.mass_rotor_frame

    @property
    def mass(self) -> float:
        """Of the whole vehicle, kg."""
        return self.mass_sprung + 4.0 * self.mass_unsprung

    @property
    def wheelbase(self) -> float:
        """m."""
        return self.front_axle + self.rear_axle

    @property
    def center_x(self) -> float:
        """The total centre of mass, forward of the sprung one, m. Eq. 4.1."""
        return 2.0 * self.mass_unsprung * (self.front_axle - self.rear_axle) / self.mass

    @property
    def spring_load(self) -> NDArray[np.float64]:
        """(4,) static load F₀ of each spring, N. Eq. 6.1."""
        front = self.mass_sprung * GRAVITY * self.rear_axle / (2.0 * self.wheelbase)
        rear = self.mass_sprung * GRAVITY * self.front_axle / (2.0 * self.wheelbase)
        return np.array((front, front, rear, rear))

    @property
    def static_load(self) -> NDArray[np.float64]:
        """(4,) load of each wheel at rest on level ground, N."""
        return self.spring_load + self.mass_unsprung * GRAVITY

    @property
    def hub_position(self) -> NDArray[np.float64]:
        """(4, 3) hubs at rest on level ground, from the sprung centre of mass, body axes, m. Eq. 6.1."""
        x = np.array((self.front_axle, self.front_axle, -self.rear_axle, -self.rear_axle))
        y = np.array((1.0, -1.0, 1.0, -1.0)) * self.track / 2.0
        z = -(self.origin_height - self.wheel_radius + self.static_load / self.tyre_stiffness)
        return np.stack([x, y, z], axis=-1)

    @property
    def rolling_radius(self) -> NDArray[np.float64]:
        """(4,) R_e of each wheel at rest, m."""
        return self.wheel_radius - self.static_load / self.tyre_stiffness / 3.0

    @property
    def center_height(self) -> float:
        """The total centre of mass above level ground, at rest, m."""
        hubs = self.origin_height + self.hub_position[:, 2]
        return float((self.mass_sprung * self.origin_height + self.mass_unsprung * hubs.sum()) / self.mass)

    @property
    def effective_mass(self) -> float:
        """With the wheels' spin, for driving straight on, kg."""
        return self.mass + float((self.wheel_inertia / self.rolling_radius**2).sum())

    @property
    def total_inertia(self) -> NDArray[np.float64]:
        """(3, 3) of the whole vehicle about its total centre of mass, wheels at rest on the ground, kg m²."""
        bodies = [(self.mass_sprung, np.zeros(3)), *((self.mass_unsprung, hub) for hub in self.hub_position)]
        center = np.sum([mass * at for mass, at in bodies], axis=0) / self.mass
        total = self.inertia_matrix
        for mass, at in bodies:
            r = at - center
            total = total + mass * (r @ r * np.eye(3) - np.outer(r, r))
        return total

    @property
    def inertia_matrix(self) -> NDArray[np.float64]:
        """(3, 3) of body and rotor frame, kg m²."""
        xx, yy, zz, xy, xz, yz = self.inertia
        return np.array(((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))

    @property
    def rotor_position(self) -> NDArray[np.float64]:
        """(rotors, 3) from the sprung centre of mass, body axes, m. Eq. 4.1."""
        azimuth, arm = np.array(self.rotor_azimuth), np.array(self.rotor_arm)
        height = np.full(self.rotors, self.rotor_height)
        return np.stack([self.center_x + arm * np.cos(azimuth), arm * np.sin(azimuth), height], axis=-1)

    @property
    def torque_coefficient(self) -> float:
        """c_Q, N m s²/rad². Eq. 4.8."""
        disc = math.pi * self.rotor_radius**2
        return float(self.thrust_coefficient**1.5 / (self.figure_of_merit * math.sqrt(2.0 * AIR_DENSITY * disc)))

    @property
    def inflow_coefficient(self) -> float:
        """c_V, N s²/(m rad). Eq. 4.4."""
        return math.pi * self.thrust_coefficient / (self.zero_thrust_advance_ratio * self.rotor_radius)

    @property
    def hover_speed(self) -> float:
        """Of each rotor where equal speeds carry the weight, out of ground effect, rad/s."""
        return math.sqrt(self.mass * GRAVITY / (self.rotors * self.thrust_coefficient))

    @property
    def hanging_strut(self) -> NDArray[np.float64]:
        """(4,) strut positions in hover: the wheels on the rebound stops, m. Eq. 6.3."""
        spring = np.array((self.front_spring, self.front_spring, self.rear_spring, self.rear_spring))
        pull = self.spring_load + self.mass_unsprung * GRAVITY
        at_stop = (self.rebound_stop_stiffness * self.rebound_stop - pull) / (spring + self.rebound_stop_stiffness)
        return np.where(-pull / spring < self.rebound_stop, at_stop, -pull / spring)

    @property
    def free_strut(self) -> NDArray[np.float64]:
        """(4,) strut positions in free fall: spring against rebound stop, or unloaded, m."""
        spring = np.array((self.front_spring, self.front_spring, self.rear_spring, self.rear_spring))
        at_stop = (self.rebound_stop_stiffness * self.rebound_stop - self.spring_load) / (
            spring + self.rebound_stop_stiffness
        )
        return np.where(-self.spring_load / spring < self.rebound_stop, at_stop, -self.spring_load / spring)


def shipped_parameter_sets() -> list[str]:
    """Names of the sets that come with the package."""
    return shipped_sets("vehicles")


_NUMBERS = {
    "mass": ("mass_body", "mass_rotor_frame", "mass_unsprung"),
    "chassis": ("front_axle", "rear_axle", "track", "origin_height"),
    "steering": (None, "max_steering", "max_steering_rate", "steering_lag"),
    "drive": (None, "max_drive_torque", "max_drive_power", "drive_lag"),
    "brake": ("max_brake_torque",),
    "tyre": (
        "wheel_radius",
        "wheel_inertia",
        "tyre_stiffness",
        "tyre_damping",
        "nominal_load",
        "friction_x",
        "friction_y",
        "friction_load_loss",
        "slip_stiffness",
        "cornering_stiffness_per_rad",
        "cornering_load_ratio",
        "cornering_factor_front",
        "cornering_factor_rear",
        "shape_x",
        "curvature_x",
        "shape_y",
        "curvature_y",
        "relaxation_x",
        "relaxation_y",
        "low_speed",
        "low_speed_damping",
        "max_slip_deflection",
        "rolling_resistance",
        "rolling_speed",
    ),
    "suspension": (
        "front_spring",
        "rear_spring",
        "front_anti_roll",
        "rear_anti_roll",
        "bump_damping",
        "rebound_damping",
        "bump_stop",
        "rebound_stop",
        "bump_stop_stiffness",
        "rebound_stop_stiffness",
        "stop_damping",
    ),
    "rotors": (
        None,
        None,
        "rotor_height",
        "rotor_radius",
        "thrust_coefficient",
        "figure_of_merit",
        "zero_thrust_advance_ratio",
        "rotor_drag_coefficient",
        "rotor_inertia",
        "max_rotor_speed",
        "max_rotor_torque",
        "rotor_lag",
    ),
    "air": ("linear_drag", "drag_area", "rotational_drag"),
    "body_contact": ("body_box", "body_stiffness", "body_damping", "body_friction"),
    "control": ("attitude_frequency", "attitude_damping", "position_gain", "velocity_gain", "max_tilt"),
}
"""fields in the order in which the schema lists the keys of each section; None where `_fields` takes a key apart"""

_SOURCES: dict[str, tuple[Key, ...]] = {
    field: (section, key)
    for section, fields in _NUMBERS.items()
    for field, key in zip(fields, load_schema("vehicle_parameters")["properties"][section]["required"], strict=True)
    if field is not None
}
_SOURCES |= {
    "inertia": ("inertia",),
    "rotor_azimuth": ("rotors", "layout"),
    "rotor_spin": ("rotors", "layout"),
    "steered": ("steering", "wheels"),
}
"""where the file holds a field"""


def _fields(document: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of VehicleParameters out of a document that fits the schema."""
    values: dict[str, Any] = {}
    for field, path in _SOURCES.items():
        section, *key = map(str, path)
        value = document[section][key[0]] if key else None
        if isinstance(value, list):
            values[field] = tuple(map(float, value)) if section != "rotors" else None
        elif isinstance(value, int | float):
            values[field] = float(value)
    inertia, rotors = document["inertia"], document["rotors"]
    values["inertia"] = tuple(float(inertia.get(f"{a}_kgm2", 0.0)) for a in ("xx", "yy", "zz", "xy", "xz", "yz"))
    values["rotor_azimuth"] = tuple(math.radians(rotor["azimuth_deg"]) for rotor in rotors["layout"])
    values["rotor_arm"] = tuple(float(rotor.get("arm_m", rotors["arm_m"])) for rotor in rotors["layout"])
    values["rotor_spin"] = tuple(int(rotor["spin"]) for rotor in rotors["layout"])
    values["steered"] = document["steering"]["wheels"]
    values["driven"] = tuple(wheel for wheel in WHEELS if wheel in document["drive"]["wheels"])
    return values


def _contradictions(p: VehicleParameters) -> list[tuple[str, str]]:
    """(field, what is wrong) of values that are each allowed but don't make a vehicle, or not one for steps of 1 ms.

    The rules for the step are those of Eq. 13.3.
    """
    if p.steered not in get_args(Steered):
        return [("steered", f"{p.steered!r}, allowed: {', '.join(get_args(Steered))}")]
    found = [
        (field.name, f"{value} is not finite")
        for field in dataclasses.fields(p)
        for value in np.atleast_1d(getattr(p, field.name))
        if not isinstance(value, str | np.str_) and not math.isfinite(float(value))
    ]
    if found:
        return found
    moments = np.linalg.eigvalsh(p.inertia_matrix)
    if moments[0] <= 0.0 or moments[2] > (moments[0] + moments[1]) * (1.0 + 1e-9):
        found.append(
            ("inertia", f"principal moments {moments.round(6).tolist()} kg m²: none may exceed the sum of the others")
        )
    if p.origin_height <= p.wheel_radius / 2.0:
        found.append(("origin_height", f"{p.origin_height} m, expected more than half the wheel radius"))
    if p.static_load.max() / p.tyre_stiffness > p.wheel_radius / 2.0:
        found.append(
            ("tyre_stiffness", "the static load presses the tyre in by more than half its radius; expected more")
        )
    if p.steered == "none" and p.max_steering != 0.0:
        found.append(("max_steering", f"{p.max_steering}, expected 0 where no wheel is steered"))
    lever = p.wheelbase if p.steered in ("front", "rear") else p.wheelbase / 2.0
    if p.steered != "none" and math.tan(p.max_steering) * p.track / 2.0 >= lever:
        found.append(("max_steering", "the turn's centre would lie between the wheels; expected less"))
    rotor_speed = 2.0 * p.low_speed_damping * p.wheel_radius**2 / p.wheel_inertia
    rules = (
        ("tyre_stiffness", (p.tyre_stiffness + max(p.front_spring, p.rear_spring) + p.bump_stop_stiffness), 400.0**2),
        ("tyre_damping", p.tyre_damping, 1000.0),
        ("stop_damping", p.stop_damping, 1000.0),
    )
    for key, value, limit in rules:
        if value / p.mass_unsprung > limit:
            found.append(
                (
                    key,
                    f"too stiff for the unsprung mass at a step of 1 ms: at most {limit * p.mass_unsprung:.4g} in all",
                )
            )
    if rotor_speed > 1000.0:
        found.append(("low_speed_damping", "too stiff for the wheel's inertia at a step of 1 ms"))
    rolling = p.rolling_resistance * p.nominal_load * p.wheel_radius**2 / (p.rolling_speed * p.wheel_inertia)
    if rolling > 1000.0:
        found.append(("rolling_speed", "too small for the wheel's inertia at a step of 1 ms; expected more"))
    found += [
        (key, f"{getattr(p, key)} s is too quick for a step of 1 ms; expected 0.002 at least")
        for key in ("rotor_lag", "steering_lag", "drive_lag")
        if getattr(p, key) < 0.002
    ]
    mixer = np.array([np.ones(p.rotors), p.rotor_position[:, 1], -p.rotor_position[:, 0] + p.center_x, p.rotor_spin])
    scale = np.array((1.0, *[max(p.rotor_arm)] * 2, 1.0))
    if np.linalg.matrix_rank(mixer / scale[:, None], tol=1e-6) < min(4, p.rotors):
        found.append(("rotor_azimuth", "this layout cannot command roll, pitch and yaw apart from each other"))
    return found
