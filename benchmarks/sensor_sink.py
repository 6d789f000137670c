# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Count the messages of sensors, and print them as JSON when standard input ends.

python benchmarks/sensor_sink.py IMAGE|CLOUD NUMBER
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import ExternalShutdownException
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import Image, PointCloud2

KINDS = {
    "image": (Image, "img_rgb", np.uint8),
    "cloud": (PointCloud2, "mid360_lidar", np.float32),
}
"""Message, topic and numbers by the kind of sensor."""
REPORTED = ("latency_ms", "frames", "incomplete", "not_in_time", "undecodable", "system_dropped")
"""Values of a sensor's status that are printed."""


def main() -> None:
    """Listen until standard input ends."""
    kind, number = sys.argv[1:]
    msg_type, topic, number_type = KINDS[kind]
    counts: Counter[int] = Counter()
    newest: dict[int, Any] = {}
    statuses: dict[str, dict[str, float]] = {}

    def take(sensor: int, message: Any) -> None:
        counts[sensor] += 1
        newest[sensor] = message.data

    def take_status(message: DiagnosticArray) -> None:
        for status in message.status:
            numbers = {each.key: each.value for each in status.values}
            if "latency_ms" in numbers:
                statuses[status.name] = {name: float(numbers[name]) for name in REPORTED}

    rclpy.init()
    node = rclpy.create_node("sensor_sink")
    for sensor in range(int(number)):
        name = f"/rflysim/sensor{sensor}/{topic}"
        callback = partial(take, sensor)
        node.create_subscription(msg_type, name, callback, qos_profile_sensor_data)
    node.create_subscription(DiagnosticArray, "/diagnostics", take_status, 10)

    def end() -> None:
        sys.stdin.read()
        found = {
            "counts": dict(counts),
            "mean": {
                sensor: float(np.frombuffer(data, number_type).mean(dtype=float))
                for sensor, data in newest.items()
            },
            "statuses": statuses,
        }
        print(json.dumps(found), flush=True)
        rclpy.try_shutdown()

    threading.Thread(target=end, daemon=True).start()
    with suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(node)


if __name__ == "__main__":
    main()
