# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink mission items <-> mission items: commands, frames, degrees, parameter positions.

Commands and frames are those of MAVLink's common message set (MAV_CMD, MAV_FRAME). Items lie about
home: NED metres. `look_of` and `look_item` are for regions of interest (ROI).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rfly_common.errors import MissionFileError
from rfly_common.frames import enu_to_ned, wrap_angle
from rfly_common.geodesy import GeoPoint, geodetic_to_ned, ned_to_geodetic
from rfly_missions.mission.items import MissionItem, MissionMode, Ned

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap

WAYPOINT = 16
LOITER_UNLIMITED = 17
LOITER_TURNS = 18
LOITER_TIME = 19
RETURN_TO_LAUNCH = 20
LAND = 21
TAKEOFF = 22
LOITER_TO_ALTITUDE = 31
DO_ORBIT = 34
SPLINE_WAYPOINT = 82
VTOL_TAKEOFF = 84
VTOL_LAND = 85
DELAY = 93
LAST_NAVIGATION = 95
"""The last of the navigation commands, which lead somewhere or take time."""
CONDITION_DELAY = 112
CONDITION_CHANGE_ALT = 113
CONDITION_DISTANCE = 114
CONDITION_YAW = 115
DO_JUMP = 177
DO_CHANGE_SPEED = 178
DO_SET_HOME = 179
DO_LAND_START = 189
DO_SET_ROI_LOCATION = 195
DO_SET_ROI_NONE = 197
DO_SET_ROI = 201
JUMP_TAG = 600
DO_JUMP_TAG = 601

MAX_HEIGHT = 100_000.0
"""Largest height above or below home, m; beyond it a number is no place for an aircraft."""
MAX_AWAY = 1_000_000.0
"""Largest distance from home in local frames, m."""
FAR_AWAY = 50_000.0
"""Distance from home, m, from which an item is noted."""
LEAST_EXCHANGED = 1_000.0
"""Distance from home, m, from which latitude and longitude are compared with each other."""
MAX_RADIUS = 100_000.0
"""Largest radius of a circle, m."""

TIMED_COMMANDS = frozenset({LOITER_TIME, LOITER_TO_ALTITUDE, DELAY})
"""Navigation commands that a CUSTOM item carries and MissionRunner carries out."""

GLOBAL_FRAMES = frozenset({0, 5, 3, 6, 10, 11})
ABSOLUTE_FRAMES = frozenset({0, 5})
TERRAIN_FRAMES = frozenset({10, 11})
ABSOLUTE_FRAME = 0
TERRAIN_FRAME = 10
RELATIVE_FRAME = 3
MISSION_FRAME = 2
LOCAL_NED = 1
LOCAL_ENU = 4
FRAMES = GLOBAL_FRAMES | {MISSION_FRAME, LOCAL_NED, LOCAL_ENU}

_AREA_COMMANDS = frozenset({5000, 5001, 5002, 5003, 5004, 5100})
"""Corners and circles of fences, rally points: MAVLink has lists of their own for them."""

_NOT_CARRIED_OUT = (176, 185, 186, 191, 192, 193, 194, 207, 208, 222, 3000)
"""Commands that change a flight elsewhere, and nothing here.

Modes, termination, altitudes, going around, repositioning, pause, reverse, fence, parachute, limits
of guided flight, transitions of a VTOL.
"""
UNKNOWN_HOME = "0, 0, which ground stations write where they know none"
"""Words for a placeholder."""

YAWED = frozenset({WAYPOINT, TAKEOFF, LAND, VTOL_TAKEOFF, VTOL_LAND})
"""Commands whose fourth parameter is a yaw."""

RADIUS_INDEX = {
    LOITER_UNLIMITED: 2,
    LOITER_TURNS: 2,
    LOITER_TIME: 2,
    LOITER_TO_ALTITUDE: 1,
    DO_ORBIT: 0,
}
"""Index of the parameter that is a circle's radius, its sign the direction."""

