# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Terrain by name: a folder of tiles, a GeoTIFF, or a map of RflySim, in the same folders."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rfly_common.errors import ConfigError, TerrainError, TerrainFormatError
from rfly_common.files import MAX_CELLS, StrPath
from rfly_common.untrusted_files.allowed_folders import is_below, without_content
from rfly_terrain.files.terrain_message import is_plain, load_asked_map
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.height_map.terrain import Terrain
from rfly_terrain.map_files.search import search_folders
from rfly_terrain.tiles.tile_files import MANIFEST
from rfly_terrain.tiles.tiled_height_map import MEMORY_MB, TiledHeightMap

_RASTERS = (".tif", ".tiff")


def open_terrain(
    name: StrPath, search_path: Sequence[StrPath] = (), memory_mb: float = MEMORY_MB
) -> Terrain:
    """Return the terrain of a name on the search path, or of a path.

    A folder of tiles or a GeoTIFF is opened, and keeps up to `memory_mb` of heights. Any other name
    is that of a map that is read: see `HeightMap.load`. Raises TerrainFileNotFound,
    TerrainFormatError, ConfigError.
    """
    path = find_tiles(name, search_path)
    if path is None:
        return HeightMap.load(name, search_path)
    return TiledHeightMap.open(path, memory_mb=memory_mb)


def load_terrain(name: StrPath, search_path: Sequence[StrPath] = ()) -> HeightMap:
    """Return the terrain of a name as `open_terrain` does, with all heights in memory.

    Raises ConfigError for one of too many samples, and what `open_terrain` raises.
    """
    path = find_tiles(name, search_path)
    return HeightMap.load(name, search_path) if path is None else whole_map(path)


def whole_map(path: Path) -> HeightMap:
    """Return all heights of a folder of tiles or a GeoTIFF; see `load_terrain`."""
    terrain = TiledHeightMap.open(path)
    count = terrain.rows * terrain.columns
    if count > MAX_CELLS:
        raise ConfigError(
            f"{path} has {count:,} samples, expected at most {MAX_CELLS:,} here, where all are in "
            "memory: make a smaller map of its sources with --size or --resolution; rfly terrain "
            "info, query, profile and cloud, and rfly up take this one"
        )
    return terrain.part()


def find_tiles(name: StrPath, search_path: Sequence[StrPath] = ()) -> Path | None:
    """Return the folder of tiles or GeoTIFF of a name or path; None if there is none.

    The places are those of `find_map`.
    """
    places = ("", *search_path, *search_folders())
    paths = (Path(folder, os.path.expanduser(name)) for folder in places)
    return next(filter(_is_tiled, paths), None)


def open_asked_terrain(
    name: str, search_path: Sequence[StrPath], memory_mb: float = MEMORY_MB
) -> Terrain:
    """Return the terrain that a peer names, as `load_asked_map` does.

    Raises TerrainFileNotFound, and TerrainFormatError without any of the file's content.
    """
    folders = [*search_path, *(search_folders() if is_plain(name) else ())]
    for folder in folders:
        path = Path(os.path.realpath(Path(folder, name)))
        if _is_tiled(path) and is_below(path, folder):
            try:
                return TiledHeightMap.open(path, memory_mb=memory_mb)
            except TerrainError as error:
                command = f"rfly terrain info {path}"
                message = without_content(name, error, path, command)
                raise TerrainFormatError(f"map {message}") from error
    return load_asked_map(name, search_path)


def _is_tiled(path: Path) -> bool:
    """Return whether a path is that of a folder of tiles or a GeoTIFF."""
    try:
        return (path / MANIFEST).is_file() or (path.suffix.lower() in _RASTERS and path.is_file())
    except (OSError, ValueError):  # a name that the file system cannot hold
        return False
