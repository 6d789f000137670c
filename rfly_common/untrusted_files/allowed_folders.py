"""Files that a peer of the graph names: read only below folders that the operator named, and their
content stays there.

Who may call a service may name any path of the node's machine. So a name leads below the folders of
one parameter or to nothing, links followed; and what is answered, logged and shown on /diagnostics
is what was asked for, a line, and how to learn more on that machine, but never a word of what a
file holds.
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
    """The real path of the file `name`, relative to one of the folders or absolute, with the first
    of `endings` that exists.

    Raises ConfigError, which says the same of a file elsewhere whether it exists or not;
    `parameter` names the folders.
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
    """Whether a real path lies in a folder or deeper."""
    real = os.path.realpath(folder)
    return os.path.commonpath([real, path]) == real != os.fspath(path)


def without_content(name: str, error: Exception, path: StrPath, command: str) -> str:
    """What a peer is told of a file that cannot be used; `command` shows the rest on the node's
    machine.
    """
    if isinstance(error, OSError) and error.strerror:
        return f"{name!r}: {error.strerror}"
    line = re.match(
        rf"(?:file: )?{re.escape(os.fspath(path))}(?::|, line |: line )(\d+)\b", str(error)
    )
    where = f", line {line[1]}" if line else ""
    return f"{name!r}{where}: cannot be used; on the node's machine `{command}` says why"
