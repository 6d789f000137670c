"""Vectors of three as tuples, which kernels keep in registers."""

from __future__ import annotations

from typing import Any

from rfly_common.kernels.jit import inlined_kernel
from rfly_common.kernels.lanes import where

Vector = tuple[float, float, float]
Matrix = tuple[float, float, float, float, float, float, float, float, float]
"""3 x 3, row by row"""


@inlined_kernel
def add(a: Vector, b: Vector) -> Vector:
    """a + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@inlined_kernel
def subtract(a: Vector, b: Vector) -> Vector:
    """Return a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@inlined_kernel
def scaled(factor: float, a: Vector) -> Vector:
    """factor · a."""
    return factor * a[0], factor * a[1], factor * a[2]


@inlined_kernel
def dot(a: Vector, b: Vector) -> float:
    """a · b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inlined_kernel
def cross(a: Vector, b: Vector) -> Vector:
    """a × b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@inlined_kernel
def rotated(r: Matrix, a: Vector) -> Vector:
    """R a."""
    return (
        r[0] * a[0] + r[1] * a[1] + r[2] * a[2],
        r[3] * a[0] + r[4] * a[1] + r[5] * a[2],
        r[6] * a[0] + r[7] * a[1] + r[8] * a[2],
    )


@inlined_kernel
def rotated_back(r: Matrix, a: Vector) -> Vector:
    """Rᵀ a."""
    return (
        r[0] * a[0] + r[3] * a[1] + r[6] * a[2],
        r[1] * a[0] + r[4] * a[1] + r[7] * a[2],
        r[2] * a[0] + r[5] * a[1] + r[8] * a[2],
    )


@inlined_kernel
def only_where(condition: Any, vector: Vector) -> Vector:
    """The vector where the condition holds, else 0."""
    return (
        where(condition, vector[0], 0.0),
        where(condition, vector[1], 0.0),
        where(condition, vector[2], 0.0),
    )
