# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Topics of ros2_control, part of chassis_control_node: joint_commands and robot_description.

Stamps of commands are not read: they are those of ros2_control's clock. A command counts from its
arrival.
"""

from __future__ import annotations

import math

from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, String

from rfly_autonomy.control.joint_chassis import JointChassisController
from rfly_autonomy.control.joint_commands import JointCommandReader
from rfly_common.errors import CommandError
from rfly_common.ros.diagnostics import Diagnostics
from rfly_common.ros.endpoints import publisher, subscription
from rfly_common.ros.qos import COMMANDS, LATCHED


class JointCommandTopics:
    """Commands of wheels and steering go to the chassis, those of the gimbal to `gimbal/cmd`."""

    def __init__(
        self,
        node: Node,
        diagnostics: Diagnostics,
        chassis: JointChassisController,
        description: str,
    ) -> None:
        """Subscribe, and publish the description, a URDF, unless it is empty."""
        self._diagnostics = diagnostics
        self._chassis = chassis
        self._read = JointCommandReader(chassis.params)
        self._gimbal = publisher(node, Float64, "gimbal/cmd", COMMANDS)

        self._description = publisher(node, String, "robot_description", LATCHED)
        if description:
            self._description.publish(String(data=description))
        subscription(node, JointState, "joint_commands", self._on_joint_commands, COMMANDS)

    def _on_joint_commands(self, message: JointState) -> None:
        try:
            command = self._read(message.name, message.position, message.velocity, message.effort)
        except CommandError as error:
            self._diagnostics.refuse("refused_joint_commands", f"joint_commands refused: {error}")
            return

        self._chassis.set_joints(command)
        if not math.isnan(command.camera):
            self._gimbal.publish(Float64(data=command.camera))
