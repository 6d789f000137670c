# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vectors and quaternions in the fields of records, for kernels.

The order of a quaternion is w x y z, body -> world.
"""

from __future__ import annotations

from typing import Any

from rfly_common.kernels.jit import inlined_kernel
from rfly_common.kernels.vectors import Vector, add, cross, scaled

Attitude = tuple[float, float, float, float]
"""Quaternion w x y z, body -> world."""


@inlined_kernel
def vector(field: Any) -> Vector:
    """Return the three numbers of a field."""
    return field[0], field[1], field[2]


@inlined_kernel
def set_vector(field: Any, value: Vector) -> None:
    """Set the three numbers of a field."""
    field[0] = value[0]
    field[1] = value[1]
    field[2] = value[2]


@inlined_kernel
def row(field: Any, i: int) -> Vector:
    """Return row i of a field (n, 3)."""
    return field[i, 0], field[i, 1], field[i, 2]


@inlined_kernel
def set_row(field: Any, i: int, value: Vector) -> None:
    """Set row i of a field (n, 3)."""
    field[i, 0] = value[0]
    field[i, 1] = value[1]
    field[i, 2] = value[2]


@inlined_kernel
def column(field: Any, i: int) -> Vector:
    """Return column i of a field (3, n)."""
    return field[0, i], field[1, i], field[2, i]


@inlined_kernel
def set_column(field: Any, i: int, value: Vector) -> None:
    """Set column i of a field (3, n)."""
    field[0, i] = value[0]
    field[1, i] = value[1]
    field[2, i] = value[2]


@inlined_kernel
def quaternion(field: Any) -> Attitude:
    """Return the four numbers of a field."""
    return field[0], field[1], field[2], field[3]


@inlined_kernel
def quaternion_rate(q: Attitude, rates: Vector) -> Attitude:
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
def turned_back(q: Attitude, v: Vector) -> Vector:
    """Return Rᵀ v, with the rotation R of a quaternion of any norm but 0."""
    w, x, y, z = q
    axis = (x, y, z)
    twice = scaled(2.0 / (w * w + x * x + y * y + z * z), cross(v, axis))
    return add(v, add(scaled(w, twice), cross(twice, axis)))
