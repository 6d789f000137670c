# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fleet files: YAML checked against `data/schemas/fleet.schema.json`, read as a Fleet.

`FleetFile` changes entries and writes the file again.
"""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
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
from rfly_common.config.marked_yaml import Document, dump_yaml
from rfly_common.config.vehicle_models import type_number
from rfly_common.errors import ConfigError, Key, TooLargeError
from rfly_trajectory.fleet.deconflict import Change
from rfly_trajectory.fleet.fleet import Fleet, Limits, Vehicle
from rfly_trajectory.motion.formation import formation_offsets
from rfly_trajectory.motion.speed_profile import SpeedProfile
from rfly_trajectory.paths import dubins as dubins  # registers its shape
from rfly_trajectory.paths.nav_path import SAME_POINT
from rfly_trajectory.paths.path import Path, rotation
from rfly_trajectory.paths.point_files import read_points
from rfly_trajectory.paths.shapes import PathShape, Point

# limits of a file
MAX_FILE_BYTES = 10_000_000
MAX_VEHICLES = 100_000
MAX_BYTES_PER_VEHICLE = 500
"""Limit of a file that is read for fewer vehicles than MAX_VEHICLES, bytes."""


def shipped_fleets() -> list[str]:
    """Return the names of the fleets that come with the package."""
    return shipped_names("rfly_trajectory", "fleets")


def load_fleet(name_or_path: str | os.PathLike[str], max_vehicles: int = MAX_VEHICLES) -> Fleet:
    """Return the fleet of a file, or of the shipped fleet with that name.

    Raises ConfigError that names file, line, key and what is allowed. A fleet of too many vehicles
    is refused before the first of them is made.
    """
    data, file, name = read_fleet_file(name_or_path, max_vehicles)
    return parse_fleet(data, file, name, FilePath(file).parent, max_vehicles)


def read_fleet_file(
    name_or_path: str | os.PathLike[str], max_vehicles: int = MAX_VEHICLES
) -> tuple[bytes, str, str]:
    """Return the content of a fleet file, its label in errors, and its name.

    Raises ConfigError for a file that can't be read or is too large for its number of vehicles.
    """
    if not os.fspath(name_or_path):
        raise ConfigError(
            "fleet: neither a file nor a name is given; shipped fleets: "
            f"{', '.join(shipped_fleets())}"
        )
    max_bytes = min(MAX_FILE_BYTES, MAX_BYTES_PER_VEHICLE * max_vehicles)
    return read_config("fleet", "rfly_trajectory", "fleets", name_or_path, max_bytes, "fleet")


def parse_fleet(
    data: bytes,
    file: str,
    name: str = "",
    folder: FilePath = FilePath(),
    max_vehicles: int = MAX_VEHICLES,
) -> Fleet:
    """Return the fleet of a file's content.

    `file` is its name in errors; files that it names lie in `folder`.
    """
    document = parse_mapping(data, file, "version and vehicles")
    _check_count(document, max_vehicles)
    check_schema(document, load_schema("rfly_trajectory", "fleet"))
    reader = _FleetReader(document, folder)
    vehicles = reader.vehicles()
    return Fleet(
        vehicles,
        name=name,
        min_separation=document.value.get("min_separation"),
        locations={"min_separation": document.location(("min_separation",))},
        notes=reader.notes,
    )


def _check_count(document: Document, most: int) -> None:
    """Raise ConfigError for too many vehicles with all copies; the schema checks the types."""
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
        raise TooLargeError(
            f"{where}: {total} vehicles with all copies, at most {most} are allowed"
        )


class _Setting(NamedTuple):
    """Value of a key of one vehicle, and its place: in the vehicle, or in `defaults`."""

    value: Any
    path: tuple[Key, ...]


class _FleetReader:
    """Reader that makes vehicles of a document that fits the schema."""

    def __init__(self, document: Document, folder: FilePath) -> None:
        self._document = document
        self._folder = folder
        self._defaults: dict[str, Any] = document.value.get("defaults", {})
        self.notes: list[str] = []
        self._paths: dict[tuple[str, bool], Path] = {}
        self._owners: dict[tuple[str, Any], int] = {}

    def vehicles(self) -> list[Vehicle]:
        """Return the vehicles in the order of the file, copies included."""
        entries: list[dict[str, Any]] = self._document.value["vehicles"]
        return [vehicle for i in range(len(entries)) for vehicle in self._copies(i)]

    def _copies(self, index: int) -> Iterator[Vehicle]:
        """Yield the vehicles of one entry: as many as its `count` says."""
        entry: dict[str, Any] = self._document.value["vehicles"][index]
        count = int(self._get(index, "count", 1).value)  # the schema accepts 3.0 as an integer
        kind = self._get(index, "kind", "ground")
        path = self._vehicle_path(index, kind)

        # spacing along the path, and delays
        phase = self._get(index, "phase", 0.0).value
        first_delay, delay_step = _delays(self._get(index, "delay", 0.0).value, count)
        spacing = self._get(index, "spacing", 0.0)
        back, shift = self._spacing(spacing, path, count)
        if back and not path.closed and (count - 1) * back > phase:
            raise self._document.error(
                spacing.path,
                f"the last of {count} copies would start {(count - 1) * back - phase:.10g} m "
                "before the path begins; "
                f"a phase of at least {(count - 1) * back:.10g} makes room",
            )

        # what all copies share
        offsets, moves = self._formation(index, count)
        altitude = self._altitude(index, kind, path)
        scale = self._get(index, "scale", 1.0).value
        limits = Limits(**self._get(index, "limits", {}).value)
        common: dict[str, Any] = {
            "vehicle_type": self._type(self._get(index, "type")),
            "path": path,
            "profile": self._profile(self._get(index, "speed")),
            "at_end": self._get(index, "at_end", "repeat" if path.closed else "stop").value,
            "kind": kind.value,
            "wheelbase": self._optional_length(index, "wheelbase"),
            "track": self._optional_length(index, "track"),
            "limits": limits,
            "locations": self._locations(index, limits),
            "height": float(altitude.get("agl", altitude.get("absolute", 0.0))),
            "absolute": "absolute" in altitude,
            "fit_ground": self._get(index, "fit_ground", False).value,
            "scale": tuple(scale) if isinstance(scale, list) else (scale,) * 3,
        }

        keeps_limits = self._get(index, "keep_limits", False).value

        for copy in range(count):
            id_ = int(entry["id"]) + copy
            name = entry.get("name", f"vehicle_{id_}")
            if "name" in entry and count > 1:
                name += f"_{copy + 1}"
            self._claim(index, "id", id_)
            self._claim(index, "name", name)
            try:
                vehicle = Vehicle(
                    name=name,
                    id=id_,
                    delay=first_delay + copy * delay_step,
                    phase=phase - copy * back,
                    shift=(copy * shift[0] + moves[copy][0], copy * shift[1] + moves[copy][1]),
                    offset=offsets[copy],
                    **common,
                )
                yield vehicle.within_limits(offsets) if keeps_limits else vehicle
            except ConfigError as error:
                raise self._located(error, index) from None

    def _type(self, setting: _Setting) -> int:
        """Return the vehicleType of a number or a model's name."""
        try:
            return type_number(setting.value)
        except ConfigError as error:
            raise self._document.located(error, setting.path) from None

    def _vehicle_path(self, index: int, kind: _Setting) -> Path:
        """Return the path of one entry; waypoints keep their heights if nothing else gives one."""
        keys = {*self._document.value["vehicles"][index], *self._defaults}
        heights = kind.value != "ground" and "altitude" not in keys
        path = self._path(self._get(index, "shape"), heights)
        if heights and path.altitude is None:
            raise self._document.error(
                kind.path,
                f"{kind.value} needs the key altitude too, or waypoints with heights",
            )
        return path

    def _altitude(self, index: int, kind: _Setting, path: Path) -> dict[str, Any]:
        """Return the altitude of one entry; the waypoints' heights win over `defaults`."""
        if path.altitude is not None and "altitude" not in self._document.value["vehicles"][index]:
            return {"agl": 0.0}
        altitude: dict[str, Any] = self._get(index, "altitude", {"agl": 0.0}).value
        return altitude

    def _get(self, index: int, key: str, default: Any = None) -> _Setting:
        """Return the setting of a key; an error if it has neither a value nor a default."""
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
        """Return a length, m; None if there is none. The schema refuses 0."""
        value = self._get(index, key, 0.0).value
        return float(value) if value else None

    def _path(self, shape: _Setting, heights: bool) -> Path:
        """Return the path of a shape, made once; `heights`: keep those of a file of waypoints."""
        key = json.dumps(shape.value, sort_keys=True), heights and "file" in shape.value
        if key not in self._paths:
            try:
                self._paths[key] = _shape(shape.value, self._folder, heights, self.notes).path()
            except ConfigError as error:
                error = _file_error(error, shape.value)
                raise self._document.located(error, shape.path) from None
        return self._paths[key]

    def _profile(self, speed: _Setting) -> SpeedProfile:
        """Return the speed profile of a speed, or of its parts."""
        if not isinstance(speed.value, dict):
            return SpeedProfile(float(speed.value))
        return SpeedProfile(**{key: float(value) for key, value in speed.value.items()})

    def _spacing(
        self, spacing: _Setting, path: Path, count: int
    ) -> tuple[float, tuple[float, float]]:
        """Return the distance back from each copy to the next, m, and the shift of its path."""
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
        """Return each copy's offset ahead and left, and its path's shift east and north."""
        no_offsets = [(0.0, 0.0)] * count
        formation = self._get(index, "formation", {})
        if not formation.value:
            return no_offsets, no_offsets

        # the numbers of the formation itself
        numbers = {
            key: value
            for key, value in formation.value.items()
            if key not in ("type", "frame", "heading_deg")
        }
        if "columns" in numbers:
            numbers["columns"] = int(numbers["columns"])
        try:
            offsets = formation_offsets(formation.value["type"], count, **numbers)
        except ConfigError as error:
            raise self._document.located(error, formation.path) from None

        # offsets turn with the path, or move the path as a whole
        if formation.value.get("frame", "path") == "path":
            if "heading_deg" in formation.value:
                raise self._document.error(
                    (*formation.path, "heading_deg"),
                    "only with frame: world, this formation turns",
                )
            return [(a, b) for a, b in offsets.tolist()], no_offsets
        turned = offsets @ rotation(formation.value.get("heading_deg", 0.0))
        return no_offsets, [(a, b) for a, b in turned.tolist()]

    def _claim(self, index: int, key: str, value: Any) -> None:
        """Raise ConfigError for an id or name that another vehicle has."""
        path = ("vehicles", index, key)
        if (key, value) in self._owners:
            raise self._document.error(
                path,
                f"{value!r} belongs to the vehicle of line {self._owners[key, value]} already, "
                "each needs its own",
            )
        self._owners[key, value] = self._document.line(path)

    def _located(self, error: ConfigError, index: int) -> ConfigError:
        """Return an error about a key of a vehicle with the key's file and line."""
        key = error.key[0] if error.key else ""
        in_defaults = key not in self._document.value["vehicles"][index] and key in self._defaults
        return self._document.located(error, ("defaults",) if in_defaults else ("vehicles", index))

    def _locations(self, index: int, limits: Limits) -> dict[str, str]:
        """Return the places of the keys that a check may name."""
        paths = {key: self._get(index, key, {}).path for key in ("shape", "altitude", "limits")}
        locations = {key: self._document.location(path) for key, path in paths.items()}
        set_here = {key for key, value in limits._asdict().items() if value is not None}
        return locations | {
            f"limits.{key}": self._document.location((*paths["limits"], key)) for key in set_here
        }


