# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Layers of square cells -> grid_map_msgs/GridMap.

grid_map's convention (its README, "Conventions & Definitions"): index 0, 0 is the cell at the
largest x and largest y; the first index runs towards −x, the second towards −y. Matrices are stored
column by column, so the first index is the inner one of the message's array. A start index other
than 0, 0 is the place of that cell in a circular buffer.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from grid_map_msgs.msg import GridMap
from numpy.typing import NDArray
from std_msgs.msg import Float32MultiArray, MultiArrayDimension

from rfly_common.ros.flat_arrays import flat
from rfly_common.ros.stamps import fill_header
from rfly_terrain.costmap.ground_layers import GridLayers


def layers_to_msg(grid: GridLayers, frame_id: str, stamp_ns: int) -> GridMap:
    """Return a GridMap of all layers; cells without an elevation count as invalid."""
    rows, columns = grid.shape
    corner = (grid.origin[0] + columns * grid.resolution, grid.origin[1] + rows * grid.resolution)
    turned = {name: layer[::-1, ::-1] for name, layer in grid.layers.items()}
    return buffers_to_msg(turned, grid.resolution, corner, (0, 0), frame_id, stamp_ns)


def buffers_to_msg(
    buffers: Mapping[str, NDArray[np.float32]],
    resolution: float,
    corner: tuple[float, float],
    start: tuple[int, int],
    frame_id: str,
    stamp_ns: int,
) -> GridMap:
    """Return a GridMap of circular buffers (rows towards −y, columns towards −x) by layer.

    `corner`: the largest x and y (m) of their area; `start`: column and row of the cell there.
    """
    rows, columns = next(iter(buffers.values())).shape
    basic_layers = ["elevation"] if "elevation" in buffers else []
    message = GridMap(layers=list(buffers), basic_layers=basic_layers)
    fill_header(message, stamp_ns, frame_id)

    info = message.info
    info.resolution = resolution
    info.length_x = columns * resolution
    info.length_y = rows * resolution
    info.pose.position.x = corner[0] - info.length_x / 2
    info.pose.position.y = corner[1] - info.length_y / 2

    message.data = [_matrix(buffer) for buffer in buffers.values()]
    message.outer_start_index, message.inner_start_index = start
    return message


def _matrix(buffer: NDArray[np.float32]) -> Float32MultiArray:
    """Return a buffer with grid_map's labels."""
    rows, columns = buffer.shape
    array = Float32MultiArray(data=flat("f", buffer))
    array.layout.dim = [
        MultiArrayDimension(label="column_index", size=rows, stride=rows * columns),
        MultiArrayDimension(label="row_index", size=columns, stride=columns),
    ]
    return array
