"""JSON schema violations as one line of text: key, value, and what would be right."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable
from typing import Any

from jsonschema.exceptions import ValidationError

from rfly_common.config.marked_yaml import Document, Key, key_path

__all__ = ["first_error", "key_path"]

MAX_ERRORS = 200
_TYPE_NAMES = {"array": "a list", "object": "keys with values", "string": "a word", "boolean": "true or false"} | {
    "integer": "a whole number",
    "number": "a number",
}


def first_error(errors: Iterable[ValidationError], document: Document, file: str) -> str | None:
    """The error that comes first in the file as `file:line: key: what is wrong`; None where there is none.

    Of more than MAX_ERRORS the first that the validator meets: to find half a million takes a minute.
    """
    found = []
    for error in itertools.islice(errors, MAX_ERRORS):
        path, text = _describe(error)
        found.append((document.line(path), key_path(path), text))
    if not found:
        return None
    line, key, text = min(found)
    return f"{file}:{line}: {f'{key}: ' if key else ''}{text}"


def _describe(error: ValidationError) -> tuple[list[Key], str]:
    path: list[Key] = list(error.absolute_path)
    schema: Any = error.schema
    value: Any = error.instance
    rule = error.validator
    if rule == "additionalProperties":
        allowed = sorted(schema["properties"])
        wrong = next(key for key in value if key not in schema["properties"])
        close = difflib.get_close_matches(wrong, allowed, 1)
        hint = f"did you mean {close[0]}? " if close else ""
        return [*path, wrong], f"unknown key; {hint}allowed: {', '.join(allowed)}"
    if rule == "required":
        missing = next(key for key in schema["required"] if key not in value)
        return path, f"the key {missing} is missing"
    if rule == "dependencies":
        return path, "; ".join(
            f"{key} needs {', '.join(needed)} beside it"
            for key, needed in schema["dependencies"].items()
            if key in value and not set(needed) <= set(value)
        )
    if rule in ("minProperties", "maxProperties"):
        return path, f"expected exactly one of the keys {', '.join(sorted(schema['properties']))}"
    if rule == "enum":
        return path, f"{_short(value)}, allowed: {', '.join(map(str, schema['enum']))}"
    if rule in ("minimum", "maximum"):
        limits = f"{schema.get('minimum', '-inf')} … {schema.get('maximum', 'inf')}"
        return path, f"{_short(value)}, allowed: {limits}{_about(schema)}"
    if rule in ("minItems", "maxItems"):
        low, high = schema.get("minItems", 0), schema.get("maxItems", "any number")
        size = str(low) if low == high else f"{low} … {high}"
        return path, f"{len(value)} elements, allowed: {size}{_about(schema)}"
    if rule == "type":
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return path, f"{_short(value)}, expected {' or '.join(_TYPE_NAMES[name] for name in types)}{_about(schema)}"
    if rule in ("pattern", "maxLength"):
        return path, f"{_short(value)} is not allowed{_about(schema) or f', expected {schema[rule]}'}"
    if rule == "uniqueItems":
        return path, f"{_short(value)}: an element is there twice"
    return path, error.message[:200]


def _about(schema: Any) -> str:
    return f" ({schema['description']})" if "description" in schema else ""


def _short(value: Any) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
