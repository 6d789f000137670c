# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The shipped demonstration: half a minute of driving, take-off, flight and landing."""

from __future__ import annotations

import math

import numpy as np

from rfly_amphibious.dynamics.model import AmphibiousModel, ModelState
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.pilot import Pilot, timed_setpoints
from rfly_autonomy.control.setpoint import Setpoint
from rfly_terrain.height_map.height_map import HeightMap

DURATION = 30.0
"""Duration, s."""

BUMP_SAMPLES = 60
"""Samples of the map along the bump."""


def land_air_demo(params: VehicleParameters) -> tuple[AmphibiousModel, ModelState, Pilot]:
    """Return the model over level ground with one bump, its start, and the pilot for it.

    The pilot is for `AmphibiousModel.run`. The bump lies across the way; it is as long as a
    wheelbase and a tenth of the wheels' radius high.
    """
    size = params.wheelbase
    terrain = _ground(0.1 * params.wheel_radius, size, 3.0 * size)
    model = AmphibiousModel(params, terrain)

    speed = 1.2 * math.sqrt(size)
    begin = model.standing()
    stop = 4.0 + 4.0 * size / speed
    flight = (9.0 * size, 1.0 * size, 2.5 + params.origin_height)

    setpoints = [
        Setpoint(0.0, speed=speed),
        *(Setpoint(stop + 0.1 * k, speed=speed * (1.0 - 0.1 * k)) for k in range(11)),
        Setpoint(stop + 2.0, Mode.TAKEOFF),
        Setpoint(stop + 7.0, target=flight),
        Setpoint(20.0, Mode.LAND),
        Setpoint(27.0, speed=0.7 * speed, steering=0.1),
    ]
    return model, begin, Pilot(model, timed_setpoints(setpoints))


def _ground(height: float, length: float, start: float) -> HeightMap:
    """Return level ground with a cosine bump from x = start, across all of y."""
    step = length / BUMP_SAMPLES
    x = np.arange(-10.0 * length, 40.0 * length, step)
    inside = (x > start) & (x < start + length)
    bump = 0.5 * height * (1.0 - np.cos(2.0 * np.pi * (x - start) / length))
    profile = np.where(inside, bump, 0.0)

    reach = 20.0 * length
    return HeightMap(
        np.stack([profile, profile], axis=1),
        origin_x=float(x[0]),
        origin_y=-reach,
        step_x=step,
        step_y=2.0 * reach,
    )
