# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Checks of a vehicle's parameters against each other: values that are no vehicle together."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from rfly_common.config.declared import declarations

if TYPE_CHECKING:
    from rfly_amphibious.vehicle.parameters import VehicleParameters

Steered = Literal["front", "rear", "all", "none"]
"""Axles that steer."""

Complaint = tuple[str, str]
"""(field, error) of a value that does not fit the others."""

_MIDDLE = ("middle_spring", "middle_anti_roll", "cornering_factor_middle")
"""Fields that only a vehicle with a middle axle has."""


def _middle_axle(p: VehicleParameters) -> list[Complaint]:
    """Return what is wrong with a middle axle, or with fields that only one has."""
    if p.middle_axle is None:
        return _without_middle_axle(p)
    if p.middle_spring is None:
        return [("middle_axle", f"{p.middle_axle} m, but there is no {_key(p, 'middle_spring')}")]
    if not -p.rear_axle < p.middle_axle < p.front_axle:
        text = f"{p.middle_axle} m, expected between the others, {-p.rear_axle} … {p.front_axle} m"
        return [("middle_axle", text)]
    if p.spring_load.min() <= 0.0:
        loads = ", ".join(f"{load:.4g}" for load in p.spring_load[::2])
        text = (
            f"the springs of front, rear and middle axle would carry {loads} N: none may pull; "
            "expected an axle elsewhere, or another stiffness"
        )
        return [("middle_spring", text)]
    return []


def _without_middle_axle(p: VehicleParameters) -> list[Complaint]:
    """Return what is wrong with fields of a middle axle that is not there."""
    complaints: list[Complaint] = []
    present = [_key(p, name) for name in _MIDDLE if getattr(p, name) is not None]
    if present:
        complaints.append(("middle_axle", f"missing, but there is {', '.join(present)}"))
    unknown = [wheel for wheel in p.driven if wheel not in p.wheels]
    if unknown:
        text = f"there is no middle axle; expected some of {', '.join(p.wheels)}"
        complaints.append(("driven", f"{', '.join(unknown)}: {text}"))
    return complaints


def _key(p: VehicleParameters, field: str) -> str:
    """Return the key path of a field as a text."""
    return ".".join(declarations(type(p))[field].path)


def contradictions(p: VehicleParameters) -> list[Complaint]:
    """Return what is wrong with values that are allowed each, but are no vehicle together.

    This includes vehicles that can't be simulated with steps of 1 ms, by the rules of Eq. 13.3.
    """
    if (p.battery_cells > 0.0) != (p.battery_capacity > 0.0):
        text = f"{p.battery_cells:g} cells of {p.battery_capacity:g} Ah; expected both or none"
        return [("battery_cells", text)]
    if p.steered not in get_args(Steered):
        return [("steered", f"{p.steered!r}, allowed: {', '.join(get_args(Steered))}")]
    complaints = _not_finite(p) + _middle_axle(p)
    if complaints:
        return complaints
    return _bad_chassis(p) + _too_quick(p) + _bad_rotors(p)


def _not_finite(p: VehicleParameters) -> list[Complaint]:
    """Return the numbers that are not finite."""
    return [
        (field.name, f"{value} is not finite")
        for field in dataclasses.fields(p)
        for value in np.atleast_1d(getattr(p, field.name))
        if not isinstance(value, str | np.str_ | None) and not math.isfinite(float(value))
    ]


def _bad_chassis(p: VehicleParameters) -> list[Complaint]:
    """Return what is wrong with inertia, tyres and steering."""
    complaints: list[Complaint] = []
    moments = np.linalg.eigvalsh(p.inertia_matrix)
    if moments[0] <= 0.0 or moments[2] > (moments[0] + moments[1]) * (1.0 + 1e-9):
        text = f"principal moments {moments.round(6).tolist()} kg m²"
        complaints.append(("inertia", f"{text}: none may exceed the sum of the others"))

    if p.origin_height <= p.wheel_radius / 2.0:
        text = f"{p.origin_height} m, expected more than half the wheel radius"
        complaints.append(("origin_height", text))
    if p.static_load.max() / p.tyre_stiffness > p.wheel_radius / 2.0:
        text = "the static load presses the tyre in by more than half its radius; expected more"
        complaints.append(("tyre_stiffness", text))

    if p.steered == "none":
        if p.max_steering != 0.0:
            text = f"{p.max_steering}, expected 0 where no wheel is steered"
            complaints.append(("max_steering", text))
    elif math.tan(p.max_steering) * p.track / 2.0 >= p.steering_lever:
        text = "the turn's centre would lie between the wheels; expected less"
        complaints.append(("max_steering", text))
    return complaints


def _too_quick(p: VehicleParameters) -> list[Complaint]:
    """Return what is too quick for steps of 1 ms. Eq. 13.3."""
    complaints: list[Complaint] = []
    stiffness = p.tyre_stiffness + p.spring.max() + p.bump_stop_stiffness
    rules = (
        ("tyre_stiffness", stiffness, 400.0**2),
        ("tyre_damping", p.tyre_damping, 1000.0),
        ("stop_damping", p.stop_damping, 1000.0),
    )
    for key, value, limit in rules:
        if value / p.mass_unsprung > limit:
            most = f"{limit * p.mass_unsprung:.4g}"
            text = f"too stiff for the unsprung mass at a step of 1 ms: at most {most} in all"
            complaints.append((key, text))

    # rates of the wheels' spin, 1/s
    slip = 2.0 * p.low_speed_damping * p.wheel_radius**2 / p.wheel_inertia
    if slip > 1000.0:
        text = "too stiff for the wheel's inertia at a step of 1 ms"
        complaints.append(("low_speed_damping", text))
    resistance = p.rolling_resistance * p.nominal_load * p.wheel_radius**2
    if resistance / (p.rolling_speed * p.wheel_inertia) > 1000.0:
        text = "too small for the wheel's inertia at a step of 1 ms; expected more"
        complaints.append(("rolling_speed", text))

    for key in ("rotor_lag", "steering_lag", "drive_lag"):
        lag = getattr(p, key)
        if lag < 0.002:
            text = f"{lag} s is too quick for a step of 1 ms; expected 0.002 at least"
            complaints.append((key, text))
    return complaints


def _bad_rotors(p: VehicleParameters) -> list[Complaint]:
    """Return what is wrong with the rotors' layout: it must command thrust and three moments."""
    x = p.center_x - p.rotor_position[:, 0]
    y = p.rotor_position[:, 1]
    mixer = np.array([np.ones(p.rotors), y, x, p.rotor_spin])
    arm = max(p.rotor_arm)
    scale = np.array((1.0, arm, arm, 1.0))
    if np.linalg.matrix_rank(mixer / scale[:, None], tol=1e-6) >= min(4, p.rotors):
        return []
    text = "this layout cannot command roll, pitch and yaw apart from each other"
    return [("rotor_azimuth", text)]
