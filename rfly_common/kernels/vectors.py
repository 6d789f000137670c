# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vectors, matrices and quaternions in kernels, as tuples, which stay in registers.

The one home of this algebra for compiled code; `rfly_common.frames` has it for arrays. Numbers may
be `Lanes` (see `lanes`), except where a function says otherwise.
"""

from __future__ import annotations

import math
from typing import Any

from rfly_common.kernels.jit import inlined_kernel, inner_kernel
from rfly_common.kernels.lanes import where

Vector = tuple[float, float, float]
Matrix = tuple[float, float, float, float, float, float, float, float, float]
"""3 x 3, row by row."""
Quaternion = tuple[float, float, float, float]
"""x, y, z, w."""

SMALL_ANGLE = 1e-9
"""Angle below which sin(angle / 2) / angle is ½ to rounding, rad."""


@inlined_kernel
def add(a: Vector, b: Vector) -> Vector:
    """Return a + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@inlined_kernel
def subtract(a: Vector, b: Vector) -> Vector:
    """Return a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@inlined_kernel
def scaled(factor: float, a: Vector) -> Vector:
    """Return factor · a."""
    return factor * a[0], factor * a[1], factor * a[2]


@inlined_kernel
def divided(a: Vector, divisor: float) -> Vector:
    """Return a / divisor."""
    return a[0] / divisor, a[1] / divisor, a[2] / divisor


@inlined_kernel
def dot(a: Vector, b: Vector) -> float:
    """Return a · b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inlined_kernel
def cross(a: Vector, b: Vector) -> Vector:
    """Return a × b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@inlined_kernel
def norm(a: Vector) -> float:
    """Return the length of a."""
    return math.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


@inlined_kernel
def chosen(condition: Any, a: Vector, b: Vector) -> Vector:
    """Return a where the condition holds, else b."""
    return (
        where(condition, a[0], b[0]),
        where(condition, a[1], b[1]),
        where(condition, a[2], b[2]),
    )


@inlined_kernel
def only_where(condition: Any, vector: Vector) -> Vector:
    """Return the vector where the condition holds, else 0."""
    return chosen(condition, vector, (0.0, 0.0, 0.0))


@inlined_kernel
def vector_at(array: Any, row: int, column: int) -> Vector:
    """Return three numbers of a row of an array (n, m), the first at `column`."""
    return array[row, column], array[row, column + 1], array[row, column + 2]


@inlined_kernel
def set_vector(array: Any, row: int, column: int, vector: Vector) -> None:
    """Write three numbers of a row of an array (n, m), the first at `column`."""
    array[row, column] = vector[0]
    array[row, column + 1] = vector[1]
    array[row, column + 2] = vector[2]


@inlined_kernel
def rotated(r: Matrix, a: Vector) -> Vector:
    """Return R a."""
    return (
        r[0] * a[0] + r[1] * a[1] + r[2] * a[2],
        r[3] * a[0] + r[4] * a[1] + r[5] * a[2],
        r[6] * a[0] + r[7] * a[1] + r[8] * a[2],
    )


@inlined_kernel
def rotated_back(r: Matrix, a: Vector) -> Vector:
    """Return Rᵀ a."""
    return (
        r[0] * a[0] + r[3] * a[1] + r[6] * a[2],
        r[1] * a[0] + r[4] * a[1] + r[7] * a[2],
        r[2] * a[0] + r[5] * a[1] + r[8] * a[2],
    )


@inlined_kernel
def matrix_at(array: Any) -> Matrix:
    """Return the nine numbers of an array's first three rows."""
    return (
        array[0, 0],
        array[0, 1],
        array[0, 2],
        array[1, 0],
        array[1, 1],
        array[1, 2],
        array[2, 0],
        array[2, 1],
        array[2, 2],
    )


@inlined_kernel
def set_matrix(array: Any, matrix: Matrix) -> None:
    """Write nine numbers to the first three rows of an array."""
    array[0, 0] = matrix[0]
    array[0, 1] = matrix[1]
    array[0, 2] = matrix[2]
    array[1, 0] = matrix[3]
    array[1, 1] = matrix[4]
    array[1, 2] = matrix[5]
    array[2, 0] = matrix[6]
    array[2, 1] = matrix[7]
    array[2, 2] = matrix[8]


@inner_kernel
def rotation_matrix(x: float, y: float, z: float, w: float) -> Matrix:
    """Return the rotation matrix of a quaternion of any norm but 0, as `frames.rotation_matrix`."""
    s = 2.0 / (x * x + y * y + z * z + w * w)
    return (
        1.0 - s * (y * y + z * z),
        s * (x * y - w * z),
        s * (x * z + w * y),
        s * (x * y + w * z),
        1.0 - s * (x * x + z * z),
        s * (y * z - w * x),
        s * (x * z - w * y),
        s * (y * z + w * x),
        1.0 - s * (x * x + y * y),
    )


@inlined_kernel
def quat_multiply(a: Quaternion, b: Quaternion) -> Quaternion:
    """Return a · b: the turn b, then the turn a."""
    return (
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
        a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
        a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
        a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
    )


@inlined_kernel
def quat_of_rotation_vector(v: Vector) -> Quaternion:
    """Return the unit quaternion that turns by |v| rad about v. Plain numbers only."""
    angle = norm(v)
    share = 0.5 if angle < SMALL_ANGLE else math.sin(0.5 * angle) / angle
    return share * v[0], share * v[1], share * v[2], math.cos(0.5 * angle)


@inlined_kernel
def vector_of(array: Any) -> Vector:
    """Return the first three numbers of an array (n,)."""
    return array[0], array[1], array[2]


@inlined_kernel
def matrix_row(r: Matrix, i: int) -> Vector:
    """Return row i of a matrix."""
    return r[3 * i], r[3 * i + 1], r[3 * i + 2]


@inlined_kernel
def matrix_column(r: Matrix, i: int) -> Vector:
    """Return column i of a matrix."""
    return r[i], r[i + 3], r[i + 6]
