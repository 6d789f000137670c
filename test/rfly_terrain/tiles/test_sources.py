# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Tiles of elevation models on different grids, against the ground that they were sampled from.

That ground rises evenly with latitude and longitude. So bilinear interpolation adds no error, if
each sample counts at its own place, also at the seams.
"""

from __future__ import annotations

import numpy as np
import pytest
from marks import exhaustively
from optional_parts import late_module
from rasters import write_tif

from rfly_common.errors import TerrainFormatError
from rfly_terrain import TiledHeightMap
from rfly_terrain.tiles.make_tiles import TileOptions, make_tiles
from rfly_terrain.tiles.mosaic import MosaicOptions
from rfly_terrain.tiles.sources import _largest_rectangle

pytestmark = pytest.mark.needs("rasterio", "pyproj")

affine = late_module("rasterio.transform")
pyproj = late_module("pyproj")

SECOND = 1 / 3600
NODATA = -9999.0
EXACT = 0.02
"""Rounding of heights and of GDAL's transform, m; a cell too far is 0.5 m."""


def slope(longitude, latitude):
    """Elevation of the ground, m: 0.5 m and 0.8 m for an arc second."""
    east = np.where(np.abs(longitude) > 90.0, longitude % 360.0 - 180.0, longitude - 12.0)
    return 300.0 + 1800.0 * east + 2880.0 * (latitude - 46.0)


def write(path, rows, columns, west, north, cell, crs="EPSG:4326", elevation=slope, holes=()):
    """Write the ground as a raster whose corner in the north-west is given in its own units."""
    x = west + cell * (np.arange(columns) + 0.5)
    y = north - cell * (np.arange(rows) + 0.5)
    to_degrees = pyproj.Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
    raster = elevation(*to_degrees.transform(*np.meshgrid(x, y))).astype(np.float32)
    for hole in holes:
        raster[hole] = NODATA
    return write_tif(path, raster, affine.from_origin(west, north, cell, cell), crs, NODATA)


def errors(folder, elevation=slope):
    """Return the differences of all samples from the ground, by pyproj."""
    tiled = TiledHeightMap.open(folder)
    x = tiled.origin_x + tiled.step_x * np.arange(tiled.rows)
    y = tiled.origin_y + tiled.step_y * np.arange(tiled.columns)
    latitude, longitude, _ = tiled.geo_origin
    place = f"+proj=tmerc +lat_0={latitude} +lon_0={longitude} +datum=WGS84"
    to_degrees = pyproj.Transformer.from_crs(place, "EPSG:4326", always_xy=True)
    places = to_degrees.transform(*np.meshgrid(x, y, indexing="ij"))
    return tiled, tiled.part().heights - elevation(*places)


def coarse_and_fine(folder, **fine):
    """Write cells of 1" below 46° and of 3" above, whose edges meet and whose centres do not."""
    return [
        write(folder / "south.tif", 150, 210, 12.0, 46.0, SECOND, **fine),
        write(folder / "north.tif", 50, 70, 12.0, 46.0 + 150 * SECOND, 3 * SECOND),
    ]


def metric_zones(folder):
    """Write two zones of UTM that overlap about 12° east, each askew in the other."""
    return [
        write(folder / "32.tif", 100, 100, 729_800.0, 5_101_500.0, 30.0, "EPSG:32632"),
        write(folder / "33.tif", 110, 100, 269_500.0, 5_101_600.0, 30.0, "EPSG:32633"),
    ]


def over_the_180th_meridian(folder):
    return [
        write(folder / "e.tif", 90, 120, 180.0 - 120 * SECOND, 46.0, SECOND),
        write(folder / "w.tif", 45, 60, -180.0, 46.0, 2 * SECOND),
    ]


@pytest.mark.parametrize("sources", [coarse_and_fine, metric_zones, over_the_180th_meridian])
@pytest.mark.parametrize("order", [1, exhaustively(-1)])
def test_the_ground_has_no_seam_between_grids(tmp_path, sources, order):
    make_tiles(sources(tmp_path)[::order], tmp_path / "t", TileOptions(side=64), jobs=1)
    tiled, error = errors(tmp_path / "t")
    assert tiled.step_x == pytest.approx(25.0, abs=7.0)
    assert error.size > 5_000
    assert np.abs(error).max() < EXACT


