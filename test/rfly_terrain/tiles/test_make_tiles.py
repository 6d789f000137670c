# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`make_tiles` against the import of the same ground from one file."""

from __future__ import annotations

import json
import resource

import numpy as np
import pytest
import rasters
from optional_parts import late_module

from rfly_amphibious.scenarios.scenario import Scenario
from rfly_common.errors import ConfigError, TerrainFileNotFound, TerrainFormatError
from rfly_terrain import TiledHeightMap, import_dem
from rfly_terrain.tiles import make_tiles as module
from rfly_terrain.tiles.make_tiles import TileOptions, make_tiles
from rfly_terrain.tiles.mosaic import MosaicOptions
from rfly_terrain.tiles.tile_files import tile_name

pytestmark = pytest.mark.needs("rasterio", "pyproj")

rasterio = late_module("rasterio")
affine = late_module("rasterio.transform")

SIDE = 64
SMALL = TileOptions(side=SIDE)
CELL = 1 / 3600
"""An arc second, degrees."""


def ground(rows, columns, seed=0):
    """Elevations with hills of all sizes, whole decimetres."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0.0, 9.0, columns)
    y = np.linspace(0.0, 7.0, rows)[:, None]
    heights = 500.0 + 200.0 * np.sin(x) * np.cos(y) + rng.normal(0.0, 3.0, (rows, columns))
    return np.round(heights, 1).astype(np.float32)


def write_tif(path, raster, west, north, cell=CELL, crs="EPSG:4326", nodata=None):
    return rasters.write_tif(path, raster, affine.from_origin(west, north, cell, cell), crs, nodata)


def quarters(folder, raster, west, north, overlap=0, **how):
    """Write a raster as four files, which may have some cells in common."""
    middle = [n // 2 for n in raster.shape]
    cell = how.get("cell", CELL)
    parts = [
        [slice(0, half + overlap), slice(half - overlap, n)]
        for half, n in zip(middle, raster.shape, strict=True)
    ]
    return [
        write_tif(
            folder / f"part_{rows.start}_{columns.start}.tif",
            raster[rows, columns].copy(),
            west + cell * columns.start,
            north - cell * rows.start,
            **how,
        )
        for rows in parts[0]
        for columns in parts[1]
    ]


def assert_same_ground(tiled, whole):
    """Compare all samples, and points between them."""
    assert (tiled.rows, tiled.columns) == (whole.rows, whole.columns)
    assert tiled.bounds == pytest.approx(whole.bounds, abs=1e-6)
    np.testing.assert_allclose(tiled.part().heights, whole.heights, atol=1e-4, rtol=0)
    assert np.abs(tiled.part().heights - whole.heights).mean() < 1e-6
    assert whole.z_min >= tiled.z_min - 1e-3
    assert whole.z_max <= tiled.z_max + 1e-3


@pytest.mark.parametrize("overlap", [0, 1])
def test_a_mosaic_in_degrees_equals_the_import_of_one_file(tmp_path, overlap):
    """Four files, as Copernicus (apart) and SRTM (a common row and column) have them."""
    raster = ground(240, 300)
    whole = import_dem(write_tif(tmp_path / "whole.tif", raster, 8.0, 47.0), origin_altitude=430.0)
    paths = quarters(tmp_path, raster, 8.0, 47.0, overlap)
    grid = make_tiles(
        paths, tmp_path / "Alps.v2", TileOptions(side=SIDE, origin_altitude=430.0), jobs=1
    )
    tiled = TiledHeightMap.open(tmp_path / "Alps.v2")
    assert grid.geo_origin == pytest.approx(whole.geo_origin, abs=1e-9)
    assert tiled.name == "Alps.v2"
    assert_same_ground(tiled, whole)
    assert len(list((tmp_path / "Alps.v2" / "tiles").iterdir())) == len(
        {(r // SIDE, c // SIDE) for r in range(grid.rows) for c in range(grid.columns)}
    )


def test_across_the_180th_meridian_and_the_equator(tmp_path):
    raster = ground(200, 260)
    west = 180.0 - 130 * CELL
    whole = import_dem(write_tif(tmp_path / "whole.tif", raster, west, 100 * CELL))
    east_part = write_tif(tmp_path / "e.tif", raster[:, :130].copy(), west, 100 * CELL)
    west_part = write_tif(tmp_path / "w.tif", raster[:, 130:].copy(), -180.0, 100 * CELL)
    make_tiles([west_part, east_part], tmp_path / "Fiji", SMALL, jobs=1)
    assert_same_ground(TiledHeightMap.open(tmp_path / "Fiji"), whole)


@pytest.mark.parametrize("first", range(4))
def test_files_all_round_the_earth(tmp_path, first):
    """Four files with a common column, as SRTM's; the seam of the mosaic is at each of them."""
    longitudes = np.linspace(-180.0, 180.0, 721)
    band = np.tile(100.0 + 100.0 * np.sin(np.radians(longitudes)), (21, 1)).astype(np.float32)
    paths = [
        write_tif(tmp_path / f"{k}.tif", band[:, 180 * k : 180 * k + 181].copy(), west, 5.25, 0.5)
        for k, west in enumerate((-180.25, -90.25, -0.25, 89.75))
    ]
    beyond = TileOptions(center=(0.0, 179.0), size=(600e3, 200e3), resolution=20e3, side=SIDE)
    make_tiles([*paths[first:], *paths[:first]], tmp_path / "t", beyond, jobs=1)
    x = np.linspace(-280e3, 280e3, 29)
    expected = 100.0 + 100.0 * np.sin(np.radians(179.0) + x / 6_378_137.0)
    altitudes = TiledHeightMap.open(tmp_path / "t").altitude(x, 0.0 * x)
    np.testing.assert_allclose(altitudes, expected, atol=0.01)


