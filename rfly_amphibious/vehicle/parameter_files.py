"""YAML parameter files: shipped sets by name, files by path, checked against a JSON schema."""

from __future__ import annotations

import functools
import importlib.resources
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema

from rfly_amphibious.vehicle.key_changes import Change, KeyPath, changed
from rfly_common.config.marked_yaml import Document, parse_yaml
from rfly_common.config.schema_errors import first_error
from rfly_common.errors import ConfigError

MAX_FILE_BYTES = 1_000_000


def shipped_sets(folder: str) -> list[str]:
    """Names of the sets in a folder of `data`."""
    entries = (importlib.resources.files("rfly_amphibious") / "data" / folder).iterdir()
    return sorted(entry.name[: -len(".yaml")] for entry in entries if entry.name.endswith(".yaml"))


def read_parameters(what: str, folder: str, name_or_path: str | os.PathLike[str]) -> tuple[bytes, str, str]:
    """(content, what errors call the file, name of the set) of a shipped set or a file.

    Raises ConfigError that begins with `what`.
    """
    given = os.fspath(name_or_path)
    shipped = shipped_sets(folder)
    if given in shipped and not os.path.isfile(given):
        resource = importlib.resources.files("rfly_amphibious") / "data" / folder / f"{given}.yaml"
        return resource.read_bytes(), f"{given}.yaml", given
    if not os.path.exists(given):
        raise ConfigError(f"{what} {given!r}: no such file, and no shipped set of this name ({', '.join(shipped)})")
    try:
        with open(given, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{what} {given!r}: {error.strerror}") from None
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(f"{what} {given!r}: larger than {MAX_FILE_BYTES} bytes")
    return data, given, Path(given).stem


def checked_document(
    data: bytes,
    file: str,
    schema: Mapping[str, Any],
    keys: str,
    changes: Sequence[Change] = (),
    absent: Mapping[KeyPath, Any] | None = None,
) -> Document:
    """The document of a file's content, with the changes (`key_changes.changed`), which fits the schema.

    `keys`: what a file begins with, for the error of one that has no keys at all. Raises ConfigError that names file,
    line and key.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}:{data[: error.start].count(10) + 1}: not UTF-8 text") from None
    document = parse_yaml(text, file)
    if not isinstance(document.value, dict):
        raise ConfigError(f"{file}:{document.first_line}: expected the keys {keys}, …")
    if changes:
        document = changed(document, changes, absent)
    problem = first_error(jsonschema.Draft7Validator(schema).iter_errors(document.value), document, file)
    if problem is not None:
        raise ConfigError(problem)
    return document


@functools.cache
def load_schema(name: str) -> Mapping[str, Any]:
    """A schema of this package by its name."""
    folder = importlib.resources.files("rfly_amphibious") / "data" / "schemas"
    schema: Mapping[str, Any] = json.loads((folder / f"{name}.schema.json").read_text(encoding="utf-8"))
    return schema
