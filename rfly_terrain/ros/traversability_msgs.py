"""Traversability -> nav_msgs/OccupancyGrid, rfly_suite/PlacedObjectArray -> boxes."""

from __future__ import annotations

import numpy as np
from nav_msgs.msg import OccupancyGrid
from rfly_suite.msg import PlacedObjectArray

from rfly_common.frames import QUAT_ENU_NED_XYZW, ned_to_enu, quat_multiply, quat_rotate
from rfly_common.ros.flat_arrays import flat
from rfly_common.ros.frame_lookup import FrameToWorld
from rfly_common.ros.stamps import ns_to_stamp
from rfly_terrain.costmap.traversability import TraversabilityGrid
from rfly_terrain.world.solids import ObjectBoxes


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


def placed_objects_to_boxes(message: PlacedObjectArray, frame: FrameToWorld) -> ObjectBoxes:
    """The boxes in ENU; `frame` is that of the message. Raises ValueError for arrays that contradict each other."""
    centre = np.reshape(message.box_origin, (-1, 3))
    turned = np.reshape(message.orientation, (-1, 4))
    if not frame.is_world:
        centre = quat_rotate(frame.transform.quat_xyzw, centre) + frame.transform.translation
        turned = quat_multiply(frame.transform.quat_xyzw, turned)
    if frame.axes == "ned":
        centre, turned = ned_to_enu(centre), quat_multiply(QUAT_ENU_NED_XYZW, turned)
    return ObjectBoxes(centre, np.reshape(message.box_half_extent, (-1, 3)), turned)
