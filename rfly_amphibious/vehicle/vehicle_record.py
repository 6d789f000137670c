# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of a vehicle as one flat record for compiled kernels."""

from __future__ import annotations

import functools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_amphibious.vehicle.state_layout import (
    CONTROLS,
    FIRST_CORNER,
    FIRST_ROTOR,
    MAX_ROTORS,
    MEMORY_FIELDS,
    OUTPUTS,
    PARTS,
    POINTS,
    STATE,
    columns_of_record,
)
from rfly_common.config.declared import declarations
from rfly_common.physics import AIR_DENSITY, GRAVITY

_NOT_COPIED = (
    "steered",
    "driven",
    "rotor_azimuth",
    "rotor_arm",
    "middle_axle",
    "middle_spring",
    "middle_anti_roll",
    "cornering_factor_middle",
)
"""Fields that the record has in another form; it has all others under their own names."""
_DERIVED = (
    "mass_sprung",
    "mass",
    "spring_load",
    "spring",
    "anti_roll",
    "steering_sign",
    "steering_lever",
    "torque_coefficient",
    "inflow_coefficient",
)
"""Properties that the record has under their own names."""
_INVERTED = (
    "mass",
    "mass_sprung",
    "mass_unsprung",
    "wheel_inertia",
    "steering_lever",
    "steering_lag",
    "drive_lag",
    "rotor_lag",
    "rotor_inertia",
    "relaxation_x",
    "relaxation_y",
    "shape_x",
    "shape_y",
    "friction_x",
    "friction_y",
    "nominal_load",
    "low_speed",
    "rolling_speed",
)
"""Numbers whose inverses the record has, too, as `per_…`: eight divisions at once take sixteen
times as long as eight products."""
_OF_WHEELS = (
    "spring_load",
    "spring",
    "anti_roll",
    "steering_sign",
    "cornering_stiffness",
    "driven",
    "has_wheel",
)
"""Arrays of the record with a number for each wheel."""

HULL_FREQUENCY = 150.0
"""Frequency of the whole mass on one ellipsoid of the hull, rad/s. Eq. 6.8."""
HULL_DAMPING = 0.3
"""Damping of the whole mass on one ellipsoid of the hull, relative to the critical one. Eq. 6.8."""
PROFILE_GROWTH = 4.65
"""Growth of the blades' profile power with the square of the advance ratio. Eq. 4.17."""
LARGEST_ADVANCE = 0.5
"""Advance ratio up to which power changes with the speed across the disc. Eq. 4.17."""
HUB_SIZE = 0.1
"""Radius of the ball about a rotor hub that something solid touches, relative to the rotor's."""

HULL = np.dtype(
    [
        ("centre", np.float64, 3),
        ("radius", np.float64),
        ("flatness", np.float64),
        ("stiffness", np.float64),
        ("damping", np.float64),
    ]
)
"""An ellipsoid of the hull about an axis along body z: its centre, m, body axes; its radius across
the axis, m; how much shorter it is along the axis, squared; N/m; N s/m. Eq. 6.6, 6.8."""


def peak_slip(shape: float, curvature: float) -> float:
    """Return the slip ρ at which f(ρ; C, E) is 1. Eq. 5.12.

    Newton's method instead of scipy.optimize, which takes 25 MB in each node. z - E (z - arctan z)
    rises for E < 1, and bends one way for z > 0: from 0 only the first step passes the root.
    """
    target = math.tan(math.pi / (2.0 * shape))
    z = 0.0
    step = math.inf
    while abs(step) > 1e-12 * z:
        error = target - z + curvature * (z - math.atan(z))
        slope = 1.0 - curvature * z * z / (1.0 + z * z)
        step = error / slope
        z += step
    return shape * z


def vehicle_record(
    p: VehicleParameters, ground_effect: bool, standard_atmosphere: bool, map_altitude: float
) -> SimpleNamespace:
    """Return the parameters that kernels call `p`: numbers and arrays by name."""
    wheels = len(p.wheels)
    names = [name for name in declarations(VehicleParameters) if name not in _NOT_COPIED]
    values: dict[str, Any] = {name: getattr(p, name) for name in (*names, *_DERIVED)}

    # points of the body
    half = 0.5 * np.array(p.body_box)
    corners = [half * (x, y, z) for z in (1, -1) for y in (1, -1) for x in (1, -1)]
    points = np.zeros((POINTS, 3))
    points[:wheels] = p.hub_position
    points[FIRST_ROTOR : FIRST_ROTOR + p.rotors] = p.rotor_position
    points[FIRST_CORNER:] = corners
    values["point_x"] = points[:, 0]
    values["point_y"] = points[:, 1]
    values["point_z"] = points[:, 2]
    reaches = np.linalg.norm(np.array(corners) - p.hub_position[0], axis=1)
    values["corner_reach"] = float(reaches.max())
    values["reach"] = p.reach

    # wheels and tyres
    values["wheels"] = wheels
    values["has_wheel"] = np.ones(wheels)
    cornering = p.cornering_factor * p.cornering_stiffness_per_rad
    values["cornering_stiffness"] = cornering * p.nominal_load
    peak_x = peak_slip(p.shape_x, p.curvature_x)
    peak_y = peak_slip(p.shape_y, p.curvature_y)
    values["peak_slip"] = max(peak_x, peak_y)
    values["driven"] = p.is_driven
    values["drive_power"] = p.max_drive_power / max(len(p.driven), 1)

    # rotors and air
    values["rotors"] = p.rotors
    hubs = np.zeros((MAX_ROTORS, 3))
    hubs[: p.rotors] = p.rotor_position
    values["rotor_x"] = hubs[:, 0]
    values["rotor_y"] = hubs[:, 1]
    values["rotor_z"] = hubs[:, 2]
    values |= _inflow(p)
    values["rotor_spin"] = np.resize(np.array(p.rotor_spin, float), MAX_ROTORS)
    values["drag_area"] = 0.5 * AIR_DENSITY * np.array(p.drag_area)
    values["air_density"] = AIR_DENSITY
    values["ground_effect"] = int(ground_effect)
    values["standard_atmosphere"] = int(standard_atmosphere)
    values["map_altitude"] = map_altitude
    values["gravity"] = GRAVITY

    values |= {f"per_{name}": 1.0 / values[name] for name in _INVERTED}

    # columns of the records' numbers in public arrays
    values["state_columns"] = columns_of_record(STATE, p.rotors, wheels)
    values["control_columns"] = columns_of_record(CONTROLS, p.rotors, wheels)
    values["memory_columns"] = columns_of_record(MEMORY_FIELDS, p.rotors, wheels)
    values["output_columns"] = columns_of_record(OUTPUTS, p.rotors, wheels)

    arrays = {name: np.asarray(value) for name, value in values.items()}
    return SimpleNamespace(**{name: a if a.ndim else a.item() for name, a in arrays.items()})


