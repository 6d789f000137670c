# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Serialised markers are those that rclpy would have made."""

import numpy as np
import pytest

pytestmark = pytest.mark.ros


def triangles(count):
    from rfly_terrain.exports.ground_triangles import ColouredTriangles

    rng = np.random.default_rng(3)
    return ColouredTriangles(
        rng.uniform(-1e4, 1e4, (count, 3, 3)), rng.uniform(0, 1, (count, 3, 4)).astype(np.float32)
    )


@pytest.mark.parametrize("frame_id", ["map", "a", "ab", "world", "worlds_", "longer_than_eight"])
@pytest.mark.parametrize("ns", ["", "terrain", "traversability"])
def test_the_bytes_are_those_of_the_message(frame_id, ns):
    """Names of all lengths leave the fields behind them aligned to 4 and 8 bytes.

    The messages deserialise field by field.
    """
    from builtin_interfaces.msg import Time
    from geometry_msgs.msg import Point
    from rclpy.serialization import deserialize_message
    from std_msgs.msg import ColorRGBA
    from visualization_msgs.msg import Marker

    from rfly_terrain.ros.marker_topics import triangles_to_serialized_marker

    given = triangles(5)
    expected = Marker(ns=ns, type=Marker.TRIANGLE_LIST, color=ColorRGBA(r=1.0, g=1.0, b=1.0, a=1.0))
    expected.header.frame_id = frame_id
    expected.header.stamp = Time(sec=7, nanosec=250)
    expected.pose.orientation.w = expected.scale.x = expected.scale.y = expected.scale.z = 1.0
    expected.points = [Point(x=x, y=y, z=z) for x, y, z in given.points.reshape(-1, 3).tolist()]
    expected.colors = [
        ColorRGBA(r=r, g=g, b=b, a=a) for r, g, b, a in given.colours.reshape(-1, 4).tolist()
    ]
    data = triangles_to_serialized_marker(given, frame_id, ns, 7_000_000_250)
    assert deserialize_message(data, Marker) == expected


def test_a_map_is_serialised_at_once():
    """180,000 triangles: 40 bytes a corner, and little around them."""
    from rfly_terrain.ros.marker_topics import triangles_to_serialized_marker

    data = triangles_to_serialized_marker(triangles(180_000), "map", "terrain", 0)
    assert 0 < len(data) - 180_000 * 3 * 40 < 400
