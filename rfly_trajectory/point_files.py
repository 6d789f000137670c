"""Way-points from files: CSV, NumPy and GPX. Files that nobody needs to trust; every size has a limit."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import defusedxml.ElementTree
import numpy as np
from defusedxml.common import DefusedXmlException
from numpy.typing import NDArray

from rfly_common.errors import ConfigError
from rfly_common.geodesy import geodetic_to_ned

Floats = NDArray[np.float64]

MAX_FILE_BYTES = 10_000_000
MAX_POINTS = 10_000
SAME_POINT = 1e-3
"""m: points nearer to the one before are left out, as recorders write them while they stand"""
_MAX_COORDINATE = 1e7
_COLUMNS = {
    "x": ("x", "east", "easting"),
    "y": ("y", "north", "northing"),
    "latitude": ("lat", "latitude"),
    "longitude": ("lon", "lng", "long", "longitude"),
}
_GPX_POINTS = ("trkpt", "rtept", "wpt")
"""tracks come before routes, routes before way-points: the first kind that a file has is read"""


def read_points(path: str | os.PathLike[str], geo_origin: Sequence[float] = ()) -> Floats:
    """(n, 2) way-points [east, north] of a .csv, .npy or .gpx file, m; a point on the one before it is left out.

    - csv: a heading names the columns x, y (or east, north), or lat, lon; without one the first two are x, y.
    - npy: an array (n, 2 or more) of numbers; the first two columns are x, y.
    - gpx: the points of the tracks, else of the routes, else the way-points, in their order.

    `geo_origin` [latitude, longitude], degrees, is where the map's origin lies; what holds latitudes needs it. Raises
    ConfigError, `file: …`, that names the file and the line where there are lines.
    """
    path = Path(path)
    reader = {".csv": _csv, ".txt": _csv, ".npy": _npy, ".gpx": _gpx}.get(path.suffix.lower())
    if reader is None:
        raise ConfigError(f"file: {str(path)!r} is not a .csv, .npy or .gpx file")
    points, geodetic = reader(_read(path), str(path))
    if len(points) > MAX_POINTS:
        raise ConfigError(f"file: {str(path)!r} holds {len(points)} points, at most {MAX_POINTS} are taken")
    if geodetic:
        if not geo_origin:
            raise ConfigError(
                f"file: {str(path)!r} holds latitudes and longitudes, which need the key geo_origin beside it"
            )
        origin = (float(geo_origin[0]), float(geo_origin[1]), 0.0)
        above = np.concatenate([points, np.zeros((len(points), 1))], axis=1)
        points = geodetic_to_ned(above, origin)[:, 1::-1].copy()
    if not (np.isfinite(points).all() and np.abs(points).max(initial=0.0) <= _MAX_COORDINATE):
        raise ConfigError(f"file: {str(path)!r} holds a point that is not within {_MAX_COORDINATE:g} m of the origin")
    return _without_repeats(points)


def _without_repeats(points: Floats) -> Floats:
    apart = np.hypot(*np.diff(points, axis=0).T) > SAME_POINT
    return points[np.concatenate([np.ones(min(len(points), 1), bool), apart])]


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"file: {str(path)!r}: {error.strerror}") from None
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(f"file: {str(path)!r} is larger than {MAX_FILE_BYTES} bytes")
    return data


def _csv(data: bytes, name: str) -> tuple[Floats, bool]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"file: {name}:{data[: error.start].count(10) + 1}: not UTF-8 text") from None
    first = text.partition("\n")[0]
    delimiter = next((mark for mark in ",;\t" if mark in first), ",")
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    columns, geodetic = (0, 1), False
    points: list[tuple[float, float]] = []
    seen_any = False
    try:
        for row in rows:
            if not row or not "".join(row).strip() or row[0].lstrip().startswith("#"):
                continue
            if not seen_any and _number(row[0]) is None:
                columns, geodetic = _heading(row, f"{name}:{rows.line_num}")
                seen_any = True
                continue
            seen_any = True
            values = [_number(row[column]) if column < len(row) else None for column in columns]
            if values[0] is None or values[1] is None:
                raise ConfigError(f"file: {name}:{rows.line_num}: {','.join(row)[:60]!r} holds no two numbers")
            points.append((values[0], values[1]))
    except csv.Error as error:
        raise ConfigError(f"file: {name}:{rows.line_num}: {error}") from None
    return np.array(points, float).reshape(-1, 2), geodetic


def _heading(row: list[str], place: str) -> tuple[tuple[int, int], bool]:
    names = [cell.strip().lower() for cell in row]
    found = {key: next((names.index(word) for word in words if word in names), None) for key, words in _COLUMNS.items()}
    for a, b, geodetic in (("x", "y", False), ("latitude", "longitude", True)):
        first, second = found[a], found[b]
        if first is not None and second is not None:
            return (first, second), geodetic
    raise ConfigError(f"file: {place}: expected the columns x and y, or lat and lon, not {', '.join(names)[:60]!r}")


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _npy(data: bytes, name: str) -> tuple[Floats, bool]:
    try:
        array: Any = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise ConfigError(f"file: {name!r} is not a NumPy array: {error}") from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu" or array.ndim != 2 or array.shape[1] < 2:
        shape = getattr(array, "shape", ())
        raise ConfigError(f"file: {name!r} holds an array of shape {shape}, expected numbers (n, 2): east, north")
    return np.array(array[:, :2], float), False


def _gpx(data: bytes, name: str) -> tuple[Floats, bool]:
    try:
        root = defusedxml.ElementTree.fromstring(data, forbid_dtd=True)
    except ParseError as error:
        raise ConfigError(f"file: {name}:{error.position[0]}: not valid XML: {error}") from None
    except (DefusedXmlException, ValueError) as error:
        raise ConfigError(f"file: {name!r}: document types and entities are not taken: {error}") from None
    for kind in _GPX_POINTS:
        found = [element for element in root.iter() if element.tag.rpartition("}")[2] == kind]
        if found:
            break
    else:
        raise ConfigError(f"file: {name!r} holds no track, no route and no way-point")
    points = []
    for number, element in enumerate(found):
        latitude, longitude = _number(element.get("lat", "")), _number(element.get("lon", ""))
        if latitude is None or longitude is None or abs(latitude) > 90.0 or abs(longitude) > 360.0:
            raise ConfigError(f"file: {name!r}: {kind} {number + 1} has no latitude and longitude in degrees")
        points.append((latitude, longitude))
    return np.array(points, float), True
