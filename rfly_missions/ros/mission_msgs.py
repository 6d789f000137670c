# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mission items, poses and commands as ROS messages, in either world frame.

The mission side is NED throughout.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, PoseStamped
from rfly_suite.msg import MissionItem as MissionItemMsg
from rfly_suite.msg import MissionParams as MissionParamsMsg

from rfly_common.frames import (
    enu_to_ned,
    ned_to_enu,
    pose_enu_to_ned_euler,
    pose_ned_euler_to_enu,
    pose_ned_euler_to_ned,
    yaw_ned_to_enu,
)
from rfly_common.ros.stamps import ns_to_stamp
from rfly_common.transform_buffer import FrameToWorld
from rfly_missions.execution.runner import RunnerState
from rfly_missions.followers.multirotor import Follower, Vector
from rfly_missions.mission.items import MissionItem, MissionMode
from rfly_terrain.ros.plan_msgs import pose_messages

FARTHEST = 1e8
"""Distance from the origin, m, twice around the Earth: a position beyond it is refused."""
NO_POSE = f"not finite, no unit quaternion, or beyond {FARTHEST:g} m"
"""Reasons of a refused pose."""


def msg_to_item(message: MissionItemMsg, axes: str) -> MissionItem:
    """Return the item of a message; raise ValueError as MissionItem does.

    `axes`: enu or ned, those of the carrying message's frame.
    """
    position = point_to_ned(message.position, axes)
    params = np.array(message.params, dtype=float)
    if axes == "enu" and message.mode == MissionMode.WAYPOINT:
        params[0] = yaw_ned_to_enu(params[0])
    is_known = message.mode <= max(MissionMode)
    mode = MissionMode(message.mode) if is_known else message.mode
    return MissionItem(mode, np.array(position), params, message.command)


def item_to_msg(
    item: MissionItem, axes: str, *, params_hold_a_course: bool = False
) -> MissionItemMsg:
    """Return the message of an item.

    `params_hold_a_course`: the first parameter is the course of a line to a way-point, whatever the
    mode.
    """
    params = np.array(item.params)
    if axes == "enu" and (item.mode is MissionMode.WAYPOINT or params_hold_a_course):
        params[0] = yaw_ned_to_enu(params[0])
    return MissionItemMsg(
        mode=int(item.mode),
        position=ned_to_point(item.position, axes),
        params=params,
        command=item.command,
    )


def params_to_msg(state: RunnerState, axes: str, frame_id: str, stamp_ns: int) -> MissionParamsMsg:
    """Return the message of the current and the previous item, and of the flown position."""
    params = state.params
    leads_to_waypoint = params.current.mode is MissionMode.WAYPOINT
    message = MissionParamsMsg(
        current=item_to_msg(params.current, axes),
        previous=item_to_msg(params.previous, axes, params_hold_a_course=leads_to_waypoint),
        flown_position=ned_to_point(state.flown.position, axes),
    )
    message.header.frame_id = frame_id
    message.header.stamp = ns_to_stamp(stamp_ns)
    return message


def point_to_ned(point: Point, axes: str) -> tuple[float, float, float]:
    """Return a point in ENU or NED axes as NED."""
    values = np.array([point.x, point.y, point.z])
    north, east, down = (enu_to_ned(values) if axes == "enu" else values).tolist()
    return north, east, down


def ned_to_point(position: Any, axes: str) -> Point:
    """Return an NED position as a point in ENU or NED axes."""
    x, y, z = (ned_to_enu(position) if axes == "enu" else np.asarray(position)).tolist()
    return Point(x=x, y=y, z=z)


def pose_to_ned(pose: Any, frame: FrameToWorld) -> tuple[float, float, float, float] | None:
    """Return x, y, z (NED) and heading of a geometry_msgs/Pose of base_link.

    None as for `pose_to_ned_euler`.
    """
    ned = pose_to_ned_euler(pose, frame)
    if ned is None:
        return None
    (north, east, down), (_, _, yaw) = ned
    return north, east, down, float(math.remainder(yaw, 2 * math.pi))


def pose_to_ned_euler(pose: Any, frame: FrameToWorld) -> tuple[Vector, Vector] | None:
    """Return position (NED) and roll, pitch, yaw of a geometry_msgs/Pose of base_link.

    None for a pose that is not finite, has no unit quaternion, or lies beyond `FARTHEST`.
    """
    p = pose.position
    q = pose.orientation
    numbers = np.array([p.x, p.y, p.z, q.x, q.y, q.z, q.w])

    norm = float(np.linalg.norm(numbers[3:]))
    if not np.isfinite(numbers).all() or abs(norm - 1.0) > 1e-3:
        return None

    position = frame.points_to_enu(numbers[:3])
    if not np.abs(position).max() <= FARTHEST:
        return None
    return pose_enu_to_ned_euler(
        *position.tolist(), *frame.quats_to_enu(numbers[3:] / norm).tolist()
    )


def follower_to_pose(follower: Follower, axes: str, frame_id: str, stamp_ns: int) -> PoseStamped:
    """Return the pose at which an external vehicle is to be now, in a frame of enu or ned axes."""
    convert = pose_ned_euler_to_enu if axes == "enu" else pose_ned_euler_to_ned
    position, quat = convert(follower.position, follower.euler)
    return pose_messages(np.array([position]), np.array([quat]), frame_id, stamp_ns)[0]
