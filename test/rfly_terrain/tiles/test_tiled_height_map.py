# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Terrain in tiles against the whole map in memory, and against SciPy."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from optional_parts import late_module
from rasters import write_tif
from scipy.interpolate import RegularGridInterpolator

from rfly_common.errors import ConfigError, TerrainFileNotFound, TerrainFormatError
from rfly_terrain import HeightMap, TiledHeightMap, write_geotiff

pytestmark = pytest.mark.needs("rasterio", "pyproj")

rasterio = late_module("rasterio")
affine = late_module("rasterio.transform")

ROWS = 301
COLUMNS = 263
STEP = 5.0
TILE = 32


@pytest.fixture(scope="module")
def whole():
    """A map whose sides are no multiples of tiles, with a hill and a step."""
    rng = np.random.default_rng(3)
    x = np.linspace(0.0, 6.0, ROWS)[:, None]
    y = np.linspace(0.0, 5.0, COLUMNS)
    heights = 60.0 * np.sin(x) * np.cos(y) + rng.normal(0.0, 0.4, (ROWS, COLUMNS))
    heights[150:170, 100:140] += 40.0
    return HeightMap(
        heights,
        origin_x=-750.0,
        origin_y=-655.0,
        step_x=STEP,
        step_y=STEP,
        name="whole",
        geo_origin=(46.5, 9.0, 0.0),
    )


@pytest.fixture(scope="module")
def file(whole, tmp_path_factory):
    path = tmp_path_factory.mktemp("tiles") / "whole.tif"
    write_geotiff(whole, path)
    return path


@pytest.fixture
def tiled(file, monkeypatch):
    """The same map in tiles of 32 samples, few of which fit in memory."""
    monkeypatch.setattr("rfly_terrain.tiles.tiled_height_map.TILE", TILE)
    return TiledHeightMap.open(file, memory_mb=1.0)


def random_points(terrain, count, beyond=0.0, seed=1):
    x_min, x_max, y_min, y_max = terrain.bounds
    rng = np.random.default_rng(seed)
    return (
        rng.uniform(x_min - beyond, x_max + beyond, count),
        rng.uniform(y_min - beyond, y_max + beyond, count),
    )


def border_points(terrain):
    """Points exactly on the borders of tiles, on the edge, in corners, and an ulp beside."""
    samples = np.array([0, 1, 31, 32, 33, 64, 256, 288])
    x = terrain.origin_x + np.append(samples, ROWS - 1) * STEP
    y = terrain.origin_y + np.append(samples[:-1], [COLUMNS - 1, 77]) * STEP
    x, y = (np.concatenate([v, np.nextafter(v, -1e9), np.nextafter(v, 1e9)]) for v in (x, y))
    return (v.ravel() for v in np.meshgrid(x, y))


def test_facts(tiled, whole):
    assert (tiled.rows, tiled.columns) == (ROWS, COLUMNS)
    assert tiled.bounds == pytest.approx(whole.bounds, abs=1e-6)
    assert tiled.geo_origin == pytest.approx((46.5, 9.0, 0.0), abs=1e-9)
    assert tiled.name == "whole"


@pytest.mark.parametrize("smooth", [False, True])
def test_queries_equal_those_of_the_whole_map(tiled, whole, smooth):
    x, y = random_points(whole, 3000, beyond=100.0)
    ours = tiled.query(x, y, smooth=smooth)
    theirs = whole.query(x, y, smooth=smooth)
    np.testing.assert_allclose(ours.altitude, theirs.altitude, atol=1e-6)
    np.testing.assert_array_equal(ours.inside, theirs.inside)
    np.testing.assert_allclose(ours.normal, theirs.normal, atol=1e-6)


def test_altitudes_equal_scipys(tiled, whole):
    x, y = random_points(whole, 2000)
    axes = (
        whole.origin_x + STEP * np.arange(ROWS),
        whole.origin_y + STEP * np.arange(COLUMNS),
    )
    scipy = RegularGridInterpolator(axes, whole.heights.astype(float))
    np.testing.assert_allclose(tiled.altitude(x, y), scipy(np.stack([x, y], axis=1)), atol=1e-6)


