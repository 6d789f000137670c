# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Pictures -> sensor_msgs/Image, and ideal cameras -> sensor_msgs/CameraInfo."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import CameraInfo, Image

from rfly_common.ros.flat_arrays import flat
from rfly_common.ros.stamps import fill_header


def image_to_msg(pixels: NDArray[Any], encoding: str, stamp_ns: int, frame_id: str) -> Image:
    """Return pixels, (height, width) or (height, width, channels), as a message."""
    height, width = pixels.shape[:2]
    message = Image(
        height=height,
        width=width,
        encoding=encoding,
        is_bigendian=sys.byteorder == "big",
        step=pixels.nbytes // height,
        data=flat("B", np.ascontiguousarray(pixels).view(np.uint8)),
    )

    return fill_header(message, stamp_ns, frame_id)


def camera_info(
    matrix: Sequence[float], width: int, height: int, stamp_ns: int, frame_id: str
) -> CameraInfo:
    """Return the camera_info of an ideal camera, without distortion.

    `matrix`: fx 0 cx, 0 fy cy, 0 0 1, in pixels.
    """
    fx, _, cx, _, fy, cy, *_ = matrix
    message = CameraInfo(
        height=height,
        width=width,
        distortion_model="plumb_bob",
        d=[0.0] * 5,
        k=list(matrix),
        r=[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        p=[fx, 0.0, cx, 0.0, 0.0, fy, cy, 0.0, 0.0, 0.0, 1.0, 0.0],
    )

    return fill_header(message, stamp_ns, frame_id)
