# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Waypoint files: CSV, NumPy, GPX, nav_msgs/Path.

Files may come from anywhere: every size has a limit.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.config.documents import decode_text, read_limited
from rfly_common.errors import ConfigError
from rfly_common.frames import ned_to_enu
from rfly_common.geodesy import geodetic_to_ned
from rfly_common.untrusted_files.numpy_files import read_npy_header, read_npy_values
from rfly_common.untrusted_files.reader_errors import reader_errors
from rfly_common.untrusted_files.xml_elements import XmlElements
from rfly_terrain.files.points import Columns, parse_points
from rfly_trajectory.paths.nav_path import (
    MAX_COORDINATE,
    parse_nav_path,
    without_repeats,
)

# limits of a file, of its points, and of its XML elements
MAX_FILE_BYTES = 10_000_000
MAX_POINTS = 10_000
MAX_ELEMENTS = 500_000

_GPX_POINTS = ("trkpt", "rtept", "wpt")
"""Kinds of points in a GPX file: the first kind that a file has is read."""


class _FilePoints(NamedTuple):
    """Points of a file as they are written."""

    points: Floats
    """Numbers (n, 2), or (n, 3) with heights."""
    geodetic: bool
    """Whether they are latitudes and longitudes."""
    notes: tuple[str, ...] = ()
    """Sentences about what is not used."""


def read_points(
    path: str | os.PathLike[str],
    geo_origin: Sequence[float] = (),
    *,
    heights: bool = False,
    notes: list[str] | None = None,
) -> Floats:
    """Return the waypoints (n, 2) [east, north] of a file, m.

    With `heights` they are (n, 3), z up, if the file has heights. A point on the one before it,
    seen from above, is left out.

    - csv, txt: a heading names the columns x, y (or east, north), or lat, lon, and z (or alt, ele).
      Without one the first two are x, y, and there are no heights.
    - npy: an array (n, 2 or more) of numbers; the first two columns are x, y, a third is z.
    - gpx: the points of the tracks, else of the routes, else the waypoints, in their order.
    - yaml: the output of `ros2 topic echo` of a nav_msgs/Path in the frame map or map_ned; the last
      of several messages.

    `notes` gets a sentence about columns that are not used. `geo_origin` is the map's origin:
    [latitude, longitude], degrees, or for heights [latitude, longitude, altitude]. Files with
    latitudes need it. Raises ConfigError with the key `file`, the file's name, and the line where
    there are lines.
    """
    try:
        return _read_points(Path(path), geo_origin, heights, [] if notes is None else notes)
    except ConfigError as error:
        raise error.inside("file") from error.__cause__


def _read_points(
    path: Path, geo_origin: Sequence[float], heights: bool, notes: list[str]
) -> Floats:
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise ConfigError(f"{str(path)!r} is not a .csv, .npy, .gpx or .yaml file")

    data = read_limited(path, "", MAX_FILE_BYTES)
    points, geodetic, file_notes = reader(data, str(path), heights and len(geo_origin) != 2)
    notes.extend(file_notes)
    if len(points) > MAX_POINTS:
        raise ConfigError(
            f"{str(path)!r} holds {len(points)} points, at most {MAX_POINTS} are allowed"
        )

    if geodetic:
        if not geo_origin:
            raise ConfigError(
                f"{str(path)!r} holds latitudes and longitudes, which need the key geo_origin too"
            )
        points = _map_points(points, geo_origin)
    if not (np.isfinite(points).all() and np.abs(points).max(initial=0.0) <= MAX_COORDINATE):
        raise ConfigError(
            f"{str(path)!r} holds a point that is not within {MAX_COORDINATE:g} m of the origin"
        )
    return without_repeats(points if heights else np.ascontiguousarray(points[:, :2]))


def _map_points(points: Floats, geo_origin: Sequence[float]) -> Floats:
    """Return points (n, 2 or 3) of latitude, longitude and height as ENU, m, of the same shape."""
    columns = points.shape[1]
    altitude = float(geo_origin[2]) if columns == 3 else 0.0
    origin = (float(geo_origin[0]), float(geo_origin[1]), altitude)
    if columns == 2:
        points = np.concatenate([points, np.zeros((len(points), 1))], axis=1)
    enu = np.asarray(ned_to_enu(geodetic_to_ned(points, origin)), float)
    return enu[:, :columns].copy()