def test_borders_of_tiles_are_no_seams(tiled, whole):
    x, y = border_points(whole)
    np.testing.assert_allclose(tiled.altitude(x, y), whole.altitude(x, y), atol=1e-6)
    smooth = tiled.gradient(x, y, smooth=True)
    np.testing.assert_allclose(smooth, whole.gradient(x, y, smooth=True), atol=1e-6)
    one = [tiled.altitude(a, b) for a, b in zip(x[:40].tolist(), y[:40].tolist(), strict=True)]
    np.testing.assert_allclose(one, whole.altitude(x[:40], y[:40]), atol=1e-6)


def test_moving_points_and_places(tiled, whole):
    x, y = random_points(whole, 200)
    rates = tiled.gradient_rate(x, y, 3.0, -2.0)
    np.testing.assert_allclose(rates, whole.gradient_rate(x, y, 3.0, -2.0), atol=1e-6)
    profile = tiled.profile((-690.0, -600.0), (790.0, 660.0), 400)
    np.testing.assert_allclose(
        profile.altitude, whole.profile((-690.0, -600.0), (790.0, 660.0), 400).altitude, atol=1e-6
    )
    assert tiled.altitude_at(46.5, 9.0) == pytest.approx(whole.altitude_at(46.5, 9.0), abs=1e-6)


def rays(count, max_range, seed=4):
    """Rays from above, from within the ground, from outside the map, level and upright ones."""
    rng = np.random.default_rng(seed)
    origins = rng.uniform((-1000, -900, -80), (1100, 1000, 220), (count, 3))
    directions = rng.normal(size=(count, 3)) * (1.0, 1.0, 0.3)
    directions[::11, 2] = 0.0
    directions[::13, :2] = 0.0
    directions[::17, 0] = 0.0
    directions[~directions.any(axis=1)] = (0.0, 0.0, -1.0)
    return origins, directions, np.broadcast_to(max_range, count)


@pytest.mark.parametrize("max_range", [30.0, 400.0, np.inf])
def test_rays_equal_those_of_the_whole_map(tiled, whole, max_range):
    origins, directions, limits = rays(3000, max_range)
    ours, our_normals = tiled.cast(origins, directions, limits, normals=True)
    theirs, normals = whole.cast(origins, directions, limits, normals=True)
    assert np.isfinite(theirs).sum() > 100
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert (np.abs(our_normals - normals) < 1e-6).all(axis=1)[np.isfinite(theirs)].mean() > 0.995
    assert np.isnan(our_normals[np.isinf(theirs)]).all()


def test_one_ray_over_all_tiles(tiled, whole):
    origin = (-5000.0, -300.0, 75.0)
    direction = (1.0, 0.1, -0.004)
    assert tiled.cast(origin, direction) == pytest.approx(whole.cast(origin, direction), abs=1e-6)
    assert tiled.cast(origin, (-1.0, 0.0, 0.0)) == np.inf
    with pytest.raises(ValueError, match="directions is 0, 0, 0"):
        tiled.cast(origin, (0.0, 0.0, 0.0))


@pytest.mark.parametrize("away", [1e17, 1e19, 1e25, 1e200])
def test_a_ray_from_far_away_ends(tiled, whole, away):
    """Where a piece of a ray is shorter than the rounding of its place."""
    origin = (-away, -300.0, 20.0)
    assert tiled.cast(origin, (1.0, 0.0, 0.0)) == whole.cast(origin, (1.0, 0.0, 0.0))
    assert tiled.cast(origin, (1.0, 1.0, 0.0)) == np.inf


def test_rays_along_borders_of_tiles(tiled, whole):
    """On borders, on the edge and beyond it; from above, and from below the lowest ground."""
    x, y = border_points(whole)
    directions = ((1.0, 0.0, 0.0), (0.0, -1.0, -0.01), (-1.0, -0.7, -0.1), (0.0, 0.0, -1.0))
    for z, direction in itertools.product((whole.z_min - 5.0, 0.0, whole.z_max + 5.0), directions):
        origins = np.stack([x, y, np.full(x.size, z)], axis=1)
        along = np.broadcast_to(direction, origins.shape)
        for start in (origins, origins - 1.5 * STEP * np.sign(direction)):
            ours = tiled.cast(start, along)
            np.testing.assert_allclose(ours, whole.cast(start, along), atol=1e-6)


