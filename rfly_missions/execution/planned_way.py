# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The way that the items of a mission describe, as straight lines. NED metres."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rfly_common.arrays import Floats
from rfly_missions.followers.multirotor import RETURN_HEIGHT
from rfly_missions.mission import mavlink_items as mavlink
from rfly_missions.mission.checks import jump_target, tags_of
from rfly_missions.mission.items import MissionItem, MissionMode

SAGITTA = 0.01
"""Distance, m, of the chords of a circle from it."""
MAX_VISITS = 200_000
"""Limit of the items on the way, those of jumps counted each time."""
CRUISE_SPEED = 8.0
"""Speed, m/s, of further turns if the mission sets none."""
LEAST_CHORDS = 8
"""Least number of chords of a circle."""


@dataclass(frozen=True, eq=False)
class PlannedLeg:
    """A straight line of the way."""

    item: int
    """Index of the item that it leads to."""
    start: Floats
    """(3,), NED, m."""
    end: Floats
    """(3,), NED, m."""
    flown: bool = True
    """False for straight up or down at a take-off or a landing, where nothing has to be cleared."""
    before: int = -1
    """Index of the item whose altitude its start has; -1: home's."""
    repeated: bool = False
    """True if it was flown before: part of a jump's further passes."""
    seconds: float = 0.0
    """Time waited at its end, s."""
    speed: float = 0.0
    """Speed that the mission asks for, m/s; 0: the vehicle's own."""


@dataclass(frozen=True)
class Way:
    """The whole way of a mission."""

    legs: tuple[PlannedLeg, ...]
    endless: str = ""
    """The reason why it has no end; "" if it has one."""


def planned_way(
    items: Sequence[MissionItem],
    numbers: Sequence[int],
    home: Sequence[float],
    *,
    loiter_radius: float = 0.0,
) -> Way:
    """Return the way of a mission from home (NED, m).

    Jumps are followed as often as they say, −1 once. The way is that of the file, before any
    vehicle raises it over the ground or rounds its corners. `loiter_radius` (m): radius with which
    a fixed wing circles where a multirotor waits; 0 for a multirotor.
    """
    return _Walk(items, numbers, home, loiter_radius).way()


