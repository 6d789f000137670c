"""Configuration documents: shipped files by name, other files by path, UTF-8 YAML, JSON schema."""

from __future__ import annotations

import functools
import importlib.resources
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema

from rfly_common.config.marked_yaml import Document, parse_yaml
from rfly_common.config.schema_errors import first_error
from rfly_common.errors import ConfigError
from rfly_common.files import StrPath, read_regular


def shipped_names(package: str, folder: str) -> list[str]:
    """Names of the YAML files in a folder of the package's `data`."""
    entries = (importlib.resources.files(package) / "data" / folder).iterdir()
    return sorted(entry.name[: -len(".yaml")] for entry in entries if entry.name.endswith(".yaml"))


def read_config(
    what: str, package: str, folder: str, name_or_path: StrPath, max_bytes: int, noun: str = "set"
) -> tuple[bytes, str, str]:
    """(content, what errors call the file, its name) of a shipped file or of one by its path.

    Raises ConfigError that begins with `what`; `noun` is what it calls a shipped one.
    """
    given, shipped = os.fspath(name_or_path), shipped_names(package, folder)
    if given in shipped and not os.path.isfile(given):
        resource = importlib.resources.files(package) / "data" / folder / f"{given}.yaml"
        return resource.read_bytes(), f"{given}.yaml", given
    if not os.path.exists(given):
        raise ConfigError(f"{what} {given!r}: no such file, and no shipped {noun} of this name ({', '.join(shipped)})")
    return read_limited(given, what, max_bytes), given, Path(given).stem


def read_limited(path: StrPath, what: str, max_bytes: int) -> bytes:
    """A file's content; ConfigError that begins with `what` where it can't be read or is larger than max_bytes."""
    given = os.fspath(path)
    try:
        return read_regular(given, max_bytes)
    except OSError as error:
        raise ConfigError(f"{what} {given!r}: {error.strerror}") from None


def decode_text(data: bytes, file: str) -> str:
    """UTF-8 text, a byte order mark removed; ConfigError that names file and line."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}:{data[: error.start].count(10) + 1}: not UTF-8 text") from None


def parse_mapping(data: bytes, file: str, keys: str) -> Document:
    """The YAML document of a file's content; ConfigError where it has no keys, such as `keys`, at all."""
    document = parse_yaml(decode_text(data, file), file)
    if not isinstance(document.value, dict):
        raise ConfigError(f"{file}:{document.first_line}: expected the keys {keys}")
    return document


def check_schema(document: Document, file: str, schema: Mapping[str, Any]) -> None:
    """ConfigError that names file, line, key and what is allowed where the document does not fit."""
    problem = first_error(jsonschema.Draft7Validator(schema).iter_errors(document.value), document, file)
    if problem is not None:
        raise ConfigError(problem)


@functools.cache
def load_schema(package: str, name: str) -> Mapping[str, Any]:
    """A JSON schema of a package by its name."""
    file = importlib.resources.files(package) / "data" / "schemas" / f"{name}.schema.json"
    schema: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return schema
