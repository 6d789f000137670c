# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""GeoTIFFs of odd places and projections, each with what its import has to give."""

from __future__ import annotations

import json
import math
import random
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attacks.text_mutators import Files

_ALPS = (46.5, 8.0)
_SVALBARD = (78.0, 15.0)
_ROSS_ISLAND = (-77.5, 166.0)
_NEW_YORK = (40.7, -74.0)
_DATE_LINE = (0.0, 179.99)
_POLE = (89.99, 0.0)
_PLACES = (_ALPS, _SVALBARD, _ROSS_ISLAND, _NEW_YORK, _DATE_LINE, _POLE)
_DEGREES = dict.fromkeys(("EPSG:4326", "EPSG:4258", "EPSG:4979"), _PLACES)
_PROJECTED = {
    **dict.fromkeys(("EPSG:32632", "EPSG:2056", "EPSG:2154", "EPSG:3035"), (_ALPS,)),
    **dict.fromkeys(("EPSG:3857", "EPSG:3395"), _PLACES[:-1]),
    "EPSG:3413": (_SVALBARD, _POLE),
    "EPSG:3031": (_ROSS_ISLAND,),
    "EPSG:2263": (_NEW_YORK,),
}
"""National grids, equal areas, Mercators, poles and feet, each with places where it is used."""
_NO_PLANES = (None, "EPSG:4978", "EPSG:5773")
"""No system, a geocentric one, and one of heights alone."""
_VOIDS = (math.nan, math.inf, -9999.0, 3e38)


MOST_CELL_IN_DEGREES = 100.0
"""Cells of this size, m, in degrees are refused if they are said to be metres."""


def placed_raster(rng: random.Random) -> Files:
    """Return a GeoTIFF of a plane somewhere on the Earth, and what is expected of its import.

    Half of the rasters are odd: degrees in place of metres or metres in place of degrees, a system
    without a plane, cells of any size, voids, wrong tags, or a cut file.
    """
    from rasterio._err import CPLE_BaseError
    from rasterio.errors import CRSError

    is_odd = rng.random() < 0.5
    system = rng.choice((*_DEGREES, *_PROJECTED, *_NO_PLANES * is_odd))
    place = rng.choice(_PLACES if is_odd else (_DEGREES | _PROJECTED)[system])
    in_degrees = (system in _DEGREES) != (is_odd and rng.random() < 0.4)
    plane = "EPSG:4326" if in_degrees else system if system in _PROJECTED else "EPSG:3857"
    cell = 10.0 ** (rng.uniform(-6.0, 7.0) if is_odd else rng.uniform(0.0, 2.0))

    expected: dict[str, Any] = {}
    try:
        grid, shape = _layout(rng, plane, place, cell / 111e3 if in_degrees else cell)
        heights, ground = _plane(grid, shape, plane, place)
        if not is_odd:
            expected = ground
        elif in_degrees and system in _PROJECTED and cell < MOST_CELL_IN_DEGREES:
            expected = {"refused": True}
        if is_odd and rng.random() < 0.5:
            heights[rng.randrange(shape[0]) :, : rng.randrange(shape[1])] = rng.choice(_VOIDS)
        data = _written(heights, system, grid, rng.choice(("none", "deflate", "lzw", "packbits")))
    except (CPLE_BaseError, CRSError):
        return placed_raster(rng)  # beyond the projection's domain

    # cut, or packed in another way than its tags say
    if is_odd and rng.random() < 0.3:
        data = data[: rng.randrange(len(data))]
    elif is_odd and rng.random() < 0.3:
        tag = data.index(struct.pack("<HHI", 259, 3, 1)) + 8
        data[tag : tag + 2] = struct.pack("<H", rng.choice((1, 5, 7, 8, 32773, 50001)))
    return {".tif": bytes(data), ".json": json.dumps(expected).encode()}


def _layout(
    rng: random.Random, plane: str, place: tuple[float, float], step: float
) -> tuple[Any, tuple[int, int]]:
    """Return the transform and shape of a raster about a place.

    Some are rotated, mirrored, or have cells that are not square.
    """
    import rasterio
    from rasterio.warp import transform

    rows = rng.randint(2, 40)
    columns = rng.randint(2, 40)
    (x,), (y,) = transform("EPSG:4326", plane, [place[1]], [place[0]])
    grid = (
        rasterio.Affine.translation(x, y)
        * rasterio.Affine.rotation(rng.choice((0.0, 0.0, 0.0, 30.0, 90.0)))
        * rasterio.Affine.scale(step * rng.choice((1, 1, -1)), step * rng.choice((-1, -2.5, 1)))
        * rasterio.Affine.translation(-columns / 2, -rows / 2)
    )
    return grid, (rows, columns)


def _plane(
    grid: Any, shape: tuple[int, int], plane: str, place: tuple[float, float]
) -> tuple[NDArray[np.float32], dict[str, Any]]:
    """Return heights that rise to the north and the east, and where they are known.

    They are a function of distance and azimuth from the place, by geodesics. "reach" is half the
    distance to the nearest edge, m.
    """
    from pyproj import Geod
    from rasterio.warp import transform

    column, row = np.meshgrid(np.arange(shape[1]) + 0.5, np.arange(shape[0]) + 0.5)
    xs, ys = grid @ (column.ravel(), row.ravel())
    longitudes, latitudes = np.array(transform(plane, "EPSG:4326", xs, ys))
    azimuth, _, distance = Geod(ellps="WGS84").inv(
        np.full(len(xs), place[1]), np.full(len(xs), place[0]), longitudes, latitudes
    )
    direction = np.radians(azimuth).reshape(shape)
    away = distance.reshape(shape)
    slope = 1.0 / float(away.max())
    heights = (50.0 * np.cos(direction) + 30.0 * np.sin(direction)) * away * slope

    edges = (away[0], away[-1], away[:, 0], away[:, -1])
    reach = min(float(edge.min()) for edge in edges) / 2.0
    return heights.astype(np.float32), {"place": place, "slope": slope, "reach": reach}


def _written(heights: Any, system: str | None, grid: Any, packing: str) -> bytearray:
    """Return the bytes of a GeoTIFF."""
    import rasterio

    rows, columns = heights.shape
    shape = {"width": columns, "height": rows, "count": 1, "dtype": "float32"}
    with rasterio.MemoryFile() as memory:
        with memory.open(
            driver="GTiff", crs=system, transform=grid, compress=packing, **shape
        ) as dataset:
            dataset.write(heights, 1)
        return bytearray(memory.getbuffer())
