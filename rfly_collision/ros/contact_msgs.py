"""Contacts -> rfly_suite/ContactArray; rfly_suite/PlacedObjectArray -> PlacedBodies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from rfly_suite.msg import ContactArray

from rfly_collision.world.collision_world import MAX_DISTANCE, SCALES
from rfly_collision.world.contact_tracker import MAX_ID, ContactEvents
from rfly_collision.world.placed_bodies import PlacedBodies
from rfly_common.errors import PlacementError
from rfly_common.frames import enu_to_ned, ned_to_enu, quat_ned_flu_to_ned_frd, quat_ned_frd_to_enu_flu
from rfly_common.ros.flat_arrays import flat
from rfly_common.ros.stamps import ns_to_stamp
from rfly_common.vehicle_states import QUATERNION_NORM_TOLERANCE

_OBJECT_COLUMNS = {
    "id": (1, 0, MAX_ID),
    "vehicle_type": (1, -MAX_ID, MAX_ID),
    "position": (3, -MAX_DISTANCE, MAX_DISTANCE),
    "orientation": (4, -2.0, 2.0),
    "scale": (3, 0.0, SCALES[1]),
    "box_origin": (3, -MAX_DISTANCE, MAX_DISTANCE),
    "box_half_extent": (3, 0.0, MAX_DISTANCE),
}
"""numbers for each object, and the least and greatest that they may be"""


def events_to_msg(events: ContactEvents, stamp_ns: int, frame_id: str, axes: str) -> ContactArray:
    """The contacts in a world frame whose axes are enu or ned."""
    contacts = events.contacts
    position: NDArray[Any] = contacts.position
    normal: NDArray[Any] = contacts.normal
    if axes == "ned":
        position, normal = enu_to_ned(position) + 0.0, enu_to_ned(normal) + 0.0
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
    message.header.frame_id = frame_id
    message.header.stamp = ns_to_stamp(stamp_ns)
    return message


def msg_to_placed(message: Any, axes: str) -> PlacedBodies:
    """The objects, in ENU, of a message in a world frame whose axes are enu or ned.

    Raises PlacementError for lengths that disagree, numbers that no object can have, and quaternions of another length
    than 1.
    """
    n = len(message.id)
    columns: dict[str, NDArray[Any]] = {}
    for name, (size, low, high) in _OBJECT_COLUMNS.items():
        column = np.asarray(getattr(message, name), float)
        if column.size != n * size:
            raise PlacementError(f"placed_objects: {name}: {column.size} numbers for {n} objects, expected {n * size}")
        columns[name] = column.reshape(n, size)
        wrong = np.argwhere(~((column >= low) & (column <= high)))  # true for NaN too
        if len(wrong):
            row, value = wrong[0, 0] // size, column[wrong[0, 0]]
            raise PlacementError(
                f"placed_objects: {name} of object {message.id[row]} is {value:g}, expected {low:g} … {high:g}"
            )
    orientation = columns["orientation"]
    norm = np.linalg.norm(orientation, axis=1)
    unfit = np.flatnonzero(np.abs(norm - 1) > QUATERNION_NORM_TOLERANCE)
    if unfit.size:
        length = f"{norm[unfit[0]]:g}"
        raise PlacementError(f"placed_objects: orientation of object {message.id[unfit[0]]} has length {length}, not 1")
    position, box = columns["position"], columns["box_origin"]
    if axes == "ned":
        position, box = np.asarray(ned_to_enu(position)), np.asarray(ned_to_enu(box))
        orientation = np.asarray(quat_ned_frd_to_enu_flu(quat_ned_flu_to_ned_frd(orientation)))
    return PlacedBodies(
        id=columns["id"][:, 0].astype(np.int64),
        vehicle_type=columns["vehicle_type"][:, 0].astype(np.int64),
        position=position,
        orientation=orientation,
        scale=np.where(columns["scale"] < SCALES[0], 1.0, columns["scale"]),
        box_origin=box,
        box_half_extent=columns["box_half_extent"],
    )
