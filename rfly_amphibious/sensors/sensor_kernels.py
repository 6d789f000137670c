# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Kernels of the sensors' ground truth and noise. docs/model, section 11.

Array arguments are contiguous: a slice of one row has another type than a slice of several.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rfly_amphibious.dynamics.tyres import trimmed_direction, wheel_direction
from rfly_amphibious.vehicle import state_layout
from rfly_common.arrays import Floats, Ints
from rfly_common.kernels.jit import inlined_kernel, inner_kernel, kernel
from rfly_common.kernels.record_vectors import quaternion, row, set_vector, vector
from rfly_common.kernels.vectors import (
    Matrix,
    Vector,
    cross,
    matrix_at,
    quat_multiply,
    quat_of_rotation_vector,
    rotated_back,
    rotation_matrix,
    vector_at,
)


def _record(*fields: tuple[Any, ...]) -> np.dtype[Any]:
    """Return the type of a record, whose fields kernels read by name."""
    return np.dtype((np.record, list(fields)))


CHANNEL_NOISE = _record(
    ("gain", float),
    ("white", float),  # standard deviation of a sample's white noise
    ("walk", float),  # standard deviation by which the bias grows from sample to sample
    ("walk_kept", float),  # share of this growth that is left one sample later
    ("markov", float),  # standard deviation that a sample adds to the Gauss–Markov value
    ("markov_kept", float),  # share of that value that is left one sample later
    ("low", float),  # range
    ("high", float),
)
"""Coefficients of one channel's errors. Eq. 11.1."""

CHANNEL_ERRORS = _record(("bias", float), ("markov", float), ("walk", float))
"""Errors of one channel's next sample: constant bias, Gauss–Markov value and growth of the bias."""

TRUTH = _record(
    ("imu", float, 9),  # specific force, rates, and the attitude's error, which is 0; IMU axes
    ("attitude", float, 4),  # IMU -> world, x y z w
    ("magnetic_field", float, 3),  # IMU axes
    ("gps", float, 6),  # position and velocity, ENU
    ("body_velocity", float, 3),  # of the body's origin, body axes
    ("barometer_z", float),
    ("height_place", float, 3),  # place of the height sensor, ENU
)
"""Readings of ideal sensors at one step; SI units."""

MOUNTING = _record(
    ("imu", float, 3),  # places in body axes, m
    ("gps", float, 3),
    ("barometer", float, 3),
    ("height", float, 3),
    ("imu_rotation", float, (3, 3)),  # IMU -> body
    ("imu_quat", float, 4),  # the same as a quaternion x y z w
    ("earth_field", float, 3),  # at the vehicle's place, ENU, T
)
"""Mounting of the sensors on the body, and the magnetic field around it."""


class JointGeometry(NamedTuple):
    """Geometry that determines the angles of joints. Eq. 5.1."""

    steering_sign: Floats
    """Sense in which each wheel is steered, (wheels,)."""
    wheel_y: Floats
    """Distance to the left, body axes, m, (wheels,)."""
    steering_lever: float
    """Distance of the steered axles from the turning point, m."""
    rotor_spin: Floats
    """Sense in which each rotor turns, (rotors,)."""
    wheel_speed: Ints
    """Columns of the wheels' speeds in the state, (wheels,)."""
    steering_trim: Ints
    """Columns of the steering trims in the state, (wheels,)."""


@kernel
def disturb(truth: Floats, normals: Floats, noise: Any, errors: Any, out: Floats) -> None:
    """Apply the common noise model to `truth` (k, channels) -> out (k, channels). Eq. 11.1.

    `normals` (k, 3 channels): unit normal numbers for white noise, growth of the bias and
    Gauss–Markov value. `noise` (channels,): CHANNEL_NOISE. `errors` (channels,): CHANNEL_ERRORS of
    the next sample, in place.
    """
    channels = out.shape[1]
    for k in range(truth.shape[0]):
        for c in range(channels):
            channel = noise[c]
            out[k, c] = reading(channel, errors[c], truth[k, c], normals[k, c])
            walk = normals[k, channels + c]
            let_drift(channel, errors[c], walk, normals[k, 2 * channels + c])


