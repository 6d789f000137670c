# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Filters of incoming vehicle states: staleness, and ids that two sources write.

No clock and no ROS: the caller passes both times, ns. *now* is the node's clock, in which stamps
are written; it may be simulated, stop or jump. *steady* measures silence by arrival and
never jumps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Bools, Ints

STALE = "stale"
TOO_OLD = "too_old"

BEHIND_NS = 250_000_000
"""Time after which stamps that stay behind are those of a clock that was set back, ns.

A message that was merely late is followed by newer ones before.
"""
SILENCE_NS = 1_000_000_000
"""Silence after which an older stamp is that of a clock that was set back at once, ns."""
FORGET_SOURCE_NS = 10_000_000_000
"""Silence after which a source is forgotten, ns."""
MAX_SOURCES = 10_000
"""Largest number of sources that are remembered."""


@dataclass(frozen=True)
class Conflict:
    """An id that two sources write; the first keeps it."""

    vehicle_id: int
    first: str
    second: str

    def __str__(self) -> str:
        second = self.second or "a source without a name"
        return (
            f"vehicle {self.vehicle_id} comes from {self.first}; "
            f"its states from {second} are dropped"
        )


@dataclass(frozen=True, eq=False)
class Claim:
    """The ids of one message that a source may write."""

    accepted: Bools
    """Mask of the ids that the source may write, (n,)."""
    configured: int = 0
    """Number of ids that a parameter gives to a topic of their own."""
    others: int = 0
    """Number of ids that another source has."""
    conflicts: tuple[Conflict, ...] = ()
    """One example for each source that keeps ids."""


class _Heard(NamedTuple):
    """Newest states of a source."""

    stamp_ns: int
    at_ns: int
    """Steady time of their arrival, ns."""
    behind_ns: int | None = None
    """Steady time since which older stamps have come instead, ns."""

    def was_set_back(self, steady_ns: int) -> bool:
        """Return whether an older stamp at this time means that the source's clock was set back."""
        is_behind = self.behind_ns is not None and steady_ns - self.behind_ns >= BEHIND_NS
        return is_behind or steady_ns - self.at_ns > SILENCE_NS


class StampFilter:
    """A filter of states that are older than the last of their source, or older than `max_age`.

    A source whose stamps stay behind for BEHIND_NS, or that comes back after SILENCE_NS, has a
    clock that was set back, or is a recording that begins again: it starts anew, and
    `on_set_back(source, seconds)` is called once.
    """

    def __init__(
        self,
        max_age_s: float = 0.0,
        on_set_back: Callable[[str, float], object] = lambda _source, _seconds: None,
    ) -> None:
        self._max_age_ns = round(max_age_s * 1e9)
        self._on_set_back = on_set_back
        self._last: dict[str, _Heard] = {}
        self._now_ns = 0

    def rejection_reason(
        self, source: str, stamp_ns: int, now_ns: int, steady_ns: int
    ) -> str | None:
        """Return None if the states may pass, else the reason: `stale` or `too_old`.

        Stamp 0 means now and always passes.
        """
        if now_ns < self._now_ns:
            self.reset()
        self._now_ns = now_ns

        known = self._last.get(source)
        if stamp_ns == 0:
            stamp_ns = now_ns if known is None else max(now_ns, known.stamp_ns)

        back_ns = 0 if known is None else known.stamp_ns - stamp_ns
        if known is not None and back_ns > 0:
            if known.behind_ns is None:
                self._last[source] = known._replace(behind_ns=steady_ns)
            if not known.was_set_back(steady_ns):
                return STALE

        if self._max_age_ns and now_ns - stamp_ns > self._max_age_ns:
            return TOO_OLD

        if back_ns > 0:
            self._on_set_back(source, 1e-9 * back_ns)
        if known is None and len(self._last) >= MAX_SOURCES:
            del self._last[next(iter(self._last))]
        self._last[source] = _Heard(stamp_ns, steady_ns)
        return None

    def is_newer(self, source: str, stamp_ns: int) -> bool:
        """Return True for a stamp that `rejection_reason` accepts whatever the clock says."""
        known = self._last.get(source)
        if known is None or self._max_age_ns:
            return False
        return stamp_ns > known.stamp_ns or stamp_ns == 0

    def reset(self) -> None:
        """Forget the last stamps, because the node's clock was set back."""
        self._last.clear()
        self._now_ns = 0

    def drop_stale(self, steady_ns: int) -> None:
        """Forget sources silent for FORGET_SOURCE_NS. To be called regularly."""
        silent = [
            source
            for source, heard in self._last.items()
            if steady_ns - heard.at_ns > FORGET_SOURCE_NS
        ]
        for source in silent:
            del self._last[source]


