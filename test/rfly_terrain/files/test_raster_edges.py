# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rasters and arrays as people really have them: turned, numbered, scaled and gapped in odd ways.

Expected heights come from the formulas that the rasters are made of, and places from PROJ.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from optional_parts import late_module

from rfly_common.errors import ConfigError, TerrainFormatError
from rfly_terrain.files.arrays import import_array
from rfly_terrain.files.dem_import import import_dem

pytestmark = pytest.mark.needs("rasterio", "pyproj")

rasterio = late_module("rasterio")
pyproj = late_module("pyproj")
affine = late_module("rasterio.transform")

UTM32 = "EPSG:32632"
AT_MERIDIAN = (500_000, 5_100_000)
"""Place in UTM zone 32 where its cells are kept."""


def write_tif(path, raster, transform=None, crs=UTM32, nodata=None, **tags):
    """Write a raster, (rows, columns) or (bands, rows, columns), by default of cells of 10 m."""
    bands = np.atleast_3d(raster.T).T if raster.ndim == 2 else raster
    count, height, width = bands.shape
    options = {key: tags.pop(key) for key in ("photometric", "blockysize") if key in tags}
    transform = transform or affine.from_origin(
        AT_MERIDIAN[0] - 5 * width, AT_MERIDIAN[1] + 5 * height, 10, 10
    )
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        width=width,
        height=height,
        count=count,
        dtype=bands.dtype,
        crs=crs,
        transform=transform,
        nodata=nodata,
        **options,
    ) as dataset:
        dataset.write(bands)
        for name, value in tags.items():
            setattr(dataset, name, (value,) if not isinstance(value, tuple) else value)
    return path


def ramp(rows=40, columns=40, base=500.0):
    """Heights with another number in each cell, steps of 1 and 2 m."""
    return base + np.add.outer(np.arange(float(rows)), 2 * np.arange(float(columns)))


def imported(path, **options):
    facts = []
    return import_dem(path, on_read=facts.append, **options), facts[0]


# orientation


@pytest.mark.parametrize("rows_run", ["east", "south"])
@pytest.mark.parametrize("mirror", [(1, 1), (-1, 1), (1, -1), (-1, -1)])
def test_cells_that_are_only_turned_or_mirrored_are_kept(tmp_path, rows_run, mirror):
    """The eight orders of an even number of cells are the same map, bit by bit."""
    upright = ramp(6, 8)
    a, e = 10.0 * mirror[0], -10.0 * mirror[1]
    west, north = AT_MERIDIAN[0] - 40, AT_MERIDIAN[1] + 30
    corner = (west if a > 0 else west + 80, north if e < 0 else north - 60)
    stored = upright[:: mirror[1], :: mirror[0]]
    transform = affine.Affine(a, 0, corner[0], 0, e, corner[1])
    if rows_run == "south":
        stored = stored.T
        transform = affine.Affine(0, a, corner[0], e, 0, corner[1])

    terrain, facts = imported(write_tif(tmp_path / "a.tif", stored, transform))
    np.testing.assert_array_equal(terrain.heights, upright[::-1].T)
    assert terrain.bounds == (-35, 35, -25, 25)
    assert not facts.is_resampled
    part = import_dem(tmp_path / "a.tif", size=(40, 20))
    np.testing.assert_array_equal(part.heights, upright[2:4, 2:6][::-1].T)