@inlined_kernel
def reading(channel: Any, error: Any, truth: float, white: float) -> float:
    """Return the reading of one channel, CHANNEL_NOISE and CHANNEL_ERRORS. Eq. 11.1.

    `white`: a unit normal number.
    """
    value = channel.gain * truth + error.bias + error.walk + error.markov
    value += channel.white * white
    return min(max(value, channel.low), channel.high)


@inlined_kernel
def let_drift(channel: Any, error: Any, walk: float, markov: float) -> None:
    """Let the error of one channel drift to its next sample, by two unit normal numbers."""
    error.walk = channel.walk_kept * error.walk + channel.walk * walk
    error.markov = channel.markov_kept * error.markov + channel.markov * markov


@inlined_kernel
def point_in_world(position: Vector, rotation: Matrix, lever: Vector) -> Vector:
    """Return the position of a point of the body."""
    return (
        position[0] + rotation[0] * lever[0] + rotation[1] * lever[1] + rotation[2] * lever[2],
        position[1] + rotation[3] * lever[0] + rotation[4] * lever[1] + rotation[5] * lever[2],
        position[2] + rotation[6] * lever[0] + rotation[7] * lever[1] + rotation[8] * lever[2],
    )


@inlined_kernel
def specific_force_at(lever: Vector, force: Vector, rates: Vector, acceleration: Vector) -> Vector:
    """Return f + ω̇ × r + ω × (ω × r), body axes; `acceleration`: ω̇. Eq. 11.2."""
    tx, ty, tz = acceleration
    wx, wy, wz = rates
    ux, uy, uz = cross(rates, lever)
    return (
        force[0] + ty * lever[2] - tz * lever[1] + wy * uz - wz * uy,
        force[1] + tz * lever[0] - tx * lever[2] + wz * ux - wx * uz,
        force[2] + tx * lever[1] - ty * lever[0] + wx * uy - wy * ux,
    )


@kernel
def truths(x: Floats, dx: Floats, force: Floats, mounting: Any, out: Any) -> None:
    """Compute the readings of ideal sensors at their places. Eq. 11.2, 11.3.

    `x` (k, states) and its derivative `dx`; `force` (k, 3): specific force at the body's origin;
    `mounting` (1,): MOUNTING. `out` (k,): TRUTH.
    """
    mount = mounting[0]
    imu = vector(mount.imu)
    gps = vector(mount.gps)
    barometer = vector(mount.barometer)
    height = vector(mount.height)
    imu_axes = matrix_at(mount.imu_rotation)
    imu_quat = quaternion(mount.imu_quat)
    earth_field = vector(mount.earth_field)

    for k in range(x.shape[0]):
        truth = out[k]
        qw = x[k, state_layout.QUATERNION]
        qx = x[k, state_layout.QUATERNION + 1]
        qy = x[k, state_layout.QUATERNION + 2]
        qz = x[k, state_layout.QUATERNION + 3]
        rotation = rotation_matrix(qx, qy, qz, qw)
        position = vector_at(x, k, state_layout.POSITION)
        velocity = vector_at(x, k, state_layout.VELOCITY)
        rates = vector_at(x, k, state_layout.RATES)
        acceleration = vector_at(dx, k, state_layout.RATES)

        # IMU and magnetometer
        imu_force = specific_force_at(imu, row(force, k), rates, acceleration)
        field = rotated_back(rotation, earth_field)
        set_vector(truth.imu[0:3], rotated_back(imu_axes, imu_force))
        set_vector(truth.imu[3:6], rotated_back(imu_axes, rates))
        set_vector(truth.imu[6:9], (0.0, 0.0, 0.0))
        set_vector(truth.magnetic_field, rotated_back(imu_axes, field))
        attitude = quat_multiply((qx, qy, qz, qw), imu_quat)
        for c in range(4):
            truth.attitude[c] = attitude[c]

        # places and velocities
        set_vector(truth.gps[0:3], point_in_world(position, rotation, gps))
        set_vector(truth.gps[3:6], point_in_world(velocity, rotation, cross(rates, gps)))
        set_vector(truth.body_velocity, rotated_back(rotation, velocity))
        truth.barometer_z = point_in_world(position, rotation, barometer)[2]
        set_vector(truth.height_place, point_in_world(position, rotation, height))