def test_the_files_of_tiles_do_not_change_what_fills(tmp_path):
    """Tiles of another size have the same heights, those of rims too."""
    holes = [np.s_[:40, 60:70], np.s_[:10, :20]]
    paths = coarse_and_fine(tmp_path, holes=holes)
    options = {"resampling": "cubic", "resolution": 40.0}
    fill = MosaicOptions(outside=0.0)
    for name, side in (("a", 64), ("b", 256)):
        how = TileOptions(fill, side=side, **options)
        make_tiles(paths, tmp_path / name, how, jobs=1, fill_nodata=True)
    a, b = (TiledHeightMap.open(tmp_path / name).part().heights for name in "ab")
    np.testing.assert_allclose(a, b, atol=1e-4, rtol=0)


def test_a_hole_is_filled_by_the_other_source(tmp_path):
    holes = [np.s_[40:70, 90:130], np.s_[100, 40]]
    fine = write(tmp_path / "fine.tif", 150, 210, 12.0, 46.0, SECOND, holes=holes)
    coarse = write(
        tmp_path / "coarse.tif", 60, 80, 12.0 - 7 * SECOND, 46.0 + 8 * SECOND, 3 * SECOND
    )
    with pytest.raises(TerrainFormatError, match="hold no data"):
        make_tiles([fine], tmp_path / "alone", TileOptions(side=256), jobs=1)
    make_tiles([fine, coarse], tmp_path / "t", TileOptions(side=64), jobs=1)
    assert np.abs(errors(tmp_path / "t")[1]).max() < EXACT


def test_the_first_source_counts_where_two_have_a_height(tmp_path):
    """The ground changes within a cell from the first one to the second."""

    def level(height):
        return lambda longitude, latitude: np.full(np.shape(latitude), height)

    first = write(tmp_path / "a.tif", 60, 60, 12.0, 46.0, SECOND, elevation=level(100.0))
    second = write(
        tmp_path / "b.tif", 60, 60, 12.0, 46.0 + 90 * SECOND, 2 * SECOND, elevation=level(200.0)
    )
    make_tiles([first, second], tmp_path / "t", TileOptions(side=64), jobs=1)
    tiled = TiledHeightMap.open(tmp_path / "t")
    seconds = (np.arange(-29.0, 89.0, 0.5) + 0.25) * SECOND
    heights = tiled.altitude_at(46.0 + seconds, np.full(seconds.size, 12.0 + 20 * SECOND))
    assert (heights[seconds < -2 * SECOND] == 100.0).all()
    assert (heights[seconds > 2 * SECOND] == 200.0).all()
    assert (np.diff(heights) >= 0.0).all()


def test_the_sea_beside_both(tmp_path):
    """Places without any file get the height of --outside; holes in a file do not."""
    paths = coarse_and_fine(tmp_path)
    narrow = write(tmp_path / "narrow.tif", 50, 35, 12.0, 46.0 + 150 * SECOND, 3 * SECOND)
    sea = TileOptions(MosaicOptions(outside=-1.5), side=64)
    make_tiles([paths[0], narrow], tmp_path / "t", sea, jobs=1)
    tiled, error = errors(tmp_path / "t")
    x, y = tiled.position_of(46.0 + 100 * SECOND, 12.0 + 160 * SECOND)
    assert tiled.altitude(x, y) == -1.5
    is_land = tiled.part().heights > 0.0
    assert 0.7 < is_land.mean() < 0.8
    away = np.abs(error[is_land]) < EXACT
    assert away.mean() > 0.97  # all but the coast, where the ground falls within a cell


def test_by_default_the_map_is_where_files_are(tmp_path):
    """The largest of all rectangles that are covered, by trying them all."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        covered = rng.random((7, 6)) < 0.75
        top, bottom, left, right = _largest_rectangle(covered)
        assert covered[top : bottom + 1, left : right + 1].all()
        areas = [
            (b - a) * (d - c)
            for a in range(7)
            for b in range(a + 1, 8)
            for c in range(6)
            for d in range(c + 1, 7)
            if covered[a:b, c:d].all()
        ]
        assert (bottom - top + 1) * (right - left + 1) == max(areas)
