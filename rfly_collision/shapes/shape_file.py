# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Shape files: YAML checked against `data/schemas/shapes.schema.json`, to a VehicleShapes."""

from __future__ import annotations

import os
from typing import Any

from rfly_collision.shapes.vehicle_shapes import (
    Range,
    VehicleShape,
    VehicleShapes,
    make_shape,
    parse_types,
    repeated_type,
)
from rfly_common.config.documents import (
    check_schema,
    load_schema,
    parse_mapping,
    read_config,
    shipped_names,
)
from rfly_common.config.marked_yaml import Document
from rfly_common.errors import ConfigError, Key
from rfly_common.files import StrPath

MAX_FILE_BYTES = 10_000_000
DEFAULT_SET = "rflysim3d"


def shipped_shapes() -> list[str]:
    """Return the names of the sets that come with the package."""
    return shipped_names("rfly_collision", "shapes")


def load_shapes(name_or_path: StrPath = DEFAULT_SET) -> VehicleShapes:
    """Return the shapes of a file, or of the shipped set of that name.

    Raises ConfigError that names file, line, key and what is allowed.
    """
    data, file, _ = read_config("shapes", "rfly_collision", "shapes", name_or_path, MAX_FILE_BYTES)
    return parse_shapes(data, file, os.fspath(name_or_path))


def parse_shapes(data: bytes, file: str, name: str = "") -> VehicleShapes:
    """Return the shapes of a file's content; errors call it `file`."""
    document = parse_mapping(data, file, "version and vehicles")
    check_schema(document, load_schema("rfly_collision", "shapes"))
    entries: list[dict[str, Any]] = document.value["vehicles"]

    shapes = tuple(
        _shape(document, entry, ("vehicles", index)) for index, entry in enumerate(entries)
    )

    types: list[tuple[Range, int]] = []
    for index, entry in enumerate(entries):
        path = ("vehicles", index)
        try:
            types += parse_types(entry["types"], index)
        except ConfigError as error:
            raise document.located(error, path) from None

        repeated = repeated_type(types)
        if repeated is not None:
            raise document.error((*path, "types"), f"type {repeated} is listed twice")

    default = document.value.get("default")
    if default is None:
        return VehicleShapes(shapes, tuple(types), name=name)
    return VehicleShapes(
        shapes, tuple(types), _shape(document, {"name": "box", **default}, ("default",)), name
    )


def _shape(document: Document, entry: dict[str, Any], path: tuple[Key, ...]) -> VehicleShape:
    """Return the shape of a kind of vehicle whose entry is at `path`."""
    centre_height = float(entry.get("centre_height", 0.0))
    try:
        shape = make_shape(entry["shape"], centre_height)
    except ValueError as error:
        raise document.error((*path, "shape"), str(error)) from None

    clearance = float(entry.get("ground_clearance", 0.0))
    upright = bool(entry.get("upright", False))
    try:
        return VehicleShape(entry["name"], shape, centre_height, clearance, upright)
    except ConfigError as error:
        raise document.located(error, path) from None
