# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Commands to one vehicle that CopterSim simulates. Part of coptersim_node.

Theory of operation. Nothing is sent before the service `arm` is called. Then the first command on
`cmd_vel` or `cmd/pose` starts the stream: a timer sends the newest command at `command_rate`. When
commands stop for `command_timeout`, zero velocity is sent until the next one. Disarming ends the
stream.
"""

from __future__ import annotations

import math
import time
from enum import Enum
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, Twist
from rclpy.node import Node
from std_srvs.srv import SetBool

from rfly_common.diagnostic_reasons import Notice, Reason, RecentFaults
from rfly_common.errors import CommandError, RflyError
from rfly_common.frames import enu_to_ned, yaw_ned_to_enu
from rfly_common.ros.endpoints import steady_timer, subscription
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.qos import COMMANDS
from rfly_common.ros.stamps import stamp_to_ns
from rfly_common.ros.velocity_commands import VelocityCommands
from rfly_common.transform_buffer import FrameToWorld
from rfly_common.vehicle_states import FARTHEST
from rfly_terrain.ros.plan_msgs import pose_to_plan_pose
from rfly_ue_bridge.codec.coptersim import ControlMode, encode_offboard, encode_offboard_frame
from rfly_ue_bridge.ros.coptersim_topics import CopterSimTopics
from rfly_ue_bridge.ros.node_parameters import OffboardParameters
from rfly_ue_bridge.sockets.udp_sender import UdpSender

_HEALED_NS = 3_000_000_000
"""Time without a further error after which commands count as delivered again, ns."""
_STOP = (ControlMode.VELOCITY_BODY, (0.0, 0.0, 0.0, 0.0))
OffboardCommand = tuple[ControlMode, tuple[float, ...]]


class OffboardPhase(Enum):
    """Phase of a vehicle's commands."""

    DISARMED = "disarmed"
    """Nothing is sent."""
    ARMED = "armed, no command yet"
    """Nothing is sent."""
    COMMANDED = "commanded"
    """The newest command is sent."""
    STOPPED = "no commands, zero velocity"
    """Zero velocity is sent, as commands have stopped."""


