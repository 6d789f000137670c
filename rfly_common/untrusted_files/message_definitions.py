# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Definitions of message types as recordings carry them: as `ros2msg`, as IDL, or not at all."""

from __future__ import annotations

from functools import cache
from typing import Any

from rfly_common.errors import CaptureError, ConfigError
from rfly_common.imports import require
from rfly_common.untrusted_files.reader_errors import reader_errors

_SEPARATOR = "=" * 80 + "\n"


def definition_of(kind: str, encoding: str, text: str) -> str:
    """Return the schema `ros2msg` of a type, recorded as `text`.

    IDL is converted, and a type that was recorded without a definition (until ROS 2 Humble) has
    that of ROS's own packages; both need rosbags, the extra `bags`. Return "" if none is known.
    """
    if encoding == "ros2msg" and text:
        return text
    try:
        require("rosbags", "reading definitions in IDL")
        with reader_errors(CaptureError):
            store = _store_of(text) if text else _humble()
            return str(store.generate_msgdef(kind, ros_version=2)[0])
    except (ConfigError, CaptureError):
        return ""


def _store_of(idl: str) -> Any:
    """Return a store of the types in a text of IDL, with rosbag2's headings or without."""
    from rosbags.typesys import Stores, get_types_from_idl, get_typestore

    parts = [idl]
    if idl.startswith(f"{_SEPARATOR}IDL: "):
        parts = [part.partition("\n")[2] for part in idl.split(_SEPARATOR)[1:]]
    store = get_typestore(Stores.EMPTY)
    types: dict[str, Any] = {}
    for part in parts:
        types |= get_types_from_idl(part)
    store.register(types)
    return store


@cache
def _humble() -> Any:
    """Return ROS 2 Humble's types, the last whose recordings have no definitions."""
    from rosbags.typesys import Stores, get_typestore

    return get_typestore(Stores.ROS2_HUMBLE)
