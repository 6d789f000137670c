# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Changes of a fleet with which its vehicles keep clear of each other: later, higher or slower.

Prioritised planning (Erdmann and Lozano-Pérez, On multiple moving objects, 1987) over groups, each
an entry of a fleet file with its copies: one group after the other takes the change that costs it
the least time and keeps it clear of those before. A group that finds none goes first in the next
attempt.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.errors import ConfigError
from rfly_common.kernels.jit import kernel
from rfly_trajectory.fleet.fleet import Fleet, Vehicle
from rfly_trajectory.fleet.limit_check import MEETING, check_separation, duration

STEP = 1.0
"""Changes of departures are multiples of this, s."""
SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
"""Speeds that are tried, as shares of the cruising speed."""
CLIMB = 1.0
"""Climb that costs as much as a second, m."""
MARGINS = (1.0, 1.05, 1.25)
"""Distances that are tried, as shares of the one that is needed: between instants it may be less.
"""
MOST_PROMOTIONS = 3
"""Times that a group may go first because it found no way."""
MAX_CELLS = 5_000_000
"""Largest number of vehicles times instants, 24 bytes each."""


@kernel
def keeps_clear(
    moving: Floats,
    fixed: Floats,
    apart: float,
    begin: int,
    wait: int,
) -> bool:
    """Return whether two tracks (m, 3), m, are `apart`, m, at each instant from `begin` on.

    The first one waits at its first point for so many instants more.
    """
    for t in range(begin, len(fixed)):
        own = max(t - wait, 0)
        x = moving[own, 0] - fixed[t, 0]
        y = moving[own, 1] - fixed[t, 1]
        z = moving[own, 2] - fixed[t, 2]
        if x * x + y * y + z * z < apart * apart:
            return False
    return True


@kernel
def first_clear_wait(
    moving: Floats,
    fixed: Floats,
    apart: Floats,
    together: Bools,
    times: tuple[Ints, Ints, Ints, Ints],
    waits: Ints,
) -> int:
    """Return the index of the first wait with which k vehicles keep clear of n others, or -1.

    `moving` (k, m, 3) and `fixed` (n, m, 3) are tracks, m, `apart` (k, n) the distances, m. Those
    that start `together` (k, n) count from the instant at which both have departed or one has been
    away; `times` has the instants of departure and of being away: (k,), (k,), (n,), (n,).
    """
    departs, away, others_depart, others_away = times
    for number in range(len(waits)):
        wait = waits[number]
        clear = True

        # every pair keeps clear
        for i in range(len(moving)):
            for j in range(len(fixed)):
                begin = 0
                if together[i, j]:
                    both_departed = max(departs[i] + wait, others_depart[j])
                    begin = min(both_departed, away[i] + wait, others_away[j])
                if not keeps_clear(moving[i], fixed[j], apart[i, j], begin, wait):
                    clear = False
                    break
            if not clear:
                break
        if clear:
            return number
    return -1


class AllowedChange(NamedTuple):
    """Bounds of what a group may do otherwise."""

    later: float = 60.0
    """Latest departure after the planned one, s; between copies at most as much."""
    higher: float = 20.0
    """Largest height above the planned one, m; for aircraft whose way-points have no heights."""
    share: float = 0.5
    """Slowest speed, as a share of the planned one."""

    def check(self) -> None:
        """Raise ConfigError for values that no group can have."""
        for name, low, high in (("later", 0.0, 3600.0), ("higher", 0.0, 10_000.0)):
            if not low <= getattr(self, name) <= high:
                raise ConfigError(f"is not within {low:g} … {high:g}", key=name)
        if not SHARES[-1] <= self.share <= 1.0:
            raise ConfigError(f"is not within {SHARES[-1]:g} … 1", key="share")


SMALL_CHANGES = AllowedChange()


class Change(NamedTuple):
    """Changes that a group makes to its plan."""

    later: float = 0.0
    """Departure after the planned one, s."""
    between: float = 0.0
    """Time from one copy's departure to the next beyond the planned one, s."""
    higher: float = 0.0
    """Height above the planned one, m."""
    share: float = 1.0
    """Share of the planned cruising speed."""

    def of(self, group: Sequence[Vehicle]) -> list[Vehicle]:
        """Return the vehicles of a group with this change."""
        return [
            dataclasses.replace(
                vehicle,
                delay=vehicle.delay + self.later + copy * self.between,
                height=vehicle.height + self.higher,
                profile=dataclasses.replace(
                    vehicle.profile, cruise=vehicle.profile.cruise * self.share
                ),
            )
            for copy, vehicle in enumerate(group)
        ]

    def cost(self, group: Sequence[Vehicle]) -> float:
        """Return what the change costs a group, s."""
        slower = max(map(duration, group)) * (1.0 / self.share - 1.0)
        return self.later + (len(group) - 1) * self.between + self.higher / CLIMB + slower


