# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Ground in patches: they cover the map once at each moment, and no crack is between levels."""

from __future__ import annotations

import contextlib
import copy
import json
import threading
import types

import cv2
import numpy as np
import pytest

from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.imagery.imagery import Imagery
from rfly_viewer.drawing import terrain_levels
from rfly_viewer.drawing.screen import Screen
from rfly_viewer.drawing.terrain_levels import (
    HIDDEN_S,
    MAX_PATCHES,
    RENEW_S,
    ROOT,
    Patch,
    PatchFile,
    PatchMaker,
    TerrainLevels,
    side_px,
)
from rfly_viewer.drawing.terrain_mesh import coloured_glb
from rfly_viewer.scene.scene_state import flat_ground

pytestmark = pytest.mark.needs("viser", "rasterio")

SIDE = 12_800.0


@pytest.fixture(scope="module")
def rough():
    """Return a map of rough ground, 12.8 km wide, with its first sample in the south-east."""
    rng = np.random.default_rng(6)
    heights = cv2.GaussianBlur(rng.normal(0.0, 400.0, (257, 257)), (0, 0), 1.5)
    return HeightMap(
        heights, origin_x=SIDE / 2, origin_y=-SIDE / 2, step_x=-SIDE / 256, step_y=SIDE / 256
    )


@pytest.fixture(scope="module")
def imagery(rough, tmp_path_factory):
    """Return a picture of it whose pixels are 6.4 m wide: red is its column, green its row."""
    path = tmp_path_factory.mktemp("photo") / "photo.png"
    place = np.arange(2000) // 8
    picture = np.zeros((2000, 2000, 3), np.uint8)
    picture[..., 2] = place
    picture[..., 1] = place[:, None]
    cv2.imwrite(str(path), picture)
    half = SIDE / 2
    table = f"column,row,x,y\n0,0,-{half},{half}\n2000,0,{half},{half}\n0,2000,-{half},-{half}\n"
    path.with_suffix(".csv").write_text(table)
    return Imagery.open(path, rough)


def test_patches_and_how_large_they_look():
    """Children share the sides of their parent; sizes by hand: 100 m at 50 m, 500 px of focus."""
    bounds = (-100.0, 100.0, 0.0, 400.0)
    patch = Patch(2, 1, 3)
    assert patch.region(bounds) == (-50.0, 0.0, 300.0, 400.0)
    assert Patch(3, 2, 6) in patch.children
    assert {child.parent for child in patch.children} == {patch}
    west, east, south, north = zip(*(each.region(bounds) for each in patch.children), strict=True)
    assert (min(west), max(east), min(south), max(north)) == patch.region(bounds)
    assert side_px(patch.region(bounds), (-25.0, 350.0, 50.0), 500.0) == 1000.0
    assert side_px(patch.region(bounds), (-90.0, 270.0, 0.0), 500.0) == 1000.0


class Scene:
    """The part of viser's scene that the ground needs."""

    def __init__(self):
        self.nodes = {}

    def add_glb(self, name, data, visible, **options):
        assert name not in self.nodes
        self.nodes[name] = types.SimpleNamespace(
            visible=visible, remove=lambda: self.nodes.pop(name)
        )
        return self.nodes[name]


class Browser:
    """A browser whose camera looks down from a place."""

    def __init__(self, place):
        self.scene = Scene()
        self.atomic = contextlib.nullcontext
        self.camera = types.SimpleNamespace(
            position=np.array(place), wxyz=np.array((0.0, 1.0, 0.0, 0.0)), image_height=700, fov=0.9
        )

    def shown(self):
        """Return the patches that are seen."""
        return [
            Patch(*map(int, name.split("/")[2].removesuffix("_new").split("_")))
            for name, node in self.scene.nodes.items()
            if node.visible
        ]


@pytest.fixture
def levels(rough, imagery, monkeypatch):
    """Return the ground, whose patches are made at once and are empty."""
    monkeypatch.setattr(PatchMaker, "made", lambda self, patch: PatchFile(b"", is_whole=True))
    monkeypatch.setattr(PatchMaker, "want", make_at_once)
    return TerrainLevels(Scene(), rough, imagery, lit=False)


def make_at_once(maker, patches):
    """Make the patches that are wanted here, instead of in a thread."""
    maker._made.update({patch: maker.made(patch) for patch in patches if patch not in maker._made})


