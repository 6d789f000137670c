# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Elevation models into height maps, compared with their own formulas and PROJ's geodesics."""

from __future__ import annotations

import http.server
import math
import re
import sys
import threading

import numpy as np
import pytest
import rasters
from optional_parts import late_module
from scipy.ndimage import map_coordinates

from rfly_common.errors import ConfigError, TerrainFileNotFound, TerrainFormatError
from rfly_common.imports import how_to_install
from rfly_terrain.exports.geotiff import write_geotiff
from rfly_terrain.files.arrays import import_array, write_npy, write_npz
from rfly_terrain.files.dem_import import import_dem
from rfly_terrain.files.writer import write_height_map
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.map_files.png_txt import read_map
from rfly_terrain.map_files.search import find_map

pytestmark = pytest.mark.needs("rasterio", "pyproj")

rasterio = late_module("rasterio")
pyproj = late_module("pyproj")
affine = late_module("rasterio.transform")

UTM32 = "EPSG:32632"


def write_tif(path, raster, transform, crs=UTM32, nodata=None, **tags):
    rasters.write_tif(path, raster, transform, crs, nodata)
    if tags:
        with rasterio.open(path, "r+") as dataset:
            if "unit" in tags:
                dataset.set_band_unit(1, tags["unit"])
            if "scale" in tags:
                dataset.scales = (tags["scale"],)
                dataset.offsets = (tags["offset"],)
    return path


def rows_and_columns(rows, columns):
    return np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)


def test_a_metric_raster_keeps_its_cells(tmp_path):
    """3 rows x 4 columns of 10 x 20 m keep every value bit by bit.

    Row 0 is the north, and the middle is the origin.
    """
    raster = rows_and_columns(3, 4) / 3
    terrain = import_dem(
        write_tif(tmp_path / "a.tif", raster, affine.from_origin(500_000, 5_200_060, 10, 20))
    )
    assert (terrain.rows, terrain.columns, terrain.step_x, terrain.step_y) == (4, 3, 10, 20)
    assert terrain.bounds == (-15, 15, -20, 20)
    np.testing.assert_array_equal(terrain.heights, raster[::-1].T)
    assert terrain.altitude(-15.0, 20.0) == raster[0, 0]  # north-west corner
    assert terrain.altitude(15.0, -20.0) == raster[2, 3]  # south-east corner
    assert terrain.name == "a"


def test_the_origin_is_found_on_the_globe(tmp_path):
    """The origin lies on UTM zone 32's central meridian, 9 degrees east.

    Its latitude follows from the distance along the meridian.
    """
    path = write_tif(
        tmp_path / "a.tif",
        rows_and_columns(10, 10),
        affine.from_origin(500_000 - 50, 5_300_000 + 50, 10, 10),
    )
    latitude, longitude, altitude = import_dem(path).geo_origin
    assert longitude == pytest.approx(9.0, abs=1e-9)
    along_meridian = pyproj.Geod(ellps="WGS84").inv(9.0, 0.0, 9.0, latitude)[2]
    assert along_meridian == pytest.approx(5_300_000 / 0.9996, abs=0.01)
    assert altitude == 0


def test_part_of_a_metric_raster(tmp_path):
    """--size cuts whole cells around the center, also between cells; nothing is resampled."""
    raster = rows_and_columns(20, 30)
    path = write_tif(tmp_path / "a.tif", raster, affine.from_origin(500_000, 5_000_200, 10, 10))
    terrain = import_dem(path, size=(100, 60))
    # the middle lies between columns 14 and 15 (centres at -45 … 45) and between rows 9 and 10 (-25
    # … 25)
    assert terrain.bounds == (-45, 45, -25, 25)
    np.testing.assert_array_equal(terrain.heights, raster[7:13, 10:20][::-1].T)
    with pytest.raises(ConfigError, match=r"400 x 60 m .* 290\.0 x 43\.5 m fit"):
        import_dem(path, size=(400, 60))


def test_a_plane_survives_resampling(tmp_path):
    """Bilinear resampling of a plane is exact.

    z = 100 + 0.1 east - 0.2 north on cells of 10 m, resampled to 4 m.
    """
    row, column = np.mgrid[0:50, 0:60]
    raster = (100 + 0.1 * (column - 29.5) * 10 - 0.2 * (24.5 - row) * 10).astype(np.float32)
    terrain = import_dem(
        write_tif(tmp_path / "a.tif", raster, affine.from_origin(499_700, 5_200_000, 10, 10)),
        resolution=4,
    )
    assert (terrain.step_x, terrain.step_y) == (4, 4)
    x, y = np.meshgrid(np.linspace(-280, 280, 23), np.linspace(-230, 230, 19))
    # on its middle meridian UTM is 0.9996 of true lengths
    expected = 100 + 0.9996 * (0.1 * x - 0.2 * y)
    np.testing.assert_allclose(terrain.altitude(x, y), expected, atol=2e-3)