def test_lines_of_sight(tiled, whole):
    a = np.stack([*random_points(whole, 500, seed=5), np.full(500, 30.0)], axis=1)
    b = np.stack([*random_points(whole, 500, seed=6), np.full(500, 45.0)], axis=1)
    free = whole.line_of_sight(a, b)
    assert 50 < free.sum() < 450
    np.testing.assert_array_equal(tiled.line_of_sight(a, b), free)


def test_clouds_of_regions(tiled, whole):
    region = (-33.0, 204.0, -101.0, 77.0)
    np.testing.assert_allclose(
        tiled.point_cloud(3, region), whole.point_cloud(3, region), atol=1e-4
    )
    np.testing.assert_allclose(tiled.point_cloud_ned(40), whole.point_cloud_ned(40), atol=1e-4)


def test_a_window_stays_on_the_map(tiled, whole):
    window = tiled.window(1e6, 0.0, 64)
    assert window.bounds[1] == pytest.approx(whole.bounds[1], abs=1e-6)
    assert window.heights.shape == (64, 64)
    x, y = random_points(window, 50)
    np.testing.assert_allclose(window.altitude(x, y), whole.altitude(x, y), atol=1e-6)
    assert whole.window(0.0, 0.0, 10) is whole


def test_memory_stays_within_the_limit(tiled, whole):
    """A walk over the whole map reads its tiles anew, and keeps half of the limit for each use."""
    for seed in range(5):
        tiled.altitude(*random_points(whole, 400, seed=seed))
        for kept in (tiled._tiles, tiled._blocks):
            assert sum(samples for _, samples in kept.values.values()) <= 1e6 / 4 / 2


def test_what_is_loaded(tiled):
    assert not tiled.is_loaded(0.0, 0.0)
    tiled.altitude(0.0, 0.0)
    assert tiled.is_loaded([0.0, 1.0], [0.0, 2.0])
    assert not tiled.is_loaded([0.0, 600.0], [0.0, 2.0])


def test_values_that_are_no_places(tiled):
    with pytest.raises(ValueError, match=r"x\[1\] is nan"):
        tiled.altitude([0.0, np.nan], [0.0, 0.0])
    with pytest.raises(ValueError, match="y is inf"):
        tiled.altitude(0.0, np.inf)
    assert tiled.altitude(np.empty(0), np.empty(0)).shape == (0,)
    assert tiled.altitude(1e300, -1e300) == tiled.altitude(tiled.bounds[1], tiled.bounds[2])


def test_a_copy_reads_the_same_files(tiled):
    copy = pickle.loads(pickle.dumps(tiled))
    assert copy.altitude(12.0, 34.0) == tiled.altitude(12.0, 34.0)


def test_a_cog_with_overviews_in_centimetres_below_the_equator(tmp_path, monkeypatch):
    """Blocks of another size than tiles, overviews, counts of 1 cm, the southern hemisphere."""
    monkeypatch.setattr("rfly_terrain.tiles.tiled_height_map.TILE", TILE)
    counts = np.random.default_rng(0).integers(0, 60_000, (150, 170)).astype(np.uint16)
    transform = affine.from_origin(500_000 - 850, 6_000_000, 10, 10)
    options = {"tiled": True, "blockxsize": 48, "blockysize": 80, "crs": "EPSG:32732"}
    path = write_tif(tmp_path / "south.tif", counts, transform, **options)
    with rasterio.open(path, "r+") as dataset:
        dataset.scales = (0.01,)
        dataset.build_overviews([2, 4])
    tiled = TiledHeightMap.open(path)
    assert tiled.geo_origin[0] < -36.0
    assert tiled.altitude(-845.0, 745.0) == pytest.approx(counts[0, 0] / 100, abs=1e-3)
    assert tiled.altitude(845.0, -745.0) == pytest.approx(counts[-1, -1] / 100, abs=1e-3)
    assert tiled.altitude(-525.0, 5.0) == pytest.approx(counts[74, 32] / 100, abs=1e-3)