def check_cover(patches):
    """Check that patches cover the map once, as cells of the finest level."""
    finest = max(patch.level for patch in patches)
    cells = np.zeros((2**finest, 2**finest), int)
    for level, i, j in patches:
        side = 2 ** (finest - level)
        cells[i * side : (i + 1) * side, j * side : (j + 1) * side] += 1
    assert (cells == 1).all()


def test_a_moving_camera_always_sees_the_whole_map_once(levels, rough):
    """Patches fit at each step of a flight down, across and up again; near ones end fine."""
    browser = Browser((0.0, 0.0, 20_000.0))
    for now in (-2 * HIDDEN_S, -HIDDEN_S, 0.0):
        levels.update({1: browser}, now, rough)  # makes, sends and shows the whole map
    way = [(0.0, 0.0, 20_000.0), (900.0, 300.0, 1500.0), (-5000.0, 4000.0, 800.0), (0, 0, 60_000.0)]
    now = 0.0
    for goal in way:
        start = np.array(browser.camera.position)
        for share in np.linspace(0.0, 1.0, 20):
            browser.camera.position = start + share * (np.array(goal) - start)
            now += 0.1
            levels.update({1: browser}, now, flat_ground())
            check_cover(browser.shown())
            assert len(browser.shown()) <= MAX_PATCHES
        for _ in range(20):
            now += HIDDEN_S / 2
            levels.update({1: browser}, now, flat_ground())
            check_cover(browser.shown())
        assert levels.is_settled
        assert sum(not node.visible for node in browser.scene.nodes.values()) == 0

    assert browser.shown() == [ROOT]


def test_near_ground_is_as_fine_as_the_picture_and_far_ground_is_not(levels):
    """4 x 4 patches of 512 pixels have all of the picture, but the samples need 8 x 8."""
    assert levels.maker.finest == 3
    browser = Browser((-6000.0, -6000.0, 1000.0))
    for step in range(30):
        levels.update({1: browser}, step * HIDDEN_S, flat_ground())
    level = {patch.region((0.0, 1.0, 0.0, 1.0))[::2]: patch.level for patch in browser.shown()}
    assert level[0.0, 0.0] == 3
    assert max(place for place in level if level[place] < 3) > (0.4, 0.4)


def test_the_first_picture_is_there_before_a_browser_comes(levels):
    """The ground below comes with a page's first messages, and the map unseen when it connects."""
    levels.update({}, 0.0, flat_ground())
    levels.update({}, 0.1, flat_ground())
    [(name, below)] = levels._scene.nodes.items()
    assert (name, below.visible) == ("/terrain/below", True)

    browser = Browser((0.0, 0.0, 20_000.0))
    levels.update({1: browser}, 0.2, flat_ground())
    assert [node.visible for node in browser.scene.nodes.values()] == [False]
    assert not levels.is_settled
    levels.update({1: browser}, 0.2 + HIDDEN_S, flat_ground())
    assert browser.shown() == [ROOT]
    levels.remove()
    assert levels._scene.nodes == {}


def brightness(file):
    """Return the colour factor of a binary glTF's material."""
    size = int.from_bytes(file.data[12:16], "little")
    [material] = json.loads(file.data[20 : 20 + size])["materials"]
    return material["pbrMetallicRoughness"]["baseColorFactor"][0]


@pytest.mark.parametrize(("lit", "sunny"), [(True, 0.62), (False, 1.0)])
def test_the_ground_below_is_as_dark_as_the_weather(rough, imagery, monkeypatch, lit, sunny):
    """A twilight of a fifth dims it, under the next picture too; nothing does where none is lit."""
    from rfly_viewer.drawing.terrain_layer import TerrainLayer

    monkeypatch.setattr(PatchMaker, "want", make_at_once)
    server = types.SimpleNamespace(scene=Scene(), get_clients=dict)
    server.scene.configure_fog = lambda near, far, color: None
    layer = TerrainLayer(server, 10_000, lit)

    def shown():
        for now in (0.0, 1.0):
            layer.update(now, rough)
        assert list(server.scene.nodes) == ["/terrain/below"]
        return brightness(layer._levels._below.file)

    layer.show(rough, imagery)
    assert shown() == pytest.approx(sunny)
    dark = 0.2 * sunny if lit else sunny
    layer.dim(0.2)
    assert shown() == pytest.approx(dark)
    layer.show(rough, copy.copy(imagery))
    assert shown() == pytest.approx(dark)
    layer.dim(1.0)
    assert shown() == pytest.approx(sunny)


