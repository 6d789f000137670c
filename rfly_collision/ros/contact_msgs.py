# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Messages of contacts and placed objects.

Contacts -> rfly_suite/ContactArray and arrows for RViz; rfly_suite/PlacedObjectArray ->
PlacedBodies.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, Vector3
from numpy.typing import NDArray
from rfly_suite.msg import ContactArray
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from rfly_collision.shapes.shape import ConvexHull, TriangleMesh
from rfly_collision.world.collision_world import MAX_DISTANCE, SCALES
from rfly_collision.world.contact_tracker import (
    GROUND,
    MAX_ID,
    STATIC,
    ContactEvents,
    PairContacts,
)
from rfly_collision.world.placed_bodies import PlacedBodies
from rfly_common.arrays import Floats, Ints
from rfly_common.errors import PlacementError, ShapeError
from rfly_common.frames import (
    enu_to_ned,
    ned_to_enu,
    quat_ned_flu_to_ned_frd,
    quat_ned_frd_to_enu_flu,
)
from rfly_common.ros.flat_arrays import flat
from rfly_common.ros.stamps import fill_header
from rfly_common.transform_buffer import FrameToWorld
from rfly_common.vehicle_states import QUATERNION_NORM_TOLERANCE
from rfly_terrain.ros.placed_objects_msgs import (
    parts_of_solids,
    paths_of_objects,
    surfaces_of_solids,
)

_OBJECT_COLUMNS = {
    "id": (1, 0, MAX_ID),
    "vehicle_type": (1, -MAX_ID, MAX_ID),
    "position": (3, -MAX_DISTANCE, MAX_DISTANCE),
    "orientation": (4, -2.0, 2.0),
    "scale": (3, 0.0, SCALES[1]),
    "box_origin": (3, -MAX_DISTANCE, MAX_DISTANCE),
    "box_half_extent": (3, 0.0, MAX_DISTANCE),
}
"""Numbers for each object, with their smallest and largest value."""


def events_to_msg(events: ContactEvents, stamp_ns: int, frame_id: str, axes: str) -> ContactArray:
    """Return the contacts in a world frame whose axes are enu or ned."""
    contacts = events.contacts
    position: NDArray[Any] = contacts.position
    normal: NDArray[Any] = contacts.normal
    if axes == "ned":
        position = enu_to_ned(position) + 0.0
        normal = enu_to_ned(normal) + 0.0

    message = ContactArray(
        id_a=flat("i", contacts.vehicle),
        id_b=flat("i", contacts.other),
        object_id=flat("i", contacts.object_id),
        position=flat("d", position),
        normal=flat("d", normal),
        depth=flat("d", contacts.depth),
        time=flat("d", contacts.time),
        event=flat("B", events.event),
    )
    return fill_header(message, stamp_ns, frame_id)


def msg_to_placed(message: Any, axes: str, *, seen: bool = False) -> PlacedBodies:
    """Return the objects of a message in a world frame, whose axes are enu or ned, in ENU.

    Each convex part makes a row. `seen`: objects as rays see them, by their triangles if they have
    any. Raises PlacementError for lengths that disagree, impossible numbers, and quaternions of a
    length other than 1.
    """
    n = len(message.id)
    columns: dict[str, NDArray[Any]] = {}

    # sizes and ranges of the columns
    for name, (size, low, high) in _OBJECT_COLUMNS.items():
        column = np.asarray(getattr(message, name), float)
        if column.size != n * size:
            raise PlacementError(
                f"placed_objects: {name}: {column.size} numbers for {n} objects, expected "
                f"{n * size}"
            )
        columns[name] = column.reshape(n, size)
        wrong = np.argwhere(~((column >= low) & (column <= high)))  # true for NaN too
        if len(wrong):
            row = wrong[0, 0] // size
            value = column[wrong[0, 0]]
            raise PlacementError(
                f"placed_objects: {name} of object {message.id[row]} is {value:g}, expected "
                f"{low:g} … {high:g}"
            )

    # unit quaternions
    orientation = columns["orientation"]
    norm = np.linalg.norm(orientation, axis=1)
    unfit = np.flatnonzero(np.abs(norm - 1) > QUATERNION_NORM_TOLERANCE)
    if unfit.size:
        length = f"{norm[unfit[0]]:g}"
        raise PlacementError(
            f"placed_objects: orientation of object {message.id[unfit[0]]} has length {length}, "
            "not 1"
        )

    # ENU
    position = columns["position"]
    box = columns["box_origin"]
    if axes == "ned":
        position = np.asarray(ned_to_enu(position))
        box = np.asarray(ned_to_enu(box))
        orientation = np.asarray(quat_ned_frd_to_enu_flu(quat_ned_flu_to_ned_frd(orientation)))

    hulls, row, hull, color = _hulls(message, seen)
    placed = PlacedBodies(
        id=columns["id"][:, 0].astype(np.int64),
        vehicle_type=columns["vehicle_type"][:, 0].astype(np.int64),
        position=position,
        orientation=orientation,
        scale=np.where(columns["scale"] < SCALES[0], 1.0, columns["scale"]),
        box_origin=box,
        box_half_extent=columns["box_half_extent"],
        color=_listed_colors("color", message.color, n, "objects"),
        class_id=_class_ids(message, n),
        paths=paths_of_objects(message, FrameToWorld(axes)),
    )
    bodies = placed.rows(row, hulls, hull)

    # a part's own colour wins
    if color is None:
        return bodies
    of_object = np.full((len(row), 3), np.nan) if bodies.color is None else bodies.color
    return dataclasses.replace(bodies, color=np.where(np.isnan(color), of_object, color))


