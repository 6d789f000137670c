"""Contacts as arrows for RViz: visualization_msgs/MarkerArray."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import Point, Vector3
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from rfly_collision.world.contact_tracker import GROUND, STATIC, PairContacts
from rfly_common.frames import enu_to_ned
from rfly_common.ros.stamps import ns_to_stamp

NAMESPACE = "contacts"
COLOURS = {GROUND: (1.0, 0.65, 0.1), STATIC: (1.0, 0.9, 0.2)}
OF_VEHICLES = (1.0, 0.2, 0.2)


class ContactMarkers:
    """Which arrows are shown. Each contact keeps its marker's id while it lasts; the deepest ones are shown."""

    def __init__(self, frame_id: str, axes: str, length: float, most: int) -> None:
        self._frame_id, self._axes, self._length, self._most = frame_id, axes, length, most
        self._shown: dict[int, int] = {}

    def message(self, contacts: PairContacts, stamp_ns: int) -> MarkerArray | None:
        """What changes the picture to these contacts; None where it is empty and stays so."""
        if len(contacts) > self._most:
            contacts = contacts.select(np.sort(np.argsort(-contacts.depth, kind="stable")[: self._most]))
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
        markers = [self._marker(Marker.DELETE, number, stamp_ns) for number in gone if number not in taken]
        start, end = contacts.position, contacts.position + self._length * contacts.normal
        if self._axes == "ned":
            start, end = np.asarray(enu_to_ned(start)), np.asarray(enu_to_ned(end))
        for key, other, tail, tip in zip(keys, contacts.other.tolist(), start.tolist(), end.tolist(), strict=True):
            markers.append(self._arrow(self._shown[key], other, tail, tip, stamp_ns))
        return MarkerArray(markers=markers)

    def forget(self) -> None:
        """Nobody looks any more."""
        self._shown.clear()

    def _arrow(self, number: int, other: int, tail: list[float], tip: list[float], stamp_ns: int) -> Marker:
        marker = self._marker(Marker.ADD, number, stamp_ns)
        marker.points = [Point(x=x, y=y, z=z) for x, y, z in (tail, tip)]
        marker.scale = Vector3(x=0.08 * self._length, y=0.2 * self._length, z=0.25 * self._length)
        red, green, blue = COLOURS.get(other, OF_VEHICLES)
        marker.color = ColorRGBA(r=red, g=green, b=blue, a=1.0)
        return marker

    def _marker(self, action: int, number: int, stamp_ns: int) -> Marker:
        marker = Marker(ns=NAMESPACE, id=number, type=Marker.ARROW, action=action)
        marker.header.frame_id, marker.header.stamp = self._frame_id, ns_to_stamp(stamp_ns)
        marker.pose.orientation.w = 1.0
        return marker