def test_the_ground_below_stays_until_that_in_another_light_is_made(rough, imagery, monkeypatch):
    """And a message that leaves the light as it is makes nothing anew: maps are read for that."""
    monkeypatch.setattr(PatchMaker, "want", make_at_once)
    levels = TerrainLevels(Scene(), rough, imagery, lit=True)
    for now in (0.0, 0.1):
        levels.update({}, now, rough)
    before = levels._below
    levels.dim(1.0)
    levels.update({}, 0.2, rough)
    levels.update({}, 0.3, rough)
    assert levels._below is before

    levels.dim(0.2)
    assert levels._scene.nodes["/terrain/below"] is before.handle
    levels.update({}, 0.4, rough)
    assert levels._scene.nodes["/terrain/below"] is before.handle
    levels.update({}, 0.5, rough)
    assert brightness(levels._below.file) == pytest.approx(0.2 * 0.62)
    assert levels._scene.nodes["/terrain/below"] is levels._below.handle


def test_light_that_changes_while_the_ground_below_is_made_counts(rough, imagery, monkeypatch):
    """The weather of a window often comes within the second in which its first ground is made."""
    levels = TerrainLevels(Scene(), rough, imagery, lit=True)
    coming = [0.2]

    def coloured(mesh, brightness):
        if coming:
            levels.dim(coming.pop())
        return coloured_glb(mesh, brightness)

    def make_in_turn(maker, patches):
        maker._wanted = list(patches)
        while maker._wanted:
            maker._make_one()

    monkeypatch.setattr(terrain_levels, "coloured_glb", coloured)
    monkeypatch.setattr(PatchMaker, "want", make_in_turn)
    for now in (0.0, 0.1, 0.2):
        levels.update({}, now, rough)
    assert brightness(levels._below.file) == pytest.approx(0.2 * 0.62)


def test_patches_behind_the_camera_stay_coarse(levels):
    """A camera that looks east from the middle, at the height of a tree."""
    browser = Browser((200.0, 0.0, 10.0))
    east = np.array([0.5, 0.5, 0.5, 0.5])  # x right is south, y down, z ahead is east
    browser.camera.wxyz = east * (1.0, -1.0, 1.0, -1.0)
    screen = Screen.of(browser.camera)
    assert screen.pixels(np.array([[300.0, 0.0, 10.0]]))[1][0] == pytest.approx(100.0)
    for step in range(30):
        levels.update({1: browser}, step * HIDDEN_S, flat_ground())
    half = 2 ** np.arange(17) // 2
    ahead = max(patch.level for patch in browser.shown() if patch.i >= half[patch.level])
    behind = [patch for patch in browser.shown() if patch.level and patch.i < half[patch.level]]
    assert ahead == levels.maker.finest
    assert {patch.level for patch in behind} == {1}
    check_cover(browser.shown())


def test_new_patches_wait_unseen_for_the_browser(levels):
    """The coarse ground goes when the four that replace it were there for HIDDEN_S, not before."""
    browser = Browser((0.0, 0.0, 3000.0))
    for now in (-2.0, -1.0, 0.0, 0.5, 1.0):
        levels.update({1: browser}, now, flat_ground())
    assert browser.shown() == [ROOT]
    assert len(browser.scene.nodes) == 5
    levels.update({1: browser}, 1.0 + 0.99 * HIDDEN_S, flat_ground())
    assert browser.shown() == [ROOT]
    levels.update({1: browser}, 1.0 + HIDDEN_S, flat_ground())
    assert sorted(browser.shown()) == sorted(ROOT.children)
    levels.remove()
    assert browser.scene.nodes == {}