def test_a_south_up_and_a_turned_raster(tmp_path):
    """A raster whose rows run north, and one turned by 30 degrees, give the same ground.

    The turned one is cut to where it has data.
    """

    def ground(x, y):
        return 50 + 0.05 * x + 0.03 * y

    column, row = np.meshgrid(np.arange(80) + 0.5, np.arange(80) + 0.5)
    south_up = affine.Affine(10, 0, 500_000, 0, 10, 5_200_000)
    turned = affine.Affine(
        10 * math.cos(0.5),
        10 * math.sin(0.5),
        500_000,
        10 * math.sin(0.5),
        -10 * math.cos(0.5),
        5_200_800,
    )
    for transform in (south_up, turned):
        a, b, c, d, e, f = transform[:6]
        x = a * column + b * row + c
        y = d * column + e * row + f
        x_0 = (a + b) * 40 + c
        y_0 = (d + e) * 40 + f
        path = write_tif(tmp_path / "a.tif", ground(x - x_0, y - y_0).astype(np.float32), transform)
        terrain = import_dem(path, size=(400, 400), resampling="bilinear")
        # a turned raster comes on the local grid: grid north of UTM and true north differ by up to
        # a degree here
        latitude, longitude, _ = terrain.geo_origin
        turn = math.radians((longitude - 9.0) * math.sin(math.radians(latitude))) if b else 0.0
        for east, north in ((0, 0), (150, 0), (0, 150), (-180, 120)):
            along_x = east * math.cos(turn) - north * math.sin(turn)
            along_y = east * math.sin(turn) + north * math.cos(turn)
            expected = ground(along_x, along_y)
            assert terrain.altitude(float(east), float(north)) == pytest.approx(expected, abs=0.1)


def test_a_geographic_raster_lies_where_the_geodesics_say(tmp_path):
    """Peaks at known places lie where distance and azimuth from the origin say.

    Distance and azimuth on the ellipsoid give their x east and y north.
    """
    raster = np.zeros((200, 300), np.float32)
    peaks = [(30, 40), (150, 260), (100, 150), (190, 20)]
    for row, column in peaks:
        raster[row, column] = 100
    transform = affine.from_origin(8.0, 47.0, 1 / 3600, 1 / 3600)
    path = write_tif(tmp_path / "deg.tif", raster, transform, crs="EPSG:4326")

    terrain = import_dem(path, resolution=5)
    latitude, longitude, _ = terrain.geo_origin
    assert (latitude, longitude) == (pytest.approx(47 - 100 / 3600), pytest.approx(8 + 150 / 3600))

    for row, column in peaks:
        azimuth, _, distance = pyproj.Geod(ellps="WGS84").inv(
            longitude, latitude, 8 + (column + 0.5) / 3600, 47 - (row + 0.5) / 3600
        )
        x = distance * math.sin(math.radians(azimuth))
        y = distance * math.cos(math.radians(azimuth))
        window = terrain.altitude(
            *np.meshgrid(x + np.arange(-40, 41, 2.0), y + np.arange(-40, 41, 2.0))
        )
        v, u = np.unravel_index(np.argmax(window), window.shape)
        assert math.hypot(u - 20, v - 20) * 2 < 6  # a cell of 5 m, and sampling steps of 2 m
        assert window.max() > 70


@pytest.mark.parametrize(
    ("crs", "place"),
    [
        ("EPSG:3857", (60.0, 10.0)),  # Web Mercator: lengths are doubled here
        ("EPSG:3413", (78.0, 100.0)),  # polar stereographic: north is turned by 145 degrees
    ],
)
def test_a_projection_that_is_not_true_is_resampled(tmp_path, crs, place):
    """Lengths and directions on the map are those of geodesics, not the projection's.

    GDAL finds places to an eighth of a cell, which is 40 m wide.
    """
    (x,), (y,) = rasterio.warp.transform("EPSG:4326", crs, [place[1]], [place[0]])
    transform = affine.from_origin(x - 2000, y + 2000, 40, 40)
    xs, ys = transform * np.meshgrid(np.arange(100) + 0.5, np.arange(100) + 0.5)
    longitudes, latitudes = rasterio.warp.transform(crs, "EPSG:4326", xs.ravel(), ys.ravel())
    azimuth, _, distance = pyproj.Geod(ellps="WGS84").inv(
        np.full(10_000, place[1]), np.full(10_000, place[0]), longitudes, latitudes
    )
    north = np.reshape(distance * np.cos(np.radians(azimuth)), (100, 100))
    path = write_tif(tmp_path / "a.tif", north.astype(np.float32), transform, crs)

    terrain = import_dem(path, size=(800, 800))
    for east, north in ((0, 0), (350, 0), (0, 350), (-200, -350)):
        assert terrain.altitude(float(east), float(north)) == pytest.approx(north, abs=5.0)


