# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""QGroundControl's .plan: its JSON values, checked; structure scans and landings as simple items.

A .plan describes only the layout of these two. Keys: QGroundControl developer guide, "Plan File
Format"; the items and their order: QGroundControl's StructureScanComplexItem and
LandingComplexItem.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.errors import MissionFileError
from rfly_common.geodesy import geodetic_to_ned, ned_to_geodetic
from rfly_missions.mission.mavlink_items import (
    ABSOLUTE_FRAME,
    DO_CHANGE_SPEED,
    DO_LAND_START,
    DO_SET_ROI_NONE,
    LAND,
    LOITER_TO_ALTITUDE,
    MISSION_FRAME,
    RELATIVE_FRAME,
    VTOL_LAND,
    WAYPOINT,
)

SET_CAMERA_TRIGGER_DISTANCE = 206
"""MAV_CMD_DO_SET_CAM_TRIGG_DIST."""
IMAGE_STOP = 2001
"""MAV_CMD_IMAGE_STOP_CAPTURE."""
VIDEO_STOP = 2501
"""MAV_CMD_VIDEO_STOP_CAPTURE."""
ROI_NEXT_WAYPOINT_OFFSET = 196
"""MAV_CMD_DO_SET_ROI_WPNEXT_OFFSET."""
LANDINGS = {"fwLandingPattern": LAND, "vtolLandingPattern": VTOL_LAND}
"""Commands of the landings, by complexItemType."""
STRUCTURE_SCAN = "StructureScan"
"""The complexItemType of a scan around a structure."""
MAX_LAYERS = 1000
"""Number of layers of a scan."""
MAX_CORNERS = 1000
"""Number of corners of a structure."""
MAX_WAY_POINTS = 60_000
"""Number of way-points of a scan."""
MITRE_LIMIT = 4.0
"""Longest mitre of a sharp corner, as a multiple of the scan's distance; it is cut there."""

Item = dict[str, Any]


def get_key(values: dict[str, Any], key: str, where: str) -> Any:
    """Return the value of a key that must be there."""
    if key not in values:
        raise MissionFileError(f"{where}: {key}: missing" if where else f"{key}: missing")
    return values[key]


def expect(values: dict[str, Any], key: str, value: Any, where: str) -> None:
    """Refuse any other value of a key."""
    if key not in values:
        raise MissionFileError(f"{where}{key}: missing, expected {value!r}")
    actual = values[key]
    if actual != value or isinstance(actual, bool):
        raise MissionFileError(f"{where}{key}: {short(actual)}, expected {value!r}")


def as_object(value: Any, where: str) -> dict[str, Any]:
    """Return a JSON object."""
    if not isinstance(value, dict):
        raise MissionFileError(f"{where}: {short(value)}, expected an object")
    return value


def as_list(value: Any, where: str) -> list[Any]:
    """Return a JSON list."""
    if not isinstance(value, list):
        raise MissionFileError(f"{where}: {short(value)}, expected a list")
    return value


def as_number(value: Any, where: str) -> float:
    """Return a number of a reasonable size."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e300:
        raise MissionFileError(f"{where}: {short(value)}, expected a number")
    return float(value)


def as_integer(value: Any, where: str, low: int, high: int) -> int:
    """Return a whole number from low to high."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not abs(value) < 1e300
        or int(value) != value
    ):
        raise MissionFileError(f"{where}: {short(value)}, expected a whole number")
    if not low <= value <= high:
        raise MissionFileError(f"{where}: {short(value)}, expected {low} to {high}")
    return int(value)


def as_boolean(value: Any, where: str) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise MissionFileError(f"{where}: {short(value)}, expected true or false")
    return value


def as_geo_position(value: Any, where: str) -> tuple[float, float]:
    """Return [latitude, longitude] in degrees."""
    numbers = [as_number(v, where) for v in as_list(value, where)]
    if len(numbers) != 2 or abs(numbers[0]) > 90.0 or abs(numbers[1]) > 180.0:
        raise MissionFileError(
            f"{where}: {short(value)}, expected latitude within ±90° and longitude within ±180°"
        )
    return numbers[0], numbers[1]


