# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Files that peers of the graph name: read only below folders that the operator allows.

Any peer may call a service with any path of the node's machine. So a name leads below the folders
of one parameter or to nothing, links followed. Answers, logs and /diagnostics contain the requested
name, a line number and how to learn more on that machine, but no content of a file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from rfly_common.errors import ConfigError
from rfly_common.files import StrPath


def resolve_below(
    name: str, folders: Sequence[StrPath], parameter: str, endings: Sequence[str] = ("",)
) -> str:
    """Return the real path of the file `name`, relative to one of the folders or absolute.

    The first of `endings` that exists is appended. Raises ConfigError, whose text does not reveal
    whether a file elsewhere exists; `parameter` names the folders.
    """
    inside = False

    for folder in folders:
        for ending in endings:
            try:
                path = os.path.realpath(os.path.join(folder, name + ending))
                if not is_below(path, folder):
                    continue
                inside = True
                if os.path.exists(path):
                    return path
            except (OSError, ValueError):  # a name that no file can have
                continue

    if inside:
        raise ConfigError(f"{name!r}: no such file below the folders of the parameter {parameter}")

    shown = ", ".join(map(str, folders)) or "which names none"
    raise ConfigError(f"{name!r}: not below the folders of the parameter {parameter} ({shown})")


def is_below(path: StrPath, folder: StrPath) -> bool:
    """Return whether a real path lies in a folder or deeper."""
    real = os.path.realpath(folder)
    return os.path.commonpath([real, path]) == real != os.fspath(path)


def without_content(name: str, error: Exception, path: StrPath, command: str) -> str:
    """Return what a peer may learn about a file that cannot be used.

    `command` shows the rest on the node's machine.
    """
    if isinstance(error, OSError) and error.strerror:
        return f"{name!r}: {error.strerror}"

    # the line is no content
    numbered = re.match(
        rf"(?:file: )?{re.escape(os.fspath(path))}(?::|, line |: line )(\d+)\b", str(error)
    )
    where = f", line {numbered[1]}" if numbered else ""
    return f"{name!r}{where}: cannot be used; on the node's machine `{command}` says why"
