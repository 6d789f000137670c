# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Imagery: the colours of a terrain's ground from an orthophoto or another picture from above.

A picture lies by its own coordinate system, or by three points in a table next to it. Positions are
those of the terrain, x east and y north; the way from them to a coordinate system is the terrain's
projection about its origin, on WGS 84.
"""

from __future__ import annotations

import csv
import functools
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError, RflyError, TerrainFormatError
from rfly_common.files import StrPath, read_regular
from rfly_common.untrusted_files.reader_errors import reader_errors, terrain_file_errors
from rfly_terrain.files.raster_file import rasterio_module, unshifted_datum
from rfly_terrain.files.raster_layout import local_crs
from rfly_terrain.height_map.places import place_origin, position_of
from rfly_terrain.height_map.point_cloud import Region
from rfly_terrain.height_map.terrain import RETRY_S
from rfly_terrain.imagery.picture_file import PictureFile
from rfly_terrain.map_files.search import existing_file

if TYPE_CHECKING:
    from rfly_common.geodesy import GeoPoint
    from rfly_terrain.height_map.terrain import Terrain

MAX_TEXTURE = 8192
"""Pixels of a side of a texture, at most."""
MAX_TABLE_BYTES = 65_536
_LATTICE = 32
"""Pixels of a texture between two places that are projected; those between are interpolated.

With pixels of 1 km that is off by 2 % of a pixel, and less with smaller ones.
"""
_TILE = 256
"""Pixels of a side of the tiles for single points."""
PROBLEM_S = 10.0
"""Time after its last try for which a tile of colours that could not be read counts, s."""
_TILES_KEPT = 400
"""Tiles for single points in memory: 100 MB."""
_LEVELS = 24
"""Levels of tiles, each twice as coarse as the one below."""
_FLATTEST = 1e-3
"""Sine of the angle between the sides of a pixel, below which three points are on a line."""


@dataclass(frozen=True)
class PicturePlacement:
    """Way from positions on a terrain to a picture's pixels."""

    inverse: Floats
    """Own coordinates (x, y, 1) to column and row, (2, 3)."""
    origin: GeoPoint | None = None
    """Origin of the terrain; None if the picture's own coordinates are those of the terrain."""
    crs: Any = None
    turn: float = 0.0
    """360°, in the units of geographic coordinates."""
    middle_x: float = 0.0
    """Own x of the picture's middle."""

    def pixels(self, x: Floats, y: Floats) -> Floats:
        """Return columns and rows, (2, …), 0 at the outer corner of the upper left pixel."""
        own = np.array([x, y], float)
        if self.origin is not None:
            local = local_crs(*self.origin[:2])
            own = np.reshape(
                rasterio_module().warp.transform(local, self.crs, own[0].ravel(), own[1].ravel()),
                own.shape,
            )
        if self.turn:
            own[0] -= self.turn * np.round((own[0] - self.middle_x) / self.turn)
        found = np.tensordot(self.inverse[:, :2], own, 1)
        found += self.inverse[:, 2].reshape(2, *[1] * (own.ndim - 1))
        return np.where(np.isfinite(found), found, -1e9)


