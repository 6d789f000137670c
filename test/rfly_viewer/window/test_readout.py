# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compass, scale bar and the followed vehicle's state, with browsers that only remember."""

from __future__ import annotations

import contextlib
import types

import numpy as np
import pytest
from optional_parts import late_module

from rfly_terrain.height_map.height_map import HeightMap
from rfly_viewer.scene.vehicle_table import WorldPoses

pytestmark = pytest.mark.needs("viser")
readout = late_module("rfly_viewer.window.readouts")

# 10 m high everywhere
PLATEAU = HeightMap(
    [[10.0, 10.0], [10.0, 10.0]],
    origin_x=-500,
    origin_y=-500,
    step_x=1000,
    step_y=1000,
    name="Plateau",
)
DOWN_NORTH_ON_TOP = (0.0, 1.0, 0.0, 0.0)
"""Quaternion wxyz of optical axes (x right, y down, z forward) in ENU: half a turn about east."""


def browser(height_m, wxyz=DOWN_NORTH_ON_TOP):
    """Return a camera at the origin and a panel that keeps its text.

    The camera has 90 degrees over 400 pixels.
    """
    shown = types.SimpleNamespace(content="")
    panel = types.SimpleNamespace(
        add_tab=lambda label: contextlib.nullcontext(), float=lambda **place: None
    )
    at = np.array((0.0, 0.0, height_m))
    camera = types.SimpleNamespace(
        position=at, look_at=at - (0, 0, 1), wxyz=wxyz, fov=np.pi / 2, image_height=400
    )
    gui = types.SimpleNamespace(add_panel=lambda: panel, add_html=lambda text: shown)
    return types.SimpleNamespace(camera=camera, gui=gui), shown


def one_vehicle(position_ned, quat=(0.0, 0.0, 0.0, 1.0)):
    zero = np.zeros(1)
    return WorldPoses(
        np.array([7]),
        np.array([3]),
        np.array([0]),
        np.array([position_ned], float),
        np.array([quat]),
        np.ones((1, 3)),
        zero,
        zero,
        np.zeros(1, bool),
    )


def test_each_browser_reads_its_own_scale_and_all_the_followed_vehicle():
    """200 m over the ground 400 pixels are 400 m, so 100 m are 100 pixels; 20 m over it 10 m are.

    0.5 s later the vehicle is 3 m north and 4 m up: 10 m/s; its z of -34 m is 24 m over ground of
    10 m. A quarter turn about down heads east.
    """
    (far, far_text), (near, near_text) = browser(210.0), browser(30.0)

    readouts = readout.Readouts(types.SimpleNamespace(get_clients=lambda: {1: far, 2: near}))
    readouts.update(one_vehicle((0, 0, -30)), None, PLATEAU, 0.0)
    assert "200 m away" in far_text.content
    assert "width:100px" in far_text.content
    assert ">100 m<" in far_text.content
    assert "20 m away" in near_text.content
    assert "vehicle" not in near_text.content

    quarter = (0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5))
    readouts.update(one_vehicle((0, 0, -30)), 7, PLATEAU, 1.0)
    assert "vehicle 7: – m/s" in near_text.content
    readouts.update(one_vehicle((3, 0, -34), quarter), 7, PLATEAU, 1.5)
    for text in (far_text.content, near_text.content):
        assert (
            "vehicle 7: 10.0 m/s<br>24.0 m above ground<br>roll 0°, pitch 0°, heading 90°" in text
        )


def test_speed_is_that_of_the_last_second_and_of_one_vehicle():
    """10 m/s for 2 s, then still for 1 s; another vehicle starts anew."""
    meter = readout.SpeedMeter()
    for step in range(11):
        speed = meter.measure(1, np.array((2.0 * step, 0, 0)), 0.2 * step)
    assert speed == pytest.approx(10.0)
    for step in range(11, 17):
        speed = meter.measure(1, np.array((20.0, 0, 0)), 0.2 * step)
    assert speed == 0.0
    assert meter.measure(2, np.zeros(3), 4.0) is None


@pytest.mark.parametrize(
    ("forward", "up", "heading"),
    [
        pytest.param((1, 0, 0), (0, 0, 1), 90, id="level to the east"),
        pytest.param((0, 0, -1), (-1, 0, 0), 270, id="straight down with west on top"),
        pytest.param((0, 0, 1), (0, 1, 0), 180, id="straight up, bent back from the south"),
        pytest.param((0, -0.6, -0.8), (0, -0.8, 0.6), 180, id="down to the south"),
        pytest.param((0, -0.6, 0.8), (0, 0.8, 0.6), 180, id="up to the south"),
    ],
)
def test_the_compass(forward, up, heading):
    assert readout.heading_deg(np.array(forward, float), np.array(up, float)) == heading


@pytest.mark.parametrize(
    ("metres_per_pixel", "bar"),
    [
        (1.0, (100, 100)),
        (0.5, (50, 100)),
        (0.02, (2, 100)),
        (30.0, (2000, 200 / 3)),
    ],
)
def test_the_scale_bar_is_of_one_two_or_five(metres_per_pixel, bar):
    assert readout.scale_bar(metres_per_pixel) == pytest.approx(bar)