def short(value: Any) -> str:
    """Return the repr of a value, shortened if it is long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def items_of_pattern(entry: dict[str, Any], where: str) -> list[Item] | None:
    """Return the simple items (command, frame, params) of a landing pattern or a structure scan.

    None for any other pattern. Raises MissionFileError that names the key.
    """
    kind = entry.get("complexItemType")
    if kind == STRUCTURE_SCAN:
        return _structure_scan(entry, f"{where} ({kind})")
    if isinstance(kind, str) and kind in LANDINGS:
        return _landing_pattern(entry, LANDINGS[kind], f"{where} ({kind})")
    return None


def _item(command: int, frame: int, *params: float | None) -> Item:
    return {
        "type": "SimpleItem",
        "command": command,
        "frame": frame,
        "params": [*params, *[0] * (7 - len(params))],
    }


def _landing_pattern(entry: dict[str, Any], land_command: int, where: str) -> list[Item]:
    """Return the start of landing, the speed, camera off, the approach and the landing.

    The approach is a circle down to its altitude, or a way-point there.
    """
    relative = entry.get("altitudesAreRelative")
    if relative is None:  # version 1 has a flag for each
        relative = entry.get("loiterAltitudeRelative", True)
        if entry.get("landAltitudeRelative", relative) != relative:
            raise MissionFileError(
                f"{where}: landAltitudeRelative: expected the value of loiterAltitudeRelative"
            )
    is_relative = as_boolean(relative, f"{where}: altitudesAreRelative")
    frame = RELATIVE_FRAME if is_relative else ABSOLUTE_FRAME

    # places
    key = "landingApproachCoordinate"
    approach = _place(entry, key if key in entry else "loiterCoordinate", where)
    land = _place(entry, "landCoordinate", where)

    # the airspeed, in whole m/s as QGroundControl sends it
    items = [_item(DO_LAND_START, MISSION_FRAME)]
    if as_boolean(entry.get("useDoChangeSpeed", False), f"{where}: useDoChangeSpeed"):
        key = "finalApproachSpeed"
        speed = as_number(get_key(entry, key, where), f"{where}: {key}")
        items.append(_item(DO_CHANGE_SPEED, MISSION_FRAME, 0, math.trunc(speed), -1))

    # camera off
    if entry.get("stopTakingPhotos"):
        items += [
            _item(SET_CAMERA_TRIGGER_DISTANCE, MISSION_FRAME),
            _item(IMAGE_STOP, MISSION_FRAME),
        ]
    if entry.get("stopVideoPhotos"):
        items.append(_item(VIDEO_STOP, MISSION_FRAME))

    # approach
    if as_boolean(entry.get("useLoiterToAlt", True), f"{where}: useLoiterToAlt"):
        radius = as_number(get_key(entry, "loiterRadius", where), f"{where}: loiterRadius")
        clockwise = as_boolean(entry.get("loiterClockwise", True), f"{where}: loiterClockwise")
        signed_radius = radius if clockwise else -radius
        items.append(_item(LOITER_TO_ALTITUDE, frame, 1, signed_radius, 0, 1, *approach))
    else:
        items.append(_item(WAYPOINT, frame, 0, 0, 0, None, *approach))

    yaw = None if land_command == VTOL_LAND else 0
    return [*items, _item(land_command, frame, 0, 0, 0, yaw, *land)]


def _place(entry: dict[str, Any], key: str, where: str) -> tuple[float, float, float]:
    values = as_list(get_key(entry, key, where), f"{where}: {key}")
    if len(values) != 3:
        raise MissionFileError(
            f"{where}: {key}: {short(values)}, expected latitude, longitude and altitude"
        )
    return (
        *as_geo_position(values[:2], f"{where}: {key}"),
        as_number(values[2], f"{where}: {key}"),
    )


def _structure_scan(entry: dict[str, Any], where: str) -> list[Item]:
    """Return the way in, round the structure once per layer with the camera on, and out again."""

    def number(values: dict[str, Any], key: str, default: float | None = None) -> float:
        return as_number(values.get(key, default), f"{where}: {key}")

    # the camera
    camera = as_object(get_key(entry, "CameraCalc", where), f"{where}: CameraCalc")
    height = number(entry, "StructureHeight")
    entrance = number(entry, "EntranceAltitude", entry.get("Altitude", height))
    footprint = number(camera, "AdjustedFootprintFrontal")
    along = number(camera, "AdjustedFootprintSide", 0.0)
    distance = number(camera, "DistanceToSurface")
    if not (footprint > 0.0 and 0.0 <= distance <= 10_000.0):
        raise MissionFileError(
            f"{where}: AdjustedFootprintFrontal {footprint:g} m, DistanceToSurface {distance:g} m, "
            "expected a footprint above 0 and a distance of 0 to 10,000 m"
        )

    # layers and corners
    layers = as_integer(get_key(entry, "Layers", where), f"{where}: Layers", 1, MAX_LAYERS)
    from_top = as_boolean(entry.get("StartFromTop", False), f"{where}: StartFromTop")
    corners = _flight_polygon(
        as_list(get_key(entry, "polygon", where), f"{where}: polygon"), distance, where
    )
    if layers * len(corners) > MAX_WAY_POINTS:
        raise MissionFileError(
            f"{where}: {layers} layers of {len(corners)} corners, "
            f"allowed: {MAX_WAY_POINTS:,} in all"
        )
    first = height if from_top else number(entry, "ScanBottomAlt", 0.0)
    step = -footprint if from_top else footprint

    # in
    door = _item(WAYPOINT, RELATIVE_FRAME, 0, 0, 0, None, *corners[0], entrance)
    pitch = number(entry, "GimbalPitch", 0.0)
    look = _item(ROI_NEXT_WAYPOINT_OFFSET, MISSION_FRAME, 0, 0, 0, 0, pitch, 0, 90)
    items = [door, look]

    # round
    for layer in range(layers):
        altitude = first + (layer + 0.5) * step
        ring = [
            _item(WAYPOINT, RELATIVE_FRAME, 0, 0, 0, None, *corner, altitude)
            for corner in (*corners, corners[0])
        ]
        trigger = [_item(SET_CAMERA_TRIGGER_DISTANCE, MISSION_FRAME, along, 0, 1)]
        items += [ring[0], *trigger, *ring[1:], _item(SET_CAMERA_TRIGGER_DISTANCE, MISSION_FRAME)]

    # out
    return [*items, _item(DO_SET_ROI_NONE, MISSION_FRAME), dict(door)]


def _flight_polygon(polygon: list[Any], distance: float, where: str) -> list[list[float]]:
    """Return latitude and longitude of corners around a polygon, a distance (m) outside."""
    if not 3 <= len(polygon) <= MAX_CORNERS:
        raise MissionFileError(
            f"{where}: polygon: {len(polygon)} corners, expected 3 to {MAX_CORNERS}"
        )
    places = [
        as_geo_position(value, f"{where}: polygon[{index}]") for index, value in enumerate(polygon)
    ]

    origin = (*places[0], 0.0)
    points = geodetic_to_ned([(*place, 0.0) for place in places], origin)[:, :2]
    outside = moved_outwards(points, distance, where)
    heights = np.zeros(len(outside))
    return ned_to_geodetic(np.column_stack([outside, heights]), origin)[:, :2].tolist()


def moved_outwards(points: Floats, distance: float, where: str = "polygon") -> Floats:
    """Return the corners (n, 2) of a polygon (n, 2), its edges moved outwards by a distance."""
    edges = np.roll(points, -1, axis=0) - points
    lengths = np.linalg.norm(edges, axis=1, keepdims=True)
    following = np.roll(points, -1, axis=0)
    area = float(np.sum(points[:, 0] * following[:, 1] - following[:, 0] * points[:, 1]))
    if not (lengths > 1e-6).all() or abs(area) < 1e-6:
        raise MissionFileError(f"{where}: polygon: two corners in one place, or no area")

    outward = np.column_stack([edges[:, 1], -edges[:, 0]]) / lengths * np.sign(area)
    before = np.roll(outward, 1, axis=0)
    bisector = outward + before
    squared = np.maximum(np.sum(bisector**2, axis=1, keepdims=True), 4.0 / MITRE_LIMIT**2)
    return points + 2.0 * distance * bisector / squared