@pytest.mark.parametrize(
    ("west", "center"),
    [
        (350.0, -9.95),
        (-10.0, -9.95),
        (-370.0, -9.95),
        (179.95, -179.99),
        (179.95, 179.97),
        (-180.05, 179.99),
        (539.95, -179.97),
    ],
)
def test_longitudes_may_begin_anywhere(tmp_path, west, center):
    """The height at a place is the formula's, however its longitude is counted."""
    step = 0.001
    longitudes = (np.arange(100) + 0.5) * step
    latitudes = 46.1 - (np.arange(100) + 0.5) * step
    raster = 500 + np.add.outer(4000 * (latitudes - 46), 2500 * longitudes)
    transform = affine.from_origin(west, 46.1, step, step)
    path = write_tif(tmp_path / "a.tif", raster, transform, "EPSG:4326")

    upside_down = affine.Affine(step, 0, west, 0, step, 46.0)
    other = write_tif(tmp_path / "b.tif", raster[::-1], upside_down, "EPSG:4326")
    np.testing.assert_array_equal(import_dem(other).heights, import_dem(path).heights)

    for terrain in (import_dem(path), import_dem(path, center=(46.05, center), size=(2000, 2000))):
        latitude, longitude, _ = terrain.geo_origin
        assert -180 <= longitude <= 180
        proj = pyproj.Proj(f"+proj=tmerc +lat_0={latitude} +lon_0={longitude} +datum=WGS84")
        for x, y in ((0.0, 0.0), (900.0, -700.0), (-850.0, 400.0)):
            there, lat = proj(x, y, inverse=True)
            from_west = (there - west) % 360
            expected = 500 + 4000 * (lat - 46) + 2500 * from_west
            assert terrain.altitude(x, y) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(
    ("first", "columns", "center"),
    [
        (-180, 720, 180.0),
        (-180, 720, 12.0),
        (0, 720, 0.0),
        (0, 720, -0.2),
        # cells on whole degrees: the first meridian twice, the poles in the middle of cells
        (-180.25, 721, 180.0),
        (-180.25, 721, -179.9),
        (-0.25, 721, 0.1),
    ],
)
def test_a_raster_of_the_whole_earth_has_no_seam(tmp_path, first, columns, center):
    """Heights that vary with the sine of the longitude, also where the columns begin and end."""
    longitudes = np.radians(first + (np.arange(columns) + 0.5) / 2)
    raster = np.tile(1000 * np.sin(longitudes) + 1000, (columns // 2 + columns % 2, 1))
    raster = raster.astype(np.float32)
    transform = affine.from_origin(first, 90 + columns % 2 / 4, 0.5, 0.5)
    path = write_tif(tmp_path / "e.tif", raster, transform, "EPSG:4326")

    terrain, facts = imported(
        path, center=(10.0, center), size=(300_000, 300_000), resolution=20_000
    )
    assert facts.gaps.missing == 0
    proj = pyproj.Proj(f"+proj=tmerc +lat_0=10 +lon_0={center} +datum=WGS84")
    for x in (-140_000.0, -30_000.0, 0.0, 70_000.0):
        longitude, _ = proj(x, 0.0, inverse=True)
        expected = 1000 * math.sin(math.radians(longitude)) + 1000
        assert terrain.altitude(x, 0.0) == pytest.approx(expected, abs=1.0)
    with pytest.raises(TerrainFormatError, match=r"too far round the Earth.*--center and --size"):
        import_dem(path)


def place_of(crs, longitude, latitude):
    return pyproj.Transformer.from_crs("EPSG:4326", crs, always_xy=True).transform(
        longitude, latitude
    )


@pytest.mark.parametrize(
    ("crs", "place", "turn", "share"),
    [
        ("EPSG:5514", (15.0, 50.0), 0, 0.6),  # Krovak, 7.7° from north here
        ("EPSG:3413", (-30.0, 75.0), 0, 0.5),  # polar stereographic, 15°
        (UTM32, (9.0, 46.0), 30, 0.4),
        (UTM32, (9.0, 46.0), 45, 0.35),
        (UTM32, (9.0, 46.0), 3, 0.8),
        ("EPSG:3857", (8.0, 60.0), 0, 0.95),
    ],
)
def test_a_full_raster_that_is_turned_has_no_gaps(tmp_path, crs, place, turn, share):
    """The map is the largest upright rectangle inside, and a peak of one cell keeps its height."""
    x, y = place_of(crs, *place)
    raster = np.zeros((81, 101), np.float32)
    raster[40, 50] = 100.0
    transform = (
        affine.Affine.translation(x, y)
        @ affine.Affine.rotation(turn)
        @ affine.Affine.scale(20, -20)
        @ affine.Affine.translation(-50.5, -40.5)
    )
    terrain, facts = imported(write_tif(tmp_path / "a.tif", raster, transform, crs))

    assert facts.gaps.missing == facts.filled_cells == 0
    assert facts.is_resampled
    assert facts.share >= share
    assert terrain.altitude(0.0, 0.0) == pytest.approx(100.0, abs=0.5)
    assert terrain.geo_origin[:2] == pytest.approx(place[::-1], abs=1e-7)


@pytest.mark.parametrize("turn", [0, 30])
def test_tiles_meet_without_a_seam(tmp_path, monkeypatch, turn):
    """Waves and a void, warped in one piece and in some twenty."""
    u = np.arange(200.0)
    raster = 800 + 30 * np.outer(np.sin(u / 9), np.cos(u / 7))
    raster[100:103, 90:92] = np.nan
    transform = (
        affine.Affine.translation(*place_of(UTM32, 8.0, 46.0))
        @ affine.Affine.rotation(turn)
        @ affine.Affine.scale(10, -10)
    )
    path = write_tif(tmp_path / "a.tif", raster, transform)
    whole, facts = imported(path, fill_nodata=True)
    monkeypatch.setattr("rfly_terrain.files.raster_layout._TILE_CELLS", 2000)
    monkeypatch.setattr("rfly_terrain.files.raster_file._PIECE_CELLS", 500)
    tiled, tiled_facts = imported(path, fill_nodata=True)

    np.testing.assert_allclose(tiled.heights, whole.heights, atol=0.1)
    assert tiled_facts.gaps == facts.gaps
    assert facts.gaps.missing == 6


def test_a_part_that_does_not_fit_says_what_would(tmp_path):
    """A square of 100 cells at 45° holds an upright one of half its diagonal."""
    transform = affine.Affine.translation(*AT_MERIDIAN) @ affine.Affine.rotation(45)
    transform = transform @ affine.Affine.scale(10, -10) @ affine.Affine.translation(-50, -50)
    path = write_tif(tmp_path / "a.tif", ramp(100, 100), transform)
    with pytest.raises(ConfigError, match=r"800 x 800 m reaches .* 700\.\d x 700\.\d m fit"):
        import_dem(path, size=(800, 800))
    with pytest.raises(ConfigError, match="nothing fits"):
        import_dem(path, size=(80, 80), center=(47.0, 9.0))


# numbers that are no heights


VOIDS = [
    ("int16", 32767),
    ("int16", -32768),
    ("int16", -9999),
    ("int16", -999),
    ("int16", 9999),
    ("uint16", 65535),
    ("uint16", 55537),
    ("int32", 2**31 - 1),
    ("int32", -(2**31)),
    ("float32", -9999.9),
    ("float32", -999.9),
    ("float32", -99.0),
    ("float32", -8888.0),
    ("float32", 1e20),
    ("float32", -3.4028235e38),
    ("float64", -1.7976931348623157e308),
]


@pytest.mark.parametrize(("dtype", "void"), VOIDS)
@pytest.mark.parametrize("suffix", ["tif", "npy", "npz"])
def test_a_number_that_can_be_no_height_is_a_gap(tmp_path, suffix, dtype, void):
    """It is refused, or filled as the plane around it; it is counted in the file's cells."""
    raster = ramp().astype(dtype)
    raster[10:12, 20:22] = void
    raster[30, 5] = void
    path = tmp_path / f"a.{suffix}"
    save = {"tif": write_tif, "npy": np.save, "npz": lambda p, r: np.savez(p, heights=r)}
    save[suffix](path, raster)

    def read(**options):
        if suffix == "tif":
            return import_dem(path, **options)
        return import_array(path, cell_size=(10, 10), **options)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(
            TerrainFormatError, match=r"5 of 1,600 cells hold no data .* is written"
        ):
            read()
        filled = read(fill_nodata=True)
    np.testing.assert_allclose(filled.heights, ramp()[::-1].T, atol=0.02)
    if -32768 <= void <= 65535:
        assert void in (read(nodata="none").z_min, read(nodata="none").z_max) or dtype[0] == "f"


@pytest.mark.parametrize(
    ("dtype", "base", "number"),
    [
        ("float32", -430.0, -430.0),  # the Dead Sea
        ("float32", -10_900.0, -9999.0),  # deep sea
        ("int16", 960.0, 999),  # a slope through 999 m
        ("int16", -1010.0, -999),
        ("float32", 8700.0, 8849.0),
        ("uint8", 100.0, 255),
    ],
)
def test_heights_like_voids_are_heights(tmp_path, dtype, base, number):
    """A number among its likes is a height; so is a summit of 999 m amid 998 m."""
    raster = np.minimum(ramp(base=base), 255 if dtype == "uint8" else 9000).astype(dtype)
    raster[20, 20] = number if abs(float(raster[20, 20]) - number) < 50 else raster[20, 20]
    terrain, facts = imported(write_tif(tmp_path / "a.tif", raster))
    np.testing.assert_array_equal(terrain.heights, raster[::-1].T)
    assert facts.gaps.missing == 0

    flat = np.full((40, 40), 999.0)
    assert import_dem(write_tif(tmp_path / "b.tif", flat)).z_max == 999.0
    flat[:] = 998.0
    flat[7, 7] = 999.0
    assert import_dem(write_tif(tmp_path / "b.tif", flat)).z_max == 999.0


@pytest.mark.parametrize("void", [-9999.0, -32768.0])
def test_a_raster_of_one_void_has_no_data(tmp_path, void):
    path = write_tif(tmp_path / "a.tif", np.full((9, 9), void, np.float32))
    with pytest.raises(TerrainFormatError, match=rf"no cell has data .*\({void:.0f} is written"):
        import_dem(path, fill_nodata=True)


def test_a_height_far_from_all_around_it_is_told(tmp_path):
    """A void of 0 amid mountains counts as a height until its user says what it is."""
    raster = ramp().astype(np.int16)
    raster[10:13, 20:24] = 0
    path = write_tif(tmp_path / "a.tif", raster)
    terrain, facts = imported(path)
    assert terrain.z_min == 0.0
    assert facts.gaps.doubtful == {0.0: 12}
    filled = import_dem(path, nodata=0, fill_nodata=True)
    np.testing.assert_allclose(filled.heights, ramp()[::-1].T, atol=0.01)


def test_a_void_is_counted_in_the_raster_and_only_under_the_map(tmp_path):
    """A turned raster's corner lies outside the map; one void in its middle does not vanish."""
    transform = affine.Affine.translation(*AT_MERIDIAN) @ affine.Affine.rotation(30)
    transform = transform @ affine.Affine.scale(10, -10) @ affine.Affine.translation(-50, -50)
    raster = ramp(100, 100)
    raster[0, 0] = raster[99, 99] = np.nan
    assert imported(write_tif(tmp_path / "a.tif", raster, transform))[1].gaps.missing == 0
    raster[50, 50] = np.nan
    with pytest.raises(TerrainFormatError, match=r"1 of .* cells hold no data"):
        import_dem(write_tif(tmp_path / "a.tif", raster, transform))


# scales and units


@pytest.mark.parametrize(
    ("dtype", "number", "tags", "expected"),
    [
        ("int32", 436_042, {"scales": 0.001}, 436.042),
        ("int32", 100_030, {"scales": 0.01}, 1000.30),
        ("uint16", 52_000, {"scales": 0.1, "offsets": -1000.0}, 4200.0),
        ("float32", 250.0, {"scales": -1.0, "offsets": 50.0}, -200.0),
        ("int32", 100_250, {"units": "mm"}, 100.25),
        ("int32", 100_250, {"units": "Centimeters"}, 1002.5),
        ("int16", 1500, {"units": "dm"}, 150.0),
        ("float32", 1.25, {"units": "kilometre"}, 1250.0),
        ("float32", 1000.0, {"units": "International feet"}, 304.8),
        ("float32", 10_000.0, {"units": "US survey foot"}, 3048.0061),
        ("float32", 10_000.0, {"units": "U.S. Survey Feet"}, 3048.0061),
        ("float32", 10_000.0, {"units": "ftUS"}, 3048.0061),
        ("int32", 10_000, {"units": "ft", "scales": 0.1}, 304.8),
    ],
)
def test_scale_and_unit_act_before_heights_are_judged(tmp_path, dtype, number, tags, expected):
    raster = np.full((4, 4), number, dtype)
    terrain, facts = imported(write_tif(tmp_path / "a.tif", raster, **tags))
    assert terrain.z_max == pytest.approx(expected, rel=1e-6)
    assert facts.gaps.missing == 0


@pytest.mark.parametrize(
    ("dtype", "void"),
    [
        ("int16", 32767),
        ("int16", -32768),
        ("uint16", 55537),
        ("uint16", 65535),
        ("int32", -9999),
        ("int32", -99990),  # -9999 m, scaled as heights are
        ("float32", -9990),  # -999 m
    ],
)
def test_a_void_of_a_scaled_raster_is_judged_by_what_is_near(tmp_path, dtype, void):
    """32767 decimetres are a possible height, but not beside 60 m; 55537 is -9999 in 16 bits."""
    raster = (600 + ramp(base=0)).astype(dtype)
    raster[20, 20] = void
    path = write_tif(tmp_path / "a.tif", raster, scales=0.1)
    with pytest.raises(TerrainFormatError, match=rf"1 of 1,600 .* \({void} is written there\)"):
        import_dem(path)


@pytest.mark.parametrize(
    ("crs", "band_unit", "metres"),
    [
        ("EPSG:32617+6360", "m", None),  # NAVD88 in US survey feet
        ("EPSG:32617+5703", "ft", None),  # and in metres
        ("EPSG:32617+6360", "ft", 0.3048),  # as good as the US survey foot
        ("EPSG:32617+5715", "m", -1.0),  # depths
        ("EPSG:32617", "ft", 0.3048),
    ],
)
def test_a_band_and_its_datum_do_not_contradict_each_other(tmp_path, crs, band_unit, metres):
    x, y = place_of("EPSG:32617", -79.0, 35.5)
    raster = np.full((20, 20), 100.0, np.float32)
    transform = affine.from_origin(x - 200, y + 200, 20, 20)
    path = write_tif(tmp_path / "a.tif", raster, transform, crs)
    with rasterio.open(path, "r+") as dataset:
        dataset.units = (band_unit,)
    if metres is None:
        with pytest.raises(
            TerrainFormatError, match=rf"in unit '{band_unit}', but its datum, NAVD88"
        ):
            import_dem(path)
        assert import_dem(path, unit="ft").z_max == pytest.approx(30.48)
    else:
        assert import_dem(path).z_max == pytest.approx(100.0 * metres, rel=1e-6)


@pytest.mark.parametrize(
    ("crs", "unit", "height", "unknown_in"),
    [
        ("EPSG:2264", None, 100.0, "US survey foot"),  # State Plane, North Carolina
        ("EPSG:2264", "us-ft", 100 * 1200 / 3937, ""),
        ("EPSG:2264+6360", None, 100 * 1200 / 3937, ""),  # heights above NAVD88 in ftUS
        ("EPSG:2264+5703", None, 100.0, ""),  # and in metres
        ("EPSG:32617+5715", None, -100.0, ""),  # depths below mean sea level
        ("EPSG:32617", None, 100.0, ""),
    ],
)
def test_the_unit_of_heights_is_the_vertical_datum_s(tmp_path, crs, unit, height, unknown_in):
    horizontal = crs.split("+")[0]
    x, y = place_of(horizontal, -79.0, 35.5)
    raster = np.full((20, 20), 100.0, np.float32)
    transform = affine.from_origin(x - 200, y + 200, 20, 20)
    terrain, facts = imported(write_tif(tmp_path / "a.tif", raster, transform, crs), unit=unit)
    assert terrain.z_max == pytest.approx(height, rel=1e-6)
    assert facts.unknown_unit_in == unknown_in


# datums


@pytest.mark.parametrize(
    ("crs", "place", "datum"),
    [
        ("EPSG:2436", (117.0, 37.0), "Beijing 1954"),
        ("EPSG:4610", (105.0, 30.0), "Xian 1980"),
        ("EPSG:4490", (105.0, 30.0), ""),  # CGCS2000 is WGS 84 to centimetres
        ("EPSG:25832", (9.0, 46.0), ""),
        ("EPSG:5514", (15.0, 50.0), ""),
        ("+proj=tmerc +lat_0=46 +lon_0=9 +ellps=bessel +units=m", (9.0, 46.0), "unknown"),
        ("+proj=tmerc +lat_0=46 +lon_0=9 +ellps=bessel +towgs84=1,2,3", (9.0, 46.0), ""),
    ],
)
def test_a_datum_that_is_only_guessed_is_told(tmp_path, crs, place, datum):
    x, y = place_of(crs, *place)
    step = 10.0 if pyproj.CRS(crs).is_projected else 1e-4
    transform = affine.from_origin(x - 10 * step, y + 10 * step, step, step)
    _, facts = imported(write_tif(tmp_path / "a.tif", ramp(20, 20), transform, crs))
    assert facts.unshifted_datum.startswith(datum)
    assert bool(facts.unshifted_datum) == bool(datum)


# Arc/Info ASCII grids


HEADING = "ncols 3\nnrows 2\nxllcorner 500000\nyllcorner 5100000\ncellsize 10\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADING + "1 2 abc\n4 5 6\n", "line 6, column 5: 'abc' is no number"),
        (HEADING + "1 2 3\n4 1.2.3 6\n", r"line 7, column 3: '1\.2\.3' is no number"),
        (HEADING + "1 2 3\n4 5 1_000\n", "line 7, column 5: '1_000' is no number"),
        (HEADING + "1 2 3\n4 5 --6\n", "line 7, column 5: '--6' is no number"),
        (HEADING + "1 2 3\n4 5 1.#QNAN\n", "line 7, column 5: .* is no number"),
        (HEADING + "1 2 3\n4 5\n", "ends after 5 numbers, expected 6 for 3 columns x 2 rows"),
        (HEADING + "1 2 3\n4 5 6 7\n", "line 7, column 7: '7' is one number too many"),
        (HEADING + "1 2 3\n4 5 6\n\n8\n", "line 9, column 1: '8' is one number too many"),
        (HEADING.replace("size 10", "size -10") + "1 2 3 4 5 6", "line 5: cellsize -10"),
        (HEADING.replace("cellsize 10", "dx 10\ndy -10") + "1 2 3 4 5 6", "line 6: dy -10"),
        (HEADING + "1.2.3 2 3\n4 5 6\n", r"line 6, column 1: '1\.2\.3' is no number"),
        (HEADING + "1 2 inf\n4 5 6\n", "line 6, column 5: 'inf' is no number"),
        ("ncols 2\n" + HEADING + "1 2 3\n4 5 6\n", "line 2: ncols a second time"),
        (HEADING.replace("3", "2.5") + "1 2 3 4 5\n", "line 1: ncols 2.5, expected no fraction"),
        (HEADING.replace("xllcorner", "xllcenter") + "1 2 3 4 5 6", "expected xllcorner and yll"),
        (HEADING.replace("yllcorner 5100000\n", "") + "1 2 3 4 5 6", "expected xllcorner and yll"),
        (HEADING + "nodata_value none\n1 2 3\n4 5 6\n", "line 6: 'nodata_value none'"),
    ],
)
def test_an_ascii_grid_is_read_strictly(tmp_path, text, message):
    path = tmp_path / "a.asc"
    path.write_text(text, encoding="ascii")
    with pytest.raises(TerrainFormatError, match=rf"a\.asc,? ?:?.*{message}"):
        import_dem(path, crs=UTM32)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ("1 2 3\n4 5 6\n", [[1, 2, 3], [4, 5, 6]]),
        ("1 2\n3 4 5\n6", [[1, 2, 3], [4, 5, 6]]),  # lines need not be rows
        ("1,5 2 3\n4 5 6,25\n", [[1.5, 2, 3], [4, 5, 6.25]]),
        ("1e1 +2 -3.\n.5 5 6\n", [[10, 2, -3], [0.5, 5, 6]]),
        ("1 2 3\r\n4\t5 6\r\n", [[1, 2, 3], [4, 5, 6]]),
    ],
)
def test_numbers_of_an_ascii_grid(tmp_path, numbers, expected):
    path = tmp_path / "a.asc"
    path.write_bytes((HEADING + numbers).encode())
    terrain = import_dem(path, crs=UTM32)
    np.testing.assert_allclose(terrain.heights, np.array(expected)[::-1].T)


