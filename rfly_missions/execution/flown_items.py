# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Items as they are flown: above the ground, CUSTOM items as ways or circles, or off the map.

Off the map the height of its edge stands for the unknown ground. Items that lie too low for the
vehicle are flown higher, or refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from rfly_missions.execution.path_manager import NO_PARAMS
from rfly_missions.followers.ground import Ground
from rfly_missions.mission import mavlink_items as mavlink
from rfly_missions.mission.items import MissionItem, MissionMode, Ned
from rfly_terrain.height_map.height_map import HeightMap

_CONDITIONS = range(mavlink.CONDITION_DELAY, mavlink.CONDITION_YAW + 1)
_WITH_POSITION = (MissionMode.TAKEOFF, MissionMode.WAYPOINT, MissionMode.ORBIT, MissionMode.LAND)


def is_instantaneous(item: MissionItem) -> bool:
    """Return whether an item is done at once and nothing is flown for it, such as a jump."""
    return item.command > mavlink.LAST_NAVIGATION and item.command not in _CONDITIONS


def next_position(items: Sequence[MissionItem], index: int, return_to: Ned) -> np.ndarray | None:
    """Return the position of the next item after `index` that leads somewhere; None without one."""
    for item in items[index + 1 :]:
        if item.mode in _WITH_POSITION:
            return item.position
        if item.mode is MissionMode.RTL:
            return np.array(return_to)
    return None


def distance_to(item: MissionItem, position: Sequence[float]) -> float:
    """Return the distance, m, to the target of an item, or to the circle of an orbit."""
    if item.mode in (MissionMode.HOLD, MissionMode.ARMED):
        return 0.0
    north, east, down = (p - float(c) for p, c in zip(position[:3], item.position, strict=True))
    if item.mode is MissionMode.ORBIT:
        return math.hypot(math.hypot(north, east) - float(item.params[0]), down)
    return math.sqrt(north * north + east * east + down * down)


def custom_as_flown(
    item: MissionItem,
    begun_at: Ned,
    next_position: np.ndarray | None,
    loiter_radius: float | None,
) -> MissionItem:
    """Return the way-point, hold or orbit that is flown for a CUSTOM item.

    `begun_at`: NED position at which the item became current, m. `next_position`: target of the
    next item, for CONDITION_DISTANCE. `loiter_radius`: m, of a fixed-wing aircraft; None for a
    vehicle that can stand still.
    """
    command = item.command
    if command == mavlink.CONDITION_DISTANCE and next_position is not None:
        return MissionItem.waypoint(next_position, math.nan)
    if command == mavlink.CONDITION_YAW and loiter_radius is None:
        return MissionItem.waypoint(begun_at, math.radians(float(item.params[0])))

    # commands that lead nowhere
    is_placeless = command > mavlink.LAST_NAVIGATION and command != mavlink.CONDITION_CHANGE_ALT
    if is_placeless or command == mavlink.DELAY:
        params = NO_PARAMS if loiter_radius is None else (loiter_radius, 0.0, -1.0, -1.0)
        return MissionItem(MissionMode.HOLD, np.array(begun_at), np.array(params))

    # the place: a fixed wing circles where others stand
    if loiter_radius is None:
        return MissionItem.waypoint(item.position, math.nan)
    radius_index = mavlink.RADIUS_INDEX.get(command)
    radius = 0.0 if radius_index is None else float(item.params[radius_index])
    if not math.isfinite(radius):
        radius = 0.0
    return MissionItem.orbit(
        item.position, abs(radius) or loiter_radius, float(np.sign(radius)), math.inf
    )


