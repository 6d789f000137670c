"""Traversability -> nav_msgs/OccupancyGrid."""

from __future__ import annotations

from nav_msgs.msg import OccupancyGrid

from rfly_common.ros.flat_arrays import flat
from rfly_common.ros.stamps import ns_to_stamp
from rfly_terrain.costmap.traversability import TraversabilityGrid


def traversability_to_msg(grid: TraversabilityGrid, frame_id: str, stamp_ns: int) -> OccupancyGrid:
    """Costs 0 … 100, −1 unknown, from the south-west corner: width along x east, height along y north."""
    message = OccupancyGrid()
    message.header.frame_id = frame_id
    message.header.stamp = message.info.map_load_time = ns_to_stamp(stamp_ns)
    message.info.resolution = grid.resolution
    message.info.height, message.info.width = grid.cost.shape
    message.info.origin.position.x, message.info.origin.position.y = grid.origin
    message.info.origin.orientation.w = 1.0
    message.data = flat("b", grid.cost)
    return message