class _Walk:
    """A walk through the items, jumps included, that collects the legs."""

    def __init__(
        self,
        items: Sequence[MissionItem],
        numbers: Sequence[int],
        home: Sequence[float],
        loiter_radius: float,
    ) -> None:
        self._items = items
        self._loiter_radius = loiter_radius
        self._home = np.array(home, float)

        # the walk
        self._position = self._home
        self._height_of = -1
        self._index_of = {number: index for index, number in enumerate(numbers)}
        self._tags = tags_of(items)
        self._speed = 0.0
        self._legs: list[PlannedLeg] = []
        self._seen: set[tuple[int, int]] = set()
        self._last_index = -1
        self._endless = ""

    def way(self) -> Way:
        jumps_left: dict[int, float] = {}
        index = visits = 0
        while index < len(self._items) and not self._endless:
            visits += 1
            if visits > MAX_VISITS:
                self._endless = f"more than {MAX_VISITS:,} items are flown"
                break

            item = self._items[index]
            target = jump_target(item, self._index_of, self._tags)
            if target is None:
                self._fly(index, item)
                index += 1
                continue

            # a jump
            jumps = jumps_left.setdefault(index, float(item.params[1]))
            if jumps == -1.0:
                self._endless = f"item {index} jumps to item {target} for ever"
                first = next(
                    (i for i in range(target, len(self._items)) if self._leads(self._items[i])),
                    None,
                )
                if first is not None:  # the way that leads back
                    self._fly(first, self._items[first])
            elif jumps > 0.0:
                jumps_left[index] = jumps - 1.0
                index = target
            else:
                index += 1
        return Way(tuple(self._legs), self._endless)

    def _leads(self, item: MissionItem) -> bool:
        return item.command <= mavlink.LAST_NAVIGATION and item.command != mavlink.DELAY

    def _fly(self, index: int, item: MissionItem) -> None:
        command = item.command
        if (
            command == mavlink.DO_CHANGE_SPEED
            and item.params[0] in (0.0, 1.0)
            and item.params[1] != -1.0
        ):
            self._speed = max(0.0, float(item.params[1]))
        elif command == mavlink.DELAY:
            self._add(index, self._position, seconds=max(0.0, float(item.params[0])))
        elif command == mavlink.CONDITION_CHANGE_ALT:
            self._add(index, np.array([*self._position[:2], item.position[2]]), flown=False)
            self._height_of = index
        elif item.mode in (MissionMode.LAND, MissionMode.RTL):
            self._come_down(index, item)
        elif self._leads(item):
            self._go_to(index, item)
        self._last_index = index

    def _add(self, index: int, end: Floats, *, flown: bool = True, seconds: float = 0.0) -> None:
        repeated = (self._last_index, index) in self._seen
        self._legs.append(
            PlannedLeg(
                index, self._position, end, flown, self._height_of, repeated, seconds, self._speed
            )
        )
        self._position = end

    def _go_to(self, index: int, item: MissionItem) -> None:
        position = np.array(item.position)
        if item.here:
            position[:2] = self._position[:2]
        if item.mode is MissionMode.TAKEOFF or not self._legs:
            self._add(index, np.array([*self._position[:2], position[2]]), flown=False)
        radius = 0.0
        turns = 0.0

        # circles and times
        seconds = 0.0
        if item.mode is MissionMode.ORBIT:
            radius = float(item.params[0])
            turns = float(item.params[2])
        elif item.command in (mavlink.LOITER_TIME, mavlink.LOITER_TO_ALTITUDE):
            radius_given = float(item.params[mavlink.RADIUS_INDEX[item.command]])
            if item.command == mavlink.LOITER_TIME:
                seconds = max(0.0, float(item.params[0]))
            if self._loiter_radius > 0.0:
                radius = (
                    abs(radius_given)
                    if math.isfinite(radius_given) and radius_given
                    else self._loiter_radius
                )
                turns = 1.0
        elif item.mode is MissionMode.WAYPOINT and item.params[2] > 0.0:
            seconds = float(item.params[2])

        if radius > 0.0:
            self._circle(index, position, radius, turns, seconds)
        else:
            self._add(index, position, seconds=seconds)
        self._seen.add((self._last_index, index))
        self._height_of = index

    def _circle(
        self, index: int, center: Floats, radius: float, turns: float, seconds: float
    ) -> None:
        """Fly in along the line to the centre and round; more turns lengthen the last chord."""
        towards = self._position[:2] - center[:2]
        bearing = math.atan2(towards[1], towards[0]) if towards.any() else 0.0
        steps = math.ceil(math.pi / math.acos(max(0.0, 1.0 - SAGITTA / radius)))
        steps = max(LEAST_CHORDS, steps)
        angles = (bearing + np.linspace(0.0, 2.0 * math.pi, steps + 1)).tolist()
        if math.isinf(turns):
            self._endless = f"item {index} circles for ever"

        # further turns
        more = 0.0
        if math.isfinite(turns):
            more = max(0.0, turns - 1.0) * 2.0 * math.pi * radius
        waits = seconds + more / max(self._speed or CRUISE_SPEED, 0.1)

        for number, angle in enumerate(angles):
            point = center + np.array([radius * math.cos(angle), radius * math.sin(angle), 0.0])
            extra = waits if number == steps else 0.0
            self._add(index, point, seconds=extra)
            self._height_of = index

    def _come_down(self, index: int, item: MissionItem) -> None:
        """Fly level (a return: 15 m above home at least), then straight down."""
        is_return = item.mode is MissionMode.RTL
        place = self._home if is_return else np.array(item.position)
        down = (
            min(self._position[2], self._home[2] - RETURN_HEIGHT)
            if is_return
            else self._position[2]
        )

        if down < self._position[2]:
            self._add(index, np.array([*self._position[:2], down]), flown=False)
        self._add(index, np.array([*place[:2], down]))
        self._add(index, place, flown=False)
        self._seen.add((self._last_index, index))


def distinct(legs: Sequence[PlannedLeg]) -> Iterator[PlannedLeg]:
    """Return the legs over which the ground has to be cleared, each once."""
    return (leg for leg in legs if leg.flown and not leg.repeated)
