# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""YAML parameter files, checked against a JSON schema.

They are shipped sets by name, or files by path; single keys may be changed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rfly_common.config import documents
from rfly_common.config.marked_yaml import Document
from rfly_common.errors import ConfigError, Key, key_path

MAX_FILE_BYTES = 1_000_000
"""Largest parameter file, bytes."""

KeyPath = tuple[Key, ...]
"""Keys and indices that lead to a value."""
Change = tuple[KeyPath, Any]
"""Path of a key and its new value."""

_PART = re.compile(r"(?:^|\.)([A-Za-z_][A-Za-z0-9_]*)|\[(\d{1,6})\]")


def parse_key_path(text: str) -> KeyPath:
    """Return the path in a text: `wind.mean_mps[1]` -> ("wind", "mean_mps", 1).

    Raise ConfigError for a text that is no path.
    """
    path: list[Key] = []
    position = 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            break
        path.append(part[1] if part[1] else int(part[2]))
        position = part.end()
    if not path or position < len(text) or isinstance(path[0], int):
        raise ConfigError(
            f"{text!r} is no key path; "
            "expected one such as seed, wind.mean_mps[1], vehicle.mass.body_kg"
        )
    return tuple(path)


def changed(
    document: Document, changes: Sequence[Change], absent: Mapping[KeyPath, Any] | None = None
) -> Document:
    """Return the document with other values.

    New keys are added, new elements of lists are not. `absent`: the value that stands for a list
    that is not in the file, by its path. Raise ConfigError for a path that leads nowhere.
    """
    value = document.value
    lines = dict(document.lines)
    for path, new in changes:
        for start, default in (absent or {}).items():
            is_below = path[: len(start)] == start and len(path) > len(start)
            if is_below and not _has_path(value, start):
                value = _with(value, start, 0, default, lines)
        value = _with(value, path, 0, new, lines)
    return document._replace(value=value, lines=lines)


def _has_path(value: Any, path: KeyPath) -> bool:
    """Return whether a path of keys leads to a value."""
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True


def _with(value: Any, path: KeyPath, depth: int, new: Any, lines: dict[int, dict[Key, int]]) -> Any:
    """Return a copy of `value` with the change in it.

    Parts that an alias shares with other places of the file do not change there.
    """
    if depth == len(path):
        return new
    key = path[depth]
    parent = key_path(path[:depth]) or "the file"

    if isinstance(key, int):
        if not isinstance(value, list):
            raise ConfigError(f"{key_path(path)}: {parent} is no list")
        if key >= len(value):
            raise ConfigError(f"{key_path(path)}: {parent} has the elements 0 … {len(value) - 1}")
        copy: Any = list(value)
        copy[key] = _with(value[key], path, depth + 1, new, lines)
    else:
        if not isinstance(value, dict):
            raise ConfigError(f"{key_path(path)}: {parent} holds no keys")
        last = depth + 1 == len(path)
        if not last and key not in value and isinstance(path[depth + 1], int):
            raise ConfigError(f"{key_path(path)}: {key_path(path[: depth + 1])} is not in the file")
        copy = {**value, key: _with(value.get(key, {}), path, depth + 1, new, lines)}
    lines[id(copy)] = lines.get(id(value), {})
    return copy


def read_parameters(
    what: str, package: str, folder: str, name_or_path: str | os.PathLike[str]
) -> tuple[bytes, str, str]:
    """Return (content, name of the file for errors, name of the set) of a shipped set or a file.

    The sets are in a folder of the package's `data`. Raise ConfigError that begins with `what`.
    """
    return documents.read_config(what, package, folder, name_or_path, MAX_FILE_BYTES)


def checked_document(
    data: bytes,
    file: str,
    schema: Mapping[str, Any],
    keys: str,
    changes: Sequence[Change] = (),
    absent: Mapping[KeyPath, Any] | None = None,
) -> Document:
    """Return a file's content with the changes of `changed`, checked by the schema.

    `keys`: first keys of such a file, for the error of a file without any keys. Raise ConfigError
    that names file, line and key.
    """
    document = documents.parse_mapping(data, file, f"{keys}, …")
    if changes:
        document = changed(document, changes, absent)
    documents.check_schema(document, schema)
    return document
