# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Items that lie too low for the vehicle, and the heights at which it flies them instead."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from rfly_missions.execution.flown_items import above_ground, custom_as_flown
from rfly_missions.followers.ground import Ground
from rfly_missions.mission.items import MissionItem, MissionMode

TooLow = Literal["climb", "refuse"]
"""Choices for items that are too low: fly them higher, or refuse the mission."""
LEAST_RAISE = 0.1
"""Difference of height, m, from which an item counts as raised."""
MOST_LISTED = 5
"""Number of items that a text names one by one."""
_WITH_HEIGHT = (MissionMode.TAKEOFF, MissionMode.WAYPOINT, MissionMode.ORBIT)
_CHANGES = (MissionMode.TAKEOFF, MissionMode.LAND)


@dataclass(frozen=True)
class RaisedItem:
    """An item that is flown higher than it says."""

    index: int
    """Index in the mission."""
    mode: MissionMode
    height: float
    """Height of the item, z up, m."""
    flown_height: float
    """Height at which it is flown, z up, m."""


def raised_items(
    items: Sequence[MissionItem],
    ground: Ground,
    flown: Callable[[MissionItem], MissionItem],
    *,
    loiter_radius: float | None = None,
    may_drive: bool = False,
) -> list[RaisedItem]:
    """Return the items that a vehicle flies higher than they say, because of the ground.

    `flown` returns an item as the vehicle can carry it out. `loiter_radius`: m, of a fixed-wing
    aircraft; None for a vehicle that can stand still. `may_drive`: a land-air vehicle, which drives
    before its take-off and after its landing. Without a terrain the list is empty.
    """
    if ground.terrain is None:
        return []

    raised = []
    for index, item in enumerate(items):
        if may_drive and not _is_between_takeoff_and_landing(items, index):
            continue
        way = item
        if item.mode is MissionMode.CUSTOM:
            way = custom_as_flown(item, (0.0, 0.0, 0.0), None, loiter_radius)
        if way.mode not in _WITH_HEIGHT:
            continue

        north, east, down = way.position.tolist()
        higher = flown(above_ground(way, ground, (north, east, down), down, driven=False))
        if down - float(higher.position[2]) > LEAST_RAISE:
            raised.append(RaisedItem(index, item.mode, 0.0 - down, 0.0 - float(higher.position[2])))
    return raised


def _is_between_takeoff_and_landing(items: Sequence[MissionItem], index: int) -> bool:
    if items[index].mode is MissionMode.TAKEOFF:
        return True
    before = [item.mode for item in items[:index] if item.mode in _CHANGES]
    return bool(before) and before[-1] is MissionMode.TAKEOFF


def raised_note(raised: Sequence[RaisedItem], reason: str) -> str:
    """Return a line on the items that are flown higher than they say."""
    listed = [
        f"item {item.index} ({item.mode.name}) at {item.flown_height:.1f} m instead of "
        f"{item.height:.1f} m"
        for item in raised[:MOST_LISTED]
    ]
    more = f" and {len(raised) - MOST_LISTED} more" if len(raised) > MOST_LISTED else ""
    return f"flown higher than the mission says, {reason}: {', '.join(listed)}{more}"


def too_low_problem(raised: Sequence[RaisedItem], reason: str) -> str:
    """Return why a mission with such items is refused."""
    first = raised[0]
    least = math.ceil(10.0 * first.flown_height) / 10.0
    more = f"; {len(raised)} items are too low" if len(raised) > 1 else ""
    return (
        f"mission item {first.index}: {first.mode.name} at {first.height:.1f} m, expected at least "
        f"{least:.1f} m {reason}{more}"
    )


def reason_to_climb(fixed_wing: bool, min_height: float) -> str:
    """Return the words for what a vehicle keeps above the ground."""
    where = "all ground that it cannot outclimb" if fixed_wing else "the ground"
    return f"to keep {min_height:g} m above {where}"
