# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""HeightMap <-> rfly_suite/TerrainMap, and clouds -> sensor_msgs/PointCloud2."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from rfly_suite.msg import TerrainMap
from sensor_msgs.msg import PointCloud2, PointField

from rfly_common.errors import TerrainError, TerrainFormatError
from rfly_common.geodesy import GeoPoint
from rfly_common.ros.flat_arrays import flat
from rfly_common.ros.point_clouds import read_fields
from rfly_common.ros.stamps import ns_to_stamp
from rfly_terrain.files.asked_maps import is_plain, load_asked_map
from rfly_terrain.height_map.height_map import HeightMap

FARTHEST = 1e8
"""Largest distance from the origin, m."""
SMALLEST_STEP = 1e-3
"""Smallest step, m."""


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

    message.header.frame_id = "map"
    message.header.stamp = ns_to_stamp(stamp_ns)

    if height_map.heights.size <= max_cells:
        message.height = flat("f", height_map.heights)
    return message


def msg_to_height_map(message: TerrainMap, search_path: tuple[str, ...] = ()) -> HeightMap:
    """Return the map of a message.

    A message without heights names a map, which is loaded and must have the message's sha256.
    Raises TerrainFormatError for a message that contradicts itself, TerrainFileNotFound for a name
    not found here.
    """
    rows = int(message.rows)
    columns = int(message.columns)
    if len(message.height) == 0:
        if not is_plain(message.name):  # any peer may have sent it
            raise TerrainFormatError(
                f"terrain_map {message.name!r}: without heights, expected the name of a map alone"
            )
        local = load_asked_map(message.name, search_path)
        if local.sha256 != message.sha256:
            raise TerrainFormatError(
                f"map {message.name!r}: {' and '.join(map(str, local.files))} hold other heights "
                f"than the publisher's (sha256 {local.sha256[:12]}… instead of "
                f"{message.sha256[:12]}…); copy the publisher's files here"
            )
        return local

    if len(message.height) != rows * columns:
        raise TerrainFormatError(
            f"terrain_map {message.name!r}: {len(message.height)} heights for {rows} rows x "
            f"{columns} columns, expected {rows * columns}"
        )

    _check_extent(message)
    geo = message.geo_origin
    try:
        return HeightMap(
            np.asarray(message.height, np.float32).reshape(rows, columns),
            origin_x=message.origin_x,
            origin_y=message.origin_y,
            step_x=message.step_x,
            step_y=message.step_y,
            name=message.name,
            geo_origin=(float(geo[0]), float(geo[1]), float(geo[2])),
        )
    except TerrainError:
        raise
    except ValueError as error:
        raise TerrainFormatError(f"terrain_map {message.name!r}: {error}") from error


def _check_extent(message: TerrainMap) -> None:
    """Raise TerrainFormatError for finite numbers that are no place of this world.

    They lead to overflows in counts of cells.
    """
    for axis, origin, step, count in (
        ("x", message.origin_x, message.step_x, message.rows),
        ("y", message.origin_y, message.step_y, message.columns),
    ):
        end = origin + step * count
        is_near = abs(origin) <= FARTHEST and abs(end) <= FARTHEST
        if not (is_near and abs(step) >= SMALLEST_STEP):  # also for NaN
            raise TerrainFormatError(
                f"terrain_map {message.name!r}: origin_{axis} {origin:g}, step_{axis} {step:g}: "
                f"expected places up to {FARTHEST:g} m and steps from {SMALLEST_STEP:g} m"
            )


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

    message.header.frame_id = frame_id
    message.header.stamp = ns_to_stamp(stamp_ns)
    return message


def msg_to_cloud(message: PointCloud2) -> np.ndarray[Any, Any]:
    """Return x, y, z of a PointCloud2 as (height, width, 3) float32.

    Raises SensorMessageError if it has none.
    """
    table = read_fields(message, "xyz")
    points = np.stack([table[name] for name in "xyz"], axis=-1).astype(np.float32)
    return points.reshape(message.height, message.width, 3)
