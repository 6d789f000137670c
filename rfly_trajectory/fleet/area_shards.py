# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A fleet divided among nodes by areas, and the watch on the nodes that drive the other areas.

Theory of operation. The plan of a fleet file has each vehicle at one place at each fleet time. All
nodes know the plan and share the start and the pace, so each computes by itself whose vehicle it
is: that of the node within whose area the plan has it. No message decides it, so none can be lost,
repeated or late: at each fleet time a vehicle belongs to exactly one of areas that fit together.

Messages hold what a node cannot compute: which areas the others have, and that they are alive.
A node that is silent for LEASE is dead; those of its vehicles that no other area holds are lost.
A node that is shut down says goodbye by a report without a fleet, and is forgotten.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from rfly_common.arrays import Bools, Floats
from rfly_common.errors import ConfigError
from rfly_trajectory.fleet.fleet import Fleet
from rfly_trajectory.fleet.run_clock import RunClock

LEASE = 1.5
"""Silence after which a node counts as dead, s: with PERIOD below the 2 s in which it is told."""
PERIOD = 0.25
"""Time between two reports of a node, s."""
MOST_NODES = 100
"""Largest number of other nodes that are remembered."""
ROUNDING = 1e-6
"""Places are rounded to this, m: hosts whose arithmetic differs in the last bit agree on borders.
"""
CHECKED_TIMES = (0.0, 10.0, 100.0)
"""Fleet times of the places by which nodes compare their plans, s."""
SAME_TIME_NS = 100_000_000
"""Difference of two hosts' times, ns, that is told, with the way of the message."""


class ShardArea(NamedTuple):
    """Rectangle of `map`, m; the sides at x0 and y0 belong to it, those at x1 and y1 don't."""

    x0: float
    y0: float
    x1: float
    y1: float

    def __str__(self) -> str:
        return f"[{self.x0:g}, {self.y0:g}, {self.x1:g}, {self.y1:g}]"

    @property
    def _sides(self) -> Floats:
        """Sides (4,) in steps of ROUNDING."""
        return np.rint(np.array(self) / ROUNDING)

    def holds(self, places: Floats) -> Bools:
        """Return which of the places (n, 2), ENU, m, it holds, (n,)."""
        steps = np.rint(places / ROUNDING)
        sides = self._sides
        return np.asarray(((sides[:2] <= steps) & (steps < sides[2:])).all(axis=1))

    def overlaps(self, other: ShardArea) -> bool:
        """Return whether a place is in both."""
        mine = self._sides
        theirs = other._sides
        low = np.maximum(mine[:2], theirs[:2])
        return bool((low < np.minimum(mine[2:], theirs[2:])).all())


def area_of(values: Sequence[float]) -> ShardArea | None:
    """Return an area of the numbers x0, y0, x1, y1, m, which may be infinite; None for none.

    Raises ConfigError for any other.
    """
    if not values:
        return None
    good = len(values) == 4 and not any(map(math.isnan, values))
    if not good or not (values[0] < values[2] and values[1] < values[3]):
        shown = ", ".join(f"{value:g}" for value in values)
        raise ConfigError(
            f"area: [{shown}], expected x0, y0, x1, y1 in m with x0 < x1 and y0 < y1, such as "
            "-inf, -inf, 0, inf for everything west of x = 0"
        )
    return ShardArea(*map(float, values))


def checked_area(values: Sequence[float], *, shard: str, per_vehicle: str) -> ShardArea | None:
    """Return the area of a node's parameters; None without one.

    Raises ConfigError for a wrong area, and for parameters that go with none.
    """
    area = area_of(values)
    others = {
        f"shard: {shard}": "".join(shard.split()) not in ("", "0/1"),
        "publish_per_vehicle: always": per_vehicle == "always",
    }
    for other, is_given in others.items():
        if area is not None and is_given:
            raise ConfigError(f"area: {area} does not go with {other}")
    return area


def plan_checksum(fleet: Fleet) -> int:
    """Return a number that two fleets share whose vehicles are the same and go the same ways."""
    names = "\n".join(f"{vehicle.id} {vehicle.name}" for vehicle in fleet.vehicles)
    places = np.stack([fleet.places(t) for t in CHECKED_TIMES])
    millimetres = np.rint(places * 1e3).astype("<i8")
    return zlib.crc32(millimetres.tobytes(), zlib.crc32(names.encode()))


class Report(NamedTuple):
    """A node's report about itself."""

    source: str
    """Fully qualified name of the node."""
    stamp_ns: int
    """The node's time, ns."""
    area: ShardArea
    fleet: str
    """Name of the whole fleet; "" says that the node ends."""
    checksum: int
    """`plan_checksum` of the whole fleet."""
    clock: RunClock | None
    """Fleet time; None before the start is agreed on."""
    changes: int
    """Number of changes of the clock's pace."""
    avoidance: bool = False
    """True if its vehicles keep clear of each other."""


