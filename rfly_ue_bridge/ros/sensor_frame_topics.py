# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Topics of one of RflySim3D's sensors. Part of ue_sensors_node.

The receiver's thread joins fragments and never decodes. A thread of the sensor decodes what has
subscribers and publishes it, so that four cameras that render at once do not wait for each other.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, PointCloud2, Range

from rfly_common.diagnostic_reasons import Notice, Reason
from rfly_common.errors import PacketError
from rfly_common.ros.diagnostics import OK, STALE, Diagnostics
from rfly_common.ros.endpoints import publisher
from rfly_common.ros.qos import STATE_OUT
from rfly_common.ros.sensor_messages import camera_info, image_to_msg
from rfly_common.ros.stamps import fill_header
from rfly_common.threads.loop_thread import LoopThread
from rfly_common.transform_buffer import WORLD
from rfly_ue_bridge.codec.sensor_payloads import (
    CLOUD_FIELDS,
    Content,
    picture_form,
    picture_size,
    range_fields,
    sensor_type,
)
from rfly_ue_bridge.codec.sensor_requests import VisionSensor
from rfly_ue_bridge.ros.node_parameters import SensorsParameters
from rfly_ue_bridge.ros.sensor_frame_msgs import (
    Detection2DArray,
    boxes_to_msg,
    cloud_to_msg,
    compressed_to_msg,
    depth_pixels,
    pinhole_matrix,
)
from rfly_ue_bridge.sensors.frame_assembler import (
    FrameAssembler,
    FrameQueue,
    JoinedFrame,
    SensorFrame,
)
from rfly_ue_bridge.sensors.mounting import turn_points

QUEUE = 2
"""Complete frames that wait for decoding; a full queue drops the oldest."""
FISHEYE = 8
WORLD_LIDAR = 21
_FLAT_DEG = 180.0
"""Angle of view that no plane picture has, deg."""
_LATENCIES = 128
"""Frames over which the delay is a median."""
_LOSSES = (
    "length",
    "checksum",
    "header",
    "incomplete",
    "contradictions",
    "undecodable",
    "unexpected_size",
    "impossible_time",
    "not_in_time",
    "system_dropped",
)
_IMAGES = (Content.BGR, Content.GREY, Content.DEPTH)

Stamp = Callable[[float], int]
"""Function from a frame's time, s of simulation, to its stamp, ns; called when it arrives."""


@dataclass(frozen=True)
class SensorFrames:
    """Ids of a sensor's frames."""

    link: str
    """Frame of the sensor, FLU."""
    optical: str
    """Frame of its pictures: x right, y down, z forward."""


