# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Places in ENU, NED and frames that hang on them, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_common.errors import FrameError
from rfly_common.transform_buffer import FrameToWorld, Transform
from rfly_ue_bridge.objects.placement import place_in_enu, poses_in_frame

H = math.sqrt(0.5)


def turned_frame(axes, translation, quat_xyzw):
    return FrameToWorld(axes, Transform(np.array(translation), np.array(quat_xyzw)), is_world=False)


TURNED = turned_frame("enu", (100.0, 50.0, 7.0), (0.0, 0.0, H, H))
"""Quarter turn counter-clockwise about the vertical, so that its x points north.

Its origin is at (100, 50, 7).
"""


@pytest.mark.parametrize(
    ("frame", "asked", "expected"),
    [
        pytest.param(FrameToWorld("enu"), (3.0, 4.0, 0.5), (3.0, 4.0, 0.5), id="enu"),
        pytest.param(FrameToWorld("ned"), (3.0, 4.0, 0.5), (4.0, 3.0, math.pi / 2 - 0.5), id="ned"),
        pytest.param(TURNED, (10.0, 1.0, 0.25), (99.0, 60.0, math.pi / 2 + 0.25), id="turned"),
        pytest.param(
            turned_frame("ned", (5.0, 6.0, 0.0), (0.0, 0.0, 0.0, 1.0)),
            (1.0, 2.0, 0.0),
            (8.0, 6.0, math.pi / 2),
            id="in-ned",
        ),
    ],
)
def test_place_in_enu_and_back(frame, asked, expected):
    found = place_in_enu(*asked, frame, "site")
    assert (found["x"], found["y"], found["yaw"]) == pytest.approx(expected)
    position, orientation = poses_in_frame([[*expected[:2], 20.0]], [expected[2]], frame)
    assert position[0, :2] == pytest.approx(asked[:2])
    x, y, z, w = orientation[0]
    # the heading is the frame's first axis turned by the yaw that was asked for
    assert math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)) == pytest.approx(asked[2])


def test_heights_in_each_frame():
    for frame, z in (
        (FrameToWorld("enu"), 20.0),
        (FrameToWorld("ned"), -20.0),
        (TURNED, 13.0),
    ):
        assert poses_in_frame([[0.0, 0.0, 20.0]], [0.0], frame)[0][0, 2] == pytest.approx(z)


def test_heading_north_as_conventions_say():
    """FLU into ENU (0, 0, 0.7071, 0.7071), FLU into NED (1, 0, 0, 0)."""
    north = [math.pi / 2]
    assert poses_in_frame([[0, 0, 0]], north, FrameToWorld("enu"))[1][0] == pytest.approx(
        [0, 0, H, H]
    )
    assert poses_in_frame([[0, 0, 0]], north, FrameToWorld("ned"))[1][0] == pytest.approx(
        [1, 0, 0, 0]
    )


def test_a_tilted_frame_names_no_point_of_the_ground():
    tilted = turned_frame("enu", (0.0, 0.0, 0.0), (math.sin(0.1), 0.0, 0.0, math.cos(0.1)))
    with pytest.raises(FrameError, match="'gimbal': its z axis is not vertical"):
        place_in_enu(0.0, 0.0, 0.0, tilted, "gimbal")