class Deconflicted(NamedTuple):
    """A fleet whose vehicles keep clear, or what stands in the way of that."""

    fleet: Fleet
    """The changed fleet; the given one if no way was found."""
    changes: list[Change]
    """Change of each group; those that need none have `Change()`."""
    stuck: str
    """First vehicle of a group for which no way was found; empty: all keep clear."""


def deconflict(
    fleet: Fleet,
    groups: Sequence[int],
    radii: ArrayLike = 0.0,
    allowed: AllowedChange = SMALL_CHANGES,
) -> Deconflicted:
    """Return a fleet without the violations that `check_separation` finds with these radii (n,), m.

    `groups`: sizes of the groups that change together, in the order of the vehicles. Raises
    ConfigError for sizes that do not make up the fleet, and for what can't be allowed.
    """
    allowed.check()
    if sum(groups) != len(fleet) or min(groups, default=1) < 1:
        raise ConfigError(f"groups of {sum(groups)} vehicles, expected the fleet's {len(fleet)}")
    unchanged = [Change()] * len(groups)
    stuck = ""
    if not check_separation(fleet, radii=radii):
        return Deconflicted(fleet, unchanged, stuck)

    for margin in MARGINS:
        search = _Search(fleet, groups, radii, allowed, margin)
        changes, stuck = search.changes()
        if stuck:
            break
        changed = fleet.of(
            [
                vehicle
                for change, group in zip(changes, search.groups, strict=True)
                for vehicle in (group if change == Change() else change.of(group))
            ]
        )
        left = check_separation(changed, radii=radii)
        if not left:
            return Deconflicted(changed, changes, stuck)
        stuck = left[0].vehicle
    return Deconflicted(fleet, unchanged, stuck)


class _Tracks(NamedTuple):
    """Tracks of k vehicles over common instants."""

    position: Floats
    """Positions, (k, m, 3), ENU, m."""
    departs: Ints
    """Instant of the departure, (k,)."""
    away: Ints
    """Instant at which a vehicle has come away from its start, (k,)."""
    radius: Floats
    """Radius of each vehicle's body, (k,), m."""

    def of(self, first: int, end: int) -> _Tracks:
        """Return the tracks from one row up to another."""
        part = slice(first, end)
        return _Tracks(self.position[part], self.departs[part], self.away[part], self.radius[part])