class SensorFrameTopics:
    """Publishers and decoding thread of one sensor.

    `take` gets its datagrams. `stamp` gives stamps. `dropped` counts datagrams that the system has
    dropped.
    """

    def __init__(
        self,
        node: Node,
        sensor: VisionSensor,
        parameters: SensorsParameters,
        frames: SensorFrames,
        stamp: Stamp,
    ) -> None:
        self.sensor = sensor
        self.frames = frames
        self.dropped: Callable[[], int] = lambda: 0
        """Function that counts the datagrams that the system has dropped."""
        self.heard_s = -np.inf
        """Arrival of the last datagram, steady clock."""
        self._node = node
        self._parameters = parameters
        self._stamp = stamp
        self._assembler = FrameAssembler(sensor)
        self._publishers = _publishers(node, sensor)

        # between the receiver's thread and this sensor's
        self._queue: FrameQueue[tuple[JoinedFrame, int]] = FrameQueue(QUEUE)
        self._misses = 0
        self._latencies: deque[float] = deque(maxlen=_LATENCIES)

        self._frames_before = 0
        self._counted_s = time.monotonic()
        self._losses_before: dict[str, int] = {}
        self._diagnostics = Diagnostics(
            node,
            f"sensor{sensor.seq_id}",
            f"{parameters.host}:{sensor.port}",
            self._update_diagnostics,
            check_peers=False,
        )
        self._thread = LoopThread(self._work, f"rfly-sensor-{sensor.seq_id}")
        self._thread.start()

    def take(self, datagram: bytes, arrival_s: float) -> None:
        """Take a datagram, in the receiver's thread."""
        self.heard_s = arrival_s
        joined = self._assembler.join(datagram, arrival_s)
        if joined is None:
            return
        counters = self._assembler.counters
        try:
            job = (joined, self._stamp(joined.time))
        except PacketError as error:
            counters[error.reason] += 1
            return
        counters["not_in_time"] += len(self._queue.put(job, len(joined.payload)))

    def give_up_old(self, now_s: float) -> None:
        """Forget incomplete frames that have waited for too long, in the receiver's thread."""
        self._assembler.give_up_old(now_s)

    @property
    def has_pictures(self) -> bool:
        """True for a camera or detector, False for a lidar or range finder."""
        return sensor_type(self.sensor.type_id).content in (*_IMAGES, Content.BOXES)

    def change(self, sensor: VisionSensor) -> None:
        """Go on with another pose or angle of view."""
        self.sensor = self._assembler.sensor = sensor

    def close(self) -> None:
        """End the thread; nothing is published after that."""
        self._queue.close()
        self._thread.join()

    # --- decoding

    def _work(self) -> bool:
        """Decode and publish the oldest frame that waits; return False at the end."""
        job = self._queue.get()
        if job is None:
            return False
        joined, stamp_ns = job
        self._publish(joined, stamp_ns)
        return True

    def _publish(self, joined: JoinedFrame, stamp_ns: int) -> None:
        heard = {name for name, out in self._publishers.items() if out.get_subscription_count()}
        if not heard:
            return

        content = sensor_type(self.sensor.type_id).content
        if content in _IMAGES:
            self._publish_about_picture(joined, heard, stamp_ns)
        if "data" in heard:
            frame = self._assembler.decode(joined)
            if frame is not None:
                self._publish_data(frame, content, stamp_ns)
        self._latencies.append(time.monotonic() - joined.arrival)

    def _publish_about_picture(self, joined: JoinedFrame, heard: set[str], stamp_ns: int) -> None:
        """Publish what needs no decoding: the file as it came, and the camera's angle of view."""
        sensor = self.sensor
        try:
            form = picture_form(sensor, joined.payload)
            size = picture_size(sensor, joined.payload, form)
        except PacketError:  # counted where it is decoded
            return

        # the file as it came
        if "compressed" in heard and form != "raw":
            encoding = sensor_type(sensor.type_id).content.value
            message = compressed_to_msg(joined.payload, form, encoding)
            self._send("compressed", message, stamp_ns, self.frames.optical)

        # the angle of view
        if "camera_info" in heard and 0.0 < sensor.fov_deg < _FLAT_DEG:
            matrix = pinhole_matrix(sensor.fov_deg, *size)
            self._publishers["camera_info"].publish(
                camera_info(matrix, *size, stamp_ns, self.frames.optical)
            )

    def _publish_data(self, frame: SensorFrame, content: Content, stamp_ns: int) -> None:
        if content in _IMAGES:
            pixels = frame.data
            encoding = content.value
            if content is Content.DEPTH:
                encoding = self._parameters.depth_encoding
                pixels = depth_pixels(pixels, self.sensor, encoding)
            self._publishers["data"].publish(
                image_to_msg(pixels, encoding, stamp_ns, self.frames.optical)
            )
        elif content is Content.RANGE:
            message = Range(**range_fields(frame.data, self.sensor))
            self._send("data", message, stamp_ns, self.frames.link)
        elif content is Content.BOXES:
            self._send("data", boxes_to_msg(frame.data), stamp_ns, self.frames.optical)
        elif content is Content.TARGETS:
            ids = frame.data["copter_id"][:, None].astype(np.float32)
            points = np.hstack([frame.data["position"], ids])
            message = cloud_to_msg(points, ("x", "y", "z", "id"))
            self._send("data", message, stamp_ns, self.frames.link)
        else:
            self._publish_cloud(frame, stamp_ns)

    def _publish_cloud(self, frame: SensorFrame, stamp_ns: int) -> None:
        parameters = self._parameters
        points = frame.data
        if not parameters.keep_misses:
            # several times as fast as `any` along the rows
            is_hit = (points[:, 0] != 0) | (points[:, 1] != 0) | (points[:, 2] != 0)
            self._misses = len(points) - int(np.count_nonzero(is_hit))
            if self._misses:
                points = points[is_hit]

        frame_id = self.frames.link
        axes: str = parameters.lidar_axes
        if sensor_type(frame.type_id).content is Content.DEPTH_CLOUD:
            axes = parameters.depth_cloud_axes
            if axes == "optical":
                frame_id = self.frames.optical
                axes = "flu"  # optical axes stay as they are
        elif frame.type_id == WORLD_LIDAR:
            axes = parameters.world_axes
            frame_id = WORLD
        names = CLOUD_FIELDS[: points.shape[1]]
        self._send("data", cloud_to_msg(turn_points(points, axes), names), stamp_ns, frame_id)

    def _send(self, name: str, message: Any, stamp_ns: int, frame_id: str) -> None:
        self._publishers[name].publish(fill_header(message, stamp_ns, frame_id))

    # --- diagnostics

    def _update_diagnostics(self) -> None:
        now_s = time.monotonic()
        counters = self._assembler.counters
        numbers = {**counters, "system_dropped": self.dropped()}
        rate = (counters["frames"] - self._frames_before) / max(now_s - self._counted_s, 1e-3)
        self._frames_before = counters["frames"]
        self._counted_s = now_s

        values: dict[str, Any] = {"rate_hz": f"{rate:.1f}", **numbers, "misses": self._misses}
        if self._latencies:
            values["latency_ms"] = f"{statistics.median(list(self._latencies)) * 1e3:.2f}"
        new = {
            name: numbers[name] - self._losses_before.get(name, 0)
            for name in _LOSSES
            if numbers[name] > self._losses_before.get(name, 0)
        }
        self._losses_before = {name: numbers[name] for name in _LOSSES}
        if new:
            self._diagnostics.warn(
                "losses", "losses: " + ", ".join(f"{name} {count}" for name, count in new.items())
            )

        silence_s = now_s - self.heard_s
        period = self._parameters.request_period or 3.0
        port = str(self.sensor.port)
        since = f" for {silence_s:.0f} s" if np.isfinite(silence_s) else " yet"
        silent = Notice(f"no data on port {port}{since}", Reason.NO_SENSOR_DATA, port)
        self._diagnostics.set_first(
            [
                (silence_s > period, STALE, silent),
                (True, OK, f"{sensor_type(self.sensor.type_id).name}, {rate:.1f} Hz"),
            ],
            **values,
        )


