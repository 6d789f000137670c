"""The way that a mission's items describe: straight lines and circles from home on, in the order of flight.

As the file says it, before any vehicle raises it over the ground or rounds its corners. NED metres.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rfly_common.arrays import Floats
from rfly_trajectory.missions.items import MissionItem, MissionMode
from rfly_trajectory.missions.mavlink import (
    CONDITION_CHANGE_ALT,
    DELAY,
    DO_CHANGE_SPEED,
    DO_JUMP,
    DO_JUMP_TAG,
    LAST_NAVIGATION,
    LOITER_TIME,
    LOITER_TO_ALTITUDE,
    mavlink_command,
)
from rfly_trajectory.missions.mission_checks import tags_of
from rfly_trajectory.missions.multirotor import RETURN_HEIGHT

SAGITTA = 0.01
"""m that the chords of a circle lie inside it"""
MAX_VISITS = 200_000
"""items on the way, those of jumps each time"""


@dataclass(frozen=True, eq=False)
class Leg:
    """One straight line of the way."""

    item: int
    """index of the item that it leads to"""
    start: Floats
    end: Floats
    """(3,) NED m"""
    flown: bool = True
    """False: straight up or down at a take-off or a landing, where nothing has to be cleared"""
    before: int = -1
    """index of the item whose altitude its start has, -1: home's"""
    repeated: bool = False
    """flown before: part of a jump's further passes"""
    seconds: float = 0.0
    """s that are waited at its end"""
    speed: float = 0.0
    """m/s that the mission asks for, 0 for the vehicle's own"""


@dataclass(frozen=True)
class Way:
    """All of it."""

    legs: tuple[Leg, ...]
    endless: str = ""
    """why it has no end, "" where it has one"""


def planned_way(
    items: Sequence[MissionItem], numbers: Sequence[int], home: Sequence[float], *, loiter_radius: float = 0.0
) -> Way:
    """The way of a mission from home (NED m); jumps are followed as often as they say, −1 once.

    `loiter_radius` (m): what a fixed wing circles with where a multirotor waits; 0 for a multirotor.
    """
    return _Walk(items, numbers, home, loiter_radius).way()


