# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mission files: QGroundControl's .plan and MAVLink's .waypoints.

Formats: QGroundControl developer guide, "Plan File Format"; MAVLink developer guide, "Mission
Plain-Text File Format".
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from rfly_common.config.checks import check_choice, finite_number
from rfly_common.errors import ConfigError, MissionFileError
from rfly_common.files import StrPath, read_regular, write_text
from rfly_common.geodesy import GeoPoint, geo_point, geodetic_to_ned, ned_about, ned_to_geodetic
from rfly_missions.mission import mavlink_items as mavlink
from rfly_missions.mission.geofence import FenceCircle, FencePolygon, Geofence
from rfly_missions.mission.items import MAX_COMMAND, MissionItem, Placing, placed_items
from rfly_missions.mission.plan_patterns import (
    as_boolean,
    as_geo_position,
    as_integer,
    as_list,
    as_number,
    as_object,
    expect,
    get_key,
    items_of_pattern,
    short,
)

MAX_BYTES = 10 * 1024 * 1024
"""Size of the largest file that is read, bytes."""
MAX_ITEMS = 65_535
"""Number of items of the longest mission."""
MAX_FENCE_VERTICES = 10_000
"""Number of corners of all polygons of a fence."""
MAX_RALLY_POINTS = 1_000
"""Number of rally points of a mission."""
WAYPOINTS_HEADER = "QGC WPL 110"
"""First line of a .waypoints file that is written."""
_HEADERS = (WAYPOINTS_HEADER, "QGC WPL 120")
"""First lines of those that are read; the rows are the same."""
ARDUPILOT = 3
"""MAVLink's MAV_AUTOPILOT of plans in which a yaw of 0 is none."""
GROUND_STATION = "rfly_suite"
"""Name of the program that has written a .plan."""
VEHICLE_TYPES = {"multirotor": 2, "fixed-wing": 1, "ground": 10, "land-air": 20}
"""MAVLink's MAV_TYPE, by kind of vehicle."""
OF_SCENARIOS = ("rolling", "thrust_assist")
"""Keys of a scenario's mission and items that a mission file has no place for."""
ABOVE_CALCULATED_TERRAIN = 3
"""QGroundControl's AltitudeMode of an item above terrain.

QGroundControl computes its altitude above sea when it uploads the mission.
"""


@dataclass(frozen=True)
class Mission:
    """The content of a mission file: items and fence about home (NED, m), and home itself."""

    items: tuple[MissionItem, ...]
    home: GeoPoint
    """Latitude, deg, longitude, deg, altitude above sea, m."""
    numbers: tuple[int, ...] = ()
    """Numbers of the items in jumps; 1, 2, … if not given."""
    fence: Geofence = field(default_factory=Geofence)
    lost: tuple[str, ...] = ()
    """Content of the file that the items can't hold, one line each."""
    rally: tuple[tuple[float, float, float], ...] = ()
    """Places besides home to return to, NED, m; a return leads to the nearest."""

    def __post_init__(self) -> None:
        if not self.numbers:
            object.__setattr__(self, "numbers", tuple(range(1, len(self.items) + 1)))

        if len(self.numbers) != len(self.items):
            raise MissionFileError(
                f"numbers: {len(self.numbers)} for {len(self.items)} items, expected one each"
            )

    @property
    def custom(self) -> tuple[tuple[int, int], ...]:
        """Index and MAVLink command of every item that became a CUSTOM."""
        return tuple((index, item.command) for index, item in enumerate(self.items) if item.command)

    def with_plain_jumps(self) -> Mission:
        """Return the same mission with its items numbered 1, 2, 3, etc. in jumps."""
        plain = tuple(range(1, len(self.items) + 1))
        if self.numbers == plain:
            return self
        new_number = dict(zip(self.numbers, plain, strict=True))
        items = tuple(
            replace(item, params=np.array([new_number[int(item.params[0])], *item.params[1:]]))
            if item.command == mavlink.DO_JUMP
            else item
            for item in self.items
        )
        return replace(self, items=items, numbers=plain)

    def about(self, origin: GeoPoint, present: GeoPoint | None = None) -> Mission:
        """Return the same mission about another place, such as the origin of a map.

        `present`: the place that it is about; None: home.
        """
        return self._placed(lambda places: ned_about(places, present or self.home, origin))

    def moved(self, offset: Sequence[float]) -> Mission:
        """Return the same mission with its items and fence moved by NED metres.

        A return has no place of its own, and stays as it is.
        """
        shift = np.asarray(offset, dtype=float)
        return self._placed(lambda places: places + shift)

    def _placed(self, place: Placing) -> Mission:
        rally = tuple(tuple(place(np.array(point)).tolist()) for point in self.rally)
        items = placed_items(self.items, place)
        return replace(self, items=items, fence=self.fence.placed(place), rally=rally)


