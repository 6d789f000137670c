# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of a land-air vehicle, each declared once, and the YAML files that hold them."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, get_args

import numpy as np

from rfly_amphibious.vehicle.parameter_checks import Steered, contradictions
from rfly_amphibious.vehicle.state_layout import MAX_ROTORS, OUTER_WHEELS, WHEELS, state_size
from rfly_common.arrays import Floats, Triple
from rfly_common.config.declared import (
    bounded,
    choice,
    declarations,
    declared,
    file_schema,
    number,
    triple,
    values_of,
)
from rfly_common.config.documents import shipped_names
from rfly_common.config.parameter_files import Change, checked_document, read_parameters
from rfly_common.errors import ConfigError
from rfly_common.physics import AIR_DENSITY, GRAVITY

_INERTIA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["xx_kgm2", "yy_kgm2", "zz_kgm2"],
    "properties": {
        "xx_kgm2": bounded("of body and rotor frame about their common centre of mass", above=0.0),
        "yy_kgm2": bounded("about y, left", above=0.0),
        "zz_kgm2": bounded("about z, up", above=0.0),
        **{
            f"{axes}_kgm2": bounded("element of the inertia matrix off its diagonal", at_most=None)
            for axes in ("xy", "xz", "yz")
        },
    },
}
_DRIVEN = {
    "type": "array",
    "description": "names of the driven wheels",
    "items": {"type": "string", "enum": list(WHEELS)},
    "uniqueItems": True,
}
_ARM = bounded("distance of a rotor's axis from the total centre of mass", above=0.0)
_LAYOUT = {
    "type": "array",
    "description": "rotors in the order of their commands",
    "minItems": 3,
    "maxItems": MAX_ROTORS,
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["azimuth_deg", "spin"],
        "properties": {
            "azimuth_deg": bounded(
                "from x, counter-clockwise seen from above", at_least=-360.0, at_most=360.0
            ),
            "spin": {
                "type": "integer",
                "description": "1 counter-clockwise seen from above",
                "enum": [-1, 1],
            },
            "arm_m": bounded("instead of the common one", above=0.0),
        },
    },
}


def _inertia(section: Mapping[str, Any], _document: Any) -> tuple[float, ...]:
    return tuple(
        float(section.get(f"{axes}_kgm2", 0.0)) for axes in ("xx", "yy", "zz", "xy", "xz", "yz")
    )


def _rotor_azimuth(layout: Sequence[Mapping[str, Any]], _document: Any) -> tuple[float, ...]:
    return tuple(math.radians(rotor["azimuth_deg"]) for rotor in layout)


def _rotor_arm(common: float, document: Mapping[str, Any]) -> tuple[float, ...]:
    return tuple(float(rotor.get("arm_m", common)) for rotor in document["rotors"]["layout"])


def _maybe(path: str, meaning: str, **bounds: Any) -> Any:
    """Return a dataclass field for an optional number, None without it; bounds as of `number`."""

    def read(value: Any, _document: Any) -> float | None:
        return None if value is None else float(value)

    return declared(path, bounded(meaning, **bounds), read, required=False, default=None)


def _rotor_spin(layout: Sequence[Mapping[str, Any]], _document: Any) -> tuple[int, ...]:
    return tuple(int(rotor["spin"]) for rotor in layout)