@pytest.mark.parametrize(
    ("crs", "corner", "message"),
    [
        (UTM32, (8.0, 47.0), "cells of 0.00027. x 0.00027. m, .* say so with --crs EPSG:4326"),
        ("EPSG:4326", (500_000, 5_200_000), "is no place on the Earth in EPSG:4326"),
    ],
)
def test_degrees_and_metres_mistaken_for_each_other_are_refused(tmp_path, crs, corner, message):
    cell = 1 / 3600 if crs == UTM32 else 30
    path = write_tif(
        tmp_path / "a.tif", rows_and_columns(9, 9), affine.from_origin(*corner, cell, cell), crs
    )
    with pytest.raises(TerrainFormatError, match=message):
        import_dem(path)


@pytest.mark.parametrize("crs", [None, UTM32])
def test_a_raster_without_a_place_is_refused_without_a_warning(tmp_path, crs, recwarn):
    with rasterio.open(
        tmp_path / "a.tif", "w", driver="GTiff", width=3, height=3, count=1, dtype="int16", crs=crs
    ) as dataset:
        dataset.write(np.ones((3, 3), np.int16), 1)
    recwarn.clear()
    with pytest.raises(TerrainFormatError, match="does not say where its cells lie"):
        import_dem(tmp_path / "a.tif", crs=UTM32)
    assert not [each for each in recwarn if "georeferenced" in str(each.message)]


def test_center_and_altitude(tmp_path):
    """The origin where it was asked for, on the ground or at a given elevation."""
    row, column = np.mgrid[0:200, 0:300]
    path = write_tif(
        tmp_path / "d.tif",
        (column + 10 * row).astype(np.int16),
        affine.from_origin(8, 47, 0.001, 0.001),
        "EPSG:4326",
    )
    place = (47 - 80.5 * 0.001, 8 + 120.5 * 0.001)  # the cell of row 80, column 120: 920 m

    # on the ground
    ground = import_dem(
        path, center=place, size=(2000, 3000), resolution=10, origin_altitude="ground"
    )
    assert ground.altitude(0.0, 0.0) == pytest.approx(0, abs=0.01)
    assert ground.geo_origin == (*place, pytest.approx(920, abs=0.5))
    assert ground.bounds == (-1000, 1000, -1500, 1500)

    # at a given elevation
    given = import_dem(path, center=place, size=(2000, 3000), resolution=10, origin_altitude=500.0)
    np.testing.assert_allclose(
        given.heights, ground.heights + (ground.geo_origin[2] - 500), atol=1e-3
    )

    with pytest.raises(ConfigError, match="choose another --center or --size"):
        import_dem(path, center=(46.0, 8.1), size=(2000, 3000))
    with pytest.raises(ConfigError, match=r"its middle is [45],\d{3} km from the center 8, 46;"):
        import_dem(path, center=(8.0, 46.0), resolution=10)


def test_the_whole_geographic_raster_has_no_empty_corners(tmp_path):
    """The map is cut to where the raster has data.

    Meridians converge, so the raster is no rectangle on the ground.
    """
    path = write_tif(
        tmp_path / "d.tif",
        np.full((300, 300), 7, np.int16),
        affine.from_origin(8, 60, 0.001, 0.001),
        "EPSG:4326",
    )
    terrain = import_dem(path)
    assert (terrain.z_min, terrain.z_max) == (7, 7)
    assert terrain.bounds[3] - terrain.bounds[2] == pytest.approx(299 * 0.001 * 111_400, rel=0.01)
    assert terrain.step_x == terrain.step_y


def test_units_scales_and_offsets(tmp_path):
    """Feet become metres; stored numbers become heights by the band's scale and offset."""
    where = affine.from_origin(500_000, 5_200_000, 10, 10)
    feet = import_dem(
        write_tif(tmp_path / "f.tif", np.full((3, 3), 100, np.int16), where, unit="ft")
    )
    assert feet.z_min == pytest.approx(30.48)

    scaled = import_dem(
        write_tif(tmp_path / "s.tif", np.full((3, 3), 100, np.int16), where, scale=0.1, offset=5.0)
    )
    assert scaled.z_min == pytest.approx(15.0)
    with pytest.raises(
        TerrainFormatError, match=r"'parsec', expected m, km, .* name it with --unit"
    ):
        import_dem(
            write_tif(tmp_path / "p.tif", np.full((3, 3), 100, np.int16), where, unit="parsec")
        )