@pytest.mark.parametrize("levels_apart", [1, 2, 3])
def test_walls_close_the_cracks_between_levels(rough, imagery, levels_apart):
    """Along a rim of two levels, the higher ground's wall reaches down to the lower ground."""
    maker = PatchMaker(rough, imagery, lit=False)
    black = np.zeros((2, 2, 3), np.uint8)
    level = 3
    coarse = Patch(level - levels_apart, 0, 0)
    side = 2**levels_apart
    for number in range(side):
        fine = Patch(level, side, number)
        rims = []
        for patch, at_west in ((coarse, False), (fine, True)):
            region = patch.region(rough.bounds)
            mesh = maker.mesh(region, black)
            x = region[0] if at_west else region[1]
            rim = mesh.vertices[np.isclose(mesh.vertices[:, 0], x, atol=0.01)]
            y = np.unique(rim[:, 1])
            of_y = [rim[rim[:, 1] == place, 2] for place in y]
            rims.append((y, [max(z) for z in of_y], [min(z) for z in of_y]))
        y = np.linspace(rims[1][0][0], rims[1][0][-1], 500)
        (high_1, low_1), (high_2, low_2) = (
            (np.interp(y, places, upper), np.interp(y, places, lower))
            for places, upper, lower in rims
        )
        assert np.abs(high_1 - high_2).max() > 1.0, "the rims should differ"
        assert (np.where(high_1 > high_2, low_1 - high_2, low_2 - high_1) < 0.0).all()


def test_walls_bend_no_normals_of_the_ground(imagery):
    """A browser works out normals anew from the faces: those of a plane are the plane's."""
    plane = HeightMap(
        0.3 * np.mgrid[0:65, 0:65][0] * SIDE / 64,
        origin_x=-SIDE / 2,
        origin_y=-SIDE / 2,
        step_x=SIDE / 64,
        step_y=SIDE / 64,
    )
    picture = np.zeros((8, 8, 3), np.uint8)
    mesh = PatchMaker(plane, imagery, lit=True).mesh(ROOT.region(plane.bounds), picture)
    corners = mesh.vertices[mesh.faces]
    facing = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = np.zeros_like(mesh.vertices)
    for corner in mesh.faces.T:
        np.add.at(normals, corner, facing)
    ground = normals[: (terrain_levels.QUADS + 1) ** 2]
    ground /= np.linalg.norm(ground, axis=1, keepdims=True)

    assert ground == pytest.approx(
        np.tile([-0.3, 0.0, 1.0] / np.sqrt(1.09), (len(ground), 1)), abs=1e-4
    )


def test_the_ground_below_is_below(rough, imagery):
    """It is lower than each sample, also between its own points."""
    mesh = PatchMaker(rough, imagery, lit=False).below()
    side = terrain_levels.BELOW_QUADS + 1
    corners = mesh.vertices[: side**2].astype(float)
    below = HeightMap(
        corners[:, 2].reshape(side, side).T,
        origin_x=-SIDE / 2,
        origin_y=-SIDE / 2,
        step_x=SIDE / (side - 1),
        step_y=SIDE / (side - 1),
    )
    x, y = np.meshgrid(np.linspace(-6400, 6400, 257), np.linspace(-6400, 6400, 257))
    assert (below.altitude(x, y) < rough.altitude(x, y)).all()


def test_patches_show_their_part_of_the_picture(rough, imagery):
    """Red is the place from the west, green that from the north, 0 to 249."""
    maker = PatchMaker(rough, imagery, lit=False)
    region = Patch(3, 5, 2).region(rough.bounds)
    picture = maker._picture(region).astype(float)
    share = (np.arange(512) + 0.5) / 512
    assert np.abs(picture[100, :, 0] - (250 * (5 + share) / 8 - 0.5)).max() < 1.1
    assert np.abs(picture[:, 100, 1] - (250 * (6 - 1 + share) / 8 - 0.5)).max() < 1.1


def test_the_grain_of_neighbours_fits(imagery):
    """Pixels of level ground of one colour differ over a border no more than inside a patch."""
    bumps = HeightMap(
        np.pad([[1.0]], 100), origin_x=0, origin_y=0, step_x=10, step_y=10
    )  # a needle, so that heights have tints
    maker = PatchMaker(bumps, None, lit=False)
    west, east = (maker._picture(Patch(3, i, 1).region(bumps.bounds)).astype(float) for i in (4, 5))
    inside = np.abs(np.diff(west, axis=1)).mean()
    assert inside > 1.0
    assert np.abs(west[:, -1] - east[:, 0]).mean() < 1.5 * inside