@dataclasses.dataclass(frozen=True)
class VehicleParameters:
    """Parameters of a vehicle, SI units, with the sign conventions of `state_layout`.

    A field declares its key in the file (whose name ends with the unit), its meaning and its range.

    The class is immutable: `replace(track=1.7)` returns a changed copy. Raise ConfigError for
    values that can't be a vehicle.
    """

    name: str
    """Name of the set or file."""
    mass_body: float = number("mass.body_kg", "car body", above=0.0)
    mass_rotor_frame: float = number(
        "mass.rotor_frame_kg", "arms, rotors and their motors", above=0.0
    )
    mass_unsprung: float = number(
        "mass.unsprung_kg", "one wheel with hub, motor and brake", above=0.0
    )
    inertia: tuple[float, float, float, float, float, float] = declared(
        "inertia", _INERTIA, _inertia
    )
    """Inertia of body and rotor frame about their common centre of mass: xx, yy, zz, xy, xz, yz, kg
    m².
    """
    front_axle: float = number(
        "chassis.front_axle_m",
        "from the sprung centre of mass forward to the front axle",
        above=0.0,
    )
    rear_axle: float = number(
        "chassis.rear_axle_m", "from the sprung centre of mass back to the rear axle", above=0.0
    )
    track: float = number("chassis.track_m", "between the wheels of an axle", above=0.0)
    origin_height: float = number(
        "chassis.origin_height_m",
        "height of the sprung centre of mass above level ground",
        above=0.0,
    )
    steered: Steered = choice("steering.wheels", "none: skid-steer", get_args(Steered))
    max_steering: float = number(
        "steering.max_angle_rad", "of the virtual wheel in the middle", at_least=0.0, at_most=1.2
    )
    max_steering_rate: float = number("steering.max_rate_radps", "of the virtual wheel", above=0.0)
    steering_lag: float = number("steering.lag_s", "first-order lag", above=0.0, at_most=10.0)
    driven: tuple[str, ...] = declared(
        "drive.wheels", _DRIVEN, lambda value, _: tuple(w for w in WHEELS if w in value)
    )
    max_drive_torque: float = number("drive.max_torque_nm", "of one wheel", at_least=0.0)
    max_drive_power: float = number("drive.max_power_w", "of all wheels together", at_least=0.0)
    drive_lag: float = number("drive.lag_s", "first-order lag", above=0.0, at_most=10.0)
    max_brake_torque: float = number("brake.max_torque_nm", "of one wheel", at_least=0.0)
    wheel_radius: float = number("tyre.radius_m", "unloaded", above=0.0)
    wheel_inertia: float = number(
        "tyre.wheel_inertia_kgm2", "wheel and motor bell about the axle", above=0.0
    )
    tyre_stiffness: float = number("tyre.stiffness_npm", "radial", above=0.0)
    tyre_damping: float = number("tyre.damping_nspm", "radial", at_least=0.0)
    nominal_load: float = number("tyre.nominal_load_n", "F_z0", above=0.0)
    friction_x: float = number("tyre.friction_x", "at the nominal load", above=0.0, at_most=5.0)
    friction_y: float = number("tyre.friction_y", "at the nominal load", above=0.0, at_most=5.0)
    friction_load_loss: float = number(
        "tyre.friction_load_loss",
        "friction lost for each nominal load more",
        at_least=0.0,
        at_most=2.0,
    )
    slip_stiffness: float = number(
        "tyre.slip_stiffness", "longitudinal, N for a unit of slip and a N of load", above=0.0
    )
    cornering_stiffness_per_rad: float = number(
        "tyre.cornering_stiffness_per_rad", "p_K1", above=0.0
    )
    cornering_load_ratio: float = number(
        "tyre.cornering_load_ratio",
        "p_K2: load of the largest cornering stiffness / nominal load",
        above=0.0,
        at_most=100.0,
    )
    cornering_factor_front: float = number(
        "tyre.cornering_factor_front",
        "lambda_K: factor for the compliance of the steering",
        above=0.0,
        at_most=2.0,
    )
    cornering_factor_rear: float = number(
        "tyre.cornering_factor_rear", "lambda_K", above=0.0, at_most=2.0
    )
    shape_x: float = number("tyre.shape_x", "C of the Magic Formula", at_least=1.01, at_most=1.99)
    curvature_x: float = number(
        "tyre.curvature_x", "E of the Magic Formula", at_least=-10.0, at_most=0.99
    )
    shape_y: float = number("tyre.shape_y", "C", at_least=1.01, at_most=1.99)
    curvature_y: float = number("tyre.curvature_y", "E", at_least=-10.0, at_most=0.99)
    relaxation_x: float = number("tyre.relaxation_x_m", "relaxation length", above=0.0)
    relaxation_y: float = number("tyre.relaxation_y_m", "relaxation length", above=0.0)
    low_speed: float = number(
        "tyre.low_speed_mps", "speed above which low-speed damping ends", above=0.0, at_most=10.0
    )
    low_speed_damping: float = number(
        "tyre.low_speed_damping_nspm", "k_V0, at the nominal load", at_least=0.0
    )
    max_slip_deflection: float = number(
        "tyre.max_slip_deflection",
        "rho_hi: bound of the tyre's deflection as dimensionless slip",
        above=0.0,
        at_most=1000.0,
    )
    rolling_resistance: float = number(
        "tyre.rolling_resistance", "force / load", at_least=0.0, at_most=1.0
    )
    rolling_speed: float = number(
        "tyre.rolling_speed_mps",
        "speed from which it has its full value, if nothing else turns the wheel",
        above=0.0,
        at_most=10.0,
    )
    front_spring: float = number("suspension.front_stiffness_npm", "wheel rate", above=0.0)
    rear_spring: float = number("suspension.rear_stiffness_npm", "wheel rate", above=0.0)
    front_anti_roll: float = number(
        "suspension.front_anti_roll_npm", "per metre of left-right difference", at_least=0.0
    )
    rear_anti_roll: float = number(
        "suspension.rear_anti_roll_npm", "per metre of left-right difference", at_least=0.0
    )
    bump_damping: float = number("suspension.bump_damping_nspm", "compressing", at_least=0.0)
    rebound_damping: float = number("suspension.rebound_damping_nspm", "extending", at_least=0.0)
    bump_stop: float = number(
        "suspension.bump_stop_m",
        "travel from the static place to the bump stop",
        above=0.0,
        at_most=10.0,
    )
    rebound_stop: float = number(
        "suspension.rebound_stop_m",
        "travel from the static place to the rebound stop, negative",
        at_least=-10.0,
        below=0.0,
    )
    bump_stop_stiffness: float = number(
        "suspension.bump_stop_stiffness_npm", "in addition to the spring", at_least=0.0
    )
    rebound_stop_stiffness: float = number(
        "suspension.rebound_stop_stiffness_npm", "in addition to the spring", at_least=0.0
    )
    stop_damping: float = number("suspension.stop_damping_nspm", "of both stops", at_least=0.0)
    rotor_azimuth: tuple[float, ...] = declared("rotors.layout", _LAYOUT, _rotor_azimuth)
    """Azimuths of the rotors from x, counter-clockwise seen from above, rad."""
    rotor_arm: tuple[float, ...] = declared("rotors.arm_m", _ARM, _rotor_arm)
    """Distances of the rotors' axes from the total centre of mass, m."""
    rotor_spin: tuple[int, ...] = declared("rotors.layout", None, _rotor_spin)
    """Senses of rotation: 1 counter-clockwise seen from above, -1 clockwise."""
    rotor_height: float = number(
        "rotors.height_m",
        "of the rotor plane above the sprung centre of mass",
        at_least=-100.0,
        at_most=100.0,
    )
    rotor_radius: float = number("rotors.radius_m", "of a rotor", above=0.0)
    thrust_coefficient: float = number(
        "rotors.thrust_coefficient_ns2prad2", "thrust / speed squared", above=0.0
    )
    figure_of_merit: float = number("rotors.figure_of_merit", "hover", above=0.0, at_most=1.0)
    zero_thrust_advance_ratio: float = number(
        "rotors.zero_thrust_advance_ratio", "J0 = V / (n D)", above=0.0, at_most=10.0
    )
    rotor_drag_coefficient: float = number(
        "rotors.drag_coefficient_ns2pmrad", "c_H: in-plane drag / (speed x air speed)", at_least=0.0
    )
    rotor_inertia: float = number("rotors.inertia_kgm2", "of one rotor with its motor", above=0.0)
    max_rotor_speed: float = number("rotors.max_speed_radps", "of the speed command", above=0.0)
    max_rotor_torque: float = number("rotors.max_torque_nm", "of the torque command", above=0.0)
    rotor_lag: float = number(
        "rotors.lag_s", "first-order lag of the speed", above=0.0, at_most=10.0
    )
    linear_drag: Triple = triple("air.linear_drag_nspm", "K1..K3", "per body axis", at_least=0.0)
    drag_area: Triple = triple("air.drag_area_m2", "C_d A", "per body axis", at_least=0.0)
    rotational_drag: Triple = triple(
        "air.rotational_drag_nms", "K4..K6", "per body axis", at_least=0.0
    )
    body_box: Triple = triple(
        "body_contact.box_m",
        "box about the sprung centre of mass whose corners touch the ground",
        "length, width, height",
        above=0.0,
    )
    body_stiffness: float = number("body_contact.stiffness_npm", "of each point", above=0.0)
    body_damping: float = number("body_contact.damping_nspm", "of each point", at_least=0.0)
    body_friction: float = number(
        "body_contact.friction", "of each point", at_least=0.0, at_most=5.0
    )
    attitude_frequency: float = number(
        "control.attitude_frequency_radps", "of roll and pitch", above=0.0
    )
    attitude_damping: float = number("control.attitude_damping", "ratio", above=0.0, at_most=5.0)
    position_gain: float = number("control.position_gain_1ps", "1/s", above=0.0)
    velocity_gain: float = number("control.velocity_gain_1ps", "1/s", above=0.0)
    max_tilt: float = number("control.max_tilt_rad", "rad", above=0.0, at_most=1.4)
    max_impact: float = number(
        "body_contact.max_impact_g",
        "specific force on the body while it touches something, above which it breaks, g",
        default=60.0,
        optional=True,
        above=0.0,
    )
    max_tyre_compression: float = number(
        "tyre.max_compression",
        "compression above which a wheel breaks, relative to the radius",
        default=0.6,
        optional=True,
        above=0.0,
        at_most=1.0,
    )
    max_strike_speed: float = number(
        "rotors.max_strike_speed",
        "speed above which a rotor breaks when it strikes something, relative to the largest speed",
        default=0.2,
        optional=True,
        at_least=0.0,
        at_most=1.0,
    )
    vortex_ring: float = number(
        "rotors.vortex_ring",
        "share of the vortex-ring state in steep descents: 0 none, 1 all",
        default=0.0,
        optional=True,
        at_least=0.0,
        at_most=1.0,
    )
    battery_cells: float = number(
        "battery.cells", "in series", default=0.0, optional=True, at_least=0.0, at_most=1000.0
    )
    battery_capacity: float = number(
        "battery.capacity_ah",
        "charge of the full battery; 0: there is none, and power never fails",
        default=0.0,
        optional=True,
        at_least=0.0,
        at_most=1e5,
    )
    battery_resistance: float = number(
        "battery.resistance_ohm",
        "of all cells",
        default=0.0,
        optional=True,
        at_least=0.0,
        at_most=100.0,
    )
    battery_charge_rate: float = number(
        "battery.charge_rate_1ph",
        "largest charging current over capacity",
        default=1.0,
        optional=True,
        at_least=0.0,
        at_most=100.0,
    )
    battery_reserve: float = number(
        "battery.reserve",
        "charge at which a flight lands and none begins",
        default=0.15,
        optional=True,
        at_least=0.0,
        at_most=0.9,
    )
    rotor_efficiency: float = number(
        "battery.rotor_efficiency",
        "shaft power of the rotors over power from the battery, with controllers",
        default=0.85,
        optional=True,
        above=0.0,
        at_most=1.0,
    )
    drive_efficiency: float = number(
        "battery.drive_efficiency",
        "power of the wheels' motors over power from the battery, with controllers",
        default=0.85,
        optional=True,
        above=0.0,
        at_most=1.0,
    )
    regeneration: float = number(
        "battery.regeneration",
        "power into the battery over power that wheels give while motors brake",
        default=0.6,
        optional=True,
        at_least=0.0,
        at_most=1.0,
    )
    avionics_power: float = number(
        "battery.avionics_w",
        "power of everything but motors",
        default=0.0,
        optional=True,
        at_least=0.0,
        at_most=1e5,
    )
    middle_axle: float | None = _maybe(
        "chassis.middle_axle_m",
        "from the sprung centre of mass forward to a middle axle, negative behind it; "
        "without it there are four wheels",
        at_least=-100.0,
        at_most=100.0,
    )
    middle_spring: float | None = _maybe(
        "suspension.middle_stiffness_npm", "wheel rate; required with a middle axle", above=0.0
    )
    middle_anti_roll: float | None = _maybe(
        "suspension.middle_anti_roll_npm",
        "per metre of left-right difference; without it 0",
        at_least=0.0,
    )
    cornering_factor_middle: float | None = _maybe(
        "tyre.cornering_factor_middle",
        "lambda_K of a middle axle; without it 1",
        above=0.0,
        at_most=2.0,
    )

    def __post_init__(self) -> None:
        for key, text in contradictions(self):
            raise ConfigError(f"{self.name}: {key}: {text}")

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON schema of the files."""
        return file_schema("Parameters of a land-air vehicle", cls)

    @classmethod
    def load(
        cls, name_or_path: str | os.PathLike[str], changes: Sequence[Change] = ()
    ) -> VehicleParameters:
        """Return the parameters of a shipped set (`shipped_parameter_sets()`) or a YAML file.

        `changes`: values by key path. Raise ConfigError that names file, line, key and allowed
        values.
        """
        return cls.parse(
            *read_parameters("vehicle parameters", "rfly_amphibious", "vehicles", name_or_path),
            changes,
        )

    @classmethod
    def parse(
        cls, data: bytes, file: str, name: str = "", changes: Sequence[Change] = ()
    ) -> VehicleParameters:
        """Return the parameters of a file's content; `file` is its name in errors."""
        document = checked_document(data, file, cls.schema(), "version, mass, inertia", changes)
        values = values_of(cls, document.value)

        # an unchecked candidate, because the checks know fields but not lines
        candidate = object.__new__(cls)
        for key, value in {"name": name or file, **values}.items():
            object.__setattr__(candidate, key, value)
        for key, text in contradictions(candidate):
            raise document.error(declarations(cls)[key].path, text)
        return cls(name=name or file, **values)

    def replace(self, **changes: Any) -> VehicleParameters:
        """Return a copy with other values."""
        return dataclasses.replace(self, **changes)

    @property
    def rotors(self) -> int:
        """Number of rotors."""
        return len(self.rotor_azimuth)

    @property
    def wheels(self) -> tuple[str, ...]:
        """Names of the wheels, in the order of all arrays."""
        return WHEELS[:OUTER_WHEELS] if self.middle_axle is None else WHEELS

    @property
    def state_size(self) -> int:
        """Number of numbers in the flat state."""
        return state_size(self.rotors, len(self.wheels))

    @property
    def axles(self) -> Floats:
        """Longitudinal places x of the front, the rear and the middle axle, (2 or 3,), m."""
        places = [self.front_axle, -self.rear_axle]
        if self.middle_axle is not None:
            places.append(self.middle_axle)
        return np.array(places)

    def of_wheels(self, front: float, rear: float, middle: Any) -> Floats:
        """Return the numbers of all wheels, (wheels,), from those of the axles."""
        numbers = [front, front, rear, rear]
        if self.middle_axle is not None:
            numbers += [middle, middle]
        return np.array(numbers, float)

    @cached_property
    def spring(self) -> Floats:
        """Stiffnesses of the springs, (wheels,), N/m."""
        return self.of_wheels(self.front_spring, self.rear_spring, self.middle_spring)

    @cached_property
    def anti_roll(self) -> Floats:
        """Stiffnesses of the anti-roll bars, (wheels,), N/m."""
        middle = self.middle_anti_roll or 0.0
        return self.of_wheels(self.front_anti_roll, self.rear_anti_roll, middle)

    @property
    def cornering_factor(self) -> Floats:
        """Factors λ_K of the cornering stiffness, (wheels,). Eq. 5.9."""
        middle = 1.0 if self.cornering_factor_middle is None else self.cornering_factor_middle
        return self.of_wheels(self.cornering_factor_front, self.cornering_factor_rear, middle)

    @cached_property
    def steering_sign(self) -> Floats:
        """Senses of steering ε, (wheels,). Eq. 5.1.

        1 turns with the virtual wheel, -1 against it.
        """
        front = 1.0 if self.steered in ("front", "all") else 0.0
        rear = -1.0 if self.steered in ("rear", "all") else 0.0
        return self.of_wheels(front, rear, 0.0)

    @property
    def is_driven(self) -> Floats:
        """Drive of each wheel, (wheels,): 1 with a motor, else 0."""
        return np.array([wheel in self.driven for wheel in self.wheels], float)

    @property
    def axle_stiffness(self) -> Floats:
        """Cornering stiffnesses of both wheels of an axle, N/rad, (axles,). Eq. 10.11.

        The loads are those at rest.
        """
        ratio = self.static_load[::2] / (self.cornering_load_ratio * self.nominal_load)
        of_load = 2.0 * ratio / (1.0 + ratio**2)  # sin(2 atan r) = 2 r / (1 + r²)
        one_wheel = self.cornering_factor[::2] * self.cornering_stiffness_per_rad
        stiffness: Floats = 2.0 * one_wheel * self.nominal_load * of_load
        return stiffness

    @cached_property
    def turn_x(self) -> float:
        """Longitudinal place x of the centre of a slow turn, m. Eq. 6.13.

        It is abreast of the axle that does not steer; of two such axles, abreast of the place where
        linear tyres balance. Where both ends steer, or none, it is abreast of the middle of the
        chassis.
        """
        front = self.front_axle
        rear = -self.rear_axle
        if self.steered == "front":
            steering = front
            fixed = rear
            fixed_axle = 1
        elif self.steered == "rear":
            steering = rear
            fixed = front
            fixed_axle = 0
        else:
            return 0.5 * (front + rear)
        if self.middle_axle is None:
            return fixed

        # moments about the steered axle, whose own force has none: Σ C_a (x_a - x_t)(x_a - x_s) = 0
        levers = np.array((fixed - steering, self.middle_axle - steering))
        weight = self.axle_stiffness[[fixed_axle, 2]] * levers
        return float(weight @ (fixed, self.middle_axle) / weight.sum())

    @cached_property
    def steering_lever(self) -> float:
        """Longitudinal distance ℓ of the steered wheels from the turn's centre, m. Eq. 5.1."""
        if self.steered == "none":
            return self.wheelbase
        if self.steered == "all":
            return self.wheelbase / 2.0
        steered = self.front_axle if self.steered == "front" else -self.rear_axle
        return abs(steered - self.turn_x)

    @property
    def mass_sprung(self) -> float:
        """Mass of body and rotor frame, kg."""
        return self.mass_body + self.mass_rotor_frame

    @cached_property
    def mass(self) -> float:
        """Mass of the whole vehicle, kg."""
        return self.mass_sprung + len(self.wheels) * self.mass_unsprung

    @property
    def wheelbase(self) -> float:
        """Distance of the front and the rear axle, m."""
        return self.front_axle + self.rear_axle

    @cached_property
    def center_x(self) -> float:
        """Place x of the total centre of mass, forward of the sprung one, m. Eq. 4.1."""
        return 2.0 * self.mass_unsprung * float(self.axles.sum()) / self.mass

    @cached_property
    def spring_load(self) -> Floats:
        """Static loads F₀ of the springs, (wheels,), N. Eq. 6.1; for three axles Eq. 6.12."""
        weight = self.mass_sprung * GRAVITY
        if self.middle_axle is None:
            front = weight * self.rear_axle / (2.0 * self.wheelbase)
            rear = weight * self.front_axle / (2.0 * self.wheelbase)
            return self.of_wheels(front, rear, None)

        # three axles: the body sinks and leans on its springs
        x = np.repeat(self.axles, 2)
        k = self.spring
        sink, lean = np.linalg.solve([[k.sum(), k @ x], [k @ x, k @ x**2]], (weight, 0.0))
        return k * (sink + lean * x)

    @cached_property
    def static_load(self) -> Floats:
        """Loads of the wheels at rest on level ground, (wheels,), N."""
        return self.spring_load + self.mass_unsprung * GRAVITY

    @cached_property
    def hub_position(self) -> Floats:
        """Hubs at rest on level ground, body axes, m, (wheels, 3). Eq. 6.1.

        They are measured from the centre of the sprung mass.
        """
        x = np.repeat(self.axles, 2)
        y = np.tile((1.0, -1.0), len(self.axles)) * self.track / 2.0
        z = -(self.origin_height - self.wheel_radius + self.static_load / self.tyre_stiffness)
        hubs = np.stack([x, y, z], axis=-1)
        hubs.flags.writeable = False
        return hubs

    @cached_property
    def rolling_radius(self) -> Floats:
        """Rolling radii R_e of the wheels at rest, (wheels,), m."""
        return self.wheel_radius - self.static_load / self.tyre_stiffness / 3.0

    @cached_property
    def center_height(self) -> float:
        """Height of the total centre of mass above level ground, at rest, m."""
        hubs = self.origin_height + self.hub_position[:, 2]
        moment = self.mass_sprung * self.origin_height + self.mass_unsprung * hubs.sum()
        return float(moment / self.mass)

    @cached_property
    def effective_mass(self) -> float:
        """Mass with the wheels' spin, for driving straight ahead, kg."""
        return self.mass + float((self.wheel_inertia / self.rolling_radius**2).sum())

    @property
    def total_inertia(self) -> Floats:
        """Inertia of the whole vehicle about its total centre of mass, (3, 3), kg m².

        Its wheels are at rest on the ground.
        """
        bodies = [(self.mass_sprung, np.zeros(3))]
        bodies += [(self.mass_unsprung, hub) for hub in self.hub_position]
        center = np.sum([mass * place for mass, place in bodies], axis=0) / self.mass

        # parallel axes
        total = self.inertia_matrix
        for mass, place in bodies:
            r = place - center
            total = total + mass * (r @ r * np.eye(3) - np.outer(r, r))
        return total

    @property
    def inertia_matrix(self) -> Floats:
        """Inertia of body and rotor frame, (3, 3), kg m²."""
        xx, yy, zz, xy, xz, yz = self.inertia
        return np.array(((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))

    @property
    def rotor_position(self) -> Floats:
        """Rotor hubs from the sprung centre of mass, (rotors, 3), body axes, m. Eq. 4.1."""
        azimuth = np.array(self.rotor_azimuth)
        arm = np.array(self.rotor_arm)
        height = np.full(self.rotors, self.rotor_height)
        x = self.center_x + arm * np.cos(azimuth)
        y = arm * np.sin(azimuth)
        return np.stack([x, y, height], axis=-1)

    @property
    def reach(self) -> float:
        """Distance of the vehicle's farthest part from the sprung centre of mass, m."""
        travel = max(self.bump_stop, -self.rebound_stop)
        wheels = np.linalg.norm(self.hub_position, axis=1) + self.wheel_radius + travel
        rotors = np.linalg.norm(self.rotor_position, axis=1) + self.rotor_radius
        return float(max(wheels.max(), rotors.max(), 0.5 * np.linalg.norm(self.body_box)))

    @cached_property
    def torque_coefficient(self) -> float:
        """Torque of a rotor over its speed squared, c_Q, N m s²/rad². Eq. 4.8."""
        disc = math.pi * self.rotor_radius**2
        power_loading = self.figure_of_merit * math.sqrt(2.0 * AIR_DENSITY * disc)
        return float(self.thrust_coefficient**1.5 / power_loading)

    @cached_property
    def inflow_coefficient(self) -> float:
        """Thrust lost to the inflow, c_V, N s²/(m rad). Eq. 4.4."""
        advance = self.zero_thrust_advance_ratio * self.rotor_radius
        return math.pi * self.thrust_coefficient / advance

    @cached_property
    def hover_speed(self) -> float:
        """Equal speed of all rotors that carries the weight out of ground effect, rad/s."""
        return math.sqrt(self.mass * GRAVITY / (self.rotors * self.thrust_coefficient))

    @cached_property
    def hanging_strut(self) -> Floats:
        """Strut positions in hover, (wheels,), m: the wheels on the rebound stops. Eq. 6.3."""
        return self._extended_strut(self.spring_load + self.mass_unsprung * GRAVITY)

    @property
    def free_strut(self) -> Floats:
        """Strut positions in free fall, (wheels,), m: springs on rebound stops, or unloaded."""
        return self._extended_strut(self.spring_load)

    def _extended_strut(self, pull: Floats) -> Floats:
        """Return the strut positions under loads that extend them, (wheels,), m."""
        spring = self.spring
        stop = self.rebound_stop_stiffness
        at_stop = (stop * self.rebound_stop - pull) / (spring + stop)
        free = -pull / spring
        return np.where(free < self.rebound_stop, at_stop, free)


def shipped_parameter_sets() -> list[str]:
    """Return the names of the sets that come with the package."""
    return shipped_names("rfly_amphibious", "vehicles")