def _inflow(p: VehicleParameters) -> dict[str, float]:
    """Return the constants of the rotors' inflow and of the torque in forward flight.

    They are v_h for 1 rad/s and its square for 1 N (Eq. 4.14), and those of Eq. 4.17: a speed
    across the disc is relative to v_h, powers are relative to that of hover.
    """
    inflow_square = 1.0 / (2.0 * math.pi * AIR_DENSITY * p.rotor_radius**2)
    hover_inflow = math.sqrt(p.thrust_coefficient * inflow_square)
    advance = hover_inflow / p.rotor_radius
    drag_work = p.rotor_drag_coefficient * hover_inflow**2 / p.torque_coefficient
    return {
        "hover_inflow": hover_inflow,
        "inflow_square": inflow_square,
        "profile_growth": (1.0 - p.figure_of_merit) * PROFILE_GROWTH * advance**2,
        "rotor_drag_work": drag_work,
        "fastest_level": LARGEST_ADVANCE / advance,
    }


def hull_ellipsoids(p: VehicleParameters) -> NDArray[np.void]:
    """Return the ellipsoids of HULL that fill the body box and lie about the rotor hubs.

    Their axes are parallel to body z. Eq. 6.6, 6.8.
    """
    half = 0.5 * np.array(p.body_box)
    radius = min(half[:2])
    corner = min(half[2], 0.4 * min(half[:2]))

    # a row along the longer side, then the corners, then the rotor hubs
    spare = np.where(half[:2] > radius, half[:2] - radius, 0.0)
    count = 1 + int(np.ceil(2.0 * spare.max() / (0.7 * radius)))
    along = np.linspace(-1.0, 1.0, count)[:, None] if count > 1 else np.zeros((1, 1))
    corners = np.array([(x, y) for x in (1.0, -1.0) for y in (1.0, -1.0)]) * (half[:2] - corner)
    level = np.concatenate([along * spare, corners])
    centre = np.concatenate([np.column_stack([level, np.zeros(len(level))]), p.rotor_position])

    hub = HUB_SIZE * p.rotor_radius
    sizes = np.repeat((radius, corner, hub), (count, 4, p.rotors))
    height = np.repeat((half[2], half[2], hub), (count, 4, p.rotors))
    stiffness = p.mass * HULL_FREQUENCY**2 * height / sizes

    hull = np.zeros(len(centre), HULL)
    hull["centre"] = centre
    hull["radius"] = sizes
    hull["flatness"] = (height / sizes) ** 2
    hull["stiffness"] = stiffness
    hull["damping"] = stiffness * (2.0 * HULL_DAMPING / HULL_FREQUENCY)
    return hull


def kernel_records(record: SimpleNamespace) -> Any:
    """Return the record as the only one of a structured array (1,), for kernels.

    They read it by name and take it in a microsecond. Arrays of the wheels have room for
    PARTS, so that all vehicles have the same type.
    """
    arrays = {name: np.asarray(value) for name, value in vars(record).items()}
    for name in _OF_WHEELS:
        arrays[name] = np.append(arrays[name], np.zeros(PARTS - len(arrays[name])))
    fields = tuple((name, a.dtype.kind == "i", a.shape) for name, a in arrays.items())
    records = np.zeros(1, _record_type(fields))
    for name, array in arrays.items():
        records[name][0] = array
    return records


@functools.cache
def _record_type(fields: tuple[tuple[str, bool, tuple[int, ...]], ...]) -> np.dtype[np.void]:
    """Return a type with these fields: (name, whether they are integers, shape).

    It is the same object for all vehicles: each call of a kernel compares types, and comparing two
    equal ones takes a microsecond.
    """
    return np.dtype(
        [
            (name, np.int64 if is_integer else np.float64, shape)
            for name, is_integer, shape in fields
        ]
    )
