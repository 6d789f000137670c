# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Lidar sweeps -> sensor_msgs/PointCloud2 and LaserScan."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from sensor_msgs.msg import LaserScan, PointCloud2, PointField

from rfly_common.ros.flat_arrays import flat
from rfly_common.ros.stamps import ns_to_stamp
from rfly_sensing.lidar import POINT_WORDS, LidarSweep
from rfly_sensing.range_sensor_parameters import LidarParameters

BIG_ENDIAN = sys.byteorder == "big"
_FLOAT = PointField.FLOAT32
_RING = PointField.UINT16
_FIELDS = (
    ("x", 0, _FLOAT),
    ("y", 4, _FLOAT),
    ("z", 8, _FLOAT),
    ("intensity", 12, _FLOAT),
    ("ring", 18 if BIG_ENDIAN else 16, _RING),
    ("time", 20, _FLOAT),
)


def sweep_to_cloud(sweep: LidarSweep, frame_id: str, epoch_ns: int = 0) -> PointCloud2:
    """Return all returns in the order of arrival, stamped with the sweep's start after the epoch.

    The fields are x y z intensity ring time, with the names and types of Velodyne's driver, which
    LOAM-type packages read; time is s since the stamp.
    """
    points = sweep.points()
    message = PointCloud2(
        height=1,
        width=len(points),
        fields=[
            PointField(name=name, offset=offset, datatype=kind, count=1)
            for name, offset, kind in _FIELDS
        ],
        is_bigendian=BIG_ENDIAN,
        point_step=4 * POINT_WORDS,
        row_step=4 * POINT_WORDS * len(points),
        is_dense=True,
        data=flat("B", points.view(np.uint8)),
    )
    _set_header(message, sweep, frame_id, epoch_ns)
    return message


def sweep_to_scan(
    sweep: LidarSweep, ring: int, lidar: LidarParameters, frame_id: str, epoch_ns: int = 0
) -> LaserScan:
    """Return one ring, ray by ray in the order of sending; a clockwise head has a falling angle.

    No return is inf, too near -inf, lost NaN (REP 117).
    """
    row = int(np.flatnonzero(sweep.rings == ring)[0])
    message = LaserScan(
        angle_min=float(sweep.azimuths[0]),
        angle_max=float(sweep.azimuths[-1]),
        angle_increment=(-2.0 if lidar.clockwise else 2.0) * np.pi / lidar.columns,
        time_increment=1.0 / (lidar.rate * lidar.columns),
        scan_time=1.0 / lidar.rate,
        range_min=lidar.min_range,
        range_max=lidar.max_range,
        ranges=flat("f", sweep.ranges[:, row]),
        intensities=flat("f", sweep.intensity[:, row]),
    )
    _set_header(message, sweep, frame_id, epoch_ns)
    return message


def _set_header(message: Any, sweep: LidarSweep, frame_id: str, epoch_ns: int) -> None:
    message.header.stamp = ns_to_stamp(epoch_ns + round(sweep.start * 1e9))
    message.header.frame_id = frame_id