class Imagery:
    """Colours of a terrain's ground. Several threads may ask at once."""

    def __init__(self, picture: PictureFile, placement: PicturePlacement, terrain: Terrain) -> None:
        self.name = Path(picture.path).name
        self._picture = picture
        self._placement = placement
        x_min, x_max, y_min, y_max = terrain.bounds
        middle = np.array([x_min + x_max, y_min + y_max]) / 2.0
        corner = placement.pixels(*np.add(middle, [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]).T)
        sides = corner[:, 1:] - corner[:, :1]
        self.pixel = 1.0 / math.sqrt(max(abs(float(np.linalg.det(sides))), 1e-12))
        """Side of a pixel on the ground, m, about."""
        self._clock: Callable[[], float] = time.monotonic
        self._failed: dict[tuple[int, int, int], tuple[float, RflyError]] = {}
        """Times, s, at which tiles of colours could not be read, and why, until they can."""
        self._lock = threading.Lock()
        self._tile = functools.lru_cache(_TILES_KEPT)(self._read_tile)

    @classmethod
    def open(cls, path: StrPath, terrain: Terrain, origin: GeoPoint | None = None) -> Imagery:
        """Open a GeoTIFF, or a picture with three points in `NAME.csv` next to it.

        `origin`: latitude, longitude and altitude of x = y = z = 0, by default the map's own.

        The table has the columns `column` and `row` (pixels from the outer corner of the upper left
        one, right and down) and `x` and `y` (m, east and north) or `lat` and `lon` (degrees).
        Raises TerrainFileNotFound, TerrainFormatError (an unusable picture or table), and
        ConfigError if the picture is nowhere on the map, or the map names no place on the Earth.
        """
        picture = PictureFile(path)
        if picture.has_place:
            placement = _own_placement(picture, origin or place_origin(terrain))
        else:
            placement = _placement_by_points(Path(path), lambda: origin or place_origin(terrain))

        x_min, x_max, y_min, y_max = terrain.bounds
        shares = np.linspace(0.0, 1.0, 65)
        x, y = np.meshgrid(x_min + (x_max - x_min) * shares, y_min + (y_max - y_min) * shares)
        columns, rows = placement.pixels(x, y)
        meets = min(columns.max(), rows.max()) > 0.0
        if not (meets and columns.min() < picture.columns and rows.min() < picture.rows):
            raise ConfigError(f"{path}: shows no ground of the map {terrain.name!r}")
        return cls(picture, placement, terrain)

    @property
    def problem(self) -> str:
        """Reason why a tile of colours could not be read; empty if all could at their last try.

        A tile that is not wanted any more counts for PROBLEM_S after it.
        """
        begin = self._clock() - PROBLEM_S
        with self._lock:
            reasons = (str(why) for time_s, why in self._failed.values() if time_s >= begin)
            return next(reasons, "")

    def texture(self, region: Region, width: int, height: int) -> NDArray[np.uint8]:
        """Return the colours of a region, RGBA, (height, width, 4), row 0 in the north.

        `region` is x_min, x_max, y_min, y_max, ENU, m: the outer edges of the outer pixels. The
        picture is averaged where it is finer, and interpolated where it is coarser. Where it shows
        nothing the opacity is 0.
        """
        if not 1 <= min(width, height) <= max(width, height) <= MAX_TEXTURE:
            raise ValueError(f"{width} x {height} pixels, expected 1 to {MAX_TEXTURE:,}")

        # columns and rows of the picture on a lattice
        x_min, x_max, y_min, y_max = region
        u, along_u = _lattice(width)
        v, along_v = _lattice(height)
        x, y = np.meshgrid(x_min + (x_max - x_min) * u, y_max - (y_max - y_min) * v)
        nodes = self._placement.pixels(x, y)

        # the part of the picture below it, as coarse as the texture
        steps = np.hypot(
            np.diff(nodes, axis=2)[:, 1:] * (len(u) - 1) / width,
            np.diff(nodes, axis=1)[:, :, 1:] * (len(v) - 1) / height,
        )
        parts = []
        shape = []
        for axis, count in ((1, self._picture.rows), (0, self._picture.columns)):
            coarse = max(1.0, float(steps[axis].min()))
            first = math.floor(nodes[axis].min() - 2.0 * coarse)
            end = math.ceil(nodes[axis].max() + 2.0 * coarse)
            first, end = (min(max(place, 0), count) for place in (first, end))
            parts.append(range(first, end))
            shape.append(max(1, round((end - first) / coarse)))
        rows, columns = parts
        if not (rows and columns):
            return np.zeros((height, width, 4), np.uint8)
        source = self._picture.read(rows, columns, (shape[0], shape[1]))

        # resampled, with colours weighted by their opacity
        column, row = (along_v @ each @ along_u.T for each in nodes)
        inside = (column >= 0) & (column <= self._picture.columns)
        inside &= (row >= 0) & (row <= self._picture.rows)
        column = (column - columns.start) * (shape[1] / len(columns)) - 0.5
        row = (row - rows.start) * (shape[0] / len(rows)) - 0.5
        texture = _sampled(source, column, row)
        texture[~inside] = 0
        return texture

    def colours(self, x: ArrayLike, y: ArrayLike, size: ArrayLike = 0.0) -> NDArray[np.uint8]:
        """Return the colours of points of the ground, RGBA, (…, 4); opacity 0: none is known.

        `size`: side of the ground around each point, m, whose mean colour it gets, to within a
        factor of √2; by default that of a pixel. Raises RflyError for a tile of colours that cannot
        be read, which is tried again RETRY_S later.
        """
        east, north, sizes = np.broadcast_arrays(x, y, size)
        shape = east.shape
        east, north, sizes = (np.ravel(each).astype(np.float64) for each in (east, north, sizes))
        level = np.rint(np.log2(np.maximum(sizes, self.pixel) / self.pixel)).astype(np.int64)
        level = np.minimum(level, _LEVELS)

        # points by their tile
        pixel = self.pixel * np.exp2(level)
        u = east / pixel
        v = -north / pixel
        tiles = np.column_stack([level, np.floor(u / _TILE), np.floor(v / _TILE)]).astype(np.int64)
        kinds, kind = np.unique(tiles, axis=0, return_inverse=True)
        order = np.argsort(kind.reshape(-1), kind="stable")
        ends = np.cumsum(np.bincount(kind.reshape(-1), minlength=len(kinds)))
        groups = np.split(order, ends[:-1]) if len(kinds) else []

        result = np.empty((len(east), 4), np.uint8)
        for points, (number, i, j) in zip(groups, kinds.tolist(), strict=True):
            tile = self._tile(number, i, j)
            # a tile has one pixel more on each side; OpenCV takes no long rows
            table = (-(-len(points) // _TILE), _TILE)
            column = np.resize(u[points] - i * _TILE + 0.5, table)
            row = np.resize(v[points] - j * _TILE + 0.5, table)
            result[points] = _sampled(tile, column, row).reshape(-1, 4)[: len(points)]
        return result.reshape(*shape, 4)

    def _read_tile(self, level: int, i: int, j: int) -> NDArray[np.uint8]:
        """Return a tile, the i-th to the east and the j-th to the south of the origin."""
        key = (level, i, j)
        with self._lock:
            tried_s, why = self._failed.get(key, (-math.inf, RflyError()))
        if self._clock() < tried_s + RETRY_S:
            raise type(why)(str(why))

        pixel = self.pixel * 2.0**level
        x = np.array([i * _TILE - 1, (i + 1) * _TILE + 1]) * pixel
        y = np.array([-(j + 1) * _TILE - 1, -j * _TILE + 1]) * pixel
        try:
            tile = self.texture((x[0], x[1], y[0], y[1]), _TILE + 2, _TILE + 2)
        except RflyError as error:
            with self._lock:
                # without what its traceback holds
                self._failed[key] = self._clock(), type(error)(str(error))
                if len(self._failed) > _TILES_KEPT:
                    del self._failed[next(iter(self._failed))]
            raise
        with self._lock:
            self._failed.pop(key, None)
        return tile


def over(texture: NDArray[np.uint8], ground: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return RGB of a texture, RGBA, on a ground, RGB, which shows where it is not opaque."""
    opacity = texture[..., 3:] / np.float32(255.0)
    mixed = ground + (texture[..., :3] - ground.astype(np.float32)) * opacity
    return np.rint(mixed).astype(np.uint8)


def _lattice(count: int) -> tuple[Floats, Floats]:
    """Return shares 0 … 1 of some places along a side, and the weights of them for each pixel."""
    places = -(-count // _LATTICE) + 1
    nodes = np.linspace(0.0, 1.0, places)
    middles = (np.arange(count)[:, None] + 0.5) / count
    return nodes, np.maximum(0.0, 1.0 - np.abs(middles - nodes) * (places - 1))


def _sampled(source: NDArray[np.uint8], column: Floats, row: Floats) -> NDArray[np.uint8]:
    """Return bilinear RGBA at columns and rows, (…, …), 0 in the middle of the first pixel.

    Colours are weighted by their opacity, so that those of transparent pixels do not count.
    """
    import cv2  # 20 MB that a node without a picture of the ground need not have

    places = (column.astype(np.float32), row.astype(np.float32), cv2.INTER_LINEAR)
    if source[..., 3].min() == 255:
        opaque = cv2.remap(source, *places, borderMode=cv2.BORDER_REPLICATE)
        return np.asarray(opaque, np.uint8)

    weighted = source.astype(np.float32)
    weighted[..., :3] *= weighted[..., 3:]
    mixed: Any = cv2.remap(weighted, *places, borderMode=cv2.BORDER_REPLICATE)
    mixed[..., :3] /= np.maximum(mixed[..., 3:], 1e-6)
    return np.rint(np.minimum(mixed, 255.0)).astype(np.uint8)


def _own_placement(picture: PictureFile, origin: GeoPoint) -> PicturePlacement:
    """Return where a picture lies by its own coordinate system."""
    crs = picture.crs
    if crs is None or not (crs.is_projected or crs.is_geographic):
        raise TerrainFormatError(
            f"{picture.path}: names no coordinate reference system; name it with gdal_edit -a_srs"
        )
    datum = unshifted_datum(crs, *origin[:2])
    if datum:
        raise TerrainFormatError(
            f"{picture.path}: no way is known from {datum} to WGS 84; convert it with gdalwarp "
            "-t_srs EPSG:4326, or remove its place and name three points"
        )
    to_own = np.reshape(picture.transform[:6], (2, 3))
    middle_x, _ = to_own @ (picture.columns / 2, picture.rows / 2, 1.0)
    turn = 2.0 * math.pi / crs.units_factor[1] if crs.is_geographic else 0.0
    return PicturePlacement(_inverse(to_own), origin, crs, turn, float(middle_x))


def check_picture(path: StrPath) -> None:
    """Raise the error of `Imagery.open` for a picture that no map could show."""
    if not PictureFile(path).has_place:
        _table_of(Path(path))


def _table_of(path: Path) -> Path:
    """Return the table next to a picture. Raise TerrainFormatError if there is none."""
    table = existing_file(path.with_suffix(""), ".csv")
    if table is None:
        raise TerrainFormatError(
            f"{path}: does not say where it lies; name three points of it in {path.stem}.csv, with "
            "the columns column, row, x, y or column, row, lat, lon"
        )
    return table


def _placement_by_points(path: Path, origin: Callable[[], GeoPoint]) -> PicturePlacement:
    """Return where a picture lies by the three points of the table next to it."""
    table = _table_of(path)
    with terrain_file_errors(table):
        text = read_regular(table, MAX_TABLE_BYTES).decode("utf-8-sig")
    expected = "expected three lines below the heading column,row,x,y or column,row,lat,lon"
    with reader_errors(lambda reason: TerrainFormatError(f"{table}: {expected} ({reason})")):
        lines = list(csv.DictReader(text.split("\n"), skipinitialspace=True))
        points = [{key.strip().lower(): float(line[key]) for key in line} for line in lines if line]
        pixels = np.array([[point["column"], point["row"], 1.0] for point in points])
        if "lat" in points[0]:
            x, y = position_of(
                [point["lat"] for point in points],
                [point["lon"] for point in points],
                origin(),
            )
        else:
            x, y = ([point[name] for point in points] for name in "xy")
        places = np.array([x, y], float).T
        if places.shape != (3, 2) or not np.isfinite([*pixels.T, *places.T]).all():
            raise ValueError(f"{len(points)} points")
        to_own = np.linalg.solve(pixels, places).T

    right, down = to_own[:, 0], to_own[:, 1]
    mirrored = right[0] * down[1] - right[1] * down[0]
    if not mirrored < -_FLATTEST * np.linalg.norm(right) * np.linalg.norm(down):
        raise TerrainFormatError(
            f"{table}: the points are on a line, or would show the picture mirrored: compare "
            "columns with rows, which count from the top, and x with y"
        )
    return PicturePlacement(_inverse(to_own))


def _inverse(to_own: Floats) -> Floats:
    """Return the affine transform back, (2, 3)."""
    return np.linalg.inv(np.vstack([to_own, [0.0, 0.0, 1.0]]))[:2]