def test_a_metric_mosaic_keeps_its_cells(tmp_path):
    """Heights are bit by bit those of the files; a tile's last row and column are narrow."""
    raster = ground(129, 193)
    how = {"cell": 10.0, "crs": "EPSG:32632"}
    paths = quarters(tmp_path, raster, 499_000.0, 5_200_000.0, **how)
    make_tiles(paths, tmp_path / "Metric", SMALL, jobs=1)
    tiled = TiledHeightMap.open(tmp_path / "Metric")
    np.testing.assert_array_equal(tiled.part().heights, raster[::-1].T)
    assert tiled.altitude(tiled.bounds[1], tiled.bounds[2]) == raster[-1, -1]


def test_processes_and_a_part_make_the_same_tiles(tmp_path):
    raster = ground(160, 160)
    path = write_tif(tmp_path / "whole.tif", raster, 8.0, -47.0)
    part = {"resolution": 40.0, "center": (-47.02, 8.02), "size": (2400.0, 3600.0)}
    shares = []
    make_tiles([path], tmp_path / "t", TileOptions(side=32, **part), jobs=2, progress=shares.append)
    assert shares[-1] == 1.0
    assert shares == sorted(shares)
    assert_same_ground(TiledHeightMap.open(tmp_path / "t"), import_dem(path, **part))


def holes(raster):
    """Make holes: within a tile, over borders of tiles and files, at the edge of the map."""
    raster[20:23, 30:34] = -9999.0
    raster[55:70, 118:135] = -9999.0
    raster[100:104, :6] = -9999.0
    raster[140, 60:150] = -9999.0
    return raster


def test_holes_are_filled_as_in_one_map(tmp_path):
    raster = holes(ground(200, 240))
    whole_file = write_tif(tmp_path / "whole.tif", raster, 8.0, 47.0, nodata=-9999.0)
    paths = quarters(tmp_path, raster, 8.0, 47.0, nodata=-9999.0)
    with pytest.raises(TerrainFormatError, match=r"hold no data.*--fill-nodata"):
        make_tiles(paths, tmp_path / "Holes", SMALL, jobs=1)
    make_tiles(paths, tmp_path / "Holes", SMALL, jobs=1, fill_nodata=True)
    whole = import_dem(whole_file, fill_nodata=True)
    assert_same_ground(TiledHeightMap.open(tmp_path / "Holes"), whole)


