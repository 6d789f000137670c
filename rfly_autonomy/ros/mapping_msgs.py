# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Lidar clouds -> points with times; maps -> octomap_msgs/Octomap and voxel clouds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from octomap_msgs.msg import Octomap
from sensor_msgs.msg import PointCloud2

from rfly_autonomy.mapping.octomap_grid import MAX_RAYS, OctomapGrid
from rfly_common.arrays import Floats, Ints
from rfly_common.errors import SensorMessageError
from rfly_common.ros.flat_arrays import flat
from rfly_common.ros.point_clouds import read_fields
from rfly_common.ros.stamps import ns_to_stamp, stamp_to_ns
from rfly_terrain.ros.terrain_msgs import cloud_to_msg

_TIMES = {"time": 1e9, "t": 1.0}
"""Time fields and their units, ns: Velodyne's seconds, Ouster's nanoseconds."""
LONGEST_S = 10.0
"""Largest time between a point and its cloud's stamp, s."""


class LidarPoints(NamedTuple):
    """Points in the sensor's own axes at the time of each."""

    points: Floats
    """Points, (n, 3), m, all finite."""
    times_ns: Ints
    """Times, (n,), ns."""


def msg_to_points(message: PointCloud2) -> LidarPoints:
    """Return x, y, z and the time of each point: the stamp and its field `time` (s) or `t` (ns).

    Without such a field all points have the stamp's time. Points that are not finite (no return)
    are left out. Raise SensorMessageError for a cloud that can't be read.
    """
    count = message.width * message.height
    if count > MAX_RAYS:
        raise SensorMessageError(f"the cloud has {count} points, allowed: up to {MAX_RAYS}")

    fields = {field.name for field in message.fields}
    timed = next((name for name in _TIMES if name in fields), None)
    table = read_fields(message, [*"xyz", *([timed] if timed else [])])

    points = np.stack([table[name].astype(np.float64) for name in "xyz"], axis=-1)
    since = table[timed].astype(np.float64) * _TIMES[timed] if timed else np.zeros(count)
    finite = np.isfinite(points).all(axis=1)
    if not (np.abs(since[finite]) <= LONGEST_S * 1e9).all():
        raise SensorMessageError(
            f"the cloud's field {timed} is more than {LONGEST_S:g} s off its stamp, or no number"
        )
    return LidarPoints(
        points[finite], stamp_to_ns(message.header.stamp) + np.round(since[finite]).astype(np.int64)
    )


def grid_to_octomap(grid: OctomapGrid, frame_id: str, stamp_ns: int) -> Octomap:
    """Return free and occupied voxels, as `octomap_msgs::binaryMsgToMap` and RViz read them."""
    message = Octomap(binary=True, id="OcTree", resolution=grid.parameters.resolution)
    message.data = flat("b", np.frombuffer(grid.binary_data(), np.int8))
    message.header.frame_id = frame_id
    message.header.stamp = ns_to_stamp(stamp_ns)
    return message


def voxels_to_cloud(centres: NDArray[Any], frame_id: str, stamp_ns: int) -> PointCloud2:
    """Return voxel centres, (n, 3), m, as a cloud of x, y, z in float32."""
    return cloud_to_msg(np.ascontiguousarray(centres[None], np.float32), frame_id, stamp_ns)