class _Search:
    """Search of a change for each group of a fleet."""

    def __init__(
        self,
        fleet: Fleet,
        groups: Sequence[int],
        radii: ArrayLike,
        allowed: AllowedChange,
        margin: float,
    ) -> None:
        self.fleet = fleet
        self.allowed = allowed
        self.margin = margin
        ends = list(itertools.accumulate(groups))
        self.rows = [range(end - size, end) for end, size in zip(ends, groups, strict=True)]
        self.groups = [[fleet.vehicles[row] for row in rows] for rows in self.rows]
        self.radius = np.broadcast_to(np.asarray(radii, float), (len(fleet),))
        self.least = fleet.min_separation or 0.0
        self.farthest = max(self.least, 2.0 * float(self.radius.max(initial=0.0)))

        # instants: until the slowest has made its drive
        fastest = max(vehicle.profile.cruise for vehicle in fleet.vehicles)
        longest = max(
            vehicle.delay + duration(vehicle) / allowed.share for vehicle in fleet.vehicles
        )
        seconds = longest + (1 + max(groups)) * allowed.later
        step = 0.25 * self.farthest / max(fastest, 1e-9)
        instants = min(math.ceil(seconds / step), MAX_CELLS // len(fleet)) + 1
        per_step = max(math.ceil(STEP * (instants - 1) / seconds), 1)
        self.step = STEP / per_step
        self.times = np.arange(math.ceil(seconds / self.step) + 1) * self.step
        self.waits = per_step * np.arange(int(allowed.later / STEP) + 1)

    def changes(self) -> tuple[list[Change], str]:
        """Return the change of each group, and the name of a vehicle for which none was found."""
        order = list(range(len(self.groups)))
        promoted = [0] * len(order)
        while True:
            found: list[Change] = [Change()] * len(order)
            placed = _Tracks(
                np.empty((len(self.fleet), len(self.times), 3)),
                np.empty(len(self.fleet), np.int64),
                np.empty(len(self.fleet), np.int64),
                np.empty(len(self.fleet)),
            )
            count = 0
            for group in order:
                best = self._best(group, placed.of(0, count))
                if best is None:
                    break
                found[group], tracks = best
                end = count + len(tracks.position)
                for column, new in zip(placed, tracks, strict=True):
                    column[count:end] = new
                count = end
            else:
                return found, ""

            # who found no way goes first
            if group == order[0] or promoted[group] == MOST_PROMOTIONS:
                return found, self.groups[group][0].name
            promoted[group] += 1
            order.remove(group)
            order.insert(0, group)

    def _best(self, group: int, placed: _Tracks) -> tuple[Change, _Tracks] | None:
        """Return a group's cheapest change that keeps it clear of others, and its tracks then."""
        vehicles = self.groups[group]
        variants = sorted(self._variants(vehicles), key=lambda change: change.cost(vehicles))

        # cheapest first
        best: Change | None = None
        for variant in variants:
            if best is not None and variant.cost(vehicles) >= best.cost(vehicles):
                break
            tracks = self._tracks(group, variant)
            if not self._clear_inside(tracks):
                continue
            wait = self._first_clear(tracks, placed, self.waits)
            if wait < 0:
                continue
            change = variant._replace(later=wait * STEP)
            if best is None or change.cost(vehicles) < best.cost(vehicles):
                best = change
        return None if best is None else (best, self._tracks(group, best))

    def _variants(self, vehicles: Sequence[Vehicle]) -> Iterator[Change]:
        """Yield what a group can do otherwise, apart from a later departure."""
        first = vehicles[0]
        allowed = self.allowed
        rises = first.kind != "ground" and first.path.altitude is None
        levels = int(allowed.higher / self.farthest) if rises else 0
        # a schedule of its own is not that of the profile
        slows = first.timing is None and first.profile.cruise > 0.0
        shares = [share for share in SHARES if share >= allowed.share] if slows else [1.0]
        gaps = int(allowed.later / STEP) if len(vehicles) > 1 else 0
        for gap in range(gaps + 1):
            yield Change(between=gap * STEP)
        for level in range(1, levels + 1):
            yield Change(higher=math.ceil(10.0 * level * self.margin * self.farthest) / 10.0)
        for share in shares[1:]:
            yield Change(share=share)

    def _tracks(self, group: int, change: Change) -> _Tracks:
        """Return the tracks of a group with a change."""
        vehicles = change.of(self.groups[group]) if change != Change() else self.groups[group]
        k, m = len(vehicles), len(self.times)
        part = Fleet(vehicles, self.fleet.terrain)
        sampled = part.sample_vehicles(np.repeat(np.arange(k), m), np.tile(self.times, k))
        position = sampled.position.reshape(k, m, 3)

        gone = np.linalg.norm(position - position[:, :1], axis=2) >= self.farthest
        away = np.where(gone.any(axis=1), gone.argmax(axis=1), m)
        delay = np.array([vehicle.delay for vehicle in vehicles])
        return _Tracks(
            position,
            np.ceil(delay / self.step).astype(np.int64),
            away.astype(np.int64),
            self.radius[self.rows[group].start : self.rows[group].stop].copy(),
        )

    def _clear_inside(self, tracks: _Tracks) -> bool:
        """Return whether the vehicles of a group keep clear of each other."""
        none = np.zeros(1, np.int64)
        return all(
            self._first_clear(tracks.of(row, row + 1), tracks.of(0, row), none) == 0
            for row in range(1, len(tracks.position))
        )

    def _first_clear(self, tracks: _Tracks, others: _Tracks, waits: Ints) -> int:
        """Return the index of the first wait with which vehicles keep clear of others, or -1."""
        if not len(others.position):
            return 0
        touching = tracks.radius[:, None] + others.radius[None, :]
        # what is just kept is kept
        apart = self.margin * (1.0 - 1e-6) * np.maximum(touching, self.least)
        starts = tracks.position[:, None, 0] - others.position[None, :, 0]
        together: Bools = np.linalg.norm(starts, axis=2) < MEETING
        times = (tracks.departs, tracks.away, others.departs, others.away)
        return int(
            first_clear_wait(tracks.position, others.position, apart, together, times, waits)
        )