def _delays(delay: Any, count: int) -> tuple[float, float]:
    """Return the delay of the first copy and the delay from one to the next, s."""
    if isinstance(delay, dict):
        return float(delay.get("first", 0.0)), float(delay.get("step", 0.0))
    return (float(delay), 0.0) if count == 1 else (0.0, float(delay))


def _file_error(error: ConfigError, shape: Mapping[str, Any]) -> ConfigError:
    """Return an error about points with the file that they come from."""
    if "file" in shape and error.key[:1] == ("points",):
        return ConfigError(f"{shape['file']!r}: {error}", key="file")
    return error


_FIELDS = {"from": "start", "to": "end"}
"""Fields of shapes whose keys have other names: Python's words are no field names."""


def shape_types() -> dict[str, type[PathShape]]:
    """Return the classes of shapes by their type in a fleet file, in alphabetic order.

    Classes of `rfly_trajectory.paths` that derive from PathShape register by that: LawnMower is the
    type lawn_mower.
    """
    types = {
        re.sub(r"(?<!^)(?=[A-Z])", "_", c.__name__).lower(): c for c in PathShape.__subclasses__()
    }
    return dict(sorted(types.items()))


def _shape(
    shape: Mapping[str, Any], folder: FilePath, heights: bool, notes: list[str]
) -> PathShape:
    """Return the shape of a checked mapping: its keys are the fields of its type's class."""
    fields = {_FIELDS.get(key, key): value for key, value in shape.items() if key != "type"}
    if "direction" in fields:
        fields["clockwise"] = fields.pop("direction") == "clockwise"

    kind = shape_types()[shape["type"]]
    if "points" in inspect.signature(kind).parameters:
        fields["points"] = _points(shape, folder, heights, notes)
        for key in ("file", "geo_origin"):
            fields.pop(key, None)
    return kind(**fields)


