# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Checks of a mission before it is flown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rfly_common.errors import ConfigError
from rfly_missions.mission.geofence import Geofence
from rfly_missions.mission.items import MissionItem, MissionMode
from rfly_missions.mission.mavlink_items import (
    DO_JUMP,
    DO_JUMP_TAG,
    JUMP_TAG,
    LAST_NAVIGATION,
    MAX_HEIGHT,
    MAX_RADIUS,
)

ENDLESS = -1.0
"""Number of jumps that stands for any."""
BELOW_HOME = 1.0
"""Depth below home, m, from which an item is reported."""
_ON_THE_WAY = (MissionMode.TAKEOFF, MissionMode.WAYPOINT, MissionMode.ORBIT)


def check_items(mission: Sequence[MissionItem], names: Sequence[int], ground_vehicle: bool) -> None:
    """Raise ConfigError for the first item that can't be flown; jumps call the items by `names`."""
    tags = tags_of(mission)
    numbers = {name: index for index, name in enumerate(names)}
    for index, item in enumerate(mission):
        problem = _item_problem(item, ground_vehicle)
        if item.command == DO_JUMP and item.params[0] not in numbers:
            problem = f"jump to {item.params[0]:g}, no item has that number"
        if item.command == DO_JUMP_TAG and item.params[0] not in tags:
            problem = f"jump to tag {item.params[0]:g}, no item has that tag"
        if problem:
            raise ConfigError(f"mission item {index}: {problem}")

    followers = [_follower(mission, index, numbers, tags) for index in range(len(mission))]
    circling = _on_a_circle(followers)
    if circling is not None:
        raise ConfigError(
            f"mission item {circling}: jumps for ever without an item to fly in between"
        )


def _follower(
    mission: Sequence[MissionItem],
    index: int,
    numbers: Mapping[int, int],
    tags: Mapping[float, int],
) -> int | None:
    """Return the item that always follows an endless jump or a tag at once; None after others."""
    item = mission[index]
    if item.command == JUMP_TAG:
        return index + 1
    return jump_target(item, numbers, tags) if item.params[1] == ENDLESS else None


def _on_a_circle(followers: Sequence[int | None]) -> int | None:
    """Return an item that leads back to itself; None if there is none. Each is passed once."""
    passed_from = [-1] * len(followers)
    for start in range(len(followers)):
        at: int | None = start
        while at is not None and at < len(followers) and passed_from[at] < 0:
            passed_from[at] = start
            at = followers[at]
        if at is not None and at < len(followers) and passed_from[at] == start:
            return at
    return None


def _item_problem(item: MissionItem, ground_vehicle: bool) -> str:
    """Return why an item can't be flown, "" if it can."""
    first, _, turns, _ = item.params.tolist()
    if ground_vehicle and item.mode in (MissionMode.TAKEOFF, MissionMode.LAND):
        return f"{item.mode.name}, which a ground vehicle can't do"
    if item.mode is MissionMode.ORBIT and not (first > 0.0 and math.isfinite(first)):
        return f"radius {first:g}, expected a positive number of metres"
    if item.mode is MissionMode.ORBIT and not turns >= 0.0:
        return f"{turns:g} turns, expected at least 0"
    radius = float(item.params[1])
    if item.mode is MissionMode.WAYPOINT and (radius < 0.0 or radius > MAX_RADIUS):
        return f"radius {radius:g}, expected 0 to {MAX_RADIUS:,.0f} m"
    if item.mode in _ON_THE_WAY and abs(item.position[2]) > MAX_HEIGHT:
        return f"z {item.position[2]:g}, expected at most {MAX_HEIGHT:,.0f} m up or down"
    return ""


def below_home(mission: Sequence[MissionItem], home_down: float) -> str:
    """Return a note on the items below home's level, "" for none.

    Without a terrain that level is taken as the ground.
    """
    depths = [
        (index, float(item.position[2]) - home_down)
        for index, item in enumerate(mission)
        if item.mode in (*_ON_THE_WAY, MissionMode.LAND)
        and item.position[2] - home_down > BELOW_HOME
    ]
    if not depths:
        return ""

    deepest, metres = max(depths, key=lambda pair: pair[1])
    subject = f"item {deepest} lies"
    if len(depths) > 1:
        subject = f"{len(depths)} items from item {depths[0][0]} on lie"
    return (
        f"{subject} below home, item {deepest} by {metres:.1f} m: without a map the ground is "
        "taken as level at home's height, and what lies lower is flown above it"
    )


def check_returns(rally: Sequence[Sequence[float]], fence: Geofence) -> None:
    """Raise ConfigError for a place to return to that lies out of the fence."""
    named = [(f"rally point {number}", point) for number, point in enumerate(rally, 1)]
    if fence.breach_return is not None:
        named.append(("the place to return to after a breach", fence.breach_return))
    for name, point in named:
        breach = fence.breach(point[0], point[1])
        if breach:
            raise ConfigError(f"{name} breaches {breach}")


def tags_of(items: Sequence[MissionItem]) -> dict[float, int]:
    """Return the index of the item that carries each tag to jump to."""
    tagged = (
        (float(item.params[0]), index)
        for index, item in enumerate(items)
        if item.command == JUMP_TAG
    )
    return dict(tagged)


def jump_target(
    item: MissionItem, by_number: Mapping[int, int], by_tag: Mapping[float, int]
) -> int | None:
    """Return the index to which a jump leads; None for an item that is no jump."""
    if item.command == DO_JUMP:
        return by_number.get(int(item.params[0]))
    return by_tag.get(float(item.params[0])) if item.command == DO_JUMP_TAG else None


def ends_the_flight(items: Sequence[MissionItem]) -> bool:
    """Return whether items are landings and returns alone."""
    return bool(items) and all(item.mode in (MissionMode.LAND, MissionMode.RTL) for item in items)


def check_fence(items: Sequence[MissionItem], fence: Geofence, home: Sequence[float]) -> None:
    """Raise ConfigError if home, an item or the straight way to it lies out of the fence.

    The error names item and area. Places to which nothing flies, such as the target of a camera,
    may lie anywhere. Landings and returns alone, which end a flight, are never refused.
    """
    if not fence or ends_the_flight(items):
        return
    breach = fence.breach(home[0], home[1])
    if breach:
        raise ConfigError(f"home breaches {breach}")

    last: tuple[float, float] = (home[0], home[1])
    for index, item in enumerate(items):
        if item.mode is MissionMode.RTL:
            position = (home[0], home[1])
        elif item.command > LAST_NAVIGATION:
            continue
        else:
            position = (float(item.position[0]), float(item.position[1]))

        breach = fence.breach_of_line(last, position)
        if item.mode is MissionMode.ORBIT and not breach:
            breach = fence.breach_of_circle(position, float(item.params[0]))

        if breach:
            raise ConfigError(
                f"mission item {index} ({item.mode.name}), or the way to it, breaches {breach}"
            )
        last = position
