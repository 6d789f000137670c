# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The place that the window of a tiled map follows. Part of terrain_node."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from rfly_suite.msg import VehicleStateArray

from rfly_common.errors import RflyError
from rfly_common.ros.diagnostics import Diagnostics
from rfly_common.ros.endpoints import subscription
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import FLEET_IN, STATE_IN
from rfly_common.ros.stamps import stamp_to_ns
from rfly_common.vehicle_states import msg_to_states, states_to_enu
from rfly_terrain.ros.node_parameters import WindowParameters


class FollowedPlace:
    """A vehicle's place by `vehicle_states`, or that of a pose, if the parameters name one."""

    def __init__(
        self,
        node: Node,
        frames: Frames,
        diagnostics: Diagnostics,
        moved: Callable[[float, float], None],
    ) -> None:
        """Subscribe; `moved(x, y)`, ENU, is called for each new place."""
        self.params = declare_parameters(node, WindowParameters)
        self.place = (self.params.window_x, self.params.window_y)
        """Newest place, x east, y north, m."""
        self._frames = frames
        self._diagnostics = diagnostics
        self._moved = moved
        if self.params.window_vehicle >= 0:
            subscription(node, VehicleStateArray, "vehicle_states", self._on_states, FLEET_IN)
        if self.params.window_topic:
            subscription(node, PoseStamped, self.params.window_topic, self._on_pose, STATE_IN)

    def _on_states(self, message: VehicleStateArray) -> None:
        """Take the place of the vehicle from its states."""
        is_wanted = np.asarray(message.id) == self.params.window_vehicle
        if not is_wanted.any():
            return
        try:
            states = msg_to_states(message)
            frame = self._frames.resolve(states.frame_id, states.stamp_ns)
            states, _ = states_to_enu(states.select(is_wanted), frame.axes, *frame.motion)
        except RflyError as error:
            self._refuse(f"vehicle_states of {message.source!r}", error)
            return
        self._take(states.position[0])

    def _on_pose(self, message: PoseStamped) -> None:
        """Take the place of a pose."""
        position = message.pose.position
        try:
            frame = self._frames.resolve(message.header.frame_id, stamp_to_ns(message.header.stamp))
            self._take(frame.points_to_enu(np.array([position.x, position.y, position.z])))
        except RflyError as error:
            self._refuse(self.params.window_topic, error)

    def _refuse(self, source: str, error: RflyError) -> None:
        """Report a place that cannot be used."""
        self._diagnostics.refuse("refused_places", f"{source}: {error}", subject=source)

    def _take(self, position: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> None:
        """Note a place if it is finite."""
        if np.isfinite(position).all():
            self.place = float(position[0]), float(position[1])
            self._moved(*self.place)