class _Walk:
    def __init__(
        self, items: Sequence[MissionItem], numbers: Sequence[int], home: Sequence[float], loiter_radius: float
    ) -> None:
        self._items, self._loiter_radius = items, loiter_radius
        self._home = np.array(home, float)
        self._at, self._height_of = self._home, -1
        self._index_of = {number: index for index, number in enumerate(numbers)}
        self._tags = tags_of(items)
        self._speed = 0.0
        self._legs: list[Leg] = []
        self._seen: set[tuple[int, int]] = set()
        self._last = -1
        self._endless = ""

    def way(self) -> Way:
        left: dict[int, float] = {}
        index = visits = 0
        while index < len(self._items) and not self._endless:
            visits += 1
            if visits > MAX_VISITS:
                self._endless = f"more than {MAX_VISITS:,} items are flown"
                break
            item = self._items[index]
            target = self._jump_target(item)
            if target is None:
                self._fly(index, item)
                index += 1
                continue
            times = left.setdefault(index, float(item.params[2]))
            if times == -1.0:
                self._endless = f"item {index} jumps to item {target} for ever"
                first = next((i for i in range(target, len(self._items)) if self._leads(self._items[i])), None)
                if first is not None:  # the way that leads back
                    self._fly(first, self._items[first])
            elif times > 0.0:
                left[index] = times - 1.0
                index = target
            else:
                index += 1
        return Way(tuple(self._legs), self._endless)

    def _jump_target(self, item: MissionItem) -> int | None:
        command = mavlink_command(item)
        if command == DO_JUMP:
            return self._index_of.get(int(item.params[1]))
        return self._tags.get(float(item.params[1])) if command == DO_JUMP_TAG else None

    def _leads(self, item: MissionItem) -> bool:
        command = mavlink_command(item)
        return command is None or (command <= LAST_NAVIGATION and command != DELAY)

    def _fly(self, index: int, item: MissionItem) -> None:
        command = mavlink_command(item)
        if command == DO_CHANGE_SPEED and item.params[1] in (0.0, 1.0) and item.params[2] != -1.0:
            self._speed = max(0.0, float(item.params[2]))
        elif command == DELAY:
            self._add(index, self._at, seconds=max(0.0, float(item.params[1])))
        elif command == CONDITION_CHANGE_ALT:
            self._add(index, np.array([*self._at[:2], item.position[2]]), flown=False)
            self._height_of = index
        elif item.mode in (MissionMode.LAND, MissionMode.RTL):
            self._come_down(index, item)
        elif self._leads(item):
            self._go_to(index, item, command)
        self._last = index

    def _add(self, index: int, end: Floats, *, flown: bool = True, seconds: float = 0.0) -> None:
        repeated = (self._last, index) in self._seen
        self._legs.append(Leg(index, self._at, end, flown, self._height_of, repeated, seconds, self._speed))
        self._at = end

    def _go_to(self, index: int, item: MissionItem, command: int | None) -> None:
        position = np.array(item.position)
        if item.mode is MissionMode.TAKEOFF or not self._legs:
            self._add(index, np.array([*self._at[:2], position[2]]), flown=False)
        radius, turns, seconds = 0.0, 0.0, 0.0
        if item.mode is MissionMode.ORBIT:
            radius, turns = float(item.params[0]), float(item.params[2])
        elif command in (LOITER_TIME, LOITER_TO_ALTITUDE):
            given = float(item.params[3 if command == LOITER_TIME else 2])
            seconds = max(0.0, float(item.params[1])) if command == LOITER_TIME else 0.0
            if self._loiter_radius > 0.0:
                radius, turns = abs(given) if math.isfinite(given) and given else self._loiter_radius, 1.0
        elif item.mode is MissionMode.WAYPOINT and item.params[2] > 0.0:
            seconds = float(item.params[2])
        if radius > 0.0:
            self._circle(index, position, radius, turns, seconds)
        else:
            self._add(index, position, seconds=seconds)
        self._seen.add((self._last, index))
        self._height_of = index

    def _circle(self, index: int, center: Floats, radius: float, turns: float, seconds: float) -> None:
        """In along the line to the centre, and once round; further turns take their time on the last chord."""
        towards = self._at[:2] - center[:2]
        bearing = math.atan2(towards[1], towards[0]) if towards.any() else 0.0
        steps = max(8, math.ceil(math.pi / math.acos(max(0.0, 1.0 - SAGITTA / radius))))
        angles = (bearing + np.linspace(0.0, 2.0 * math.pi, steps + 1)).tolist()
        if math.isinf(turns):
            self._endless = f"item {index} circles for ever"
        more = max(0.0, turns - 1.0) * 2.0 * math.pi * radius if math.isfinite(turns) else 0.0
        for number, angle in enumerate(angles):
            point = center + np.array([radius * math.cos(angle), radius * math.sin(angle), 0.0])
            extra = seconds + more / max(self._speed or 8.0, 0.1) if number == steps else 0.0
            self._add(index, point, seconds=extra)
            self._height_of = index

    def _come_down(self, index: int, item: MissionItem) -> None:
        """Level at the height of now (a return: 15 m above home at least), then straight down."""
        is_return = item.mode is MissionMode.RTL
        place = self._home if is_return else np.array(item.position)
        down = min(self._at[2], self._home[2] - RETURN_HEIGHT) if is_return else self._at[2]
        if down < self._at[2]:
            self._add(index, np.array([*self._at[:2], down]), flown=False)
        self._add(index, np.array([*place[:2], down]))
        self._add(index, place, flown=False)
        self._seen.add((self._last, index))


def distinct(legs: Sequence[Leg]) -> Iterator[Leg]:
    """The legs over which something has to be cleared, each once."""
    return (leg for leg in legs if leg.flown and not leg.repeated)
