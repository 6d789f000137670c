# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A map in tiles in the window: the ground about vehicles is exact, the rest is drawn."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time

import cv2
import numpy as np
import pytest
from chromium_harness import Chromium
from node_harness import wait_until

from rfly_common.errors import TerrainFormatError
from rfly_terrain import HeightMap, TiledHeightMap, write_geotiff
from rfly_terrain.files.writer import write_height_map
from rfly_terrain.height_map.terrain import RETRY_S
from rfly_viewer.drawing.screen import Screen
from rfly_viewer.drawing.terrain_levels import BELOW, PatchMaker
from rfly_viewer.drawing.terrain_mesh import region_mesh, terrain_glb
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

    # where the vehicle stands, it is read again after a time
    monkeypatch.undo()
    later = time.monotonic() + 2 * RETRY_S
    wait_until(
        lambda: viewer.draw(later) or viewer.state.terrain.inside(4000.0, -3000.0), "the ground"
    )
    assert viewer._near_problem == ""


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


@contextlib.contextmanager
def page_of(viewer, width, height):
    """Open the window in a browser that shows the scene alone, without haze."""
    from rfly_viewer.window.film import _ONLY_THE_SCENE

    viewer.server.scene.configure_fog(0.0, 1.0, enabled=False)
    with contextlib.closing(viewer), Chromium(width, height) as browser:
        browser.before_load(_ONLY_THE_SCENE)
        browser.open(viewer.address)
        drawn_until(viewer, viewer.cameras.current, "a page")
        yield browser


def look(viewer, x, y, z, pitch, yaw):
    """Move the cameras: m east, north and up, degrees."""
    viewer.state.run_command(f"RflyCameraPosAng {y} {x} {-z} 0 {pitch} {yaw}")
    viewer.draw(time.monotonic())


def still_picture(viewer, browser):
    """Return the picture when it stays."""
    last = [browser.picture().astype(int)]

    def is_still():
        viewer.draw(time.monotonic())
        last.append(browser.picture().astype(int))
        return viewer.is_settled and np.abs(last[-1] - last[-2]).mean() < 0.05

    wait_until(is_still, "a picture that stays")
    return last[-1]


