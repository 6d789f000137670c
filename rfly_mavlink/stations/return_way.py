# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The height of a return: the vehicle climbs where it is, and descends over home.

An RTL item alone keeps the present height, or rises to the least one of its follower.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rfly_mavlink.stations.mission_rows import FlightPlan
from rfly_missions.mission.items import MissionItem, MissionMode, Ned
from rfly_missions.mission.mavlink_items import LOITER_TO_ALTITUDE

LEAST_CLIMB = 0.5
"""Height, m, below which a return needs no climb of its own."""
LEAST_WAY = 2.0
"""Distance from home, m, below which the vehicle lands without a climb."""


def return_way(
    start: Ned, home: Ned, height: float, uav_type: str, rally: Sequence[Ned] = ()
) -> list[MissionItem]:
    """Return the items before an RTL that starts there, NED, m; none where it needs no climb.

    `height`: least height above home, m. A fixed-wing aircraft climbs in a circle. The way leads to
    the nearest of home and the rally points, as the RTL itself does.
    """
    down = home[2] - height
    climbs = start[2] - down >= LEAST_CLIMB
    goal = min((home, *rally), key=lambda place: math.dist(start[:2], place[:2]))
    if not climbs or math.dist(start[:2], goal[:2]) < LEAST_WAY or uav_type == "ground":
        return []

    above = (start[0], start[1], down)
    climb = MissionItem.waypoint(above, math.nan)
    if uav_type == "fixed-wing":
        climb = MissionItem.mavlink(LOITER_TO_ALTITUDE, above)
    return [climb, MissionItem.waypoint((goal[0], goal[1], down), math.nan)]


def with_return_ways(
    plan: FlightPlan,
    start: Ned,
    home: Ned,
    height: float,
    uav_type: str,
    rally: Sequence[Ned] = (),
) -> FlightPlan:
    """Return a plan whose returns are flown at a height, the first item's from `start`."""
    for index in range(len(plan.items) - 1, -1, -1):
        if plan.items[index].mode is not MissionMode.RTL:
            continue
        before = start
        if index:
            north, east, down = plan.items[index - 1].position.tolist()
            before = (north, east, down)
        for item in reversed(return_way(before, home, height, uav_type, rally)):
            plan = plan.with_item(index, item)
    return plan