def read_mission(
    path: StrPath,
    *,
    default_radius: float = 2.0,
    loiter_radius: float = 25.0,
    terrain: mavlink.TerrainAltitude | None = None,
    first_row_is_home: bool = True,
    home: Sequence[float] | None = None,
) -> Mission:
    """Return the mission of a .plan or .waypoints file (by its first bytes, whatever its name).

    `default_radius` (m): radius of way-points that have none; `loiter_radius` (m): that of orbits.
    `terrain` returns the ground's altitude above sea at (latitude, longitude), for items above
    terrain. A .waypoints file's first row is home, unless `first_row_is_home` is False: then it is
    an item, and `home` (latitude, longitude, altitude) is needed.

    Raises MissionFileError that names file, item, field and value; OSError where the file can't be
    read or is larger than MAX_BYTES.
    """
    for name, radius in (("default_radius", default_radius), ("loiter_radius", loiter_radius)):
        finite_number(name, radius, "m", above=0.0, error=ValueError)

    settings = mavlink.ImportSettings(float(default_radius), float(loiter_radius), terrain)
    try:
        text = _read_text(path)
        if text.lstrip().startswith("{"):
            return _read_plan(text, settings)
        return _read_waypoints(text, settings, first_row_is_home, home)
    except ConfigError as error:
        raise MissionFileError(f"{os.fspath(path)}: {error}") from error


def write_mission(
    path: StrPath, mission: Mission, *, uav_type: str = "multirotor", loiter_radius: float = 25.0
) -> tuple[str, ...]:
    """Write a .plan or .waypoints file, by the path's extension.

    Returns what the file can't hold, one line each. Raises MissionFileError for an extension of
    neither kind, and for an item that MAVLink can't express; ValueError for an unknown `uav_type`.
    """
    check_choice("uav_type", uav_type, VEHICLE_TYPES, error=ValueError)
    target = Path(path)
    if target.suffix.lower() not in (".plan", ".waypoints"):
        raise MissionFileError(
            f"{target}: extension {target.suffix!r}, expected .plan or .waypoints"
        )

    try:
        if len(mission.items) > MAX_ITEMS:
            raise MissionFileError(f"{len(mission.items)} items, at most {MAX_ITEMS} are written")
        rows, changed = mavlink.to_mavlink_items(
            mission.items, mission.numbers, mission.home, loiter_radius
        )
    except MissionFileError as error:
        raise MissionFileError(f"{target}: {error}") from error

    if target.suffix.lower() == ".plan":
        text = json.dumps(_plan(rows, mission, uav_type), indent=4, allow_nan=False) + "\n"
    else:
        text = _waypoints(rows, mission.home)
        if mission.fence:
            changed += ("geoFence: a .waypoints file has no place for it",)
        if mission.rally:
            changed += ("rallyPoints: a .waypoints file has no place for them",)

    write_text(target, text)
    return changed


def _read_text(path: StrPath) -> str:
    data = read_regular(path, MAX_BYTES)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MissionFileError(
            f"byte {error.start}: no UTF-8 text, expected a .plan or .waypoints file"
        ) from error


