"""`terrain_marker` and `traversability_marker`: the ground and its costs as RViz draws them. Part
of terrain_node.

Each is made when somebody first listens and whenever the map or the costs have changed since:
without a subscriber they cost nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.serialization import serialize_message
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker

from rfly_common.ros.endpoints import publisher
from rfly_common.ros.qos import LATCHED
from rfly_common.ros.stamps import ns_to_stamp
from rfly_terrain.costmap.traversability import TraversabilityGrid
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.meshes.ground_triangles import (
    ColouredTriangles,
    terrain_triangles,
    traversability_triangles,
)

LOOK_EVERY_S = 0.5
"""between two checks for subscribers"""


_AFTER_COLOURS = 69
"""bytes of a serialised Marker after its colours, where texture, text and mesh are empty"""


def triangles_to_serialized_marker(
    triangles: ColouredTriangles, frame_id: str, ns: str, stamp_ns: int
) -> bytes:
    """A TRIANGLE_LIST as a publisher takes it in place of a message.

    rclpy converts a message's points and colours one Python object at a time, seconds for a map;
    here NumPy writes them as CDR has them (OMG DDS-XTypes 1.3, section 7.4.1): a count, then the
    numbers, doubles aligned to 8 bytes.
    """
    marker = Marker(
        ns=ns,
        type=Marker.TRIANGLE_LIST,
        action=Marker.ADD,
        color=ColorRGBA(r=1.0, g=1.0, b=1.0, a=1.0),
    )
    marker.header.frame_id = frame_id
    marker.header.stamp = ns_to_stamp(stamp_ns)
    marker.pose.orientation.w = marker.scale.x = marker.scale.y = marker.scale.z = 1.0
    empty = serialize_message(marker)
    # without both counts, which are 0
    before = empty[: -_AFTER_COLOURS - 8]
    after = empty[-_AFTER_COLOURS:]
    points = np.ascontiguousarray(triangles.points, np.float64).reshape(-1, 3)
    colours = np.ascontiguousarray(triangles.colours, np.float32).reshape(-1, 4)
    encapsulation = 4
    padding = -(len(before) - encapsulation + 4) % 8
    count = struct.pack("=I", len(points))
    return b"".join(
        (before, count, bytes(padding), points.tobytes(), count, colours.tobytes(), after)
    )


class TerrainMarkers:
    """Both topics, of at most `max_triangles` each, in frame `map`."""

    def __init__(self, node: Node, max_triangles: int) -> None:
        self._node = node
        self._max_triangles = max_triangles
        self._terrain = publisher(node, Marker, "terrain_marker", LATCHED)
        self._traversability = publisher(node, Marker, "traversability_marker", LATCHED)
        self._unsent: dict[Publisher, Callable[[], ColouredTriangles]] = {}
        node.create_timer(
            LOOK_EVERY_S, self._publish_unsent, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )

    def take_terrain(self, terrain: HeightMap) -> None:
        """A map to be shown in place of the one before."""
        self._unsent[self._terrain] = lambda: terrain_triangles(terrain, self._max_triangles)

    def take_costs(self, terrain: HeightMap, costs: TraversabilityGrid) -> None:
        """Costs of a map to be shown in place of those before."""
        self._unsent[self._traversability] = lambda: traversability_triangles(
            terrain, costs, self._max_triangles
        )

    def _publish_unsent(self) -> None:
        for to in [to for to in self._unsent if to.get_subscription_count()]:
            triangles = self._unsent.pop(to)()
            stamp = self._node.get_clock().now().nanoseconds
            ns = to.topic_name.rsplit("/", 1)[-1].removesuffix("_marker")
            to.publish(triangles_to_serialized_marker(triangles, "map", ns, stamp))
