# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The mission that mission_node flies and the area around it, as its clients see them."""

from __future__ import annotations

from typing import NamedTuple

from rfly_missions.mission.geofence import Geofence
from rfly_missions.mission.items import MissionItem, Ned


class FlownMission(NamedTuple):
    """A mission that has been loaded, by whichever client."""

    items: tuple[MissionItem, ...] = ()
    """NED about the map's origin, m; jumps name the items 1, 2, 3, etc."""
    home: Ned = (0.0, 0.0, 0.0)
    repeat: bool = False
    """True if it begins again after its last item."""
    hold_at_waypoints: bool = False
    """True if the third parameter of a way-point is a time to stay there, s."""


class FlightAreaPlan(NamedTuple):
    """Where a vehicle may be, and where it may return to."""

    fence: Geofence = Geofence()
    rally: tuple[Ned, ...] = ()
    """Places besides home."""
