# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""GeoTIFF export of a height map, for GIS programs; needs rasterio, the extra `geo`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rfly_common.arrays import Bools
from rfly_common.files import StrPath, write_whole
from rfly_terrain.files.arrays import north_up
from rfly_terrain.files.raster_file import rasterio_module
from rfly_terrain.files.raster_layout import local_crs
from rfly_terrain.height_map.height_map import HeightMap

if TYPE_CHECKING:
    from rasterio.io import DatasetWriter


def write_geotiff(height_map: HeightMap, path: StrPath) -> None:
    """Write the heights as float32 metres, row 0 in the north, in the map's own x east and y north.

    With a geodetic origin the file is georeferenced (transverse Mercator around the origin, WGS 84)
    and the heights are above sea level: those of the map plus the origin's altitude. Otherwise they
    are the map's own, without a place. Raises ConfigError if rasterio is not installed.
    """
    heights = north_up(height_map, height_map.heights)
    if height_map.geo_origin is not None:
        heights = (heights.astype("float64") + height_map.geo_origin[2]).astype("float32")
    with _dataset(height_map, path, "float32", predictor=3) as dataset:
        dataset.write(heights, 1)
        dataset.set_band_unit(1, "metre")


def write_viewshed_geotiff(height_map: HeightMap, seen: Bools, path: StrPath) -> None:
    """Write a viewshed of the map as bytes, 1 in sight and 0 out of sight, placed like the heights.

    Raises ConfigError if rasterio is not installed.
    """
    with _dataset(height_map, path, "uint8") as dataset:
        dataset.write(north_up(height_map, seen).astype("uint8"), 1)
        dataset.set_band_description(1, "in sight")


@contextmanager
def _dataset(
    height_map: HeightMap, path: StrPath, dtype: str, **options: Any
) -> Iterator[DatasetWriter]:
    """Yield a new raster of one band, a pixel around each sample, where the map is.

    It is written whole at the end of the block, since GDAL would leave a part on a full disk.
    """
    rasterio = rasterio_module()
    x_min, _, _, y_max = height_map.bounds
    step_x = abs(height_map.step_x)
    step_y = abs(height_map.step_y)
    place = height_map.geo_origin
    with rasterio.MemoryFile() as memory:
        with memory.open(
            driver="GTiff",
            width=height_map.rows,
            height=height_map.columns,
            count=1,
            dtype=dtype,
            crs=None if place is None else local_crs(place[0], place[1]),
            transform=rasterio.transform.from_origin(
                x_min - step_x / 2, y_max + step_y / 2, step_x, step_y
            ),
            compress="deflate",
            **options,
        ) as dataset:
            yield dataset
        write_whole(path, memory.getbuffer())
