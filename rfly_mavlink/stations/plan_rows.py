# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rows of missions, fences and rally points for ground stations, and fences and points of rows.

A mission is the inverse of `mission_rows.plan_of`. A return climbs where the vehicle is, and
descends over home: an RTL item alone keeps the present height, or rises to the least one of its
follower. Positions are NED metres about the map's origin.
Fences and rally points: https://mavlink.io/en/services/mission.html#mission_types
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rfly_common.geodesy import GeoPoint, geodetic_to_ned, ned_about, ned_to_geodetic
from rfly_mavlink.stations.mission_rows import FlightPlan, MissionRow, Refused, plan_of_items
from rfly_missions.mission import mavlink_items as mavlink
from rfly_missions.mission.geofence import FenceCircle, FencePolygon, Geofence
from rfly_missions.mission.items import FlownMission, MissionItem, MissionMode, Ned, placed_items
from rfly_missions.mission.mavlink_items import LOITER_TO_ALTITUDE

RELATIVE_ALT_INT = 6
"""MAV_FRAME_GLOBAL_RELATIVE_ALT_INT, which stations expect in MISSION_ITEM_INT."""
WAYPOINT_USER = 31_000
"""MAV_CMD_WAYPOINT_USER_1: a way-point whose four parameters are the user's."""
FENCE_RETURN_POINT = 5000
POLYGON_INCLUSION = 5001
POLYGON_EXCLUSION = 5002
CIRCLE_INCLUSION = 5003
CIRCLE_EXCLUSION = 5004
RALLY_POINT = 5100
_LARGEST = float(np.finfo(np.float32).max)
"""Largest parameter of a row."""
_NO_PARAMS = (0.0, 0.0, 0.0, 0.0)


class PlanRows(NamedTuple):
    """Rows of a mission, what is flown for them, and what they cannot hold."""

    rows: tuple[MissionRow, ...]
    plan: FlightPlan
    notes: tuple[str, ...]


def plan_id(rows: Sequence[MissionRow]) -> int:
    """Return a number that is another one for other rows: 0 for none, else their CRC-32."""
    if not rows:
        return 0
    layout = struct.Struct("<BHB4diid")
    data = b"".join(
        layout.pack(row.frame, row.command, row.autocontinue, *row.params, row.x, row.y, row.z)
        for row in rows
    )
    return zlib.crc32(data) or 1


class _WithIds(NamedTuple):
    """A message's layout, followed by ids that pymavlink does not know yet."""

    layout: struct.Struct
    ids: tuple[int, ...]

    def pack(self, *fields: object) -> bytes:
        """Return the payload."""
        return self.layout.pack(*fields) + struct.pack(f"<{len(self.ids)}I", *self.ids)


def with_ids(message: Any, **ids: int) -> Any:
    """Return a message with the ids of plans, its last fields, set.

    They are extensions of MAVLink 2 (`common.xml`): receivers that do not know them leave them out.
    """
    if set(ids) <= set(message.fieldnames):
        for name, value in ids.items():
            setattr(message, name, value)
    else:
        message.unpacker = _WithIds(message.unpacker, tuple(ids.values()))
    return message


# --- missions


def rows_of_mission(
    mission: FlownMission, origin: GeoPoint, loiter_radius: float, uav_type: str
) -> PlanRows:
    """Return the rows of a mission, with altitudes relative to its home.

    An orbit of `loiter_radius` (m) whose direction is free is written without a radius. A CUSTOM
    item of the user's own is shown as a user way-point. Raises Refused for a mission that rows
    cannot hold.
    """
    notes = ["it begins again after its last item"] if mission.repeat else []
    shown = []
    for index, item in enumerate(mission.items):
        shown.append(_as_row_shows_it(item, index, mission.hold_at_waypoints, notes))

    # about home
    home = ned_to_geodetic(mission.home, origin).tolist()
    about_home = placed_items(shown, lambda places: ned_about(places, origin, home))
    numbers = range(1, len(shown) + 1)
    try:
        raw, lost = mavlink.to_mavlink_items(about_home, numbers, home, loiter_radius)
    except ValueError as error:  # MissionFileError is a ValueError
        raise Refused("MAV_MISSION_UNSUPPORTED", " ".join(str(error).split())) from error

    rows = [_row(item, row) for item, row in zip(mission.items, raw, strict=True)]
    plan = plan_of_items(mission.items, uav_type, mission.hold_at_waypoints)
    return PlanRows(tuple(rows), plan, (*notes, *lost))


