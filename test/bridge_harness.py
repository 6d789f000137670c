# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A running bridge with real sockets in RflySim3D's place.

There are messages to feed it, and the bytes to expect from it.
"""

from __future__ import annotations

import math
import socket
import struct
import time

import numpy as np

H = math.sqrt(0.5)
EAST = (0.0, 0.0, 0.0, 1.0)
NORTH = (0.0, 0.0, H, H)


class Window:
    """RflySim3D's window, which keeps the datagrams that it receives."""

    def __init__(self, port=0):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", port))
        self.socket.setblocking(False)
        self.port = self.socket.getsockname()[1]
        self.datagrams = []

    def poll(self):
        """Datagrams that have arrived."""
        while True:
            try:
                self.datagrams.append(self.socket.recv(65536))
            except BlockingIOError:
                return self.datagrams

    def clear(self):
        self.poll()
        self.datagrams.clear()


class Bridge:
    """A running bridge, a peer that talks to it and the windows that it sends to."""

    def __init__(self, domain, windows=1, **parameters):
        from diagnostic_msgs.msg import DiagnosticArray
        from node_harness import NodeProcess, Peer

        self.windows = [Window()]
        while len(self.windows) < windows:
            try:
                self.windows.append(Window(self.windows[-1].port + 1))
            except OSError:
                self.windows = [Window()]
        self.window = self.windows[0]
        settings = {"port": self.window.port, "windows": windows, "feedback_port": 0, **parameters}
        self.node = NodeProcess(
            "ue_bridge_node", domain, {key: str(value) for key, value in settings.items()}
        )
        self.peer = Peer(domain)
        self.statuses = self.peer.receive(DiagnosticArray, "/diagnostics", 10)
        self._publishers = {}

    def publisher(self, msg_type, topic):
        from rclpy.qos import DurabilityPolicy, QoSProfile

        if topic not in self._publishers:
            qos = QoSProfile(depth=10)
            if topic == "/tf_static":
                qos.durability = DurabilityPolicy.TRANSIENT_LOCAL
            self._publishers[topic] = self.peer.publisher(msg_type, topic, qos)
        return self._publishers[topic]

    def publish_until(self, topic, message, ready):
        """Publish until `ready()`: a best-effort subscription may not be connected yet."""
        publisher = self.publisher(type(message), topic)
        last = 0.0

        def once_more():
            nonlocal last
            if time.monotonic() - last > 0.3:
                last = time.monotonic()
                publisher.publish(message)
            return ready()

        return self.peer.spin_until(once_more)

    def shown(self, topic, message, count=1):
        """The first datagrams that a message causes."""
        self.window.clear()
        found = self.publish_until(
            topic, message, lambda: len(self.window.poll()) >= count and self.window.datagrams
        )
        return [bytes(datagram) for datagram in found[:count]]

    def status(self):
        from node_harness import diagnostic

        return diagnostic(self.statuses, "bridge") or (None, "", {})

    def counted(self, reason):
        return int(self.status()[2].get(reason, 0))

    def dropped(self, topic, message, reason, *told):
        """Publish until the counter of a reason rises and the diagnostic contains these texts.

        No datagram may be sent. One that comes all the same may belong to an earlier message, which
        a busy node shows late: a message that is dropped leaves one of these rounds without any.
        """
        self.publisher(type(message), topic)
        self.peer.spin_until(lambda: self.status()[2])
        for _ in range(5):
            self.window.clear()
            before = self.counted(reason)
            self.publish_until(
                topic,
                message,
                lambda before=before: (
                    self.counted(reason) > before and all(text in self.status()[1] for text in told)
                ),
            )
            if not self.window.poll():
                return

        raise AssertionError(f"sent: {self.window.datagrams}")

    def close(self):
        self.peer.close()
        self.node.__exit__()
        for window in self.windows:
            window.socket.close()


def stamp(seconds):
    from builtin_interfaces.msg import Time

    return Time(sec=int(seconds), nanosec=round(seconds % 1 * 1e9))


def pose(position=(2.0, 1.0, 3.0), quat=NORTH, frame="map", seconds=0.0):
    from geometry_msgs.msg import PoseStamped

    message = PoseStamped()
    message.header.frame_id = frame
    message.header.stamp = stamp(seconds)
    fill_pose(message.pose, position, quat)
    return message


def fill_pose(pose, position, quat):
    pose.position.x, pose.position.y, pose.position.z = position
    q = pose.orientation
    q.x, q.y, q.z, q.w = (float(value) for value in quat)


def odometry(position, quat, linear, child, frame="map"):
    from nav_msgs.msg import Odometry

    message = Odometry(child_frame_id=child)
    message.header.frame_id = frame
    fill_pose(message.pose.pose, position, quat)
    linear_out = message.twist.twist.linear
    linear_out.x, linear_out.y, linear_out.z = linear
    return message


def fleet(ids, source="/fleet", frame="map", seconds=0.0, **arrays):
    from rfly_suite.msg import VehicleStateArray

    n = len(ids)
    message = VehicleStateArray(
        source=source, id=ids, vehicle_type=arrays.pop("vehicle_type", [3] * n)
    )
    message.header.frame_id = frame
    message.header.stamp = stamp(seconds)
    message.position = arrays.pop("position", [0.0] * (3 * n))
    message.orientation = arrays.pop("orientation", list(NORTH) * n)
    for name, values in arrays.items():
        setattr(message, name, values)
    return message


def time_packet(vehicle_id, vehicle_type, position, euler, velocity=(0, 0, 0), motors=()):
    motors = [*motors, *[0.0] * (8 - len(motors))]
    fields = (vehicle_id, vehicle_type, 0, 0, 0, *motors, *velocity, *euler, *position, -1.0)
    return struct.pack("<6i14f4d", 1234567891, *fields)


def assert_same(datagram, expected, angles_at=68, tolerance=2.5e-7):
    """Byte by byte but for the three angles, which may differ by a rounding of the trigonometry."""
    assert len(datagram) == len(expected)
    rest = slice(0, angles_at), slice(angles_at + 12, None)
    assert [datagram[part].hex() for part in rest] == [expected[part].hex() for part in rest]
    got, want = (struct.unpack_from("<3f", data, angles_at) for data in (datagram, expected))
    np.testing.assert_allclose(got, want, atol=tolerance)


def transform(parent, child, translation, quat, seconds=0.0):
    from geometry_msgs.msg import TransformStamped
    from tf2_msgs.msg import TFMessage

    edge = TransformStamped(child_frame_id=child)
    edge.header.frame_id = parent
    edge.header.stamp = stamp(seconds)
    t = edge.transform.translation
    q = edge.transform.rotation
    t.x, t.y, t.z = translation
    q.x, q.y, q.z, q.w = (float(value) for value in quat)
    return TFMessage(transforms=[edge])


def vector3(x, y, z):
    from geometry_msgs.msg import Vector3

    return Vector3(x=float(x), y=float(y), z=float(z))


def xyz(message):
    """Return the numbers of a Point or a Vector3."""
    return [message.x, message.y, message.z]


def vehicle_state(vehicle_id=10, **fields):
    from rfly_suite.msg import VehicleState

    message = VehicleState(id=vehicle_id, vehicle_type=5)
    message.header.frame_id = "map"
    message.position = [2.0, 1.0, 3.0]
    message.orientation = [float(value) for value in NORTH]
    for name, value in fields.items():
        setattr(message, name, value)
    return message


def call(bridge, command, window=-1):
    from rfly_suite.srv import SendUeCommand

    return bridge.peer.call(SendUeCommand, "send_ue_command", command=command, window=window)
