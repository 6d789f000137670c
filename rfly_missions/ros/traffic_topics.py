# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Traffic for mavlink_node: the vehicles of `vehicle_states`, reported to ground stations."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
from rclpy.node import Node
from rfly_suite.msg import VehicleStateArray

from rfly_common.errors import FrameError, VehicleStatesError
from rfly_common.frames import enu_to_ned, quat_to_euler, yaw_ned_to_enu
from rfly_common.ros.diagnostics import Diagnostics
from rfly_common.ros.endpoints import subscription
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.qos import FLEET_IN
from rfly_common.vehicle_states import msg_to_states, usable_states
from rfly_missions.mavlink.flight import SILENCE_S
from rfly_missions.mavlink.traffic import PERIOD_S, FleetTraffic, VehicleMotion
from rfly_missions.ros.mavlink_vehicle_topics import MavlinkVehicleTopics

READ_PERIOD_S = 0.2
"""Time between two messages about the same vehicles that are read, s."""
MOST_PARTS = 100_000
"""Number of different messages that are told apart."""


class TrafficTopics:
    """The fleet's states, and the reports that each vehicle of mavlink_node sends of the others.

    With `reports_own` the vehicles of the node report each other, too.
    """

    def __init__(
        self, node: Node, frames: Frames, diagnostics: Diagnostics, reports_own: bool
    ) -> None:
        self._node = node
        self._frames = frames
        self._diagnostics = diagnostics
        self._reports_own = reports_own
        self._traffic = FleetTraffic()
        self._sent_at = -math.inf
        self._read_at: dict[tuple[str, int, int], float] = {}
        """Wall time of the last message read, by source, number of vehicles and first id."""
        subscription(node, VehicleStateArray, "vehicle_states", self._on_vehicle_states, FLEET_IN)

    def _on_vehicle_states(self, message: VehicleStateArray) -> None:
        # fleets publish far more often than they are reported
        wall = time.monotonic()
        part = message.source, len(message.id), message.id[0] if len(message.id) else 0
        if wall - self._read_at.get(part, -math.inf) < READ_PERIOD_S:
            return
        self._read_at[part] = wall
        if len(self._read_at) > MOST_PARTS:
            self._read_at.clear()

        try:
            states = msg_to_states(message)
            frame = self._frames.resolve(states.frame_id, states.stamp_ns)
        except (FrameError, VehicleStatesError) as error:
            text = f"vehicle_states of {message.source!r} refused: {error}"
            self._diagnostics.refuse("refused_states", text, subject=message.source)
            return

        usable, refused = usable_states(states)
        for reason, count in refused.items():
            text = f"vehicle_states of {message.source!r}: {count} left out, {reason}"
            subject = f"{message.source} {reason}"
            self._diagnostics.refuse("refused_states", text, subject=subject, number=count)
        good = states.select(usable)
        yaw_enu = quat_to_euler(frame.quats_to_enu(good.orientation))[..., 2]
        motion = VehicleMotion(
            good.id,
            enu_to_ned(frame.points_to_enu(good.position)),
            enu_to_ned(frame.vectors_to_enu(good.velocity)),
            yaw_ned_to_enu(yaw_enu),  # its own inverse
        )
        self._traffic.take(motion, wall)

    def update(self, vehicles: Sequence[MavlinkVehicleTopics], wall: float) -> None:
        """Let each vehicle report the others if that is due, at a steady wall time, s."""
        if wall - self._sent_at < PERIOD_S:
            return
        self._sent_at = wall

        # the node's own vehicles
        self._traffic.names = {each.fleet_id: each.name for each in vehicles}
        known = [each for each in vehicles if each.silence_s < SILENCE_S]
        if self._reports_own and known:
            poses = [each.vehicle.flight.pose for each in known]
            self._traffic.take(
                VehicleMotion(
                    np.array([each.fleet_id for each in known]),
                    np.array([pose.position for pose in poses]),
                    np.nan_to_num([pose.velocity for pose in poses]),
                    np.array([pose.euler[2] for pose in poses]),
                ),
                wall,
            )

        # what each of them reports
        own = [each.fleet_id for each in vehicles]
        for each in known:
            flight = each.vehicle.flight
            if flight.situation.origin is None:
                continue
            left_out = [each.fleet_id] if self._reports_own else own
            for message in self._traffic.reports(
                flight.pose.position, left_out, flight.situation.origin, wall
            ):
                each.vehicle.send(message)
