# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Maps that a peer of the graph sends in a rfly_suite/TerrainMap, or requests by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np

from rfly_common.errors import (
    ConfigError,
    TerrainError,
    TerrainFileNotFound,
    TerrainFormatError,
    shortened,
)
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


FARTHEST = 1e8
"""Largest distance from the origin, m."""
SMALLEST_STEP = 1e-3
"""Smallest step, m."""


def msg_to_height_map(message: Any, search_path: tuple[str, ...] = ()) -> HeightMap:
    """Return the map of a message.

    A message without heights names a map, which is loaded and must have the message's sha256.
    Raises TerrainFormatError for a message that contradicts itself, TerrainFileNotFound for a name
    not found here.
    """
    rows = int(message.rows)
    columns = int(message.columns)
    if len(message.height) == 0:
        if not is_plain(message.name):  # any peer may have sent it
            raise TerrainFormatError(
                f"terrain_map {message.name!r}: without heights, expected the name of a map alone"
            )
        local = load_asked_map(message.name, search_path)
        if local.sha256 != message.sha256:
            raise TerrainFormatError(
                f"map {message.name!r}: {' and '.join(map(str, local.files))} hold other heights "
                f"than the publisher's (sha256 {local.sha256[:12]}… instead of "
                f"{message.sha256[:12]}…); copy the publisher's files here"
            )
        return local

    if len(message.height) != rows * columns:
        raise TerrainFormatError(
            f"terrain_map {message.name!r}: {len(message.height)} heights for {rows} rows x "
            f"{columns} columns, expected {rows * columns}"
        )

    _check_extent(message)
    geo = message.geo_origin
    try:
        return HeightMap(
            np.asarray(message.height, np.float32).reshape(rows, columns),
            origin_x=message.origin_x,
            origin_y=message.origin_y,
            step_x=message.step_x,
            step_y=message.step_y,
            name=shortened(message.name),
            geo_origin=(float(geo[0]), float(geo[1]), float(geo[2])),
        )
    except TerrainError:
        raise
    except ValueError as error:
        raise TerrainFormatError(f"terrain_map {message.name!r}: {error}") from error


def _check_extent(message: Any) -> None:
    """Raise TerrainFormatError for finite numbers that are no place of this world.

    They lead to overflows in counts of cells.
    """
    for axis, origin, step, count in (
        ("x", message.origin_x, message.step_x, message.rows),
        ("y", message.origin_y, message.step_y, message.columns),
    ):
        end = origin + step * count
        is_near = abs(origin) <= FARTHEST and abs(end) <= FARTHEST
        if not (is_near and abs(step) >= SMALLEST_STEP):  # also for NaN
            raise TerrainFormatError(
                f"terrain_map {message.name!r}: origin_{axis} {origin:g}, step_{axis} {step:g}: "
                f"expected places up to {FARTHEST:g} m and steps from {SMALLEST_STEP:g} m"
            )
