# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Node that sends vehicle states and poses of foreign robots to RflySim3D by UDP.

It is a thin shell around the library.
"""

from __future__ import annotations

import time
from typing import Any

from rclpy.node import Node
from rfly_suite.srv import SendUeCommand
from std_msgs.msg import String

from rfly_common.diagnostic_reasons import Notice, Reason
from rfly_common.errors import CommandError, ConfigError
from rfly_common.ros.diagnostics import OK, STALE, WARN, ClockWatch, Diagnostics
from rfly_common.ros.endpoints import subscription
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import COMMANDS
from rfly_ue_bridge.codec.commands import MAP_CHANGE_SECONDS, changes_map, encode_command
from rfly_ue_bridge.ros.feedback_topics import FeedbackTopics
from rfly_ue_bridge.ros.node_parameters import BridgeFrameParameters, BridgeParameters
from rfly_ue_bridge.ros.object_topics import PlacedObjects
from rfly_ue_bridge.ros.robot_topics import RobotTopics, declare_robots
from rfly_ue_bridge.ros.scene_topics import SceneTopics
from rfly_ue_bridge.ros.state_topics import StateTopics
from rfly_ue_bridge.sockets.udp_sender import UdpSender


class UeBridgeNode(Node):
    """Node for console commands and diagnostics.

    Its parts handle states, robots, feedback and objects.
    """

    def __init__(self) -> None:
        super().__init__("ue_bridge_node")
        params = declare_parameters(self, BridgeParameters)
        self._sender = UdpSender(
            params.host,
            params.port,
            params.windows,
            broadcast=params.broadcast,
            multicast_ttl=params.multicast_ttl,
            multicast_interface=params.multicast_interface,
        )

        robots = declare_robots(self, params.vehicles)
        frames = Frames(self)
        worlds = frames.enu_frames + frames.ned_frames
        if not worlds:
            raise ConfigError(
                "parameters enu_frames and ned_frames: both are empty, "
                "expected one world frame or more"
            )

        own_frame = declare_parameters(
            self,
            BridgeFrameParameters,
            defaults={"frame_id": worlds[0]},
            choices={"frame_id": worlds},
        ).frame_id

        self._stale_after_ns = round(params.stale_after * 1e9)
        self._clock_watch = ClockWatch(self)
        first = self._sender.windows[0].address
        last = self._sender.windows[-1].address
        where = f"{first[0]}:{first[1]}" + (f"-{last[1]}" if last != first else "")
        self._diagnostics = Diagnostics(self, "bridge", where, self._every_second)

        configured = {
            robot.id: f"topic {robot.topic} (parameter vehicles)" for robot in robots.values()
        }
        self._states = StateTopics(
            self,
            params,
            frames,
            own_frame,
            configured,
            self._sender,
            self._diagnostics,
            self._update_diagnostics,
        )
        self._robots = RobotTopics(self, list(robots.values()), self._states)

        subscription(self, String, "ue_command", self._on_ue_command, COMMANDS)
        self._scene = SceneTopics(
            self,
            params,
            self._sender,
            self._send_command,
            lambda: self._diagnostics.count("refused_commands"),
        )
        self.create_service(SendUeCommand, "send_ue_command", self._serve_command)

        axes = frames.axes(own_frame) or "enu"
        window = (params.host, params.port)
        self._feedback = FeedbackTopics(self, window, own_frame, axes, self._send_command)
        self._objects = PlacedObjects(
            self,
            frames,
            own_frame,
            self._states.owners,
            self._states.send_now,
            self._states.take_away,
            self._scene.follow_terrain,
        )

        self.get_logger().info(f"sending to {where} ({len(self._sender.windows)} windows)")

    def destroy_node(self) -> None:
        """Close the sockets too."""
        self._feedback.close()
        self._sender.close()
        super().destroy_node()

    def _on_ue_command(self, message: String) -> None:
        problem = self._send_command(message.data, -1)
        if problem:
            self.get_logger().warning(f"ue_command: {problem}")

    def _serve_command(self, request: Any, response: Any) -> Any:
        response.message = self._send_command(request.command, request.window)
        response.success = not response.message
        return response

    def _send_command(self, text: str, window: int) -> str:
        """Send a console command; return "" or the error."""
        try:
            datagram = encode_command(text)
        except CommandError as error:
            self._diagnostics.count("refused_commands")
            return str(error)

        problem = self._sender.send_to(window, datagram)
        if not problem:
            if changes_map(text):
                self._states.outbox.hold(time.monotonic_ns() + round(MAP_CHANGE_SECONDS * 1e9))
            self._scene.command_sent(text)
        return problem

    def _every_second(self) -> None:
        self._states.send_removals()
        self._scene.every_second()
        self._states.drop_stale()
        self._states.log_problems()
        self._update_diagnostics()

    def _update_diagnostics(self) -> None:
        warnings = self._states.warnings() + self._diagnostics.unmatched
        clock_problem = self._clock_watch.problem
        if clock_problem:
            warnings.append(clock_problem)
        heard_ns = self._states.heard_ns
        steady_ns = time.monotonic_ns()
        silent = heard_ns is None or steady_ns - heard_ns > self._stale_after_ns
        no_states = Notice("no states yet", Reason.NO_STATES)
        if heard_ns is not None:
            seconds = f"{(steady_ns - heard_ns) / 1e9:.1f}"
            no_states = Notice(f"no states for {seconds} s", Reason.NO_STATES, seconds)
        values: dict[str, Any] = {
            "sent_datagrams": self._sender.sent,
            "superseded_states": self._states.outbox.superseded,
            "fleet_vehicles": len(self._states.owners),
        }
        for window in self._sender.windows:
            for name, count in window.errors.items():
                values[f"window_{window.index}_{name}"] = count

        self._diagnostics.set_first(
            [
                (silent, STALE, [no_states, *warnings]),
                (warnings, WARN, warnings),
                (True, OK, "sending"),
            ],
            **values,
        )
