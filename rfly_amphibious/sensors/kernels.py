"""Kernels of the sensors' ground truth and noise, compiled where numba is; else the same as plain Python.

Arguments are whole flat arrays and the columns at which parts of them begin: a cut-out of one row would be another
type than one of several. docs/model, section 11.
"""

from __future__ import annotations

import math
from typing import Any

from rfly_common.kernels.jit import kernel
from rfly_common.kernels.rotations import rotation_matrix

GAIN, WHITE, WALK, KEEP, ADD, LOW, HIGH = range(7)
"""rows of `coefficients`, see `disturb`"""
COEFFICIENTS = 7
BIAS, MARKOV = 0, 1
"""rows of `memory`"""

F, W, ATTITUDE_ERROR, Q, FIELD, GPS_POSITION, GPS_VELOCITY = 0, 3, 6, 9, 13, 16, 19
BODY_VELOCITY, BARO_Z, HEIGHT_PLACE = 22, 25, 26
"""columns of what `truths` finds; there the attitude's error is 0"""
TRUTHS = 29
IMU, GPS, BARO, HEIGHT = range(4)
"""rows of `levers`"""


@kernel(nogil=True, error_model="numpy")
def disturb(truth: Any, first: int, normals: Any, coefficients: Any, memory: Any, out: Any) -> None:
    """The common noise model, sample after sample: n columns of `truth` from `first` on -> out (k, n). Eq. 11.1.

    `normals` (k, 3 n): unit normal numbers for white noise, random walk and Gauss–Markov process.
    `coefficients` (7, n); `memory` (2, n): the bias and the Gauss–Markov value of the next sample, in place.
    """
    channels = out.shape[1]
    for k in range(truth.shape[0]):
        for c in range(channels):
            value = coefficients[GAIN, c] * truth[k, first + c] + memory[BIAS, c] + memory[MARKOV, c]
            value += coefficients[WHITE, c] * normals[k, c]
            out[k, c] = min(max(value, coefficients[LOW, c]), coefficients[HIGH, c])
            memory[BIAS, c] += coefficients[WALK, c] * normals[k, channels + c]
            memory[MARKOV, c] = (
                coefficients[KEEP, c] * memory[MARKOV, c] + coefficients[ADD, c] * normals[k, 2 * channels + c]
            )


@kernel(nogil=True, error_model="numpy")
def truths(
    x: Any,
    rates: int,
    dx: Any,
    force: Any,
    levers: Any,
    mounting: Any,
    mounting_quat: Any,
    field: Any,
    out: Any,
) -> None:
    """What ideal sensors at their places would read. Eq. 11.2, 11.3.

    `x` (k, states) begins with position, velocity, quaternion w x y z; its angular velocity and that of its derivative
    `dx` begin at the column `rates`. `force` (k, 3 or more): specific force at the body's origin. `levers` (4, 3):
    places in body axes. `mounting` (3, 3): columns are the IMU's axes in body axes, `mounting_quat` (4,) x y z w the
    same. `field` (3,): the Earth's, ENU. `out` (k, TRUTHS).
    """
    for k in range(x.shape[0]):
        qw, qx, qy, qz = x[k, 6], x[k, 7], x[k, 8], x[k, 9]
        r00, r01, r02, r10, r11, r12, r20, r21, r22 = rotation_matrix(qx, qy, qz, qw)
        px, py, pz, vx, vy, vz = x[k, 0], x[k, 1], x[k, 2], x[k, 3], x[k, 4], x[k, 5]
        wx, wy, wz = x[k, rates], x[k, rates + 1], x[k, rates + 2]
        tx, ty, tz = dx[k, rates], dx[k, rates + 1], dx[k, rates + 2]

        # specific force at the IMU: f + ω̇ × r + ω × (ω × r)
        lx, ly, lz = levers[IMU, 0], levers[IMU, 1], levers[IMU, 2]
        ux, uy, uz = wy * lz - wz * ly, wz * lx - wx * lz, wx * ly - wy * lx
        fx = force[k, 0] + ty * lz - tz * ly + wy * uz - wz * uy
        fy = force[k, 1] + tz * lx - tx * lz + wz * ux - wx * uz
        fz = force[k, 2] + tx * ly - ty * lx + wx * uy - wy * ux
        bx = r00 * field[0] + r10 * field[1] + r20 * field[2]
        by = r01 * field[0] + r11 * field[1] + r21 * field[2]
        bz = r02 * field[0] + r12 * field[1] + r22 * field[2]
        for c in range(3):
            out[k, F + c] = mounting[0, c] * fx + mounting[1, c] * fy + mounting[2, c] * fz
            out[k, W + c] = mounting[0, c] * wx + mounting[1, c] * wy + mounting[2, c] * wz
            out[k, ATTITUDE_ERROR + c] = 0.0
            out[k, FIELD + c] = mounting[0, c] * bx + mounting[1, c] * by + mounting[2, c] * bz
        ox, oy, oz, ow = mounting_quat[0], mounting_quat[1], mounting_quat[2], mounting_quat[3]
        out[k, Q] = qw * ox + qx * ow + qy * oz - qz * oy
        out[k, Q + 1] = qw * oy - qx * oz + qy * ow + qz * ox
        out[k, Q + 2] = qw * oz + qx * oy - qy * ox + qz * ow
        out[k, Q + 3] = qw * ow - qx * ox - qy * oy - qz * oz

        # GPS antenna
        lx, ly, lz = levers[GPS, 0], levers[GPS, 1], levers[GPS, 2]
        out[k, GPS_POSITION] = px + r00 * lx + r01 * ly + r02 * lz
        out[k, GPS_POSITION + 1] = py + r10 * lx + r11 * ly + r12 * lz
        out[k, GPS_POSITION + 2] = pz + r20 * lx + r21 * ly + r22 * lz
        ux, uy, uz = wy * lz - wz * ly, wz * lx - wx * lz, wx * ly - wy * lx
        out[k, GPS_VELOCITY] = vx + r00 * ux + r01 * uy + r02 * uz
        out[k, GPS_VELOCITY + 1] = vy + r10 * ux + r11 * uy + r12 * uz
        out[k, GPS_VELOCITY + 2] = vz + r20 * ux + r21 * uy + r22 * uz

        out[k, BODY_VELOCITY] = r00 * vx + r10 * vy + r20 * vz
        out[k, BODY_VELOCITY + 1] = r01 * vx + r11 * vy + r21 * vz
        out[k, BODY_VELOCITY + 2] = r02 * vx + r12 * vy + r22 * vz

        lx, ly, lz = levers[BARO, 0], levers[BARO, 1], levers[BARO, 2]
        out[k, BARO_Z] = pz + r20 * lx + r21 * ly + r22 * lz
        lx, ly, lz = levers[HEIGHT, 0], levers[HEIGHT, 1], levers[HEIGHT, 2]
        out[k, HEIGHT_PLACE] = px + r00 * lx + r01 * ly + r02 * lz
        out[k, HEIGHT_PLACE + 1] = py + r10 * lx + r11 * ly + r12 * lz
        out[k, HEIGHT_PLACE + 2] = pz + r20 * lx + r21 * ly + r22 * lz


