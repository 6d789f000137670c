"""Setpoints of guidance as messages, and nav_msgs/Path as points and back."""

from __future__ import annotations

import math
from typing import Any

from ackermann_msgs.msg import AckermannDriveStamped
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path

from rfly_amphibious.control.commands import Setpoint
from rfly_amphibious.estimation.estimate import Estimate
from rfly_amphibious.ros.amphibious_msgs import WORLD, frame_of, header
from rfly_common.arrays import Floats
from rfly_common.frames import quat_to_euler


def order_to_ackermann(order: Setpoint, vehicle: str) -> AckermannDriveStamped:
    """Speed and steering of an order, for cmd/ackermann."""
    message = AckermannDriveStamped(header=header(order.time, frame_of(vehicle, "base_link")))
    message.drive.speed, message.drive.steering_angle = float(order.speed), float(order.steering)
    return message


def order_to_pose(order: Setpoint, now: Estimate) -> PoseStamped:
    """The target of an order, for cmd/pose; without one, where the vehicle is. Level, and turned to its yaw: without
    one, as the vehicle is turned.
    """
    yaw = quat_to_euler(now.orientation)[2] if order.yaw is None else order.yaw
    place = now.position if order.target is None else order.target
    return _pose(order.time, place, (0.0, 0.0, math.sin(0.5 * yaw), math.cos(0.5 * yaw)))


def estimate_to_pose(now: Estimate) -> PoseStamped:
    """Where the vehicle is, for pose."""
    return _pose(now.time, now.position, now.orientation)


def points_to_path(points: Floats, time: float) -> Path:
    """Points (n, 3) m, ENU, as a path."""
    return Path(header=header(time, WORLD), poses=[_pose(time, point, (0.0, 0.0, 0.0, 1.0)) for point in points])


def _pose(time: float, place: Any, quat_xyzw: Any) -> PoseStamped:
    message = PoseStamped(header=header(time, WORLD))
    position, orientation = message.pose.position, message.pose.orientation
    position.x, position.y, position.z = map(float, place)
    orientation.x, orientation.y, orientation.z, orientation.w = map(float, quat_xyzw)
    return message