def shown_rows(
    mission: FlownMission, origin: GeoPoint, loiter_radius: float, uav_type: str
) -> PlanRows:
    """Return the rows of a mission; none, and a note on why, for one that rows cannot hold."""
    try:
        return rows_of_mission(mission, origin, loiter_radius, uav_type)
    except Refused as refusal:
        plan = plan_of_items(mission.items, uav_type, mission.hold_at_waypoints)
        return PlanRows((), plan, (str(refusal),))


def _as_row_shows_it(item: MissionItem, index: int, holds: bool, notes: list[str]) -> MissionItem:
    """Return the item that a row can hold, and add what it loses."""
    if item.mode is MissionMode.CUSTOM and not item.command:
        notes.append(f"item {index + 1}: a CUSTOM item of the user's own, shown as {WAYPOINT_USER}")
        return MissionItem.waypoint(item.position)

    own = item.params[3:] if holds else item.params[2:]
    if item.mode is not MissionMode.WAYPOINT or not own.any():
        return item
    notes.append(f"item {index + 1} (WAYPOINT): its own parameters have no place")
    params = np.array(item.params)
    params[4 - len(own) :] = 0.0
    return replace(item, params=params)


def _row(item: MissionItem, raw: mavlink.MavlinkItem) -> MissionRow:
    """Return a row with the numbers of MISSION_ITEM_INT."""
    *params, latitude, longitude, height = raw.params
    command = raw.command
    if item.mode is MissionMode.CUSTOM and not item.command:
        command = WAYPOINT_USER
        params = item.params.tolist()
    elif command == mavlink.DO_JUMP:
        params[0] -= 1.0  # rows are numbered from 0

    too_large = [v for v in (*params, height) if math.isfinite(v) and abs(v) > _LARGEST]
    if too_large or abs(latitude) > 90.0:
        raise Refused(
            "MAV_MISSION_UNSUPPORTED", f"{raw.where}: its numbers are too large for a MAVLink item"
        )

    frame = RELATIVE_ALT_INT if raw.frame == mavlink.RELATIVE_FRAME else raw.frame
    p1, p2, p3, p4 = params
    return MissionRow(
        frame, command, 1, (p1, p2, p3, p4), _degrees_e7(latitude), _degrees_e7(longitude), height
    )


def _degrees_e7(degrees: float) -> int:
    return round(degrees * 1e7)


# --- fences


def rows_of_fence(fence: Geofence, origin: GeoPoint) -> tuple[MissionRow, ...]:
    """Return the rows of a fence, as stations upload it."""
    rows = []
    for area in fence.areas:
        if isinstance(area, FenceCircle):
            command = CIRCLE_INCLUSION if area.inclusion else CIRCLE_EXCLUSION
            params = area.radius, 0.0, 0.0, 0.0
            corners = np.array([area.center])
        else:
            command = POLYGON_INCLUSION if area.inclusion else POLYGON_EXCLUSION
            params = float(len(area.vertices)), 0.0, 0.0, 0.0
            corners = area.vertices
        rows += [
            _placed_row(command, params, (*corner, 0.0), origin) for corner in corners.tolist()
        ]

    if fence.breach_return is not None:
        rows.append(_placed_row(FENCE_RETURN_POINT, _NO_PARAMS, fence.breach_return, origin))
    return tuple(rows)


def _placed_row(
    command: int,
    params: tuple[float, float, float, float],
    place: Sequence[float],
    origin: GeoPoint,
) -> MissionRow:
    """Return a row at a place (NED, m), with its altitude above sea level."""
    latitude, longitude, altitude = ned_to_geodetic(place, origin).tolist()
    x = _degrees_e7(latitude)
    y = _degrees_e7(longitude)
    return MissionRow(mavlink.ABSOLUTE_FRAME, command, 1, params, x, y, altitude)


