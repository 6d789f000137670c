# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Configuration documents: shipped files by name, other files by path, UTF-8 YAML, JSON schema."""

from __future__ import annotations

import difflib
import errno
import functools
import importlib.resources
import itertools
import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rfly_common.config.marked_yaml import Document, parse_yaml
from rfly_common.errors import ConfigError, Key, TooLargeError, key_path
from rfly_common.files import StrPath, read_regular

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

MAX_ERRORS = 200
"""Errors of one file that are compared to find the first."""
_TYPE_NAMES = {
    "array": "a list",
    "object": "keys with values",
    "string": "a word",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
}


def first_error(errors: Iterable[ValidationError], document: Document) -> str | None:
    """Return the error that comes first in the file, as `file:line: key: what is wrong`, or None.

    Unknown keys come before others: a key that is written wrong is a missing one too. If there are
    more than MAX_ERRORS, only the first that the validator meets are compared: finding half a
    million takes a minute.
    """
    found = []
    for error in itertools.islice(errors, MAX_ERRORS):
        path, text = _describe(error)
        is_known = error.validator != "additionalProperties"
        found.append((is_known, document.line(path), key_path(path), text))

    if not found:
        return None
    _, line, key, text = min(found)
    return f"{document.file}:{line}: {f'{key}: ' if key else ''}{text}"


_Described = tuple[list[Key], str]
"""Path of the value, and what is wrong with it."""


def _describe(error: ValidationError) -> _Described:
    path: list[Key] = list(error.absolute_path)
    schema: Any = error.schema
    value: Any = error.instance
    rule = error.validator

    # keys
    if rule == "additionalProperties":
        allowed = sorted(schema["properties"])
        wrong = next(key for key in value if key not in schema["properties"])
        close = difflib.get_close_matches(wrong, allowed, 1)
        hint = f"did you mean {close[0]}? " if close else ""
        return [*path, wrong], f"unknown key; {hint}allowed: {', '.join(allowed)}"
    if rule == "required":
        missing = next(key for key in schema["required"] if key not in value)
        others = [key for key in value if key not in schema.get("properties", {})]
        close = difflib.get_close_matches(missing, others, 1)
        if close:
            return [*path, close[0]], f"unknown key; did you mean {missing}?"
        allowed = schema.get("properties", {}).get(missing, {}).get("enum", ())
        hint = f"; add {missing}: {' or '.join(map(str, allowed))}" if allowed else ""
        return path, f"the key {missing} is missing{hint}"
    if rule == "dependencies":
        return path, "; ".join(
            f"{key} needs {', '.join(needed)} too"
            for key, needed in schema["dependencies"].items()
            if key in value and not set(needed) <= set(value)
        )
    if rule in ("minProperties", "maxProperties"):
        return path, f"expected exactly one of the keys {', '.join(sorted(schema['properties']))}"

    # values
    if rule == "enum":
        return path, f"{_short(value)}, allowed: {', '.join(map(str, schema['enum']))}"
    if rule in ("minimum", "maximum"):
        limits = f"{schema.get('minimum', '-inf')} … {schema.get('maximum', 'inf')}"
        return path, f"{_short(value)}, allowed: {limits}{_about(schema)}"
    if rule in ("exclusiveMinimum", "exclusiveMaximum"):
        side = "more" if rule == "exclusiveMinimum" else "less"
        return path, f"{_short(value)}, expected {side} than {schema[rule]:g}{_about(schema)}"

    # lists
    if rule in ("minItems", "maxItems"):
        low = schema.get("minItems", 0)
        high = schema.get("maxItems", "any number")
        size = str(low) if low == high else f"{low} … {high}"
        return path, f"{len(value)} elements, allowed: {size}{_about(schema)}"
    if rule == "type":
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        expected = " or ".join(_TYPE_NAMES[name] for name in types)
        return path, f"{_short(value)}, expected {expected}{_about(schema)}"
    if rule in ("pattern", "maxLength"):
        expected = _about(schema) or f", expected {schema[rule]}"
        return path, f"{_short(value)} is not allowed{expected}"
    if rule == "uniqueItems":
        return path, f"{_short(value)}: an element is there twice"
    return path, error.message[:200]


def _about(schema: Any) -> str:
    return f" ({schema['description']})" if "description" in schema else ""


def _short(value: Any) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def shipped_names(package: str, folder: str, suffix: str = ".yaml") -> list[str]:
    """Return the names of the files of a kind in a folder of the package's `data`."""
    entries = (importlib.resources.files(package) / "data" / folder).iterdir()
    return sorted(
        entry.name.removesuffix(suffix) for entry in entries if entry.name.endswith(suffix)
    )


def read_config(
    what: str, package: str, folder: str, name_or_path: StrPath, max_bytes: int, noun: str = "set"
) -> tuple[bytes, str, str]:
    """Return (content, label in errors, name) of a shipped file or of one by its path.

    Raise ConfigError that begins with `what`; `noun` is its word for a shipped file.
    """
    given = os.fspath(name_or_path)
    shipped = shipped_names(package, folder)

    if given in shipped and not os.path.isfile(given):
        resource = importlib.resources.files(package) / "data" / folder / f"{given}.yaml"
        return resource.read_bytes(), f"{given}.yaml", given

    if not os.path.exists(given):
        names = ", ".join(shipped)
        raise ConfigError(
            f"{what} {given!r}: no such file, and no shipped {noun} of this name ({names})"
        )
    return read_limited(given, what, max_bytes), given, Path(given).stem


def read_limited(path: StrPath, what: str, max_bytes: int) -> bytes:
    """Return a file's content.

    Raises ConfigError that begins with `what`, if it is not empty, and the path for a file that
    cannot be read, and TooLargeError for one that is larger than max_bytes.
    """
    given = os.fspath(path)
    try:
        return read_regular(given, max_bytes)
    except OSError as error:
        kind = TooLargeError if error.errno == errno.EFBIG else ConfigError
        label = f"{what} {given!r}" if what else repr(given)
        raise kind(f"{label}: {error.strerror}") from None


def decode_text(data: bytes, file: str) -> str:
    """Return UTF-8 text without byte order mark; raise ConfigError that names file and line."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}:{data[: error.start].count(10) + 1}: not UTF-8 text") from None


def parse_mapping(data: bytes, file: str, keys: str) -> Document:
    """Return a file's YAML document. Raises ConfigError if it is no mapping, such as of `keys`."""
    document = parse_yaml(decode_text(data, file), file)
    if not isinstance(document.value, dict):
        raise ConfigError(f"{file}:{document.first_line}: expected the keys {keys}")
    return document


def check_schema(document: Document, schema: Mapping[str, Any]) -> None:
    """Raise ConfigError with file, line, key and what is allowed if the document does not fit.

    Lists that are too long are found first: the validator looks at each element before it counts
    them.
    """
    for key, rules in schema.get("properties", {}).items():
        value = document.value.get(key)
        most = rules.get("maxItems", math.inf)
        if isinstance(value, list) and len(value) > most:
            raise document.error((key,), f"{len(value):,} elements, allowed: at most {most:,}")

    import jsonschema  # only for those who read a file: it takes as long as NumPy

    problem = first_error(jsonschema.Draft7Validator(schema).iter_errors(document.value), document)
    if problem is not None:
        raise ConfigError(problem)


@functools.cache
def load_schema(package: str, name: str) -> Mapping[str, Any]:
    """Return a JSON schema of a package by its name."""
    file = importlib.resources.files(package) / "data" / "schemas" / f"{name}.schema.json"
    return json.loads(file.read_text(encoding="utf-8"))
