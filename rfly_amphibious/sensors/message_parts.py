# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parts that the vehicle's messages share: stamps, frames, vectors, and their checks.

A message is any object with the fields of a ROS message: one of ROS's own classes, or a plain one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from numpy.typing import ArrayLike

from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_array, unit_quaternion
from rfly_common.errors import SensorMessageError

if TYPE_CHECKING:
    from rfly_amphibious.dynamics.model import Outputs

Message = TypeVar("Message", bound=Any)

FORCES = ("spring_force", "damper_force", "slip_ratio", "slip_angle", "rotor_torque")
"""Fields of VehicleForces, which are properties of `Outputs`."""
UNKNOWN = 1e6
"""Variance of quantities that a sensor does not measure."""
WENT_BACK_S = 0.05
"""Step back of stamps that means a reset of the simulation, s."""


def frame_of(vehicle: str, name: str) -> str:
    """Return the frame `name` of a vehicle."""
    return f"{vehicle}/{name}" if vehicle else name


def stamped(message: Message, time: float, frame_id: str, epoch_ns: int = 0) -> Message:
    """Return the message with a time (s since the epoch) as its stamp, and its frame."""
    header = message.header
    header.stamp.sec, header.stamp.nanosec = divmod(epoch_ns + round(time * 1e9), 10**9)
    header.frame_id = frame_id
    return message


def stamp_ns_of(message: Any) -> int:
    """Return the stamp of a message, ns."""
    stamp = message.header.stamp
    return int(stamp.sec) * 10**9 + int(stamp.nanosec)


def time_of(message: Any) -> float:
    """Return the time of a message's stamp, s."""
    return stamp_ns_of(message) * 1e-9


def time_since(message: Any, epoch_ns: int, now: float) -> float:
    """Return the time of a message's stamp, s since the epoch; `now` without a stamp."""
    stamp_ns = stamp_ns_of(message)
    return (stamp_ns - epoch_ns) * 1e-9 if stamp_ns else now


def set_odometry(message: Message, child: str, p: Any, q: Any, v: Any, w: Any) -> Message:
    """Return an odometry with the frame of its twist, its pose and its twist."""
    message.child_frame_id = child
    pose = message.pose.pose
    twist = message.twist.twist
    set_vector(pose.position, p)
    set_quaternion(pose.orientation, q)
    set_vector(twist.linear, v)
    set_vector(twist.angular, w)
    return message


def set_forces(message: Message, outputs: Outputs) -> Message:
    """Return a VehicleForces with the forces and slips of one evaluation of the model."""
    for name in FORCES:
        setattr(message, name, getattr(outputs, name).tolist())
    return message


def set_vector(vector: Any, xyz: Any) -> None:
    vector.x, vector.y, vector.z = xyz


def set_quaternion(quaternion: Any, xyzw: Any) -> None:
    quaternion.x, quaternion.y, quaternion.z, quaternion.w = xyzw


def finite(name: str, numbers: ArrayLike, shape: tuple[int, ...] | None = None) -> Floats:
    return finite_array(name, numbers, shape, error=SensorMessageError)


def vector_of(name: str, vector: Any) -> Floats:
    return finite(name, (vector.x, vector.y, vector.z))


def quaternion_of(quaternion: Any) -> Floats:
    values = (quaternion.x, quaternion.y, quaternion.z, quaternion.w)
    return unit_quaternion("orientation", values, tolerance=1e-2, error=SensorMessageError)