def _publishers(node: Node, sensor: VisionSensor) -> dict[str, Any]:
    """Return the publishers of a sensor: data, and for pictures compressed and camera_info."""
    kind = sensor_type(sensor.type_id)
    types: dict[str, Any] = {}
    prefix = f"rflysim/sensor{sensor.seq_id}"
    topic = f"{prefix}/{kind.topic}"

    # types by content
    if kind.content in _IMAGES:
        types = {topic: ("data", Image), f"{topic}/compressed": ("compressed", CompressedImage)}
        if sensor.type_id != FISHEYE:  # its projection is not public
            types[f"{prefix}/camera_info"] = ("camera_info", CameraInfo)
    elif kind.content is Content.RANGE:
        types = {topic: ("data", Range)}
    elif kind.content is Content.BOXES:
        if Detection2DArray is None:
            node.get_logger().warning(
                f"sensor {sensor.seq_id}: vision_msgs is not installed, so its boxes are not "
                "published"
            )
        else:
            types = {topic: ("data", Detection2DArray)}
    elif kind.content in (Content.CLOUD, Content.DEPTH_CLOUD, Content.TARGETS):
        types = {topic: ("data", PointCloud2)}

    return {
        name: publisher(node, msg_type, topic, STATE_OUT)
        for topic, (name, msg_type) in types.items()
    }
