"""Poses and odometry of foreign robots -> VehicleStates of one vehicle."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry

from rfly_common.ros.stamps import stamp_to_ns
from rfly_common.vehicle_states import VehicleStates
from rfly_ue_bridge.codec.ned_states import body_to_frame


def pose_to_states(message: PoseStamped, vehicle_id: int, vehicle_type: int, fit_ground: bool) -> VehicleStates:
    """A pose: velocity and motors are 0."""
    return _states(message, message.pose, None, vehicle_id, vehicle_type, fit_ground)


def odometry_to_states(message: Odometry, vehicle_id: int, vehicle_type: int, fit_ground: bool) -> VehicleStates:
    """An odometry; its twist, which is in the body's axes (`child_frame_id`), is turned into those of the frame."""
    q, v = message.pose.pose.orientation, message.twist.twist.linear
    velocity = body_to_frame((q.x, q.y, q.z, q.w), (v.x, v.y, v.z), message.child_frame_id)
    return _states(message, message.pose.pose, velocity, vehicle_id, vehicle_type, fit_ground)


def _states(
    message: Any, pose: Any, velocity: Any, vehicle_id: int, vehicle_type: int, on_ground: bool
) -> VehicleStates:
    p, q = pose.position, pose.orientation
    return VehicleStates(
        id=np.array([vehicle_id]),
        vehicle_type=np.array([vehicle_type]),
        position=np.array([p.x, p.y, p.z]),
        orientation=np.array([q.x, q.y, q.z, q.w]),
        velocity=velocity,
        fit_ground=np.array([on_ground]),
        frame_id=message.header.frame_id,
        stamp_ns=stamp_to_ns(message.header.stamp),
    )