def _finish(
    rows: list[mavlink.MavlinkItem],
    home: GeoPoint,
    settings: mavlink.ImportSettings,
    fence: Geofence,
) -> Mission:
    """Check the jumps of rows, and return the mission that they describe."""
    numbers = tuple(row.number for row in rows)
    existing = set(numbers)

    # jumps by number
    for row in rows:
        if row.command == mavlink.DO_JUMP and row.params[0] not in existing:
            raise row.error("params[0]", row.params[0], "the number of an item to jump to")

    # jumps by tag
    tags = Counter(row.params[0] for row in rows if row.command == mavlink.JUMP_TAG)
    for row in rows:
        if row.command == mavlink.DO_JUMP_TAG and tags[row.params[0]] != 1:
            expected = f"the tag of one item (command {mavlink.JUMP_TAG}) to jump to"
            raise row.error("params[0]", row.params[0], expected)

    # numbers that name several items
    repeated = {number for number, count in Counter(numbers).items() if count > 1}
    for row in rows:
        if row.command == mavlink.DO_JUMP and row.params[0] in repeated:
            raise MissionFileError(
                f"doJumpId: {row.params[0]:g} is that of several items, and a jump leads there"
            )

    items, lost = mavlink.to_mission_items(rows, home, settings)
    if home[0] == home[1] == 0.0:
        lost = (f"home: {mavlink.UNKNOWN_HOME}", *lost)
    return Mission(items, home, numbers, fence, lost)


def _read_plan(text: str, settings: mavlink.ImportSettings) -> Mission:
    try:
        plan = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise MissionFileError(f"no JSON: {error or 'nested too deeply'}") from error

    plan = as_object(plan, "the file")
    expect(plan, "fileType", "Plan", "")
    expect(plan, "version", 1, "")
    mission = as_object(get_key(plan, "mission", ""), "mission")
    if "version" in mission:
        expect(mission, "version", 2, "mission.")
    _refuse_keys_of_scenarios(plan, "the file")
    _refuse_keys_of_scenarios(mission, "mission")

    rows: list[mavlink.MavlinkItem] = []
    changed: list[str] = []

    # home and rally points
    home = _read_home(mission, settings.terrain, changed)
    rally = _read_rally_points(as_object(plan.get("rallyPoints") or {}, "rallyPoints"), home)

    # items
    for index, entry in enumerate(as_list(get_key(mission, "items", "mission"), "mission.items")):
        first = len(rows)
        _read_plan_item(as_object(entry, f"item {index + 1}"), f"item {index + 1}", rows)
        if len(rows) > MAX_ITEMS:
            raise MissionFileError(f"more than {MAX_ITEMS} items")
        if entry["type"] == "ComplexItem":
            name = entry.get("complexItemType")
            count = len(rows) - first
            changed.append(
                f"item {index + 1} ({name}): read as its {count} simple items, and written as these"
            )

    if mission.get("firmwareType") == ARDUPILOT:
        rows = [_without_zero_yaw(row) for row in rows]
    areas = as_object(plan.get("geoFence") or {}, "geoFence")
    mission_read = _finish(rows, home, settings, _read_fence(areas, home))
    return replace(mission_read, lost=(*changed, *mission_read.lost), rally=rally)


def _refuse_keys_of_scenarios(part: dict[str, Any], where: str) -> None:
    """Raise MissionFileError for a key that would have no effect."""
    for key in OF_SCENARIOS:
        if key in part:
            raise MissionFileError(
                f"{where}: {key}: only the mission of a scenario has it, "
                f"such as mission: {{file: survey.plan, {key}: true}}"
            )