def _points(
    shape: Mapping[str, Any], folder: FilePath, heights: bool, notes: list[str]
) -> Sequence[Point]:
    """Return the points of the shape itself, or of the file that it names."""
    if ("points" in shape) == ("file" in shape):
        raise ConfigError("expected exactly one of the keys file, points")
    if "points" in shape:
        return shape["points"]
    geo_origin = shape.get("geo_origin", ())
    points = read_points(folder / shape["file"], geo_origin, heights=heights, notes=notes)

    # a recorded loop ends where it began
    loop = shape.get("closed", False) and len(points) > 1
    if loop and np.hypot(*(points[-1] - points[0])[:2]) <= SAME_POINT:
        points = points[:-1]
    return points.tolist()


MAX_SHARDS = 10_000


def shard_range(shard: str, vehicles: int) -> range:
    """Return the indices of the vehicles of a shard `i/n`, i from 0 to n - 1.

    Shards are consecutive and as even as possible, and each vehicle is in exactly one. Raises
    ConfigError for anything but `i/n`.
    """
    match = re.fullmatch(r"\s*([0-9]{1,5})\s*/\s*([0-9]{1,5})\s*", shard)
    if match is None or not int(match[1]) < int(match[2]) <= MAX_SHARDS:
        raise ConfigError(
            f"shard: {shard!r}, expected i/n with i from 0 to n - 1 and n up to {MAX_SHARDS}, "
            "such as 0/2 and 1/2 for the two halves of a fleet"
        )
    i = int(match[1])
    n = int(match[2])
    return range(i * vehicles // n, (i + 1) * vehicles // n)


class FleetFile:
    """A fleet file, its fleet, and its entries, each a group of vehicles that change together."""

    def __init__(
        self, name_or_path: str | os.PathLike[str], max_vehicles: int = MAX_VEHICLES
    ) -> None:
        """Read a fleet file, or a shipped one by its name. Raises ConfigError as `load_fleet`."""
        data, self.file, name = read_fleet_file(name_or_path, max_vehicles)
        self._folder = FilePath(self.file).parent
        self.fleet: Fleet = parse_fleet(data, self.file, name, self._folder, max_vehicles)
        self._document: dict[str, Any] = parse_mapping(
            data, self.file, "version and vehicles"
        ).value

    @property
    def groups(self) -> list[int]:
        """Numbers of vehicles of the entries."""
        common = self._document.get("defaults", {}).get("count", 1)
        return [int(entry.get("count", common)) for entry in self._document["vehicles"]]

    def entries(self) -> Iterator[tuple[str, list[Vehicle]]]:
        """Yield the name and the vehicles of each entry."""
        vehicles = iter(self.fleet.vehicles)
        for entry, size in zip(self._document["vehicles"], self.groups, strict=True):
            group = [next(vehicles) for _ in range(size)]
            yield str(entry.get("name", group[0].name)), group

    def changed(self, changes: Sequence[Change]) -> str:
        """Return the file's content with a change of each entry; comments are lost.

        Files that it names are named by their whole path.
        """
        document = deepcopy(self._document)
        defaults = document.get("defaults", {})
        for entry, (_, group), change in zip(
            document["vehicles"], self.entries(), changes, strict=True
        ):
            entry.update(_changed_keys(entry, defaults, group, change))
        for part in (defaults, *document["vehicles"]):
            if "file" in part.get("shape", {}):
                part["shape"]["file"] = str((self._folder / part["shape"]["file"]).resolve())
        return dump_yaml(document, default_flow_style=None, width=120)


def _changed_keys(
    entry: dict[str, Any], defaults: dict[str, Any], group: Sequence[Vehicle], change: Change
) -> dict[str, Any]:
    """Return the keys of an entry that a change sets, with their values."""
    keys: dict[str, Any] = {}
    first = group[0]
    if change.later or change.between:
        delay = first.delay + change.later
        keys["delay"] = delay
        if len(group) > 1:
            keys["delay"] = {"first": delay, "step": group[1].delay - first.delay + change.between}
    if change.higher:
        keys["altitude"] = {"absolute" if first.absolute else "agl": first.height + change.higher}
    if change.share != 1.0:
        speed = entry.get("speed", defaults.get("speed"))
        cruise = round(first.profile.cruise * change.share, 6)
        keys["speed"] = {**speed, "cruise": cruise} if isinstance(speed, dict) else cruise
    return keys