def test_cells_without_data_are_refused_or_filled(tmp_path):
    """A hole of one cell in a plane: refused by default, interpolated on request."""
    raster = np.add.outer(np.arange(12.0), np.arange(9.0)).astype(np.float32)
    raster[5, 4] = -9999
    path = write_tif(
        tmp_path / "n.tif", raster, affine.from_origin(500_000, 5_200_000, 10, 10), nodata=-9999
    )

    # refused
    with pytest.raises(
        TerrainFormatError, match="1 of 108 cells hold no data; interpolate them with --fill-nodata"
    ):
        import_dem(path)

    # filled
    facts = []
    filled = import_dem(path, fill_nodata=True, on_read=facts.append)
    assert filled.heights[4, 12 - 1 - 5] == pytest.approx(9, abs=1e-5)  # a plane is harmonic
    assert (facts[0].filled_cells, facts[0].gaps.voids) == (1, {})

    # without any data
    empty = write_tif(
        tmp_path / "e.tif",
        np.full((3, 3), -9999.0),
        affine.from_origin(5e5, 5e6, 10, 10),
        nodata=-9999,
    )
    with pytest.raises(TerrainFormatError, match="no cell has data"):
        import_dem(empty, fill_nodata=True)


@pytest.mark.parametrize(
    ("place", "zone"),
    [((46.9, 7.2), 32632), ((-33.0, 18.1), 32734), ((60.0, 11.9), 32632), ((-16.8, -179.9), 32701)],
)
def test_the_north_of_utm_becomes_true_north(tmp_path, place, zone):
    """A valley along PROJ's meridian through the origin lies at x = 0, to a cell, for 3 km."""
    to_utm = pyproj.Transformer.from_crs("EPSG:4326", zone, always_xy=True)
    x, y = to_utm.transform(place[1], place[0])
    xs, ys = np.meshgrid(x + np.arange(-2000, 2000, 10.0) + 5, y - np.arange(-2000, 2000, 10.0) - 5)
    longitudes, _ = to_utm.transform(xs, ys, direction="INVERSE")
    east = np.radians(np.mod(longitudes - place[1] + 180, 360) - 180) * 6_378_137.0
    path = write_tif(
        tmp_path / "a.tif", np.abs(east), affine.from_origin(x - 2000, y + 2000, 10, 10), zone
    )

    facts = []
    terrain = import_dem(path, center=place, on_read=facts.append)
    # the valley at the meridian of the origin runs north
    across, along = np.meshgrid(np.arange(-60.0, 61.0), np.arange(-1500.0, 1501.0, 500.0))
    heights = terrain.altitude(across, along)
    np.testing.assert_allclose(across[0][np.argmin(heights, axis=1)], 0.0, atol=6.0)

    proj = pyproj.Proj(pyproj.CRS(zone))
    expected = math.radians(proj.get_factors(place[1], place[0]).meridian_convergence)
    assert facts[0].is_resampled
    assert facts[0].axes.north_turn == pytest.approx(expected, abs=1e-5)
    scale = proj.get_factors(place[1], place[0]).meridional_scale
    assert facts[0].axes.scale == pytest.approx(scale, abs=1e-5)


def test_cells_stay_only_if_they_are_where_latitude_and_longitude_have_them(tmp_path):
    """UTM on its meridian is 0.9996 of the ground: 4 km from the middle 1.6 m, cells are 2 m."""
    heights = rows_and_columns(4000, 40) / 40
    near = affine.from_origin(500_000 - 40, 5_200_000 + 4000, 2, 2)
    path = write_tif(tmp_path / "a.tif", heights, near)
    inverse = pyproj.Transformer.from_crs(UTM32, "EPSG:4326", always_xy=True)

    facts = []
    terrain = import_dem(path, on_read=facts.append)
    assert facts[0].is_resampled
    assert facts[0].largest_shift == pytest.approx(0.0004 * 4000, rel=0.01)
    for row in (60, 1234, 3900):
        longitude, latitude = inverse.transform(500_000, 5_204_000 - 2 * row - 1)
        expected = (heights[row, 19] + heights[row, 20]) / 2  # 2 m a row, heights rise by 1 m
        assert terrain.altitude_at(latitude, longitude) == pytest.approx(expected, abs=0.1)

    # a part whose cells are less than one metre off
    part = import_dem(path, size=(60, 4000), on_read=facts.append)
    assert not facts[1].is_resampled
    np.testing.assert_array_equal(part.heights, heights[1000:3000, 5:35][::-1].T)


