# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Viewshed of a million samples, against GDAL's in the library that rasterio brings.

GDAL goes outwards from the observer and gives each pixel the height that can just be seen there,
from its neighbours' (Wang, Robinson and White 2000), in one thread. Ours follows each line over the
bilinear ground. The two differ where a line touches the ground: the note names the share.
"""

from __future__ import annotations

import ctypes
import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import DISAGREES, Row, measure
from rfly_common.imports import require
from rfly_terrain import HeightMap, write_geotiff
from rfly_terrain.height_map.viewshed import viewshed
from rfly_terrain.warm_up import warm_up

SIZE = 1_000
STEP = 5.0
"""Distance of samples, m."""
HEIGHT = 10.0
"""Height of the observer above the ground, m."""
TARGET = 2.0
"""Height of targets above the ground, m."""
MAX_DIFFERENT = 0.03
"""Largest share of samples that only one side has in sight."""
_READ_ONLY = 0
_EDGE = 2
"""GDAL's mode that is its default."""


def rows() -> Iterator[Row]:
    """Yield the row of one observer in the middle of rough ground."""
    warm_up()
    terrain = rough_ground()
    eye = (0.0, 0.0, terrain.altitude(0.0, 0.0) + HEIGHT)
    with tempfile.TemporaryDirectory() as folder:
        write_geotiff(terrain, Path(folder) / "ground.tif")
        theirs = gdal_viewshed(Path(folder) / "ground.tif", Path(folder) / "seen.tif")

        def ours() -> NDArray[np.bool_]:
            return viewshed(terrain, eye, target_height=TARGET)

        different = float(np.mean(ours() != theirs()))
        agree = f"{different:.1%} of the samples differ"
        if different > MAX_DIFFERENT:
            agree = f"{DISAGREES}: {agree}"
        a, b = measure(ours, theirs, 5)
        yield Row("viewshed, 1,000,000 samples", a, b, "GDAL", 1, None, agree)


def rough_ground() -> HeightMap:
    """Return hills of some waves, 5 km x 5 km."""
    rng = np.random.default_rng(4)
    along = STEP * (np.arange(SIZE) - SIZE // 2)
    heights = np.zeros((SIZE, SIZE))
    for length in (1500.0, 700.0, 300.0, 90.0):
        course, phase = rng.uniform(0.0, 2.0 * math.pi, 2)
        x, y = along[:, None] * math.cos(course), along * math.sin(course)
        heights += 0.03 * length * np.sin(2.0 * math.pi * (x + y) / length + phase)
    start = float(along[0])
    return HeightMap(heights, origin_x=start, origin_y=start, step_x=STEP, step_y=STEP)


def gdal_viewshed(ground: Path, target: Path) -> Callable[[], NDArray[np.bool_]]:
    """Return a function that lets GDAL compute the same of a file, and reads it."""
    rasterio: Any = require("rasterio", "this benchmark")
    (file,) = (Path(rasterio.__file__).parents[1] / "rasterio.libs").glob("libgdal*")
    gdal = ctypes.CDLL(str(file))
    for function in ("GDALOpen", "GDALGetRasterBand", "GDALViewshedGenerate"):
        getattr(gdal, function).restype = ctypes.c_void_p
    gdal.GDALAllRegister()
    dataset = ctypes.c_void_p(gdal.GDALOpen(str(ground).encode(), _READ_ONLY))
    band = ctypes.c_void_p(gdal.GDALGetRasterBand(dataset, 1))
    # observer's place and height, target's height; seen, unseen, out of range, no data; curvature
    numbers = (0.0, 0.0, HEIGHT, TARGET, 255.0, 0.0, 0.0, -1.0, 0.0)

    def run() -> NDArray[np.bool_]:
        result = gdal.GDALViewshedGenerate(
            band,
            b"GTiff",
            str(target).encode(),
            None,
            *map(ctypes.c_double, numbers),
            _EDGE,
            ctypes.c_double(0.0),
            None,
            None,
            0,
            None,
        )
        gdal.GDALClose(ctypes.c_void_p(result))
        with rasterio.open(target) as seen:
            # rows from the north to the south -> rows along east, columns along north
            return np.asarray(seen.read(1)[::-1].T == 255)

    return run