_PLACED_COMMANDS = frozenset({DO_SET_HOME, DO_LAND_START, DO_SET_ROI_LOCATION, DO_SET_ROI})
"""Commands beyond navigation whose parameters 5 to 7 are a place."""

TerrainAltitude = Callable[[float, float], float]
"""Returns the altitude of the ground above sea level, m, at a latitude and a longitude, deg."""


def terrain_altitude(terrain: HeightMap, origin: GeoPoint) -> TerrainAltitude:
    """Return the altitudes of a map whose origin lies there."""

    def altitude(latitude: float, longitude: float) -> float:
        north, east, _ = geodetic_to_ned((latitude, longitude, 0.0), origin).tolist()
        return origin[2] - float(terrain.altitude_ned(north, east))

    return altitude


@dataclass(frozen=True)
class MavlinkItem:
    """A row of a MAVLink mission; `params` 1 to 7, NaN if not given; degrees in global frames."""

    command: int
    frame: int
    params: tuple[float, float, float, float, float, float, float]
    number: int = 0
    """Number of the row in jumps: `doJumpId`, or its index."""
    where: str = "item"
    """Name of the row in errors."""
    goes_on: bool = True
    """False if the mission is to wait after it (`autocontinue` 0), which it does not."""

    def error(self, field: str, value: object, expected: str) -> MissionFileError:
        """Return the error of a field."""
        return MissionFileError(
            f"{self.where} (command {self.command}): {field}: {value!r}, expected {expected}"
        )


@dataclass(frozen=True)
class ImportSettings:
    """Settings of an import besides the file."""

    default_radius: float = 2.0
    """Radius of a way-point that has none, m."""
    loiter_radius: float = 25.0
    """Radius of an orbit that has none, m."""
    terrain: TerrainAltitude | None = None


def to_mission_items(
    rows: Sequence[MavlinkItem], home: GeoPoint, settings: ImportSettings
) -> tuple[tuple[MissionItem, ...], tuple[str, ...]]:
    """Return the items about home, and a line for each value of the rows that the items can't hold.

    Raises MissionFileError that names item, field and value.
    """
    items: list[MissionItem] = []
    lost: list[str] = []
    far: list[str] = []
    last = (0.0, 0.0, 0.0)
    last_flown = (0.0, 0.0, 0.0)
    # an invalid place is refused item by item
    with np.errstate(over="ignore", invalid="ignore"):
        degrees = np.array([(*row.params[4:6], 0.0) for row in rows], float).reshape(-1, 3)
        places = (geodetic_to_ned(degrees, home) - (0.0, 0.0, home[2])).tolist()

    for row, place in zip(rows, places, strict=True):
        _refuse(row)
        leads_nowhere = row.command > LAST_NAVIGATION and row.command not in _KINDS
        before = last if leads_nowhere else last_flown
        item = _item(row, _placed(row, place, home, before, settings), settings)
        lost += _lost(row)
        far += _far_away(row, place, home)
        if item.mode is MissionMode.ORBIT and math.isinf(item.params[2]) and row is not rows[-1]:
            lost.append(f"{row.where} (command {row.command}): it has no end, nothing follows it")
        items.append(item)

        last = tuple(item.position.tolist())
        # a camera's target or a new home is not flown to
        if not (leads_nowhere and row.command in _PLACED_COMMANDS):
            last_flown = last

    waits = [row.where for row in rows if not row.goes_on]
    if waits:
        lost.append(_first_of_many(waits, "autocontinue 0 is not kept, the mission goes on"))
    if far:
        lost.append(_first_of_many(far))
    return tuple(items), tuple(lost)


def _first_of_many(texts: Sequence[str], what: str = "") -> str:
    """Return the first text, and how many more there are."""
    more = f"; the same of {len(texts) - 1} more" if len(texts) > 1 else ""
    return f"{texts[0]}{': ' if what else ''}{what}{more}"


