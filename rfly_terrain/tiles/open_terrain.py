# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Terrain by name: a folder of tiles, a GeoTIFF, or a map of RflySim, in the same folders.

A folder of the search path may be the address of a web server, on which tiles and GeoTIFFs are
looked for. No other server is asked, and none for the maps of RflySim.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rfly_common.errors import (
    ConfigError,
    TerrainError,
    TerrainFileNotFound,
    TerrainFormatError,
)
from rfly_common.files import MAX_CELLS, StrPath
from rfly_common.untrusted_files.allowed_folders import is_below, without_content
from rfly_common.untrusted_files.reader_errors import terrain_file_errors
from rfly_terrain.files.terrain_message import is_plain, load_asked_map
from rfly_terrain.files.web_files import WebPlace
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.height_map.terrain import Terrain
from rfly_terrain.map_files.search import is_web, search_folders
from rfly_terrain.tiles.tile_files import MANIFEST, is_raster
from rfly_terrain.tiles.tiled_height_map import MEMORY_MB, TiledHeightMap


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


def whole_map(path: Path | WebPlace) -> HeightMap:
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


def find_tiles(name: StrPath, search_path: Sequence[StrPath] = ()) -> Path | WebPlace | None:
    """Return the folder of tiles or GeoTIFF of a name or path; None if there is none.

    The places are those of `find_map`. Raises TerrainFileNotFound for an address that no folder on
    the search path has, TerrainFormatError for a server that does not answer.
    """
    name = os.path.expanduser(name)
    for folder in ("", *search_path, *search_folders()):
        if is_web(folder):
            place = _tiles_on_server(folder, name)
            if place is not None:
                return place
        elif _is_tiled(Path(folder, name)):
            return Path(folder, name)

    if is_web(name):
        raise TerrainFileNotFound(
            "map on a server: no tiles below an address of the search path; allow one with "
            "--search-path, or the parameter map_search_path, such as https://HOST/FOLDER"
        )
    return None


def open_asked_terrain(
    name: str, search_path: Sequence[StrPath], memory_mb: float = MEMORY_MB
) -> Terrain:
    """Return the terrain that a peer names, as `load_asked_map` does.

    Raises TerrainFileNotFound, and TerrainFormatError without any of the file's content.
    """
    folders = [*search_path, *(search_folders() if is_plain(name) else ())]
    for folder in folders:
        path: Path | WebPlace | None
        if is_web(folder):
            path = _tiles_on_server(folder, name)
        else:
            path = Path(os.path.realpath(Path(folder, name)))
            path = path if _is_tiled(path) and is_below(path, folder) else None
        if path is not None:
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
        return (path / MANIFEST).is_file() or (is_raster(path) and path.is_file())
    except (OSError, ValueError):  # a name that the file system cannot hold
        return False


def _tiles_on_server(folder: StrPath, name: str) -> WebPlace | None:
    """Return the folder of tiles or GeoTIFF below an address; None if the server has none."""
    place = WebPlace.allowed(os.fspath(folder)).below(name)
    if place is None:
        return None
    with terrain_file_errors(place):
        return place if (place if is_raster(place) else place / MANIFEST).exists() else None
