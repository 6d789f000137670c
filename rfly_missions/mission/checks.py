"""What is checked of a mission before it is flown."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

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
    mavlink_command,
)

CIRCLE_CHECKS = 32
BELOW_HOME = 1.0
"""m: what lies deeper than this is told"""
_ON_THE_WAY = (MissionMode.TAKEOFF, MissionMode.WAYPOINT, MissionMode.ORBIT)


def check_items(mission: Sequence[MissionItem], names: Sequence[int], ground_vehicle: bool) -> None:
    """ConfigError naming the first item that can't be flown; `names` are what jumps call the items."""
    tags = tags_of(mission)
    known = frozenset(names)
    for index, item in enumerate(mission):
        if ground_vehicle and item.mode in (MissionMode.TAKEOFF, MissionMode.LAND):
            raise ConfigError(
                f"mission item {index}: {item.mode.name}, which a ground vehicle can't do"
            )
        if mavlink_command(item) == DO_JUMP and item.params[1] not in known:
            raise ConfigError(
                f"mission item {index}: jump to {item.params[1]:g}, no item has that number"
            )
        if mavlink_command(item) == DO_JUMP_TAG and item.params[1] not in tags:
            raise ConfigError(
                f"mission item {index}: jump to tag {item.params[1]:g}, no item has that tag"
            )
        if item.mode is MissionMode.ORBIT and not (
            item.params[0] > 0.0 and math.isfinite(item.params[0])
        ):
            raise ConfigError(
                f"mission item {index}: radius {item.params[0]:g}, expected a positive number of metres"
            )
        if item.mode is MissionMode.ORBIT and not item.params[2] >= 0.0:
            raise ConfigError(
                f"mission item {index}: {item.params[2]:g} turns, expected at least 0"
            )
        if item.mode is MissionMode.WAYPOINT and (
            item.params[1] < 0.0 or item.params[1] > MAX_RADIUS
        ):
            raise ConfigError(
                f"mission item {index}: radius {item.params[1]:g}, expected 0 to {MAX_RADIUS:,.0f} m"
            )
        if item.mode in _ON_THE_WAY and abs(item.position[2]) > MAX_HEIGHT:
            raise ConfigError(
                f"mission item {index}: z {item.position[2]:g}, expected at most {MAX_HEIGHT:,.0f} m up or down"
            )


def below_home(mission: Sequence[MissionItem], home_down: float) -> str:
    """Which items lie below home's level, "" for none: without a terrain that is where the ground
    is taken to be.
    """
    found = [
        (index, float(item.position[2]) - home_down)
        for index, item in enumerate(mission)
        if item.mode in (*_ON_THE_WAY, MissionMode.LAND)
        and item.position[2] - home_down > BELOW_HOME
    ]
    if not found:
        return ""
    deepest, metres = max(found, key=lambda pair: pair[1])
    count = (
        f"{len(found)} items from item {found[0][0]} on lie"
        if len(found) > 1
        else f"item {deepest} lies"
    )
    return (
        f"{count} below home, item {deepest} by {metres:.1f} m: without a map the ground is taken as level at home's "
        "height, and what lies lower is flown above it"
    )


def check_returns(rally: Sequence[Sequence[float]], fence: Geofence) -> None:
    """ConfigError naming a place to return to that lies out of the fence."""
    named = [(f"rally point {number}", point) for number, point in enumerate(rally, 1)]
    if fence.breach_return is not None:
        named.append(("the place to return to after a breach", fence.breach_return))
    for name, point in named:
        breach = fence.breach(point[0], point[1])
        if breach:
            raise ConfigError(f"{name} breaches {breach}")


def tags_of(items: Sequence[MissionItem]) -> dict[float, int]:
    """Index of the item that carries each tag to jump to."""
    tagged = (
        (float(item.params[1]), index)
        for index, item in enumerate(items)
        if mavlink_command(item) == JUMP_TAG
    )
    return dict(tagged)


def check_fence(items: Sequence[MissionItem], fence: Geofence, home: Sequence[float]) -> None:
    """ConfigError naming item and area where home, an item or the straight way to it lies out of
    the fence.

    Places that nobody flies to, such as what a camera looks at, may lie anywhere.
    """
    if not fence:
        return
    breach = fence.breach(home[0], home[1])
    if breach:
        raise ConfigError(f"home breaches {breach}")
    last: tuple[float, float] = (home[0], home[1])
    for index, item in enumerate(items):
        if item.mode is MissionMode.RTL:
            position = (home[0], home[1])
        elif (mavlink_command(item) or 0) > LAST_NAVIGATION:
            continue
        else:
            position = (float(item.position[0]), float(item.position[1]))
        breach = fence.breach_of_line(last, position)
        if item.mode is MissionMode.ORBIT and not breach:
            radius = float(item.params[0])
            for angle in np.linspace(0.0, 2 * math.pi, CIRCLE_CHECKS, endpoint=False).tolist():
                point = (
                    position[0] + radius * math.cos(angle),
                    position[1] + radius * math.sin(angle),
                )
                breach = breach or fence.breach(*point)
        if breach:
            raise ConfigError(
                f"mission item {index} ({item.mode.name}), or the way to it, breaches {breach}"
            )
        last = position
