# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`get_grid_map` and `terrain_grid_map`: the ground's layers as grid_map_msgs/GridMap.

Part of terrain_node.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from grid_map_msgs.msg import GridMap
from grid_map_msgs.srv import GetGridMap
from rclpy.node import Node

from rfly_common.errors import ConfigError, FrameError, WorkError
from rfly_common.ros.diagnostics import Diagnostics
from rfly_common.ros.endpoints import publisher, waiting_service
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import LATCHED
from rfly_common.ros.run_loop import in_thread
from rfly_common.transform_buffer import FrameToWorld
from rfly_terrain.costmap.ground_layers import LAYERS, GridLayers, ground_layers
from rfly_terrain.costmap.traversability import TraversabilityGrid, TraversabilityLimits
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.height_map.point_cloud import Region
from rfly_terrain.ros.grid_layers_msgs import layers_to_msg
from rfly_terrain.ros.node_parameters import GridMapParameters


class CostedTerrain(NamedTuple):
    """A map with the costs of its cells, and the limits of these costs."""

    terrain: HeightMap
    costs: TraversabilityGrid
    limits: TraversabilityLimits


class TerrainGridMap:
    """Service `get_grid_map` and topic `terrain_grid_map`, on the cells of the costs.

    The topic exists if the parameter asks for it.
    """

    def __init__(self, node: Node, frames: Frames, diagnostics: Diagnostics) -> None:
        self._node = node
        self._frames = frames
        self._diagnostics = diagnostics
        params = declare_parameters(node, GridMapParameters)
        self._max_cells = params.grid_map_max_cells
        self._publisher = (
            publisher(node, GridMap, "terrain_grid_map", LATCHED)
            if params.publish_grid_map
            else None
        )

        self._world: CostedTerrain | None = None
        waiting_service(node, GetGridMap, "get_grid_map", self._get_grid_map)

    def take(self, world: CostedTerrain | None) -> None:
        """Use this map, or none, for all further answers."""
        self._world = world

    async def publish(self, world: CostedTerrain) -> None:
        """Publish all layers of the map, unless a newer map has come meanwhile.

        Nothing is published if the parameter does not ask for it.
        """
        if self._publisher is None:
            return
        try:
            layers = await in_thread(
                self._node, lambda: _layers(world, None, LAYERS, self._max_cells)
            )
        except (ConfigError, WorkError) as error:
            self._node.get_logger().error(f"terrain_grid_map: {error}; the previous one stays")
            return
        if world is self._world:
            stamp_ns = self._node.get_clock().now().nanoseconds
            self._publisher.publish(layers_to_msg(layers, "map", stamp_ns))

    async def _get_grid_map(self, request: Any, response: Any) -> Any:
        """Answer a request.

        A region without an answer gets a map without layers, and the log says why.
        """
        try:
            world = self._world
            if world is None:
                raise ConfigError(
                    "there is no map, or its costs are not computed yet: ask again in a moment"
                )
            region = _region(request, self._frames.resolve(request.frame_id or "map"))
            names = tuple(request.layers) or LAYERS
            most = self._max_cells
            layers = await in_thread(self._node, lambda: _layers(world, region, names, most))
        except (ConfigError, FrameError, WorkError) as error:
            self._diagnostics.count("refused_grid_maps")
            self._node.get_logger().warning(f"get_grid_map: {error}")
            return response

        stamp_ns = self._node.get_clock().now().nanoseconds
        response.map = layers_to_msg(layers, "map", stamp_ns)
        self._diagnostics.count("grid_maps")
        return response


def _layers(
    world: CostedTerrain, region: Region | None, names: tuple[str, ...], max_cells: int
) -> GridLayers:
    """Return layers; raise ConfigError if the region lies off the map or memory runs out."""
    try:
        layers = ground_layers(*world, region=region, names=names, max_cells=max_cells)
    except MemoryError:
        raise ConfigError("not enough memory for this number of cells") from None
    if layers is None:
        x_min, x_max, y_min, y_max = world.terrain.bounds
        raise ConfigError(
            f"the region lies off the map, x {x_min:g} … {x_max:g}, y {y_min:g} … {y_max:g} m"
        )
    return layers


def _region(request: Any, frame: FrameToWorld) -> Region | None:
    """Return x_min, x_max, y_min, y_max (ENU) around the requested rectangle.

    A request without lengths asks for all of the map: None. Raises ConfigError for numbers that are
    no rectangle.
    """
    numbers = np.array([request.position_x, request.position_y, request.length_x, request.length_y])
    if not (np.isfinite(numbers).all() and (numbers[2:] >= 0).all()):
        raise ConfigError(
            f"position {numbers[:2].tolist()}, lengths {numbers[2:].tolist()} are no rectangle "
            "in metres"
        )
    if not numbers[2:].any():
        return None

    # the corners, in a frame that may be rotated
    signs = np.array([(a, b, 0.0) for a in (-0.5, 0.5) for b in (-0.5, 0.5)])
    corners = np.array([*numbers[:2], 0.0]) + signs * np.array([*numbers[2:], 0.0])
    corners = frame.points_to_enu(corners)
    x_min, y_min = corners[:, :2].min(axis=0).tolist()
    x_max, y_max = corners[:, :2].max(axis=0).tolist()
    return x_min, x_max, y_min, y_max
