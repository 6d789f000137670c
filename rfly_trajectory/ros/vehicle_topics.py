# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Topics of a fleet's vehicles: `<name>/pose`, `<name>/path`, `/tf`, `fleet_markers`.

Part of trajectory_node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, Quaternion, TransformStamped, Vector3
from nav_msgs.msg import Path
from rclpy.node import Node
from tf2_msgs.msg import TFMessage

from rfly_common.frames import enu_to_ned
from rfly_common.ros.endpoints import publisher
from rfly_common.ros.frame_lookup import frame_prefix
from rfly_common.ros.qos import LATCHED, STATE_OUT, TF
from rfly_common.ros.stamps import ns_to_stamp
from rfly_common.vehicle_states import VehicleStates
from rfly_terrain.ros.plan_msgs import pose_messages, poses_to_path
from rfly_trajectory.fleet.fleet import Fleet, Vehicle, orientation_in_ned
from rfly_trajectory.ros.fleet_marker_topics import (
    FleetMarkers,
    Shown,
    ShownPath,
    ShownVehicle,
)


def states_to_poses(states: VehicleStates) -> list[PoseStamped]:
    """Return one PoseStamped for each vehicle, in the states' order and frame."""
    return pose_messages(states.position, states.orientation, states.frame_id, states.stamp_ns)


def states_to_transforms(
    states: VehicleStates, names: Sequence[str], prefix: str = ""
) -> TFMessage:
    """Return the transforms frame_id -> <prefix><name>/base_link of all vehicles."""
    stamp = ns_to_stamp(states.stamp_ns)
    transforms = []
    rows = zip(names, states.position.tolist(), states.orientation.tolist(), strict=True)
    for name, (x, y, z), (qx, qy, qz, qw) in rows:
        transform = TransformStamped(child_frame_id=f"{prefix}{name}/base_link")
        transform.header.frame_id = states.frame_id
        transform.header.stamp = stamp
        transform.transform.translation = Vector3(x=x, y=y, z=z)
        transform.transform.rotation = Quaternion(x=qx, y=qy, z=qz, w=qw)
        transforms.append(transform)
    return TFMessage(transforms=transforms)


class PerVehicleTopics:
    """Publishers of single vehicles, those of `names`; positions in frame map or map_ned."""

    def __init__(self, node: Node, frame_id: str, marker_scale: float) -> None:
        self._node = node
        self._frame_id = frame_id
        self._prefix = frame_prefix(node)
        self._markers = FleetMarkers(node, marker_scale)
        self.names: tuple[str, ...] = ()
        """Names of the vehicles that have topics, in the fleet's order."""
        self._poses: dict[str, Any] = {}
        self._paths: dict[str, Any] = {}
        self._tf: Any = None

    def use(self, names: Sequence[str]) -> None:
        """Keep the topics of names that stay, destroy those that are gone, create new ones."""
        self.names = tuple(names)

        gone = self._poses.keys() - set(names)
        for name in gone:
            self._node.destroy_publisher(self._poses.pop(name))
            self._node.destroy_publisher(self._paths.pop(name))

        for name in names:
            if name not in self._poses:
                self._poses[name] = publisher(self._node, PoseStamped, f"{name}/pose", STATE_OUT)
                self._paths[name] = publisher(self._node, Path, f"{name}/path", LATCHED)
        if names and self._tf is None:
            self._tf = publisher(self._node, TFMessage, "/tf", TF)

    def publish_paths(self, fleet: Fleet) -> None:
        """Publish the paths of all vehicles; copies on the same track share one message."""
        messages: dict[tuple[Any, ...], Path] = {}
        for index, name in enumerate(self.names):
            key = _track_key(fleet.vehicles[index])
            if key not in messages:
                messages[key] = self._path(fleet, index)
            self._paths[name].publish(messages[key])
        self.show(fleet)

    def show(self, fleet: Fleet) -> None:
        """Show these vehicles in `fleet_markers`."""
        self._markers.show(lambda: self._shown(fleet))

    def publish_path(self, fleet: Fleet, index: int) -> None:
        """Publish the path of one vehicle, if it has topics."""
        if index < len(self.names):
            self._paths[self.names[index]].publish(self._path(fleet, index))
            self._markers.show(lambda: self._shown(fleet))

    def publish_states(self, states: VehicleStates) -> None:
        """Publish the poses and transforms of all vehicles."""
        if not self.names:
            return
        self._tf.publish(states_to_transforms(states, self.names, self._prefix))
        for name, pose in zip(self.names, states_to_poses(states), strict=True):
            self._poses[name].publish(pose)

    def _shown(self, fleet: Fleet) -> Shown:
        """Return the vehicles and their paths as `fleet_markers` shows them."""
        vehicles = fleet.vehicles[: len(self.names)]
        same_track: dict[tuple[Any, ...], list[int]] = {}
        for index, vehicle in enumerate(vehicles):
            same_track.setdefault(_track_key(vehicle), []).append(index)

        shown = [ShownVehicle(v.name, v.id, v.vehicle_type, v.scale) for v in vehicles]
        paths = [
            ShownPath(fleet.track(rows[0]).position, [vehicles[row].id for row in rows])
            for rows in same_track.values()
        ]
        return shown, paths

    def _path(self, fleet: Fleet, index: int) -> Path:
        """Return the path of one vehicle in the node's frame."""
        position, orientation = fleet.track(index)
        if self._frame_id == "map_ned":
            position = np.asarray(enu_to_ned(position))
            orientation = orientation_in_ned(orientation)
        now_ns = self._node.get_clock().now().nanoseconds
        return poses_to_path(position, orientation, self._frame_id, now_ns)


def _track_key(vehicle: Vehicle) -> tuple[Any, ...]:
    """Return a key that vehicles on one track share."""
    place = (
        id(vehicle.path),
        vehicle.shift,
        vehicle.offset,
        vehicle.height,
        vehicle.absolute,
    )
    return (*place, vehicle.kind, vehicle.profile, vehicle.wheelbase, vehicle.track)