def fence_of_rows(rows: Sequence[MissionRow], origin: GeoPoint, home: GeoPoint) -> Geofence:
    """Return the fence of rows; raise Refused that names the row which belongs to none.

    The corners of a polygon follow each other, each with the number of corners.
    """
    areas: list[FencePolygon | FenceCircle] = []
    breach_return: Ned | None = None
    corners: list[Ned] = []
    kind = (0, 0.0)
    """Command and number of corners of the polygon that has begun."""

    for seq, row in enumerate(rows):
        place = _place_of(row, seq, origin, home)
        is_corner = row.command in (POLYGON_INCLUSION, POLYGON_EXCLUSION)
        if corners and (row.command, row.params[0]) != kind:
            raise _refused(seq, f"expected corner {len(corners) + 1} of {kind[1]:g} of a polygon")

        if is_corner:
            kind = row.command, row.params[0]
            if not (kind[1] >= 3.0 and kind[1].is_integer()):
                raise _refused(seq, f"{kind[1]:g} corners, expected 3 or more")
            corners.append(place)
            if len(corners) == kind[1]:
                vertices = np.array(corners)[:, :2]
                areas.append(FencePolygon(vertices, row.command == POLYGON_INCLUSION))
                corners = []
        elif row.command in (CIRCLE_INCLUSION, CIRCLE_EXCLUSION):
            radius = row.params[0]
            if not 0.0 < radius < math.inf:
                raise _refused(seq, f"radius {radius:g}, expected a positive number of metres")
            areas.append(FenceCircle(place[:2], radius, row.command == CIRCLE_INCLUSION))
        elif row.command == FENCE_RETURN_POINT:
            breach_return = place
        else:
            raise _refused(seq, f"command {row.command}", "MAV_MISSION_UNSUPPORTED")

    if corners:
        raise _refused(len(rows) - 1, f"corner {len(corners)} of {kind[1]:g}, and no more")
    return Geofence(tuple(areas), breach_return)


def _refused(seq: int, text: str, result: str = "MAV_MISSION_INVALID") -> Refused:
    return Refused(result, f"item {seq}: {text}")


def _place_of(row: MissionRow, seq: int, origin: GeoPoint, home: GeoPoint) -> Ned:
    """Return the place of a row, NED, m; raise Refused if it has none."""
    item = row.item(seq)
    latitude, longitude, altitude = item.params[4:]
    if row.frame not in mavlink.GLOBAL_FRAMES - mavlink.TERRAIN_FRAMES:
        raise _refused(seq, f"frame {row.frame}", "MAV_MISSION_UNSUPPORTED_FRAME")
    if not (abs(latitude) <= 90.0 and abs(longitude) <= 180.0):
        raise _refused(seq, f"no such place: {latitude:g}, {longitude:g}")

    above_sea = 0.0 if math.isnan(altitude) else altitude
    if row.frame not in mavlink.ABSOLUTE_FRAMES:
        above_sea += home[2]
    if not abs(above_sea) <= mavlink.MAX_HEIGHT:
        raise _refused(seq, f"altitude {altitude:g}")
    north, east, down = geodetic_to_ned((latitude, longitude, above_sea), origin).tolist()
    return north, east, down


# --- rally points


def rows_of_rally(rally: Sequence[Ned], origin: GeoPoint, home: GeoPoint) -> tuple[MissionRow, ...]:
    """Return the rows of rally points, with altitudes relative to home."""
    rows = [_placed_row(RALLY_POINT, _NO_PARAMS, point, origin) for point in rally]
    return tuple(replace(row, frame=RELATIVE_ALT_INT, z=row.z - home[2]) for row in rows)


def rally_of_rows(rows: Sequence[MissionRow], origin: GeoPoint, home: GeoPoint) -> tuple[Ned, ...]:
    """Return the rally points of rows; raise Refused that names the row which is none."""
    for seq, row in enumerate(rows):
        if row.command != RALLY_POINT:
            raise _refused(seq, f"command {row.command}", "MAV_MISSION_UNSUPPORTED")
    return tuple(_place_of(row, seq, origin, home) for seq, row in enumerate(rows))


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