class OffboardTopics:
    """Topics `cmd_vel` and `cmd/pose` and the service `arm` of one vehicle."""

    def __init__(
        self,
        node: Node,
        topics: CopterSimTopics,
        params: OffboardParameters,
        host: str,
        frames: Frames,
    ) -> None:
        self.phase = OffboardPhase.DISARMED
        self.refused = 0
        """Number of refused commands."""
        self.faults = RecentFaults()
        """Refused commands by topic, while they go on."""
        self._node = node
        self._topics = topics
        self._params = params
        self._frames = frames
        port = params.offboard_port + 2 * (topics.copter_id - 1)
        self._sender = UdpSender(host, port)
        self._command: OffboardCommand = _STOP
        self._commanded_s = -math.inf

        name = topics.name
        VelocityCommands(
            node,
            f"{name}/cmd_vel",
            topics.base_frame,
            frames,
            stamped=params.stamped_cmd_vel,
            take=self._on_twist,
            refuse=partial(self._refuse, "cmd_vel"),
        )
        subscription(node, PoseStamped, f"{name}/cmd/pose", self._on_pose, COMMANDS)
        node.create_service(SetBool, f"~/{name}/arm", self._serve_arm)
        steady_timer(node, 1.0 / params.command_rate, self._send_due)

    @property
    def sent(self) -> int:
        """Number of datagrams."""
        return self._sender.sent

    def problem(self) -> Notice | None:
        """Return why commands do not arrive; None if that is not known."""
        window = self._sender.windows[0]
        if not window.problem(time.monotonic_ns(), _HEALED_NS):
            return None
        host, port = window.address
        where = f"{host}:{port}"
        if window.last_reason == Reason.WINDOW_REFUSED:
            text = f"commands: nothing listens at {where}; is CopterSim running?"
        else:
            text = f"commands to {where}: {window.last_error}"
        return Notice(text)

    def close(self) -> None:
        """Stop the vehicle if it was commanded, and close the socket."""
        if self.phase in (OffboardPhase.COMMANDED, OffboardPhase.STOPPED):
            self._send(_STOP)
        self._sender.close()

    # --- arming

    def _serve_arm(self, request: Any, response: Any) -> Any:
        if not request.data:
            self.phase = OffboardPhase.DISARMED
        elif self.phase is OffboardPhase.DISARMED:
            self.phase = OffboardPhase.ARMED

        if self._params.udp_mode == "full":
            response.success = True
            response.message = (
                "commands are sent from now on; UDP mode 0 has no packet that arms: use the ground "
                "station"
                if request.data
                else "no more commands are sent; UDP mode 0 has no packet that disarms"
            )
            return response

        arm = 1.0 if request.data else 0.0
        response.message = self._send((ControlMode.ARM, (arm, 0.0, 0.0, 0.0)))
        response.success = not response.message
        if self.phase is OffboardPhase.ARMED and not response.success:
            self.phase = OffboardPhase.DISARMED
        return response

    # --- commands

    def _on_twist(self, message: Twist) -> None:
        linear = message.linear
        frd = (linear.x, 0.0 - linear.y, 0.0 - linear.z, 0.0 - message.angular.z)
        self._take("cmd_vel", (ControlMode.VELOCITY_BODY, frd))

    def _on_pose(self, message: PoseStamped) -> None:
        try:
            controls = self._position_controls(message)
        except RflyError as error:
            self._refuse("cmd/pose", error)
        else:
            self._take("cmd/pose", (ControlMode.POSITION_NED, controls))

    def _position_controls(self, message: PoseStamped) -> tuple[float, ...]:
        """Return NED from the start point, m, and yaw, rad. Raises RflyError."""
        frame_id = message.header.frame_id or "map"
        start = self._topics.start
        if frame_id == self._topics.start_frame:
            frame = FrameToWorld("enu")
            start = (0.0, 0.0, 0.0)
        else:
            frame = self._frames.resolve(frame_id, stamp_to_ns(message.header.stamp))

        pose = pose_to_plan_pose(message.pose, frame, "pose")
        if start is None:
            raise CommandError(
                "the start point in the map is unknown: no home on port "
                f"{self._topics.estimate.port}, or no origin (parameter geo_origin); a pose in "
                f"{self._topics.start_frame} needs neither"
            )
        if pose.heading is None:
            raise CommandError("the orientation is 0 0 0 0, expected a unit quaternion")
        place = np.array([pose.x, pose.y, pose.z or 0.0]) - start
        return (*enu_to_ned(place).tolist(), float(yaw_ned_to_enu(pose.heading)))

    def _take(self, topic: str, command: OffboardCommand) -> None:
        if not all(abs(number) <= FARTHEST for number in command[1]):  # False for NaN too
            self._refuse(topic, f"{list(command[1])}: expected finite numbers up to {FARTHEST:g}")
            return
        if self.phase is OffboardPhase.DISARMED:
            return
        self.phase = OffboardPhase.COMMANDED
        self._command = command
        self._commanded_s = time.monotonic()

    def _refuse(self, topic: str, why: object) -> None:
        self.refused += 1
        text = f"{self._topics.name}/{topic} refused: {why}"
        if self.faults.begin(topic, Notice(text)):
            self._node.get_logger().warning(text)

    # --- sending

    def _send_due(self) -> None:
        """Send the newest command, or zero velocity after a silence."""
        silence_s = time.monotonic() - self._commanded_s
        if self.phase is OffboardPhase.COMMANDED and silence_s > self._params.command_timeout:
            self.phase = OffboardPhase.STOPPED
            self._command = _STOP
        if self.phase in (OffboardPhase.COMMANDED, OffboardPhase.STOPPED):
            self._send(self._command)

    def _send(self, command: OffboardCommand) -> str:
        """Send a command; return "" or the error."""
        mode, controls = command
        if self._params.udp_mode == "full":
            time_ms = time.monotonic_ns() // 1_000_000 % 2**32
            datagram = encode_offboard_frame(mode, controls, self._topics.copter_id, time_ms)
        else:
            datagram = encode_offboard(mode, controls)
        return self._sender.send_to(0, datagram)
