# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Readings of ideal sensors of vehicles in a simulation. docs/model, section 11."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_amphibious.dynamics.arguments import Inputs
from rfly_amphibious.dynamics.model import AmphibiousModel, Controls
from rfly_amphibious.dynamics.obstacles import Obstacles
from rfly_amphibious.sensors import sensor_kernels as kernels
from rfly_amphibious.sensors.sensor_parameters import Imu, SensorParameters
from rfly_amphibious.vehicle import state_layout
from rfly_common.arrays import Floats
from rfly_common.frames import euler_to_quat, rotation_matrix


class IdealReadings(NamedTuple):
    """The truth at some states, a row for each."""

    x: Floats
    """States."""
    truth: NDArray[Any]
    """Readings of ideal sensors, `sensor_kernels.TRUTH`."""
    loads: Floats
    """Loads of the wheels, N."""
    wind: Floats
    """Wind with gusts, m/s, ENU."""


def mounting_of(sensors: SensorParameters) -> NDArray[Any]:
    """Return the mounting of a set of sensors for kernels, (1,), `sensor_kernels.MOUNTING`."""
    mounting = np.zeros(1, kernels.MOUNTING)
    for name in ("imu", "gps", "barometer", "height"):
        sensor = getattr(sensors, name)
        if sensor is not None:
            mounting[name] = sensor.position

    rotation = sensors.imu.rotation if isinstance(sensors.imu, Imu) else (0.0, 0.0, 0.0)
    quat = euler_to_quat(rotation).astype(np.float64)
    mounting["imu_quat"] = quat
    mounting["imu_rotation"] = rotation_matrix(quat)
    if sensors.magnetometer is not None:
        mounting["earth_field"] = sensors.magnetometer.earth_field
    return mounting


def ideal_readings(
    model: AmphibiousModel,
    mounting: NDArray[Any],
    x: Floats,
    memory: Floats,
    controls: tuple[Floats, bool],
    mean_wind: Floats,
    obstacles: Obstacles | None = None,
    since: Floats | None = None,
) -> IdealReadings:
    """Return what ideal sensors read at states (k, states) with memories (k, memory).

    `controls`: the commands that act, (k, controls), as of `Controls.rows`, and whether rotors are
    commanded by torque. `mean_wind`: (3,) or (k, 3), m/s, world, without gusts. `obstacles`,
    `since`: as `AmphibiousModel.evaluate_rows` has them.
    """
    params = model.params
    wheels = len(params.wheels)
    acting = memory[:, state_layout.memory_columns(wheels)["brake_acting"]].copy()
    wind = memory[:, state_layout.GUST : state_layout.GUST + 3] + mean_wind
    commands, torques = controls
    inputs = Inputs(commands, torques, acting, wind)
    dx, numbers = model.evaluate_rows(x, inputs, obstacles, since)

    # what has crashed obeys no commands
    dead = memory[:, state_layout.CRASHED] != 0.0
    if dead.any():
        brakes = Controls(brake_torque=params.max_brake_torque).rows(params, int(dead.sum()))
        inputs = Inputs(brakes, False, acting[dead], wind[dead])
        then = None if since is None else since[dead]
        dx[dead], numbers[dead] = model.evaluate_rows(x[dead], inputs, obstacles, then)

    truth = np.empty(len(x), kernels.TRUTH)
    force = numbers[:, state_layout.SPECIFIC_FORCE : state_layout.SPECIFIC_FORCE + 3].copy()
    kernels.truths(x, dx, force, mounting, truth)
    loads = numbers[:, state_layout.output_columns(wheels)["wheel_load"]]
    return IdealReadings(x, truth, loads, wind)