@kernel
def turned_by(truth: Any, readings: Floats, out: Floats) -> None:
    """Turn the attitudes in `truth` (k,), TRUTH, by their errors -> out (k, 4), x y z w.

    The errors are rotation vectors in world axes: the last three of the IMU's nine `readings`.
    """
    for k in range(out.shape[0]):
        turn = quat_of_rotation_vector(vector_at(readings, k, 6))
        turned = quat_multiply(turn, quaternion(truth[k].attitude))
        for c in range(4):
            out[k, c] = turned[c]


@kernel
def turn_joints(dt: float, x: Floats, geometry: JointGeometry, last: Floats, out: Floats) -> None:
    """Integrate angles of steering, wheels and rotors by the trapezoidal rule, with their rates.

    `x` (k, states), rows of steps of `dt`. `last` (2 wheels + 2 rotors): angles of wheels and
    rotors, then their rates; those of the step before, in place. NaN rates: this is the first.
    `out` (k, 3 wheels + 2 rotors): steering angles, wheel spins relative to the body (Eq. 11.5) and
    angles, rotor speeds and angles.
    """
    rotor_spin = geometry.rotor_spin
    rotors = rotor_spin.size
    wheels = geometry.steering_sign.size
    wheel_angle = 2 * wheels
    rotor_rate = 3 * wheels
    rotor_angle = rotor_rate + rotors
    for k in range(x.shape[0]):
        tangent = math.tan(x[k, state_layout.ROTOR_SPEED + rotors])
        for i in range(wheels):
            own, rate = wheel_turn(i, x[k], tangent, geometry)
            out[k, i] = math.atan(own)
            out[k, wheels + i] = rate
            out[k, wheel_angle + i] = next_angle(rate, dt, last, i)

        for j in range(rotors):
            rate = rotor_spin[j] * x[k, state_layout.ROTOR_SPEED + j]
            out[k, rotor_rate + j] = rate
            out[k, rotor_angle + j] = next_angle(rate, dt, last, wheels + j)


@inlined_kernel
def wheel_turn(
    i: int, x: Floats, tan_steering: float, geometry: JointGeometry
) -> tuple[float, float]:
    """Return the tangent of wheel i's angle, and its spin against the body, rad/s. Eq. 11.5.

    `tan_steering`: of the virtual wheel.
    """
    sign = geometry.steering_sign[i]
    per_lever = 1.0 / geometry.steering_lever
    along, across = wheel_direction(sign, geometry.wheel_y[i], per_lever, tan_steering)
    trim = x[geometry.steering_trim[i]]
    if trim != 0.0:
        along, across = trimmed_direction(along, across, trim)
    tangent = across / along
    pitch_rate = x[state_layout.RATES + 1] - tangent * x[state_layout.RATES]
    carrier = pitch_rate / math.sqrt(1.0 + tangent * tangent)
    return tangent, x[geometry.wheel_speed[i]] - carrier


@inner_kernel
def next_angle(rate: float, dt: float, last: Floats, joint: int) -> float:
    """Return the angle of a joint that turns at `rate` now; update `last`, see `turn_joints`."""
    rate_column = last.size // 2 + joint
    rate_before = last[rate_column]
    if not math.isnan(rate_before):
        last[joint] += 0.5 * dt * (rate_before + rate)
    last[rate_column] = rate
    return last[joint]