class IdTable:
    """Two numbers for each id, with look-up for whole arrays of ids."""

    def __init__(self) -> None:
        self.ids: NDArray[np.int32] = np.empty(0, np.int32)
        self.values: Ints = np.empty((0, 2), np.int64)

    def rows(self, ids: NDArray[np.int32], fill: tuple[int, int]) -> NDArray[np.intp]:
        """Return the rows of `values` of the ids; new ids get the values `fill`.

        One fleet in constant order takes the short way.
        """
        if len(ids) == len(self.ids) and (ids == self.ids).all():
            return np.arange(len(ids))

        rows = np.searchsorted(self.ids, ids)
        if len(self.ids):
            known = self.ids[np.minimum(rows, len(self.ids) - 1)] == ids
            if known.all():
                return rows
        else:
            known = np.zeros(len(ids), np.bool_)

        # new ids
        new = np.sort(ids[~known])
        rows = np.searchsorted(self.ids, new)
        self.ids = np.insert(self.ids, rows, new)
        self.values = np.insert(self.values, rows, fill, axis=0)
        return np.searchsorted(self.ids, ids)

    def keep(self, mask: Bools) -> None:
        """Forget the rows where the mask is false."""
        self.ids = self.ids[mask]
        self.values = self.values[mask]


class IdOwners:
    """The owner of each id: the first source that writes it, until it is silent for `stale_after`.

    `configured` (id -> topic) are ids with a topic of their own; no source gets them.
    """

    def __init__(
        self, stale_after_s: float = 1.0, configured: Mapping[int, str] | None = None
    ) -> None:
        self._configured = dict(configured or {})
        self._configured_ids = np.array(sorted(self._configured), np.int32)
        self._stale_after_ns = round(stale_after_s * 1e9)
        self._table = IdTable()  # (number of the source, steady time it was last heard)
        self._sources: list[str] = []
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._table.ids)

    def claim(self, ids: NDArray[np.int32], source: str, steady_ns: int) -> Claim:
        """Return which of the ids this source may write; it owns these from now on."""
        if len(self._configured_ids):
            free = ~np.isin(ids, self._configured_ids)
            if not free.all():
                return self._claim_unconfigured(free, ids, source, steady_ns)

        number = self._number(source)
        rows = self._table.rows(ids, (number, steady_ns))
        owners = self._table.values[rows, 0]
        heard = self._table.values[rows, 1]

        # free ids, and those of silent owners
        accepted = owners == number
        if not accepted.all():
            accepted |= steady_ns - heard > self._stale_after_ns
        if accepted.all():
            self._table.values[rows] = (number, steady_ns)
            return Claim(accepted)

        self._table.values[rows[accepted]] = (number, steady_ns)

        # one example for each other owner
        others, first = np.unique(owners[~accepted], return_index=True)
        examples = ids[~accepted][first]
        conflicts = tuple(
            Conflict(vehicle_id, self._sources[owner], source)
            for vehicle_id, owner in zip(examples.tolist(), others.tolist(), strict=True)
        )
        return Claim(accepted, 0, int(np.count_nonzero(~accepted)), conflicts)

    def owner_of(self, vehicle_id: int, steady_ns: int) -> str | None:
        """Return the source that writes an id at present; None if the id is free."""
        if vehicle_id in self._configured:
            return self._configured[vehicle_id]

        row = int(np.searchsorted(self._table.ids, vehicle_id))
        if row == len(self._table.ids) or self._table.ids[row] != vehicle_id:
            return None

        owner, heard = self._table.values[row].tolist()
        return None if steady_ns - heard > self._stale_after_ns else self._sources[owner]

    def heard(self, ids: NDArray[np.int32], since_ns: int) -> Bools:
        """Return which of the ids a source has written since a steady time."""
        return np.isin(ids, self._table.ids[self._table.values[:, 1] > since_ns])

    def reserve(self, vehicle_id: int, owner: str) -> None:
        """Keep the id from all sources from now on."""
        if vehicle_id not in self._configured:
            row = np.searchsorted(self._configured_ids, vehicle_id)
            self._configured_ids = np.insert(self._configured_ids, row, vehicle_id)
        self._configured[vehicle_id] = owner

    def release(self, vehicle_id: int) -> None:
        """Free a reserved id."""
        if self._configured.pop(vehicle_id, None) is not None:
            row = np.searchsorted(self._configured_ids, vehicle_id)
            self._configured_ids = np.delete(self._configured_ids, row)

    def _claim_unconfigured(
        self, free: Bools, ids: NDArray[np.int32], source: str, steady_ns: int
    ) -> Claim:
        """Return the claim if some ids are configured."""
        rest = self.claim(ids[free], source, steady_ns)
        accepted = free.copy()
        accepted[free] = rest.accepted
        taken = ids[~free].tolist()
        conflict = Conflict(taken[0], self._configured[taken[0]], source)
        return Claim(accepted, len(taken), rest.others, (conflict, *rest.conflicts))

    def drop_stale(self, steady_ns: int) -> None:
        """Forget ids that no source has written for `stale_after`. To be called regularly."""
        self._table.keep(steady_ns - self._table.values[:, 1] <= self._stale_after_ns)

        # renumber the sources
        in_use = np.unique(self._table.values[:, 0])
        if len(in_use) < len(self._sources):
            self._table.values[:, 0] = np.searchsorted(in_use, self._table.values[:, 0])
            self._sources = [self._sources[number] for number in in_use.tolist()]
            self._numbers = {source: number for number, source in enumerate(self._sources)}

    def _number(self, source: str) -> int:
        number = self._numbers.get(source)
        if number is None:
            number = self._numbers[source] = len(self._sources)
            self._sources.append(source)
        return number