def _yaml(data: bytes, name: str, heights: bool) -> _FilePoints:
    """Return the points of a YAML file, which are never geodetic."""
    return _FilePoints(parse_nav_path(decode_text(data, name), name), False)


def _csv(data: bytes, name: str, heights: bool) -> _FilePoints:
    """Return the points of a CSV file."""
    table = parse_points(decode_text(data, name), name, heights=heights, most=MAX_POINTS)
    return _FilePoints(table.points, table.columns is Columns.LATITUDE_LONGITUDE, table.notes)


def _number(text: str) -> float | None:
    """Return a finite number, or None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _npy(data: bytes, name: str, heights: bool) -> _FilePoints:
    """Return the points of a NumPy file, which are never geodetic."""
    file = io.BytesIO(data)
    with reader_errors(lambda text: ConfigError(f"{name!r} is not a NumPy array: {text}")):
        header = read_npy_header(file)
        shape = header.shape
        if not header.numbers or len(shape) != 2 or shape[1] < 2:
            raise ConfigError(
                f"{name!r} holds an array of shape {shape}, expected numbers (n, 2): east, north"
            )
        array = read_npy_values(file, header, np.float64, len(data))  # a number has at least a byte
    used = 3 if heights and shape[1] == 3 else 2
    unused = ", ".join(str(number) for number in range(used + 1, min(shape[1], 10) + 1))
    notes = (f"{name}: of {shape[1]} columns number {unused} are not used",) if unused else ()
    return _FilePoints(np.array(array[:, :used]), False, notes)


class _GpxPoints(XmlElements):
    """Latitude, longitude and height of each kind of point, as they are written."""

    def __init__(self, name: str) -> None:
        super().__init__(name, MAX_ELEMENTS)
        self.points_of: dict[str, list[list[str]]] = {kind: [] for kind in _GPX_POINTS}
        self._text: list[str] = []

    def opened(self, tag: str, attributes: dict[str, str]) -> None:
        points = self.points_of.get(tag)
        if points is not None:
            points.append([attributes.get("lat", ""), attributes.get("lon", ""), ""])
            if len(points) > MAX_POINTS:
                raise self.error(f"more than {MAX_POINTS} points")
        self._text.clear()

    def data(self, text: str) -> None:
        if self._open and self._open[-1] == "ele":
            self._text.append(text)

    def closed(self, tag: str) -> None:
        points = self.points_of.get(self._open[-1]) if self._open else None
        if tag == "ele" and points:
            points[-1][2] = "".join(self._text)


def _gpx(data: bytes, name: str, heights: bool) -> _FilePoints:
    """Return the points of a GPX file, which are always geodetic."""
    target = _GpxPoints(name)
    target.read(data)
    kind = next((kind for kind in _GPX_POINTS if target.points_of[kind]), None)
    if kind is None:
        raise ConfigError(f"{name!r} holds no track, no route and no waypoint")
    rows = target.points_of[kind]
    with_heights = heights and any(height for _, _, height in rows)

    points = []
    for number, (latitude_text, longitude_text, height_text) in enumerate(rows):
        latitude = _number(latitude_text)
        longitude = _number(longitude_text)
        if latitude is None or longitude is None or abs(latitude) > 90.0 or abs(longitude) > 360.0:
            raise ConfigError(
                f"{name!r}: {kind} {number + 1} has no latitude and longitude in degrees"
            )

        height = _number(height_text) if with_heights else 0.0
        if height is None:
            raise ConfigError(
                f"{name!r}: {kind} {number + 1} has no height but others have; ele is expected in m"
            )
        points.append((latitude, longitude, height))
    return _FilePoints(np.array(points, float)[:, : 3 if with_heights else 2], True)


_READERS = {
    ".csv": _csv,
    ".txt": _csv,
    ".npy": _npy,
    ".gpx": _gpx,
    ".yaml": _yaml,
    ".yml": _yaml,
}
