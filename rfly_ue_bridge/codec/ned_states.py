"""Vehicle states in RflySim3D's terms: NED, Euler angles of FRD, motor speeds in rpm.

Whole arrays, and the filter that keeps everything from the wire that no vehicle can be: the codec
packs what it gets.
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
from rfly_common.vehicle_states import MAX_MOTORS, NOT_FINITE, VehicleStates, usable_states

Array = NDArray[np.floating[Any]]

RPM_PER_RAD_S = 60.0 / (2.0 * math.pi)
REMOVED_DEPTH = 1000.0
"""m below its place"""
ALMOST_ONE = np.nextafter(np.float32(1), np.float32(2))
"""a scale of 1 that is sent although it is 1: packets without a scale may leave a model as large as
it was
"""
_MAX_FLOAT32 = float(np.finfo(np.float32).max)


@dataclass(frozen=True, eq=False)
class NedStates(Rows):
    """n vehicles as the packets want them; every value finite, also after rounding to the packet's
    float.
    """

    id: NDArray[np.int32]
    vehicle_type: NDArray[np.int32]
    position_ned: Array
    """(n, 3) m"""
    euler: Array
    """(n, 3) rad: roll, pitch, yaw of FRD in NED"""
    velocity_ned: NDArray[np.float32]
    """(n, 3) m/s"""
    motor_speed_rpm: NDArray[np.float32]
    """(n, 8); motors that the vehicle has not are 0"""
    motor_speed_mean_rpm: NDArray[np.float32]
    """(n,) mean over the vehicle's own motors"""
    scale: NDArray[np.float32]
    """(n, 3)"""
    fit_ground: Bools
    """(n,)"""

    def to_removal(self) -> NedStates:
        """What takes them out of sight: no packet deletes a vehicle of RflySim3D.

        Each stands REMOVED_DEPTH below its place, in its natural size, which whoever gets its id
        next inherits.
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
    """The vehicles that can be shown, in their order, and how many were left out by reason.

    `axes` are the world frame's: enu or ned. For states in another frame, `translation` (3,) m and
    `quat_xyzw` (4,) are the transform of that frame into the world frame. Left out are vehicles
    with a NaN or infinity in position, orientation, velocity, motor speed or scale, or with a
    number that the packet's float would turn into infinity (`not_finite`), and those whose
    quaternion's norm differs from 1 by more than 1e-3 (`bad_quaternion`). A smaller difference is
    normalised.
    """
    with np.errstate(all="ignore"):  # whatever overflows or is NaN is found below, and left out
        usable, dropped = usable_states(states)
        if dropped:
            states = states.select(usable)
        n = len(states)
        orientation: Array = states.orientation
        position: Array = states.position
        velocity: Array = states.velocity
        if quat_xyzw is not None:
            orientation = quat_multiply(np.asarray(quat_xyzw, dtype=float), orientation)
            position = quat_rotate(quat_xyzw, position)
            velocity = quat_rotate(quat_xyzw, velocity)
        if translation is not None:
            position = position + np.asarray(translation, dtype=float)
        if axes == "enu":
            position = enu_to_ned(position)
            velocity = enu_to_ned(velocity)
            orientation = quat_enu_flu_to_ned_frd(orientation)
        elif axes == "ned":
            orientation = quat_ned_flu_to_ned_frd(orientation)
        else:
            raise ValueError(f"axes: {axes!r}, expected 'enu' or 'ned'")
        motors = states.motor_speed.shape[1]
        rpm = np.zeros((n, MAX_MOTORS), np.float32)
        mean = np.zeros(n, np.float32)
        if motors:
            exact = np.multiply(states.motor_speed.T, RPM_PER_RAD_S, dtype=np.float64, order="C")
            rpm[:, :motors] = exact.T
            mean[:] = (
                exact.sum(axis=0) / motors
            )  # row after row: several times as quick as along each vehicle
        ned = NedStates(
            id=states.id,
            vehicle_type=states.vehicle_type,
            position_ned=_without_negative_zero(position, states.position),
            euler=_without_negative_zero(
                quat_to_euler(orientation)
            ),  # needs no unit norm: only quotients enter
            velocity_ned=_without_negative_zero(
                velocity.astype(np.float32, copy=False), states.velocity
            ),
            motor_speed_rpm=rpm,
            motor_speed_mean_rpm=mean,
            scale=states.scale,
            fit_ground=states.fit_ground,
        )
        in_range = _fits_the_floats(ned)
    if not in_range.all():
        dropped[NOT_FINITE] = dropped.get(NOT_FINITE, 0) + int(n - np.count_nonzero(in_range))
        ned = ned.select(in_range)
    return ned, dropped


def body_to_frame(
    orientation: ArrayLike, vector_body: ArrayLike, child_frame_id: str
) -> NDArray[np.floating[Any]]:
    """A twist's vector (3,) in the axes of `child_frame_id` -> those of the frame that
    `orientation` (4,) rotates into.

    The body's axes are FLU, or FRD where the name of its frame ends in `_frd`; the orientation is
    always that of FLU. A quaternion of any norm serves, as a direction: what is wrong with it is
    found by `states_to_ned`.
    """
    q = np.asarray(orientation, dtype=float)
    with np.errstate(all="ignore"):
        q = q / np.sqrt(q @ q)
        vector = np.asarray(vector_body, dtype=float)
        return quat_rotate(q, flu_to_frd(vector) if child_frame_id.endswith("_frd") else vector)


def _without_negative_zero(values: Any, given: Any = None) -> Any:
    """The values with 0, as the SDK sends it, for -0.0, which a turned sign leaves; a copy where
    they are `given`.
    """
    return np.add(values, values.dtype.type(0.0), out=None if values is given else values)


def all_fit_float32(values: Array) -> bool:
    """Whether no number of an array becomes infinite as a float32, at a glance at the least and the
    greatest; False where one is NaN, and perhaps where one lies just beyond the greatest float.
    """
    return not values.size or bool(values.min() >= -_MAX_FLOAT32 and values.max() <= _MAX_FLOAT32)


def _fits_the_floats(ned: NedStates) -> Bools:
    """False where a value became infinite on its way to float; the time packet alone holds
    positions as double.
    """
    arrays = (ned.velocity_ned, ned.motor_speed_rpm)  # and the mean of finite speeds is finite
    if all(all_fit_float32(array) for array in (ned.position_ned, *arrays)):
        return np.ones(len(ned), np.bool_)
    near = np.isfinite(ned.position_ned.astype(np.float32))
    in_double = (
        np.isfinite(ned.position_ned).all(axis=1) & ~ned.fit_ground & (ned.scale == 1).all(axis=1)
    )
    rest = np.logical_and.reduce([np.isfinite(array).all(axis=1) for array in arrays])
    return (near.all(axis=1) | in_double) & rest