def test_a_part_is_as_large_as_asked_on_true_axes(tmp_path):
    """A raster in km, and one whose columns run east: its north is 90° off.

    The latter's lengths are k = (1 + sin 70°) / (1 + sin 75°) of those on the ground, on a sphere.
    """
    km = "+proj=utm +zone=32 +datum=WGS84 +units=km +no_defs"
    rows = rows_and_columns(100, 100) // 100
    path = write_tif(tmp_path / "km.tif", rows, affine.from_origin(499.5, 5200.5, 0.01, 0.01), km)
    facts = []
    terrain = import_dem(path, size=(600, 400), on_read=facts.append)
    assert terrain.bounds == pytest.approx((-300, 300, -200, 200), abs=10.0)
    assert terrain.altitude(0.0, -150.0) - terrain.altitude(0.0, 150.0) == pytest.approx(
        30, rel=0.01
    )
    assert (facts[0].is_resampled, facts[0].largest_shift) == (True, 0.0)
    with pytest.raises(ConfigError, match=r"30000 x 300 m .* 9[89]\d\.\d x 9\.9 m fit"):
        import_dem(path, size=(30_000, 300))

    polar = "EPSG:3413"
    (x,), (y,) = rasterio.warp.transform("EPSG:4326", polar, [45.0], [75.0])
    columns = rows_and_columns(100, 400) % 400
    turned = affine.from_origin(x - 2000, y + 500, 10, 10)
    path = write_tif(tmp_path / "polar.tif", columns, turned, polar)
    terrain = import_dem(path, size=(800, 3500))
    assert terrain.bounds == pytest.approx((-400, 400, -1750, 1750), abs=10.0)
    south = terrain.altitude(0.0, -1000.0) - terrain.altitude(0.0, 1000.0)
    scale = (1 + math.sin(math.radians(70))) / (1 + math.sin(math.radians(75)))
    assert south == pytest.approx(200 * scale, rel=2e-3)
    with pytest.raises(ConfigError, match="reaches beyond"):
        import_dem(path, size=(3500, 800))


def test_kept_cells_name_no_place(tmp_path):
    """UTM 1.8° off its meridian: 1.3° at 2 km are some 45 m, and no latitude is right."""
    to_utm = pyproj.Transformer.from_crs("EPSG:4326", UTM32, always_xy=True)
    x, y = to_utm.transform(7.2, 46.9)
    raster = rows_and_columns(200, 200) / 8
    path = write_tif(tmp_path / "a.tif", raster, affine.from_origin(x - 1500, y + 1500, 15, 15))

    facts = []
    terrain = import_dem(path, keep_cells=True, on_read=facts.append)
    np.testing.assert_array_equal(terrain.heights, raster[::-1].T)
    assert terrain.geo_origin is None
    assert not facts[0].is_resampled
    corner = math.hypot(199 * 7.5, 199 * 7.5)
    assert facts[0].largest_shift == pytest.approx(corner * math.radians(1.313), rel=0.02)

    degrees = write_tif(tmp_path / "d.tif", raster, affine.from_origin(8, 47, 1e-3, 1e-3), 4326)
    with pytest.raises(ConfigError, match="can only be resampled, without --keep-cells"):
        import_dem(degrees, keep_cells=True)


@pytest.mark.parametrize("crs", [UTM32, "EPSG:4326"], ids=["own cells", "resampled"])
@pytest.mark.parametrize(
    ("void", "written"), [(-9999.0, "-9999"), (-32768.0, "-32768"), (3.4e38, "3.4e+38")]
)
def test_undeclared_voids_are_cells_without_data(tmp_path, crs, void, written):
    """They are not smeared over their neighbours either."""
    cell, corner = (10, (500_000, 5_200_000)) if crs == UTM32 else (1e-4, (8.0, 47.0))
    raster = np.full((40, 40), 500.0, np.float32)
    raster[20, 20] = void
    path = write_tif(tmp_path / "v.tif", raster, affine.from_origin(*corner, cell, cell), crs)

    with pytest.raises(
        TerrainFormatError, match=rf"1 of .*\({re.escape(written)} is written there\)"
    ):
        import_dem(path)
    facts = []
    terrain = import_dem(path, fill_nodata=True, on_read=facts.append)
    assert (terrain.z_min, terrain.z_max) == (pytest.approx(500.0), pytest.approx(500.0))
    assert facts[0].gaps.voids == {float(np.float32(void)): 1}


def test_many_numbers_that_are_no_heights_are_heights_in_another_unit(tmp_path):
    """Centimetres that no tag names are refused, though filling was asked for."""
    raster = 40_000 + rows_and_columns(40, 40)
    path = write_tif(tmp_path / "v.tif", raster, affine.from_origin(500_000, 5_200_000, 10, 10))
    with pytest.raises(TerrainFormatError, match=r"holds 40000, .* such as with --unit cm"):
        import_dem(path, fill_nodata=True)
    terrain = import_dem(path, unit="cm")
    assert (terrain.z_min, terrain.z_max) == (400.0, pytest.approx(415.99))


@pytest.mark.parametrize(
    ("crs", "datum"), [("EPSG:32632+5773", "EGM96 height"), ("EPSG:4979", "the ellipsoid")]
)
def test_the_vertical_datum_is_told(tmp_path, crs, datum):
    place = (8.0, 47.0, 1e-4, 1e-4) if crs == "EPSG:4979" else (500_000, 5_200_000, 10, 10)
    path = write_tif(tmp_path / "h.tif", rows_and_columns(9, 9), affine.from_origin(*place), crs)
    facts = []
    import_dem(path, on_read=facts.append)
    assert facts[0].vertical_datum == datum


