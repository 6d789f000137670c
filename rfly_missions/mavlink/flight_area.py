# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The fence and the rally points of a vehicle, as ground stations upload and see them.

mission_node watches the fence, in flights of all its clients: the fence of a mission file and an
uploaded one together. An upload replaces all of it. What mission_node reports counts; uploaded rows
are kept, so that they come down unchanged as long as it reports what was uploaded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rfly_common.errors import ConfigError
from rfly_common.geodesy import GeoPoint
from rfly_missions.mavlink.mission_rows import Refused, Row
from rfly_missions.mavlink.plan_rows import (
    fence_of_rows,
    plan_id,
    rally_of_rows,
    rows_of_fence,
    rows_of_rally,
)
from rfly_missions.mission.checks import check_returns
from rfly_missions.mission.flown_mission import FlightAreaPlan
from rfly_missions.mission.geofence import FenceCircle, Geofence

Places = Callable[[], tuple[GeoPoint, GeoPoint] | None]
"""Returns the map's origin and home; None as long as they are unknown."""


class Uploaded(NamedTuple):
    """Rows that a station has uploaded, and the area that they mean."""

    plan: FlightAreaPlan = FlightAreaPlan()
    fence_rows: tuple[Row, ...] = ()
    rally_rows: tuple[Row, ...] = ()


class FlightArea:
    """The area of one vehicle; `publish` passes an upload to mission_node."""

    def __init__(self, places: Places, publish: Callable[[FlightAreaPlan], None]) -> None:
        self._places = places
        self._publish = publish
        self._uploaded = Uploaded()
        self.plan = FlightAreaPlan()
        """What mission_node watches now."""
        self.fence_rows: tuple[Row, ...] = ()
        self.rally_rows: tuple[Row, ...] = ()
        self.ids = (0, 0)
        """Numbers that are others for other rows: of the fence, and of the rally points."""

        # breaches of the fence
        self.breach = ""
        """The area that the vehicle breaches now; "" for none."""
        self.breaches = 0
        """Number of breaches so far."""
        self.breached_at = math.nan
        """Simulated time of the last breach, s."""

    def take_fence(self, rows: Sequence[Row]) -> None:
        """Replace the fence; raise Refused for rows that are none, which change nothing."""
        origin, home = self._known_places()
        fence = fence_of_rows(rows, origin, home)
        try:
            check_returns((), fence)
        except ConfigError as error:
            raise Refused("MAV_MISSION_INVALID", str(error)) from error
        self._replace(
            Uploaded(FlightAreaPlan(fence, self.plan.rally), tuple(rows), self.rally_rows)
        )

    def take_rally(self, rows: Sequence[Row]) -> None:
        """Replace the rally points; raise Refused as `take_fence`, and for one beyond the fence."""
        origin, home = self._known_places()
        fence = self.plan.fence
        rally = rally_of_rows(rows, origin, home)
        for seq, point in enumerate(rally):
            breach = fence.breach(point[0], point[1])
            if breach:
                raise Refused("MAV_MISSION_INVALID", f"item {seq}: breaches {breach}")
        self._replace(Uploaded(FlightAreaPlan(fence, rally), self.fence_rows, tuple(rows)))

    def relocate(self) -> None:
        """Place the rows about another origin of the map."""
        fence_rows = self.fence_rows
        rally_rows = self.rally_rows
        self.take_fence(())
        self.take_rally(rally_rows)
        self.take_fence(fence_rows)

    def _replace(self, uploaded: Uploaded) -> None:
        self._uploaded = uploaded
        self.plan, self.fence_rows, self.rally_rows = uploaded
        self.ids = plan_id(self.fence_rows), plan_id(self.rally_rows)
        self._publish(uploaded.plan)

    def _known_places(self) -> tuple[GeoPoint, GeoPoint]:
        places = self._places()
        if places is None:
            raise Refused("MAV_MISSION_DENIED", "no position")
        return places

    def take_reported(self, plan: FlightAreaPlan) -> None:
        """Take what mission_node watches."""
        places = self._places()
        if places is None:
            return

        # rows that were uploaded stay as they came
        origin, home = places
        uploaded = self._uploaded
        is_fence = is_same_fence(plan.fence, uploaded.plan.fence)
        is_rally = plan.rally == uploaded.plan.rally
        self.fence_rows = uploaded.fence_rows if is_fence else rows_of_fence(plan.fence, origin)
        self.rally_rows = (
            uploaded.rally_rows if is_rally else rows_of_rally(plan.rally, origin, home)
        )
        self.ids = plan_id(self.fence_rows), plan_id(self.rally_rows)
        self.plan = plan

    def tick(self, north: float, east: float, time: float) -> None:
        """Take the vehicle's place, m, at a simulated time, s."""
        breach = self.plan.fence.breach(north, east)
        if breach and not self.breach:
            self.breaches += 1
            self.breached_at = time
        self.breach = breach


def is_same_fence(one: Geofence, other: Geofence) -> bool:
    """Return whether two fences have the same areas, in the same order."""
    if len(one.areas) != len(other.areas) or one.breach_return != other.breach_return:
        return False
    return all(map(_is_same_area, one.areas, other.areas))


def _is_same_area(one: object, other: object) -> bool:
    if isinstance(one, FenceCircle) or isinstance(other, FenceCircle):
        return vars(one) == vars(other)
    return bool(
        one.inclusion == other.inclusion and np.array_equal(one.vertices, other.vertices)  # type: ignore[attr-defined]
    )
