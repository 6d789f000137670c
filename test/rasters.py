# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rasters of heights for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from optional_parts import late_module

rasterio = late_module("rasterio")
affine = late_module("rasterio.transform")


def write_tif(
    path: Any,
    raster: Any,
    transform: Any,
    crs: str = "EPSG:32632",
    nodata: float | None = None,
    **creation: Any,
) -> Any:
    """Write a GeoTIFF of one band and return its path; `creation` are options of GDAL."""
    raster = np.asarray(raster)
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        width=raster.shape[1],
        height=raster.shape[0],
        count=1,
        dtype=raster.dtype,
        crs=crs,
        transform=transform,
        nodata=nodata,
        **creation,
    ) as dataset:
        dataset.write(raster, 1)
    return path
