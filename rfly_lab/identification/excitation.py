# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A manoeuvre of a minute that excites all that `vehicle_fit` identifies."""

from __future__ import annotations

import math
from typing import Any

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.config.marked_yaml import dump_yaml
from rfly_common.physics import GRAVITY

DURATION = 66.0
"""Duration of the manoeuvre, s."""
_SHARES: tuple[tuple[str, float, float, float, float, tuple[float, float]], ...] = (
    # channel, from, to (s), value and amplitude as shares of `_units`, frequency (in stiffness: of
    # its natural one)
    ("lift_n", 4.0, 12.0, 0.22, 0.16, (0.5, 4.0)),
    ("roll_nm", 4.0, 12.0, 0.0, 0.12, (4.0, 0.5)),
    ("pitch_nm", 4.0, 12.0, 0.0, 0.12, (0.5, 2.5)),
    ("drive_nm", 13.0, 15.0, 0.5, 0.0, (0.0, 0.0)),
    ("drive_nm", 15.0, 24.0, 0.2, 0.0, (0.0, 0.0)),
    ("steering_rad", 15.0, 19.5, 0.0, 0.12, (0.5, 0.9)),
    ("steering_rad", 19.5, 24.0, 0.0, 0.35, (0.4, 0.7)),
    ("drive_nm", 24.0, 32.0, 0.03, 0.0, (0.0, 0.0)),
    # bursts, forward and back, so short that it does not turn round while its wheels slide
    *(
        (
            "drive_nm",
            24.0 + 0.8 * k,
            24.6 + 0.8 * k,
            0.0,
            (0.8 + 0.15 * (k // 2)) * (-1) ** k,
            (1 / 1.2, 1 / 1.2),
        )
        for k in range(10)
    ),
    ("steering_rad", 24.0, 32.0, 0.0, 0.0, (0.0, 0.0)),
    ("height_m", 34.0, 60.0, 1.0, 0.0, (0.0, 0.0)),
    ("roll_nm", 42.0, 46.0, 0.0, 1.0, (0.6, 2.5)),
    ("pitch_nm", 46.5, 50.5, 0.0, 1.0, (0.6, 2.5)),
    ("yaw_nm", 51.0, 57.0, 0.0, 1.0, (0.4, 2.0)),
)


def excitation(params: VehicleParameters, vehicle: str) -> str:
    """Return a scenario (YAML) that excites all parameters of a vehicle about like `params`.

    The vehicle stands, bounces on its struts under its rotors, drives in ever narrower bends,
    accelerates and brakes until the tyres slide, flies, tilts and turns. `vehicle`: the scenario's,
    a shipped set or a file.
    """
    signals: list[dict[str, Any]] = []
    for channel, begin, end, value, amplitude, frequency in _SHARES:
        unit = _units(params, flying=begin > 33.0)[channel]
        signal: dict[str, Any] = {
            "signal": channel,
            "from_s": _rounded(begin),
            "to_s": _rounded(end),
            "value": _rounded(value * unit),
        }
        if amplitude:
            signal |= {
                "amplitude": _rounded(amplitude * unit),
                "frequency_hz": [_rounded(end) for end in frequency],
            }
        signals.append(signal)

    modes = [{"mode": "takeoff", "from_s": 35.5}, {"mode": "land", "from_s": 58.0}]
    document = {
        "version": 1,
        "vehicle": vehicle,
        "mission": {"manoeuvre": signals + modes},
        "end": {"when": "time", "time_s": DURATION},
    }
    return (
        "# Excites what rfly sim fit looks for; "
        "needs some 300 m of level ground, and slides on it.\n"
        + dump_yaml(document, default_flow_style=None, width=120)
    )


def _units(p: VehicleParameters, flying: bool) -> dict[str, float]:
    """Return the unit of each channel.

    These are the weight, moments that lift the wheels of a side or turn the vehicle at some rad/s²,
    and the torque at which tyres slide.
    """
    weight = p.mass * GRAVITY
    inertia = p.total_inertia
    slides = p.friction_x * p.static_load.mean() * p.rolling_radius.mean()
    drive = float(min(slides, p.max_drive_torque))

    # moments
    roll = weight * p.track / 2.0
    pitch = weight * p.wheelbase / 2.0
    yaw = 0.0
    if flying:
        brisk = (p.attitude_frequency / 7.0) ** 2
        roll = 6.0 * brisk * inertia[0, 0]
        pitch = 6.0 * brisk * inertia[1, 1]
        yaw = 0.35 * p.torque_coefficient / p.thrust_coefficient * weight
    return {
        "lift_n": weight,
        "roll_nm": float(roll),
        "pitch_nm": float(pitch),
        "yaw_nm": float(yaw),
        "steering_rad": p.max_steering if p.steered != "none" else 0.0,
        "drive_nm": drive,
        "height_m": max(3.0, 5.0 * p.rotor_radius),
    }


def _rounded(value: float) -> float:
    return float(f"{value:.3g}") if math.isfinite(value) else value