def test_an_undeclared_void_is_none_in_all_tiles(tmp_path):
    """-9999 that no file declares is found before the tiles are made."""
    raster = holes(ground(200, 240))
    whole = import_dem(write_tif(tmp_path / "whole.tif", raster, 8.0, 47.0), fill_nodata=True)
    paths = quarters(tmp_path, raster, 8.0, 47.0)
    make_tiles(paths, tmp_path / "t", SMALL, jobs=1, fill_nodata=True)
    assert_same_ground(TiledHeightMap.open(tmp_path / "t"), whole)


def test_the_sea_where_no_file_is(tmp_path):
    raster = ground(128, 192)
    how = {"cell": 10.0, "crs": "EPSG:32632"}
    paths = quarters(tmp_path, raster, 499_040.0, 5_200_000.0, **how)
    sea = TileOptions(MosaicOptions(outside=-1.5), side=SIDE)
    make_tiles(paths[1:], tmp_path / "Coast", sea, jobs=1)  # without the one in the north-west
    expected = raster.copy()
    expected[:64, :96] = -1.5
    np.testing.assert_array_equal(
        TiledHeightMap.open(tmp_path / "Coast").part().heights, expected[::-1].T
    )


def test_a_stopped_conversion_goes_on(tmp_path, monkeypatch):
    """Tiles that are there stay; a damaged one is made anew; only then the map can be opened."""
    paths = quarters(tmp_path, ground(200, 240), 8.0, 47.0)
    folder = tmp_path / "t"
    write = module.TilePlan.write
    written = []

    def stop_after_three(plan, i, j):
        if len(written) == 3:
            raise KeyboardInterrupt
        written.append((i, j))
        return write(plan, i, j)

    monkeypatch.setattr(module.TilePlan, "write", stop_after_three)
    with pytest.raises(KeyboardInterrupt):
        make_tiles(paths, folder, SMALL, jobs=1)
    with pytest.raises(TerrainFileNotFound):
        TiledHeightMap.open(folder)

    monkeypatch.setattr(module.TilePlan, "write", write)
    first, second = (folder / tile_name(*each) for each in written[:2])
    kept = first.stat().st_mtime_ns
    second.write_bytes(second.read_bytes()[:200])
    (folder / "tiles" / ".east00001_north00001.tif.77.part").write_bytes(b"half")
    with pytest.raises(FileExistsError, match="a part of other tiles"):
        make_tiles(paths, folder, TileOptions(side=128), jobs=1)
    make_tiles(paths, folder, SMALL, jobs=1)
    assert first.stat().st_mtime_ns == kept
    assert not (folder / module.CONVERSION).exists()
    assert not list((folder / "tiles").glob(".*"))
    make_tiles(paths, tmp_path / "at_once", SMALL, jobs=1)
    np.testing.assert_array_equal(
        TiledHeightMap.open(folder).part().heights,
        TiledHeightMap.open(tmp_path / "at_once").part().heights,
    )
    with pytest.raises(FileExistsError, match="--overwrite"):
        make_tiles(paths, folder, SMALL, jobs=1)
    make_tiles(paths, folder, TileOptions(side=128), jobs=1, overwrite=True)
    assert TiledHeightMap.open(folder).rows > 0


def test_files_have_whole_strips(tmp_path):
    first = write_tif(tmp_path / "a.tif", ground(64, 64), 8.0, 47.0)
    with pytest.raises(ConfigError, match="a multiple of 32"):
        make_tiles([first], tmp_path / "t", TileOptions(side=100))
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"resolution": 0.0},
        {"resolution": np.nan},
        {"resolution": -5.0},
        {"center": (95.0, 8.0)},
        {"size": (-10.0, 100.0)},
        {"size": (np.nan, 100.0)},
        {"origin_altitude": np.nan},
        {"sources": MosaicOptions(outside=np.nan)},
    ],
)
def test_options_out_of_their_range(tmp_path, wrong):
    path = write_tif(tmp_path / "a.tif", ground(64, 64), 8.0, 47.0)
    with pytest.raises(ConfigError):
        make_tiles([path], tmp_path / "t", TileOptions(**wrong))
    assert not (tmp_path / "t").exists()


