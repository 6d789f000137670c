# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A picture of four colours, draped on the ground of relief plots and of RViz's mesh."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.imagery.imagery import Imagery

pytestmark = pytest.mark.needs("rasterio")

RED = (200, 0, 0)
GREEN = (0, 180, 0)
BLUE = (0, 0, 220)
SAND = (200, 200, 0)


@pytest.fixture
def hill():
    """Return a map of 400 m x 200 m, its first sample in the north-east."""
    rows, columns = np.mgrid[0:41, 0:21]
    heights = 0.2 * rows + 3.0 * np.sin(columns / 4)
    return HeightMap(heights, origin_x=200.0, origin_y=100.0, step_x=-10.0, step_y=-10.0)


@pytest.fixture
def quarters(tmp_path, hill):
    """Return imagery: red in the north-west, green north-east, blue south-west, sand south-east.

    It ends 50 m before the western edge of the map.
    """
    picture = np.array([[RED, GREEN], [BLUE, SAND]], np.uint8).repeat(50, 0).repeat(50, 1)
    cv2.imwrite(str(tmp_path / "photo.png"), picture[..., ::-1])
    (tmp_path / "photo.csv").write_text(
        "column,row,x,y\n0,0,-150,100\n100,100,150,-100\n100,0,150,100\n"
    )
    return Imagery.open(tmp_path / "photo.png", hill)


PLACES = {RED: (-70.0, 40.0), GREEN: (70.0, 40.0), BLUE: (-70.0, -40.0), SAND: (70.0, -40.0)}


def test_relief_plots_show_the_picture(hill, quarters):
    """Each colour is drawn where it lies, also in a region; beyond the picture is the relief."""
    from matplotlib.figure import Figure

    from rfly_terrain.plots.relief import draw_relief

    for region in (None, (-180.0, 100.0, -60.0, 90.0)):
        axes = Figure().add_subplot()
        draw_relief(axes, hill, region=region, imagery=quarters)
        _, photo = axes.images
        assert photo.origin == "upper"
        left, right, bottom, top = photo.get_extent()
        assert (left, right, bottom, top) == (region or hill.bounds)
        shown = np.asarray(photo.get_array())
        for colour, (x, y) in PLACES.items():
            row = int((top - y) / (top - bottom) * shown.shape[0])
            column = int((x - left) / (right - left) * shown.shape[1])
            assert tuple(shown[row, column]) == (*colour, 255)
        assert (shown[:, 2] == 0).all()


def test_the_mesh_of_rviz_has_the_colours_of_the_picture(hill, quarters):
    """Corners have them, those beyond the picture the colours of heights.

    The corners of the border have the mean of their two sides.
    """
    from rfly_terrain.exports.ground_triangles import terrain_triangles

    triangles = terrain_triangles(hill, 2 * 40 * 20, quarters)
    plain = terrain_triangles(hill, 2 * 40 * 20)
    points = triangles.points.reshape(-1, 3)
    colours = triangles.colours.reshape(-1, 4)
    assert np.array_equal(triangles.points, plain.points)
    assert (colours[:, 3] == 1.0).all()
    for colour, (x, y) in PLACES.items():
        [at] = np.flatnonzero((points[:, 0] == x) & (points[:, 1] == y))[:1]
        assert colours[at, :3] * 255 == pytest.approx(colour, abs=1.0)
    [at] = np.flatnonzero((points[:, 0] == 0.0) & (points[:, 1] == 40.0))[:1]
    assert colours[at, :3] * 255 == pytest.approx(np.add(RED, GREEN) / 2, abs=6.0)
    beyond = np.abs(points[:, 0]) > 160.0
    assert beyond.any()
    assert np.array_equal(colours[beyond], plain.colours.reshape(-1, 4)[beyond])


