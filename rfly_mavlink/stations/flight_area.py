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
from rfly_mavlink.stations.mission_rows import MissionRow, Refused
from rfly_mavlink.stations.plan_rows import (
    fence_of_rows,
    plan_id,
    rally_of_rows,
    rows_of_fence,
    rows_of_rally,
)
from rfly_missions.mission.checks import check_returns
from rfly_missions.mission.geofence import FenceCircle, FencePolygon, FlightAreaPlan, Geofence

OriginAndHome = Callable[[], tuple[GeoPoint, GeoPoint] | None]
"""Returns the map's origin and home; None as long as they are unknown."""


class Uploaded(NamedTuple):
    """Rows that a station has uploaded, and the area that they mean."""

    plan: FlightAreaPlan = FlightAreaPlan()
    fence_rows: tuple[MissionRow, ...] = ()
    rally_rows: tuple[MissionRow, ...] = ()


class FlightArea:
    """The area of one vehicle; `publish` passes an upload to mission_node."""

    def __init__(self, places: OriginAndHome, publish: Callable[[FlightAreaPlan], None]) -> None:
        self._places = places
        self._publish = publish
        self._uploaded = Uploaded()
        self.plan = FlightAreaPlan()
        """What mission_node watches now."""
        self.fence_rows: tuple[MissionRow, ...] = ()
        self.fence_id = 0
        """Number that is another one for other rows."""

        # breaches of the fence
        self.breach = ""
        """The area that the vehicle breaches now; "" for none."""
        self.breaches = 0
        """Number of breaches so far."""
        self.breached_at = math.nan
        """Simulated time of the last breach, s."""

    def take_fence(self, rows: Sequence[MissionRow]) -> None:
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

    def take_rally(self, rows: Sequence[MissionRow]) -> None:
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
        self.plan = uploaded.plan
        self._show_fence(uploaded.fence_rows)
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
        uploaded = self._uploaded
        is_uploaded = is_same_fence(plan.fence, uploaded.plan.fence)
        self._show_fence(
            uploaded.fence_rows if is_uploaded else rows_of_fence(plan.fence, places[0])
        )
        self.plan = plan

    def _show_fence(self, rows: tuple[MissionRow, ...]) -> None:
        self.fence_rows = rows
        self.fence_id = plan_id(rows)

    @property
    def rally_rows(self) -> tuple[MissionRow, ...]:
        """Rows of the rally points; those that were not uploaded follow home."""
        places = self._places()
        if self.plan.rally == self._uploaded.plan.rally or places is None:
            return self._uploaded.rally_rows
        return rows_of_rally(self.plan.rally, *places)

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


def _is_same_area(one: FencePolygon | FenceCircle, other: FencePolygon | FenceCircle) -> bool:
    if isinstance(one, FencePolygon) and isinstance(other, FencePolygon):
        is_same_kind = one.inclusion == other.inclusion
        return is_same_kind and np.array_equal(one.vertices, other.vertices)
    return type(one) is type(other) and vars(one) == vars(other)
