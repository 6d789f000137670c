# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The least that an rclpy node can do with a pose: one subscription, and a datagram sent from its
callback.

python benchmarks/echo_node.py TOPIC PORT
"""

from __future__ import annotations

import socket
import struct
import sys

import rclpy
from geometry_msgs.msg import PoseStamped
from rclpy.executors import ExternalShutdownException
from rclpy.qos import QoSProfile, ReliabilityPolicy


def main() -> None:
    """Send the position of each pose on a topic to a UDP port."""
    topic = sys.argv[1]
    port = int(sys.argv[2])
    address = ("127.0.0.1", port)
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def take(message: PoseStamped) -> None:
        """Send a pose on."""
        p = message.pose.position
        out.sendto(struct.pack("<3d", p.x, p.y, p.z), address)

    rclpy.init()
    node = rclpy.create_node("echo")
    node.create_subscription(
        PoseStamped, topic, take, QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    )
    try:
        rclpy.spin(node)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        rclpy.try_shutdown()


if __name__ == "__main__":
    main()
