# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A picture of known colours on hilly ground, as a real Chromium draws it from above.

Where a place of the ground appears is worked out here, with a pinhole that looks straight down.
"""

from __future__ import annotations

import math
import time

import cv2
import numpy as np
import pytest
from chromium_harness import Chromium
from node_harness import wait_until

from rfly_terrain.files.writer import write_height_map
from rfly_terrain.height_map.height_map import HeightMap
from rfly_viewer.window.chromium import chromium_program

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs("viser", "rasterio"),
    pytest.mark.skipif(chromium_program() is None, reason="the program chromium is not installed"),
]

WIDTH = 480
HEIGHT = 360
FOCAL = HEIGHT / 2 / math.tan(math.radians(50.0) / 2)
HILL_M = 60.0
QUARTERS = np.array([[(200, 40, 40), (40, 160, 40)], [(40, 40, 210), (200, 190, 60)]], np.uint8)
"""Colours in the north-west, north-east, south-west and south-east."""

MORE_VIVID = 45
"""Change of a colour by the page's tone mapping, at most; some 30 are seen."""


@pytest.fixture
def viewer(tmp_path):
    """Return the window of a map of 2 km x 2 km with the picture."""
    from rfly_viewer.window.server import Settings, Viewer

    x, y = np.mgrid[-1000:1001:10, -1000:1001:10]
    heights = HILL_M / 2 * (1 + np.sin(x / 37.0) * np.sin(y / 53.0))
    hills = HeightMap(heights, origin_x=-1000, origin_y=-1000, step_x=10, step_y=10)
    write_height_map(hills, tmp_path / "hills")
    picture = QUARTERS.repeat(1024, 0).repeat(1024, 1)
    cv2.imwrite(str(tmp_path / "photo.png"), picture[..., ::-1])
    table = "column,row,x,y\n0,0,-1000,1000\n2048,0,1000,1000\n0,2048,-1000,-1000\n"
    (tmp_path / "photo.csv").write_text(table)
    viewer = Viewer(
        Settings(
            map=str(tmp_path / "hills.png"),
            imagery=tmp_path / "photo.png",
            http_port=0,
            udp_port=0,
            shadows=False,
        )
    )
    assert not viewer.state.log
    viewer.server.scene.configure_fog(0.0, 1.0, enabled=False)  # haze changes far colours
    yield viewer
    viewer.close()


def check_colours(picture, x, y, altitude):
    """Check each pixel that surely shows ground of one colour, from above that place."""
    # hills move what they show outwards by their share of the altitude
    row, column = np.mgrid[0:HEIGHT, 0:WIDTH] + 0.5
    scale = altitude / FOCAL
    east = x + (column - WIDTH / 2) * scale
    north = y - (row - HEIGHT / 2) * scale
    spare = 4 * scale + 2 * HILL_M / altitude * (np.abs([east - x, north - y]).max(0) + 50.0)
    is_sure = np.minimum(np.abs(east), np.abs(north)) > spare
    is_sure &= np.maximum(np.abs(east), np.abs(north)) < 1000 - spare
    wanted = QUARTERS[(north < 0).astype(int), (east > 0).astype(int)].astype(int)
    wrong = np.abs(picture.astype(int) - wanted).max(axis=2) > MORE_VIVID
    assert is_sure.mean() > 0.2
    assert not (wrong & is_sure).any()


@pytest.mark.exhaustive
def test_colours_from_far_and_near_without_a_hole(viewer):
    """First the coarse patch, then finer ones, all with the colours of the picture.

    It takes 10 s of a core. In make test test_terrain_levels reads the patches' own pictures.
    """
    from rfly_viewer.window.film import _ONLY_THE_SCENE

    with Chromium(WIDTH, HEIGHT) as browser:
        browser.before_load(_ONLY_THE_SCENE)
        browser.open(viewer.address)
        for x, y, altitude in ((0.0, 0.0, 3000.0), (150.0, 120.0, 500.0)):

            def is_drawn(x=x, y=y, altitude=altitude):
                viewer.draw(time.monotonic())
                if not viewer.is_settled:
                    return False
                try:
                    check_colours(browser.picture(), x, y, altitude)
                except AssertionError:
                    return False
                return True

            wait_until(lambda: viewer.draw(time.monotonic()) or viewer.cameras.current(), "a page")
            viewer.state.run_command(f"RflyCameraPosAng {y} {x} {-altitude} 0 -90 0")
            wait_until(is_drawn, f"the colours from {altitude:g} m")
    assert max(patch.level for patch in viewer._terrain._levels._browsers[0].shown) > 1