def _refuse(row: MavlinkItem) -> None:
    """Raise MissionFileError for a row that can be neither read nor written."""
    if row.command in _AREA_COMMANDS:
        expected = "a mission item; fences and rally points belong in files of their own"
        raise row.error("command", row.command, expected)
    if row.command == DELAY and row.params[0] < 0.0:
        expected = "seconds to wait; a time of day is not supported"
        raise row.error("params[0]", row.params[0], expected)
    if row.command == CONDITION_YAW and row.params[3] == 1.0:
        expected = "0, a yaw from north; one from the yaw of now is not supported"
        raise row.error("params[3]", row.params[3], expected)

    # a place in a frame without places
    if row.frame == MISSION_FRAME and row.command <= LAST_NAVIGATION:
        has_place = any(map(_or_zero, row.params[4:6]))
        if has_place and row.command != RETURN_TO_LAUNCH:
            expected = f"{RELATIVE_FRAME} (above home) or another one that has places"
            raise row.error("frame", row.frame, f"{expected}: latitude and longitude are given")

    # radii
    is_waypoint = row.command in (WAYPOINT, SPLINE_WAYPOINT)
    if is_waypoint and not 0.0 <= _or_zero(row.params[1]) <= MAX_RADIUS:
        raise row.error("params[1]", row.params[1], f"a radius of 0 to {MAX_RADIUS:,.0f} m")
    index = RADIUS_INDEX.get(row.command)
    if index is not None and abs(_or_zero(row.params[index])) > MAX_RADIUS:
        expected = f"a radius of at most {MAX_RADIUS:,.0f} m"
        raise row.error(f"params[{index}]", row.params[index], expected)


def _or_zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _placed(
    row: MavlinkItem,
    place: Sequence[float],
    home: GeoPoint,
    last: tuple[float, ...],
    settings: ImportSettings,
) -> tuple[float, float, float]:
    """Return the position of a row (see `_position`), refused if no vehicle can be there."""
    north, east, down = _position(row, place, home, last, settings)
    if not abs(down) <= MAX_HEIGHT:
        raise row.error(
            "params[6]", row.params[6], f"an altitude within {MAX_HEIGHT:,.0f} m of home's"
        )
    if row.frame in (LOCAL_NED, LOCAL_ENU) and not max(abs(north), abs(east)) <= MAX_AWAY:
        raise row.error(
            "params[4], params[5]", row.params[4:6], f"a place within {MAX_AWAY:,.0f} m of home"
        )
    return north, east, down


def _distance(row: MavlinkItem, place: Sequence[float]) -> float:
    """Return the distance of a row's latitude and longitude from home, m; 0 if it has none.

    `place`: these, NED from below home at sea level, m.
    """
    latitude, longitude = row.params[4:6]
    is_here = math.isnan(latitude) or (latitude == 0.0 and longitude == 0.0)
    leads = row.command <= LAST_NAVIGATION or row.command in _PLACED_COMMANDS
    leads = leads and row.command != RETURN_TO_LAUNCH
    if is_here or not leads or row.frame not in GLOBAL_FRAMES:
        return 0.0
    return math.hypot(*place)


def _far_away(row: MavlinkItem, place: Sequence[float], home: GeoPoint) -> list[str]:
    """Return a note on a row that lies unlikely far from home."""
    away = _distance(row, place)
    reason = _reason_far_away(row, away, home)
    if away <= FAR_AWAY and not (reason and away > LEAST_EXCHANGED):
        return []
    return [f"{row.where} (command {row.command}): {away / 1000:,.1f} km from home{reason}"]


def _reason_far_away(row: MavlinkItem, away: float, home: GeoPoint) -> str:
    """Return the likely reason why a row lies far from home, "" for none."""
    latitude, longitude = row.params[4:6]
    if abs(longitude) <= 90.0:
        exchanged = geodetic_to_ned((longitude, latitude, home[2]), home).tolist()
        if math.hypot(*exchanged) < away / 10.0:
            return "; latitude and longitude look exchanged"
    return f"; home is {UNKNOWN_HOME}" if home[0] == home[1] == 0.0 else ""


