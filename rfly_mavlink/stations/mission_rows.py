# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink missions: raw rows, kept unchanged, and the items that a vehicle flies for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rfly_common.geodesy import GeoPoint, ned_about
from rfly_missions.mission import mavlink_items as mavlink
from rfly_missions.mission.checks import check_items
from rfly_missions.mission.items import MissionItem, MissionMode, Ned, placed_items

MOST_ROWS = 1000
"""Longest mission that is taken."""
LEAST_RISE = 0.5
"""Least height of a take-off, m."""
_UNSET = 2**31 - 1
"""Value of an item's x or y that is not given (INT32_MAX)."""
_DEG_E7 = 1e-7
"""Degrees per unit of x and y in global frames."""
_LOCAL_E4 = 1e-4
"""Metres per unit of x and y in local frames."""


class Refused(Exception):
    """Rows that are no mission for this vehicle; `result` is a MAV_MISSION_RESULT's name."""

    def __init__(self, result: str, text: str) -> None:
        super().__init__(text)
        self.result = result


@dataclass(frozen=True)
class MissionRow:
    """A MISSION_ITEM_INT without its addresses."""

    frame: int
    command: int
    autocontinue: int
    params: tuple[float, float, float, float]
    x: int
    y: int
    z: float

    @classmethod
    def of_message(cls, message: Any) -> MissionRow:
        """Return the row of a MISSION_ITEM_INT, or of a MISSION_ITEM, whose x and y are floats."""
        x = message.x
        y = message.y
        if message.get_type() == "MISSION_ITEM":
            scale = _scale(message.frame)
            x, y = (
                round(min(max(v / scale, -_UNSET), _UNSET)) if math.isfinite(v) else _UNSET
                for v in (x, y)
            )

        params = message.param1, message.param2, message.param3, message.param4
        return cls(message.frame, message.command, message.autocontinue, params, x, y, message.z)

    def item(self, seq: int) -> mavlink.MavlinkItem:
        """Return the row as an item in degrees or metres."""
        scale = _scale(self.frame)
        x, y = (math.nan if v == _UNSET else v * scale for v in (self.x, self.y))
        return mavlink.MavlinkItem(
            self.command, self.frame, (*self.params, x, y, self.z), seq, f"mission item {seq}"
        )


def _scale(frame: int) -> float:
    """Return degrees or metres per unit of x and y."""
    if frame in mavlink.GLOBAL_FRAMES:
        return _DEG_E7
    return 1.0 if frame == mavlink.MISSION_FRAME else _LOCAL_E4


class FlightPlan(NamedTuple):
    """The items that are flown for rows, NED about the map's origin, and the row of each."""

    items: tuple[MissionItem, ...]
    seqs: tuple[int, ...]

    def first_of(self, seq: int) -> int:
        """Return the index of the first item of a row."""
        return next((index for index, row in enumerate(self.seqs) if row >= seq), 0)

    def with_item(self, index: int, item: MissionItem) -> FlightPlan:
        """Return the plan with one more item at an index, for the row of the item there.

        Jumps lead to the same items as before.
        """
        seq = self.seqs[index] if index < len(self.seqs) else 0
        items = [_with_target(each, _target(each) + (_target(each) > index)) for each in self.items]
        items.insert(index, item)
        return FlightPlan(tuple(items), (*self.seqs[:index], seq, *self.seqs[index:]))


def speed_item(speed: float, kind: int = 1) -> MissionItem:
    """Return an item that changes the speed, m/s; kind 1 over ground, 2 climb, 3 descent."""
    params = float(kind), speed, 0.0, 0.0
    return MissionItem.mavlink(mavlink.DO_CHANGE_SPEED, (0.0, 0.0, 0.0), params)


