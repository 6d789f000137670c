# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The world for Gazebo, read back from its files by Gazebo's rules.

Its ground lies where the map's does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import cv2
import defusedxml.ElementTree
import numpy as np
import pytest

from rfly_common.errors import ConfigError
from rfly_terrain.exports import sdf
from rfly_terrain.exports.sdf import gazebo_heights, gazebo_surface, write_gazebo_world
from rfly_terrain.height_map.height_map import HeightMap


def hills(rows: int, columns: int, **grid: Any) -> HeightMap:
    rng = np.random.default_rng(5)
    r, c = np.mgrid[0:rows, 0:columns]
    z = (
        40 * np.sin(r / 9.0)
        + 25 * np.cos(c / 7.0 + r / 30.0)
        + rng.uniform(-3, 3, (rows, columns))
        - 12.0
    )
    return HeightMap(z, name="hills", **grid)


class Shown(NamedTuple):
    """A height map of an SDF file as Gazebo's renderer reads it.

    The renderer's parts are gz-common's ImageHeightmap and gz-rendering.
    """

    image: np.ndarray
    size: list[float]
    middle: list[float]

    def height(self, x: float, y: float) -> float:
        """Return the height between the four samples around, one at a time.

        Row 0 is in the north, and values of 65535 are at the top of <size>.
        """
        n = self.image.shape[0]
        column = (x - (self.middle[0] - self.size[0] / 2)) / self.size[0] * (n - 1)
        row = ((self.middle[1] + self.size[1] / 2) - y) / self.size[1] * (n - 1)
        i = min(int(row), n - 2)
        j = min(int(column), n - 2)
        a = row - i
        b = column - j
        value = (1 - a) * ((1 - b) * self.image[i, j] + b * self.image[i, j + 1]) + a * (
            (1 - b) * self.image[i + 1, j] + b * self.image[i + 1, j + 1]
        )
        return self.middle[2] + value / 65535 * self.size[2]


@pytest.fixture(autouse=True)
def small_textures(monkeypatch):
    """The pictures are not what most of these tests are about."""
    monkeypatch.setattr(sdf, "_TEXTURE_PIXELS", 256)


def numbers(element: Any) -> list[float]:
    return [float(word) for word in element.text.split()]


def contents(element: Any) -> list[tuple[str, Any, str]]:
    return [(e.tag, e.attrib, (e.text or "").strip()) for e in element.iter()]


def read(file: Path) -> tuple[Any, Shown]:
    root = defusedxml.ElementTree.parse(file).getroot()
    shape = root.find(".//visual/geometry/heightmap")
    image = cv2.imread(str(file.parent / shape.find("uri").text), cv2.IMREAD_UNCHANGED)
    assert image.dtype == np.uint16
    assert image.shape[0] == image.shape[1]
    assert bin(image.shape[0] - 1).count("1") == 1  # 2ⁿ + 1
    return root, Shown(image, numbers(shape.find("size")), numbers(shape.find("pos")))


def test_gazebos_ground_is_the_maps_where_both_have_the_same_samples(tmp_path):
    terrain = hills(129, 129, origin_x=-70.0, origin_y=33.0, step_x=1.5, step_y=2.5)
    files = write_gazebo_world(terrain, tmp_path / "w")
    root, shown = read(files.world)
    assert (root.tag, root.get("version")) == ("sdf", "1.9")
    half_a_count = (terrain.z_max - terrain.z_min) / 65535 / 2
    rng = np.random.default_rng(1)
    x_min, x_max, y_min, y_max = terrain.bounds
    for x, y in zip(rng.uniform(x_min, x_max, 300), rng.uniform(y_min, y_max, 300), strict=True):
        assert shown.height(x, y) == pytest.approx(terrain.altitude(x, y), abs=half_a_count + 1e-5)
    assert files.side == 129
    assert files.error <= half_a_count + 1e-5