def _read_home(
    mission: dict[str, Any], terrain: mavlink.TerrainAltitude | None, notes: list[str]
) -> GeoPoint:
    """Return home; without an altitude it lies on the ground or at sea level, with a note."""
    where = "mission.plannedHomePosition"
    values = as_list(get_key(mission, "plannedHomePosition", "mission"), where)
    if len(values) == 3 and values[2] is None:
        latitude, longitude = as_geo_position(values[:2], where)
        altitude = 0.0 if terrain is None else terrain(latitude, longitude)
        source = "the map's ground"
        if terrain is None:
            source = "sea level: altitudes above sea count from home"
        notes.append(f"{where}: no altitude, taken as {altitude:g} m ({source})")
        return geo_point((latitude, longitude, altitude), where)
    return geo_point([as_number(v, where) for v in values], where)


def _read_rally_points(
    rally: dict[str, Any], home: GeoPoint
) -> tuple[tuple[float, float, float], ...]:
    """Return NED places about home.

    Altitudes are relative to home (QGroundControl developer guide).
    """
    values = as_list(rally.get("points") or [], "rallyPoints.points")
    if len(values) > MAX_RALLY_POINTS:
        raise MissionFileError(
            f"rallyPoints.points: {len(values)}, at most {MAX_RALLY_POINTS} are read"
        )

    return tuple(
        _relative_place(value, home, f"rallyPoints.points[{i}]") for i, value in enumerate(values)
    )


def _relative_place(value: Any, home: GeoPoint, where: str) -> tuple[float, float, float]:
    values = as_list(value, where)
    if len(values) not in (2, 3):
        raise MissionFileError(
            f"{where}: {short(values)}, expected latitude, longitude and altitude"
        )

    place = as_geo_position(values[:2], where)
    altitude = 0.0 if len(values) == 2 or values[2] is None else as_number(values[2], where)
    if abs(altitude) > mavlink.MAX_HEIGHT:
        expected = f"one within {mavlink.MAX_HEIGHT:,.0f} m of home's"
        raise MissionFileError(f"{where}: altitude {altitude:g}, expected {expected}")
    north, east, _ = geodetic_to_ned((*place, home[2]), home).tolist()
    return north, east, 0.0 - altitude


def _read_plan_item(entry: dict[str, Any], where: str, rows: list[mavlink.MavlinkItem]) -> None:
    """Append the rows of an item; those of a complex item one by one."""
    _refuse_keys_of_scenarios(entry, where)
    kind = get_key(entry, "type", where)
    if kind == "ComplexItem":
        _read_complex_item(entry, where, rows)
        return
    if kind != "SimpleItem":
        raise MissionFileError(
            f"{where}: type: {short(kind)}, expected 'SimpleItem' or 'ComplexItem'"
        )

    command = as_integer(get_key(entry, "command", where), f"{where}: command", 1, MAX_COMMAND)
    frame = as_integer(get_key(entry, "frame", where), f"{where}: frame", 0, 255)

    # params
    values = as_list(get_key(entry, "params", where), f"{where}: params")
    if len(values) == 4 and "coordinate" in entry:  # as QGroundControl wrote it before 3.3
        values = values + as_list(entry["coordinate"], f"{where}: coordinate")
    if len(values) != 7:
        raise MissionFileError(f"{where}: params: {len(values)} values, expected 7")
    params = [
        math.nan if v is None else as_number(v, f"{where}: params[{i}]")
        for i, v in enumerate(values)
    ]

    # altitude above terrain
    if math.isnan(params[6]) and entry.get("AltitudeMode") == ABOVE_CALCULATED_TERRAIN:
        where += f" (AltitudeMode {ABOVE_CALCULATED_TERRAIN})"
        if entry.get("AMSLAltAboveTerrain") is not None:
            frame = mavlink.ABSOLUTE_FRAME
            key = "AMSLAltAboveTerrain"
        else:
            frame = mavlink.TERRAIN_FRAME
            key = "Altitude"
        params[6] = as_number(get_key(entry, key, where), f"{where}: {key}")

    goes_on = as_boolean(entry.get("autoContinue", True), f"{where}: autoContinue")
    number = as_integer(entry.get("doJumpId", len(rows) + 1), f"{where}: doJumpId", 0, 2**31 - 1)
    rows.append(mavlink.MavlinkItem(command, frame, tuple(params), number, where, goes_on))  # type: ignore[arg-type]


