"""Topics of the vehicles of a fleet: `<name>/pose`, `<name>/path`, `/tf`, `fleet_markers`. Part of
trajectory_node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, TransformStamped
from nav_msgs.msg import Path
from rclpy.node import Node
from tf2_msgs.msg import TFMessage

from rfly_common.frames import enu_to_ned
from rfly_common.ros.endpoints import destroy_endpoint, publisher
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
        transform.header.frame_id = states.frame_id
        transform.header.stamp = stamp
        t = transform.transform.translation
        q = transform.transform.rotation
        t.x = x
        t.y = y
        t.z = z
        q.x = qx
        q.y = qy
        q.z = qz
        q.w = qw
        transforms.append(transform)
    return TFMessage(transforms=transforms)


class PerVehicleTopics:
    """Publishers of vehicles one by one, for as many as `names`; positions in frame map or map_ned."""

    def __init__(self, node: Node, frame_id: str, marker_scale: float) -> None:
        self._node = node
        self._frame_id = frame_id
        self._markers = FleetMarkers(node, marker_scale)
        self.names: tuple[str, ...] = ()
        """of the vehicles that have topics, in the fleet's order"""
        self._poses: dict[str, Any] = {}
        self._paths: dict[str, Any] = {}
        self._tf: Any = None

    def use(self, names: Sequence[str]) -> None:
        """Keep topics of names that stay, destroy those of vanished names, create those of new
        ones.
        """
        self.names = tuple(names)
        gone = self._poses.keys() - set(names)
        for name in gone:
            destroy_endpoint(self._node, self._poses.pop(name))
            destroy_endpoint(self._node, self._paths.pop(name))
        for name in names:
            if name not in self._poses:
                self._poses[name] = publisher(self._node, PoseStamped, f"{name}/pose", STATE_OUT)
                self._paths[name] = publisher(self._node, Path, f"{name}/path", LATCHED)
        if names and self._tf is None:
            self._tf = publisher(self._node, TFMessage, "/tf", TF)

    def publish_paths(self, fleet: Fleet) -> None:
        """The paths of all vehicles; copies on the same track share one message."""
        made: dict[tuple[Any, ...], Path] = {}
        for index, name in enumerate(self.names):
            key = _track_key(fleet.vehicles[index])
            if key not in made:
                made[key] = self._path(fleet, index)
            self._paths[name].publish(made[key])
        self.show(fleet)

    def show(self, fleet: Fleet) -> None:
        """These vehicles in `fleet_markers`."""
        self._markers.show(lambda: self._shown(fleet))

    def publish_path(self, fleet: Fleet, index: int) -> None:
        """The path of one vehicle, where it has topics."""
        if index < len(self.names):
            self._paths[self.names[index]].publish(self._path(fleet, index))
            self._markers.show(lambda: self._shown(fleet))

    def publish_states(self, states: VehicleStates) -> None:
        """Poses and transforms of all vehicles."""
        if not self.names:
            return
        self._tf.publish(states_to_transforms(states, self.names))
        for name, pose in zip(self.names, states_to_poses(states), strict=True):
            self._poses[name].publish(pose)

    def _shown(self, fleet: Fleet) -> Shown:
        vehicles = fleet.vehicles[: len(self.names)]
        same_track: dict[tuple[Any, ...], list[int]] = {}
        for index, vehicle in enumerate(vehicles):
            same_track.setdefault(_track_key(vehicle), []).append(index)
        return (
            [ShownVehicle(v.name, v.id, v.vehicle_type, v.scale) for v in vehicles],
            [
                ShownPath(fleet.track(rows[0]).position, [vehicles[r].id for r in rows])
                for rows in same_track.values()
            ],
        )

    def _path(self, fleet: Fleet, index: int) -> Path:
        position, orientation = fleet.track(index)
        if self._frame_id == "map_ned":
            position = np.asarray(enu_to_ned(position))
            orientation = orientation_in_ned(orientation)
        return poses_to_path(
            position,
            orientation,
            self._frame_id,
            self._node.get_clock().now().nanoseconds,
        )


def _track_key(vehicle: Vehicle) -> tuple[Any, ...]:
    """The same for vehicles that are on one track."""
    place = (
        id(vehicle.path),
        vehicle.shift,
        vehicle.offset,
        vehicle.height,
        vehicle.absolute,
    )
    return (*place, vehicle.kind, vehicle.profile, vehicle.wheelbase, vehicle.track)
