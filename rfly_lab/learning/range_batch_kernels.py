# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Kernels of the environments' range sensors: rays of many vehicles, and readings of their hits."""

from __future__ import annotations

from typing import Any, NamedTuple

from rfly_amphibious.sensors.sensor_kernels import point_in_world
from rfly_amphibious.vehicle.state_layout import POSITION, QUATERNION
from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.kernels.jit import kernel
from rfly_common.kernels.vectors import (
    Vector,
    rotated,
    rotation_matrix,
    set_vector,
    vector_at,
)
from rfly_lab.learning.episode_kernels import within_limits
from rfly_lab.learning.sensor_batch_kernels import is_due, normal, step_key, uniform


class Optics(NamedTuple):
    """Rays of a range sensor, which is fixed in the body, and its errors. SI units."""

    origin: Vector
    """Place of the sensor, body axes, m."""
    directions: Floats
    """Unit vectors, body axes, (rays, 3)."""
    along: Floats
    """Share of each ray's range that is read, (rays,)."""
    nearest: float
    """Least reading, m; what is nearer reads this."""
    farthest: float
    """Largest reading, m; what is farther, or nothing, reads this."""
    noise: float
    """Standard deviation of a reading at 0, m."""
    noise_square: float
    """What is added to it for the square of the reading, 1/m."""
    dropout: float
    """Share of the readings that are lost; they read as nothing."""
    sample: float
    """Period of the measurements, s."""


@kernel
def find_due(
    which: Ints, steps: Ints, failed: Bools, sample: float, period: float, due: Bools
) -> None:
    """Write to (k,) which of the vehicles (k,) measure at their steps; those that failed don't."""
    for k in range(which.shape[0]):
        v = which[k]
        due[k] = not failed[v] and is_due(steps[v], sample, period)


@kernel
def aim(which: Ints, states: Floats, optics: Optics, origins: Floats, directions: Floats) -> None:
    """Write the rays of the vehicles (k,) in the world, (k rays, 3) each."""
    rays = optics.along.shape[0]
    for k in range(which.shape[0]):
        v = which[k]
        x = states[v, QUATERNION + 1]
        y = states[v, QUATERNION + 2]
        z = states[v, QUATERNION + 3]
        rotation = rotation_matrix(x, y, z, states[v, QUATERNION])
        origin = point_in_world(vector_at(states, v, POSITION), rotation, optics.origin)
        for r in range(rays):
            set_vector(origins, k * rays + r, 0, origin)
            direction = rotated(rotation, vector_at(optics.directions, r, 0))
            set_vector(directions, k * rays + r, 0, direction)


@kernel
def read(
    which: Ints, steps: Ints, keys: Any, ranges: Floats, optics: Optics, readings: Any
) -> None:
    """Write what the vehicles (k,) read of ranges (k rays,), m, to rows of (n, rays)."""
    rays = optics.along.shape[0]
    for k in range(which.shape[0]):
        v = which[k]
        key = step_key(keys[v], steps[v])
        for r in range(rays):
            value = ranges[k * rays + r] * optics.along[r]
            if value <= optics.farthest:
                sigma = optics.noise + optics.noise_square * value * value
                if sigma > 0.0:
                    value += sigma * normal(key, r)
                # what is too near is never lost, as in `Lidar`
                is_lost = optics.dropout > 0.0 and uniform(key, 2 * rays + r) < optics.dropout
                if is_lost and value >= optics.nearest:
                    value = optics.farthest
            value = min(max(value, optics.nearest), optics.farthest)
            readings[v, r] = within_limits(value)
