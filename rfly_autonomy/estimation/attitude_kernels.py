# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Attitude of the filter's nominal state, and skew-symmetric blocks of Jacobians."""

from __future__ import annotations

import math
from typing import Any

from rfly_common.kernels.jit import inner_kernel
from rfly_common.kernels.vectors import (
    Matrix,
    Quaternion,
    Vector,
    quat_multiply,
    quat_of_rotation_vector,
    rotation_matrix,
)


@inner_kernel
def attitude_quaternion(x: Any) -> Quaternion:
    """Return the state's attitude as x y z w; the record has w x y z."""
    return x.quaternion[1], x.quaternion[2], x.quaternion[3], x.quaternion[0]


@inner_kernel
def attitude(x: Any) -> Matrix:
    """Return the rotation body -> world of the state."""
    qx, qy, qz, qw = attitude_quaternion(x)
    return rotation_matrix(qx, qy, qz, qw)


@inner_kernel
def set_attitude(x: Any, quaternion: Quaternion) -> None:
    """Set the state's attitude to a quaternion x y z w, normalised."""
    qx, qy, qz, qw = quaternion
    scale = 1.0 / math.sqrt(qw * qw + qx * qx + qy * qy + qz * qz)
    x.quaternion[0] = scale * qw
    x.quaternion[1] = scale * qx
    x.quaternion[2] = scale * qy
    x.quaternion[3] = scale * qz


@inner_kernel
def turn_in_world(x: Any, turn: Vector) -> None:
    """Turn the state's attitude by a rotation vector (rad) in world axes."""
    set_attitude(x, quat_multiply(quat_of_rotation_vector(turn), attitude_quaternion(x)))


@inner_kernel
def turn_in_body(x: Any, turn: Vector) -> None:
    """Turn the state's attitude by a rotation vector (rad) in body axes."""
    set_attitude(x, quat_multiply(attitude_quaternion(x), quat_of_rotation_vector(turn)))


@inner_kernel
def add_skew(out: Any, first_row: int, first: int, factor: float, vector: Vector) -> None:
    """Add factor [vector]× to out[first_row …, first …]."""
    a, b, c = vector
    out[first_row, first + 1] -= factor * c
    out[first_row, first + 2] += factor * b
    out[first_row + 1, first] += factor * c
    out[first_row + 1, first + 2] -= factor * a
    out[first_row + 2, first] -= factor * b
    out[first_row + 2, first + 1] += factor * a