class Misfit(Enum):
    """Reason why two nodes cannot divide a fleet."""

    SAME_NAME = "has the same name: give each host a --namespace"
    OTHER_FLEET = "drives another fleet, or another version of its file"
    OTHER_RUN = "has another start or pace"
    OTHER_AVOIDANCE = "has another parameter avoidance: vehicles of both may meet"
    OTHER_TIME = "has another time: set the hosts' clocks (chrony, NTP, PTP)"
    OVERLAP = "has an area that overlaps: vehicles in both come twice"


class ShardProblem(NamedTuple):
    """A node that does not fit to this one."""

    source: str
    area: ShardArea
    misfit: Misfit

    def __str__(self) -> str:
        return f"{self.source} with the area {self.area} {self.misfit.value}"


class Uncovered(NamedTuple):
    """Vehicles of a fleet that no living node drives."""

    lost: Bools
    """Those in the area of a node that has died, (n,)."""
    outside: Bools
    """Those in no area that is known, (n,)."""


class _Known(NamedTuple):
    """The last report of a node."""

    report: Report
    heard: float
    """Time of its arrival, s."""
    ahead_ns: int
    """Its node's time less ours at its arrival, ns."""


class AreaShards:
    """Knowledge of a node about the nodes that drive the other areas of its fleet.

    Arrivals are timed by `now`, s, which never goes back.
    """

    def __init__(
        self, source: str, area: ShardArea, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.source = source
        self.area = area
        self._now = now
        self._known: dict[tuple[str, ShardArea], _Known] = {}
        self._sent: list[int] = []

    def sent(self, report: Report) -> None:
        """Remember an own report, which comes back."""
        self._sent = [*self._sent[-7:], report.stamp_ns]

    def hear(self, report: Report, now_ns: int) -> bool:
        """Take a report at a node time, ns. Return False for an own one that came back."""
        own = (report.source, report.area) == (self.source, self.area)
        if own and report.stamp_ns in self._sent:
            return False
        key = (report.source, report.area)
        self._known.pop(key, None)
        if not report.fleet:
            return True
        if len(self._known) >= MOST_NODES:
            del self._known[next(iter(self._known))]  # silent for the longest time
        self._known[key] = _Known(report, self._now(), report.stamp_ns - now_ns)
        return True

    def others(self) -> tuple[list[Report], list[Report]]:
        """Return the last reports of the nodes that live, and of those that are dead."""
        since = self._now() - LEASE
        known = self._known.values()
        living = [each.report for each in known if each.heard > since]
        return living, [each.report for each in known if each.heard <= since]

    def lives(self, report: Report) -> bool:
        """Return whether the node of a report is known to live, before this report counts."""
        known = self._known.get((report.source, report.area))
        return known is not None and known.heard > self._now() - LEASE

    def uncovered(self, places: Floats) -> Uncovered:
        """Return which vehicles with these places (n, 2), m, no living node drives."""
        living, dead = self.others()
        left = ~_held([self.area, *(each.area for each in living)], places)
        lost = left & _held([each.area for each in dead], places)
        return Uncovered(lost, left & ~lost)

    def problems(self, own: Report) -> list[ShardProblem]:
        """Return the living nodes that do not fit to this one, whose report is given."""
        living = self.others()[0]
        known = (self._known[each.source, each.area] for each in living)
        misfits = ((each.report, _misfit(own, each)) for each in known)
        return [ShardProblem(each.source, each.area, misfit) for each, misfit in misfits if misfit]


def _held(areas: Sequence[ShardArea], places: Floats) -> Bools:
    """Return which places (n, 2) any of the areas holds."""
    held = np.zeros(len(places), bool)
    for area in areas:
        held |= area.holds(places)
    return held


def _misfit(own: Report, known: _Known) -> Misfit | None:
    """Return the first reason why two nodes do not fit."""
    other = known.report
    agreed = own.clock is not None and other.clock is not None
    misfits = {
        Misfit.SAME_NAME: other.source == own.source,
        Misfit.OTHER_FLEET: other.checksum != own.checksum,
        Misfit.OVERLAP: own.area.overlaps(other.area),
        Misfit.OTHER_RUN: agreed and own.clock != other.clock,
        Misfit.OTHER_AVOIDANCE: own.avoidance != other.avoidance,
        Misfit.OTHER_TIME: abs(known.ahead_ns) > SAME_TIME_NS,
    }
    return next((misfit for misfit, holds in misfits.items() if holds), None)
