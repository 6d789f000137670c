# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mission items, poses and commands as ROS messages, in either world frame.

The mission side is NED throughout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, PoseStamped
from rfly_suite.msg import Fence as FenceMsg
from rfly_suite.msg import FenceArea as FenceAreaMsg
from rfly_suite.msg import Mission as MissionMsg
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
from rfly_common.ros.stamps import fill_header
from rfly_common.transform_buffer import FrameToWorld
from rfly_common.vehicle_states import FARTHEST
from rfly_missions.execution.path_manager import MissionPhase
from rfly_missions.execution.runner import RunnerState
from rfly_missions.followers.multirotor import Follower
from rfly_missions.mission.files import MAX_FENCE_VERTICES
from rfly_missions.mission.geofence import FenceCircle, FencePolygon, FlightAreaPlan, Geofence
from rfly_missions.mission.items import FlownMission, MissionItem, MissionMode, Ned
from rfly_terrain.ros.plan_msgs import pose_messages

NO_POSE = f"not finite, no unit quaternion, or beyond {FARTHEST:g} m"
"""Reasons of a refused pose."""
NO_GOAL = np.zeros(16, np.uint8)
"""Id of no goal."""


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
    here = mode is MissionMode.TAKEOFF and math.isnan(position[0]) and math.isnan(position[1])
    if here:  # where that will be is known with the items before it
        position = (0.0, 0.0, position[2])
    return MissionItem(mode, np.array(position), params, message.command, here)


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
    position = np.array((math.nan, math.nan, item.position[2])) if item.here else item.position
    return MissionItemMsg(
        mode=int(item.mode),
        position=ned_to_point(position, axes),
        params=params,
        command=item.command,
    )


def params_to_msg(
    state: RunnerState,
    axes: str,
    frame_id: str,
    stamp_ns: int,
    goal_id: Any = NO_GOAL,
) -> MissionParamsMsg:
    """Return the message of the current and the previous item, and of the mission's progress."""
    params = state.params
    phase = state.phase if np.any(goal_id) else MissionPhase.IDLE
    leads_to_waypoint = params.current.mode is MissionMode.WAYPOINT
    message = MissionParamsMsg(
        current=item_to_msg(params.current, axes),
        previous=item_to_msg(params.previous, axes, params_hold_a_course=leads_to_waypoint),
        flown_position=ned_to_point(state.flown.position, axes),
        goal_id=goal_id,
        index=state.item_index,
        phase=phase.value,
    )
    return fill_header(message, stamp_ns, frame_id)


def area_to_msg(area: FlightAreaPlan, axes: str, frame_id: str, stamp_ns: int) -> FenceMsg:
    """Return the message of a fence and rally points."""
    message = FenceMsg()
    fill_header(message, stamp_ns, frame_id)
    for each in area.fence.areas:
        if isinstance(each, FenceCircle):
            radius = float(each.radius)
            corners = np.array([each.center])
        else:
            radius = 0.0
            corners = each.vertices
        message.areas.append(
            FenceAreaMsg(
                inclusion=each.inclusion,
                radius=radius,
                points=[ned_to_point((*corner, 0.0), axes) for corner in corners.tolist()],
            )
        )

    if area.fence.breach_return is not None:
        message.breach_return.append(ned_to_point(area.fence.breach_return, axes))
    message.rally = [ned_to_point(point, axes) for point in area.rally]
    return message


def msg_to_area(message: FenceMsg, axes: str) -> FlightAreaPlan:
    """Return the fence and the rally points of a message; raise ValueError that names a bad one."""
    areas = tuple(
        _msg_to_fence_area(area, f"areas[{index}]", axes)
        for index, area in enumerate(message.areas)
    )
    if sum(len(area.points) for area in message.areas) > MAX_FENCE_VERTICES:
        raise ValueError(f"areas: more than {MAX_FENCE_VERTICES} corners")
    returns = _places(message.breach_return, "breach_return", axes)
    if len(returns) > 1:
        raise ValueError(f"breach_return: {len(returns)} points, expected at most one")
    rally = _places(message.rally, "rally", axes)
    return FlightAreaPlan(Geofence(areas, returns[0] if returns else None), tuple(rally))


def _msg_to_fence_area(area: FenceAreaMsg, where: str, axes: str) -> FencePolygon | FenceCircle:
    points = _places(area.points, f"{where}.points", axes)
    if not 0.0 <= area.radius <= FARTHEST:
        raise ValueError(f"{where}.radius: {area.radius:g}, expected 0 to {FARTHEST:g} m")
    if area.radius > 0.0:
        if len(points) != 1:
            raise ValueError(f"{where}.points: {len(points)}, expected the centre of a circle")
        return FenceCircle(points[0][:2], area.radius, area.inclusion)
    if len(points) < 3:
        raise ValueError(f"{where}.points: {len(points)}, expected 3 or more corners")
    return FencePolygon(np.array(points)[:, :2], area.inclusion)


def _places(points: Sequence[Point], where: str, axes: str) -> list[Ned]:
    """Return points as NED; raise ValueError for one that is no place."""
    places = [point_to_ned(point, axes) for point in points]
    for index, place in enumerate(places):
        if not all(abs(value) <= FARTHEST for value in place):
            raise ValueError(f"{where}[{index}]: {place}, expected numbers within {FARTHEST:g} m")
    return places


def mission_to_msg(
    mission: FlownMission,
    area: FlightAreaPlan,
    goal_id: Any,
    axes: str,
    frame_id: str,
    stamp_ns: int,
    area_ns: int,
) -> MissionMsg:
    """Return the message of a loaded mission, and of the area that counts with it.

    `stamp_ns`: time of the message; `area_ns`: stamp of the last message of a fence, 0 for none.
    """
    message = MissionMsg(
        goal_id=goal_id,
        items=[item_to_msg(item, axes) for item in mission.items],
        home=ned_to_point(mission.home, axes),
        repeat=mission.repeat,
        hold_at_waypoints=mission.hold_at_waypoints,
        fence=area_to_msg(area, axes, frame_id, area_ns),
    )
    return fill_header(message, stamp_ns, frame_id)


def msg_to_mission(message: MissionMsg, axes: str) -> FlownMission:
    """Return the mission of a message; raise ValueError for an item that is none."""
    return FlownMission(
        tuple(msg_to_item(item, axes) for item in message.items),
        point_to_ned(message.home, axes),
        message.repeat,
        message.hold_at_waypoints,
    )


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


def pose_to_ned_euler(pose: Any, frame: FrameToWorld) -> tuple[Ned, Ned] | None:
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
