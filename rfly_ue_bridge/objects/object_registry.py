"""Registry of placed objects by id. No clock, no socket and no ROS."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

from rfly_common.errors import PlacementError
from rfly_ue_bridge.objects.placement import FIRST_CHOSEN_ID, PlacedObject

MAX_OBJECTS = 100_000


def _nobody(_id: int) -> str | None:
    return None


class ObjectRegistry:
    """Keeps objects and sees to it that ids are unique, among them and beside the vehicles.

    `owner_of` tells who else uses an id (None: nobody).
    """

    def __init__(self, owner_of: Callable[[int], str | None] = _nobody) -> None:
        self._owner_of = owner_of
        self._objects: dict[int, PlacedObject] = {}
        self._maybe_free = FIRST_CHOSEN_ID
        """no object below this has been removed since the last id was chosen: a search begins here"""

    def __len__(self) -> int:
        return len(self._objects)

    @property
    def objects(self) -> tuple[PlacedObject, ...]:
        """All objects, by id."""
        return tuple(self._objects[key] for key in sorted(self._objects))

    def checked(self, placed: PlacedObject) -> PlacedObject:
        """The object with the id it would get; nothing is kept. Raises PlacementError where that id is in use."""
        if len(self._objects) >= MAX_OBJECTS:
            raise PlacementError(f"{MAX_OBJECTS} objects are placed already, no more are taken")
        if placed.id == 0:
            free = (i for i in itertools.count(self._maybe_free) if i not in self._objects and not self._owner_of(i))
            self._maybe_free = next(free)
            return dataclasses.replace(placed, id=self._maybe_free)
        if placed.id in self._objects:
            raise PlacementError(f"id {placed.id} is a placed object already: move or remove it, or give id 0")
        owner = self._owner_of(placed.id)
        if owner:
            raise PlacementError(f"id {placed.id} is a vehicle of {owner}: give another id, or 0 to have one chosen")
        return placed

    def keep(self, placed: PlacedObject) -> None:
        """Take the object in, or what replaces one of its id."""
        self._objects[placed.id] = placed

    def get(self, object_id: int) -> PlacedObject:
        """The object of that id. Raises PlacementError that lists the ids there are."""
        if object_id not in self._objects:
            raise PlacementError(f"id {object_id}: no such object is placed; there are {self._ids()}")
        return self._objects[object_id]

    def remove(self, object_id: int) -> PlacedObject:
        """Forget the object of that id and return it. Raises PlacementError."""
        gone = self.get(object_id)
        del self._objects[object_id]
        if object_id >= FIRST_CHOSEN_ID:
            self._maybe_free = min(self._maybe_free, object_id)
        return gone

    def _ids(self) -> str:
        ids = sorted(self._objects)
        shown = ", ".join(map(str, ids[:10]))
        return (shown + (f" … ({len(ids)} in all)" if len(ids) > 10 else "")) or "none"
