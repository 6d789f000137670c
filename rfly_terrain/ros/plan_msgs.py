# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Plans <-> nav_msgs/Path in any frame; geometry_msgs/Pose -> poses of the planner in ENU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path

from rfly_common.arrays import Floats
from rfly_common.errors import PlanError
from rfly_common.frames import quat_to_euler
from rfly_common.ros.stamps import fill_header, ns_to_stamp
from rfly_common.transform_buffer import FrameToWorld
from rfly_terrain.planning.plan import Plan, PlanPose


def pose_to_plan_pose(pose: Any, frame: FrameToWorld, name: str) -> PlanPose:
    """Return a geometry_msgs/Pose of the frame in ENU; orientation 0 0 0 0: any heading.

    Raises PlanError with the name of the pose.
    """
    position = np.array([pose.position.x, pose.position.y, pose.position.z])
    quat = np.array(
        [pose.orientation.x, pose.orientation.y, pose.orientation.z, pose.orientation.w]
    )
    if not (np.isfinite(position).all() and np.isfinite(quat).all()):
        raise PlanError(
            "not_finite",
            f"the {name} is not finite: position {position.tolist()}, xyzw {quat.tolist()}",
        )
    free = not quat.any()
    norm = float(np.linalg.norm(quat))
    if not free and abs(norm - 1.0) > 1e-2:
        raise PlanError(
            "bad_orientation",
            f"the {name}'s orientation xyzw {quat.tolist()} has the length {norm:g}, expected 1, "
            "or 0 for any heading",
        )

    x, y, z = frame.points_to_enu(position).tolist()
    heading = None if free else float(quat_to_euler(frame.quats_to_enu(quat / norm))[2])
    return PlanPose(x, y, heading, z)


def plan_to_path(plan: Plan, frame: FrameToWorld, frame_id: str, stamp_ns: int) -> Path:
    """Return the plan's poses in the frame: level, and turned to the heading.

    The heading is against the motion on segments driven backwards.
    """
    half = 0.5 * plan.heading
    if plan.backward.any() and not plan.heading.any():
        half = half + math.pi  # -q is the same attitude, but not the default of a message
    zero = np.zeros_like(half)
    quat = np.stack([zero, zero, np.sin(half), np.cos(half)], axis=-1)
    return poses_to_path(*frame.poses_from_enu(plan.position, quat), frame_id, stamp_ns)


def path_to_points(message: Path, frame: FrameToWorld) -> tuple[Floats, Floats | None]:
    """Return points and headings of a path in the frame.

    Points are (n, 3), ENU, m; headings are (n,), rad. They are None if no heading is set, which
    means zero or the identity everywhere.
    """
    places = [pose.pose.position for pose in message.poses]
    points = frame.points_to_enu(np.array([(p.x, p.y, p.z) for p in places], float).reshape(-1, 3))
    turns = [pose.pose.orientation for pose in message.poses]
    quat = np.array([(q.x, q.y, q.z, q.w) for q in turns], float).reshape(-1, 4)
    norm = np.linalg.norm(quat, axis=1, keepdims=True)
    unset = not quat[:, :3].any() and (quat[:, 3] >= 0.0).all()
    if unset or not np.isfinite(norm).all() or not (norm > 0.0).all():
        return points, None
    return points, np.asarray(quat_to_euler(frame.quats_to_enu(quat / norm)), float)[:, 2]


def poses_to_path(position: Floats, orientation: Floats, frame_id: str, stamp_ns: int) -> Path:
    """Return a Path of positions (k, 3) and orientations (k, 4), xyzw."""
    path = Path(poses=pose_messages(position, orientation, frame_id, stamp_ns))
    return fill_header(path, stamp_ns, frame_id)


def pose_messages(
    position: Floats, orientation: Floats, frame_id: str, stamp_ns: int
) -> list[PoseStamped]:
    """Return a PoseStamped for each of k poses."""
    stamp = ns_to_stamp(stamp_ns)
    poses = []
    for (x, y, z), (qx, qy, qz, qw) in zip(position.tolist(), orientation.tolist(), strict=True):
        pose = PoseStamped()
        pose.header.frame_id = frame_id
        pose.header.stamp = stamp

        point = pose.pose.position
        point.x = x
        point.y = y
        point.z = z

        quat = pose.pose.orientation
        quat.x = qx
        quat.y = qy
        quat.z = qz
        quat.w = qw

        poses.append(pose)
    return poses


def heading_of(quat_xyzw: Any) -> float:
    """Return the heading of an attitude FLU -> ENU, rad, counter-clockwise from east."""
    return math.remainder(float(quat_to_euler(np.asarray(quat_xyzw, float))[2]), 2 * math.pi)