@pytest.mark.parametrize("declared", [-9999.0, None])
def test_files_that_cannot_serve(tmp_path, monkeypatch, declared):
    """A hole is named when its tile is read; other tiles answer before and after."""
    monkeypatch.setattr("rfly_terrain.tiles.tiled_height_map.TILE", TILE)
    raster = np.full((100, 100), 7.0, np.float32)
    raster[80, 80] = -9999.0
    transform = affine.from_origin(500_000 - 500, 5_000_000, 10, 10)
    path = write_tif(tmp_path / "hole.tif", raster, transform, nodata=declared)
    tiled = TiledHeightMap.open(path)
    assert tiled.altitude(-400.0, 400.0) == 7.0
    with pytest.raises(TerrainFormatError, match=r"1 of .* cells that were read hold no data"):
        tiled.altitude(300.0, -300.0)
    assert tiled.altitude(-400.0, 400.0) == 7.0

    degrees = write_tif(
        tmp_path / "degrees.tif", raster, affine.from_origin(8, 47, 0.01, 0.01), crs="EPSG:4326"
    )
    with pytest.raises(ConfigError, match="rfly terrain tile"):
        TiledHeightMap.open(degrees)
    # UTM on its meridian, 0.9996 of the ground: 25 km from the middle 10 m
    wide = write_tif(tmp_path / "wide.tif", raster, affine.from_origin(475_000, 5_000_000, 500, 5))
    with pytest.raises(ConfigError, match=r"up to 10\.. m off; make tiles of it"):
        TiledHeightMap.open(wide)
    with pytest.raises(TerrainFileNotFound):
        TiledHeightMap.open(tmp_path / "none")
    path.unlink()
    with pytest.raises(TerrainFileNotFound):
        tiled.altitude(300.0, -300.0)


@pytest.fixture
def gap(whole, tmp_path, monkeypatch):
    """A reader without the tile of samples 96 … 127 each way; it counts what it is asked for."""
    monkeypatch.setattr("rfly_terrain.tiles.tiled_height_map.TILE", TILE)
    path = tmp_path / "gap.tif"
    write_geotiff(whole, path)
    terrain = TiledHeightMap.open(path, memory_mb=4.0)
    reader = terrain._reader

    class Reader:
        def read(self, rows, columns):
            if (rows.start, columns.start) == (96, 96):
                raise TerrainFormatError("the damaged tile")
            return reader.read(rows, columns)

    terrain._reader = Reader()
    return terrain


def beside_gap(spare, seed=9):
    """Points in and about the damaged tile, and whether they need a sample of it."""
    samples = np.random.default_rng(seed).uniform(80.0, 144.0, (2, 600))
    first = np.floor(samples)
    needs = ((first + 1 + spare >= 96) & (first - spare <= 127)).all(axis=0)
    return samples[0] * STEP - 750.0, samples[1] * STEP - 655.0, needs


@pytest.mark.parametrize("smooth", [False, True])
def test_only_what_needs_a_damaged_tile_fails(gap, whole, smooth):
    """The eight neighbours of a tile answer up to the last cell, at once and point by point."""
    x, y, needs = beside_gap(spare=int(smooth))
    assert 100 < needs.sum() < 300
    ours = gap.query(x[~needs], y[~needs], smooth=smooth)
    theirs = whole.query(x[~needs], y[~needs], smooth=smooth)
    np.testing.assert_allclose(ours.altitude, theirs.altitude, atol=1e-6)
    np.testing.assert_allclose(ours.normal, theirs.normal, atol=1e-6)
    assert gap.is_loaded(x[~needs][:1], y[~needs][:1])
    for east, north in zip(x[needs][:60], y[needs][:60], strict=True):
        with pytest.raises(TerrainFormatError, match="the damaged tile"):
            gap.query([east], [north], smooth=smooth)


