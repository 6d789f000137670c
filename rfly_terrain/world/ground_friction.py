# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Friction of the ground: areas, and a layer of a map. docs/model, section 3.1."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError, TerrainFormatError
from rfly_common.files import read_regular
from rfly_common.untrusted_files.allowed_folders import is_below
from rfly_terrain.map_files.png_header import MAX_PNG_BYTES

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap

LEAST_FRICTION = 0.01
"""Smallest factor of a ground: on less no wheel would hold at all."""
MOST_FRICTION = 2.0
"""Largest factor of a ground."""
MAX_CORNERS = 500
"""Corners of all areas together, at most: each wheel is compared with each of them."""
MIN_AREA = 1e-6
"""Smallest area of a polygon, m²."""


@dataclass(frozen=True, eq=False)
class FrictionArea:
    """A polygon of ground with a friction of its own."""

    corners: Floats
    """Corners, x east, y north, (n, 2), m; the last one leads to the first."""
    friction: float
    """Factor on the friction of tyres."""

    def __post_init__(self) -> None:
        x, y = self.corners.T
        doubled = float(x @ np.roll(y, -1) - y @ np.roll(x, -1))
        if not 0.5 * abs(doubled) >= MIN_AREA:
            raise ConfigError("corners: expected a polygon with an area")


@dataclass(frozen=True, eq=False)
class GroundFriction:
    """Factor on the friction of tyres, by the place; 1: the tyres' own friction."""

    elsewhere: float = 1.0
    """Factor where neither an area nor the layer says another one."""
    areas: tuple[FrictionArea, ...] = ()
    """Areas; where some overlap, the last of them counts."""
    layer: NDArray[np.float32] | None = None
    """Factors at the samples of the map, (rows, columns); 0: `elsewhere`. None: no layer."""
    layer_file: str = ""
    """Name of the layer's file; "": none."""

    def __post_init__(self) -> None:
        corners = sum(len(area.corners) for area in self.areas)
        if corners > MAX_CORNERS:
            raise ConfigError(f"{corners} corners of areas, expected at most {MAX_CORNERS}")

    def edges(self) -> Floats:
        """Return the edges of all areas that lead north or south, (e, 6).

        A row holds the least and the largest y, x at the least y, dx/dy, the area's factor, and 1
        for the last edge of an area.
        """
        rows = [np.empty((0, 6))]
        for area in self.areas:
            ends = np.stack([area.corners, np.roll(area.corners, -1, axis=0)], axis=1)
            ends = ends[ends[:, 0, 1] != ends[:, 1, 1]]
            downwards = ends[:, 0, 1] > ends[:, 1, 1]
            ends[downwards] = ends[downwards][:, ::-1]
            (x0, y0), (x1, y1) = ends[:, 0].T, ends[:, 1].T
            of_area = np.column_stack(
                [y0, y1, x0, (x1 - x0) / (y1 - y0), np.full(len(ends), area.friction), x0 * 0.0]
            )
            of_area[-1, 5] = 1.0
            rows.append(of_area)
        return np.concatenate(rows)

    def layer_on(self, terrain: HeightMap | None) -> NDArray[np.float32]:
        """Return the factors at the samples of a terrain, flat, with `elsewhere`; empty: none.

        Raise ConfigError if the layer is for another map.
        """
        if self.layer is None:
            return np.empty(0, np.float32)
        if terrain is None or terrain.heights.shape != self.layer.shape:
            here = "there is no map" if terrain is None else f"the map has {terrain.heights.shape}"
            raise ConfigError(
                f"friction layer {self.layer_file!r}: {self.layer.shape} rows and columns, {here}"
            )
        factors = np.where(self.layer > 0.0, self.layer, np.float32(self.elsewhere))
        return np.ascontiguousarray(factors).reshape(-1)


def friction_layer(name: str, folder: str) -> NDArray[np.float32]:
    """Return the factors of a grey png in a folder or below it: each is the pixel's value / 100.

    Rows and columns are those of the map's own png. Raise ConfigError with the file and its fault.
    """
    from rfly_terrain.map_files.png_txt import grey_pixels

    path = os.path.realpath(os.path.join(folder, name))
    if not folder or not is_below(path, folder):
        raise ConfigError(f"{name!r}: expected a file in the folder of the world's file")
    try:
        data = np.frombuffer(read_regular(Path(path), MAX_PNG_BYTES), np.uint8)
        pixels = grey_pixels(data, name)
    except OSError as error:
        raise ConfigError(f"{name!r}: {error.strerror}") from None
    except TerrainFormatError as error:
        raise ConfigError(str(error)) from None

    largest = 100.0 * MOST_FRICTION
    if pixels.max(initial=0) > largest:
        raise ConfigError(f"{name!r}: a pixel has {pixels.max()}, expected at most {largest:g}")
    return (pixels / 100.0).astype(np.float32)


TYRES_OWN = GroundFriction()
"""Ground on which the friction of tyres is their own."""
