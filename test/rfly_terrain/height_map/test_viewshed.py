# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Viewsheds: shadows by hand, horizons by their formula, rough ground by dense samples, files."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest
from height_maps import grid_map
from optional_parts import late_module

from rfly_terrain import HeightMap
from rfly_terrain.exports.geotiff import write_viewshed_geotiff
from rfly_terrain.height_map.ray_cast import RADIO_EARTH_RADIUS, SIGHT_EARTH_RADIUS
from rfly_terrain.height_map.viewshed import viewshed
from rfly_terrain.plots.overlays import write_viewshed

rasterio = late_module("rasterio")

SLIVER = 0.02
"""Clearance of a line below which dense samples do not tell whether the ground is in its way, m."""


def dense_clearance(terrain, eye, target_height):
    """Return the least height of each sample's line above the ground, by 3,000 points of it."""
    share = np.linspace(0.0, 1.0, 3000)[1:-1]
    clearance = np.empty((terrain.rows, terrain.columns))
    for row, column in np.ndindex(clearance.shape):
        x = terrain.origin_x + row * terrain.step_x
        y = terrain.origin_y + column * terrain.step_y
        end = np.array((x, y, float(terrain.heights[row, column]) + target_height))
        line = eye + share[:, None] * (end - eye)
        clearance[row, column] = (line[:, 2] - terrain.altitude(line[:, 0], line[:, 1])).min()
    return clearance


@pytest.mark.parametrize("seed", range(4))
def test_rough_ground_beside_dense_samples(seed):
    rng = np.random.default_rng(seed)
    steps = {"step_x": 2.0 * (-1) ** seed, "step_y": -3.0 if seed > 1 else 1.5}
    terrain = grid_map(rng.normal(0.0, 0.7, (18, 23)), **steps)
    x, y = (rng.uniform(low, high) for low, high in (terrain.bounds[:2], terrain.bounds[2:]))
    eye = np.array((x, y, terrain.altitude(x, y) + 2.5))

    seen = viewshed(terrain, eye, target_height=0.7)
    clearance = dense_clearance(terrain, eye, 0.7)
    is_clear_cut = np.abs(clearance) > SLIVER
    assert is_clear_cut.mean() > 0.9
    assert 0.1 < seen.mean() < 0.95
    assert (seen == (clearance > 0.0))[is_clear_cut].all()


def test_a_ridge_throws_its_shadow():
    """A ridge of 10 m at x = 50 hides level ground until x = 100 from 20 m up at x = 0."""
    heights = np.zeros((151, 5))
    heights[50] = 10.0
    terrain = grid_map(heights)
    expected = np.array([x <= 50 or x > 100 for x in range(151)])
    expected[100] = viewshed(terrain, (0.0, 2.0, 20.0))[100, 2]  # the line touches the ridge

    assert (viewshed(terrain, (0.0, 2.0, 20.0))[:, 2] == expected).all()
    # what stands 5 m high is seen behind x = 75
    taller = viewshed(terrain, (0.0, 2.0, 20.0), target_height=5.0)[:, 2]
    assert taller.tolist()[51:75] == 24 * [False]
    assert taller[76:].all()


@pytest.mark.parametrize(
    ("earth_radius", "horizon_km"),
    [(RADIO_EARTH_RADIUS, 41.22), (SIGHT_EARTH_RADIUS, 38.26), (math.inf, math.inf)],
)
def test_a_sea_ends_at_the_horizon(earth_radius, horizon_km):
    """The horizon from 100 m up is √(2 k 6371 km · 100 m) away, k = 4/3 and 1/0.87.

    Pieces of a line are 17 mm too high at most, which at this horizon counts for half a kilometre.
    """
    sea = grid_map(np.zeros((481, 2)), step_x=100.0, step_y=100.0)
    seen = viewshed(sea, (0.0, 50.0, 100.0), earth_radius=earth_radius)[:, 0]
    distance_km = 0.1 * np.arange(481)
    near = np.abs(distance_km - horizon_km) > 0.6
    assert (seen == (distance_km < horizon_km))[near].all()


