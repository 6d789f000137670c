# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Six topics of different QoS, what a test publishes on them, and `rfly` commands in a domain."""

from __future__ import annotations

import os
import subprocess
from array import array

from node_harness import PATIENCE, Rfly

TYPES = {
    "/vehicle_states": "rfly_suite/msg/VehicleStateArray",
    "/lead/pose": "geometry_msgs/msg/PoseStamped",
    "/tf_static": "tf2_msgs/msg/TFMessage",
    "/terrain_map": "rfly_suite/msg/TerrainMap",
    "/lidar/points": "sensor_msgs/msg/PointCloud2",
    "/diagnostics": "diagnostic_msgs/msg/DiagnosticArray",
}
LOSSY = "/lidar/points"
"""Best effort topic: messages published before the subscriber matches are lost."""
LATCHED_ONES = ("/tf_static", "/terrain_map")


class RflyInDomain:
    """An `rfly` command in a domain, its output kept."""

    def __init__(self, domain_id, *arguments):
        environment = {**os.environ, "ROS_DOMAIN_ID": str(domain_id), "COLUMNS": "300"}
        environment["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
        self.process = Rfly(
            *arguments,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )

    def end(self, number=None):
        """(exit code, output), after a signal."""
        if number is not None:
            self.process.send_signal(number)
        output, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, output

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def messages(number):
    """One message of each topic, distinguished by a number."""
    from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
    from geometry_msgs.msg import PoseStamped, TransformStamped
    from rfly_suite.msg import TerrainMap, VehicleStateArray
    from sensor_msgs.msg import PointCloud2
    from tf2_msgs.msg import TFMessage

    states = VehicleStateArray(
        id=array("i", [number, 7]), position=array("d", [0.5 * number, 2.0, -3.25] * 2)
    )
    pose = PoseStamped()
    pose.header.frame_id = "map"
    pose.pose.position.x = 0.25 * number
    transform = TransformStamped(child_frame_id=f"frame_{number}")
    terrain = TerrainMap(name="Two", height=array("f", [1.5, -2.0, 3.0, 4.0]))
    cloud = PointCloud2(height=1, width=3, data=array("B", [number, 2, 255]))
    status = DiagnosticStatus(level=DiagnosticStatus.WARN, name="ä node: task", message=f"{number}")
    return dict(
        zip(
            TYPES,
            [
                states,
                pose,
                TFMessage(transforms=[transform]),
                terrain,
                cloud,
                DiagnosticArray(status=[status]),
            ],
            strict=True,
        )
    )


def told(topic, message):
    """Return the distinguishing content of a message, from any library's object of it."""
    return {
        "/vehicle_states": lambda: (list(message.id), list(message.position)),
        "/lead/pose": lambda: (message.header.frame_id, message.pose.position.x),
        "/tf_static": lambda: message.transforms[0].child_frame_id,
        "/terrain_map": lambda: (message.name, list(message.height)),
        "/lidar/points": lambda: bytes(message.data),
        "/diagnostics": lambda: (
            message.status[0].name,
            message.status[0].message,
            _number(message.status[0].level),
        ),
    }[topic]()


def _number(level):
    return level if isinstance(level, int) else level[0]


def publishers(peer, count):
    """Publishers of all topics, matched with `count` subscriptions; best effort or reliable."""
    from rclpy.qos import QoSProfile, ReliabilityPolicy

    from rfly_bringup.ros.topic_taps import message_class
    from rfly_common.ros.qos import LATCHED

    best_effort = QoSProfile(depth=50, reliability=ReliabilityPolicy.BEST_EFFORT)
    qos = {LOSSY: best_effort} | dict.fromkeys(LATCHED_ONES, LATCHED)
    made = {
        topic: peer.node.create_publisher(
            message_class(kind), topic, qos.get(topic, QoSProfile(depth=50))
        )
        for topic, kind in TYPES.items()
    }
    peer.spin_until(lambda: all(each.get_subscription_count() >= count for each in made.values()))
    return made