def _position(
    row: MavlinkItem,
    place: Sequence[float],
    home: GeoPoint,
    last: tuple[float, ...],
    settings: ImportSettings,
) -> tuple[float, float, float]:
    """Return the position of a row, NED about home, m.

    `place`: NED of its latitude and longitude. If these are missing or both 0, the position is that
    of the last item.
    """
    kind = _KINDS.get(row.command, MissionMode.CUSTOM)
    first, second, third = row.params[4:]
    if row.frame not in FRAMES:
        raise row.error("frame", row.frame, f"one of {', '.join(map(str, sorted(FRAMES)))}")
    if kind is MissionMode.RTL:
        return 0.0, 0.0, 0.0
    in_mission_frame = row.frame == MISSION_FRAME
    if kind is MissionMode.TAKEOFF and (in_mission_frame or math.isnan(third)):
        field = "frame" if in_mission_frame else "params[6]"
        raise row.error(field, third, "an altitude to climb to")
    if row.frame == MISSION_FRAME:
        return last[0], last[1], 0.0 if kind is MissionMode.LAND else last[2]
    if math.isnan(first) != math.isnan(second):
        raise row.error("params[4], params[5]", (first, second), "two numbers, or none")

    # local frames
    if row.frame in (LOCAL_NED, LOCAL_ENU):
        return _local_position(row, last)

    # global frames
    here = math.isnan(first) or (first == 0.0 and second == 0.0)
    if here:
        north, east = last[:2]
    else:
        if abs(first) > 90.0:
            raise row.error("params[4]", first, "a latitude within ±90°")
        if abs(second) > 180.0:
            raise row.error("params[5]", second, "a longitude within ±180°")
        north, east = place[:2]

    return north, east, _down(row, kind, here, (north, east, last[2]), home, settings)


def _local_position(row: MavlinkItem, last: tuple[float, ...]) -> tuple[float, float, float]:
    """Return the position of a row in a local frame, NED about home, m."""
    is_ned = row.frame == LOCAL_NED
    first, second, third = row.params[4:]
    if math.isnan(first):
        first, second = (last[0], last[1]) if is_ned else (last[1], last[0])

    if math.isnan(third):
        third = last[2] if is_ned else -last[2]
    local = np.array([first, second, third])
    north, east, down = (local if is_ned else enu_to_ned(local)).tolist()
    return north, east, down


def _down(
    row: MavlinkItem,
    kind: MissionMode,
    here: bool,
    last: tuple[float, float, float],
    home: GeoPoint,
    settings: ImportSettings,
) -> float:
    """Return the z of an item with a global frame at `last`'s x and y, NED about home, m.

    Without an altitude it is that of `last`, for LAND home's.
    """
    altitude = row.params[6]
    missing = math.isnan(altitude) or (here and altitude == 0.0 and kind is not MissionMode.TAKEOFF)
    is_placed_by_altitude = row.command == CONDITION_CHANGE_ALT
    leads_nowhere = row.command > LAST_NAVIGATION and kind is MissionMode.CUSTOM
    if leads_nowhere and here and not is_placed_by_altitude:
        return last[2]  # the value in the altitude's place is no altitude

    # above terrain
    if row.frame in TERRAIN_FRAMES and not math.isnan(altitude):
        if settings.terrain is None:
            expected = "a frame that needs no terrain, or a map to take the terrain from"
            raise row.error("frame", row.frame, expected)
        latitude, longitude, _ = ned_to_geodetic(last, home).tolist()
        return home[2] - (settings.terrain(latitude, longitude) + altitude)

    # above home or above sea
    if missing and not is_placed_by_altitude:
        return 0.0 if kind is MissionMode.LAND else last[2]
    if math.isnan(altitude):
        return last[2]
    return home[2] - altitude if row.frame in ABSOLUTE_FRAMES else 0.0 - altitude


