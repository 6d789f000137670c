# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""BinaryOccupancyMap, OccupancyMap <-> nav_msgs/OccupancyGrid; costs -> OccupancyGrid."""

from __future__ import annotations

from typing import Any

import numpy as np
from nav_msgs.msg import OccupancyGrid
from numpy.typing import NDArray

from rfly_common.frames import quat_to_euler
from rfly_common.ros.flat_arrays import flat
from rfly_common.ros.stamps import ns_to_stamp
from rfly_terrain.occupancy.files import LARGEST_YAW
from rfly_terrain.occupancy.occupancy_map import BinaryOccupancyMap


def occupancy_map_to_msg(
    occupancy: BinaryOccupancyMap, frame_id: str = "map", stamp_ns: int = 0
) -> OccupancyGrid:
    """Return a grid with 100 where occupied and 0 where free, from the bottom row up.

    The origin is the bottom-left corner.
    """
    info, data = occupancy.to_occupancy_grid()
    cells = data.reshape(info["height"], info["width"])
    return costs_to_msg(cells, info["resolution"], info["origin"][:2], frame_id, stamp_ns)


def costs_to_msg(
    costs: NDArray[np.int8],
    resolution: float,
    origin: tuple[float, float],
    frame_id: str,
    stamp_ns: int,
) -> OccupancyGrid:
    """Return a grid of costs 0 … 100, −1 unknown, from the south-west corner.

    Width runs along x east, height along y north.
    """
    message = OccupancyGrid()
    message.header.frame_id = frame_id
    message.header.stamp = message.info.map_load_time = ns_to_stamp(stamp_ns)
    message.info.resolution = resolution
    message.info.height, message.info.width = costs.shape
    message.info.origin.position.x, message.info.origin.position.y = origin
    message.info.origin.orientation.w = 1.0
    message.data = flat("b", costs)
    return message


def msg_to_occupancy_map(
    message: OccupancyGrid, threshold: float = 50, unknown: bool = False
) -> BinaryOccupancyMap:
    """Return the map of a grid: occupied from `threshold` upwards, −1 becomes `unknown`.

    Raises ValueError for a grid that is tilted, empty, or has not width · height values.
    """
    return BinaryOccupancyMap.from_occupancy_grid(
        _info(message), np.asarray(message.data, np.int8), threshold, unknown
    )


def _info(message: OccupancyGrid) -> dict[str, Any]:
    """Return a grid's size, resolution (metres per cell) and origin (x, y, yaw), checked."""
    q = message.info.origin.orientation
    if not abs(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w - 1.0) <= 1e-3:
        raise ValueError(
            f"origin: the orientation x {q.x:g}, y {q.y:g}, z {q.z:g}, w {q.w:g} is no unit "
            "quaternion"
        )

    roll, pitch, yaw = quat_to_euler([q.x, q.y, q.z, q.w]).tolist()
    if max(abs(roll), abs(pitch)) > LARGEST_YAW:
        raise ValueError(
            f"origin: the grid is tilted (roll {roll:g}, pitch {pitch:g} rad), expected a level one"
        )

    position = message.info.origin.position
    return {
        "width": message.info.width,
        "height": message.info.height,
        "resolution": message.info.resolution,
        "origin": (position.x, position.y, yaw),
    }
