"""Coloured triangles -> visualization_msgs/Marker, already serialised."""

from __future__ import annotations

import struct

import numpy as np
from rclpy.serialization import serialize_message
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker

from rfly_common.ros.stamps import ns_to_stamp
from rfly_terrain.meshes.ground_triangles import ColouredTriangles

_AFTER_COLOURS = 69
"""bytes of a serialised Marker after its colours, where texture, text and mesh are empty"""


def triangles_to_serialized_marker(triangles: ColouredTriangles, frame_id: str, ns: str, stamp_ns: int) -> bytes:
    """A TRIANGLE_LIST as a publisher takes it in place of a message.

    rclpy converts a message's points and colours one Python object at a time, seconds for a map; here NumPy writes
    them as CDR has them (OMG DDS-XTypes 1.3, section 7.4.1): a count, then the numbers, doubles aligned to 8 bytes.
    """
    marker = Marker(ns=ns, type=Marker.TRIANGLE_LIST, action=Marker.ADD, color=ColorRGBA(r=1.0, g=1.0, b=1.0, a=1.0))
    marker.header.frame_id, marker.header.stamp = frame_id, ns_to_stamp(stamp_ns)
    marker.pose.orientation.w = marker.scale.x = marker.scale.y = marker.scale.z = 1.0
    empty = serialize_message(marker)
    before, after = empty[: -_AFTER_COLOURS - 8], empty[-_AFTER_COLOURS:]  # without both counts, which are 0
    points = np.ascontiguousarray(triangles.points, np.float64).reshape(-1, 3)
    colours = np.ascontiguousarray(triangles.colours, np.float32).reshape(-1, 4)
    encapsulation = 4
    padding = -(len(before) - encapsulation + 4) % 8
    count = struct.pack("=I", len(points))
    return b"".join((before, count, bytes(padding), points.tobytes(), count, colours.tobytes(), after))