def _read_complex_item(entry: dict[str, Any], where: str, rows: list[mavlink.MavlinkItem]) -> None:
    name = entry.get("complexItemType")
    scan = as_object(
        entry.get("TransectStyleComplexItem") or {}, f"{where}: TransectStyleComplexItem"
    )
    _refuse_keys_of_scenarios(scan, f"{where}: TransectStyleComplexItem")
    simple = scan.get("Items")
    if simple is None:
        simple = items_of_pattern(entry, where)
    if simple is None:
        raise MissionFileError(
            f"{where}: complexItemType: {short(name)} has no simple items in "
            "TransectStyleComplexItem.Items, expected a survey or corridor scan of QGroundControl "
            "3.5 or newer, a structure scan or a landing"
        )

    for index, inner in enumerate(as_list(simple, f"{where} ({name}): Items")):
        inner_where = f"{where} ({name}) item {index + 1}"
        expect(as_object(inner, inner_where), "type", "SimpleItem", f"{inner_where}: ")
        _read_plan_item(inner, inner_where, rows)
        if len(rows) > MAX_ITEMS:
            raise MissionFileError(f"more than {MAX_ITEMS} items")


def _read_fence(fence: dict[str, Any], home: GeoPoint) -> Geofence:
    """Return the fence of a .plan, about home."""
    areas: tuple[FencePolygon | FenceCircle, ...] = (
        *_read_polygons(fence, home),
        *_read_circles(fence, home),
    )
    breach_return = fence.get("breachReturn")
    if not breach_return:
        return Geofence(areas)
    return Geofence(areas, _relative_place(breach_return, home, "geoFence.breachReturn"))


def _read_polygons(fence: dict[str, Any], home: GeoPoint) -> list[FencePolygon]:
    values = as_list(fence.get("polygons") or [], "geoFence.polygons")
    if fence.get("polygon"):  # version 1: one polygon to stay in
        values = [*values, {"polygon": fence["polygon"]}]

    polygons = []
    vertices = 0
    for index, value in enumerate(values):
        where = f"geoFence.polygons[{index}]"
        entry = as_object(value, where)
        points = [
            as_geo_position(p, f"{where}.polygon[{i}]")
            for i, p in enumerate(as_list(get_key(entry, "polygon", where), where))
        ]
        vertices += len(points)
        if len(points) < 3 or vertices > MAX_FENCE_VERTICES:
            raise MissionFileError(
                f"{where}: {len(points)} corners, expected 3 to {MAX_FENCE_VERTICES} in all"
            )

        corners = geodetic_to_ned([(*point, home[2]) for point in points], home)[:, :2]
        inclusion = as_boolean(entry.get("inclusion", True), f"{where}.inclusion")
        polygons.append(FencePolygon(corners, inclusion))
    return polygons


def _read_circles(fence: dict[str, Any], home: GeoPoint) -> list[FenceCircle]:
    circles = []
    for index, value in enumerate(as_list(fence.get("circles") or [], "geoFence.circles")):
        where = f"geoFence.circles[{index}]"
        entry = as_object(value, where)
        circle = as_object(get_key(entry, "circle", where), f"{where}.circle")
        center = as_geo_position(get_key(circle, "center", where), f"{where}.circle.center")
        radius = as_number(get_key(circle, "radius", where), f"{where}.circle.radius")
        if not radius > 0.0:
            raise MissionFileError(
                f"{where}.circle.radius: {radius!r}, expected a positive number of metres"
            )

        north, east, _ = geodetic_to_ned((*center, home[2]), home).tolist()
        inclusion = as_boolean(entry.get("inclusion", True), f"{where}.inclusion")
        circles.append(FenceCircle((north, east), radius, inclusion))
    return circles


