"""`elevation_map`: heights around the vehicle as grid_map_msgs/GridMap. Part of mapping_node."""

from __future__ import annotations

from dataclasses import asdict

from grid_map_msgs.msg import GridMap
from rclpy.node import Node

from rfly_amphibious.mapping.elevation_map import ElevationMap, ElevationParameters
from rfly_amphibious.ros.node_parameters import ElevationMapParameters
from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError
from rfly_common.ros.endpoints import publisher
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import LATCHED
from rfly_terrain.ros.grid_layers_msgs import buffers_to_msg


class ElevationTopic:
    """Keeps the map, and publishes it where it has changed and somebody listens. ConfigError where it can't be."""

    def __init__(self, node: Node) -> None:
        given = asdict(declare_parameters(node, ElevationMapParameters))
        self._map: ElevationMap | None = None
        if given.pop("elevation_map"):
            fields = {name.removeprefix("elevation_"): value for name, value in given.items()}
            try:
                self._map = ElevationMap(ElevationParameters(**fields))
            except ConfigError as error:
                raise ConfigError(f"parameter elevation_{error}") from None
            self._publisher = publisher(node, GridMap, "elevation_map", LATCHED)
        self._changed, self._stamp_ns = False, 0

    @property
    def known(self) -> int:
        """Cells of which something is known."""
        return self._map.known if self._map is not None else 0

    def insert(self, origins: Floats, ends: Floats, stamp_ns: int) -> None:
        """Points (n, 3) of one cloud in the world, seen from (n, 3) m."""
        if self._map is not None:
            self._map.insert(origins, ends, stamp_ns * 1e-9)
            self._changed, self._stamp_ns = True, stamp_ns

    def clear(self) -> None:
        """Forget everything."""
        if self._map is not None:
            self._map.clear()
            self._changed = True

    def publish(self, frame_id: str) -> None:
        """The map, if it is a new one."""
        if self._map is None or not self._changed or not self._publisher.get_subscription_count():
            return
        buffers = self._map.buffers()
        if buffers is not None:
            layers = {"elevation": buffers.elevation, "variance": buffers.variance}
            side = self._map.parameters.resolution
            message = buffers_to_msg(layers, side, buffers.corner, buffers.start, frame_id, self._stamp_ns)
            self._publisher.publish(message)
            self._changed = False