def _hulls(
    message: Any, seen: bool
) -> tuple[tuple[ConvexHull | TriangleMesh, ...], Ints, Ints, Floats | None]:
    """Return the different hulls, and each body's object, hull and colour.

    The objects and the hulls are indices (m,); a hull is -1 for a body without one. Colours (m, 3)
    are 0 … 1, NaN for the object's; they are None if no part has its own.
    """
    parts, solid = parts_of_solids(message)
    surfaces = surfaces_of_solids(message) if seen else [None] * len(parts)
    shapes: list[list[ConvexHull | TriangleMesh]] = []
    try:
        for each, surface in zip(parts, surfaces, strict=True):
            shapes.append(
                [ConvexHull(part) for part in each] if surface is None else [TriangleMesh(surface)]
            )
    except ShapeError as error:
        raise PlacementError(f"placed_objects: {error}") from None
    hulls = tuple(shape for each in shapes for shape in each)
    counts = np.array([*map(len, shapes), 1])  # the last is what -1 finds: a box
    first = np.concatenate([np.cumsum(counts) - counts])
    times = counts[solid]
    row = np.repeat(np.arange(len(solid)), times)
    hull = np.arange(len(row)) - np.repeat(np.cumsum(times) - times, times) + first[solid][row]
    hull = np.where(solid[row] < 0, -1, hull)
    of_parts = _listed_colors("part_color", message.part_color, sum(map(len, parts)), "parts")
    if of_parts is None:
        return hulls, row, hull, None
    # a solid that is met by its triangles has the object's colour
    each = np.split(of_parts, np.cumsum([len(part) for part in parts])[:-1])
    met = [
        own if surface is None else np.full((1, 3), np.nan)
        for own, surface in zip(each, surfaces, strict=True)
    ]
    of_hulls = np.concatenate([*met, np.full((1, 3), np.nan)])  # the last is what -1 finds
    return hulls, row, hull, of_hulls[hull]


def _listed_colors(name: str, values: Any, n: int, of: str) -> Floats | None:
    """(n, 3) 0 … 1, NaN for 0 0 0; None where all are that."""
    color = np.asarray(values, float)
    if not color.any():
        return None
    if color.size != 3 * n:
        raise PlacementError(
            f"placed_objects: {name}: {color.size} numbers for {n} {of}, expected {3 * n} or none"
        )
    color = color.reshape(n, 3) / 255.0
    color[~color.any(axis=1)] = np.nan
    return color


def _class_ids(message: Any, n: int) -> Ints | None:
    class_id = np.asarray(message.class_id, np.int64)
    if class_id.size not in (0, n):
        raise PlacementError(
            f"placed_objects: class_id: {class_id.size} numbers for {n} objects, expected {n} or "
            "none"
        )
    return class_id if class_id.size else None


NAMESPACE = "contacts"
COLOURS = {GROUND: (1.0, 0.65, 0.1), STATIC: (1.0, 0.9, 0.2)}
OF_VEHICLES = (1.0, 0.2, 0.2)


class ContactMarkers:
    """Arrows that are shown.

    Each contact keeps its marker's id while it lasts; the deepest contacts are shown.
    """

    def __init__(self, frame_id: str, axes: str, length: float, most: int) -> None:
        self._frame_id = frame_id
        self._axes = axes
        self._length = length
        self._most = most
        self._shown: dict[int, int] = {}

    def message(self, contacts: PairContacts, stamp_ns: int) -> MarkerArray | None:
        """Return the changes that make the picture show these contacts; None if it stays empty."""
        if len(contacts) > self._most:
            contacts = contacts.select(
                np.sort(np.argsort(-contacts.depth, kind="stable")[: self._most])
            )

        # contacts that are gone, and numbers for new ones
        keys = contacts.key.tolist()
        gone = [self._shown.pop(key) for key in set(self._shown) - set(keys)]
        if not keys and not gone:
            return None
        used = set(self._shown.values())
        free = (number for number in range(len(keys) + len(used)) if number not in used)
        for key in keys:
            if key not in self._shown:
                self._shown[key] = next(free)

        taken = set(self._shown.values())
        markers = [
            self._marker(Marker.DELETE, number, stamp_ns) for number in gone if number not in taken
        ]

        # arrows along the normals
        start = contacts.position
        end = contacts.position + self._length * contacts.normal
        if self._axes == "ned":
            start = np.asarray(enu_to_ned(start))
            end = np.asarray(enu_to_ned(end))
        for key, other, tail, tip in zip(
            keys, contacts.other.tolist(), start.tolist(), end.tolist(), strict=True
        ):
            markers.append(self._arrow(self._shown[key], other, tail, tip, stamp_ns))
        return MarkerArray(markers=markers)

    def forget(self) -> None:
        """Forget the markers when there are no subscribers left."""
        self._shown.clear()

    def _arrow(
        self,
        number: int,
        other: int,
        tail: list[float],
        tip: list[float],
        stamp_ns: int,
    ) -> Marker:
        marker = self._marker(Marker.ADD, number, stamp_ns)
        marker.points = [Point(x=x, y=y, z=z) for x, y, z in (tail, tip)]
        marker.scale = Vector3(x=0.08 * self._length, y=0.2 * self._length, z=0.25 * self._length)
        red, green, blue = COLOURS.get(other, OF_VEHICLES)
        marker.color = ColorRGBA(r=red, g=green, b=blue, a=1.0)
        return marker

    def _marker(self, action: int, number: int, stamp_ns: int) -> Marker:
        marker = Marker(ns=NAMESPACE, id=number, type=Marker.ARROW, action=action)
        fill_header(marker, stamp_ns, self._frame_id)
        marker.pose.orientation.w = 1.0
        return marker
