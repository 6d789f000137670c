# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters declared once: dataclass fields with key, unit, range and meaning."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rfly_common.arrays import Triple

Schema = dict[str, Any]
KeyPath = tuple[str, ...]

LARGEST = 1e9
"""Upper limit of a number whose declaration names none."""
_METADATA = "declared"


class Declaration(NamedTuple):
    """A field's place and form in a file."""

    path: KeyPath
    """Keys that lead to the value."""
    schema: Schema | None
    """Schema of the value; None if another field declares it."""
    read: Callable[[Any, Any], Any]
    """Function of (value or None, whole document) that returns the field's value."""
    required: bool


def bounded(
    meaning: str,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = LARGEST,
    kind: str = "number",
) -> Schema:
    """Return the schema of a number.

    `above` and `below` exclude the bound, `at_least` and `at_most` include it.
    """
    bounds = {"exclusiveMinimum": above, "minimum": at_least, "exclusiveMaximum": below}
    bounds["maximum"] = None if below is not None else at_most
    return {
        "type": kind,
        "description": meaning,
        **{name: bound for name, bound in bounds.items() if bound is not None},
    }


def number(
    path: str,
    meaning: str,
    *,
    scale: float = 1.0,
    default: float | None = None,
    optional: bool = False,
    **bounds: Any,
) -> Any:
    """Return a dataclass field for the number at `section.key`.

    `scale` converts the file's unit to the field's, which is SI. `default`, in the file's unit, is
    the default of the dataclass, and of a file if the key is `optional`. Bounds: see `bounded`.
    """

    def read(value: Any, _document: Any) -> Any:
        value = default if value is None else value
        return int(value) if bounds.get("kind") == "integer" else float(value) * scale

    return _with_default(path, bounded(meaning, **bounds), read, default, optional)


def triple(
    path: str,
    meaning: str,
    of_each: str = "",
    *,
    scale: float = 1.0,
    default: Triple | None = None,
    optional: bool = False,
    **bounds: Any,
) -> Any:
    """Return a dataclass field for three numbers, each within the bounds.

    The other arguments are those of `number`.
    """

    def read(value: Any, _document: Any) -> Any:
        return tuple(float(each) * scale for each in (value or default or ()))

    items = bounded(of_each, **bounds)
    if not of_each:
        del items["description"]
    schema = {"type": "array", "description": meaning, "minItems": 3, "maxItems": 3, "items": items}
    return _with_default(path, schema, read, default, optional)


def flag(path: str, meaning: str, *, default: bool) -> Any:
    """Return a dataclass field for an optional true or false."""
    schema = {"type": "boolean", "description": meaning}
    return _with_default(
        path, schema, lambda value, _: default if value is None else value, default, True
    )


def _with_default(
    path: str, schema: Schema, read: Callable[[Any, Any], Any], default: Any, optional: bool
) -> Any:
    more = {} if default is None else {"default": read(None, None)}
    return declared(path, schema, read, required=not optional, **more)


def choice(path: str, meaning: str, names: Sequence[str]) -> Any:
    """Return a dataclass field for one of several names."""
    schema = {"type": "string", "description": meaning, "enum": list(names)}
    return declared(path, schema, lambda value, _document: value)


def declared(
    path: str,
    schema: Schema | None,
    read: Callable[[Any, Any], Any],
    *,
    required: bool = True,
    **of_field: Any,
) -> Any:
    """Return a dataclass field whose value `read` makes.

    `read` gets the value at `path`, None if there is none, and the whole document.
    """
    declaration = Declaration(tuple(path.split(".")), schema, read, required)
    return dataclasses.field(metadata={_METADATA: declaration}, **of_field)


def declarations(cls: Any) -> dict[str, Declaration]:
    """Return field name -> declaration, in the order of the dataclass."""
    return {
        f.name: f.metadata[_METADATA] for f in dataclasses.fields(cls) if _METADATA in f.metadata
    }


def schema_of(cls: Any) -> Schema:
    """Return the JSON schema of an object with the fields that a dataclass declares.

    Sections are nested objects; other keys are not allowed.
    """
    top: Schema = _object()
    for path, schema, _read, required in declarations(cls).values():
        if schema is None:
            continue
        section = top
        for key in path[:-1]:
            if key not in section["properties"]:
                section["properties"][key] = _object()
                section["required"].append(key)
            section = section["properties"][key]

        section["properties"][path[-1]] = schema
        if required:
            section["required"].append(path[-1])
    return top


def file_schema(title: str, cls: Any, sections: Mapping[str, str] | None = None) -> Schema:
    """Return the JSON schema of a file of version 1 with the fields that a dataclass declares.

    `sections` are the descriptions of its sections.
    """
    version = {"type": "integer", "description": "of this file format", "enum": [1]}
    schema = schema_of(cls)
    for section, meaning in (sections or {}).items():
        schema["properties"][section]["description"] = meaning
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": title,
        **schema,
        "required": ["version", *schema["required"]],
        "properties": {"version": version, **schema["properties"]},
    }


def values_of(cls: Any, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return field name -> value, from a document that fits `schema_of(cls)`."""
    return {
        name: each.read(_value_at(document, each.path), document)
        for name, each in declarations(cls).items()
    }


def _value_at(document: Any, path: KeyPath) -> Any:
    for key in path:
        document = document.get(key) if isinstance(document, Mapping) else None
    return document


def _object() -> Schema:
    return {"type": "object", "additionalProperties": False, "required": [], "properties": {}}
