"""Fleet files: YAML checked against `data/schemas/fleet.schema.json`, to a Fleet."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, NamedTuple

import numpy as np

from rfly_common.config.documents import (
    check_schema,
    load_schema,
    parse_mapping,
    read_config,
    shipped_names,
)
from rfly_common.config.marked_yaml import Document, Key
from rfly_common.errors import ConfigError, TooLargeError
from rfly_trajectory.fleet.fleet import Fleet, Limits, Vehicle
from rfly_trajectory.motion.formation import formation_offsets
from rfly_trajectory.motion.speed_profile import SpeedProfile
from rfly_trajectory.paths.dubins import Dubins
from rfly_trajectory.paths.nav_path import SAME_POINT
from rfly_trajectory.paths.path import Path, rotation
from rfly_trajectory.paths.point_files import read_points
from rfly_trajectory.paths.shapes import (
    Circle,
    Ellipse,
    FigureEight,
    LawnMower,
    Line,
    Point,
    Polyline,
    Shape,
    Spline,
)

MAX_FILE_BYTES = 10_000_000
MAX_VEHICLES = 100_000
MAX_BYTES_PER_VEHICLE = 500
"""of the file, where it is read for fewer vehicles than MAX_VEHICLES"""


def shipped_fleets() -> list[str]:
    """Names of the fleets that come with the package."""
    return shipped_names("rfly_trajectory", "fleets")


def load_fleet(name_or_path: str | os.PathLike[str], max_vehicles: int = MAX_VEHICLES) -> Fleet:
    """The fleet of a file, or of the shipped fleet of that name.

    Raises ConfigError that names file, line, key and what is allowed; a fleet of too many vehicles
    is refused before the first of them is made.
    """
    if not os.fspath(name_or_path):
        raise ConfigError(
            f"fleet: neither a file nor a name is given; shipped fleets: {', '.join(shipped_fleets())}"
        )
    max_bytes = min(MAX_FILE_BYTES, MAX_BYTES_PER_VEHICLE * max_vehicles)
    data, file, name = read_config(
        "fleet", "rfly_trajectory", "fleets", name_or_path, max_bytes, "fleet"
    )
    return parse_fleet(data, file, name, FilePath(file).parent, max_vehicles)


def parse_fleet(
    data: bytes,
    file: str,
    name: str = "",
    folder: FilePath = FilePath(),
    max_vehicles: int = MAX_VEHICLES,
) -> Fleet:
    """The fleet of a file's content; `file` is what errors call it, and files that it names lie in
    `folder`.
    """
    document = parse_mapping(data, file, "version and vehicles")
    _check_count(document, max_vehicles)
    check_schema(document, load_schema("rfly_trajectory", "fleet"))
    reader = _Reader(document, folder)
    return Fleet(
        reader.vehicles(),
        name=name,
        min_separation=document.value.get("min_separation"),
        locations={"min_separation": document.location(("min_separation",))},
    )


def _check_count(document: Document, most: int) -> None:
    """ConfigError for too many vehicles, with all copies; what is no count is left to the schema."""
    entries = document.value.get("vehicles")
    defaults = document.value.get("defaults")
    common = defaults.get("count", 1) if isinstance(defaults, dict) else 1
    counts = [
        entry.get("count", common) if isinstance(entry, dict) else 1
        for entry in (entries if isinstance(entries, list) else [])
    ]
    total = sum(max(1, int(count)) if isinstance(count, int | float) else 1 for count in counts)
    if total > most:
        where = document.location(("vehicles",))
        raise TooLargeError(f"{where}: {total} of them with all copies, at most {most} are taken")


class _Setting(NamedTuple):
    """Where the value of a key of one vehicle stands: in the vehicle, or in `defaults`."""

    value: Any
    path: tuple[Key, ...]


class _Reader:
    """Makes vehicles of a document that fits the schema."""

    def __init__(self, document: Document, folder: FilePath) -> None:
        self._document = document
        self._folder = folder
        self._defaults: dict[str, Any] = document.value.get("defaults", {})
        self._paths: dict[tuple[str, bool], Path] = {}
        self._owners: dict[tuple[str, Any], int] = {}

    def vehicles(self) -> list[Vehicle]:
        entries: list[dict[str, Any]] = self._document.value["vehicles"]
        return [vehicle for i in range(len(entries)) for vehicle in self._copies(i)]

    def _copies(self, index: int) -> Iterator[Vehicle]:
        count = int(self._get(index, "count", 1).value)  # the schema takes 3.0 for a whole number
        shape = self._get(index, "shape")
        phase = self._get(index, "phase", 0.0).value
        kind = self._get(index, "kind", "ground")
        keys = {*self._document.value["vehicles"][index], *self._defaults}
        path = self._path(shape, heights=kind.value != "ground" and "altitude" not in keys)
        profile = self._profile(self._get(index, "speed"))
        first_delay, delay_step = _delays(self._get(index, "delay", 0.0).value, count)
        spacing = self._get(index, "spacing", 0.0)
        back, shift = self._spacing(spacing, path, count)
        if back and not path.closed and (count - 1) * back > phase:
            raise self._document.error(
                spacing.path,
                f"the last of {count} copies would start {(count - 1) * back - phase:.10g} m before the path begins; "
                f"a phase of at least {(count - 1) * back:.10g} makes room",
            )
        offsets, moves = self._formation(index, count)
        wheelbase, track = (self._optional_length(index, key) for key in ("wheelbase", "track"))
        limits = Limits(**self._get(index, "limits", {}).value)
        locations = self._locations(index, limits)
        altitude = self._get(index, "altitude", {"agl": 0.0}).value
        if kind.value != "ground" and path.altitude is None and "altitude" not in keys:
            raise self._document.error(
                kind.path,
                f"{kind.value} needs the key altitude beside it, or waypoints with heights",
            )
        if path.altitude is not None and "altitude" not in self._document.value["vehicles"][index]:
            altitude = {"agl": 0.0}  # heights of its own win over the altitude in defaults
        scale = self._get(index, "scale", 1.0).value
        at_end = self._get(index, "at_end", "repeat" if path.closed else "stop").value
        vehicle_type = int(self._get(index, "type").value)
        entry = self._document.value["vehicles"][index]
        for copy in range(count):
            own_id = int(entry["id"]) + copy
            own_name = entry.get("name", "vehicle")
            if "name" not in entry or count > 1:
                own_name += f"_{own_id if 'name' not in entry else copy + 1}"
            self._own(index, "id", own_id)
            self._own(index, "name", own_name)
            start = phase - copy * back
            try:
                vehicle = Vehicle(
                    name=own_name,
                    id=own_id,
                    vehicle_type=vehicle_type,
                    path=path,
                    profile=profile,
                    at_end=at_end,
                    kind=kind.value,
                    delay=first_delay + copy * delay_step,
                    phase=start,
                    shift=(copy * shift[0] + moves[copy][0], copy * shift[1] + moves[copy][1]),
                    offset=offsets[copy],
                    wheelbase=wheelbase,
                    track=track,
                    limits=limits,
                    locations=locations,
                    height=float(altitude.get("agl", altitude.get("absolute", 0.0))),
                    absolute="absolute" in altitude,
                    fit_ground=self._get(index, "fit_ground", False).value,
                    scale=tuple(scale) if isinstance(scale, list) else (scale,) * 3,
                )
            except ConfigError as error:
                raise self._moved(error, index) from None
            yield vehicle

    def _get(self, index: int, key: str, default: Any = None) -> _Setting:
        entry = self._document.value["vehicles"][index]
        if key in entry:
            return _Setting(entry[key], ("vehicles", index, key))
        if key in self._defaults:
            return _Setting(self._defaults[key], ("defaults", key))
        if default is None:
            raise self._document.error(
                ("vehicles", index), f"the key {key} is missing, here and in defaults"
            )
        return _Setting(default, ("vehicles", index))

    def _optional_length(self, index: int, key: str) -> float | None:
        value = self._get(index, key, 0.0).value
        return float(value) if value else None  # the schema takes none that is 0

    def _path(self, shape: _Setting, heights: bool) -> Path:
        """`heights`: whether those of a file of waypoints are wanted."""
        key = json.dumps(shape.value, sort_keys=True), heights and "file" in shape.value
        if key not in self._paths:
            try:
                self._paths[key] = _shape(shape.value, self._folder, heights).path()
            except ConfigError as error:
                raise self._inside(_file_error(error, shape.value), shape.path) from None
        return self._paths[key]

    def _profile(self, speed: _Setting) -> SpeedProfile:
        if not isinstance(speed.value, dict):
            return SpeedProfile(float(speed.value))
        return SpeedProfile(**{key: float(value) for key, value in speed.value.items()})

    def _spacing(
        self, spacing: _Setting, path: Path, count: int
    ) -> tuple[float, tuple[float, float]]:
        """Metres along the path from each copy back to the next, and the shift of its whole path."""
        if spacing.value == "even":
            if not path.closed:
                raise self._document.error(
                    spacing.path, "even needs a closed path, this one is open"
                )
            return path.length / count, (0.0, 0.0)
        if isinstance(spacing.value, list):
            return 0.0, (float(spacing.value[0]), float(spacing.value[1]))
        return float(spacing.value), (0.0, 0.0)

    def _formation(
        self, index: int, count: int
    ) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
        """Of each copy, [ahead, left] in the path's frame, and [east, north] by which its whole
        path is moved.
        """
        nowhere = [(0.0, 0.0)] * count
        spot = self._get(index, "formation", {})
        if not spot.value:
            return nowhere, nowhere
        numbers = {
            key: value
            for key, value in spot.value.items()
            if key not in ("type", "frame", "heading_deg")
        }
        if "columns" in numbers:
            numbers["columns"] = int(numbers["columns"])
        try:
            offsets = formation_offsets(spot.value["type"], count, **numbers)
        except ConfigError as error:
            raise self._inside(error, spot.path) from None
        if spot.value.get("frame", "path") == "path":
            if "heading_deg" in spot.value:
                raise self._document.error(
                    (*spot.path, "heading_deg"), "only with frame: world, this formation turns"
                )
            return [(a, b) for a, b in offsets.tolist()], nowhere
        moved = offsets @ rotation(spot.value.get("heading_deg", 0.0))
        return nowhere, [(a, b) for a, b in moved.tolist()]

    def _own(self, index: int, key: str, value: Any) -> None:
        """Refuse an id or name that another vehicle has."""
        line = self._document.line(("vehicles", index, key))
        if (key, value) in self._owners:
            raise self._document.error(
                ("vehicles", index, key),
                f"{value!r} belongs to the vehicle of line {self._owners[key, value]} already, each needs its own",
            )
        self._owners[key, value] = line

    def _moved(self, error: ConfigError, index: int) -> ConfigError:
        """An error `key: text` of a vehicle, told with file and line."""
        key = str(error).partition(":")[0]
        in_defaults = key not in self._document.value["vehicles"][index] and key in self._defaults
        return self._inside(error, ("defaults",) if in_defaults else ("vehicles", index))

    def _inside(self, error: ConfigError, path: tuple[Key, ...]) -> ConfigError:
        """An error `key: text` or `key[3]: text` about a value inside of `path`."""
        found = re.match(r"(\w+)(?:\[(\d+)\])?: (.*)", str(error))
        if found is None:
            return self._document.error(path, str(error))
        key, element, text = found.groups()
        return self._document.error((*path, key, *([int(element)] if element else [])), text)

    def _locations(self, index: int, limits: Limits) -> dict[str, str]:
        """Where the keys stand that a check may name."""
        spots = {key: self._get(index, key, {}).path for key in ("shape", "altitude", "limits")}
        locations = {key: self._document.location(spot) for key, spot in spots.items()}
        set_here = {key for key, value in limits._asdict().items() if value is not None}
        return locations | {
            f"limits.{key}": self._document.location((*spots["limits"], key)) for key in set_here
        }


def _delays(delay: Any, count: int) -> tuple[float, float]:
    """Delay of the first copy, and from one to the next. s"""
    if isinstance(delay, dict):
        return float(delay.get("first", 0.0)), float(delay.get("step", 0.0))
    return (float(delay), 0.0) if count == 1 else (0.0, float(delay))


def _file_error(error: ConfigError, shape: Mapping[str, Any]) -> ConfigError:
    """What is wrong with points is told of the file that they come from."""
    if "file" in shape and str(error).startswith("points"):
        return ConfigError(f"file: {shape['file']!r}: {error}")
    return error


def _shape(shape: Mapping[str, Any], folder: FilePath, heights: bool) -> Shape:
    clockwise = shape.get("direction") == "clockwise"
    match shape["type"]:
        case "line":
            return Line(shape["from"], shape["to"])
        case "circle":
            return Circle(
                shape["center"], shape["radius"], shape.get("start_angle_deg", 0.0), clockwise
            )
        case "figure_eight":
            return FigureEight(
                shape["center"], shape["width"], shape["height"], shape.get("heading_deg", 0.0)
            )
        case "ellipse":
            heading = shape.get("heading_deg", 0.0)
            return Ellipse(shape["center"], shape["width"], shape["height"], heading, clockwise)
        case "lawn_mower":
            size = shape["length"], shape["width"], shape["spacing"]
            return LawnMower(shape["center"], *size, shape.get("heading_deg", 0.0))
        case "dubins":
            return Dubins(shape["poses"], shape["turning_radius"], shape.get("closed", False))
        case "spline":
            return Spline(_points(shape, folder, heights), shape.get("closed", False))
        case _:
            return Polyline(
                _points(shape, folder, heights),
                shape.get("corner_radius", 0.0),
                shape.get("closed", False),
            )


def _points(shape: Mapping[str, Any], folder: FilePath, heights: bool) -> Sequence[Point]:
    """Those of the shape itself, or of the file that it names."""
    if ("points" in shape) == ("file" in shape):
        raise ConfigError("expected exactly one of the keys file, points")
    if "points" in shape:
        return shape["points"]
    read = read_points(folder / shape["file"], shape.get("geo_origin", ()), heights=heights)
    if (
        shape.get("closed", False)
        and len(read) > 1
        and np.hypot(*(read[-1] - read[0])[:2]) <= SAME_POINT
    ):
        read = read[:-1]  # a loop as recorded ends where it began
    return read.tolist()


MAX_SHARDS = 10_000


def shard_range(shard: str, vehicles: int) -> range:
    """Indices of the vehicles of a shard `i/n`, i from 0 to n - 1: consecutive, as even as can be,
    and each vehicle in exactly one shard. Raises ConfigError for anything else than `i/n`.
    """
    found = re.fullmatch(r"\s*([0-9]{1,5})\s*/\s*([0-9]{1,5})\s*", shard)
    if found is None or not int(found[1]) < int(found[2]) <= MAX_SHARDS:
        raise ConfigError(
            f"shard: {shard!r}, expected i/n with i from 0 to n - 1 and n up to {MAX_SHARDS}, such as 0/2 and 1/2 for "
            "the two halves of a fleet"
        )
    i = int(found[1])
    n = int(found[2])
    return range(i * vehicles // n, (i + 1) * vehicles // n)