def plan_of(
    rows: Sequence[MissionRow],
    home: GeoPoint,
    origin: GeoPoint,
    settings: mavlink.ImportSettings,
    uav_type: str,
) -> FlightPlan:
    """Return the plan that a vehicle of a kind flies for rows; raise Refused if it can't.

    `autocontinue` is ignored: pymavlink's tools write 0 and mean that the mission goes on.
    """
    for seq, row in enumerate(rows):
        if row.frame not in mavlink.FRAMES:
            raise Refused(
                "MAV_MISSION_UNSUPPORTED_FRAME",
                f"mission item {seq}: frame {row.frame} is not supported",
            )

    try:
        items, _ = mavlink.to_mission_items(
            [row.item(seq) for seq, row in enumerate(rows)], home, settings
        )
        placed = placed_items(items, lambda places: ned_about(places, home, origin))
        plan = _plan(placed, range(len(placed)), uav_type != "fixed-wing")
        check_items(plan.items, range(1, len(plan.items) + 1), uav_type == "ground")
    except ValueError as error:  # MissionFileError and ConfigError are ValueErrors
        raise Refused("MAV_MISSION_INVALID", " ".join(str(error).split())) from error

    for item, seq in zip(plan.items, plan.seqs, strict=True):
        if item.command and not mavlink.is_carried_out(item.command):
            raise Refused(
                "MAV_MISSION_UNSUPPORTED",
                f"mission item {seq}: command {item.command} cannot be carried out",
            )
    return plan


def plan_of_items(items: Sequence[MissionItem], uav_type: str, holds: bool) -> FlightPlan:
    """Return the plan that a vehicle of a kind flies for items; their jumps name them 1, 2, 3, etc.

    `holds`: the third parameter of a way-point is a time to stay there.
    """
    return _plan(items, range(1, len(items) + 1), holds and uav_type != "fixed-wing")


def _plan(items: Sequence[MissionItem], names: Sequence[int], holds: bool) -> FlightPlan:
    """Return the plan of items, NED about the map's origin, which jumps call by `names`.

    With `holds` a stay at a way-point becomes a delay after it; jumps lead to items of the plan.
    """
    flown: list[MissionItem] = []
    seqs: list[int] = []
    for seq, item in enumerate(items):
        flown.append(item)
        seqs.append(seq)
        if item.mode is MissionMode.WAYPOINT and item.params[2] > 0.0 and holds:
            delay = float(item.params[2]), 0.0, 0.0, 0.0
            flown.append(MissionItem.mavlink(mavlink.DELAY, item.position, delay))
            seqs.append(seq)

    # jumps
    number_of: dict[float, int] = {
        names[seq]: index + 1 for index, seq in reversed(list(enumerate(seqs)))
    }
    targets = [float(number_of.get(target, math.nan)) for target in map(_target, flown)]
    return FlightPlan(
        tuple(_with_target(item, target) for item, target in zip(flown, targets, strict=True)),
        tuple(seqs),
    )


def _target(item: MissionItem) -> float:
    """Return the number that a jump names; NaN for any other item."""
    return float(item.params[0]) if item.command == mavlink.DO_JUMP else math.nan


def _with_target(item: MissionItem, target: float) -> MissionItem:
    if item.command != mavlink.DO_JUMP:
        return item
    params = np.array(item.params)
    params[0] = target
    return replace(item, params=params)


def with_takeoff(plan: FlightPlan, index: int, start: Ned) -> FlightPlan:
    """Return a plan from an item on that begins with a take-off, as PX4's do, if it has none.

    `start`: the vehicle's place on the ground, NED, m.
    """
    ways = (MissionMode.WAYPOINT, MissionMode.ORBIT)
    places = [item for item in plan.items[index:] if item.mode in ways]
    flown = [item for item in plan.items[index:] if item.mode is not MissionMode.CUSTOM]
    if not places or flown[0].mode is MissionMode.TAKEOFF:
        return plan
    north, east, now = start
    down = min(float(places[0].position[2]), now - LEAST_RISE)
    return plan.with_item(index, MissionItem.takeoff((north, east, down)))
