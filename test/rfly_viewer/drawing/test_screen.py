# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicles that are large enough to be seen, and labels with room.

They are worked out with a camera that looks straight down.
"""

from __future__ import annotations

import dataclasses
import types

import numpy as np
import pytest
from optional_parts import late_module

from rfly_collision.shapes import vehicle_meshes as models
from rfly_viewer.drawing.screen import Screen, drawn_enlarged, labels_with_room
from rfly_viewer.scene.labels import Labels
from rfly_viewer.scene.vehicle_table import WorldPoses

DOWN_NORTH_ON_TOP = np.array((0.0, 1.0, 0.0, 0.0))
"""Quaternion wxyz of optical axes (x right, y down, z forward) in ENU: half a turn about east."""


def from_above(height_m):
    """200 pixels of focal length: at `height_m` m one pixel is height_m / 200 m."""
    return Screen(np.array((0.0, 0.0, height_m)), DOWN_NORTH_ON_TOP, 200.0)


def boxes(*positions_ned):
    """Return boxes of 1 m with the ids 1, 2, …."""
    n = len(positions_ned)
    level = np.tile((0.0, 0.0, 0.0, 1.0), (n, 1))
    return WorldPoses(
        np.arange(1, n + 1),
        np.full(n, 4711),
        np.full(n, models.MARKER),
        np.array(positions_ned, float),
        level,
        np.ones((n, 3)),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n, bool),
    )


def test_pixels_of_points():
    at, ahead = from_above(100.0).pixels(np.array([(10.0, 0.0, 0.0), (0.0, 25.0, 50.0)]))
    np.testing.assert_allclose(at, [(20.0, 0.0), (0.0, -100.0)], atol=1e-9)
    np.testing.assert_allclose(ahead, [100.0, 50.0])


def test_a_far_vehicle_keeps_its_pixels_and_a_near_one_its_size():
    """A far vehicle has 8 pixels, in steps of a quarter of a doubling, which are 19 %.

    From 1,000 m a pixel is 5 m, so 8 pixels are 40 boxes of 1 m. From 20 m a box has 10 pixels. The
    slider's size holds where it is larger, and the nearest browser counts for all.
    """
    poses = boxes((0, 0, 0), (0, 0, -980))
    far = drawn_enlarged(poses, [from_above(1000.0)], 1.0)
    assert 40.0 <= far[0] <= 40.0 * 2**0.25
    assert far[1] == 1.0
    assert drawn_enlarged(poses, [from_above(1000.0)], 50.0).tolist() == [50.0, 50.0]
    both = drawn_enlarged(poses, [from_above(1000.0), from_above(100.0)], 1.0)
    assert 4.0 <= both[0] <= 4.0 * 2**0.25
    assert drawn_enlarged(poses, [], 3.0).tolist() == [3.0, 3.0]


def test_the_nearest_of_labels_that_cover_each_other_is_shown():
    """Labels have room if they do not cover each other.

     10 m apart at 100 m are 20 pixels: too near for labels 24 wide, not for 18. The third is
    nearer, one is behind the camera.
    """
    feet = np.array(
        [
            (0.0, 0, 0),
            (10, 0, 0),
            (5, 0, 1),
            (0, 0, 200),
        ]
    )
    none = np.zeros(4, bool)
    assert labels_with_room(from_above(100.0), feet, np.full((4, 2), 24.0), none).tolist() == [
        False,
        False,
        True,
        False,
    ]
    assert labels_with_room(from_above(100.0), feet[:2], np.full((2, 2), 18.0), none[:2]).all()

    higher = np.array([(0.0, 0, 0), (0, 10, 0)])  # 20 pixels above each other
    assert labels_with_room(
        from_above(100.0), higher, np.tile((90.0, 18.0), (2, 1)), none[:2]
    ).all()


@pytest.mark.parametrize("before", [[True, False], [False, True]])
def test_of_two_at_one_distance_the_one_that_is_shown_stays(before):
    feet = np.array([(0.0, 0.0, 0.0), (1.0, 0.0, 0.0)])
    assert (
        labels_with_room(from_above(100.0), feet, np.full((2, 2), 24.0), np.array(before)).tolist()
        == before
    )


@pytest.mark.needs("viser")
def test_each_browser_shows_the_labels_that_it_has_room_for():
    """Each browser shows the labels that have room in it.

     Three are in a row 4 m apart: from 40 m (20 pixels a step) all bear their ids, from 400 m only
    one.
    """
    poses = boxes((0, -4, 0), (0, 0, 0), (0, 4, 0))
    cars = dataclasses.replace(poses, kind=np.full(3, models.CAR))
    assert labels_seen(cars, 40.0) == ["1", "2", "3"]
    assert len(labels_seen(cars, 400.0)) == 1


@pytest.mark.needs("viser")
def test_a_plain_marker_bears_the_number_or_name_of_its_type():
    """Type 4711 is in no list; 824 is the pillar, which has no model of its own here."""
    poses = boxes((0, -40, 0), (0, 0, 0), (0, 40, 0))
    poses.vehicle_type[1:] = 824, 50
    poses.kind[2] = models.CAR
    assert labels_seen(poses, 100.0, ids=False) == ["type 4711", "pillar"]
    assert labels_seen(poses, 100.0) == ["1\ntype 4711", "2\npillar", "3"]


def labels_seen(poses, height_m, ids=True):
    """Return the labels that a camera at this height has room for."""
    label_layer = late_module("rfly_viewer.drawing.label_layer")
    drawn = []

    def add_label(name, text, **options):
        drawn.append(types.SimpleNamespace(text=text, visible=True, **options))
        return drawn[-1]

    layer = label_layer.LabelLayer(types.SimpleNamespace(add_label=add_label))
    layer.show(poses, Labels(), ids, np.ones(len(poses)), from_above(height_m))
    return [label.text for label in drawn if label.visible]
