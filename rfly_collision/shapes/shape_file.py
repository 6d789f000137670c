"""Shape files: YAML checked against `data/schemas/shapes.schema.json`, to a VehicleShapes."""

from __future__ import annotations

import functools
import importlib.resources
import json
import os
from collections.abc import Mapping
from typing import Any

import jsonschema

from rfly_collision.shapes.vehicle_shapes import (
    Range,
    VehicleShape,
    VehicleShapes,
    make_shape,
    parse_types,
    repeated_type,
)
from rfly_common.config.marked_yaml import Document, Key, parse_yaml
from rfly_common.config.schema_errors import first_error, key_path
from rfly_common.errors import ConfigError
from rfly_common.files import StrPath

MAX_FILE_BYTES = 10_000_000
DEFAULT_SET = "rflysim3d"


def shipped_shapes() -> list[str]:
    """Names of the sets that come with the package."""
    folder = importlib.resources.files("rfly_collision") / "data" / "shapes"
    return sorted(entry.name[: -len(".yaml")] for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def load_shapes(name_or_path: StrPath = DEFAULT_SET) -> VehicleShapes:
    """The shapes of a file, or of the shipped set of that name.

    Raises ConfigError that names file, line, key and what is allowed.
    """
    given = os.fspath(name_or_path)
    shipped = shipped_shapes()
    if given in shipped and not os.path.isfile(given):
        resource = importlib.resources.files("rfly_collision") / "data" / "shapes" / f"{given}.yaml"
        return parse_shapes(resource.read_bytes(), f"{given}.yaml", given)
    try:
        with open(given, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(
            f"shapes {given!r}: no such file, and no shipped set of this name ({', '.join(shipped)})"
        ) from None
    except OSError as error:
        raise ConfigError(f"shapes {given!r}: {error.strerror}") from None
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(f"shapes {given!r}: larger than {MAX_FILE_BYTES:,} bytes")
    return parse_shapes(data, given, given)


def parse_shapes(data: bytes, file: str, name: str = "") -> VehicleShapes:
    """The shapes of a file's content; `file` is what errors call it."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}:{data[: error.start].count(10) + 1}: not UTF-8 text") from None
    document = parse_yaml(text, file)
    if not isinstance(document.value, dict):
        raise ConfigError(f"{file}:{document.first_line}: expected the keys version and vehicles")
    problem = first_error(jsonschema.Draft7Validator(shapes_schema()).iter_errors(document.value), document, file)
    if problem is not None:
        raise ConfigError(problem)
    return _Reader(document, file).table(name)


@functools.lru_cache(maxsize=1)
def shapes_schema() -> Mapping[str, Any]:
    """The JSON schema of shape files."""
    text = (importlib.resources.files("rfly_collision") / "data" / "schemas" / "shapes.schema.json").read_text(
        encoding="utf-8"
    )
    schema: Mapping[str, Any] = json.loads(text)
    return schema


class _Reader:
    """Makes a table of a document that fits the schema."""

    def __init__(self, document: Document, file: str) -> None:
        self._document, self._file = document, file

    def table(self, name: str) -> VehicleShapes:
        entries: list[dict[str, Any]] = self._document.value["vehicles"]
        shapes = tuple(self._shape(entry, ("vehicles", index)) for index, entry in enumerate(entries))
        types: list[tuple[Range, int]] = []
        for index, entry in enumerate(entries):
            path = ("vehicles", index, "types")
            types += self._checked(lambda e=entry, i=index: parse_types(e["types"], i), path)
            repeated = repeated_type(types)
            if repeated is not None:
                raise self._error(path, f"type {repeated} is listed twice")
        default = self._document.value.get("default")
        if default is None:
            return VehicleShapes(shapes, tuple(types), name=name)
        return VehicleShapes(shapes, tuple(types), self._shape({"name": "box", **default}, ("default",)), name)

    def _shape(self, entry: dict[str, Any], path: tuple[Key, ...]) -> VehicleShape:
        centre_height = float(entry.get("centre_height", 0.0))
        shape = self._checked(lambda: make_shape(entry["shape"], centre_height), (*path, "shape"))
        clearance, upright = float(entry.get("ground_clearance", 0.0)), bool(entry.get("upright", False))
        return self._checked(
            lambda: VehicleShape(entry["name"], shape, centre_height, clearance, upright), (*path, "ground_clearance")
        )

    def _checked(self, make: Any, path: tuple[Key, ...]) -> Any:
        try:
            return make()
        except ValueError as error:
            raise self._error(path, str(error).removeprefix(f"{path[-1]}: ")) from None

    def _error(self, path: tuple[Key, ...], text: str) -> ConfigError:
        return ConfigError(f"{self._file}:{self._document.line(path)}: {key_path(path)}: {text}")
