# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Set-points of MAVLink's OFFBOARD mode, and the items that a vehicle flies for them."""

from __future__ import annotations

import math
from typing import NamedTuple

from rfly_mavlink.stations.mission_rows import speed_item
from rfly_missions.mission.items import MissionItem, Ned
from rfly_missions.mission.mavlink_items import CONDITION_YAW, LOITER_TIME

SETPOINT_PERIOD_S = 0.2
"""Shortest time between two plans for set-points, s."""
SETPOINT_STEP_M = 0.05
"""Distance, m, below which a new place is the old one."""
LEAD_S = 5.0
"""Time, s, of flight to the point towards which a velocity is flown."""
LEAST_SPEED = 0.05
"""Speed, m/s, below which a velocity means to stand."""

Quaternion = tuple[float, float, float, float]
"""x y z w, body (FRD) -> NED."""


class FlightSetpoint(NamedTuple):
    """A place, a velocity, or an attitude with a thrust; exactly one of the three is given."""

    place: Ned | None
    """NED, m."""
    velocity: Ned | None = None
    """NED, m/s."""
    yaw: float = math.nan
    """Yaw at the place, rad; NaN: along the way."""
    attitude: Quaternion | None = None
    thrust: float = 0.0
    """Share of the largest thrust, 0 … 1, with an attitude."""


class TimedSetpoint(NamedTuple):
    """A set-point and the simulated time at which it came or was flown, s."""

    time: float
    setpoint: FlightSetpoint


class Offboard:
    """The newest set-point and the one that is being flown."""

    def __init__(self) -> None:
        self.newest: TimedSetpoint | None = None
        self.flown: TimedSetpoint | None = None
        self.sets_speed = False
        """True if the vehicle flies at the speed of a velocity, which is not its own."""
        self.sets_attitude = False
        """True if it flies by attitudes: the guide that leads it waits where it was before."""

    def forget(self) -> None:
        """Drop the set-points: the clock has gone back."""
        self.newest = None
        self.flown = None

    def is_fresh(self, now: float, longest_gap: float) -> bool:
        """Return whether the newest set-point is no older than `longest_gap`, s."""
        return self.newest is not None and now - self.newest.time <= longest_gap

    def is_followed(self, setpoint: FlightSetpoint, now: float) -> bool:
        """Return whether the plan that is flown still serves a set-point."""
        if self.flown is None:
            return False
        time, flown = self.flown
        if now - time < SETPOINT_PERIOD_S:
            return True

        if setpoint.velocity is not None:
            stands = math.hypot(*setpoint.velocity) < LEAST_SPEED
            is_same = setpoint.velocity == flown.velocity
            return is_same and (stands or now - time < 0.4 * LEAD_S)
        if setpoint.place is None or flown.place is None:
            return False
        is_near = math.dist(flown.place, setpoint.place) < SETPOINT_STEP_M
        return is_near and (flown.yaw == setpoint.yaw or math.isnan(setpoint.yaw))


def velocity_items(velocity: Ned, here: Ned) -> list[MissionItem]:
    """Return the changes of speed and the way ahead for a velocity (NED, m/s)."""
    north, east, down = velocity
    ahead = [place + LEAD_S * speed for place, speed in zip(here, velocity, strict=True)]
    changes = [
        (1, max(math.hypot(north, east), LEAST_SPEED)),
        (3 if down > 0.0 else 2, abs(down)),
    ]
    speeds = [speed_item(speed, kind) for kind, speed in changes if speed > 0.0]
    return [*speeds, *way_to((ahead[0], ahead[1], ahead[2]), math.nan)]


def way_to(position: Ned, yaw: float) -> list[MissionItem]:
    """Return the items that lead to a place, turn to a yaw (NaN: along the way), and hold there."""
    items = [MissionItem.waypoint(position, yaw)]
    if math.isfinite(yaw):
        params = (math.degrees(yaw), 0.0, 0.0, 0.0)
        items.append(MissionItem.mavlink(CONDITION_YAW, position, params))
    return [*items, stay(position)]


def stay(position: Ned) -> MissionItem:
    """Return an item that holds at a place for ever.

    A mission that ends holds where its last item counted as done, up to a metre away.
    """
    return MissionItem.mavlink(LOITER_TIME, position, (math.inf, 0.0, 0.0, 0.0))