def test_rays_beside_and_before_a_damaged_tile(gap, whole):
    """They fail where they pass over it, and only there."""
    x, y, needs = beside_gap(spare=0)
    down = np.broadcast_to((0.0, 0.0, -1.0), (x.size, 3))
    origins = np.stack([x, y, np.full(x.size, 150.0)], axis=1)
    expected = 150.0 - whole.altitude(x[~needs], y[~needs])
    np.testing.assert_allclose(gap.cast(origins[~needs], down[~needs]), expected, atol=1e-6)

    # from the south-west, round the corner in the north-west, and into the hill before the tile
    ways = [((-735.0, -640.0, 30.0), (0.0, 1.0, 0.0)), ((-280.0, -240.0, 60.0), (-0.1, 1.0, -0.05))]
    for origin, direction in ways:
        assert gap.cast(origin, direction) == pytest.approx(whole.cast(origin, direction), abs=1e-6)
    west = (-277.0, -90.0, whole.altitude(-277.0, -90.0) + 1.0)
    assert whole.cast(west, (1.0, 0.0, -1.0)) < 2.0
    assert gap.cast(west, (1.0, 0.0, -1.0)) == pytest.approx(whole.cast(west, (1.0, 0.0, -1.0)))
    with pytest.raises(TerrainFormatError, match="the damaged tile"):
        gap.cast((-300.0, -100.0, 100.0), (1.0, 0.0, 0.0))


@pytest.fixture(scope="module")
def plane_folder(tmp_path_factory):
    """Tiles of a plane, 3 x 3 files, the last ones of 44 x 44 samples: 0.01 east, -0.02 north."""
    from rfly_terrain.tiles.make_tiles import TileOptions, make_tiles

    folder = tmp_path_factory.mktemp("plane")
    x, y = np.mgrid[0:300, 0:300] * 10.0
    plane = HeightMap(
        0.01 * x - 0.02 * y,
        origin_x=-1500.0,
        origin_y=-1500.0,
        step_x=10.0,
        step_y=10.0,
        geo_origin=(46.5, 9.0, 0.0),
    )
    write_geotiff(plane, folder / "plane.tif")
    make_tiles([folder / "plane.tif"], folder / "Plane", TileOptions(side=128), jobs=1)
    return folder / "Plane"


@pytest.mark.parametrize("samples", [400, 100, 40, 10, 2])
def test_detail_has_means_where_they_lie(plane_folder, samples):
    """Means of a plane's samples lie on the plane, if they are put in the right places."""
    tiled = TiledHeightMap.open(plane_folder)
    corner = tiled.altitude(tiled.bounds[0], tiled.bounds[2])
    for region in (tiled.bounds, (-500.0, 900.0, -1400.0, -200.0)):
        part = tiled.detail(region, samples, pytest.fail)
        x, y = (np.random.default_rng(2).uniform(*part.bounds[k : k + 2], 200) for k in (0, 2))
        expected = corner + 0.01 * (x - tiled.bounds[0]) - 0.02 * (y - tiled.bounds[2])
        np.testing.assert_allclose(part.altitude(x, y), expected, atol=1e-3)
        longest = max(region[1] - region[0], region[3] - region[2])
        stride = part.step_x / 10.0
        assert stride >= 1
        assert max(part.rows, part.columns) <= 2.3 * max(samples, 2) + 2
        assert part.bounds[0] <= region[0] + 10.0 * stride
        assert part.bounds[1] >= region[1] - 10.0 * stride
        assert longest > 0


def test_detail_of_all_samples_is_the_map(tiled, whole):
    x_min, x_max, y_min, y_max = whole.bounds
    part = tiled.detail((x_min + 100.0, x_max, y_min, y_max - 200.0), 1000, pytest.fail)
    x, y = random_points(part, 500)
    np.testing.assert_allclose(part.altitude(x, y), whole.altitude(x, y), atol=1e-4)


def test_detail_says_which_tile_fails(plane_folder, tmp_path):
    """The others are there, and the ground at fault is the lowest of the map."""
    import shutil

    shutil.copytree(plane_folder, tmp_path / "Plane")
    (tmp_path / "Plane" / "tiles" / "east00001_north00001.tif").write_bytes(b"II*\0 no more")
    tiled = TiledHeightMap.open(tmp_path / "Plane")
    told = []
    part = tiled.detail(tiled.bounds, 75, told.append)
    assert len(told) == 1
    assert "east00001_north00001.tif" in told[0]
    assert part.altitude(200.0, 300.0) == pytest.approx(tiled.z_min, abs=1e-3)
    assert part.altitude(-1000.0, 0.0) == pytest.approx(tiled.altitude(-1000.0, 0.0), abs=1e-3)