def test_its_own_resolution_keeps_all_cells(tmp_path):
    """A raster resampled to its own cells must not lose a row and a column.

    An even number of cells has no cell in the middle.
    """
    raster = np.add.outer(np.arange(6.0), 10 * np.arange(8.0)).astype(np.float32)
    path = write_tif(tmp_path / "e.tif", raster, affine.from_origin(500_000, 5_200_000, 10, 10))
    kept = import_dem(path)
    asked = import_dem(path, resolution=10.0)
    assert (kept.rows, kept.columns) == (asked.rows, asked.columns) == (8, 6)
    np.testing.assert_array_equal(asked.heights, kept.heights)


def test_faults_are_named(tmp_path):
    where = affine.from_origin(500_000, 5_200_000, 10, 10)

    # files
    with pytest.raises(TerrainFileNotFound, match="no such file"):
        import_dem("/vsicurl/http://127.0.0.1:9/dem.tif")
    (tmp_path / "x.tif").write_bytes(b"no raster")
    (tmp_path / "mine.hgt").write_bytes(bytes(2 * 1201**2))
    with pytest.raises(TerrainFormatError, match=r"an \.hgt is named after its south-western"):
        import_dem(tmp_path / "mine.hgt")
    with pytest.raises(TerrainFormatError, match="cannot be read as a raster"):
        import_dem(tmp_path / "x.tif")
    unplaced = write_tif(tmp_path / "u.tif", rows_and_columns(3, 3), where, crs=None)
    with pytest.raises(
        TerrainFormatError, match="names no coordinate reference system; say which one"
    ):
        import_dem(unplaced)
    assert import_dem(unplaced, crs=UTM32).rows == 3

    # arguments
    good = write_tif(tmp_path / "g.tif", rows_and_columns(3, 3), where)
    for bad, text in (
        ({"band": 2}, "band 2, expected 1 … 1"),
        ({"crs": "EPSG:nothing"}, "crs 'EPSG:nothing'"),
        ({"resolution": 0.0}, "above 0 m"),
        ({"resolution": 1e-3}, "choose another --resolution"),
        ({"size": (10.0, -1.0)}, "two lengths above 0"),
        ({"center": (91.0, 0.0)}, "latitude within"),
    ):
        with pytest.raises(ConfigError, match=text):
            import_dem(good, **bad)


def test_without_rasterio_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rasterio", None)
    with pytest.raises(
        ConfigError, match=rf"a raster needs rasterio; {re.escape(how_to_install('geo'))}"
    ):
        import_dem(tmp_path / "any.tif")


def test_progress_ends_at_one(tmp_path):
    shares = []
    path = write_tif(
        tmp_path / "p.tif",
        np.zeros((700, 5), np.float32),
        affine.from_origin(500_000, 5_200_000, 10, 10),
    )
    import_dem(path, progress=shares.append)
    assert shares == sorted(shares)
    assert len(shares) > 1
    assert shares[-1] == 1.0


def hills(rows=60, columns=40, step_x=5.0, step_y=-8.0) -> HeightMap:
    r, c = np.mgrid[0:rows, 0:columns]
    heights = 300 + 40 * np.sin(r / 9) + 25 * np.cos(c / 5)
    place = (46.5, 7.9, 1200.0)
    return HeightMap(
        heights,
        origin_x=-100,
        origin_y=200,
        step_x=step_x,
        step_y=step_y,
        name="hills",
        geo_origin=place,
    )


def test_a_geotiff_goes_out_and_comes_back(tmp_path):
    """Export, import with the same origin and altitude: the same ground, to float32."""
    terrain = hills()
    write_geotiff(terrain, tmp_path / "h.tif")
    with rasterio.open(tmp_path / "h.tif") as dataset:
        assert dataset.read(1).min() == pytest.approx(1200 + terrain.z_min, abs=1e-3)
        assert dataset.units == ("metre",)
    back = import_dem(tmp_path / "h.tif", center=(46.5, 7.9), origin_altitude=1200)
    assert back.bounds == pytest.approx(terrain.bounds, abs=1e-6)
    x, y = np.meshgrid(np.linspace(-100, 195, 31), np.linspace(-112, 200, 31))
    np.testing.assert_allclose(back.altitude(x, y), terrain.altitude(x, y), atol=2e-3)


def test_a_map_without_a_place_makes_a_geotiff_without_one(tmp_path):
    bare = HeightMap(np.eye(4), origin_x=0, origin_y=0, step_x=1, step_y=1)
    write_geotiff(bare, tmp_path / "b.tif")
    with rasterio.open(tmp_path / "b.tif") as dataset:
        assert dataset.crs is None
        assert dataset.bounds == (-0.5, -0.5, 3.5, 3.5)
        np.testing.assert_array_equal(dataset.read(1), np.eye(4)[::-1])


