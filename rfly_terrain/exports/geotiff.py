# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""GeoTIFF export of a height map, for GIS programs; needs rasterio, the extra `geo`."""

from __future__ import annotations

from rfly_common.files import StrPath
from rfly_terrain.files.arrays import north_up
from rfly_terrain.files.dem_import import local_crs
from rfly_terrain.files.raster_file import rasterio_module
from rfly_terrain.height_map.height_map import HeightMap


def write_geotiff(height_map: HeightMap, path: StrPath) -> None:
    """Write the heights as float32 metres, row 0 in the north, in the map's own x east and y north.

    With a geodetic origin the file is georeferenced (transverse Mercator around the origin, WGS 84)
    and the heights are above sea level: those of the map plus the origin's altitude. Otherwise they
    are the map's own, without a place. Raises ConfigError if rasterio is not installed.
    """
    rasterio = rasterio_module()
    x_min, _, _, y_max = height_map.bounds
    step_x = abs(height_map.step_x)
    step_y = abs(height_map.step_y)

    heights = north_up(height_map)
    crs = None
    if height_map.geo_origin is not None:
        latitude, longitude, altitude = height_map.geo_origin
        crs = local_crs(latitude, longitude)
        heights = (heights.astype("float64") + altitude).astype("float32")

    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        width=height_map.rows,
        height=height_map.columns,
        count=1,
        dtype="float32",
        crs=crs,
        transform=rasterio.transform.from_origin(
            x_min - step_x / 2, y_max + step_y / 2, step_x, step_y
        ),
        compress="deflate",
        predictor=3,
    ) as dataset:
        dataset.write(heights, 1)
        dataset.set_band_unit(1, "metre")