def _item(
    row: MavlinkItem, position: tuple[float, float, float], settings: ImportSettings
) -> MissionItem:
    """Return the item of a row at a position."""
    p1, p2, p3, p4 = row.params[:4]
    kind = _KINDS.get(row.command, MissionMode.CUSTOM)
    if kind is MissionMode.CUSTOM:
        return MissionItem.mavlink(row.command, position, (p1, p2, p3, p4))
    if kind in (MissionMode.TAKEOFF, MissionMode.LAND):
        params = (p1, p2, p3, yaw_from_deg(p4))
    elif kind is MissionMode.WAYPOINT:
        yaw = math.nan if row.command == SPLINE_WAYPOINT else yaw_from_deg(p4)
        params = (yaw, settings.default_radius if math.isnan(p2) or p2 == 0.0 else p2, p1, p3)
    elif kind is MissionMode.ORBIT:
        params = _orbit_params(row, settings)
    else:
        params = (0.0, 0.0, 0.0, 0.0)
    first, second = row.params[4:6]
    is_nowhere = row.frame in GLOBAL_FRAMES and first == second == 0.0
    here = kind is MissionMode.TAKEOFF and (is_nowhere or math.isnan(first))
    return MissionItem(kind, np.array(position), np.array(params), here=here)


def _orbit_params(row: MavlinkItem, settings: ImportSettings) -> tuple[float, float, float, float]:
    p1, p2, p3, p4 = row.params[:4]
    if row.command == DO_ORBIT:
        signed_radius = p1
        turns = math.inf if math.isnan(p4) or p4 == 0.0 else p4 / (2 * math.pi)
        extra = p2
    elif row.command == LOITER_UNLIMITED:
        signed_radius = p3
        turns = math.inf
        extra = 0.0
    else:
        signed_radius = p3
        turns = p1
        extra = p4
        if math.isnan(turns):
            raise row.error("params[0]", turns, "a number of turns")

    if turns < 0.0:
        raise row.error(
            "params[3]" if row.command == DO_ORBIT else "params[0]", turns, "turns of at least 0"
        )
    if math.isnan(signed_radius):
        signed_radius = 0.0
    direction = float(np.sign(signed_radius))
    return abs(signed_radius) or settings.loiter_radius, direction, turns, extra


def _lost(row: MavlinkItem) -> list[str]:
    """Return a line for each value of a row that its item can't hold, or holds as another command.

    A parameter that is 0 or missing is no loss.
    """
    kind = _KINDS.get(row.command, MissionMode.CUSTOM)
    indices = _UNUSED_PARAMS.get(row.command, ())
    if row.frame == MISSION_FRAME and row.command <= LAST_NAVIGATION:
        indices = tuple({*indices, 6})
    if kind is MissionMode.CUSTOM:
        here = row.frame == MISSION_FRAME or (row.params[4] == 0.0 and row.params[5] == 0.0)
        leads_nowhere = row.command > LAST_NAVIGATION and row.command != CONDITION_CHANGE_ALT
        indices = (4, 5, 6) if here and leads_nowhere else indices

    command = f"{row.where} (command {row.command})"
    lines = []
    if row.command in _FLOWN_AS:
        lines.append(f"{command}: {_FLOWN_AS[row.command]}")
    for index in indices:
        value = row.params[index]
        if not math.isnan(value) and value != 0.0:
            lines.append(f"{command}: params[{index}] = {value:g} has no place in {kind.name}")
    return lines


