# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MCAP file of RflySim3D's sensors with ROS 2 messages, written without ROS.

Topics, frames and messages are those of ue_sensors_node: pictures as they came, clouds and
distances. It needs mcap and mcap-ros2-support, the extra `log`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rfly_common.files import Closing, check_ending
from rfly_common.imports import require
from rfly_lab.runs.message_definitions import message_definition
from rfly_ue_bridge.codec.sensor_payloads import CLOUD_FIELDS, Content, range_fields, sensor_type
from rfly_ue_bridge.codec.sensor_requests import VisionSensor
from rfly_ue_bridge.sensors.frame_assembler import SensorFrame

_PICTURES = (Content.BGR, Content.GREY, Content.DEPTH)
_CLOUDS = (Content.CLOUD, Content.DEPTH_CLOUD)
_FLOAT32 = 7


class SensorLog(Closing):
    """Writer of frames; boxes, targets and bytes without a public layout are left out."""

    def __init__(self, path: Path) -> None:
        """Open the file. Raises ConfigError without mcap-ros2-support, OSError for the path."""
        require("mcap_ros2", "writing MCAP files")
        check_ending(path, ".mcap")
        from mcap_ros2.writer import Writer

        self._file = path.open("xb")
        self._writer = Writer(self._file)
        self._schemas: dict[str, Any] = {}

    def close(self) -> None:
        """Finish the file."""
        self._writer.finish()
        self._file.close()

    def write(self, sensor: VisionSensor, frame: SensorFrame, time_ns: int) -> None:
        """Write a frame with the time of its arrival, ns since 1970."""
        seconds, nanoseconds = divmod(time_ns, 1_000_000_000)
        stamp = {"sec": seconds, "nanosec": nanoseconds}
        kind = sensor_type(sensor.type_id)
        topic = f"/rflysim/sensor{sensor.seq_id}/{kind.topic}"
        frame_id = f"sensor{sensor.seq_id}"

        if kind.content in _PICTURES:
            header = {"stamp": stamp, "frame_id": f"{frame_id}_optical"}
            if frame.form in ("jpeg", "png"):
                self._write(f"{topic}/compressed", _compressed(header, frame), time_ns)
            else:
                self._write(topic, _picture(header, frame, kind.content.value), time_ns)
            return

        header = {"stamp": stamp, "frame_id": frame_id}
        if kind.content in _CLOUDS:
            self._write(topic, _cloud(header, frame), time_ns)
        elif kind.content is Content.RANGE:
            message = {"header": header, **range_fields(frame.data, sensor)}
            self._write(topic, ("sensor_msgs/Range", message), time_ns)

    def _write(self, topic: str, typed: tuple[str, dict[str, Any]], time_ns: int) -> None:
        name, message = typed
        if name not in self._schemas:
            self._schemas[name] = self._writer.register_msgdef(
                name.replace("/", "/msg/"), message_definition(name)
            )
        self._writer.write_message(topic, self._schemas[name], message, time_ns)


def _compressed(header: dict[str, Any], frame: SensorFrame) -> tuple[str, dict[str, Any]]:
    return "sensor_msgs/CompressedImage", {
        "header": header,
        "format": frame.form,
        "data": frame.payload,
    }


def _picture(
    header: dict[str, Any], frame: SensorFrame, encoding: str
) -> tuple[str, dict[str, Any]]:
    height, width = frame.data.shape[:2]
    return "sensor_msgs/Image", {
        "header": header,
        "height": height,
        "width": width,
        "encoding": encoding,
        "is_bigendian": 0,
        "step": frame.data.nbytes // height,
        "data": frame.data.tobytes(),
    }


def _cloud(header: dict[str, Any], frame: SensorFrame) -> tuple[str, dict[str, Any]]:
    points = np.ascontiguousarray(frame.data, "<f4")
    count, columns = points.shape
    fields = [
        {"name": name, "offset": 4 * index, "datatype": _FLOAT32, "count": 1}
        for index, name in enumerate(CLOUD_FIELDS[:columns])
    ]
    return "sensor_msgs/PointCloud2", {
        "header": header,
        "height": 1,
        "width": count,
        "fields": fields,
        "is_bigendian": False,
        "point_step": 4 * columns,
        "row_step": 4 * columns * count,
        "data": points.tobytes(),
        "is_dense": False,
    }
