# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""RflySim3D's sensors to ROS in the way of RflySim's SDK: a thread and a blocking socket each.

It is written from what is known of that loop: fragments are collected in the order of their coming,
decoded where they were received, and published at once.

    python benchmarks/sdk_sensor_node.py IMAGE|CLOUD PORT...
"""

from __future__ import annotations

import array
import socket
import struct
import sys
import threading
from contextlib import suppress
from typing import Any

import cv2
import numpy as np
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import Image, PointCloud2, PointField

BUFFER_BYTES = 6_000_000
LARGEST = 62_000
HEADER = struct.Struct("<6id")
RANGE = 100.0


def image(payload: bytes) -> Image:
    """Return the message of a jpeg."""
    pixels = cv2.imdecode(np.frombuffer(payload, np.uint8), cv2.IMREAD_UNCHANGED)
    height, width, _ = pixels.shape
    return Image(
        height=height,
        width=width,
        encoding="bgr8",
        step=3 * width,
        data=array.array("B", pixels.tobytes()),
    )


def cloud(payload: bytes) -> PointCloud2:
    """Return the message of an int16 cloud."""
    count = struct.unpack_from("<i", payload, 24)[0]
    points = np.frombuffer(payload, "<i2", offset=28).reshape(count, 4) / 32767 * RANGE
    fields = [
        PointField(name=name, offset=4 * k, datatype=PointField.FLOAT32, count=1)
        for k, name in enumerate(("x", "y", "z", "seg"))
    ]
    return PointCloud2(
        height=1,
        width=count,
        fields=fields,
        point_step=16,
        row_step=16 * count,
        data=array.array("B", points.astype(np.float32).tobytes()),
    )


def receive(opened: socket.socket, publisher: Any, convert: Any) -> None:
    """Publish the frames of a port, for ever."""
    parts: list[bytes] = []
    while True:
        datagram, _ = opened.recvfrom(LARGEST)
        _, length, index, count, *_ = HEADER.unpack_from(datagram)
        if length != len(datagram):
            continue
        if index == 0:
            parts = []
        parts.append(datagram[HEADER.size :])
        if len(parts) == count and index == count - 1:
            publisher.publish(convert(b"".join(parts)))


def main() -> None:
    """Run until a signal."""
    kind, *ports = sys.argv[1:]
    msg_type, topic, convert = {
        "image": (Image, "img_rgb", image),
        "cloud": (PointCloud2, "mid360_lidar", cloud),
    }[kind]
    rclpy.init()
    node = rclpy.create_node("sdk_sensor_node")
    for number, port in enumerate(ports):
        opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        opened.bind(("127.0.0.1", int(port)))
        name = f"/rflysim/sensor{number}/{topic}"
        out = node.create_publisher(msg_type, name, qos_profile_sensor_data)
        threading.Thread(target=receive, args=(opened, out, convert), daemon=True).start()
    with suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(node)


if __name__ == "__main__":
    main()
