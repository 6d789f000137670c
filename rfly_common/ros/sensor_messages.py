# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fields of a PointCloud2 as NumPy arrays, pictures as Image, ideal cameras as CameraInfo."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import CameraInfo, Image, PointCloud2, PointField

from rfly_common.errors import SensorMessageError
from rfly_common.ros.flat_arrays import flat
from rfly_common.ros.stamps import fill_header

LARGEST_POINT = 65_536
"""Bytes of a point."""
LONGEST_LIST = 200
"""Characters of a list of fields in an error."""
_FORMATS = {
    PointField.INT8: "i1",
    PointField.UINT8: "u1",
    PointField.INT16: "i2",
    PointField.UINT16: "u2",
    PointField.INT32: "i4",
    PointField.UINT32: "u4",
    PointField.FLOAT32: "f4",
    PointField.FLOAT64: "f8",
}
"""NumPy's types by the datatype of a PointField."""


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


def read_fields(cloud: PointCloud2, names: Sequence[str]) -> NDArray[Any]:
    """Return a structured array (height * width,) with the named fields, row by row.

    Of a field with several values per point it holds the first; `count` does not matter, and some
    drivers leave it at 0. Other fields are not looked at. Raises SensorMessageError if a field is
    missing or does not fit into a point, or the data is shorter than the cloud states.
    """
    fields = {field.name: field for field in reversed(cloud.fields)}  # the first of a name counts
    missing = [name for name in names if name not in fields]
    if missing:
        there = ", ".join(field.name for field in cloud.fields)[:LONGEST_LIST]
        raise SensorMessageError(
            f"the cloud has the fields {there}; {', '.join(missing)} is missing"
        )

    if cloud.point_step > LARGEST_POINT:
        raise SensorMessageError(
            f"the cloud's points have {cloud.point_step} bytes, expected at most {LARGEST_POINT}"
        )

    for name in names:
        number = _FORMATS.get(fields[name].datatype)
        if number is None or fields[name].offset + int(number[1]) > cloud.point_step:
            raise SensorMessageError(
                f"the cloud's field {name} lies beyond its points of {cloud.point_step} bytes"
            )

    row = cloud.width * cloud.point_step
    row_step = row if cloud.height == 1 else cloud.row_step  # one row needs none, and some have 0
    if row_step < row or len(cloud.data) < cloud.height * row_step:
        raise SensorMessageError(
            f"the cloud's {len(cloud.data)} bytes do not hold {cloud.height} x {cloud.width} points"
        )

    kind = np.dtype(
        {
            "names": list(names),
            "formats": [
                (">" if cloud.is_bigendian else "<") + _FORMATS[fields[name].datatype]
                for name in names
            ],
            "offsets": [fields[name].offset for name in names],
            "itemsize": cloud.point_step,
        }
    )
    if not cloud.height * cloud.width:
        return np.empty(0, kind)
    rows = np.frombuffer(cloud.data, np.uint8)[: cloud.height * row_step].reshape(
        cloud.height, row_step
    )
    return np.ascontiguousarray(rows[:, :row]).reshape(-1).view(kind)