def above_ground(
    item: MissionItem, ground: Ground, return_to: Ned, down_here: float, driven: bool
) -> MissionItem:
    """Return an item raised to the ground or to the minimum height above it.

    A driven item lies on the ground; where the ground is unknown, at the vehicle's height
    `down_here` (NED z, m).
    """
    is_return = item.mode is MissionMode.RTL
    north, east, down = return_to if is_return else item.position.tolist()

    if driven and item.mode not in (MissionMode.TAKEOFF, MissionMode.LAND, MissionMode.HOLD):
        floor = ground.down(north, east)
        down = floor if math.isfinite(floor) else down_here
    elif item.mode in (MissionMode.TAKEOFF, MissionMode.WAYPOINT):
        down = ground.clear(north, east, down)
    elif item.mode is MissionMode.LAND:
        floor = ground.down(north, east)
        down = floor if math.isfinite(floor) else down
    elif is_return:
        down = min(down, ground.down(north, east))
    elif item.mode is MissionMode.ORBIT:
        down = ground.clear_circle(north, east, float(item.params[0]), down)

    if item.position.tolist() == [north, east, down]:
        return item
    return replace(item, position=np.array([north, east, down]))


def line_start(item: MissionItem, ground: Ground, return_to: Ned) -> np.ndarray:
    """Return where the line from a previous item begins, NED, m."""
    north, east, down = item.position.tolist()
    if item.mode in (MissionMode.WAYPOINT, MissionMode.TAKEOFF, MissionMode.CUSTOM):
        down = ground.clear(north, east, down)
    if not math.isfinite(north):  # an RTL that was never shown
        north, east, down = return_to
    return np.array([north, east, down])


MOST_LISTED = 5
"""Number of items that notes name one by one."""
LEAST_BEYOND = 0.01
"""Distance beyond an edge, m, from which an item counts: degrees in files are rounded."""
_WITH_PLACE = (MissionMode.TAKEOFF, MissionMode.WAYPOINT, MissionMode.ORBIT, MissionMode.LAND)


@dataclass(frozen=True)
class ItemOffMap:
    """An item that lies, or whose circle reaches, beyond an edge of the map."""

    index: int
    """Index in the mission."""
    mode: MissionMode
    edge: str
    """Edge beyond which it lies farthest: west, east, south or north."""
    distance: float
    """Distance from that edge, m."""


def items_off_map(
    items: Sequence[MissionItem], terrain: HeightMap, loiter_radius: float | None = None
) -> list[ItemOffMap]:
    """Return the items, NED in the map's frame, that lie or circle beyond the map's samples.

    `loiter_radius`: m, of a fixed-wing aircraft; None for a vehicle that can stand still.
    """
    x_min, x_max, y_min, y_max = terrain.bounds
    found = []
    for index, item in enumerate(items):
        way = item
        if item.mode is MissionMode.CUSTOM:
            way = custom_as_flown(item, (0.0, 0.0, 0.0), None, loiter_radius)
        if way.mode not in _WITH_PLACE:
            continue

        north, east, _ = way.position.tolist()
        radius = float(way.params[0]) if way.mode is MissionMode.ORBIT else 0.0
        beyond = {
            "west": x_min - east + radius,
            "east": east + radius - x_max,
            "south": y_min - north + radius,
            "north": north + radius - y_max,
        }
        edge = max(beyond, key=beyond.__getitem__)
        if beyond[edge] > LEAST_BEYOND:
            found.append(ItemOffMap(index, item.mode, edge, beyond[edge]))
    return found


def off_map_notes(off_map: Sequence[ItemOffMap]) -> Iterator[str]:
    """Yield a sentence for each of these items, the first few of many."""
    for item in off_map[:MOST_LISTED]:
        yield (
            f"item {item.index} ({item.mode.name}) reaches {item.distance:.1f} m beyond the map's "
            f"{item.edge} edge; the ground there is unknown, and the edge's height stands for it"
        )
    if len(off_map) > MOST_LISTED:
        yield f"{len(off_map) - MOST_LISTED} more items reach beyond the map"


TooLow = Literal["climb", "refuse"]
"""Choices for items that are too low: fly them higher, or refuse the mission."""
LEAST_RAISE = 0.1
"""Difference of height, m, from which an item counts as raised."""
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