def test_what_is_too_far_is_not_in_sight():
    sea = grid_map(np.zeros((11, 11)))
    seen = viewshed(sea, (5.0, 5.0, 3.0), max_range=math.sqrt(2.0))
    assert np.argwhere(seen).tolist() == [[i, j] for i in (4, 5, 6) for j in (4, 5, 6)]


def test_progress_ends_at_one(monkeypatch):
    monkeypatch.setattr("rfly_terrain.height_map.viewshed._SAMPLES_AT_ONCE", 12)
    shares = []
    viewshed(grid_map(np.zeros((7, 4))), (1.0, 1.0, 1.0), progress=shares.append)
    assert shares == [pytest.approx(3 / 7), pytest.approx(6 / 7), 1.0]


@pytest.mark.parametrize(
    ("observer", "options", "words"),
    [
        ((5.0, 5.0, -0.1), {}, "observer is at z = -0.1 m, in the ground of 0 m"),
        ((5.0, math.nan, 1.0), {}, "observer"),
        ((5.0, 5.0), {}, "observer"),
        ((5.0, 5.0, 1.0), {"target_height": -1.0}, "target_height: -1.0 m"),
        ((5.0, 5.0, 1.0), {"max_range": math.nan}, "max_range is nan"),
        ((5.0, 5.0, 1.0), {"earth_radius": 10.0}, "earth_radius is 10.0"),
    ],
)
def test_what_can_not_be_is_named(observer, options, words):
    with pytest.raises(ValueError, match=words):
        viewshed(grid_map(np.zeros((11, 11))), observer, **options)


@pytest.mark.needs("rasterio")
def test_a_geotiff_has_each_sample_at_its_place(tmp_path):
    """The south-west corner alone is in sight, on a map whose rows run to the west."""
    terrain = grid_map(
        np.zeros((3, 4)), origin_x=20.0, step_x=-10.0, step_y=5.0, geo_origin=(47.0, 8.0, 500.0)
    )
    seen = np.zeros((3, 4), bool)
    seen[2, 0] = True  # x = 0, y = 0
    write_viewshed_geotiff(terrain, seen, tmp_path / "seen.tif")
    with rasterio.open(tmp_path / "seen.tif") as file:
        pixels = file.read(1)
        assert (pixels.dtype, pixels.sum()) == (np.uint8, 1)
        assert pixels[file.index(0.0, 0.0)] == 1
        longitude, latitude = rasterio.warp.transform(file.crs, "EPSG:4326", [0.0], [0.0])
        assert (latitude[0], longitude[0]) == pytest.approx((47.0, 8.0), abs=1e-9)


@pytest.mark.needs("matplotlib")
def test_the_picture_is_dark_where_nothing_is_seen(tmp_path):
    """The east is out of sight: right of the middle the picture is much darker."""
    terrain = grid_map(np.zeros((40, 40)))
    seen = np.zeros((40, 40), bool)
    seen[:20] = True
    write_viewshed(terrain, seen, (5.0, 5.0), tmp_path / "seen.png")
    grey = cv2.imread(str(tmp_path / "seen.png"), cv2.IMREAD_GRAYSCALE)
    rows, columns = grey.shape
    row = grey[rows // 3]
    west, east = (float(np.median(row[int(at * columns)])) for at in (0.4, 0.7))
    assert west > 1.5 * east


def test_every_third_sample():
    heights = np.random.default_rng(6).uniform(0.0, 9.0, (31, 44))
    ground = HeightMap(heights, origin_x=3.0, origin_y=-5.0, step_x=2.0, step_y=-2.5)
    whole = viewshed(ground, (20.0, -30.0, 11.0))
    np.testing.assert_array_equal(viewshed(ground, (20.0, -30.0, 11.0), stride=3), whole[::3, ::3])