def test_one_conversion_at_a_time(tmp_path):
    """A second one would take the files of the first, which may have other options, for its own."""
    path = write_tif(tmp_path / "a.tif", ground(64, 64), 8.0, 47.0)

    def second(share):
        for overwrite in (False, True):
            with pytest.raises(FileExistsError, match="another process is writing there"):
                make_tiles([path], tmp_path / "t", TileOptions(side=32), overwrite=overwrite)

    make_tiles([path], tmp_path / "t", SMALL, jobs=1, progress=second)
    assert TiledHeightMap.open(tmp_path / "t").rows > 0


def test_a_full_disk_leaves_no_half_tile(tmp_path):
    """A limit of a file's size stands for it; GDAL keeps silent when it closes such a file."""
    path = write_tif(tmp_path / "a.tif", ground(64, 64), 8.0, 47.0)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            make_tiles([path], tmp_path / "t", SMALL, jobs=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list((tmp_path / "t" / "tiles").iterdir())
    make_tiles([path], tmp_path / "t", SMALL, jobs=1)
    whole = import_dem(path)
    assert_same_ground(TiledHeightMap.open(tmp_path / "t"), whole)


def test_files_without_their_record_are_not_taken(tmp_path):
    """Removing the manifest does not say that the old tiles are those of new sources."""
    low = write_tif(tmp_path / "low.tif", np.full((64, 64), 7.0, np.float32), 8.0, 47.0)
    high = write_tif(tmp_path / "high.tif", np.full((64, 64), 90.0, np.float32), 8.0, 47.0)
    folder = tmp_path / "t"
    make_tiles([low], folder, SMALL, jobs=1)
    (folder / "terrain.json").unlink()
    note = folder / "tiles" / "note.txt"
    note.write_text("the user's own")
    with pytest.raises(FileExistsError, match="a part of other tiles"):
        make_tiles([high], folder, SMALL, jobs=1)
    grid = make_tiles([high], folder, SMALL, jobs=1, overwrite=True)
    assert (grid.z_min, grid.z_max) == (90.0, 90.0)
    assert TiledHeightMap.open(folder).altitude(0.0, 0.0) == 90.0
    assert note.exists()


def test_tiles_are_no_source_of_their_own_folder(tmp_path):
    """The sources would be gone, with --overwrite, before they are read."""
    how = {"cell": 10.0, "crs": "EPSG:32632"}
    path = write_tif(tmp_path / "a.tif", ground(64, 64), 499_680.0, 5_200_000.0, **how)
    make_tiles([path], tmp_path / "t", SMALL, jobs=1)
    tile = tmp_path / "t" / tile_name(0, 0)
    with pytest.raises(ConfigError, match="lies among the tiles to be written"):
        make_tiles([tile], tmp_path / "t", TileOptions(side=32), overwrite=True)
    assert tile.exists()


def test_heights_that_are_none_on_the_earth_stay_on_request(tmp_path):
    """Olympus Mons is 21 km high; --nodata none, and a height for cells that no file has."""
    raster = ground(64, 64) * 40.0
    how = {"cell": 10.0, "crs": "EPSG:32632"}
    one = write_tif(tmp_path / "a.tif", raster, 499_360.0, 5_200_000.0, **how)
    two = write_tif(tmp_path / "b.tif", raster[:32].copy(), 500_000.0, 5_200_000.0, **how)
    every = TileOptions(MosaicOptions(nodata="none", outside=-20_000.0), side=SIDE)
    make_tiles([one, two], tmp_path / "t", every, jobs=1)
    tiled = TiledHeightMap.open(tmp_path / "t")
    expected = np.hstack([raster, np.full((64, 64), -20_000.0, np.float32)])
    expected[:32, 64:] = raster[:32]
    np.testing.assert_array_equal(tiled.part().heights, expected[::-1].T)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": "other"}, "expected the format"),
        ({"rows": 2.5}, "rows, columns and samples"),
        ({"step_x": -1.0}, "step_x"),
        ({"geo_origin": [100.0, 0.0, 0.0]}, "geo_origin"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_manifests_of_other_content(tmp_path, change, reason):
    path = write_tif(tmp_path / "a.tif", ground(64, 64), 8.0, 47.0)
    make_tiles([path], tmp_path / "t", SMALL, jobs=1)
    manifest = tmp_path / "t" / "terrain.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **change}))
    with pytest.raises((TerrainFormatError, ConfigError), match=reason):
        TiledHeightMap.open(tmp_path / "t")


def test_a_damaged_or_missing_tile_is_told(tmp_path, monkeypatch):
    """The other tiles answer; a tile that is mended answers again."""
    monkeypatch.setattr("rfly_terrain.tiles.tiled_height_map.TILE", 32)
    raster = ground(200, 240)
    make_tiles([write_tif(tmp_path / "a.tif", raster, 8.0, 47.0)], tmp_path / "t", SMALL, jobs=1)
    tiled = TiledHeightMap.open(tmp_path / "t")
    x_min, x_max, y_min, y_max = tiled.bounds
    expected = tiled.altitude(x_max, y_max)
    path = max((tmp_path / "t" / "tiles").iterdir())
    data = path.read_bytes()

    again = TiledHeightMap.open(tmp_path / "t")
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(TerrainFormatError, match=path.name):
        again.altitude(x_max, y_max)
    path.unlink()
    with pytest.raises(TerrainFileNotFound, match=path.name):
        again.altitude([x_max, x_min], [y_max, y_min])
    whole = tiled.altitude(x_min, y_min)
    assert again.altitude(x_min, y_min) == pytest.approx(whole, abs=1e-9)
    path.write_bytes(data)
    assert again.altitude(x_max, y_max) == pytest.approx(expected, abs=1e-9)


@pytest.mark.needs("distributed")
def test_a_dask_cluster_makes_the_same_tiles_and_goes_on(tmp_path):
    """Voids that are found first are known to all workers; a stopped conversion loses no tile."""
    import distributed

    paths = quarters(tmp_path, holes(ground(200, 240)), 8.0, 47.0)
    folder = tmp_path / "t"

    def stop_at_half(share):
        if share > 0.5:
            raise KeyboardInterrupt

    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            dashboard_address=None,
            protocol="tcp",
        ) as cluster,
    ):
        how = {"fill_nodata": True, "dask": cluster.scheduler_address}
        with pytest.raises(KeyboardInterrupt):
            make_tiles(paths, folder, SMALL, progress=stop_at_half, **how)
        kept = {path: path.stat().st_mtime_ns for path in (folder / "tiles").glob("east*")}
        assert kept
        make_tiles(paths, folder, SMALL, **how)
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())
    make_tiles(paths, tmp_path / "alone", SMALL, jobs=1, fill_nodata=True)
    np.testing.assert_array_equal(
        TiledHeightMap.open(folder).part().heights,
        TiledHeightMap.open(tmp_path / "alone").part().heights,
    )


def test_a_scenario_takes_a_map_in_tiles(tmp_path):
    """Level ground of 7.5 m."""
    level = np.full((64, 64), 7.5, np.float32)
    how = {"cell": 10.0, "crs": "EPSG:32632"}
    path = write_tif(tmp_path / "a.tif", level, 499_680.0, 5_200_000.0, **how)
    make_tiles([path], tmp_path / "t", SMALL, jobs=1)
    text = f"""
version: 1
map: {tmp_path / "t"}
vehicle: scale
mission: {{drive_speed_mps: 2, items: [{{mode: waypoint, position_m: [4, 0]}}]}}
end: {{when: time, time_s: 2}}
"""
    scenario = Scenario.parse(text.encode(), "s.yaml")
    assert scenario.terrain is not None
    assert scenario.terrain.altitude(3.0, 4.0) == 7.5
