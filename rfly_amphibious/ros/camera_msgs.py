"""Camera images -> sensor_msgs/Image and CameraInfo, gimbal angle -> a transform."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from geometry_msgs.msg import TransformStamped
from numpy.typing import ArrayLike, NDArray
from sensor_msgs.msg import CameraInfo, Image

from rfly_amphibious.sensors.cameras import Pinhole
from rfly_common.ros.flat_arrays import flat
from rfly_common.ros.stamps import ns_to_stamp


def image_to_msg(pixels: NDArray[Any], encoding: str, stamp_ns: int, frame_id: str) -> Image:
    """(height, width) or (height, width, channels) of the type that the encoding names."""
    height, width = pixels.shape[:2]
    message = Image(
        height=height,
        width=width,
        encoding=encoding,
        is_bigendian=sys.byteorder == "big",
        step=pixels.nbytes // height,
        data=flat("B", np.ascontiguousarray(pixels).view(np.uint8)),
    )
    message.header.stamp, message.header.frame_id = ns_to_stamp(stamp_ns), frame_id
    return message


def camera_info(pinhole: Pinhole, stamp_ns: int, frame_id: str) -> CameraInfo:
    """Of an ideal camera: no distortion."""
    fx, _, cx, _, fy, cy, *_ = pinhole.matrix
    message = CameraInfo(
        height=pinhole.height,
        width=pinhole.width,
        distortion_model="plumb_bob",
        d=[0.0] * 5,
        k=list(pinhole.matrix),
        r=[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        p=[fx, 0.0, cx, 0.0, 0.0, fy, cy, 0.0, 0.0, 0.0, 1.0, 0.0],
    )
    message.header.stamp, message.header.frame_id = ns_to_stamp(stamp_ns), frame_id
    return message


def transform_to_msg(
    parent: str, child: str, position: ArrayLike, quat_xyzw: ArrayLike, stamp_ns: int
) -> TransformStamped:
    """`child` at `position` (3,) m in `parent`, turned by `quat_xyzw` (4,)."""
    message = TransformStamped(child_frame_id=child)
    message.header.stamp, message.header.frame_id = ns_to_stamp(stamp_ns), parent
    translation, rotation = message.transform.translation, message.transform.rotation
    translation.x, translation.y, translation.z = np.asarray(position, float).tolist()
    rotation.x, rotation.y, rotation.z, rotation.w = np.asarray(quat_xyzw, float).tolist()
    return message
