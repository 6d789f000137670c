# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Message types by name, and their definitions in the form that recordings carry."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from typing import Any

from ament_index_python.packages import PackageNotFoundError, get_package_share_directory

from rfly_common.errors import ConfigError

_TYPE = re.compile(r"([a-z][a-z0-9_]*)/msg/([A-Z][A-Za-z0-9]*)")
_SEPARATOR = "\n" + "=" * 80 + "\n"
_NESTED = re.compile(r"\b([a-z]\w*)/(\w+)")
_FIELD = re.compile(r"\s*([a-zA-Z][^\s#]*)\s+(\w+)(?!\w|\s*=)")
"""Type and name of a field; constants do not match."""


def message_class(kind: str) -> Any:
    """Return the class of a type such as `nav_msgs/msg/Path`. Raise ConfigError if not installed.

    Only packages with that message are imported, as a type's name may come from a file or from the
    graph.
    """
    named = _TYPE.fullmatch(kind)
    if named is None:
        raise ConfigError(
            f"{kind[:100]!r} is no message type, expected one such as nav_msgs/msg/Path"
        )

    try:
        _file(kind).stat()
        return getattr(importlib.import_module(f"{named[1]}.msg"), named[2])
    except (ImportError, AttributeError, OSError, PackageNotFoundError):
        raise ConfigError(
            f"the message type {kind} is not installed (ROS package {named[1]})"
        ) from None


@cache
def message_definition(kind: str) -> str:
    """Return the schema `ros2msg` of a type: its .msg file, then those of all types within it.

    Source: mcap.dev/spec/registry, "ros2msg". Raise ConfigError if a .msg file is not installed.
    """
    needed = [kind]
    for each in needed:  # the list grows during the loop
        fields = message_class(each).get_fields_and_field_types().values()
        nested = (
            f"{package}/msg/{name}" for text in fields for package, name in _NESTED.findall(text)
        )
        needed += [other for other in dict.fromkeys(nested) if other not in needed]

    parts = [
        _text(kind),
        *(f"MSG: {each.replace('/msg/', '/')}\n{_text(each)}" for each in needed[1:]),
    ]
    return _SEPARATOR.join(parts)


def same_fields(definition: str, other: str) -> bool:
    """Return whether two definitions describe the same bytes.

    Comments, constants and defaults may differ.
    """
    return _fields(definition) == _fields(other)


def _fields(definition: str) -> set[tuple[str, int, str, str]]:
    """Return (message type, index, field type, name) of all fields."""
    fields = set[tuple[str, int, str, str]]()
    name = ""
    index = 0
    for line in definition.splitlines():
        field = _FIELD.match(line)
        if line.startswith("MSG: "):
            name = line[5:].strip()
            index = 0
        elif field:
            index += 1
            fields.add((name, index, field[1].rpartition("/")[2], field[2]))
    return fields


def _text(kind: str) -> str:
    """Return the text of a type's .msg file. Raise ConfigError."""
    try:
        return _file(kind).read_text(encoding="utf-8")
    except (OSError, PackageNotFoundError):
        raise ConfigError(f"the definition of {kind} is not installed: share/{kind}.msg") from None


def _file(kind: str) -> Path:
    """Return the path of a type's .msg file."""
    package, folder, name = kind.split("/")
    return Path(get_package_share_directory(package)) / folder / f"{name}.msg"
