# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Maps that a peer of the graph requests by name, in a message or a service."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath

from rfly_common.errors import ConfigError, TerrainFileNotFound, TerrainFormatError
from rfly_common.files import StrPath
from rfly_common.untrusted_files.allowed_folders import resolve_below, without_content
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.map_files.search import MapFiles, find_map


def load_asked_map(name: str, search_path: Sequence[StrPath]) -> HeightMap:
    """Return the map of a name on the search path of maps, or of a path below the allowed folders.

    The folders are those of `map_search_path`. Raises TerrainFileNotFound, and TerrainFormatError
    without any of the file's content.
    """
    from rfly_terrain.map_files.png_txt import read_map

    try:
        files = find_map(name, search_path) if is_plain(name) else _files_below(name, search_path)
    except ConfigError as error:
        raise TerrainFileNotFound(f"map {error}") from error

    try:
        return HeightMap.of_map(read_map(files))
    except TerrainFormatError as error:
        command = f"rfly terrain info {files.png}"
        message = without_content(name, error, files.txt, command)
        raise TerrainFormatError(f"map {message}") from error


def is_plain(name: str) -> bool:
    """Return whether it is a mere name, without a folder in any system's notation."""
    if name in ("", ".", ".."):
        return False
    return name == PurePosixPath(name).name == PureWindowsPath(name).name


def _files_below(name: str, folders: Sequence[StrPath]) -> MapFiles:
    """Return the files of a map by a path below one of the folders."""
    stem = name[:-4] if name[-4:].lower() in (".png", ".txt") else name
    png, txt = (
        resolve_below(stem, folders, "map_search_path", (ending, ending.upper()))
        for ending in (".png", ".txt")
    )
    return MapFiles(Path(png), Path(txt))
