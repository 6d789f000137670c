# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Frame conversions: the one place of every sign flip.

World frames: ENU (x east, y north, z up; REP 103) and NED (x north, y east, z down; RflySim).
Body frames: FLU (x forward, y left, z up; REP 103) and FRD (x forward, y right, z down; RflySim).
Quaternions are xyzw, as in ROS messages. A `quat_A_B` rotates vectors given in B into A.
Euler angles are (roll, pitch, yaw), applied yaw first (intrinsic z-y'-x''), radians.

A turned sign is written 0.0 - z: zero stays 0.0, whose bytes on the wire differ from those of -0.0.
"""

from __future__ import annotations

import math
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Floats

Array = NDArray[np.floating[Any]]
Numbers = tuple[float, ...]

_SQRT_HALF = math.sqrt(0.5)

QUAT_ENU_NED_XYZW = (_SQRT_HALF, _SQRT_HALF, 0.0, 0.0)
"""Rotates NED vectors into ENU and back: half a turn about the horizontal north-east axis."""

QUAT_FLU_OPTICAL_XYZW = (-0.5, 0.5, -0.5, 0.5)
"""Rotates optical vectors (x right, y down, z forward; REP 103) of a camera into its FLU axes."""


def _last_axis(values: ArrayLike, size: int, name: str) -> Array:
    array = np.asarray(values)
    if array.dtype.kind != "f":
        array = array.astype(float)
    if array.shape[-1:] != (size,):
        raise ValueError(f"{name}: expected shape (..., {size}), got {array.shape}")
    return array


def _swapped(array: Array, back: bool = False) -> Array:
    """Move the last axis to the front, or back.

    A transpose does so for two axes; `np.moveaxis` itself takes noticeable time.
    """
    if array.ndim <= 2:
        return array.T
    return np.moveaxis(array, 0, -1) if back else np.moveaxis(array, -1, 0)


def ned_to_enu(vector_ned: ArrayLike) -> Array:
    """Convert (..., 3) NED to ENU, any unit (positions, velocities, normals). REP 103.

    The conversion is its own inverse.
    """
    v = _last_axis(vector_ned, 3, "vector_ned")
    return np.stack([v[..., 1], v[..., 0], 0.0 - v[..., 2]], axis=-1)


def enu_to_ned(vector_enu: ArrayLike) -> Array:
    """Convert (..., 3) ENU to NED, any unit. Its own inverse. REP 103."""
    v = _last_axis(vector_enu, 3, "vector_enu")
    out = np.empty(v.shape, v.dtype)
    out[..., 0] = v[..., 1]
    out[..., 1] = v[..., 0]
    np.subtract(0.0, v[..., 2], out=out[..., 2])
    return out


def flu_to_frd(vector_flu: ArrayLike) -> Array:
    """Convert (..., 3) FLU to FRD, any unit (body rates, accelerations). Its own inverse."""
    v = _last_axis(vector_flu, 3, "vector_flu")
    return np.stack([v[..., 0], 0.0 - v[..., 1], 0.0 - v[..., 2]], axis=-1)


@overload
def up_to_down(height_up: float) -> float: ...
@overload
def up_to_down(height_up: NDArray[Any]) -> NDArray[Any]: ...
def up_to_down(height_up: Any) -> Any:
    """Convert a height (z up) to z down, or back; floats and arrays, any unit."""
    return 0.0 - height_up


def quat_multiply(a_xyzw: ArrayLike, b_xyzw: ArrayLike) -> Array:
    """Return the Hamilton product a ⊗ b of (..., 4) quaternions: it rotates by b, then by a."""
    a = _last_axis(a_xyzw, 4, "a_xyzw")
    b = _last_axis(b_xyzw, 4, "b_xyzw")
    (ax, ay, az, aw), (bx, by, bz, bw) = _components(a, b)
    return _joined(
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    )


def _components(*arrays: Array) -> list[list[Any]]:
    """Return the components along the last axis.

    A single float64 vector gives plain numbers, which are several times as fast as NumPy's.
    """
    if all(array.ndim == 1 and array.dtype == np.float64 for array in arrays):
        return [array.tolist() for array in arrays]
    return [[array[..., i] for i in range(array.shape[-1])] for array in arrays]


def _joined(*components: Any) -> Array:
    """Return the array of components: the reverse of `_components`."""
    return (
        np.array(components) if isinstance(components[0], float) else np.stack(components, axis=-1)
    )


def quat_conjugate(quat_xyzw: ArrayLike) -> Array:
    """Return the inverse rotation of unit quaternions (..., 4)."""
    q = _last_axis(quat_xyzw, 4, "quat_xyzw")
    return np.concatenate([-q[..., :3], q[..., 3:]], axis=-1)


def quat_slerp(a_xyzw: Floats, b_xyzw: Floats, share: Floats) -> Floats:
    """Interpolate from a to b, (n, 4), by the shortest turn at constant rate.

    `share` (n, 1) is the part of the turn. The norm is 1 to within 1e-9.
    """
    cosine = np.einsum("ij,ij->i", a_xyzw, b_xyzw)[:, None]
    b = np.where(cosine < 0.0, -b_xyzw, b_xyzw)

    angle = np.arccos(np.minimum(np.abs(cosine), 1.0))
    small = angle < 1e-4
    sine = np.where(small, 1.0, np.sin(angle))
    left = np.where(small, 1.0 - share, np.sin((1.0 - share) * angle) / sine)
    right = np.where(small, share, np.sin(share * angle) / sine)

    return np.asarray(left * a_xyzw + right * b)


def rotation_vectors(quat_xyzw: Array) -> Floats:
    """Return the rotation vectors (n, 3), rad, at most π long, of unit quaternions (n, 4)."""
    turn = quat_xyzw * np.where(quat_xyzw[:, 3:] < 0.0, -1.0, 1.0)
    length = np.linalg.norm(turn[:, :3], axis=1, keepdims=True)
    angle = 2.0 * np.arctan2(length, turn[:, 3:])
    factor = np.divide(angle, length, out=np.full_like(length, 2.0), where=length > 1e-12)
    return np.asarray(turn[:, :3] * factor)


def quat_rotate(quat_a_b_xyzw: ArrayLike, vector_b: ArrayLike) -> Array:
    """Express vectors (..., 3) given in B in A. Quaternions (..., 4) have unit norm."""
    q = _last_axis(quat_a_b_xyzw, 4, "quat_a_b_xyzw")
    v = _last_axis(vector_b, 3, "vector_b")
    (x, y, z, w), (v0, v1, v2) = _components(q, v)

    t0 = 2.0 * (y * v2 - z * v1)
    t1 = 2.0 * (z * v0 - x * v2)
    t2 = 2.0 * (x * v1 - y * v0)

    return _joined(
        v0 + w * t0 + (y * t2 - z * t1),
        v1 + w * t1 + (z * t0 - x * t2),
        v2 + w * t2 + (x * t1 - y * t0),
    )


def rotation_matrix(quat_a_b_xyzw: ArrayLike) -> Floats:
    """Return the matrices (..., 3, 3) of quaternions (..., 4) of any norm but 0.

    R v_b = v_a; the columns are B's axes in A.
    """
    q = np.asarray(quat_a_b_xyzw, dtype=np.float64)

    # plain numbers are several times as fast as NumPy's: a controller does this every tick
    if q.ndim == 1:
        return np.array(_rotation_rows(*(q / math.sqrt(q @ q)).tolist()))

    q = np.moveaxis(q / np.sqrt(np.einsum("...i,...i", q, q))[..., None], -1, 0)
    return np.ascontiguousarray(np.moveaxis(np.array(_rotation_rows(*q)), (0, 1), (-2, -1)))


def _rotation_rows(x: Any, y: Any, z: Any, w: Any) -> tuple[tuple[Any, ...], ...]:
    """Return the rows of the rotation matrix of a unit quaternion, in numbers or arrays."""
    return (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )


def quat_enu_flu_to_ned_frd(quat_enu_flu_xyzw: ArrayLike) -> Array:
    """Convert (..., 4) attitudes FLU -> ENU (ROS, frame `map`) to FRD -> NED (RflySim).

    q_ned_frd = q_ned_enu ⊗ q_enu_flu ⊗ q_flu_frd, multiplied out: no rotation matrix, and exact
    except for one factor √½.
    """
    q = _last_axis(quat_enu_flu_xyzw, 4, "quat_enu_flu_xyzw")
    x, y, z, w = (q[..., i] for i in range(4))

    rows = np.empty((4, *q.shape[:-1]), q.dtype)
    rows[0] = x + y
    rows[1] = x - y
    rows[2] = w - z
    rows[3] = w + z
    rows *= _SQRT_HALF

    return _swapped(rows, back=True)


def quat_ned_frd_to_enu_flu(quat_ned_frd_xyzw: ArrayLike) -> Array:
    """Convert (..., 4) attitudes FRD -> NED to FLU -> ENU.

    The formula is that of the other direction, which is its own inverse.
    """
    return quat_enu_flu_to_ned_frd(quat_ned_frd_xyzw)


def quat_ned_flu_to_ned_frd(quat_ned_flu_xyzw: ArrayLike) -> Array:
    """Convert (..., 4) attitudes FLU -> NED (ROS, frame `map_ned`) to FRD -> NED.

    (1, 0, 0, 0) is level and points north.
    """
    q = _last_axis(quat_ned_flu_xyzw, 4, "quat_ned_flu_xyzw")
    x, y, z, w = (q[..., i] for i in range(4))
    return np.stack([-w, -z, y, x], axis=-1)


def quat_ned_frd_to_ned_flu(quat_ned_frd_xyzw: ArrayLike) -> Array:
    """Convert (..., 4) attitudes FRD -> NED to FLU -> NED, the ROS orientation in `map_ned`."""
    q = _last_axis(quat_ned_frd_xyzw, 4, "quat_ned_frd_xyzw")
    x, y, z, w = (q[..., i] for i in range(4))
    return np.stack([w, z, -y, -x], axis=-1)


def quat_to_euler(quat_xyzw: ArrayLike) -> Array:
    """Convert quaternions (..., 4) to roll, pitch, yaw (..., 3), rad.

    Roll and yaw are in (-π, π], pitch in [-π/2, π/2]. Half sum and half difference of roll and yaw
    stay exact at pitch ±90°, where the usual formula loses one of them (Bernardes and Viollet, PLoS
    ONE 17(11), 2022, doi 10.1371/journal.pone.0276302; for z-y'-x'').
    """
    q = _last_axis(quat_xyzw, 4, "quat_xyzw")
    # arctan2 is several times as fast on contiguous rows
    x, y, z, w = np.ascontiguousarray(_swapped(q))
    a = x + z
    b = w - y
    c = z - x
    d = w + y

    half_sum = np.arctan2(a, b)
    half_difference = np.arctan2(c, d)

    # roll and yaw, which are at most one turn outside
    euler = np.empty((3, *q.shape[:-1]))
    turning = euler[::2]
    turning[0] = half_sum - half_difference
    turning[1] = half_sum + half_difference
    turning -= 2 * math.pi * ((turning > math.pi).astype(np.int8) - (turning <= -math.pi))

    # no hypot: its care for numbers near 1e±160 takes five times as long
    euler[1] = 2.0 * np.arctan2(np.sqrt(d * d + c * c), np.sqrt(b * b + a * a)) - math.pi / 2
    return np.ascontiguousarray(_swapped(euler, back=True))


def euler_to_quat(euler_rpy: ArrayLike) -> Array:
    """Convert (..., 3) roll, pitch, yaw, rad, to quaternions (..., 4), xyzw, of unit norm."""
    half = _last_axis(euler_rpy, 3, "euler_rpy") * 0.5
    cr, cp, cy = (np.cos(half[..., i]) for i in range(3))
    sr, sp, sy = (np.sin(half[..., i]) for i in range(3))
    return np.stack(
        [
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
            cr * cp * cy + sr * sp * sy,
        ],
        axis=-1,
    )


def yaw_ned_to_enu(yaw_ned: ArrayLike) -> Array:
    """Convert a heading clockwise from north to a yaw counter-clockwise from east, rad, in (-π, π].

    The conversion is its own inverse.
    """
    return wrap_angle(math.pi / 2 - np.asarray(yaw_ned, dtype=float))


def wrap_angle(angle: ArrayLike) -> Array:
    """Wrap angles to (-π, π]; an angle inside stays the same bit by bit."""
    a = np.asarray(angle, dtype=float)
    outside = ~((a > -math.pi) & (a <= math.pi))  # True for NaN too, which stays NaN
    wrapped = a.copy()
    if outside.any():
        wrapped[outside] = math.pi - np.mod(math.pi - a[outside], 2 * math.pi)
    return wrapped


def pose_enu_to_ned_euler(
    x: float, y: float, z: float, qx: float, qy: float, qz: float, qw: float
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Convert one pose of base_link in ENU to position NED and roll, pitch, yaw of FRD in NED.

    Arguments and results are plain floats.
    """
    return (y, x, 0.0 - z), _euler_ned_frd(
        (qx + qy) * _SQRT_HALF,
        (qx - qy) * _SQRT_HALF,
        (qw - qz) * _SQRT_HALF,
        (qw + qz) * _SQRT_HALF,
    )


def pose_ned_to_ned_euler(
    x: float, y: float, z: float, qx: float, qy: float, qz: float, qw: float
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Convert one pose of base_link (FLU) in NED to a position and Euler angles.

    The position is in NED; roll, pitch and yaw are those of FRD in NED. Arguments and results are
    plain floats.
    """
    return (x, y, z), _euler_ned_frd(-qw, -qz, qy, qx)


def pose_ned_euler_to_enu(position_ned: Numbers, euler: Numbers) -> tuple[Numbers, Numbers]:
    """Convert position NED and Euler angles to position ENU and quaternion FLU -> ENU.

    The angles are roll, pitch and yaw of FRD in NED. Arguments and results are plain floats,
    quaternions xyzw.
    """
    x, y, z, w = _quat_ned_frd(*euler)
    quat = ((x + y) * _SQRT_HALF, (x - y) * _SQRT_HALF, (w - z) * _SQRT_HALF, (w + z) * _SQRT_HALF)
    return vector_ned_to_enu(position_ned), quat


def pose_ned_euler_to_ned(position_ned: Numbers, euler: Numbers) -> tuple[Numbers, Numbers]:
    """Convert position NED and Euler angles to position and quaternion FLU -> NED.

    The angles are roll, pitch and yaw of FRD in NED. Arguments and results are plain floats,
    quaternions xyzw.
    """
    x, y, z, w = _quat_ned_frd(*euler)
    return position_ned, (w, z, 0.0 - y, 0.0 - x)


def vector_ned_to_enu(vector_ned: Numbers) -> Numbers:
    """Return `ned_to_enu` of one vector of plain floats."""
    x, y, z = vector_ned
    return y, x, 0.0 - z


def _quat_ned_frd(roll: float, pitch: float, yaw: float) -> tuple[float, float, float, float]:
    """Return `euler_to_quat` of plain floats."""
    cr = math.cos(0.5 * roll)
    cp = math.cos(0.5 * pitch)
    cy = math.cos(0.5 * yaw)
    sr = math.sin(0.5 * roll)
    sp = math.sin(0.5 * pitch)
    sy = math.sin(0.5 * yaw)
    return (
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
        cr * cp * cy + sr * sp * sy,
    )


def _euler_ned_frd(x: float, y: float, z: float, w: float) -> tuple[float, float, float]:
    """Return `quat_to_euler` of plain floats."""
    half_sum = math.atan2(x + z, w - y)
    half_difference = math.atan2(z - x, w + y)
    pitch = 2.0 * math.atan2(math.hypot(w + y, z - x), math.hypot(w - y, x + z)) - math.pi / 2

    roll = half_sum - half_difference
    yaw = half_sum + half_difference

    # wrapped in place: one more call for each angle is noticeable in the delay of a pose
    if not -math.pi < roll <= math.pi:
        roll += -2 * math.pi if roll > 0 else 2 * math.pi
    if not -math.pi < yaw <= math.pi:
        yaw += -2 * math.pi if yaw > 0 else 2 * math.pi

    return roll, pitch, yaw
