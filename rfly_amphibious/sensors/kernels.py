"""Kernels of the sensors' ground truth and noise. docs/model, section 11.

Arguments are whole flat arrays and the columns at which their parts begin: a slice of one row has
another type than a slice of several.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.steering import wheel_tangent
from rfly_common.arrays import Floats, Ints
from rfly_common.kernels.jit import inlined_kernel, kernel
from rfly_common.kernels.vectors import (
    Matrix,
    Vector,
    cross,
    quat_multiply,
    quat_of_rotation_vector,
    rotated_back,
    rotation_matrix,
    set_vector,
    vector_at,
    vector_of,
)

# rows of `coefficients`, see `disturb`
GAIN = 0
WHITE = 1
WALK = 2
WALK_KEEP = 3
KEEP = 4
ADD = 5
LOW = 6
HIGH = 7
COEFFICIENTS = 8

# rows of `memory`
BIAS = 0
MARKOV = 1
WALKED = 2
MEMORY = 3

# columns of the result of `truths`; there the attitude's error is 0

SPECIFIC_FORCE = 0
ANGULAR_VELOCITY = 3
ATTITUDE_ERROR = 6
ATTITUDE = 9
MAGNETIC_FIELD = 13
GPS_POSITION = 16
GPS_VELOCITY = 19
BODY_VELOCITY = 22
BARO_Z = 25
HEIGHT_PLACE = 26
TRUTHS = 29

# rows of `Mounting.levers`
IMU = 0
GPS = 1
BARO = 2
HEIGHT = 3


class Mounting(NamedTuple):
    """Mounting of the sensors on the body."""

    levers: Floats
    """Places in body axes, m, (4, 3)."""
    rotation: Floats
    """Rotation IMU -> body, (3, 3)."""
    quat: Floats
    """The same as a quaternion x y z w, (4,)."""


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


@kernel
def disturb(truth: Any, first: int, normals: Any, coefficients: Any, memory: Any, out: Any) -> None:
    """Apply the common noise model to n columns of `truth` from `first` -> out (k, n). Eq. 11.1.

    `normals` (k, 3 n): unit normal numbers for white noise, random walk and Gauss–Markov process.
    `coefficients` (8, n); `memory` (3, n): bias, Gauss–Markov value and the bias' walk of the next
    sample, in place.
    """
    channels = out.shape[1]
    for k in range(truth.shape[0]):
        for c in range(channels):
            value = (
                coefficients[GAIN, c] * truth[k, first + c]
                + memory[BIAS, c]
                + memory[WALKED, c]
                + memory[MARKOV, c]
            )
            value += coefficients[WHITE, c] * normals[k, c]
            out[k, c] = min(max(value, coefficients[LOW, c]), coefficients[HIGH, c])
            memory[WALKED, c] = (
                coefficients[WALK_KEEP, c] * memory[WALKED, c]
                + coefficients[WALK, c] * normals[k, channels + c]
            )
            memory[MARKOV, c] = (
                coefficients[KEEP, c] * memory[MARKOV, c]
                + coefficients[ADD, c] * normals[k, 2 * channels + c]
            )


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
def truths(
    x: Floats, dx: Floats, force: Floats, mounting: Mounting, field: Floats, out: Floats
) -> None:
    """Compute the readings of ideal sensors at their places. Eq. 11.2, 11.3.

    `x` (k, states) and its derivative `dx`; `force` (k, 3 or more): specific force at the body's
    origin; `field` (3,): the Earth's, ENU. `out` (k, TRUTHS).
    """
    levers, axes, quat = mounting
    imu_axes = (*vector_at(axes, 0, 0), *vector_at(axes, 1, 0), *vector_at(axes, 2, 0))
    imu_quat = quat[0], quat[1], quat[2], quat[3]
    earth_field = vector_of(field)
    imu = vector_at(levers, IMU, 0)
    gps = vector_at(levers, GPS, 0)
    baro = vector_at(levers, BARO, 0)
    height = vector_at(levers, HEIGHT, 0)
    for k in range(x.shape[0]):
        qw = x[k, state_layout.QUATERNION]
        qx = x[k, state_layout.QUATERNION + 1]
        qy = x[k, state_layout.QUATERNION + 2]
        qz = x[k, state_layout.QUATERNION + 3]
        rotation = rotation_matrix(qx, qy, qz, qw)
        position = vector_at(x, k, state_layout.POSITION)
        velocity = vector_at(x, k, state_layout.VELOCITY)
        rates = vector_at(x, k, state_layout.RATES)
        acceleration = vector_at(dx, k, state_layout.RATES)

        at_imu = specific_force_at(imu, vector_at(force, k, 0), rates, acceleration)
        set_vector(out, k, SPECIFIC_FORCE, rotated_back(imu_axes, at_imu))
        set_vector(out, k, ANGULAR_VELOCITY, rotated_back(imu_axes, rates))
        set_vector(out, k, ATTITUDE_ERROR, (0.0, 0.0, 0.0))
        set_vector(
            out, k, MAGNETIC_FIELD, rotated_back(imu_axes, rotated_back(rotation, earth_field))
        )
        attitude = quat_multiply((qx, qy, qz, qw), imu_quat)
        for c in range(4):
            out[k, ATTITUDE + c] = attitude[c]

        set_vector(out, k, GPS_POSITION, point_in_world(position, rotation, gps))
        set_vector(out, k, GPS_VELOCITY, point_in_world(velocity, rotation, cross(rates, gps)))
        set_vector(out, k, BODY_VELOCITY, rotated_back(rotation, velocity))
        out[k, BARO_Z] = point_in_world(position, rotation, baro)[2]
        set_vector(out, k, HEIGHT_PLACE, point_in_world(position, rotation, height))


@kernel
def turned_by(truth: Floats, error: Floats, first: int, out: Floats) -> None:
    """Turn the attitudes in `truth` by rotation vectors -> out (k, 4), x y z w.

    The vectors, in world axes, begin at column `first` of `error`.
    """
    for k in range(out.shape[0]):
        x = truth[k, ATTITUDE]
        y = truth[k, ATTITUDE + 1]
        z = truth[k, ATTITUDE + 2]
        w = truth[k, ATTITUDE + 3]
        turn = quat_of_rotation_vector(vector_at(error, k, first))
        turned = quat_multiply(turn, (x, y, z, w))
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
    steering_sign, wheel_y, steering_lever, rotor_spin, wheel_speed = geometry
    rotors = rotor_spin.size
    wheels = steering_sign.size
    joints = wheels + rotors
    wheel_rate = wheels
    wheel_angle = 2 * wheels
    rotor_rate = 3 * wheels
    for k in range(x.shape[0]):
        tangent = math.tan(x[k, state_layout.ROTOR_SPEED + rotors])
        for i in range(wheels):
            own = wheel_tangent(steering_sign[i], wheel_y[i], steering_lever, tangent)
            out[k, i] = math.atan(own)
            pitch_rate = x[k, state_layout.RATES + 1] - own * x[k, state_layout.RATES]
            carrier = pitch_rate / math.sqrt(1.0 + own * own)
            out[k, wheel_rate + i] = x[k, wheel_speed[i]] - carrier

        for j in range(rotors):
            out[k, rotor_rate + j] = rotor_spin[j] * x[k, state_layout.ROTOR_SPEED + j]

        # angles of wheels and rotors
        for n in range(joints):
            rate_column = wheel_rate + n
            angle_column = wheel_angle + n
            if n >= wheels:
                rate_column = rotor_rate + n - wheels
                angle_column = rate_column + rotors
            rate = out[k, rate_column]
            rate_before = last[joints + n]
            if not math.isnan(rate_before):
                last[n] += 0.5 * dt * (rate_before + rate)
            last[joints + n] = rate
            out[k, angle_column] = last[n]
