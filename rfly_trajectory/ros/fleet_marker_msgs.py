"""Vehicles, their names and their paths for RViz: visualization_msgs/MarkerArray.

A vehicle is locked to its frame `<name>/base_link`: sent once, it moves with /tf.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Vector3
from numpy.typing import ArrayLike
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from rfly_collision.models.model_triangles import model_triangles
from rfly_collision.models.vehicle_models import colour_of
from rfly_common.arrays import Floats
from rfly_common.ros.stamps import ns_to_stamp

if TYPE_CHECKING:
    from rfly_trajectory.ros.fleet_marker_topics import ShownPath, ShownVehicle

VEHICLES, PINS, NAMES, PATHS = "vehicles", "pins", "names", "paths"
"""namespaces: who does not want one unticks it"""
SHARED_PATH = (240, 240, 235)
"""RGB of a path that several vehicles follow"""

# m of a vehicle shown in its true size
_TEXT = 2.0
_LEVELS = 3
"""names of neighbours stand one above the other"""
_PATH_WIDTH, _PATH_LIFT = 0.5, 0.4
_PIN_WIDTH = 0.12


def fleet_markers(
    vehicles: Sequence[ShownVehicle], paths: Sequence[ShownPath], enlargement: float, stamp_ns: int
) -> MarkerArray:
    """Each vehicle `enlargement` times its size with a name on a pin in its colour, and the paths, a little above."""
    stamp, markers = ns_to_stamp(stamp_ns), list[Marker]()
    for row, vehicle in enumerate(vehicles):
        markers += _vehicle(vehicle, row % _LEVELS, enlargement, stamp)
    for points, ids in paths:
        colour = colour_of(ids[0]) if len(ids) == 1 else SHARED_PATH
        markers.append(_path(points, min(ids), colour, enlargement, stamp))
    return MarkerArray(markers=markers)


def deletions(markers: Sequence[tuple[str, int]]) -> list[Marker]:
    """What takes markers, given by namespace and id, off the screen."""
    return [Marker(ns=ns, id=number, action=Marker.DELETE) for ns, number in markers]


def _vehicle(vehicle: ShownVehicle, level: int, enlargement: float, stamp: Time) -> list[Marker]:
    colour = colour_of(vehicle.id)
    points, colours = model_triangles(vehicle.vehicle_type, colour, np.array(vehicle.scale) * enlargement)
    frame, text, top = f"{vehicle.name}/base_link", _TEXT * enlargement, float(points[..., 2].max())
    label = top + (1.6 + 1.15 * level) * text

    body = _marker(VEHICLES, vehicle.id, Marker.TRIANGLE_LIST, frame, stamp)
    body.points, body.scale = _points(points.reshape(-1, 3)), Vector3(x=1.0, y=1.0, z=1.0)
    body.colors = [ColorRGBA(r=r, g=g, b=b, a=1.0) for r, g, b in colours.tolist()]
    body.color = ColorRGBA(r=1.0, g=1.0, b=1.0, a=1.0)
    pin = _marker(PINS, vehicle.id, Marker.LINE_LIST, frame, stamp)
    pin.points = _points(np.array([(0.0, 0.0, top), (0.0, 0.0, label - 0.6 * text)]))
    pin.scale.x, pin.color = _PIN_WIDTH * enlargement, _rgba(colour)
    name = _marker(NAMES, vehicle.id, Marker.TEXT_VIEW_FACING, frame, stamp)
    name.text, name.scale.z, name.color = vehicle.name, text, _rgba((255, 255, 255))
    name.pose.position.z = label
    for marker in (body, pin, name):
        marker.frame_locked = True
    return [body, pin, name]


def _path(points: Floats, number: int, colour: ArrayLike, enlargement: float, stamp: Time) -> Marker:
    marker = _marker(PATHS, number, Marker.LINE_STRIP, "map", stamp)
    marker.points = _points(points + np.array([0.0, 0.0, _PATH_LIFT * enlargement]))
    marker.scale.x, marker.color = _PATH_WIDTH * enlargement, _rgba(colour)
    return marker


def _marker(ns: str, number: int, kind: int, frame_id: str, stamp: Time) -> Marker:
    marker = Marker(ns=ns, id=number, type=kind, action=Marker.ADD)
    marker.header.frame_id, marker.header.stamp = frame_id, stamp
    marker.pose.orientation.w = 1.0
    return marker


def _points(points: Floats) -> list[Point]:
    return [Point(x=x, y=y, z=z) for x, y, z in points.tolist()]


def _rgba(colour: ArrayLike) -> ColorRGBA:
    red, green, blue = (np.asarray(colour, float) / 255).tolist()
    return ColorRGBA(r=red, g=green, b=blue, a=1.0)
