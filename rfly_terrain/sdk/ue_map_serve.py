# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""UEMapServe: the terrain class of RflySim's Python SDK, name by name.

A ported script changes its import line only.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rfly_common.errors import TerrainNotLoaded
from rfly_common.files import StrPath
from rfly_terrain.map_files.png_txt import read_map
from rfly_terrain.map_files.search import (
    MapFiles,
    find_in_folders,
    installation_folders,
    script_folders,
    search_folders,
)


class UEMapServe:
    """A terrain map in RflySim's own axes: x north, y east, z down (metres).

    Offsets and scales are in cm. UEMapServe() loads nothing, UEMapServe(name) loads at once. Files
    are searched in the SDK's places, the folder of the started script and CopterSim's map folder,
    then in the other places of `find_map`.

    In cases where the SDK prints a line and ends the interpreter, this class raises
    TerrainFileNotFound, TerrainFormatError or TerrainNotLoaded. A load that fails leaves the object
    unchanged.
    """

    PosOffsetX: float
    """Position x of the first pixel, cm; 0 before a map is loaded."""
    PosOffsetY: float
    """Position y of the first pixel, cm; 0 before a map is loaded."""
    PosScaleX: float
    """Step of a pixel along x, cm."""
    PosScaleY: float
    """Step of a pixel along y, cm."""
    xMax: float
    """Absolute x of the right-top point, m."""
    yMax: float
    """Absolute y of the right-top point, m."""
    binmap: NDArray[np.float32] | list[float]
    """Heights z, m, (rows, columns), negative above the origin; rows along y, columns along x. []
    before a map is loaded.
    """
    rows: int
    """Number of rows."""
    columns: int
    """Number of columns."""
    GPS: list[float] | None
    """Last three of twelve values of the txt, in file order."""

    def __init__(self, name: StrPath = "") -> None:
        self.PosOffsetX = self.PosOffsetY = 0
        self.PosScaleX = self.PosScaleY = 0
        self.xMax = self.yMax = 0
        self.binmap = []
        self.GPS = None
        if name != "":
            self.LoadPngData(name)

    def LoadPngData(self, name: StrPath) -> None:
        """Load the map `name` in place of the present one.

        The name needs no extension; it may hold folders or be absolute.
        """
        rfly_map = read_map(_find(name), "truncate")
        calibration = rfly_map.calibration
        self.PosOffsetX = calibration.pos_offset_x_cm
        self.PosOffsetY = calibration.pos_offset_y_cm
        self.PosScaleX = calibration.pos_scale_x_cm
        self.PosScaleY = calibration.pos_scale_y_cm
        self.xMax = calibration.x_max_m
        self.yMax = calibration.y_max_m
        self.rows = calibration.rows
        self.columns = calibration.columns
        self.GPS = None if calibration.points.gps is None else list(calibration.points.gps)
        self.binmap = rfly_map.heights_ned

    def getTerrainAltData(self, xin: float, yin: float) -> float:
        """Return z of the ground (m, down) at xin north, yin east.

        Outside the map it is that of the map's edge, each axis on its own.
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
        first = height(row, column) * (1.0 - a) + height(row, column + 1) * a
        second = height(row + 1, column) * (1.0 - a) + height(row + 1, column + 1) * a
        return first * (1.0 - b) + second * b

    def outTerrainPoint(self) -> list[tuple[float, float, float]]:
        """Return every pixel as (x north, y east, z down), metres.

        Tuple n is row n // columns, column n % columns.
        """
        heights = self._loaded()
        x = (self.PosOffsetX + np.arange(self.columns) * self.PosScaleX) / 100
        y = (self.PosOffsetY + np.arange(self.rows) * self.PosScaleY) / 100
        east, north = np.meshgrid(y, x, indexing="ij")
        axes = (north.ravel().tolist(), east.ravel().tolist(), heights.ravel().tolist())
        return list(zip(*axes, strict=True))

    def _loaded(self) -> NDArray[Any]:
        """Return the heights; raise TerrainNotLoaded if there are none."""
        if isinstance(self.binmap, list):
            raise TerrainNotLoaded(
                "no map is loaded: call LoadPngData(name) first, or UEMapServe(name)"
            )
        return self.binmap


def _number(value: Any) -> float:
    """Return a scalar as a float; raise TypeError for anything else."""
    if np.ndim(value) != 0:
        raise TypeError(
            f"getTerrainAltData takes one x and one y, not {type(value).__name__} of shape "
            f"{np.shape(value)}"
        )
    return float(value * 1.0)  # TypeError for a text, as the SDK's arithmetic


def _find(name: StrPath) -> MapFiles:
    """Return the files of a map in the SDK's places, then in all others."""
    return find_in_folders(name, [*script_folders(), *installation_folders(), *search_folders()])
