# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A map in tiles in the window: the ground about vehicles is exact, the rest is drawn."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from chromium_harness import Chromium
from node_harness import wait_until

from rfly_common.errors import TerrainFormatError
from rfly_terrain import HeightMap, TiledHeightMap, write_geotiff
from rfly_terrain.files.writer import write_height_map
from rfly_viewer.scene.state_batches import StateBatch
from rfly_viewer.window.chromium import chromium_program

pytestmark = pytest.mark.needs("viser", "rasterio", "pyproj")

SAMPLES = 1500
STEP = 10.0
SIDE = 128


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Hills of 15 km as tiles, and as a map of RflySim."""
    from rfly_terrain.tiles.make_tiles import TileOptions, make_tiles

    folder = tmp_path_factory.mktemp("hills")
    x, y = np.mgrid[0:SAMPLES, 0:SAMPLES] * STEP
    heights = 200 + 80 * np.sin(x / 500) * np.cos(y / 380) + 15 * np.sin(x / 90 + y / 70)
    corner = -STEP * SAMPLES / 2
    hills = HeightMap(
        heights,
        origin_x=corner,
        origin_y=corner,
        step_x=STEP,
        step_y=STEP,
        geo_origin=(46.5, 9.0, 0.0),
    )
    write_geotiff(hills, folder / "hills.tif")
    write_height_map(hills, folder / "whole")
    make_tiles([folder / "hills.tif"], folder / "Hills", TileOptions(side=512), jobs=1)
    return folder


def viewer_of(path, **settings):
    from rfly_viewer.window.server import Settings, Viewer

    viewer = Viewer(Settings(map=str(path), http_port=0, udp_port=0, **settings))
    assert not viewer.state.log
    return viewer


@pytest.fixture
def viewer(folder, monkeypatch):
    monkeypatch.setattr("rfly_viewer.scene.scene_state.WINDOW_SAMPLES", SIDE)
    viewer = viewer_of(folder / "Hills")
    yield viewer
    viewer.close()


def put(viewer, x, y):
    """Put vehicle 1 on the ground at x east, y north."""
    batch = StateBatch(
        np.array([1]),
        np.array([3]),
        np.array([[y, x, 0.0]]),
        np.zeros((1, 3)),
        np.full((1, 3), np.nan),
        np.full((1, 3), np.nan),
        np.zeros(1),
        np.zeros(1),
        np.array([True]),
    )
    viewer.state.apply(batch, 0.0)
    viewer.draw(time.monotonic())
    viewer.draw(time.monotonic())


def drawn_until(viewer, ready, what):
    wait_until(lambda: viewer.draw(time.monotonic()) or ready(), what)


def test_the_exact_ground_follows_a_vehicle(viewer, folder):
    whole = TiledHeightMap.open(folder / "Hills")
    assert viewer.state.whole.bounds == whole.bounds
    assert viewer.state.terrain.rows == SIDE
    near = viewer.state.terrain
    put(viewer, 4000.0, -3000.0)
    drawn_until(viewer, lambda: viewer.state.terrain is not near, "the ground")
    x, y = np.random.default_rng(1).uniform(-300.0, 300.0, (2, 50))
    ours = viewer.state.terrain.altitude(4000.0 + x, -3000.0 + y)
    np.testing.assert_allclose(ours, whole.altitude(4000.0 + x, -3000.0 + y), atol=1e-4)
    viewer.draw(time.monotonic())
    down = viewer.state.vehicles.world(viewer.state.terrain).position_ned[0, 2]
    assert -down == pytest.approx(whole.altitude(4000.0, -3000.0), abs=3.0)


def test_ground_that_cannot_be_read_is_told_once(viewer, monkeypatch):
    near = viewer.state.terrain

    def fail(x, y, samples):
        raise TerrainFormatError("a damaged tile")

    monkeypatch.setattr(viewer.state.whole, "window", fail)
    put(viewer, 4000.0, -3000.0)
    drawn_until(viewer, lambda: "a damaged tile" in viewer.state.log, "the reason")
    for _ in range(20):
        viewer.draw(time.monotonic())
    assert list(viewer.state.log).count("a damaged tile") == 1
    assert viewer.state.terrain is near


def test_a_fast_vehicle_does_not_replace_what_a_slow_server_reads(viewer, monkeypatch):
    """The ground of the first place comes, however far the vehicle is meanwhile; then the last."""
    reads = threading.Semaphore(0)
    places = []
    window = viewer.state.whole.window

    def slow(x, y, samples):
        places.append(x)
        reads.acquire()
        return window(x, y, samples)

    monkeypatch.setattr(viewer.state.whole, "window", slow)
    for x in (2000.0, 3000.0, 4000.0):
        put(viewer, x, 0.0)
        wait_until(lambda: places, "a search")
    reads.release()
    drawn_until(viewer, lambda: viewer.state.terrain.inside(2000.0, 0.0), "the first place")
    reads.release()
    drawn_until(viewer, lambda: viewer.state.terrain.inside(4000.0, 0.0), "the last place")
    assert places == [2000.0, 4000.0]


@pytest.mark.slow
@pytest.mark.skipif(chromium_program() is None, reason="the program chromium is not installed")
def test_tiles_look_like_the_whole_map(folder):
    """The same cameras see the same ground, but for its grain: with light, near and far."""
    from rfly_viewer.window.film import _ONLY_THE_SCENE

    pictures = []
    for name in ("Hills", "whole.png"):
        viewer = viewer_of(folder / name, shadows=True)
        viewer.server.scene.configure_fog(0.0, 1.0, enabled=False)
        with Chromium(320, 240) as browser:
            browser.before_load(_ONLY_THE_SCENE)
            browser.open(viewer.address)
            drawn_until(viewer, viewer.cameras.current, "a page")
            for x, y, z, pitch, yaw in ((0, 0, 12_000, -90, 0), (-2000, -1000, 900, -15, 45)):
                viewer.state.run_command(f"RflyCameraPosAng {y} {x} {-z} 0 {pitch} {yaw}")
                viewer.draw(time.monotonic())
                drawn_until(viewer, lambda viewer=viewer: viewer.is_settled, "the ground")
                last = [browser.picture().astype(int)]

                def is_still(viewer=viewer, browser=browser, last=last):
                    viewer.draw(time.monotonic())
                    last.append(browser.picture().astype(int))
                    return viewer.is_settled and np.abs(last[-1] - last[-2]).mean() < 0.05

                wait_until(is_still, "a picture that stays")
                pictures.append(last[-1])
        viewer.close()
    for tiles, whole in zip(pictures[:2], pictures[2:], strict=True):
        off = np.abs(tiles - whole)
        assert whole.std() > 15
        assert off.mean() < 14
        assert (off.max(axis=2) > 90).mean() < 0.005  # no hole, no wall