def test_numpy_files_go_out_and_come_back(tmp_path):
    """.npz keeps everything, .npy the raster alone."""
    terrain = hills()
    write_npz(terrain, tmp_path / "h.npz")
    back = import_array(tmp_path / "h.npz")
    np.testing.assert_array_equal(back.heights, terrain.heights)
    assert (back.bounds, back.geo_origin) == (terrain.bounds, terrain.geo_origin)
    assert (back.step_x, back.step_y) == (5, -8)
    write_npy(terrain, tmp_path / "h.npy")
    raster = np.load(tmp_path / "h.npy")
    assert raster[0, 0] == terrain.altitude(-100.0, 200.0)  # north-west
    middle = import_array(tmp_path / "h.npy", cell_size=(5, 8))
    assert middle.altitude(-147.5, 156.0) == pytest.approx(terrain.altitude(-100.0, 200.0))
    south = import_array(tmp_path / "h.npy", cell_size=(5, 8), first_row="south")
    assert south.altitude(-147.5, -156.0) == pytest.approx(terrain.altitude(-100.0, 200.0))


def test_array_faults_are_named(tmp_path):
    np.savez(tmp_path / "two.npz", a=np.eye(3), b=np.eye(4), c=np.arange(3))
    np.save(tmp_path / "objects.npy", np.array([[{}, 1], [2, 3]], object), allow_pickle=True)
    np.save(tmp_path / "nan.npy", np.array([[1.0, np.nan], [0, 0]]))
    (tmp_path / "junk.npz").write_bytes(b"PK\3\4 junk")
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "heights.csv").write_text("1,2")

    cell = {"cell_size": (1.0, 1.0)}
    for name, options, error, text in (
        ("two.npz", cell, ConfigError, "2 arrays with rows and columns .*choose one with --key"),
        ("two.npz", {**cell, "key": "z"}, ConfigError, "no array 'z', only a, b, c"),
        (
            "two.npz",
            {**cell, "key": "c"},
            TerrainFormatError,
            "expected numbers in rows and columns",
        ),
        ("two.npz", {}, ConfigError, "--cell-size"),
        ("two.npz", {"cell_size": (1.0, 0.0), "key": "a"}, ConfigError, "above 0 m"),
        ("objects.npy", cell, TerrainFormatError, "cannot be read as NumPy arrays"),
        ("nan.npy", cell, TerrainFormatError, r"nan\.npy: 1 of 4 cells hold no data"),
        ("junk.npz", cell, TerrainFormatError, "cannot be read"),
        ("empty.npy", cell, TerrainFormatError, "cannot be read"),
        ("heights.csv", cell, ConfigError, r"expected a \.npy or \.npz"),
        ("missing.npy", cell, TerrainFileNotFound, "no such file"),
    ):
        with pytest.raises(error, match=text):
            import_array(tmp_path / name, **options)

    assert import_array(tmp_path / "two.npz", key="b", **cell).rows == 4


def test_an_imported_model_becomes_a_map(tmp_path):
    """Raster, png and txt, and the same ground read from them within half a count."""
    terrain = import_dem(
        write_tif(
            tmp_path / "a.tif",
            (rows_and_columns(30, 40) % 97) - 20,
            affine.from_origin(500_000, 5_200_000, 10, 10),
        )
    )
    back = HeightMap.of_map(read_map(write_height_map(terrain, tmp_path / "map")))
    assert (
        np.abs(back.heights - terrain.heights).max()
        <= (terrain.z_max - terrain.z_min) / 65535 / 2 * 1.01
    )
    assert back.geo_origin == pytest.approx(terrain.geo_origin)


def test_the_demo_map_is_the_ground_of_its_source():
    """The map has at least 250 x 250 cells in under 1 MB, all near the source's own samples.

    The samples are found by geodesics.
    """
    files = find_map("JacksboroFault")
    terrain = HeightMap.of_map(read_map(files))
    assert min(terrain.rows, terrain.columns) >= 250
    assert files.png.stat().st_size < 1_000_000
    assert terrain.altitude(0.0, 0.0) == pytest.approx(0, abs=0.01)

    from matplotlib.cbook import get_sample_data

    source = np.load(get_sample_data("jacksboro_fault_dem.npz", asfileobj=False))
    latitude, longitude, altitude = terrain.geo_origin
    x, y = (
        v.ravel() for v in np.meshgrid(np.linspace(-2950, 2950, 60), np.linspace(-2950, 2950, 60))
    )
    azimuth = np.degrees(np.arctan2(x, y))
    distance = np.hypot(x, y)
    lon, lat, _ = pyproj.Geod(ellps="WGS84").fwd(
        np.full_like(x, longitude), np.full_like(x, latitude), azimuth, distance
    )
    column = (lon - float(source["xmin"])) / float(source["dx"]) - 0.5
    row = (float(source["ymin"]) - lat) / float(source["dy"]) - 0.5  # its ymin is the northern edge
    expected = map_coordinates(source["elevation"].astype(float), [row, column], order=3)
    difference = terrain.altitude(x, y) + altitude - expected
    # the map's spline smooths a little where the reference interpolates; a shift by one source cell
    # is far worse
    assert np.sqrt(np.mean(difference**2)) < 6
    shifted = map_coordinates(source["elevation"].astype(float), [row + 1, column], order=3)
    assert np.sqrt(np.mean((terrain.altitude(x, y) + altitude - shifted) ** 2)) > 2 * np.sqrt(
        np.mean(difference**2)
    )


