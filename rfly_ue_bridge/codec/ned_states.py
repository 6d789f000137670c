# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicle states in RflySim3D's terms: NED, Euler angles of FRD, motor speeds in rpm.

Whole arrays. Impossible states are filtered out here, because the codec packs whatever it gets.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Bools, Rows
from rfly_common.frames import (
    enu_to_ned,
    flu_to_frd,
    quat_enu_flu_to_ned_frd,
    quat_multiply,
    quat_ned_flu_to_ned_frd,
    quat_rotate,
    quat_to_euler,
)
from rfly_common.vehicle_states import (
    FARTHEST,
    MAX_MOTORS,
    NOT_FINITE,
    TOO_FAR,
    VehicleStates,
    usable_states,
)

Array = NDArray[np.floating[Any]]

RPM_PER_RAD_S = 60.0 / (2.0 * math.pi)
REMOVED_DEPTH = 1000.0
"""Depth below its place at which a removed vehicle is hidden, m."""
ALMOST_ONE = np.nextafter(np.float32(1), np.float32(2))
"""Smallest scale above 1, sent to reset a model to its natural size.

Packets without a scale may leave a model as large as it was.
"""
_MAX_FLOAT32 = float(np.finfo(np.float32).max)


@dataclass(frozen=True, eq=False)
class NedStates(Rows):
    """States of n vehicles as the packets want them.

    Every value is finite, also after rounding to the packet's float.
    """

    id: NDArray[np.int32]
    vehicle_type: NDArray[np.int32]
    position_ned: Array
    """Position, (n, 3), m."""
    euler: Array
    """Roll, pitch, yaw of FRD in NED, (n, 3), rad."""
    velocity_ned: NDArray[np.float32]
    """Velocity, (n, 3), m/s."""
    motor_speed_rpm: NDArray[np.float32]
    """Motor speeds, (n, 8), rpm; motors that the vehicle does not have are 0."""
    motor_speed_mean_rpm: NDArray[np.float32]
    """Mean speed of the vehicle's own motors, (n,), rpm."""
    scale: NDArray[np.float32]
    """Scale, (n, 3)."""
    fit_ground: Bools
    """True where RflySim3D keeps the vehicle on the ground, (n,)."""

    def to_removal(self) -> NedStates:
        """Return the states that hide these vehicles in a window that cannot delete them.

        Each stands REMOVED_DEPTH below its place, in its natural size, which the next vehicle with
        its id inherits.
        """
        scaled = (self.scale != 1).any(axis=1, keepdims=True)
        still = {
            name: np.zeros_like(getattr(self, name)) for name in ("velocity_ned", "motor_speed_rpm")
        }
        return dataclasses.replace(
            self,
            position_ned=self.position_ned + np.array((0.0, 0.0, REMOVED_DEPTH)),
            motor_speed_mean_rpm=np.zeros_like(self.motor_speed_mean_rpm),
            scale=np.where(scaled, ALMOST_ONE, np.float32(1)) * np.ones_like(self.scale),
            fit_ground=np.zeros_like(self.fit_ground),
            **still,
        )