@pytest.mark.slow
@pytest.mark.skipif(chromium_program() is None, reason="the program chromium is not installed")
def test_the_first_picture_needs_no_answer_and_no_other_file(folder):
    """The ground is in the first messages of a page: the viewer does nothing once it is opened.

    The page loads no lights of its own, which are a jpeg within it.
    """
    from rfly_viewer.window.film import _ONLY_THE_SCENE

    viewer = viewer_of(folder / "Hills")
    levels = viewer._terrain._levels
    drawn_until(viewer, lambda: levels._below is not None, "the coarse ground")
    viewer.listener.arrived.clear()
    with contextlib.closing(viewer), Chromium(WIDTH, HEIGHT) as browser:
        browser.before_load(_ONLY_THE_SCENE)
        browser.open(viewer.address)
        wait_until(
            lambda: browser.evaluate("document.querySelector('canvas') !== null"), "the scene"
        )
        wait_until(lambda: is_brown(browser.picture()[HEIGHT // 2 :]).mean() > 0.3, "the ground")
        assert not levels._browsers
        assert viewer.listener.arrived.is_set(), "what comes next waits for no pause"
    assert sum(address.startswith("http") for address in browser.requested) == 1
    assert not any(address.startswith("data:image/jpeg") for address in browser.requested)


def is_brown(picture):
    """Return which pixels have more red than blue, as neither sky nor panels have."""
    return picture[..., 0] > picture[..., 2] + 15.0


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.skipif(chromium_program() is None, reason="the program chromium is not installed")
def test_tiles_look_like_the_whole_map(folder):
    """The same cameras see the same ground, but for its grain: with light, near and far.

    The whole map's quads are 67 m wide, its shortest hills 350 m. Without a graphics card a picture
    of all 400,000 triangles takes a second of two cores.
    """
    pictures = []
    for name in ("Hills", "whole.png"):
        viewer = viewer_of(folder / name, shadows=True, max_triangles=100_000)
        with page_of(viewer, 320, 240) as browser:
            for camera in ((0, 0, 12_000, -90, 0), (-2000, -1000, 900, -15, 45)):
                look(viewer, *camera)
                pictures.append(still_picture(viewer, browser))
    for tiles, whole in zip(pictures[:2], pictures[2:], strict=True):
        off = np.abs(tiles - whole)
        assert whole.std() > 15
        assert off.mean() < 14
        assert (off.max(axis=2) > 90).mean() < 0.005  # no hole, no wall


WIDTH = 320
HEIGHT = 240
GREY = np.full((8, 8, 3), 150, np.uint8)
RED = np.full((8, 8, 3), (255, 0, 0), np.uint8)
MOST_EDGE_ON = 12
"""Pixels of a picture, of which a part may be red."""
QUADS = 400
"""Quads a side of the mesh of all the map, each 37.5 m wide."""


def borders_of_levels(viewer):
    """Return columns and rows of pixels at which a finer patch meets a coarser one."""
    [patches] = viewer._terrain._levels._browsers.values()
    shown = list(patches.shown)
    west, east, south, north = np.transpose([p.region(viewer.state.whole.bounds) for p in shown])
    levels = np.array([patch.level for patch in shown])

    # which level is 1 m beyond each side
    share = np.linspace(0.002, 0.998, 250)[:, None]
    x = west + share * (east - west)
    y = south + share * (north - south)
    sides = [(west - 1.0 + 0 * y, y), (east + 1.0 + 0 * y, y), (x, south - 1.0 + 0 * x)]
    sides.append((x, north + 1.0 + 0 * x))
    points = np.concatenate([np.stack(side, axis=-1) for side in sides]).reshape(-1, 2)
    own = np.tile(levels, len(points) // len(levels))
    px, py = points.T[..., None]
    holds = (px > west) & (px < east) & (py > south) & (py < north)
    is_border = (holds * (levels < own[:, None])).any(axis=1)

    x, y = points[is_border].T
    [client] = viewer.server.get_clients().values()
    ground = np.column_stack([x, y, viewer.state.whole.altitude(x, y)])
    pixels, ahead = Screen.of(client.camera).pixels(ground)
    pixels = np.floor(pixels[ahead > 50.0] + [WIDTH / 2, HEIGHT / 2]).astype(int)
    is_inside = ((pixels >= 0) & (pixels < [WIDTH, HEIGHT])).all(axis=1)
    return np.unique(pixels[is_inside], axis=0).T


def reds(picture):
    """Return the number of pixels that show the ground below the patches."""
    return (picture[..., 0] > picture[..., 1] + 20.0).sum()


def is_sky(picture):
    """Return which pixels are blue."""
    return picture[..., 2] > picture[..., 0] + 15.0


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize(
    ("lit", "camera"),
    [(True, (-2000, -1000, 900, -15, 45)), (False, (3000, -2000, 500, -12, 200))],
)
@pytest.mark.skipif(chromium_program() is None, reason="the program chromium is not installed")
def test_levels_look_like_one_mesh(folder, monkeypatch, lit, camera):
    """No hole while a camera moves, and in the end no border of levels is seen.

    The ground is grey, that below the patches red. SwiftShader draws a quarter of a pixel of it
    where one of its triangles is seen edge-on, through ground that has no hole.
    """
    below = PatchMaker.below
    monkeypatch.setattr(PatchMaker, "_picture", lambda self, region: GREY)
    monkeypatch.setattr(
        PatchMaker, "below", lambda self: dataclasses.replace(below(self), picture=RED)
    )

    # patches come once the ground below has been seen
    may_come = threading.Event()
    want = PatchMaker.want

    def want_what_may_come(self, patches):
        want(self, [patch for patch in patches if patch == BELOW or may_come.is_set()])

    monkeypatch.setattr(PatchMaker, "want", want_what_may_come)
    viewer = viewer_of(folder / "Hills", shadows=lit)
    whole = viewer.state.whole.part(viewer.state.whole.bounds)
    mesh = region_mesh(whole, whole.bounds, QUADS, QUADS, GREY)
    full = terrain_glb(mesh, lit, is_photo=True)

    with page_of(viewer, WIDTH, HEIGHT) as browser:
        drawn_until(viewer, lambda: reds(browser.picture()) > WIDTH, "the ground below")
        may_come.set()
        drawn_until(viewer, lambda: reds(browser.picture()) <= MOST_EDGE_ON, "the map")
        x, y, z, pitch, yaw = camera
        for away in (1200, 600):
            look(viewer, x + away, y - away, z + away, pitch - away / 50, yaw + away / 20)
            for _ in range(3):
                red = reds(browser.picture())
                viewer.draw(time.monotonic())
                assert red <= MOST_EDGE_ON
        look(viewer, *camera)
        still_picture(viewer, browser)
        column, row = borders_of_levels(viewer)
        assert len(row) > 300

        # the same camera over one mesh
        levels = viewer._terrain._levels
        [shown] = [each.shown for each in levels._browsers.values()]
        handles = [drawn.handle for drawn in (levels._below, *shown.values())]
        for handle in handles:
            handle.visible = False
        wait_until(lambda: is_sky(browser.picture()).all(), "no ground")
        mesh_handle = viewer.server.scene.add_glb("/full", full, cast_shadow=False)
        wait_until(lambda: not is_sky(browser.picture())[-1].any(), "the mesh")
        one = still_picture(viewer, browser)
        mesh_handle.remove()
        wait_until(lambda: is_sky(browser.picture()).all(), "no mesh")

        # crests of hills may be a pixel lower
        ground = ~cv2.dilate(is_sky(one).astype(np.uint8), np.ones((7, 7))).astype(bool)

        def is_the_same():
            off = np.abs(browser.picture() - one).max(axis=2) * ground
            return off[row, column].max() < 6 and (off > 6).mean() < 0.002

        for handle in handles:
            handle.visible = True
        wait_until(is_the_same, "the patches, looking like the mesh")
        assert ground.mean() > 0.5
