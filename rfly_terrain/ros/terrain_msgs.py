# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""HeightMap -> rfly_suite/TerrainMap, and clouds <-> sensor_msgs/PointCloud2."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from rfly_suite.msg import TerrainMap
from sensor_msgs.msg import PointCloud2, PointField

from rfly_common.geodesy import GeoPoint
from rfly_common.ros.flat_arrays import flat
from rfly_common.ros.sensor_messages import read_fields
from rfly_common.ros.stamps import fill_header
from rfly_terrain.height_map.height_map import HeightMap


def height_map_to_msg(
    height_map: HeightMap, geo_origin: GeoPoint, stamp_ns: int, max_cells: int
) -> TerrainMap:
    """Return a message; for a map of more than `max_cells` cells it has name and sha256 only."""
    message = TerrainMap(
        name=height_map.name,
        sha256=height_map.sha256,
        origin_x=height_map.origin_x,
        origin_y=height_map.origin_y,
        step_x=height_map.step_x,
        step_y=height_map.step_y,
        rows=height_map.rows,
        columns=height_map.columns,
        geo_origin=list(geo_origin),
    )

    fill_header(message, stamp_ns, "map")

    if height_map.heights.size <= max_cells:
        message.height = flat("f", height_map.heights)
    return message


def cloud_to_msg(points: np.ndarray[Any, Any], frame_id: str, stamp_ns: int) -> PointCloud2:
    """Return an organised, dense PointCloud2 of (rows, columns, 3) float32.

    height = rows, width = columns, fields x, y, z.
    """
    rows, columns, _ = points.shape
    message = PointCloud2(
        height=rows,
        width=columns,
        fields=[
            PointField(name=n, offset=4 * i, datatype=PointField.FLOAT32, count=1)
            for i, n in enumerate("xyz")
        ],
        is_bigendian=sys.byteorder == "big",
        point_step=12,
        row_step=12 * columns,
        is_dense=True,
        data=flat("B", points.view(np.uint8)),
    )

    return fill_header(message, stamp_ns, frame_id)


def msg_to_cloud(message: PointCloud2) -> np.ndarray[Any, Any]:
    """Return x, y, z of a PointCloud2 as (height, width, 3) float32.

    Raises SensorMessageError if it has none.
    """
    table = read_fields(message, "xyz")
    points = np.stack([table[name] for name in "xyz"], axis=-1).astype(np.float32)
    return points.reshape(message.height, message.width, 3)