def test_up_gives_the_picture_to_the_terrain_node_and_the_window():
    from rfly_bringup.nodes.amphibious_set import amphibious_nodes
    from rfly_bringup.runner.up import _viewer_command

    nodes = amphibious_nodes({"imagery": "photo.tif"})
    [terrain] = [node for node in nodes if node.executable == "terrain_node"]
    assert terrain.parameters["imagery"] == "photo.tif"
    command = _viewer_command(nodes)
    assert command[command.index("--imagery") + 1] == "photo.tif"
    assert "--imagery" not in _viewer_command(amphibious_nodes({}))


def test_cameras_see_the_picture(hill, quarters):
    """North is up on an image from 300 m above; beyond the picture is the ground.

    Light and shade change how bright a colour is, not its parts.
    """
    from rfly_sensing.cameras import CameraPose, ColorCamera
    from rfly_sensing.range_sensor_parameters import ColorCameraParameters
    from rfly_sensing.scene_rays import SceneRays

    camera = ColorCamera(
        ColorCameraParameters(width=160, height=120, horizontal_fov=1.2, vertical_fov=0.94),
        noise=False,
    )
    # forward is down, left is west, up is north
    down = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, 1.0], [-1.0, 0.0, 0.0]])
    pose = CameraPose(np.array([0.0, 0.0, 300.0]), down)
    seen = camera.image(0, pose, SceneRays(hill, imagery=quarters)).color.astype(float)
    plain = camera.image(0, pose, SceneRays(hill)).color.astype(float)
    for colour, (x, y) in PLACES.items():
        away = 300.0 - hill.altitude(x, y)
        column = round(camera.pinhole.center_x + x / away * camera.pinhole.focal_x)
        row = round(camera.pinhole.center_y - y / away * camera.pinhole.focal_y)
        pixel = seen[row, column]
        assert pixel.max() > 60
        assert pixel / pixel.max() == pytest.approx(np.array(colour) / max(colour), abs=0.02)
    assert np.array_equal(seen[60, [1, 158]], plain[60, [1, 158]])


def test_no_points_have_no_colours(quarters):
    """A camera that looks into the sky asks for none."""
    assert quarters.colours([], []).shape == (0, 4)
    assert quarters.colours(np.empty((3, 0)), np.empty((3, 0))).shape == (3, 0, 4)


def test_a_tile_of_colours_that_failed_is_read_again(quarters, monkeypatch):
    """The reason is known until that tile can be read, whatever other tiles do meanwhile.

    It is forgotten 10 s after the last try, when the camera looks elsewhere. In the 5 s after a try
    the frames of a camera read nothing.
    """
    from rfly_common.errors import RflyError, TerrainFormatError

    read = quarters.texture
    is_away = True
    reads = 0

    def texture(region, *size):
        nonlocal reads
        reads += 1
        if is_away and region[0] < 0.0:
            raise TerrainFormatError("photo.tif: not there")
        return read(region, *size)

    now = 100.0
    monkeypatch.setattr(quarters, "texture", texture)
    monkeypatch.setattr(quarters, "_clock", lambda: now)
    far = 4000.0 * quarters.pixel
    assert quarters.problem == ""
    with pytest.raises(RflyError, match="not there"):
        quarters.colours(-far, 0.0)
    quarters.colours(far, 0.0)
    assert quarters.problem == "photo.tif: not there"
    now = 109.0
    assert quarters.problem == "photo.tif: not there"
    now = 111.0
    assert quarters.problem == ""
    with pytest.raises(RflyError, match="not there"):
        quarters.colours(-far, 0.0)
    assert quarters.problem == "photo.tif: not there"
    is_away = False
    before = reads
    for later in (111.1, 113.0, 115.9):
        now = later
        with pytest.raises(TerrainFormatError, match="not there"):
            quarters.colours(-far, 0.0)
    assert reads == before
    now = 116.0
    assert quarters.colours(-far, 0.0).shape == (4,)
    assert reads == before + 1
    assert quarters.problem == ""
    assert quarters.colours(-far, 0.0).shape == (4,)