def _plan(rows: list[mavlink.MavlinkItem], mission: Mission, uav_type: str) -> dict[str, Any]:
    """Return the JSON of a .plan."""
    polygons = []
    circles = []
    for area in mission.fence.areas:
        if isinstance(area, FenceCircle):
            center = ned_to_geodetic((*area.center, 0.0), mission.home)[:2].tolist()
            circle = {"center": center, "radius": area.radius}
            circles.append({"circle": circle, "inclusion": area.inclusion, "version": 1})
        else:
            corners = np.column_stack([area.vertices, np.zeros(len(area.vertices))])
            polygon = ned_to_geodetic(corners, mission.home)[:, :2].tolist()
            polygons.append({"inclusion": area.inclusion, "polygon": polygon, "version": 1})

    items = [
        {
            "autoContinue": True,
            "command": row.command,
            "doJumpId": row.number,
            "frame": row.frame,
            "params": [None if math.isnan(value) else value for value in row.params],
            "type": "SimpleItem",
        }
        for row in rows
    ]

    fence: dict[str, Any] = {"circles": circles, "polygons": polygons, "version": 2}
    if mission.fence.breach_return is not None:
        fence["breachReturn"] = _relative_values(mission.fence.breach_return, mission.home)
    return {
        "fileType": "Plan",
        "geoFence": fence,
        "groundStation": GROUND_STATION,
        "mission": {
            "cruiseSpeed": 15,
            "firmwareType": 12,
            "globalPlanAltitudeMode": 1,
            "hoverSpeed": 5,
            "items": items,
            "plannedHomePosition": list(mission.home),
            "vehicleType": VEHICLE_TYPES[uav_type],
            "version": 2,
        },
        "rallyPoints": {
            "points": [_relative_values(point, mission.home) for point in mission.rally],
            "version": 2,
        },
        "version": 1,
    }


def _relative_values(point: Sequence[float], home: GeoPoint) -> list[float]:
    latitude, longitude, _ = ned_to_geodetic(point, home).tolist()
    return [latitude, longitude, 0.0 - point[2]]


def _read_waypoints(
    text: str,
    settings: mavlink.ImportSettings,
    first_row_is_home: bool,
    home: Sequence[float] | None,
) -> Mission:
    numbered = ((number, line.split()) for number, line in enumerate(text.splitlines(), 1))
    lines = [
        (number, columns)
        for number, columns in numbered
        if columns and not columns[0].startswith("#")
    ]

    # the header
    if not lines or " ".join(lines[0][1]) not in _HEADERS:
        first = " ".join(lines[0][1])[:40] if lines else ""
        kind = _area_file([columns for _, columns in lines])
        if kind:
            raise MissionFileError(
                f"line {lines[0][0]}: {first!r}: {kind}, no mission; "
                "QGroundControl keeps both in a .plan"
            )
        raise MissionFileError(
            f"line 1: {first!r}, expected '{WAYPOINTS_HEADER}' or the JSON of a .plan"
        )

    # rows
    if len(lines) - 1 > MAX_ITEMS + 1:
        raise MissionFileError(f"{len(lines) - 1} rows, at most {MAX_ITEMS} items are read")
    rows = [_read_row(columns, line) for line, columns in lines[1:]]

    # home
    notes: tuple[str, ...] = ()
    if first_row_is_home:
        if not rows:
            raise MissionFileError("no rows, expected home in the first")
        first_row = rows.pop(0)
        home_point = geo_point(first_row.params[4:], f"{first_row.where}, home: columns 9 to 11")
        notes = _notes_of_home(first_row)
    elif home is None:
        raise MissionFileError(
            "home: not given, expected latitude, longitude and altitude where the first row is none"
        )
    else:
        home_point = geo_point(home, "home")

    if len(rows) > MAX_ITEMS:
        raise MissionFileError(f"{len(rows)} items, at most {MAX_ITEMS} are mission")
    mission = _finish(rows, home_point, settings, Geofence())
    return replace(mission, lost=(*notes, *mission.lost))


