"""Poses of vehicles as RViz's messages: PoseStamped, TFMessage."""

from __future__ import annotations

from collections.abc import Sequence

from geometry_msgs.msg import PoseStamped, TransformStamped
from tf2_msgs.msg import TFMessage

from rfly_common.ros.stamps import ns_to_stamp
from rfly_common.vehicle_states import VehicleStates
from rfly_terrain.ros.plan_msgs import pose_messages


def states_to_poses(states: VehicleStates) -> list[PoseStamped]:
    """One PoseStamped for each vehicle, in the states' order and frame."""
    return pose_messages(states.position, states.orientation, states.frame_id, states.stamp_ns)


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
