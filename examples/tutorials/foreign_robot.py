# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A robot that knows nothing of RflySim: a node with Odometry in `odom` and transforms to `map`.

python examples/tutorials/foreign_robot.py
"""

from __future__ import annotations

import math
import signal
import threading

import rclpy
from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.signals import SignalHandlerOptions
from tf2_msgs.msg import TFMessage

RADIUS = 12.0  # m
SPEED = 3.0  # m/s
RATE = 20.0  # Hz
ODOM_IN_MAP = (-300.0, -50.0)  # m east, m north: where the robot was switched on


class ForeignRobot(Node):
    """A robot that drives in a circle around the place where it was switched on."""

    def __init__(self) -> None:
        super().__init__("foreign_robot")
        self._odometry = self.create_publisher(Odometry, "robot/odom", 10)
        self._tf = self.create_publisher(TFMessage, "/tf", 100)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

        # `odom` in `map` never changes
        self._tf_static = self.create_publisher(TFMessage, "/tf_static", latched)
        self._tf_static.publish(
            TFMessage(transforms=[self._transform("map", "odom", *ODOM_IN_MAP, 0.0)])
        )

        self._start = self.get_clock().now()
        self.create_timer(1.0 / RATE, self._tick)

    def _tick(self) -> None:
        angle = (self.get_clock().now() - self._start).nanoseconds * 1e-9 * SPEED / RADIUS
        x = RADIUS * math.cos(angle)
        y = RADIUS * math.sin(angle)
        yaw = angle + math.pi / 2.0

        # where the robot is
        base = self._transform("odom", "robot/base_link", x, y, yaw)
        self._tf.publish(TFMessage(transforms=[base]))

        # and how it moves
        message = Odometry(header=base.header, child_frame_id=base.child_frame_id)
        message.pose.pose.position.x = x
        message.pose.pose.position.y = y
        message.pose.pose.orientation = base.transform.rotation
        message.twist.twist.linear.x = SPEED  # in the axes of child_frame_id
        message.twist.twist.angular.z = SPEED / RADIUS
        self._odometry.publish(message)

    def _transform(
        self, parent: str, child: str, x: float, y: float, yaw: float
    ) -> TransformStamped:
        message = TransformStamped(child_frame_id=child)
        message.header.frame_id = parent
        message.header.stamp = self.get_clock().now().to_msg()
        message.transform.translation.x = x
        message.transform.translation.y = y
        message.transform.rotation.z = math.sin(yaw / 2.0)
        message.transform.rotation.w = math.cos(yaw / 2.0)
        return message


def main() -> None:
    stop = threading.Event()
    # Ctrl-C: let a running callback finish first
    signal.signal(signal.SIGINT, lambda *_: stop.set())

    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = ForeignRobot()
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    while not stop.is_set():
        executor.spin_once(timeout_sec=0.1)

    node.destroy_node()
    rclpy.shutdown()


if __name__ == "__main__":
    main()