def test_an_ascii_grid_may_begin_with_whole_numbers(tmp_path):
    """GDAL guesses the type of all numbers from the first 100,000 bytes."""
    raster = np.full((300, 300), 100.0)
    raster[-1] = 100.75
    path = tmp_path / "a.asc"
    heading = HEADING.replace("ncols 3\nnrows 2", "ncols 300\nnrows 300")
    rows = "\n".join(" ".join(f"{h:g}" for h in row) for row in raster)
    path.write_text(heading + rows, encoding="ascii")
    assert import_dem(path, crs=UTM32).z_max == 100.75


# bands


@pytest.mark.parametrize(
    ("bands", "tags", "message"),
    [
        (3, {"photometric": "RGB"}, r"is a picture \(red, green and blue\)"),
        (4, {"photometric": "RGB"}, r"is a picture \(red, green and blue\)"),
        (2, {"photometric": "MINISBLACK"}, r"holds 2 bands \(1 uint8, 2 uint8\); say .* --band"),
        (2, {"descriptions": ("slope", "aspect")}, "1 slope uint8, 2 aspect uint8"),
    ],
)
def test_the_band_of_heights_is_asked_for(tmp_path, bands, tags, message):
    raster = np.stack([np.full((4, 4), 10 * n, np.uint8) for n in range(1, bands + 1)])
    path = write_tif(tmp_path / "a.tif", raster, **tags)
    with pytest.raises((ConfigError, TerrainFormatError), match=message):
        import_dem(path)
    terrain, facts = imported(path, band=2)
    assert terrain.z_max == 20
    assert facts.band == (2, bands)


