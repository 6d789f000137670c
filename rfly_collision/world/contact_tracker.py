# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Contact events, begin, stay and end, between successive queries of the scene.

No clock, no shapes, no ROS. A contact is one between a vehicle and the ground, a placed object or
another vehicle; each pair has at most one.

With the ground and placed objects a contact ends when the two are more than HOLD_CLEARANCE apart,
or have not touched for HOLD_S, whichever comes first: a body that rests or rattles on the ground
touches it all the time. Between two vehicles it ends when they do not touch any more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Bools, Floats, Ints, Rows

GROUND = -2
STATIC = -1
"""Partners in `other`, with RflySim3D's meaning; all others are ids of vehicles."""
BEGIN = 0
STAY = 1
END = 2

HOLD_S = 0.1
HOLD_CLEARANCE = 0.002
"""Clearance that a contact survives, m."""

MAX_ID = 2**31 - 1
_STATIC_CODE = np.uint64(2**32)
_SHIFT = np.uint64(33)


@dataclass(frozen=True, eq=False)
class PairContacts(Rows):
    """m contacts by the ids of what touches, at most one for each pair. ENU, m, s."""

    vehicle: Ints
    """Id of the vehicle, 1 … MAX_ID, (m,); of two vehicles the smaller one."""
    other: Ints
    """GROUND, STATIC, or the id of the other vehicle, (m,)."""
    object_id: Ints
    """Id of the placed object with STATIC, 0 … MAX_ID, else 0, (m,)."""
    position: Floats
    """Middle of the contact, (m, 3)."""
    normal: Floats
    """Unit vectors from the other to the vehicle, (m, 3)."""
    depth: Floats
    """Depth >= 0, (m,)."""
    time: Floats
    """Time from the begin of the step to the first touch, (m,)."""

    @property
    def key(self) -> NDArray[np.uint64]:
        """Number of each pair, (m,).

        Sorted by vehicle; then the ground, other vehicles, objects.
        """
        code = np.where(self.other == GROUND, 0, self.other).astype(np.uint64)
        code = np.where(self.other == STATIC, _STATIC_CODE + self.object_id.astype(np.uint64), code)
        return (self.vehicle.astype(np.uint64) << _SHIFT) | code


@dataclass(frozen=True, eq=False)
class ContactEvents:
    """Changes of contacts, sorted by their keys.

    Contacts that end are as they were last seen; those that a small clearance holds have depth 0.
    """

    contacts: PairContacts
    event: NDArray[np.uint8]
    """BEGIN, STAY or END, (m,)."""

    def __len__(self) -> int:
        return len(self.event)


def no_pairs() -> PairContacts:
    """Return contacts of length 0."""
    none = np.empty(0)
    ids = np.empty(0, np.int64)
    return PairContacts(ids, ids, ids, np.empty((0, 3)), np.empty((0, 3)), none, none)


class ContactTracker:
    """Comparison of each query with the one before."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.active = no_pairs()
        """Contacts that have begun and not ended, as they were last seen."""
        self._key: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._touched_ns: Ints = np.empty(0, np.int64)

    def lost(self, found: PairContacts, now_ns: int) -> PairContacts:
        """Return the active contacts that the query at `now_ns` missed and clearance may hold."""
        return self.active.select(~np.isin(self._key, found.key) & self._may_hold(now_ns))

    def update(
        self, now_ns: int, found: PairContacts, near: NDArray[np.uint64] | None = None
    ) -> ContactEvents:
        """Return what the query at `now_ns` changes.

        `found` are the present contacts. `near` are keys of those of `lost(found, now_ns)` whose
        clearance is at most HOLD_CLEARANCE: they go on.
        """
        key = found.key
        order = np.argsort(key)
        found = found.select(order)
        key = key[order]

        known = np.isin(key, self._key)
        gone = ~np.isin(self._key, key)
        held = (
            gone
            & self._may_hold(now_ns)
            & np.isin(self._key, np.empty(0, np.uint64) if near is None else near)
        )

        kept = self.active.select(held)
        ended = self.active.select(gone & ~held)
        now_apart = replace(kept, depth=np.zeros(len(kept)), time=np.zeros(len(kept)))
        contacts = found.concatenate(now_apart, replace(ended, time=np.zeros(len(ended))))
        event = np.repeat(
            np.array([STAY, STAY, END], np.uint8), [len(found), len(kept), len(ended)]
        )
        event[: len(found)][~known] = BEGIN

        self.active = found.concatenate(kept)
        self._touched_ns = np.concatenate((np.full(len(found), now_ns), self._touched_ns[held]))
        self._key = np.concatenate((key, self._key[held]))
        order = np.argsort(self._key)
        self.active = self.active.select(order)
        self._key = self._key[order]
        self._touched_ns = self._touched_ns[order]

        order = np.argsort(contacts.key)
        return ContactEvents(contacts.select(order), event[order])

    def end_all(self) -> ContactEvents:
        """End all active contacts and return the events."""
        ended = replace(self.active, time=np.zeros(len(self.active)))
        self._clear()
        return ContactEvents(ended, np.full(len(ended), END, np.uint8))

    def _may_hold(self, now_ns: int) -> Bools:
        """Return which active contacts may go on without touching."""
        since_ns = now_ns - self._touched_ns
        return (self.active.other < 0) & (since_ns >= 0) & (since_ns < HOLD_S * 1e9)