def to_mavlink_items(
    items: Sequence[MissionItem],
    numbers: Sequence[int],
    home: GeoPoint,
    loiter_radius: float = 25.0,
) -> tuple[list[MavlinkItem], tuple[str, ...]]:
    """Return the items as rows 1, 2, …, with altitudes relative to home.

    The second value has a line for each value that the rows can't hold. The table is that of the
    import, backwards. `numbers` are the items' numbers in their jumps; the rows' jumps name
    the rows. An orbit of `loiter_radius` (m) whose direction is the follower's choice is written
    without a radius. Raises MissionFileError for a CUSTOM of the user's own, for a command that is
    not read, and for a jump to no item.
    """
    row_of = {number: index + 1 for index, number in enumerate(numbers)}
    rows = []
    changed: list[str] = []
    last = (0.0, 0.0, 0.0)

    for index, item in enumerate(items):
        where = f"item {index + 1}"
        command, params = _command_and_params(item, where, row_of, loiter_radius)

        # values without a place
        is_free_orbit = item.mode is MissionMode.ORBIT and item.params[1] == 0.0
        if is_free_orbit and item.params[0] != loiter_radius:
            changed.append(
                f"{where} (ORBIT): its direction, the follower's choice, is written as clockwise"
            )
        if item.mode is MissionMode.WAYPOINT and item.params[1] == 0.0:
            changed.append(f"{where} (WAYPOINT): a radius of 0 is read as the reader's default")
        if item.mode is MissionMode.RTL and item.params.any():
            changed.append(f"{where} (RTL): its params have no place")

        # the place
        position = tuple(item.position.tolist())
        placed = _is_placed(item, command, position != last)
        if item.here:
            last_three = (0.0, 0.0, 0.0 - position[2])
        elif placed:
            latitude, longitude, _ = ned_to_geodetic(item.position, home).tolist()
            last_three = (latitude, longitude, 0.0 - position[2])
        else:
            last_three = (0.0, 0.0, 0.0)

        last = (0.0, 0.0, 0.0) if item.mode is MissionMode.RTL else position
        frame = RELATIVE_FRAME if placed else MISSION_FRAME
        rows.append(MavlinkItem(command, frame, (*params, *last_three), index + 1, where))
        _refuse(rows[-1])

    return rows, tuple(changed)


def _is_placed(item: MissionItem, command: int, has_moved: bool) -> bool:
    """Return whether the row of an item has a place of its own."""
    if item.mode is MissionMode.RTL:
        return False
    if item.mode is not MissionMode.CUSTOM or command <= LAST_NAVIGATION:
        return True
    # a start of landing without a place stands where the item before it does
    has_place = command in _PLACED_COMMANDS and command != DO_LAND_START
    return has_place or command == CONDITION_CHANGE_ALT or has_moved


def _command_and_params(
    item: MissionItem, where: str, row_of: dict[int, int], loiter_radius: float
) -> tuple[int, tuple[float, float, float, float]]:
    p1, p2, p3, p4 = item.params.tolist()
    if item.mode is MissionMode.TAKEOFF:
        return TAKEOFF, (p1, p2, p3, math.degrees(p4))
    if item.mode is MissionMode.LAND:
        return LAND, (p1, p2, p3, math.degrees(p4))
    if item.mode is MissionMode.WAYPOINT:
        return WAYPOINT, (p3, p2, p4, math.degrees(p1))
    if item.mode is MissionMode.RTL:
        return RETURN_TO_LAUNCH, (0.0, 0.0, 0.0, 0.0)
    if item.mode is MissionMode.ORBIT:
        return _orbit_command(item, loiter_radius)

    if item.mode is MissionMode.CUSTOM:
        command = item.command
        if not command:
            expected = "the number of a MAVLink command; files have no items of your own"
            raise MissionFileError(f"{where} (CUSTOM): command: 0, expected {expected}")
        if command == DO_JUMP:
            if p1 not in row_of:
                raise MissionFileError(
                    f"{where} (DO_JUMP): params[0]: {p1!r}, expected the number of an item"
                )
            p1 = float(row_of[int(p1)])
        return command, (p1, p2, p3, p4)
    raise MissionFileError(f"{where}: mode: {item.mode.name} is the manager's own, expected 1 to 6")


def _orbit_command(
    item: MissionItem, loiter_radius: float
) -> tuple[int, tuple[float, float, float, float]]:
    radius, direction, turns, p4 = item.params.tolist()
    signed = radius
    if direction != 0.0:
        signed = math.copysign(radius, direction)
    elif radius == loiter_radius:
        signed = 0.0

    if not math.isinf(turns):
        return LOITER_TURNS, (turns, 0.0, signed, p4)
    if p4 != 0.0:
        return DO_ORBIT, (signed, p4, 0.0, 0.0)
    return LOITER_UNLIMITED, (0.0, 0.0, signed, 0.0)


def is_carried_out(command: int) -> bool:
    """Return whether MissionRunner carries out a command as a CUSTOM item.

    It ends the others of the navigation commands only when an external report says that they are
    done.
    """
    return command > LAST_NAVIGATION or command in TIMED_COMMANDS