@pytest.mark.parametrize(("step_x", "step_y"), [(4.0, 3.0), (-4.0, 3.0), (4.0, -3.0), (-4.0, -3.0)])
def test_other_samples_lie_on_the_maps_surface(tmp_path, step_x, step_y):
    terrain = hills(40, 61, origin_x=10.0, origin_y=-20.0, step_x=step_x, step_y=step_y)
    files = write_gazebo_world(terrain, tmp_path / "w")
    _, shown = read(files.world)
    half_a_count = shown.size[2] / 65535 / 2
    x_min, x_max, y_min, y_max = terrain.bounds

    # anywhere on the surface
    rng = np.random.default_rng(2)
    for i, j in rng.integers(0, 129, (200, 2)).tolist():
        x = x_min + (x_max - x_min) * i / 128
        y = y_max - (y_max - y_min) * j / 128
        assert shown.height(x, y) == pytest.approx(terrain.altitude(x, y), abs=half_a_count + 1e-4)

    # at the samples of the map
    worst = max(
        abs(
            shown.height(terrain.origin_x + r * step_x, terrain.origin_y + c * step_y)
            - terrain.heights[r, c]
        )
        for r in range(40)
        for c in range(61)
    )
    assert files.error == pytest.approx(worst, abs=1e-4)
    assert worst > 0.05  # a kink of the map between two samples is cut off, and that is reported


def test_a_peak_in_the_north_west_is_at_the_upper_left(tmp_path):
    """The peak at x -80, y 1500 is row 3, column 10.

    The map is x -100 … 156, y 1000 … 1512 m, 129 samples 2 and 4 m apart.
    """
    heights = np.full((129, 129), 7.0)
    heights[10, 125] = 7.0 + 91.0
    terrain = HeightMap(
        heights, origin_x=-100.0, origin_y=1000.0, step_x=2.0, step_y=4.0, name="peak"
    )
    _, shown = read(write_gazebo_world(terrain, tmp_path / "w").world)
    assert shown.size == [256.0, 512.0, 91.0]
    assert shown.middle == [28.0, 1256.0, 7.0]
    assert np.argwhere(shown.image).tolist() == [[3, 10]]
    assert shown.image[3, 10] == 65535


def test_collisions_lie_under_what_is_seen(tmp_path):
    """The collision's samples lie under the visual's.

    gz-physics: n samples <size>/n apart around the collision's pose, z from 0; the visual:
    <size>/(n - 1) around <pos>.
    """
    terrain = hills(129, 129, origin_x=-70.0, origin_y=33.0, step_x=1.5, step_y=2.5)
    root, shown = read(write_gazebo_world(terrain, tmp_path / "w").world)

    collision = root.find(".//collision")
    assert collision.find("geometry/heightmap/pos") is None  # gz-sim's physics does not read it
    pose = numbers(collision.find("pose"))
    size = numbers(collision.find("geometry/heightmap/size"))
    assert pose == [*shown.middle, 0.0, 0.0, 0.0]

    for axis, (start, step) in enumerate(((-70.0, 1.5), (33.0, 2.5))):
        for i in (0, 1, 64, 128):
            assert pose[axis] + (i - 64) * size[axis] / 129 == pytest.approx(
                start + i * step, abs=1e-8
            )

    assert size[2] == shown.size[2]
    assert (
        collision.find("geometry/heightmap/uri").text
        == root.find(".//visual/geometry/heightmap/uri").text
    )


def test_level_ground(tmp_path):
    terrain = HeightMap(np.full((3, 5), -4.25), origin_x=0, origin_y=0, step_x=10, step_y=10)
    _, shown = read(write_gazebo_world(terrain, tmp_path / "flat").world)
    assert shown.size == [20.0, 40.0, 1.0]
    assert {shown.height(x, y) for x, y in ((0.0, 0.0), (20.0, 40.0), (3.3, 12.0))} == {-4.25}


def test_the_geodetic_origin(tmp_path):
    grid = {"origin_x": 0, "origin_y": 0, "step_x": 1, "step_y": 1}
    here = HeightMap(np.eye(4), geo_origin=(46.55, -7.98, 568.25), name="here", **grid)
    root, _ = read(write_gazebo_world(here, tmp_path / "here").world)

    place = root.find("world/spherical_coordinates")
    assert {child.tag: child.text for child in place} == {
        "surface_model": "EARTH_WGS84",
        "world_frame_orientation": "ENU",
        "latitude_deg": "46.55",
        "longitude_deg": "-7.98",
        "elevation": "568.25",
        "heading_deg": "0",
    }

    # without an origin
    nowhere = HeightMap(np.eye(4), name="nowhere", **grid)
    root, _ = read(write_gazebo_world(nowhere, tmp_path / "nowhere").world)
    assert root.find("world/spherical_coordinates") is None


