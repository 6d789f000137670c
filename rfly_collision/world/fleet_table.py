# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Latest state of every vehicle, merged by id. ENU, m, s. No clock and no ROS."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Ints
from rfly_common.vehicle_states import VehicleStates

_COLUMNS: dict[str, tuple[type, tuple[int, ...]]] = {
    "vehicle_type": (np.int64, ()),
    "position": (np.float64, (3,)),
    "orientation": (np.float64, (4,)),
    "velocity": (np.float64, (3,)),
    "angular_velocity": (np.float64, (3,)),
    "scale": (np.float64, (3,)),
    "fit_ground": (np.bool_, ()),
    "stamp_ns": (np.int64, ()),
    "heard_ns": (np.int64, ()),
    "fresh": (np.bool_, ()),
}


class FleetTable:
    """Columns by name, one row for each vehicle, sorted by `id`.

    `fresh` rows have come since `clear_fresh`. `layout` counts how often ids, types or scales have
    changed.
    """

    def __init__(self) -> None:
        self.id: Ints = np.empty(0, np.int64)
        self._columns: dict[str, NDArray[Any]] = {
            name: np.empty((0, *shape), kind) for name, (kind, shape) in _COLUMNS.items()
        }
        self.layout = 0

    def __len__(self) -> int:
        return len(self.id)

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self._columns[column]

    def copy(self) -> FleetTable:
        """Return an independent table with the same rows."""
        other = FleetTable()
        other.id = self.id.copy()
        other.layout = self.layout
        other._columns = {name: column.copy() for name, column in self._columns.items()}
        return other

    def rows(self, ids: NDArray[Any]) -> NDArray[np.intp]:
        """Return the rows of ids that are all known."""
        return np.searchsorted(self.id, ids)

    def types_of(self, ids: Ints) -> Ints:
        """(m,) the types of vehicles that are all known."""
        return self._columns["vehicle_type"][self.rows(ids)]

    def update(self, states: VehicleStates, stamp_ns: int, steady_ns: int) -> None:
        """Take over states in `map`; `steady_ns` is when they arrived."""
        added = np.setdiff1d(states.id, self.id)
        if len(added):
            places = np.searchsorted(self.id, added)
            self.id = np.insert(self.id, places, added)
            for name, (kind, shape) in _COLUMNS.items():
                empty: NDArray[Any] = np.zeros((len(added), *shape), kind)
                self._columns[name] = np.insert(self._columns[name], places, empty, axis=0)

        # a new type or scale changes the layout
        rows = self.rows(states.id)
        columns = self._columns
        changed = bool(len(added)) or any(
            (columns[name][rows] != getattr(states, name)).any()
            for name in ("vehicle_type", "scale")
        )
        self.layout += changed

        for name in (
            "vehicle_type",
            "position",
            "orientation",
            "velocity",
            "angular_velocity",
            "scale",
            "fit_ground",
        ):
            columns[name][rows] = getattr(states, name)
        columns["stamp_ns"][rows] = stamp_ns
        columns["heard_ns"][rows] = steady_ns
        columns["fresh"][rows] = True

    def clear_fresh(self) -> None:
        """Mark all rows as not fresh."""
        self._columns["fresh"][:] = False

    def drop_stale(self, steady_ns: int, stale_after_ns: int) -> int:
        """Drop vehicles without a state for this long; return their number."""
        keep = steady_ns - self._columns["heard_ns"] <= stale_after_ns
        gone = int(len(keep) - np.count_nonzero(keep))
        if gone:
            self.id = self.id[keep]
            self._columns = {name: column[keep] for name, column in self._columns.items()}
            self.layout += 1
        return gone