def test_a_band_that_is_named_heights_is_taken(tmp_path):
    raster = np.stack([np.full((4, 4), n, np.float32) for n in (10, 20, 30)])
    path = write_tif(tmp_path / "a.tif", raster, descriptions=("slope", "Elevation (m)", "count"))
    terrain, facts = imported(path)
    assert (terrain.z_max, facts.band) == (20, (2, 3))


def test_a_palette_is_no_height(tmp_path):
    path = write_tif(tmp_path / "a.tif", np.full((4, 4), 7, np.uint8), photometric="PALETTE")
    with rasterio.open(path, "r+") as dataset:
        dataset.write_colormap(1, {7: (255, 0, 0, 255)})
    with pytest.raises(TerrainFormatError, match=r"is a picture \(a palette\)"):
        import_dem(path)


# limits


def test_a_huge_raster_of_few_bytes_is_refused_by_its_heading(tmp_path):
    """60,000 x 60,000 cells that were never written."""
    with rasterio.open(
        tmp_path / "a.tif",
        "w",
        driver="GTiff",
        width=60_000,
        height=60_000,
        count=1,
        dtype="float32",
        crs=UTM32,
        transform=affine.from_origin(470_000, 5_230_000, 1, 1),
        sparse_ok=True,
        tiled=True,
    ):
        pass
    shares = []

    with pytest.raises(ConfigError, match=r"[56]\d,\d{3} x [56]\d,\d{3} cells .* another --reso"):
        import_dem(tmp_path / "a.tif", progress=shares.append)
    with pytest.raises(ConfigError, match=r"3,6\d\d,\d{3},\d{3} of its cells .* at most 1,000,0"):
        import_dem(tmp_path / "a.tif", resolution=10, progress=shares.append)
    assert shares == [0.0, 0.0]
    assert import_dem(tmp_path / "a.tif", size=(100, 100)).rows == 100