def _notes_of_home(row: mavlink.MavlinkItem) -> tuple[str, ...]:
    """Return notes on a first row that is not home's as ground stations write it."""
    if row.command == mavlink.WAYPOINT and row.frame == mavlink.ABSOLUTE_FRAME and row.number == 0:
        return ()
    home_row = f"index 0, command {mavlink.WAYPOINT}, frame {mavlink.ABSOLUTE_FRAME}"
    return (
        f"{row.where} (command {row.command}, frame {row.frame}): the first row is home and is not "
        f"flown, its altitude is above sea; home's row has {home_row}: put it before this one",
    )


def _area_file(lines: list[list[str]]) -> str:
    """Return the kind of a ground station's file that holds no mission, "" for any other.

    A .ral has lines of RALLY, latitude, longitude …, a .fen a latitude and a longitude on each
    line.
    """
    if lines and all(columns[0].upper() == "RALLY" for columns in lines):
        return "rally points (.ral)"
    try:
        corners = [tuple(map(float, columns)) for columns in lines]
    except ValueError:
        return ""

    fits = len(corners) > 2 and all(
        len(c) == 2 and abs(c[0]) <= 90.0 and abs(c[1]) <= 180.0 for c in corners
    )
    return "the corners of a geofence (.fen)" if fits else ""


def _read_row(columns: list[str], line: int) -> mavlink.MavlinkItem:
    where = f"line {line}"
    if len(columns) != 12:
        raise MissionFileError(f"{where}: {len(columns)} columns, expected 12")
    index = as_integer(_parse(columns[0], f"{where}: index"), f"{where}: index", 0, MAX_ITEMS)

    where = f"item {index}, line {line}"
    as_integer(_parse(columns[1], f"{where}: current"), f"{where}: current", 0, 1)
    frame = as_integer(_parse(columns[2], f"{where}: frame"), f"{where}: frame", 0, 255)
    command = as_integer(
        _parse(columns[3], f"{where}: command"), f"{where}: command", 1, MAX_COMMAND
    )
    params = tuple(
        _parse(column, f"{where}: params[{i}]") for i, column in enumerate(columns[4:11])
    )

    goes_on = bool(_parse(columns[11], f"{where}: autocontinue"))
    row = mavlink.MavlinkItem(command, frame, params, index, where, goes_on)  # type: ignore[arg-type]
    return _without_zero_yaw(row)


def _without_zero_yaw(row: mavlink.MavlinkItem) -> mavlink.MavlinkItem:
    """Return a row of ArduPilot's ground stations: they write 0 for the yaw that an item lacks."""
    if row.command not in mavlink.YAWED or row.params[3] != 0.0:
        return row
    return replace(row, params=(*row.params[:3], math.nan, *row.params[4:]))


def _waypoints(rows: list[mavlink.MavlinkItem], home: GeoPoint) -> str:
    """Return the text of a .waypoints file; home is the first row."""
    home_values = (0.0, 0.0, 0.0, 0.0, *home)
    home_row = mavlink.MavlinkItem(mavlink.WAYPOINT, mavlink.ABSOLUTE_FRAME, home_values)
    lines = [WAYPOINTS_HEADER]
    for row in (home_row, *rows):
        params = list(row.params)
        if row.command in mavlink.YAWED:  # 0 is read as none
            params[3] = 0.0 if math.isnan(params[3]) else params[3] or 360.0
        numbers = [_column(value) for value in params]
        start = (row.number, int(row.number == 0), row.frame, row.command)
        lines.append("\t".join([*map(str, start), *numbers, "1"]))
    return "\n".join(lines) + "\n"


def _column(value: float) -> str:
    """Return an exact number, never with an exponent, which some readers don't know."""
    return "nan" if math.isnan(value) else np.format_float_positional(value, trim="-")


def _parse(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise MissionFileError(f"{where}: {text[:40]!r}, expected a number") from None
    if math.isinf(value):
        raise MissionFileError(f"{where}: {text[:40]!r}, expected a finite number")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number; null stands for a missing one")
