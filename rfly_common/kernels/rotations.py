"""Rotations inside compiled kernels; `frames` has them for arrays."""

from __future__ import annotations

from typing import Any

from rfly_common.kernels.jit import inlined_kernel, inner_kernel
from rfly_common.kernels.vectors import Vector, add, cross, scaled

Quaternion = tuple[float, float, float, float]
"""w x y z, body -> world."""


@inner_kernel
def rotation_matrix(
    x: float, y: float, z: float, w: float
) -> tuple[float, float, float, float, float, float, float, float, float]:
    """Return the rotation matrix, row by row, of a quaternion of any norm but 0."""
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
def quaternion(array: Any) -> Quaternion:
    """Return the four numbers of an array."""
    return array[0], array[1], array[2], array[3]


@inlined_kernel
def quaternion_rate(q: Quaternion, rates: Vector) -> Quaternion:
    """Return dq/dt of a body that turns at `rates`, rad/s, body axes."""
    w, x, y, z = q
    roll, pitch, yaw = rates
    return (
        -0.5 * (x * roll + y * pitch + z * yaw),
        0.5 * (w * roll + y * yaw - z * pitch),
        0.5 * (w * pitch + z * roll - x * yaw),
        0.5 * (w * yaw + x * pitch - y * roll),
    )


@inlined_kernel
def turned_back(q: Quaternion, v: Vector) -> Vector:
    """Return Rᵀ v, with the rotation R of a quaternion of any norm but 0."""
    w, x, y, z = q
    axis = (x, y, z)
    twice = scaled(2.0 / (w * w + x * x + y * y + z * z), cross(v, axis))
    return add(v, add(scaled(w, twice), cross(twice, axis)))
