"""The vehicles that paths are planned for: classes, and where they are. Part of planner_node."""

from __future__ import annotations

import re

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from rfly_suite.msg import VehicleStateArray

from rfly_common.errors import ConfigError, FrameError, PlanError, RflyError
from rfly_common.ros.diagnostics import Diagnostics
from rfly_common.ros.endpoints import subscription
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import FLEET_IN
from rfly_common.ros.vehicle_msgs import msg_to_states
from rfly_common.vehicle_states import states_to_enu
from rfly_terrain.planning.plan_pose import PlanPose
from rfly_terrain.planning.vehicle_classes import VehicleClass, load_vehicle_classes, vehicle_class
from rfly_terrain.ros.node_parameters import PlannedVehicleParameters, PlannerParameters
from rfly_terrain.ros.plan_msgs import heading_of, pose_to_plan_pose

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*(/[A-Za-z][A-Za-z0-9_]*)*")


class PlannedVehicles:
    """By name. Raises ConfigError for parameters that can't be."""

    def __init__(self, node: Node, given: PlannerParameters, frames: Frames) -> None:
        self._node = node
        self._frames = frames
        self.classes = load_vehicle_classes(given.vehicle_classes)
        self._ids: dict[str, int] = {}
        self._class_of: dict[str, str] = {}
        self._places: dict[int, PlanPose] = {}
        for name in given.vehicles:
            if not NAME.fullmatch(name):
                raise ConfigError(
                    f"parameter vehicles: {name!r} is no name of a vehicle: letters, digits, _ and /"
                )
            vehicle = declare_parameters(node, PlannedVehicleParameters, prefix=f"{name}.")
            self._ids[name] = vehicle.id
            self._class_of[name] = vehicle.vehicle_class
            self.class_of(name)
            if vehicle.id < 0:
                raise ConfigError(
                    f"parameter {name}.id: {vehicle.id}, expected its id in vehicle_states"
                )
        self.class_of(given.goal_vehicle, given.goal_class)  # refused at the start

    def start(self, diagnostics: Diagnostics) -> None:
        """Subscribe."""
        self._diagnostics = diagnostics
        if self._ids:
            subscription(
                self._node, VehicleStateArray, "vehicle_states", self._on_vehicle_states, FLEET_IN
            )

    def class_of(self, name: str, asked: str = "") -> VehicleClass:
        """The class asked for, "": the vehicle's. Raises ConfigError for one that is not there."""
        return vehicle_class(self.classes, asked or self._class_of.get(name, ""))

    def _on_vehicle_states(self, message: VehicleStateArray) -> None:
        wanted = np.isin(np.asarray(message.id), list(self._ids.values()))
        if not wanted.any():
            return
        try:
            states = msg_to_states(message)
            frame = self._frames.resolve(states.frame_id, states.stamp_ns)
            moved = (
                () if frame.is_world else (frame.transform.translation, frame.transform.quat_xyzw)
            )
            states, _ = states_to_enu(states.select(wanted), frame.axes, *moved)
        except RflyError as error:
            self._diagnostics.count("refused_states")
            self._node.get_logger().warning(f"vehicle_states: {error}", throttle_duration_sec=5.0)
            return
        for vehicle, (x, y, z), quat in zip(
            states.id.tolist(), states.position.tolist(), states.orientation, strict=True
        ):
            self._places[vehicle] = PlanPose(x, y, heading_of(quat), z)

    def present_pose(self, name: str) -> PlanPose:
        """By vehicle_states, where its id is known, else by the transform of its base_link. Raises
        PlanError.
        """
        if not name:
            raise PlanError(
                "no_start",
                "start: its frame_id is empty, which means the present pose of `name`: give one",
            )
        if name in self._ids:
            if self._ids[name] not in self._places:
                raise PlanError(
                    "no_start",
                    f"vehicle {name!r}: vehicle_states has not told of id {self._ids[name]} yet",
                )
            return self._places[self._ids[name]]
        try:
            frame = self._frames.resolve(f"{name}/base_link")
        except FrameError as error:
            raise PlanError(
                "no_start",
                f"vehicle {name!r}: nothing tells where it is: {error}; the parameter vehicles may name it",
            ) from None
        pose = PoseStamped().pose
        pose.orientation.w = 1.0
        return pose_to_plan_pose(pose, frame, "start")
