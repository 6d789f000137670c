# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Places of RflySim3D's sensors in ROS's frames, and back.

RflySim3D takes positions forward, right, down of the vehicle (FRD), or NED of the map. ROS has
forward, left, up (FLU), or ENU. Yaw and roll are read by the usual signs of FRD; only the sign of
pitch has been measured.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.frames import (
    Array,
    enu_to_ned,
    flu_to_frd,
    ned_to_enu,
    quat_enu_flu_to_ned_frd,
    quat_ned_frd_to_enu_flu,
    quat_to_euler,
)
from rfly_ue_bridge.codec.sensor_requests import Mount, VisionSensor

_FLIP = np.array([1.0, -1.0, -1.0, 1.0])
"""Signs that turn a rotation between FRD axes into the same one between FLU axes."""

EARTH_MOUNTS = (Mount.MAP, Mount.LEVEL)
"""Mounts whose axes are those of the earth: NED on the wire, ENU in ROS."""


def mount_pose(sensor: VisionSensor) -> tuple[Array, Array]:
    """Return position, m, and attitude, xyzw, of a sensor (FLU) in the ROS axes of its mount.

    These are ENU for `EARTH_MOUNTS`, else FLU.
    """
    quat = np.array(sensor.attitude_xyzw)
    if sensor.mount in EARTH_MOUNTS:
        return ned_to_enu(sensor.position), quat_ned_frd_to_enu_flu(quat)
    return flu_to_frd(sensor.position), quat * _FLIP


def with_mount_pose(
    sensor: VisionSensor, position: ArrayLike, quat_xyzw: ArrayLike
) -> VisionSensor:
    """Return a sensor at another pose, given as `mount_pose` returns it."""
    place = np.asarray(position, float)
    quat = np.asarray(quat_xyzw, float)
    if sensor.mount in EARTH_MOUNTS:
        place = enu_to_ned(place)
        quat = quat_enu_flu_to_ned_frd(quat)
    else:
        place = flu_to_frd(place)
        quat = quat * _FLIP

    x, y, z = place.tolist()
    roll, pitch, yaw = np.degrees(quat_to_euler(quat)).tolist()
    return replace(sensor, position=(x, y, z), euler_or_quat=0.0, euler_deg=(roll, pitch, yaw))


def turn_points(points: NDArray[np.float32], axes: str) -> NDArray[np.float32]:
    """Return points (n, 3 or more) in the axes of ROS: FLU of the sensor, or ENU of the world.

    `axes`: those of the points: flu and frd of a sensor, or ned, nwu and neu of the world. Further
    columns stay.
    """
    order, signs = _TURNS[axes]
    if order == [0, 1, 2] and signs == [1.0, 1.0, 1.0]:
        return points
    turned = points.copy()
    turned[:, :3] = points[:, order] * np.array(signs, points.dtype)
    return turned


_TURNS = {
    "flu": ([0, 1, 2], [1.0, 1.0, 1.0]),
    "frd": ([0, 1, 2], [1.0, -1.0, -1.0]),
    "ned": ([1, 0, 2], [1.0, 1.0, -1.0]),
    "nwu": ([1, 0, 2], [-1.0, 1.0, 1.0]),
    "neu": ([1, 0, 2], [1.0, 1.0, 1.0]),
}
"""Columns and signs of x, y, z in ROS's axes."""
