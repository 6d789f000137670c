"""VehicleParameters as one flat record for compiled kernels."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_amphibious.vehicle.state_layout import CORNERS, MAX_ROTORS, POINTS
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
"""fields that the kernels get in another form; all others go into the record under their own names
"""
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


HULL_FREQUENCY = 150.0
HULL_DAMPING = 0.3
"""rad/s and ratio to the critical damping of the whole mass on one ellipsoid of the hull. Eq. 6.8
"""
HUB_SIZE = 0.1
"""of the rotor's radius: the ball about its hub that something solid touches"""


def peak_slip(shape: float, curvature: float) -> float:
    """The slip ρ at which f(ρ; C, E) is 1. Eq. 5.12.

    By Newton's method, as scipy.optimize takes each node 25 MB. z - E (z - arctan z) rises for E <
    1, and bends one way for z > 0: from 0 on no step but the first leads past the root.
    """
    target = math.tan(math.pi / (2.0 * shape))
    z = 0.0
    step = math.inf
    while abs(step) > 1e-12 * z:
        step = (target - z + curvature * (z - math.atan(z))) / (
            1.0 - curvature * z * z / (1.0 + z * z)
        )
        z += step
    return shape * z


def vehicle_record(
    p: VehicleParameters, ground_effect: bool, standard_atmosphere: bool, map_altitude: float
) -> SimpleNamespace:
    """What the kernels know as `p`: numbers and arrays by name."""
    declared = {name: getattr(p, name) for name in declarations(VehicleParameters)}
    values: dict[str, Any] = {
        name: value for name, value in declared.items() if name not in _NOT_COPIED
    }
    values |= {name: getattr(p, name) for name in _DERIVED}
    hubs = p.hub_position
    rotors = p.rotor_position
    half = 0.5 * np.array(p.body_box)
    corners = [half * (x, y, z) for z in (1, -1) for y in (1, -1) for x in (1, -1)]
    points = np.zeros((POINTS, 3))
    points[: len(hubs) + CORNERS + p.rotors] = np.concatenate([hubs, corners, rotors])
    values["point_x"], values["point_y"], values["point_z"] = points.T
    values["corner_reach"] = float(np.linalg.norm(np.array(corners) - hubs[0], axis=1).max())
    values["slips"] = 2 * len(hubs)
    values["shapes"] = np.repeat((p.shape_x, p.shape_y), len(hubs))
    values["curvatures"] = np.repeat((p.curvature_x, p.curvature_y), len(hubs))
    values["cornering_stiffness"] = (
        p.cornering_factor * p.cornering_stiffness_per_rad * p.nominal_load
    )
    values["driven"] = p.is_driven
    values["drive_power"] = p.max_drive_power / max(len(p.driven), 1)
    values["peak_slip"] = max(
        peak_slip(p.shape_x, p.curvature_x), peak_slip(p.shape_y, p.curvature_y)
    )
    values["drag_area"] = 0.5 * AIR_DENSITY * np.array(p.drag_area)
    values["rotor_spin"] = np.resize(np.array(p.rotor_spin, float), MAX_ROTORS)
    values["rotors"] = p.rotors
    values["gravity"] = GRAVITY
    values |= hull_ellipsoids(p)
    values["reach"] = p.reach
    values["air_density"] = AIR_DENSITY
    values["ground_effect"] = int(ground_effect)
    values["standard_atmosphere"] = int(standard_atmosphere)
    values["map_altitude"] = map_altitude
    arrays = {name: np.asarray(value) for name, value in values.items()}
    return SimpleNamespace(**{name: a if a.ndim else a.item() for name, a in arrays.items()})


def hull_ellipsoids(p: VehicleParameters) -> dict[str, Any]:
    """Ellipsoids about axes along body z that fill the body box and lie about the rotor hubs. Eq.
    6.6, 6.8.
    """
    half = 0.5 * np.array(p.body_box)
    radius = min(half[:2])
    corner = min(half[2], 0.4 * min(half[:2]))
    spare = np.where(half[:2] > radius, half[:2] - radius, 0.0)
    count = 1 + int(np.ceil(2.0 * spare.max() / (0.7 * radius)))
    along = np.linspace(-1.0, 1.0, count)[:, None] if count > 1 else np.zeros((1, 1))
    corners = np.array([(x, y) for x in (1.0, -1.0) for y in (1.0, -1.0)]) * (half[:2] - corner)
    level = np.concatenate([along * spare, corners])
    centre = np.concatenate([np.column_stack([level, np.zeros(len(level))]), p.rotor_position])
    sizes = np.repeat((radius, corner, HUB_SIZE * p.rotor_radius), (count, 4, p.rotors))
    height = np.repeat((half[2], half[2], HUB_SIZE * p.rotor_radius), (count, 4, p.rotors))
    stiffness = p.mass * HULL_FREQUENCY**2 * height / sizes
    return {
        "hull_parts": len(centre),
        "hull_centre": centre,
        "hull_radius": sizes,
        "hull_flatness": (height / sizes) ** 2,
        "hull_stiffness": stiffness,
        "hull_damping": stiffness * (2.0 * HULL_DAMPING / HULL_FREQUENCY),
    }


def kernel_records(record: SimpleNamespace) -> Any:
    """The one record of a structured array (1,), which kernels read by name and take in a
    microsecond.
    """
    arrays = {name: np.asarray(value) for name, value in vars(record).items()}
    dtype = np.dtype(
        [
            (name, np.int64 if a.dtype.kind == "i" else np.float64, a.shape)
            for name, a in arrays.items()
        ]
    )
    records = np.zeros(1, dtype)
    for name, array in arrays.items():
        records[name][0] = array
    return records
