"""Vectors of three as tuples, which kernels keep in registers."""

from __future__ import annotations

from typing import Any

from rfly_common.kernels.jit import inlined_kernel
from rfly_common.kernels.lanes import where

Vector = tuple[float, float, float]
Matrix = tuple[float, float, float, float, float, float, float, float, float]
"""3 x 3 matrix, row by row."""


@inlined_kernel
def vector(array: Any) -> Vector:
    """Return the three numbers of an array."""
    return array[0], array[1], array[2]


@inlined_kernel
def set_vector(array: Any, value: Vector) -> None:
    """Set the three numbers of an array."""
    array[0] = value[0]
    array[1] = value[1]
    array[2] = value[2]


@inlined_kernel
def row(array: Any, i: int) -> Vector:
    """Return row i of an (n, 3) array."""
    return array[i, 0], array[i, 1], array[i, 2]


@inlined_kernel
def set_row(array: Any, i: int, value: Vector) -> None:
    """Set row i of an (n, 3) array."""
    array[i, 0] = value[0]
    array[i, 1] = value[1]
    array[i, 2] = value[2]


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
def dot(a: Vector, b: Vector) -> float:
    """Return a · b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inlined_kernel
def cross(a: Vector, b: Vector) -> Vector:
    """Return a × b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


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
def only_where(condition: Any, vector: Vector) -> Vector:
    """Return the vector where the condition holds, else 0."""
    return (
        where(condition, vector[0], 0.0),
        where(condition, vector[1], 0.0),
        where(condition, vector[2], 0.0),
    )