def states_to_ned(
    states: VehicleStates,
    axes: str,
    translation: ArrayLike | None = None,
    quat_xyzw: ArrayLike | None = None,
) -> tuple[NedStates, dict[str, int]]:
    """Return the vehicles that can be shown, in their order, and how many were left out, by reason.

    `axes` are the world frame's: enu or ned. For states in another frame, `translation` (3,) m and
    `quat_xyzw` (4,) are the transform of that frame into the world frame. Vehicles are left out if
    position, orientation, velocity, motor speed or scale holds NaN, infinity, or a number that
    becomes infinite as the packet's float (`not_finite`), if a coordinate is beyond `FARTHEST`
    (`too_far`), or if the quaternion's norm differs from 1 by more than 1e-3 (`bad_quaternion`). A
    smaller difference is normalised.
    """
    with np.errstate(all="ignore"):  # overflow and NaN are found below
        usable, dropped = usable_states(states)
        if dropped:
            states = states.select(usable)
        orientation: Array = states.orientation
        position: Array = states.position
        velocity: Array = states.velocity

        # into the world frame
        if quat_xyzw is not None:
            orientation = quat_multiply(np.asarray(quat_xyzw, dtype=float), orientation)
            position = quat_rotate(quat_xyzw, position)
            velocity = quat_rotate(quat_xyzw, velocity)
        if translation is not None:
            position = position + np.asarray(translation, dtype=float)

        # into NED
        if axes == "enu":
            position = enu_to_ned(position)
            velocity = enu_to_ned(velocity)
            orientation = quat_enu_flu_to_ned_frd(orientation)
        elif axes == "ned":
            orientation = quat_ned_flu_to_ned_frd(orientation)
        else:
            raise ValueError(f"axes: {axes!r}, expected 'enu' or 'ned'")

        # Euler angles need no unit norm: only quotients enter
        euler = quat_to_euler(orientation)
        velocity = velocity.astype(np.float32, copy=False)
        rpm, mean_rpm = _motor_speeds_rpm(states.motor_speed)
        ned = NedStates(
            id=states.id,
            vehicle_type=states.vehicle_type,
            position_ned=_without_negative_zero(position, states.position),
            euler=_without_negative_zero(euler),
            velocity_ned=_without_negative_zero(velocity, states.velocity),
            motor_speed_rpm=rpm,
            motor_speed_mean_rpm=mean_rpm,
            scale=states.scale,
            fit_ground=states.fit_ground,
        )

        # in the world, and finite as the packets' floats
        if not _all_within(ned.position_ned, FARTHEST):
            near = (np.abs(ned.position_ned) <= FARTHEST).all(axis=1)
            dropped[TOO_FAR] = int(np.count_nonzero(~near))
            ned = ned.select(near)
        in_range = _fits_the_floats(ned)
        if not in_range.all():
            dropped[NOT_FINITE] = dropped.get(NOT_FINITE, 0) + int(np.count_nonzero(~in_range))
            ned = ned.select(in_range)
    return ned, dropped


def _motor_speeds_rpm(
    motor_speed: NDArray[np.floating[Any]],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the speeds of 8 motors, (n, 8), and the mean over the vehicle's own, (n,), rpm."""
    n, motors = motor_speed.shape
    rpm = np.zeros((n, MAX_MOTORS), np.float32)
    mean = np.zeros(n, np.float32)
    if motors:
        exact = np.multiply(motor_speed.T, RPM_PER_RAD_S, dtype=np.float64, order="C")
        rpm[:, :motors] = exact.T
        # adding rows is several times as quick as adding along each vehicle
        mean[:] = exact.sum(axis=0) / motors
    return rpm, mean


def body_to_frame(
    orientation: ArrayLike, vector_body: ArrayLike, child_frame_id: str
) -> NDArray[np.floating[Any]]:
    """Return a twist's vector (3,) in the frame that `orientation` (4,) rotates into.

    It is given in the axes of `child_frame_id`: FLU, or FRD where the frame's name ends in `_frd`;
    the orientation is always that of FLU. A quaternion of any norm is taken as a direction;
    `states_to_ned` finds what is wrong with it.
    """
    q = np.asarray(orientation, dtype=float)
    with np.errstate(all="ignore"):
        q = q / np.sqrt(q @ q)
        vector = np.asarray(vector_body, dtype=float)
        return quat_rotate(q, flu_to_frd(vector) if child_frame_id.endswith("_frd") else vector)


def _without_negative_zero(values: Any, original: Any = None) -> Any:
    """Return the values with 0 for -0.0, as the SDK sends it; a copy where they are `original`.

    A turned sign leaves -0.0.
    """
    return np.add(values, values.dtype.type(0.0), out=None if values is original else values)


def _all_within(values: Array, limit: float) -> bool:
    """Return whether all numbers are from -limit to limit, by a quick look at the extreme ones."""
    return not values.size or bool(values.min() >= -limit and values.max() <= limit)


def _fits_the_floats(ned: NedStates) -> Bools:
    """Return False where a value became infinite on its way to float."""
    arrays = (ned.velocity_ned, ned.motor_speed_rpm)  # and the mean of finite speeds is finite
    if all(_all_within(array, _MAX_FLOAT32) for array in arrays):
        return np.ones(len(ned), np.bool_)
    return np.logical_and.reduce([np.isfinite(array).all(axis=1) for array in arrays])