def ends_by_report(item: MissionItem) -> str:
    """Return why an item ends only when an external report says so; "" for any other item."""
    if item.mode is not MissionMode.CUSTOM:
        return ""
    if not item.command:
        return "a CUSTOM item of your own"
    return "" if is_carried_out(item.command) else f"command {item.command} is not carried out here"


def yaw_from_deg(yaw_deg: float) -> float:
    """Return radians wrapped to (-π, π]; NaN stays NaN."""
    return float(wrap_angle(math.radians(yaw_deg)))


_FLOWN_AS = {
    SPLINE_WAYPOINT: "the spline is flown straight",
    VTOL_TAKEOFF: "flown and written as an ordinary take-off (22)",
    VTOL_LAND: "flown and written as an ordinary landing (21)",
    DO_ORBIT: "written as turns or endless turns where these say the same (18, 17)",
    DO_SET_HOME: "not carried out, returns lead to the mission's own home",
    **dict.fromkeys(_NOT_CARRIED_OUT, "not carried out, the mission goes on at once"),
}

_UNUSED_PARAMS: dict[int, tuple[int, ...]] = {
    RETURN_TO_LAUNCH: (0, 1, 2, 3, 4, 5, 6),
    SPLINE_WAYPOINT: (3,),
    LOITER_TURNS: (1,),
    LOITER_UNLIMITED: (0, 1, 3),
    DO_ORBIT: (2,),
}
"""Indices of the parameters that have no place in an item, by command."""

_KINDS = {
    TAKEOFF: MissionMode.TAKEOFF,
    VTOL_TAKEOFF: MissionMode.TAKEOFF,
    WAYPOINT: MissionMode.WAYPOINT,
    SPLINE_WAYPOINT: MissionMode.WAYPOINT,
    LOITER_TURNS: MissionMode.ORBIT,
    LOITER_UNLIMITED: MissionMode.ORBIT,
    DO_ORBIT: MissionMode.ORBIT,
    LAND: MissionMode.LAND,
    VTOL_LAND: MissionMode.LAND,
    RETURN_TO_LAUNCH: MissionMode.RTL,
}


def with_takeoffs_placed(
    items: Sequence[MissionItem], start: Sequence[float], home: Sequence[float]
) -> tuple[MissionItem, ...]:
    """Return items whose take-offs from `here` have the place where the mission expects them.

    `start`: place of the vehicle before the first item, `home`: that of a return; NED, m.
    """
    placed = []
    last = (start[0], start[1])
    for each in items:
        item = each
        if each.here:
            item = replace(each, position=np.array((*last, each.position[2])))
        placed.append(item)
        if item.mode is MissionMode.RTL:
            last = (home[0], home[1])
        elif item.command <= LAST_NAVIGATION:
            north, east, _ = item.position.tolist()
            last = (north, east)
    return tuple(placed)


ROI_COMMANDS = frozenset({DO_SET_ROI_LOCATION, DO_SET_ROI_NONE, DO_SET_ROI})
"""Commands that an item carries out at once, and that last until the next one."""
AT_A_PLACE = 3.0
"""MAV_ROI_LOCATION, the only mode of DO_SET_ROI besides none that is carried out."""


class Look(NamedTuple):
    """A change of what the vehicle looks at."""

    target: Ned | None
    """The place; None: nothing, so that the nose turns along the way again."""


def look_of(item: MissionItem) -> Look | None:
    """Return the change that an item makes; None if it makes none."""
    if item.command not in ROI_COMMANDS:
        return None
    is_place = item.command == DO_SET_ROI_LOCATION
    if item.command == DO_SET_ROI:
        is_place = float(item.params[0]) == AT_A_PLACE
    north, east, down = item.position.tolist()
    return Look((north, east, down) if is_place else None)


def look_item(target: Ned | None, here: Ned) -> MissionItem:
    """Return the item that looks at a place; None: at nothing any more."""
    if target is None:
        return MissionItem.mavlink(DO_SET_ROI_NONE, here)
    return MissionItem.mavlink(DO_SET_ROI_LOCATION, target)
