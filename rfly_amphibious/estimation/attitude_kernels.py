"""Attitude of the nominal state: rotation matrix, small rotations, skew-symmetric blocks of
Jacobians.
"""

from __future__ import annotations

import math
from typing import Any

from rfly_amphibious.estimation import filter_layout as at
from rfly_common.kernels.jit import inner_kernel
from rfly_common.kernels.vectors import rotation_matrix


@inner_kernel
def attitude(x: Any, out: Any) -> None:
    """(3, 3) body -> world of the state."""
    q = at.QUATERNION
    r00, r01, r02, r10, r11, r12, r20, r21, r22 = rotation_matrix(
        x[q + 1], x[q + 2], x[q + 3], x[q]
    )
    out[0, 0] = r00
    out[0, 1] = r01
    out[0, 2] = r02
    out[1, 0] = r10
    out[1, 1] = r11
    out[1, 2] = r12
    out[2, 0] = r20
    out[2, 1] = r21
    out[2, 2] = r22


@inner_kernel
def rotate_attitude(x: Any, vx: float, vy: float, vz: float, world: bool) -> None:
    """Turns the attitude in x by a rotation vector in world axes, or in body axes."""
    angle = math.sqrt(vx * vx + vy * vy + vz * vz)
    share = 0.5 if angle < 1e-9 else math.sin(0.5 * angle) / angle
    aw = math.cos(0.5 * angle)
    ax = share * vx
    ay = share * vy
    az = share * vz
    bw = x[at.QUATERNION]
    bx = x[at.QUATERNION + 1]
    by = x[at.QUATERNION + 2]
    bz = x[at.QUATERNION + 3]
    if not world:
        aw, ax, ay, az, bw, bx, by, bz = bw, bx, by, bz, aw, ax, ay, az
    qw = aw * bw - ax * bx - ay * by - az * bz
    qx = aw * bx + ax * bw + ay * bz - az * by
    qy = aw * by - ax * bz + ay * bw + az * bx
    qz = aw * bz + ax * by - ay * bx + az * bw
    length = 1.0 / math.sqrt(qw * qw + qx * qx + qy * qy + qz * qz)
    x[at.QUATERNION] = length * qw
    x[at.QUATERNION + 1] = length * qx
    x[at.QUATERNION + 2] = length * qy
    x[at.QUATERNION + 3] = length * qz


@inner_kernel
def rotate_vector(r: Any, lever: Any, out: Any) -> None:
    """out = R lever"""
    for i in range(3):
        out[i] = r[i, 0] * lever[0] + r[i, 1] * lever[1] + r[i, 2] * lever[2]


@inner_kernel
def add_skew(
    out: Any, first_row: int, first: int, factor: float, a: float, b: float, c: float
) -> None:
    """out[first_row …, first …] += factor [(a, b, c)]×"""
    out[first_row, first + 1] -= factor * c
    out[first_row, first + 2] += factor * b
    out[first_row + 1, first] += factor * c
    out[first_row + 1, first + 2] -= factor * a
    out[first_row + 2, first] -= factor * b
    out[first_row + 2, first + 1] += factor * a
