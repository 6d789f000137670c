# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Frames of RflySim3D's sensors -> sensor_msgs."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import Vector3
from numpy.typing import NDArray
from sensor_msgs.msg import CompressedImage, Imu, PointCloud2, PointField

try:
    from vision_msgs.msg import (
        BoundingBox2D,
        Detection2D,
        Detection2DArray,
        ObjectHypothesis,
        ObjectHypothesisWithPose,
        Point2D,
        Pose2D,
    )
except ImportError:  # an optional package of ROS
    Detection2DArray = None

from rfly_common.ros.flat_arrays import flat
from rfly_ue_bridge.codec.sensor_payloads import depth_to_metres, depth_to_millimetres
from rfly_ue_bridge.codec.sensor_requests import VisionSensor

_RATE_VARIANCE = 0.001
"""Variance of an IMU's rates as RflySim's SDK publishes it, (rad/s)^2."""


def depth_pixels(counts: NDArray[np.uint16], sensor: VisionSensor, encoding: str) -> NDArray[Any]:
    """Return a depth camera's counts in the encoding mono16, 16UC1 (mm) or 32FC1 (m)."""
    if encoding == "32FC1":
        return depth_to_metres(counts, sensor)
    if encoding == "16UC1":
        return depth_to_millimetres(counts, sensor)
    return counts


def compressed_to_msg(payload: bytes, form: str, encoding: str) -> CompressedImage:
    """Return a jpeg or png as it came; the format is that of compressed_image_transport."""
    words = f"{encoding}; {form} compressed"
    if encoding == "bgr8":
        words += " bgr8"
    return CompressedImage(format=words, data=flat("B", np.frombuffer(payload, np.uint8)))


def pinhole_matrix(fov_deg: float, width: int, height: int) -> list[float]:
    """Return the matrix fx 0 cx, 0 fy cy, 0 0 1 of square pixels, whose angle is horizontal."""
    focal = width / (2.0 * math.tan(math.radians(fov_deg) / 2.0))
    return [focal, 0.0, (width - 1) / 2, 0.0, focal, (height - 1) / 2, 0.0, 0.0, 1.0]


def cloud_to_msg(points: NDArray[np.float32], names: Sequence[str]) -> PointCloud2:
    """Return points (n, fields) as a cloud of one row, as RflySim's SDK publishes it."""
    step = 4 * len(names)
    return PointCloud2(
        height=1,
        width=len(points),
        fields=[
            PointField(name=name, offset=4 * k, datatype=PointField.FLOAT32, count=1)
            for k, name in enumerate(names)
        ],
        is_bigendian=sys.byteorder == "big",
        point_step=step,
        row_step=step * len(points),
        is_dense=False,
        data=flat("B", np.ascontiguousarray(points, np.float32).view(np.uint8)),
    )


def boxes_to_msg(boxes: NDArray[Any]) -> Any:
    """Return a detector's boxes, (n,) of `BOXES`, as a vision_msgs/Detection2DArray.

    The id of a detection, and its class, is the CopterID of the vehicle.
    """
    detections = []
    columns = (boxes[name].tolist() for name in ("copter_id", "score", "min", "max"))
    for copter_id, score, low, high in zip(*columns, strict=True):
        center = Point2D(x=(low[0] + high[0]) / 2, y=(low[1] + high[1]) / 2)
        box = BoundingBox2D(
            center=Pose2D(position=center), size_x=high[0] - low[0], size_y=high[1] - low[1]
        )
        hypothesis = ObjectHypothesis(class_id=str(copter_id), score=score)
        result = ObjectHypothesisWithPose(hypothesis=hypothesis)
        detections.append(Detection2D(id=str(copter_id), bbox=box, results=[result]))
    return Detection2DArray(detections=detections)


def imu_to_msg(acceleration_frd: Sequence[float], rate_frd: Sequence[float]) -> Imu:
    """Return an IMU's sample in FLU, without an orientation, as RflySim's SDK publishes it."""
    x, y, z = acceleration_frd
    p, q, r = rate_frd
    return Imu(
        orientation_covariance=[-1.0] * 9,
        linear_acceleration=Vector3(x=x, y=0.0 - y, z=0.0 - z),
        angular_velocity=Vector3(x=p, y=0.0 - q, z=0.0 - r),
        angular_velocity_covariance=(np.eye(3) * _RATE_VARIANCE).ravel(),
    )
