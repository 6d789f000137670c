"""YAML parameter files: shipped sets by name, files by path, changes of single keys; checked
against a JSON schema.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rfly_common.config import documents
from rfly_common.config.marked_yaml import Document, Key, key_path
from rfly_common.errors import ConfigError

MAX_FILE_BYTES = 1_000_000


KeyPath = tuple[Key, ...]
Change = tuple[KeyPath, Any]

_PART = re.compile(r"(?:^|\.)([A-Za-z_][A-Za-z0-9_]*)|\[(\d{1,6})\]")


def parse_key_path(text: str) -> KeyPath:
    """`wind.mean_mps[1]` -> ("wind", "mean_mps", 1). Raises ConfigError for what is none."""
    path: list[Key] = []
    at = 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            break
        path.append(part[1] if part[1] else int(part[2]))
        at = part.end()
    if not path or at < len(text) or isinstance(path[0], int):
        raise ConfigError(
            f"{text!r} is no key path; expected one such as seed, wind.mean_mps[1], vehicle.mass.body_kg"
        )
    return tuple(path)


def changed(
    document: Document, changes: Sequence[Change], absent: Mapping[KeyPath, Any] | None = None
) -> Document:
    """The document with other values; keys that were not there are added, elements of lists are
    not.

    `absent`: what stands for a list that is not in the file, by its path. Raises ConfigError where
    a path leads nowhere.
    """
    value = document.value
    lines = dict(document.lines)
    for path, new in changes:
        for start, default in (absent or {}).items():
            if path[: len(start)] == start and len(path) > len(start) and not _there(value, start):
                value = _with(value, start, 0, default, lines)
        value = _with(value, path, 0, new, lines)
    return document._replace(value=value, lines=lines)


def _there(value: Any, path: KeyPath) -> bool:
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True


def _with(value: Any, path: KeyPath, depth: int, new: Any, lines: dict[int, dict[Key, int]]) -> Any:
    """A copy of `value` with the change in it: what an alias shares elsewhere in the file stays as
    it is.
    """
    if depth == len(path):
        return new
    key = path[depth]
    here = key_path(path[:depth]) or "the file"
    if isinstance(key, int):
        if not isinstance(value, list):
            raise ConfigError(f"{key_path(path)}: {here} is no list")
        if key >= len(value):
            raise ConfigError(f"{key_path(path)}: {here} has the elements 0 … {len(value) - 1}")
        copy: Any = list(value)
        copy[key] = _with(value[key], path, depth + 1, new, lines)
    else:
        if not isinstance(value, dict):
            raise ConfigError(f"{key_path(path)}: {here} holds no keys")
        last = depth + 1 == len(path)
        if not last and key not in value and isinstance(path[depth + 1], int):
            raise ConfigError(f"{key_path(path)}: {key_path(path[: depth + 1])} is not in the file")
        copy = {**value, key: _with(value.get(key, {}), path, depth + 1, new, lines)}
    lines[id(copy)] = lines.get(id(value), {})
    return copy


def shipped_sets(folder: str) -> list[str]:
    """Names of the sets in a folder of `data`."""
    return documents.shipped_names("rfly_amphibious", folder)


def read_parameters(
    what: str, folder: str, name_or_path: str | os.PathLike[str]
) -> tuple[bytes, str, str]:
    """(content, what errors call the file, name of the set) of a shipped set or a file.

    Raises ConfigError that begins with `what`.
    """
    return documents.read_config(what, "rfly_amphibious", folder, name_or_path, MAX_FILE_BYTES)


def checked_document(
    data: bytes,
    file: str,
    schema: Mapping[str, Any],
    keys: str,
    changes: Sequence[Change] = (),
    absent: Mapping[KeyPath, Any] | None = None,
) -> Document:
    """The document of a file's content, with the changes (`changed`), which fits the schema.

    `keys`: what a file begins with, for the error of one that has no keys at all. Raises
    ConfigError that names file, line and key.
    """
    document = documents.parse_mapping(data, file, f"{keys}, …")
    if changes:
        document = changed(document, changes, absent)
    documents.check_schema(document, schema)
    return document


def load_schema(name: str) -> Mapping[str, Any]:
    """A schema of this package by its name."""
    return documents.load_schema("rfly_amphibious", name)
