# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Classes and positions of the vehicles for which paths are planned. Part of planner_node."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from rfly_suite.msg import VehicleStateArray

from rfly_common.config.checks import check_vehicle_names
from rfly_common.errors import ConfigError, FrameError, PlanError, RflyError
from rfly_common.ros.diagnostics import Diagnostics
from rfly_common.ros.endpoints import subscription
from rfly_common.ros.frame_lookup import Frames, frame_prefix
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import FLEET_IN
from rfly_common.vehicle_states import msg_to_states, states_to_enu
from rfly_terrain.planning.plan import PlanPose
from rfly_terrain.planning.vehicle_classes import VehicleClass, load_vehicle_classes, vehicle_class
from rfly_terrain.ros.node_parameters import PlannedVehicleParameters, PlannerParameters
from rfly_terrain.ros.plan_msgs import heading_of, pose_to_plan_pose


class PlannedVehicles:
    """Planned vehicles by name. Raises ConfigError for impossible parameters."""

    def __init__(self, node: Node, params: PlannerParameters, frames: Frames) -> None:
        self._node = node
        self._frames = frames
        self.classes = load_vehicle_classes(params.vehicle_classes)
        self._ids: dict[str, int] = {}
        self._class_of: dict[str, str] = {}
        self._places: dict[int, PlanPose] = {}

        check_vehicle_names("parameter vehicles", params.vehicles)
        for name in params.vehicles:
            vehicle = declare_parameters(node, PlannedVehicleParameters, prefix=f"{name}.")
            self._ids[name] = vehicle.id
            self._class_of[name] = vehicle.vehicle_class
            self.class_of(name)
            if vehicle.id < 0:
                raise ConfigError(
                    f"parameter {name}.id: {vehicle.id}, expected its id in vehicle_states"
                )
        self.class_of(params.goal_vehicle, params.goal_class)  # fails at the start, not later

    def start(self, diagnostics: Diagnostics) -> None:
        """Subscribe to vehicle_states."""
        self._diagnostics = diagnostics
        if self._ids:
            subscription(
                self._node, VehicleStateArray, "vehicle_states", self._on_vehicle_states, FLEET_IN
            )

    def class_of(self, name: str, requested: str = "") -> VehicleClass:
        """Return the requested class, "": the vehicle's. Raises ConfigError for an unknown one."""
        return vehicle_class(self.classes, requested or self._class_of.get(name, ""))

    def _on_vehicle_states(self, message: VehicleStateArray) -> None:
        """Store the poses of the planned vehicles."""
        is_planned = np.isin(np.asarray(message.id), list(self._ids.values()))
        if not is_planned.any():
            return
        try:
            states = msg_to_states(message)
            frame = self._frames.resolve(states.frame_id, states.stamp_ns)
            states, _ = states_to_enu(states.select(is_planned), frame.axes, *frame.motion)
        except RflyError as error:
            text = f"vehicle_states of {message.source!r}: {error}"
            self._diagnostics.refuse("refused_states", text, subject=message.source)
            return

        for vehicle, (x, y, z), quat in zip(
            states.id.tolist(), states.position.tolist(), states.orientation, strict=True
        ):
            self._places[vehicle] = PlanPose(x, y, heading_of(quat), z)

    def present_pose(self, name: str) -> PlanPose:
        """Return the pose of a vehicle.

        It comes from vehicle_states if the vehicle's id is known, else from the transform of its
        base_link. Raises PlanError.
        """
        if not name:
            raise PlanError(
                "no_start",
                "start: its frame_id is empty, which means the present pose of `name`: give one",
            )

        # from vehicle_states
        if name in self._ids:
            if self._ids[name] not in self._places:
                raise PlanError(
                    "no_start",
                    f"vehicle {name!r}: vehicle_states has not reported id {self._ids[name]} yet",
                )
            return self._places[self._ids[name]]

        # from the transform
        try:
            frame = self._frames.resolve(f"{frame_prefix(self._node)}{name}/base_link")
        except FrameError as error:
            raise PlanError(
                "no_start",
                f"vehicle {name!r}: its position is unknown: {error}; the parameter vehicles may "
                "name it",
            ) from None

        pose = PoseStamped().pose
        pose.orientation.w = 1.0
        return pose_to_plan_pose(pose, frame, "start")