@kernel(nogil=True, error_model="numpy")
def turned_by(truth: Any, error: Any, first: int, out: Any) -> None:
    """Attitudes in `truth`, turned by the rotation vectors (world axes) that begin at column `first` of `error`.

    -> out (k, 4), x y z w.
    """
    for k in range(out.shape[0]):
        ex, ey, ez = error[k, first], error[k, first + 1], error[k, first + 2]
        angle = math.sqrt(ex * ex + ey * ey + ez * ez)
        share = 0.5 if angle < 1e-9 else math.sin(0.5 * angle) / angle
        aw, ax, ay, az = math.cos(0.5 * angle), share * ex, share * ey, share * ez
        qx, qy, qz, qw = truth[k, Q], truth[k, Q + 1], truth[k, Q + 2], truth[k, Q + 3]
        out[k, 0] = aw * qx + ax * qw + ay * qz - az * qy
        out[k, 1] = aw * qy - ax * qz + ay * qw + az * qx
        out[k, 2] = aw * qz + ax * qy - ay * qx + az * qw
        out[k, 3] = aw * qw - ax * qx - ay * qy - az * qz


@kernel(nogil=True, error_model="numpy")
def turn_joints(
    dt: float,
    x: Any,
    rates: int,
    wheel: int,
    rotor: int,
    sign: Any,
    across: Any,
    lever: float,
    spin: Any,
    last: Any,
    out: Any,
) -> None:
    """Angles and rates of steering, wheels and rotors, integrated by the trapezoidal rule.

    `x` (k, states), rows of steps of `dt`; at the columns `rates`, `wheel` and `rotor` begin the angular velocity, the
    wheels' inertial spins, and the rotor speeds with the virtual steering angle behind them. `sign`, `across` (4,) and
    `lever` as in Eq. 5.1; `spin` (rotors,). `last` (8 + 2 rotors): angles of wheels and rotors, then their rates; those
    of the step before, in place. NaN rates: this is the first.
    `out` (k, 12 + 2 rotors): steering angles, wheel spins relative to the body (Eq. 11.5) and angles, rotor speeds and
    angles.
    """
    rotors = spin.size
    joints = 4 + rotors
    for k in range(x.shape[0]):
        tangent = math.tan(x[k, rotor + rotors])
        for i in range(4):
            own = sign[i] * tangent / (1.0 - across[i] * tangent / lever)
            out[k, i] = math.atan(own)
            carrier = (x[k, rates + 1] - own * x[k, rates]) / math.sqrt(1.0 + own * own)
            out[k, 4 + i] = x[k, wheel + i] - carrier
        for j in range(rotors):
            out[k, 12 + j] = spin[j] * x[k, rotor + j]
        for n in range(joints):
            first = 4 + n if n < 4 else 8 + n
            rate = out[k, first]
            before = last[joints + n]
            if before == before:
                last[n] += 0.5 * dt * (before + rate)
            last[joints + n] = rate
            out[k, 8 + n if n < 4 else 8 + rotors + n] = last[n]
