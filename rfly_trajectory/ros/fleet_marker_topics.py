# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`fleet_markers`: vehicles, names and paths as RViz draws them.

Part of trajectory_node and mission_node.

Latched, and made only for subscribers: the first time, and after a change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Vector3
from numpy.typing import ArrayLike, NDArray
from rclpy.node import Node
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from rfly_collision.shapes.vehicle_meshes import colour_of, model_triangles
from rfly_common.arrays import Floats
from rfly_common.ros.endpoints import publisher, steady_timer
from rfly_common.ros.frame_lookup import frame_prefix
from rfly_common.ros.qos import LATCHED
from rfly_common.ros.stamps import ns_to_stamp

LOOK_EVERY_S = 0.5
"""Time between two looks for subscribers, s."""


VEHICLES = "vehicles"
PINS = "pins"
NAMES = "names"
PATHS = "paths"
"""Namespaces, which RViz can hide one by one."""
SHARED_PATH = (240, 240, 235)
"""Colour of a path that several vehicles follow, RGB."""

# m of a vehicle shown in its true size
_TEXT = 1.2
"""Height of a name. With it, a name is narrower than a car's distance to the next in a convoy."""
_LEVELS = 4
"""Levels in which the names of neighbours stand one above the other."""
_PATH_WIDTH = 0.5
_PATH_LIFT = 0.4
_PIN_WIDTH = 0.12


def fleet_markers(
    vehicles: Sequence[ShownVehicle],
    paths: Sequence[ShownPath],
    enlargement: float,
    stamp_ns: int,
    prefix: str = "",
) -> MarkerArray:
    """Return markers of the vehicles, with names on pins, and of the paths, just above the ground.

    Vehicles are drawn `enlargement` times their size. Each is locked to its frame
    `<prefix><name>/base_link`: sent once, it moves with /tf.
    """
    stamp = ns_to_stamp(stamp_ns)
    bodies = [
        model_triangles(each.vehicle_type, colour_of(each.id), np.array(each.scale) * enlargement)
        for each in vehicles
    ]

    # names stand above the highest vehicle, so that their levels are apart
    tops = [float(points[..., 2].max()) for points, _ in bodies]
    lowest = max(tops, default=0.0) + 1.6 * _TEXT * enlargement
    markers = list[Marker]()
    for row, (vehicle, body, top) in enumerate(zip(vehicles, bodies, tops, strict=True)):
        label = lowest + 1.15 * (row % _LEVELS) * _TEXT * enlargement
        frame = f"{prefix}{vehicle.name}/base_link"
        markers += _vehicle(vehicle, frame, body, top, label, enlargement, stamp)
    for points, ids in paths:
        colour = colour_of(ids[0]) if len(ids) == 1 else SHARED_PATH
        markers.append(_path(points, min(ids), colour, enlargement, stamp))
    return MarkerArray(markers=markers)


def deletions(markers: Sequence[tuple[str, int]]) -> list[Marker]:
    """Return messages that remove markers, given by namespace and id."""
    return [Marker(ns=ns, id=number, action=Marker.DELETE) for ns, number in markers]


def _vehicle(
    vehicle: ShownVehicle,
    frame: str,
    triangles: tuple[Floats, NDArray[np.float64]],
    top: float,
    label: float,
    enlargement: float,
    stamp: Time,
) -> list[Marker]:
    """Return body, pin and name of a vehicle; its top and its name's place in m above its frame."""
    points, colours = triangles
    text = _TEXT * enlargement

    body = _marker(VEHICLES, vehicle.id, Marker.TRIANGLE_LIST, frame, stamp)
    body.points = _points(points.reshape(-1, 3))
    body.scale = Vector3(x=1.0, y=1.0, z=1.0)
    body.colors = [ColorRGBA(r=r, g=g, b=b, a=1.0) for r, g, b in colours.tolist()]
    body.color = ColorRGBA(r=1.0, g=1.0, b=1.0, a=1.0)

    pin = _marker(PINS, vehicle.id, Marker.LINE_LIST, frame, stamp)
    pin.points = _points(np.array([(0.0, 0.0, top), (0.0, 0.0, label - 0.6 * text)]))
    pin.scale.x = _PIN_WIDTH * enlargement
    pin.color = _rgba(colour_of(vehicle.id))

    name = _marker(NAMES, vehicle.id, Marker.TEXT_VIEW_FACING, frame, stamp)
    name.text = vehicle.name
    name.scale.z = text
    name.color = _rgba((255, 255, 255))
    name.pose.position.z = label

    for marker in (body, pin, name):
        marker.frame_locked = True
    return [body, pin, name]


def _path(
    points: Floats, number: int, colour: ArrayLike, enlargement: float, stamp: Time
) -> Marker:
    marker = _marker(PATHS, number, Marker.LINE_STRIP, "map", stamp)
    marker.points = _points(points + np.array([0.0, 0.0, _PATH_LIFT * enlargement]))
    marker.scale.x = _PATH_WIDTH * enlargement
    marker.color = _rgba(colour)
    return marker


def _marker(ns: str, number: int, kind: int, frame_id: str, stamp: Time) -> Marker:
    marker = Marker(ns=ns, id=number, type=kind, action=Marker.ADD)
    marker.header.frame_id = frame_id
    marker.header.stamp = stamp
    marker.pose.orientation.w = 1.0
    return marker


def _points(points: Floats) -> list[Point]:
    return [Point(x=x, y=y, z=z) for x, y, z in points.tolist()]


def _rgba(colour: ArrayLike) -> ColorRGBA:
    red, green, blue = (np.asarray(colour, float) / 255).tolist()
    return ColorRGBA(r=red, g=green, b=blue, a=1.0)


class ShownVehicle(NamedTuple):
    """Vehicle as markers show it."""

    name: str
    id: int
    vehicle_type: int
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)


class ShownPath(NamedTuple):
    """A path, and the ids of the vehicles that follow it."""

    points: Floats
    """Points, (k, 3), ENU, m."""
    ids: Sequence[int]


Shown = tuple[Sequence[ShownVehicle], Sequence[ShownPath]]


class FleetMarkers:
    """Publisher of the markers that `show` was given last."""

    def __init__(self, node: Node, enlargement: float) -> None:
        self._node = node
        self._enlargement = enlargement
        self._unsent: Callable[[], Shown] | None = None
        self._sent: set[tuple[str, int]] = set()
        self._publisher = publisher(node, MarkerArray, "fleet_markers", LATCHED)
        steady_timer(node, LOOK_EVERY_S, self._publish_unsent)

    def show(self, what: Callable[[], Shown]) -> None:
        """Show these vehicles and paths, and no others; `what` is called when they are sent."""
        self._unsent = what

    def _publish_unsent(self) -> None:
        if self._unsent is None or not self._publisher.get_subscription_count():
            return

        vehicles, paths = self._unsent()
        self._unsent = None
        now_ns = self._node.get_clock().now().nanoseconds
        prefix = frame_prefix(self._node)
        message = fleet_markers(vehicles, paths, self._enlargement, now_ns, prefix)
        now = {(marker.ns, marker.id) for marker in message.markers}
        message.markers += deletions(sorted(self._sent - now))
        self._sent = now
        self._publisher.publish(message)
