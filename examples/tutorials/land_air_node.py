# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The controller of land_air_controller.py as a ROS node, in lock-step with amphibious_sim_node.

python examples/tutorials/land_air_node.py
"""

from __future__ import annotations

import signal
import threading
from types import SimpleNamespace

import numpy as np
import rclpy
from land_air_controller import LandAirController
from nav_msgs.msg import Odometry
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from rfly_suite.msg import RotorCommand, SimulationTick, WheelCommand
from scipy.spatial.transform import Rotation

from rfly_amphibious import VehicleParameters


class LandAirNode(Node):
    """A node that answers each tick of the simulation with rotor and wheel commands."""

    def __init__(self) -> None:
        super().__init__("land_air_node")
        params = VehicleParameters.load("scale")
        self._controller = LandAirController(params)
        self._rotors = params.rotors
        self._now = None

        self._rotor_commands = self.create_publisher(RotorCommand, "cmd/rotors", 10)
        self._wheel_commands = self.create_publisher(WheelCommand, "cmd/wheels", 10)
        self.create_subscription(
            Odometry, "ground_truth/odom", self._on_odometry, QoSProfile(depth=10)
        )
        self.create_subscription(
            SimulationTick, "simulation_tick", self._on_tick, QoSProfile(depth=10)
        )

    def _on_odometry(self, message: Odometry) -> None:
        p = message.pose.pose.position
        q = message.pose.pose.orientation
        # the twist is in the body's axes
        linear = message.twist.twist.linear
        angular = message.twist.twist.angular

        orientation = np.array([q.x, q.y, q.z, q.w])
        self._now = SimpleNamespace(
            position=np.array([p.x, p.y, p.z]),
            velocity=Rotation.from_quat(orientation).apply([linear.x, linear.y, linear.z]),
            orientation=orientation,
            rates=np.array([angular.x, angular.y, angular.z]),
        )

    def _on_tick(self, tick: SimulationTick) -> None:
        rotors = RotorCommand(header=tick.header)
        wheels = WheelCommand(header=tick.header)
        rotors.value = [0.0] * self._rotors

        if self._now is not None:
            before = self._controller.phase
            controls = self._controller(self._now)
            if self._controller.phase != before:
                self.get_logger().info(self._controller.phase)
            if controls.rotor_speed is not None:
                rotors.value = controls.rotor_speed.tolist()
            wheels.drive_torque = [float(controls.drive_torque)] * 4
            wheels.brake_torque = [float(controls.brake_torque)] * 4

        self._rotor_commands.publish(rotors)
        self._wheel_commands.publish(wheels)


def main() -> None:
    stop = threading.Event()
    # Ctrl-C: let a running callback finish first
    signal.signal(signal.SIGINT, lambda *_: stop.set())

    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = LandAirNode()
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    while not stop.is_set():
        executor.spin_once(timeout_sec=0.1)

    node.destroy_node()
    rclpy.shutdown()


if __name__ == "__main__":
    main()