def test_closing_waits_for_the_patch_that_is_being_made(rough, monkeypatch):
    """A thread that is left in C++ when the interpreter ends aborts the process."""
    maker = PatchMaker(rough, None, lit=False)
    begun = threading.Event()
    may_end = threading.Event()

    def made(patch):
        begun.set()
        may_end.wait()
        return PatchFile(b"", is_whole=True)

    monkeypatch.setattr(maker, "made", made)
    maker.want([ROOT, Patch(1, 0, 0)])
    begun.wait()
    maker.close()  # waits for nothing, as when the map changes
    assert maker._thread.is_alive()
    may_end.set()
    maker.close(wait_s=300.0)
    assert not maker._thread.is_alive()
    assert maker.file(Patch(1, 0, 0)) is None


def test_closing_waits_for_the_ground_of_a_map_before_too(rough, imagery, monkeypatch):
    """A map that is changed leaves its thread at work, on a slow server for seconds."""
    from rfly_viewer.drawing.terrain_layer import TerrainLayer

    begun = threading.Event()
    may_end = threading.Event()

    def made(maker, patch):
        begun.set()
        may_end.wait()
        return PatchFile(b"", is_whole=True)

    monkeypatch.setattr(PatchMaker, "made", made)
    server = types.SimpleNamespace(scene=Scene(), get_clients=dict)
    server.scene.configure_fog = lambda near, far, color: None
    layer = TerrainLayer(server, 10_000, lit=False)
    layer.show(rough, imagery)
    layer.update(0.0, rough)
    begun.wait()
    thread = layer._levels.maker._thread
    join = thread.join

    def joined(timeout):
        if timeout:
            may_end.set()
        join(timeout)

    monkeypatch.setattr(thread, "join", joined)
    layer.show(rough, copy.copy(imagery))
    assert thread.is_alive()
    layer.close(wait_s=300.0)
    is_left = thread.is_alive()
    may_end.set()
    assert not is_left


def test_a_damaged_picture_leaves_the_colours_of_heights(rough, imagery, monkeypatch):
    from rfly_common.errors import TerrainFormatError

    def fail(*region):
        raise TerrainFormatError("photo.tif: a damaged tile")

    maker = PatchMaker(rough, imagery, lit=False)
    monkeypatch.setattr(imagery, "texture", fail)
    assert maker._picture(rough.bounds).std() > 5
    assert not maker.made(ROOT).is_whole
    assert maker.problem == "photo.tif: a damaged tile"


def test_patches_that_lack_a_part_are_made_again_until_they_are_whole(rough, imagery, monkeypatch):
    """One patch is read each RENEW_S while a disk is away; once it is back, all are at once."""
    from rfly_common.errors import TerrainFormatError

    monkeypatch.setattr(PatchMaker, "want", make_at_once)
    monkeypatch.setattr(terrain_levels, "QUADS", 8)
    monkeypatch.setattr(terrain_levels, "PIXELS", 32)
    is_away = True
    texture = imagery.texture
    made = []

    def read(region, *size):
        made.append(region)
        if is_away:
            raise TerrainFormatError("photo.tif: not there")
        return texture(region, *size)

    monkeypatch.setattr(imagery, "texture", read)
    levels = TerrainLevels(Scene(), rough, imagery, lit=False)
    browser = Browser((0.0, 0.0, 9000.0))
    told = []

    def update(now):
        levels.update({1: browser}, now, flat_ground())
        told.append(levels.take_problem())
        if levels._browsers[1].shown:
            check_cover(browser.shown())

    for step in range(6):
        update(step * HIDDEN_S)
    assert sorted(browser.shown()) == sorted(ROOT.children)
    begun = len(made)
    for step in range(60):
        update(10.0 + step * RENEW_S / 4)
    assert 14 <= len(made) - begun <= 16
    assert len(set(made[-5:])) == 5, "in turn: four patches and the ground below"
    assert [text for text in told if text] == ["photo.tif: not there"]
    assert levels.is_settled

    is_away = False
    for step in range(int(RENEW_S / HIDDEN_S) + 12):
        update(100.0 + step * HIDDEN_S)
    shown = levels._browsers[1].shown
    assert all(drawn.file.is_whole for drawn in (*shown.values(), levels._below))
    assert sorted(browser.shown()) == sorted(ROOT.children)
    assert len(browser.scene.nodes) == 4
    assert len(levels._scene.nodes) == 1
    assert levels.is_settled
    begun = len(made)
    for step in range(20):
        update(200.0 + step * RENEW_S)
    assert len(made) == begun
