"""UEMapServe: the terrain class of RflySim's Python SDK, name by name. A ported script changes its
import line only.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rfly_common.errors import TerrainNotLoaded
from rfly_common.files import StrPath
from rfly_terrain.files.png_txt import read_map
from rfly_terrain.files.search import (
    MapFiles,
    find_in_folders,
    installation_folders,
    script_folders,
    search_folders,
)


class UEMapServe:
    """A terrain map in RflySim's own axes: x north, y east, z down (metres); offsets and scales in
    cm.

    UEMapServe() loads nothing, UEMapServe(name) loads at once. The files are looked for where the
    SDK does it, the folder of the started script and then CopterSim's map folder, and after that in
    the other places of `find_map`.

    Where the SDK prints a line and ends the interpreter, this class raises TerrainFileNotFound,
    TerrainFormatError or TerrainNotLoaded; a load that fails leaves the object as it was.
    """

    PosOffsetX: float
    """x of the first pixel, cm; 0 before a map is loaded"""
    PosOffsetY: float
    PosScaleX: float
    """cm a pixel"""
    PosScaleY: float
    xMax: float
    """abs(x) of the right-top point, m"""
    yMax: float
    binmap: NDArray[np.float32] | list[float]
    """(rows, columns) z in m, negative above the origin; rows along y, columns along x; [] before a
    map is loaded
    """
    rows: int
    columns: int
    GPS: list[float] | None
    """the last three of twelve values of the txt, in file order"""

    def __init__(self, name: StrPath = "") -> None:
        self.PosOffsetX = self.PosOffsetY = 0
        self.PosScaleX = self.PosScaleY = 0
        self.xMax = self.yMax = 0
        self.binmap = []
        self.GPS = None
        if name != "":
            self.LoadPngData(name)

    def LoadPngData(self, name: StrPath) -> None:
        """Loads the map `name` (no extension needed; may hold folders or be absolute) in place of
        the present one.
        """
        rfly_map = read_map(_find(name), "truncate")
        c = rfly_map.calibration
        self.PosOffsetX = c.pos_offset_x_cm
        self.PosOffsetY = c.pos_offset_y_cm
        self.PosScaleX = c.pos_scale_x_cm
        self.PosScaleY = c.pos_scale_y_cm
        self.xMax = c.x_max_m
        self.yMax = c.y_max_m
        self.rows = c.rows
        self.columns = c.columns
        self.GPS = None if c.points.gps is None else list(c.points.gps)
        self.binmap = rfly_map.heights_ned

    def getTerrainAltData(self, xin: float, yin: float) -> float:
        """z of the ground (m, down) at xin north, yin east; outside the map that of its edge, each
        axis on its own.
        """
        heights = self._loaded()
        x, y = (v if type(v) is float else _number(v) for v in (xin, yin))
        if not (math.isfinite(x) and math.isfinite(y)):
            raise ValueError(f"getTerrainAltData: x {x}, y {y}, expected finite metres")
        last_column = self.columns - 1
        last_row = self.rows - 1
        u = min(max((100.0 * x - self.PosOffsetX) / self.PosScaleX, 0.0), float(last_column))
        v = min(max((100.0 * y - self.PosOffsetY) / self.PosScaleY, 0.0), float(last_row))
        column = min(int(u), last_column - 1)
        row = min(int(v), last_row - 1)
        a = u - column
        b = v - row
        height = heights.item
        return (height(row, column) * (1.0 - a) + height(row, column + 1) * a) * (1.0 - b) + (
            height(row + 1, column) * (1.0 - a) + height(row + 1, column + 1) * a
        ) * b

    def outTerrainPoint(self) -> list[tuple[float, float, float]]:
        """Every pixel as (x north, y east, z down), metres: tuple n is row n // columns, column n %
        columns.
        """
        heights = self._loaded()
        x = (self.PosOffsetX + np.arange(self.columns) * self.PosScaleX) / 100
        y = (self.PosOffsetY + np.arange(self.rows) * self.PosScaleY) / 100
        east, north = np.meshgrid(y, x, indexing="ij")
        return list(
            zip(
                north.ravel().tolist(), east.ravel().tolist(), heights.ravel().tolist(), strict=True
            )
        )

    def _loaded(self) -> NDArray[Any]:
        if isinstance(self.binmap, list):
            raise TerrainNotLoaded(
                "no map is loaded: call LoadPngData(name) first, or UEMapServe(name)"
            )
        return self.binmap


def _number(value: Any) -> float:
    if np.ndim(value) != 0:
        raise TypeError(
            f"getTerrainAltData takes one x and one y, not {type(value).__name__} of shape {np.shape(value)}"
        )
    return float(value * 1.0)  # TypeError for a text, as the SDK's arithmetic


def _find(name: StrPath) -> MapFiles:
    return find_in_folders(name, [*script_folders(), *installation_folders(), *search_folders()])
