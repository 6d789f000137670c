# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`terrain_marker` and `traversability_marker`: the ground and its costs as RViz draws them.

Part of terrain_node.

Each is made when it gets its first subscriber, and whenever the map or the costs have changed
since: without a subscriber they cost nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.serialization import serialize_message
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker

from rfly_common.errors import RflyError
from rfly_common.geodesy import GeoPoint
from rfly_common.ros.endpoints import publisher, steady_timer
from rfly_common.ros.qos import LATCHED
from rfly_common.ros.stamps import fill_header
from rfly_terrain.costmap.traversability import TraversabilityGrid
from rfly_terrain.exports.ground_triangles import (
    ColouredTriangles,
    terrain_triangles,
    traversability_triangles,
)
from rfly_terrain.height_map.height_map import HeightMap

LOOK_EVERY_S = 0.5
"""Period of the checks for subscribers, s."""
_AFTER_COLOURS = 69
"""Size of a serialised Marker after its colours, with empty texture, text and mesh, bytes."""


def triangles_to_serialized_marker(
    triangles: ColouredTriangles, frame_id: str, ns: str, stamp_ns: int
) -> bytes:
    """Return a TRIANGLE_LIST as serialised bytes, which a publisher accepts in place of a message.

    rclpy converts a message's points and colours one Python object at a time, which takes seconds
    for a map. Here NumPy writes them in CDR (OMG DDS-XTypes 1.3, section 7.4.1): a count, then the
    numbers, doubles aligned to 8 bytes.
    """
    marker = Marker(
        ns=ns,
        type=Marker.TRIANGLE_LIST,
        action=Marker.ADD,
        color=ColorRGBA(r=1.0, g=1.0, b=1.0, a=1.0),
    )
    fill_header(marker, stamp_ns, frame_id)
    marker.pose.orientation.w = marker.scale.x = marker.scale.y = marker.scale.z = 1.0

    without_points = serialize_message(marker)
    # without both counts, which are 0
    head = without_points[: -_AFTER_COLOURS - 8]
    tail = without_points[-_AFTER_COLOURS:]

    points = np.ascontiguousarray(triangles.points, np.float64).reshape(-1, 3)
    colours = np.ascontiguousarray(triangles.colours, np.float32).reshape(-1, 4)
    encapsulation = 4
    padding = bytes(-(len(head) - encapsulation + 4) % 8)
    count = struct.pack("=I", len(points))
    parts = (head, count, padding, points.tobytes(), count, colours.tobytes(), tail)
    return b"".join(parts)


class TerrainMarkers:
    """The two topics, with at most `max_triangles` each, in frame `map`."""

    def __init__(self, node: Node, max_triangles: int, imagery: str = "") -> None:
        """Advertise. `imagery`: path of a picture of the ground; empty: none."""
        self._node = node
        self._max_triangles = max_triangles
        self._imagery = imagery
        self._terrain = publisher(node, Marker, "terrain_marker", LATCHED)
        self._traversability = publisher(node, Marker, "traversability_marker", LATCHED)
        self._unsent: dict[Publisher, Callable[[], ColouredTriangles]] = {}
        steady_timer(node, LOOK_EVERY_S, self._publish_unsent)

    def take_terrain(self, terrain: HeightMap, origin: GeoPoint | None = None) -> None:
        """Show this map, whose origin is there on the Earth, in place of the previous one."""
        self._unsent[self._terrain] = lambda: self._ground(terrain, origin)

    def _ground(self, terrain: HeightMap, origin: GeoPoint | None) -> ColouredTriangles:
        """Return the ground with its picture, if there is one for this map."""
        if self._imagery:
            from rfly_terrain.imagery.imagery import Imagery  # which no other node needs

            try:
                imagery = Imagery.open(self._imagery, terrain, origin)
                return terrain_triangles(terrain, self._max_triangles, imagery)
            except RflyError as error:
                self._node.get_logger().warning(f"terrain_marker is without a picture: {error}")
        return terrain_triangles(terrain, self._max_triangles)

    def take_costs(self, terrain: HeightMap, costs: TraversabilityGrid) -> None:
        """Show these costs of a map in place of the previous ones."""
        self._unsent[self._traversability] = lambda: traversability_triangles(
            terrain, costs, self._max_triangles
        )

    def forget(self) -> None:
        """Publish nothing more of the present map."""
        self._unsent.clear()

    def _publish_unsent(self) -> None:
        """Publish new markers on topics with subscribers."""
        for topic in [topic for topic in self._unsent if topic.get_subscription_count()]:
            triangles = self._unsent.pop(topic)()
            stamp = self._node.get_clock().now().nanoseconds
            ns = topic.topic_name.rsplit("/", 1)[-1].removesuffix("_marker")
            topic.publish(triangles_to_serialized_marker(triangles, "map", ns, stamp))
