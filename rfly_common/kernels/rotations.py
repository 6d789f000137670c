"""Rotations inside compiled kernels; `frames` has them for arrays."""

from __future__ import annotations

import math

from rfly_common.kernels.jit import inlined_kernel, inner_kernel
from rfly_common.kernels.vectors import Vector

Quaternion = tuple[float, float, float, float]
"""x y z w."""


@inner_kernel
def rotation_matrix(
    x: float, y: float, z: float, w: float
) -> tuple[float, float, float, float, float, float, float, float, float]:
    """The nine numbers, row by row, of a quaternion of any norm but 0. As `frames.rotation_matrix`."""
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
def quaternion_product(a: Quaternion, b: Quaternion) -> Quaternion:
    """a · b."""
    return (
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
        a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
        a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
        a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
    )


@inlined_kernel
def rotation_quaternion(turn: Vector) -> Quaternion:
    """Return the unit quaternion of a rotation vector, rad."""
    x, y, z = turn
    angle = math.sqrt(x * x + y * y + z * z)
    share = 0.5 if angle < 1e-9 else math.sin(0.5 * angle) / angle
    return share * x, share * y, share * z, math.cos(0.5 * angle)