def test_the_model_is_that_of_the_world_and_its_files_are_there(tmp_path):
    terrain = hills(20, 20, origin_x=0, origin_y=0, step_x=10, step_y=10)
    folder = write_gazebo_world(terrain, tmp_path / "w").world.parent
    world, _ = read(folder / "world.sdf")
    model, _ = read(folder / "model.sdf")
    assert contents(model.find("model")) == contents(world.find("world/model"))

    config = defusedxml.ElementTree.parse(folder / "model.config").getroot()
    assert (
        config.find("name").text,
        config.find("sdf").text,
        config.find("sdf").get("version"),
    ) == (
        "hills",
        "model.sdf",
        "1.9",
    )

    for key in ("uri", "texture/diffuse", "texture/normal"):
        assert (folder / model.find(f".//heightmap/{key}").text).stat().st_size > 0
    normal = cv2.imread(str(folder / model.find(".//texture/normal").text), cv2.IMREAD_UNCHANGED)
    assert normal[..., ::-1].reshape(-1, 3).tolist() == [[128, 128, 255]] * 256


def test_the_texture_of_an_oblong_map_keeps_its_proportions(tmp_path):
    """The texture of a map twice as long east as north fills the upper half of its square picture.

    The snow of the peak is where the peak is.
    """
    heights = np.zeros((81, 41))
    heights[20, 30] = 50.0  # a quarter east, three quarters north
    terrain = HeightMap(heights, origin_x=0, origin_y=0, step_x=5, step_y=5, name="oblong")
    root, _ = read(write_gazebo_world(terrain, tmp_path / "w").world)
    texture = root.find(".//texture")
    assert numbers(texture.find("size")) == [400.0]
    picture = cv2.imread(
        str(tmp_path / "w" / texture.find("diffuse").text), cv2.IMREAD_UNCHANGED
    ).astype(int)
    assert picture.shape == (256, 256, 3)
    rows, columns = np.nonzero(np.abs(picture - picture[0, 0]).max(axis=2) > 20)
    assert columns.mean() == pytest.approx(256 * 0.25, abs=3)
    assert rows.mean() == pytest.approx(128 * 0.25, abs=3)


def test_what_cannot_be_written_is_said(tmp_path):
    terrain = hills(20, 20, origin_x=0, origin_y=0, step_x=10, step_y=10)
    with pytest.raises(
        ConfigError, match=r"256 samples on a side: Gazebo takes 2ⁿ \+ 1, one of 129, 257"
    ):
        gazebo_heights(terrain, 256)
    with pytest.raises(ConfigError, match="a folder that exists"):
        write_gazebo_world(terrain, tmp_path / "no" / "where")
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="file: expected a folder"):
        write_gazebo_world(terrain, tmp_path / "file")
    write_gazebo_world(terrain, tmp_path / "w", side=257)
    with pytest.raises(FileExistsError, match=r"world\.sdf exists"):
        write_gazebo_world(terrain, tmp_path / "w")
    assert write_gazebo_world(terrain, tmp_path / "w", overwrite=True).side == 129


def test_the_side_follows_the_map():
    grid = {"origin_x": 0.0, "origin_y": 0.0, "step_x": 1.0, "step_y": 1.0}
    sides = [
        len(gazebo_heights(HeightMap(np.zeros(shape), **grid)).pixels)
        for shape in ((2, 129), (130, 2), (5000, 2))
    ]
    assert sides == [129, 257, 4097]


def test_the_surface_as_a_height_map():
    terrain = hills(129, 129, origin_x=-70.0, origin_y=33.0, step_x=1.5, step_y=2.5)
    surface = gazebo_surface(gazebo_heights(terrain))
    assert surface.bounds == pytest.approx(terrain.bounds)
    np.testing.assert_allclose(
        surface.heights, terrain.heights, atol=1.1 * (terrain.z_max - terrain.z_min) / 65535 / 2
    )
