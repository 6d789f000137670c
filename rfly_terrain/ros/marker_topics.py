"""`terrain_marker` and `traversability_marker`: the ground and its costs as RViz draws them. Part of terrain_node.

Each is made when somebody first listens and whenever the map or the costs have changed since: nobody pays for what
nobody looks at.
"""

from __future__ import annotations

from collections.abc import Callable

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.publisher import Publisher
from visualization_msgs.msg import Marker

from rfly_common.ros.endpoints import publisher
from rfly_common.ros.qos import LATCHED
from rfly_terrain.costmap.traversability import TraversabilityGrid
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.meshes.ground_triangles import ColouredTriangles, terrain_triangles, traversability_triangles
from rfly_terrain.ros.marker_msgs import triangles_to_serialized_marker

LOOK_EVERY_S = 0.5
"""between two looks whether somebody listens"""


class TerrainMarkers:
    """Both topics, of at most `max_triangles` each, in frame `map`."""

    def __init__(self, node: Node, max_triangles: int) -> None:
        self._node, self._max_triangles = node, max_triangles
        self._terrain = publisher(node, Marker, "terrain_marker", LATCHED)
        self._traversability = publisher(node, Marker, "traversability_marker", LATCHED)
        self._unsent: dict[Publisher, Callable[[], ColouredTriangles]] = {}
        node.create_timer(LOOK_EVERY_S, self._publish_unsent, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def take_terrain(self, terrain: HeightMap) -> None:
        """A map to be shown in place of the one before."""
        self._unsent[self._terrain] = lambda: terrain_triangles(terrain, self._max_triangles)

    def take_costs(self, terrain: HeightMap, costs: TraversabilityGrid) -> None:
        """Costs of a map to be shown in place of those before."""
        self._unsent[self._traversability] = lambda: traversability_triangles(terrain, costs, self._max_triangles)

    def _publish_unsent(self) -> None:
        for to in [to for to in self._unsent if to.get_subscription_count()]:
            triangles = self._unsent.pop(to)()
            stamp = self._node.get_clock().now().nanoseconds
            ns = to.topic_name.rsplit("/", 1)[-1].removesuffix("_marker")
            to.publish(triangles_to_serialized_marker(triangles, "map", ns, stamp))