def vrt(source):
    """GDAL's text format: a raster whose cells are those of another file, or of an address."""
    return (
        '<VRTDataset rasterXSize="4" rasterYSize="3"><SRS>EPSG:32632</SRS>'
        "<GeoTransform>500000,10,0,5200000,0,-10</GeoTransform>"
        '<VRTRasterBand dataType="Float32" band="1"><SimpleSource>'
        '<SourceFilename relativeToVRT="0">'
        f"{source}</SourceFilename><SourceBand>1</SourceBand></SimpleSource></VRTRasterBand></VRTDataset>"
    )


def raw_vrt(source):
    """The same, of the bare bytes of any file."""
    return (
        '<VRTDataset rasterXSize="4" rasterYSize="3"><SRS>EPSG:32632</SRS>'
        "<GeoTransform>500000,10,0,5200000,0,-10</GeoTransform>"
        '<VRTRasterBand dataType="Byte" band="1" subClass="VRTRawRasterBand">'
        f'<SourceFilename relativeToVRT="0">{source}</SourceFilename></VRTRasterBand></VRTDataset>'
    )


def test_no_raster_leads_to_another_file_or_address(tmp_path):
    """No ending makes GDAL ask the web server of this test, or read another file."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_error(404)

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    write_tif(tmp_path / "good.tif", rows_and_columns(3, 4), affine.from_origin(5e5, 5.2e6, 10, 10))
    (tmp_path / "secret.txt").write_text("0123456789abcdef", encoding="ascii")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/a.tif"
        texts = [
            vrt(f"/vsicurl/{address}"),
            vrt(tmp_path / "good.tif"),
            raw_vrt(tmp_path / "secret.txt"),
        ]
        texts += [
            f"<GDAL_WMS><Service><ServerUrl>{address}</ServerUrl></Service></GDAL_WMS>",
            f"ENVI {address}",
        ]
        for number, text in enumerate(texts):
            for ending in ("tif", "vrt", "asc"):
                (tmp_path / f"{number}.{ending}").write_text(text, encoding="ascii")
                with pytest.raises(TerrainFormatError, match="cannot be read as a raster"):
                    import_dem(tmp_path / f"{number}.{ending}")
        for name in (f"/vsicurl/{address}", address, f"GTIFF_DIR:1:{tmp_path}/good.tif"):
            with pytest.raises(TerrainFileNotFound):
                import_dem(name)
        for crs in (address, str(tmp_path / "secret.txt")):
            with pytest.raises(ConfigError, match="no file and no address"):
                import_dem(tmp_path / "good.tif", crs=crs)
        server.shutdown()
    assert asked == []


def test_files_beside_a_raster_are_not_read(tmp_path):
    """A mask, a world file and GDAL's .aux.xml would each change the raster or add to it."""
    file = write_tif(
        tmp_path / "a.tif", rows_and_columns(3, 4), affine.from_origin(5e5, 5.2e6, 10, 10)
    )
    before = import_dem(file)
    (tmp_path / "a.tif.aux.xml").write_text(
        '<PAMDataset><PAMRasterBand band="1"><NoDataValue>5</NoDataValue><Scale>7</Scale>'
        "</PAMRasterBand></PAMDataset>",
        encoding="ascii",
    )
    (tmp_path / "a.tfw").write_text("3\n0\n0\n-3\n7\n7\n", encoding="ascii")
    (tmp_path / "a.tif.msk").write_text(vrt(file), encoding="ascii")
    after = import_dem(file)
    assert np.array_equal(before.heights, after.heights)
    assert (before.step_x, before.origin_x) == (after.step_x, after.origin_x) == (10, -15)


def test_rasters_that_nobody_could_use_are_refused_by_their_header(tmp_path):
    """Cells without an area, and a strip of 30,000 x 30,000 cells that is unpacked at once."""
    file = write_tif(tmp_path / "flat.tif", rows_and_columns(3, 4), affine.Affine(1, 1, 0, 1, 1, 0))
    with pytest.raises(TerrainFormatError, match="cells with an area"):
        import_dem(file)

    with rasterio.open(
        tmp_path / "strip.tif",
        "w",
        driver="GTiff",
        width=30_000,
        height=30_000,
        count=1,
        dtype="float32",
        crs=UTM32,
        transform=affine.from_origin(5e5, 5.2e6, 10, 10),
        blockysize=30_000,
        compress="deflate",
        sparse_ok=True,
    ):
        pass
    with pytest.raises(TerrainFormatError, match="packed in pieces of 30,000 x 30,000 cells"):
        import_dem(tmp_path / "strip.tif", size=(100, 100))
