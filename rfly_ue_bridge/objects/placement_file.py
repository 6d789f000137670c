# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Placement files: YAML or CSV lists of objects.

They are checked against `data/schemas/placements.schema.json`. A CSV has a heading with keys of an
object, such as `id,type,x,y,z,yaw_deg,offset,ground_packet,scale,size`; an empty cell is a key that
was left out, and three numbers of one cell are separated by blanks. A YAML has `version: 1`,
`objects`, and optionally `frame` and `defaults`.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Mapping
from typing import Any

from rfly_common.config.documents import (
    check_schema,
    decode_text,
    load_schema,
    parse_mapping,
    read_config,
    shipped_names,
)
from rfly_common.config.marked_yaml import Document
from rfly_common.config.vehicle_models import type_number
from rfly_common.errors import ConfigError, Key, PlacementError
from rfly_common.files import StrPath
from rfly_ue_bridge.objects.placement import MAX_OBJECTS, PlacedObject, from_ned

MAX_FILE_BYTES = 10_000_000
_YAML = (".yaml", ".yml")
_CSV = (".csv",)
_LISTS = frozenset({"scale", "size"})
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_WORDS: dict[str, Any] = {"true": True, "false": False}


def shipped_placements() -> list[str]:
    """Return the names of the lists that come with the package."""
    return shipped_names("rfly_ue_bridge", "placements")


def load_placements(name_or_path: StrPath, frame: str = "") -> list[PlacedObject]:
    """Return the objects of a file, or of the shipped list of that name.

    `frame` (map or map_ned) is that of a CSV's numbers, default map; a YAML has its own. Raises
    ConfigError that names file, line, key and what is allowed.
    """
    data, file, _ = read_config(
        "placements", "rfly_ue_bridge", "placements", name_or_path, MAX_FILE_BYTES, noun="list"
    )
    return parse_placements(data, file, frame)


def parse_placements(data: bytes, file: str, frame: str = "") -> list[PlacedObject]:
    """Return the objects of a file's content.

    `file` is its name in errors, and its ending says whether it is YAML or CSV.
    """
    ending = os.path.splitext(file)[1].lower()
    if ending not in _YAML + _CSV:
        raise ConfigError(f"{file}: expected a file that ends in {', '.join(_YAML + _CSV)}")

    if ending in _YAML:
        document = parse_mapping(data, file, "version and objects")
    else:
        document = _parse_csv(decode_text(data, file), file)
    check_schema(document, load_schema("rfly_ue_bridge", "placements"))

    own = document.value.get("frame", "")
    if own and frame and own != frame:
        raise document.error(("frame",), f"the file says {own}, asked for is {frame}")
    return _objects(document, own or frame or "map")


def _objects(document: Document, frame: str) -> list[PlacedObject]:
    defaults = document.value.get("defaults", {})
    lines: dict[int, int] = {}
    objects = []
    for index, entry in enumerate(document.value["objects"]):
        path = ("objects", index)
        values = {**defaults, **entry}
        if "type" not in values:
            raise document.error(path, "the key type is missing, here and in defaults")
        object_id = int(values.get("id", 0))
        if object_id in lines:
            raise document.error(
                (*path, "id"), f"{object_id} is that of line {lines[object_id]} already"
            )
        if object_id:
            lines[object_id] = document.line(path)

        try:
            objects.append(_object(values, object_id, frame))
        except ConfigError as error:
            raise document.located(error, path) from None
        except PlacementError as error:
            raise document.error(path, str(error)) from None
    return objects


def _object(values: Mapping[str, Any], object_id: int, frame: str) -> PlacedObject:
    x = float(values["x"])
    y = float(values["y"])
    yaw = math.radians(values.get("yaw_deg", 0.0))
    z = None if "z" not in values else float(values["z"])
    place: dict[str, Any] = {"x": x, "y": y, "yaw": yaw, "z": z}
    if frame == "map_ned":
        place = from_ned(x, y, yaw, z)

    scale = values.get("scale", 1.0)
    size = values.get("size", (0.0, 0.0, 0.0))
    factors = scale if isinstance(scale, list) else (scale,) * 3

    try:
        vehicle_type = type_number(values["type"])
    except ConfigError as error:
        raise error.inside("type") from None

    return PlacedObject(
        id=object_id,
        vehicle_type=vehicle_type,
        offset=float(values.get("offset", 0.0)),
        use_ground_packet=bool(values.get("ground_packet", False)),
        scale=(float(factors[0]), float(factors[1]), float(factors[2])),
        size=(float(size[0]), float(size[1]), float(size[2])),
        **place,
    )


def _parse_csv(text: str, file: str) -> Document:
    """Return the document that a YAML with these objects would make."""
    reader = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
    objects: list[dict[str, Any]] = []
    rows: dict[Key, int] = {}
    lines: dict[int, dict[Key, int]] = {}
    heading: list[str] = []
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if not any(cells) or cells[0].startswith("#"):
                continue
            if not heading:
                heading = cells
                _check_heading(heading, f"{file}:{reader.line_num}")
                continue

            if len(cells) > len(heading):
                raise ConfigError(
                    f"{file}:{reader.line_num}: {len(cells)} cells, the heading has {len(heading)}"
                )
            if len(objects) >= MAX_OBJECTS:
                raise ConfigError(f"{file}:{reader.line_num}: more than {MAX_OBJECTS} objects")

            entry = {
                key: _cell(key, cell) for key, cell in zip(heading, cells, strict=False) if cell
            }
            lines[id(entry)] = dict.fromkeys(heading, reader.line_num)
            rows[len(objects)] = reader.line_num
            objects.append(entry)
    except csv.Error as error:
        raise ConfigError(f"{file}:{reader.line_num}: not a CSV: {error}") from None

    if not objects:
        raise ConfigError(
            f"{file}:{max(reader.line_num, 1)}: no object, "
            "expected a heading such as type,x,y and rows"
        )
    document = {"version": 1, "objects": objects}
    lines[id(objects)] = rows
    lines[id(document)] = {"version": 1, "objects": 1}
    return Document(document, lines, 1, file)


def _check_heading(heading: list[str], where: str) -> None:
    schema = load_schema("rfly_ue_bridge", "placements")
    known = schema["properties"]["objects"]["items"]["properties"]

    for key in heading:
        if key not in known:
            raise ConfigError(
                f"{where}: heading: {key[:40]!r} is no key of an object, "
                f"allowed: {', '.join(known)}"
            )
        if heading.count(key) > 1:
            raise ConfigError(f"{where}: heading: {key} is in it twice")

    for key in ("x", "y"):
        if key not in heading:
            raise ConfigError(
                f"{where}: heading: {key} is missing; "
                "expected one such as id,type,x,y,yaw_deg,offset"
            )


def _cell(key: str, text: str) -> Any:
    """Return the value that YAML would read.

    A text that is no number stays a text, which the schema refuses.
    """
    parts = text.split() if key in _LISTS else [text]
    values = [_WORDS.get(part.lower(), _number(part)) for part in parts]
    return values[0] if len(values) == 1 and key != "size" else values


def _number(text: str) -> Any:
    if not _NUMBER.fullmatch(text):
        return text
    value = float(text)
    if not math.isfinite(value):
        return text
    return int(text) if re.fullmatch(r"[+-]?\d{1,18}", text) else value
