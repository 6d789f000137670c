"""Parameters of a land-air vehicle, each declared once, and the YAML files that hold them."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from rfly_amphibious.vehicle.parameter_files import (
    Change,
    checked_document,
    read_parameters,
    shipped_sets,
)
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
from rfly_common.errors import ConfigError
from rfly_common.physics import AIR_DENSITY, GRAVITY

Steered = Literal["front", "rear", "all", "none"]


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
    "description": "the driven ones",
    "items": {"type": "string", "enum": list(WHEELS)},
    "uniqueItems": True,
}
_ARM = bounded("from the total centre of mass to a rotor's axis", above=0.0)
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
    """A dataclass field for a number that need not be there, and then is None; bounds as of
    `number`.
    """

    def read(value: Any, _document: Any) -> float | None:
        return None if value is None else float(value)

    return declared(path, bounded(meaning, **bounds), read, required=False, default=None)


def _rotor_spin(layout: Sequence[Mapping[str, Any]], _document: Any) -> tuple[int, ...]:
    return tuple(int(rotor["spin"]) for rotor in layout)


@dataclasses.dataclass(frozen=True)
class VehicleParameters:
    """What a vehicle is made of, SI units; the sign conventions of `state_layout`.

    A field declares its key in the file (whose name ends with the unit), what it means and its
    range.

    Immutable: `replace(track=1.7)` gives a changed copy. Raises ConfigError for what cannot be a
    vehicle.
    """

    name: str
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
    """xx, yy, zz, xy, xz, yz of body and rotor frame about their common centre of mass, kg m²"""
    front_axle: float = number(
        "chassis.front_axle_m",
        "from the sprung centre of mass forward to the front axle",
        above=0.0,
    )
    rear_axle: float = number("chassis.rear_axle_m", "from it back to the rear axle", above=0.0)
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
        "lambda_K: what the compliance of the steering leaves",
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
        "tyre.rolling_speed_mps", "speed at which it is 76 % there", above=0.0, at_most=10.0
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
        "suspension.bump_stop_stiffness_npm", "beside the spring", at_least=0.0
    )
    rebound_stop_stiffness: float = number(
        "suspension.rebound_stop_stiffness_npm", "beside the spring", at_least=0.0
    )
    stop_damping: float = number("suspension.stop_damping_nspm", "of both stops", at_least=0.0)
    rotor_azimuth: tuple[float, ...] = declared("rotors.layout", _LAYOUT, _rotor_azimuth)
    """rad, from x, counter-clockwise seen from above"""
    rotor_arm: tuple[float, ...] = declared("rotors.arm_m", _ARM, _rotor_arm)
    """from the total centre of mass, m"""
    rotor_spin: tuple[int, ...] = declared("rotors.layout", None, _rotor_spin)
    """1 counter-clockwise seen from above, -1 clockwise"""
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
        "share of the radius: pressed in by more, a wheel breaks",
        default=0.6,
        optional=True,
        above=0.0,
        at_most=1.0,
    )
    max_strike_speed: float = number(
        "rotors.max_strike_speed",
        "share of the largest speed: a rotor that is faster breaks when it strikes something",
        default=0.2,
        optional=True,
        at_least=0.0,
        at_most=1.0,
    )
    vortex_ring: float = number(
        "rotors.vortex_ring",
        "how much of the vortex-ring state acts in steep descents: 0 none, 1 all",
        default=0.0,
        optional=True,
        at_least=0.0,
        at_most=1.0,
    )
    middle_axle: float | None = _maybe(
        "chassis.middle_axle_m",
        "from the sprung centre of mass forward to a middle axle, negative behind it; without it there are four wheels",
        at_least=-100.0,
        at_most=100.0,
    )
    middle_spring: float | None = _maybe(
        "suspension.middle_stiffness_npm", "wheel rate; a middle axle has to have it", above=0.0
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
        for key, text in _contradictions(self):
            raise ConfigError(f"{self.name}: {key}: {text}")

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """The JSON schema of the files."""
        return file_schema("Parameters of a land-air vehicle", cls)

    @classmethod
    def load(
        cls, name_or_path: str | os.PathLike[str], changes: Sequence[Change] = ()
    ) -> VehicleParameters:
        """A shipped set (`shipped_parameter_sets()`) or a YAML file; `changes`: values by key path.

        Raises ConfigError that names file, line, key and what is allowed.
        """
        return cls.parse(*read_parameters("vehicle parameters", "vehicles", name_or_path), changes)

    @classmethod
    def parse(
        cls, data: bytes, file: str, name: str = "", changes: Sequence[Change] = ()
    ) -> VehicleParameters:
        """The parameters of a file's content; `file` is what errors call it."""
        document = checked_document(data, file, cls.schema(), "version, mass, inertia", changes)
        values = values_of(cls, document.value)
        candidate = object.__new__(
            cls
        )  # to be looked at before the checks, which know fields, not lines
        for key, value in {"name": name or file, **values}.items():
            object.__setattr__(candidate, key, value)
        for key, text in _contradictions(candidate):
            raise document.error(_PATHS[key], text)
        return cls(name=name or file, **values)

    def replace(self, **changes: Any) -> VehicleParameters:
        """A copy with other values."""
        return dataclasses.replace(self, **changes)

    @property
    def rotors(self) -> int:
        """Their number."""
        return len(self.rotor_azimuth)

    @property
    def wheels(self) -> tuple[str, ...]:
        """Their names, in the order of all arrays."""
        return WHEELS[:OUTER_WHEELS] if self.middle_axle is None else WHEELS

    @property
    def state_size(self) -> int:
        """Numbers in the flat state."""
        return state_size(self.rotors, len(self.wheels))

    @property
    def axles(self) -> Floats:
        """(2 or 3,) x of the front, the rear and the middle axle, m."""
        outer = (self.front_axle, -self.rear_axle)
        return np.array(outer if self.middle_axle is None else (*outer, self.middle_axle))

    def of_wheels(self, front: float, rear: float, middle: float | None) -> Floats:
        """(wheels,) of numbers that all wheels of an axle have."""
        outer = (front, front, rear, rear)
        return np.array(outer if self.middle_axle is None else (*outer, middle, middle), float)

    @property
    def spring(self) -> Floats:
        """(wheels,) N/m."""
        return self.of_wheels(self.front_spring, self.rear_spring, self.middle_spring)

    @property
    def anti_roll(self) -> Floats:
        """(wheels,) N/m."""
        return self.of_wheels(
            self.front_anti_roll, self.rear_anti_roll, self.middle_anti_roll or 0.0
        )

    @property
    def cornering_factor(self) -> Floats:
        """(wheels,) λ_K. Eq. 5.9."""
        middle = 1.0 if self.cornering_factor_middle is None else self.cornering_factor_middle
        return self.of_wheels(self.cornering_factor_front, self.cornering_factor_rear, middle)

    @property
    def steering_sign(self) -> Floats:
        """(wheels,) ε: 1 turns with the virtual wheel, -1 against it. Eq. 5.1."""
        signs = {"front": (1.0, 0.0), "rear": (0.0, -1.0), "all": (1.0, -1.0), "none": (0.0, 0.0)}[
            self.steered
        ]
        return self.of_wheels(*signs, 0.0)

    @property
    def is_driven(self) -> Floats:
        """(wheels,) 1 where a motor drives it, else 0."""
        return np.array([wheel in self.driven for wheel in self.wheels], float)

    @property
    def axle_stiffness(self) -> Floats:
        """(axles,) cornering stiffness of both wheels of an axle, under their loads at rest, N/rad.
        Eq. 10.11.
        """
        ratio = self.static_load[::2] / (self.cornering_load_ratio * self.nominal_load)
        stiffness: Floats = (  # sin(2 atan r) = 2 r / (1 + r²)
            2.0
            * self.cornering_factor[::2]
            * self.cornering_stiffness_per_rad
            * self.nominal_load
            * 2.0
            * ratio
            / (1.0 + ratio**2)
        )
        return stiffness

    @property
    def turn_x(self) -> float:
        """x of the place abreast of which a slow turn's centre lies, m: the axle that does not
        steer, of two such the place where linear tyres balance; the middle of the chassis where
        both ends steer or none. Eq. 6.13.
        """
        front = self.front_axle
        rear = -self.rear_axle
        if self.steered not in ("front", "rear"):
            return 0.5 * (front + rear)
        steering, fixed = (front, rear) if self.steered == "front" else (rear, front)
        if self.middle_axle is None:
            return fixed
        # moments about the steered axle, whose own force has none: Σ C_a (x_a - x_t)(x_a - x_s) = 0
        still = 1 if self.steered == "front" else 0
        weight = self.axle_stiffness[[still, 2]] * np.array(
            (fixed - steering, self.middle_axle - steering)
        )
        return float(weight @ (fixed, self.middle_axle) / weight.sum())

    @property
    def steering_lever(self) -> float:
        """ℓ of Eq. 5.1, m: how far the steered wheels are from the turn's centre, along the
        vehicle.
        """
        if self.steered in ("all", "none"):
            return self.wheelbase / (2.0 if self.steered == "all" else 1.0)
        return abs((-self.rear_axle if self.steered == "rear" else self.front_axle) - self.turn_x)

    @property
    def mass_sprung(self) -> float:
        """Body and rotor frame, kg."""
        return self.mass_body + self.mass_rotor_frame

    @property
    def mass(self) -> float:
        """Of the whole vehicle, kg."""
        return self.mass_sprung + len(self.wheels) * self.mass_unsprung

    @property
    def wheelbase(self) -> float:
        """m."""
        return self.front_axle + self.rear_axle

    @property
    def center_x(self) -> float:
        """The total centre of mass, forward of the sprung one, m. Eq. 4.1."""
        return 2.0 * self.mass_unsprung * float(self.axles.sum()) / self.mass

    @property
    def spring_load(self) -> Floats:
        """(wheels,) static load F₀ of each spring, N. Eq. 6.1; of three axles as in Eq. 6.12."""
        weight = self.mass_sprung * GRAVITY
        if self.middle_axle is None:
            front = weight * self.rear_axle / (2.0 * self.wheelbase)
            rear = weight * self.front_axle / (2.0 * self.wheelbase)
            return self.of_wheels(front, rear, None)
        x = np.repeat(self.axles, 2)
        k = self.spring
        down, lean = np.linalg.solve([[k.sum(), k @ x], [k @ x, k @ x**2]], (weight, 0.0))
        return k * (down + lean * x)

    @property
    def static_load(self) -> Floats:
        """(wheels,) load of each wheel at rest on level ground, N."""
        return self.spring_load + self.mass_unsprung * GRAVITY

    @property
    def hub_position(self) -> Floats:
        """(wheels, 3) hubs at rest on level ground, from the sprung centre of mass, body axes, m.
        Eq. 6.1.
        """
        x = np.repeat(self.axles, 2)
        y = np.tile((1.0, -1.0), len(self.axles)) * self.track / 2.0
        z = -(self.origin_height - self.wheel_radius + self.static_load / self.tyre_stiffness)
        return np.stack([x, y, z], axis=-1)

    @property
    def rolling_radius(self) -> Floats:
        """(wheels,) R_e of each wheel at rest, m."""
        return self.wheel_radius - self.static_load / self.tyre_stiffness / 3.0

    @property
    def center_height(self) -> float:
        """The total centre of mass above level ground, at rest, m."""
        hubs = self.origin_height + self.hub_position[:, 2]
        return float(
            (self.mass_sprung * self.origin_height + self.mass_unsprung * hubs.sum()) / self.mass
        )

    @property
    def effective_mass(self) -> float:
        """With the wheels' spin, for driving straight on, kg."""
        return self.mass + float((self.wheel_inertia / self.rolling_radius**2).sum())

    @property
    def total_inertia(self) -> Floats:
        """(3, 3) of the whole vehicle about its total centre of mass, wheels at rest on the ground,
        kg m².
        """
        bodies = [
            (self.mass_sprung, np.zeros(3)),
            *((self.mass_unsprung, hub) for hub in self.hub_position),
        ]
        center = np.sum([mass * at for mass, at in bodies], axis=0) / self.mass
        total = self.inertia_matrix
        for mass, at in bodies:
            r = at - center
            total = total + mass * (r @ r * np.eye(3) - np.outer(r, r))
        return total

    @property
    def inertia_matrix(self) -> Floats:
        """(3, 3) of body and rotor frame, kg m²."""
        xx, yy, zz, xy, xz, yz = self.inertia
        return np.array(((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))

    @property
    def rotor_position(self) -> Floats:
        """(rotors, 3) from the sprung centre of mass, body axes, m. Eq. 4.1."""
        azimuth = np.array(self.rotor_azimuth)
        arm = np.array(self.rotor_arm)
        height = np.full(self.rotors, self.rotor_height)
        return np.stack(
            [self.center_x + arm * np.cos(azimuth), arm * np.sin(azimuth), height], axis=-1
        )

    @property
    def reach(self) -> float:
        """m from the sprung centre of mass to the farthest that belongs to the vehicle."""
        hubs = (
            np.linalg.norm(self.hub_position, axis=1)
            + self.wheel_radius
            + max(self.bump_stop, -self.rebound_stop)
        )
        rotors = np.linalg.norm(self.rotor_position, axis=1) + self.rotor_radius
        return float(max(hubs.max(), rotors.max(), 0.5 * np.linalg.norm(self.body_box)))

    @property
    def torque_coefficient(self) -> float:
        """c_Q, N m s²/rad². Eq. 4.8."""
        disc = math.pi * self.rotor_radius**2
        return float(
            self.thrust_coefficient**1.5
            / (self.figure_of_merit * math.sqrt(2.0 * AIR_DENSITY * disc))
        )

    @property
    def inflow_coefficient(self) -> float:
        """c_V, N s²/(m rad). Eq. 4.4."""
        return (
            math.pi * self.thrust_coefficient / (self.zero_thrust_advance_ratio * self.rotor_radius)
        )

    @property
    def hover_speed(self) -> float:
        """Of each rotor where equal speeds carry the weight, out of ground effect, rad/s."""
        return math.sqrt(self.mass * GRAVITY / (self.rotors * self.thrust_coefficient))

    @property
    def hanging_strut(self) -> Floats:
        """(wheels,) strut positions in hover: the wheels on the rebound stops, m. Eq. 6.3."""
        spring = self.spring
        pull = self.spring_load + self.mass_unsprung * GRAVITY
        at_stop = (self.rebound_stop_stiffness * self.rebound_stop - pull) / (
            spring + self.rebound_stop_stiffness
        )
        return np.where(-pull / spring < self.rebound_stop, at_stop, -pull / spring)

    @property
    def free_strut(self) -> Floats:
        """(wheels,) strut positions in free fall: spring against rebound stop, or unloaded, m."""
        spring = self.spring
        at_stop = (self.rebound_stop_stiffness * self.rebound_stop - self.spring_load) / (
            spring + self.rebound_stop_stiffness
        )
        return np.where(
            -self.spring_load / spring < self.rebound_stop, at_stop, -self.spring_load / spring
        )


def shipped_parameter_sets() -> list[str]:
    """Names of the sets that come with the package."""
    return shipped_sets("vehicles")


_PATHS = {name: declaration.path for name, declaration in declarations(VehicleParameters).items()}


def _middle_axle(p: VehicleParameters) -> list[tuple[str, str]]:
    """(field, what is wrong) of a middle axle, or of what only one has."""
    if p.middle_axle is None:
        ours = [_key(name) for name in _MIDDLE if getattr(p, name) is not None]
        there = [wheel for wheel in p.driven if wheel not in p.wheels]
        found = [("middle_axle", f"missing, but there is {', '.join(ours)}")] if ours else []
        if there:
            found.append(
                (
                    "driven",
                    f"{', '.join(there)}: there is no middle axle; expected some of {', '.join(p.wheels)}",
                )
            )
        return found
    if p.middle_spring is None:
        return [("middle_axle", f"{p.middle_axle} m, but there is no {_key('middle_spring')}")]
    if not -p.rear_axle < p.middle_axle < p.front_axle:
        return [
            (
                "middle_axle",
                f"{p.middle_axle} m, expected between the others, {-p.rear_axle} … {p.front_axle} m",
            )
        ]
    if p.spring_load.min() <= 0.0:
        loads = ", ".join(f"{load:.4g}" for load in p.spring_load[::2])
        return [
            (
                "middle_spring",
                f"the springs of front, rear and middle axle would carry {loads} N: none may pull; "
                "expected an axle elsewhere, or another stiffness",
            )
        ]
    return []


_MIDDLE = ("middle_spring", "middle_anti_roll", "cornering_factor_middle")


def _key(field: str) -> str:
    return ".".join(_PATHS[field])


def _contradictions(p: VehicleParameters) -> list[tuple[str, str]]:
    """(field, what is wrong) of values that are each allowed but don't make a vehicle, or not one
    for steps of 1 ms.

    The rules for the step are those of Eq. 13.3.
    """
    if p.steered not in get_args(Steered):
        return [("steered", f"{p.steered!r}, allowed: {', '.join(get_args(Steered))}")]
    found = [
        (field.name, f"{value} is not finite")
        for field in dataclasses.fields(p)
        for value in np.atleast_1d(getattr(p, field.name))
        if not isinstance(value, str | np.str_ | None) and not math.isfinite(float(value))
    ]
    found += _middle_axle(p)
    if found:
        return found
    moments = np.linalg.eigvalsh(p.inertia_matrix)
    if moments[0] <= 0.0 or moments[2] > (moments[0] + moments[1]) * (1.0 + 1e-9):
        found.append(
            (
                "inertia",
                f"principal moments {moments.round(6).tolist()} kg m²: none may exceed the sum of the others",
            )
        )
    if p.origin_height <= p.wheel_radius / 2.0:
        found.append(
            ("origin_height", f"{p.origin_height} m, expected more than half the wheel radius")
        )
    if p.static_load.max() / p.tyre_stiffness > p.wheel_radius / 2.0:
        found.append(
            (
                "tyre_stiffness",
                "the static load presses the tyre in by more than half its radius; expected more",
            )
        )
    if p.steered == "none" and p.max_steering != 0.0:
        found.append(("max_steering", f"{p.max_steering}, expected 0 where no wheel is steered"))
    if p.steered != "none" and math.tan(p.max_steering) * p.track / 2.0 >= p.steering_lever:
        found.append(
            ("max_steering", "the turn's centre would lie between the wheels; expected less")
        )
    rotor_speed = 2.0 * p.low_speed_damping * p.wheel_radius**2 / p.wheel_inertia
    rules = (
        ("tyre_stiffness", (p.tyre_stiffness + p.spring.max() + p.bump_stop_stiffness), 400.0**2),
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
    rolling = (
        p.rolling_resistance
        * p.nominal_load
        * p.wheel_radius**2
        / (p.rolling_speed * p.wheel_inertia)
    )
    if rolling > 1000.0:
        found.append(
            ("rolling_speed", "too small for the wheel's inertia at a step of 1 ms; expected more")
        )
    found += [
        (key, f"{getattr(p, key)} s is too quick for a step of 1 ms; expected 0.002 at least")
        for key in ("rotor_lag", "steering_lag", "drive_lag")
        if getattr(p, key) < 0.002
    ]
    mixer = np.array(
        [
            np.ones(p.rotors),
            p.rotor_position[:, 1],
            -p.rotor_position[:, 0] + p.center_x,
            p.rotor_spin,
        ]
    )
    scale = np.array((1.0, *[max(p.rotor_arm)] * 2, 1.0))
    if np.linalg.matrix_rank(mixer / scale[:, None], tol=1e-6) < min(4, p.rotors):
        found.append(
            (
                "rotor_azimuth",
                "this layout cannot command roll, pitch and yaw apart from each other",
            )
        )
    return found
