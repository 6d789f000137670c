"""Message types by name, and their definitions as recordings carry them."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from typing import Any

from ament_index_python.packages import PackageNotFoundError, get_package_share_directory

from rfly_common.errors import ConfigError

_SEPARATOR = "\n" + "=" * 80 + "\n"
_NESTED = re.compile(r"\b([a-z]\w*)/(\w+)")
_FIELD = re.compile(r"\s*([a-zA-Z][^\s#]*)\s+(\w+)(?!\w|\s*=)")
"""type and name; no constant"""


def message_class(kind: str) -> Any:
    """The class of a type such as `nav_msgs/msg/Path`. Raises ConfigError where it is not installed."""
    package, _, name = kind.split("/")
    try:
        return getattr(importlib.import_module(f"{package}.msg"), name)
    except (ImportError, AttributeError):
        raise ConfigError(f"the message type {kind} is not installed (ROS package {package})") from None


@cache
def message_definition(kind: str) -> str:
    """Schema `ros2msg` of a type such as `nav_msgs/msg/Path`: its .msg file, then those of all types within it.

    Source: mcap.dev/spec/registry, "ros2msg". Raises ConfigError where a .msg file is not installed.
    """
    needed = [kind]
    for each in needed:  # it grows while it is walked
        fields = message_class(each).get_fields_and_field_types().values()
        nested = (f"{package}/msg/{name}" for text in fields for package, name in _NESTED.findall(text))
        needed += [other for other in dict.fromkeys(nested) if other not in needed]
    parts = [_text(kind), *(f"MSG: {each.replace('/msg/', '/')}\n{_text(each)}" for each in needed[1:])]
    return _SEPARATOR.join(parts)


def same_fields(definition: str, other: str) -> bool:
    """True where two definitions describe the same bytes: comments, constants and defaults do not count."""
    return _fields(definition) == _fields(other)


def _fields(definition: str) -> set[tuple[str, int, str, str]]:
    """(type it is of, its place, type, name) of all fields."""
    found, name, place = set[tuple[str, int, str, str]](), "", 0
    for line in definition.splitlines():
        field = _FIELD.match(line)
        if line.startswith("MSG: "):
            name, place = line[5:].strip(), 0
        elif field:
            place += 1
            found.add((name, place, field[1].rpartition("/")[2], field[2]))
    return found


def _text(kind: str) -> str:
    package, _, name = kind.split("/")
    try:
        return (Path(get_package_share_directory(package)) / "msg" / f"{name}.msg").read_text(encoding="utf-8")
    except (OSError, PackageNotFoundError):
        raise ConfigError(f"the definition of {kind} is not installed: share/{package}/msg/{name}.msg") from None
