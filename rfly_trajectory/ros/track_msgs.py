"""Poses and tracks as RViz's messages: PoseStamped, Path, TFMessage."""

from __future__ import annotations

from collections.abc import Sequence

from geometry_msgs.msg import PoseStamped, TransformStamped
from nav_msgs.msg import Path
from tf2_msgs.msg import TFMessage

from rfly_common.arrays import Floats
from rfly_common.ros.stamps import ns_to_stamp
from rfly_common.vehicle_states import VehicleStates


def states_to_poses(states: VehicleStates) -> list[PoseStamped]:
    """One PoseStamped for each vehicle, in the states' order and frame."""
    return _poses(states.position, states.orientation, states.frame_id, states.stamp_ns)


def states_to_transforms(states: VehicleStates, names: Sequence[str]) -> TFMessage:
    """The transforms frame_id -> <name>/base_link of all vehicles."""
    stamp = ns_to_stamp(states.stamp_ns)
    transforms = []
    for name, (x, y, z), (qx, qy, qz, qw) in zip(
        names, states.position.tolist(), states.orientation.tolist(), strict=True
    ):
        transform = TransformStamped(child_frame_id=f"{name}/base_link")
        transform.header.frame_id, transform.header.stamp = states.frame_id, stamp
        t, q = transform.transform.translation, transform.transform.rotation
        t.x, t.y, t.z = x, y, z
        q.x, q.y, q.z, q.w = qx, qy, qz, qw
        transforms.append(transform)
    return TFMessage(transforms=transforms)


def track_to_path(position: Floats, orientation: Floats, frame_id: str, stamp_ns: int) -> Path:
    """Positions (k, 3) and orientations (k, 4) xyzw as a Path."""
    path = Path(poses=_poses(position, orientation, frame_id, stamp_ns))
    path.header.frame_id, path.header.stamp = frame_id, ns_to_stamp(stamp_ns)
    return path


def _poses(position: Floats, orientation: Floats, frame_id: str, stamp_ns: int) -> list[PoseStamped]:
    stamp = ns_to_stamp(stamp_ns)
    poses = []
    for (x, y, z), (qx, qy, qz, qw) in zip(position.tolist(), orientation.tolist(), strict=True):
        pose = PoseStamped()
        pose.header.frame_id, pose.header.stamp = frame_id, stamp
        p, q = pose.pose.position, pose.pose.orientation
        p.x, p.y, p.z = x, y, z
        q.x, q.y, q.z, q.w = qx, qy, qz, qw
        poses.append(pose)
    return poses
