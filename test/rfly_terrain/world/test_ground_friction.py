# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Friction of the ground in world files: areas, a layer, errors, and back to YAML."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from matplotlib.figure import Figure

from rfly_common.errors import ConfigError
from rfly_terrain import HeightMap, load_world
from rfly_terrain.plots.overlays import draw_friction, write_world_picture
from rfly_terrain.world.world_file import parse_world, world_to_yaml

ICE = b"""\
version: 1
ground:
  friction: 0.9
  areas:
    - {friction: 0.1, corners: [[0, 0], [10, 0], [10, 4]]}
    - {friction: 0.3, corners: [[-5, 0], [0, 0], [0, 5], [-5, 5]]}
objects: []
"""


def test_areas_and_back():
    friction = parse_world(ICE, "w.yaml").friction
    assert (friction.elsewhere, friction.layer) == (0.9, None)
    assert [area.friction for area in friction.areas] == [0.1, 0.3]
    assert friction.areas[0].corners.tolist() == [[0, 0], [10, 0], [10, 4]]
    assert world_to_yaml(parse_world(ICE, "w.yaml")) == ICE.decode()

    # edges without the level ones: y from and to, x there, dx/dy, factor, last of its area
    assert friction.edges().tolist() == [
        [0.0, 4.0, 10.0, 0.0, 0.1, 0.0],
        [0.0, 4.0, 0.0, 2.5, 0.1, 1.0],
        [0.0, 5.0, 0.0, 0.0, 0.3, 0.0],
        [0.0, 5.0, -5.0, 0.0, 0.3, 1.0],
    ]


def test_a_layer_is_a_png_of_hundredths(tmp_path):
    (tmp_path / "w.yaml").write_text("version: 1\nground: {layer: ice.png}\nobjects: []\n")
    cv2.imwrite(str(tmp_path / "ice.png"), np.array([[30, 100, 0], [200, 5, 90]], np.uint8))
    friction = load_world(tmp_path / "w.yaml").friction
    assert friction.layer == pytest.approx(np.array([[0.3, 1.0, 0.0], [2.0, 0.05, 0.9]]))
    flat = HeightMap(np.zeros((2, 3)), origin_x=0, origin_y=0, step_x=1, step_y=1)
    assert friction.layer_on(flat) == pytest.approx([0.3, 1.0, 1.0, 2.0, 0.05, 0.9])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"friction: 0.9", b"friction: 0", r"w.yaml:3: ground.friction: 0"),
        (b"friction: 0.1", b"friction: 2.5", r"w.yaml:5: ground.areas\[0\].friction: 2.5"),
        (b", [10, 4]]", b"]", r"w.yaml:5: ground.areas\[0\].corners"),
        (b"[10, 4]", b"[20, 0]", r"w.yaml:5: ground.areas\[0\]: corners: .*with an area"),
        (b"areas:", b"layer: ../x.png\n  areas:", r"w.yaml:4: ground.layer: .*in the folder"),
        (b"areas:", b"layer: no.png\n  areas:", r"w.yaml:4: ground.layer: 'no.png': No such file"),
        (b"areas:", b"layer: text.png\n  areas:", r"w.yaml:4: ground.layer: text.png: "),
        (b"areas:", b"layer: high.png\n  areas:", r"ground.layer: 'high.png': a pixel has 201"),
        (b"areas:", b"slip: 1\n  areas:", "slip"),
        (b"[0, 5], [-5, 5]", b"[0, 5], " + b"[-5, 5], " * 494 + b"[-5, 4]", r"w.yaml:.*501 corn"),
    ],
)
def test_what_is_wrong_is_named(old, new, words, tmp_path):
    (tmp_path / "text.png").write_text("no picture")
    cv2.imwrite(str(tmp_path / "high.png"), np.full((2, 2), 201, np.uint8))
    (tmp_path / "w.yaml").write_bytes(ICE.replace(old, new))
    with pytest.raises(ConfigError, match=words):
        load_world(tmp_path / "w.yaml")


def test_a_picture_shows_the_areas(tmp_path):
    world = parse_world(ICE, "w.yaml")
    axes = Figure().subplots()
    draw_friction(axes, world)
    assert [text.get_text() for text in axes.texts] == ["0.1", "0.3"]
    assert [patch.get_xy()[:-1].tolist() for patch in axes.patches] == [
        area.corners.tolist() for area in world.friction.areas
    ]

    flat = HeightMap(np.zeros((9, 9)), origin_x=-40, origin_y=-40, step_x=10, step_y=10)
    write_world_picture(world.on(flat), tmp_path / "ice.png")
    assert cv2.imread(str(tmp_path / "ice.png")) is not None
