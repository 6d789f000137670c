# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Models as lit triangles: size, place on the ground, and which sides are bright."""

from __future__ import annotations

import numpy as np
import pytest

from rfly_collision.shapes.vehicle_meshes import (
    BOX_HIGH,
    BOX_LOW,
    CENTRE_HEIGHT,
    kind_of,
    model_triangles,
)

CAR = 100050
MULTIROTOR = 3
UNKNOWN = 90_000
TYPES = (CAR, MULTIROTOR, 30, 51, 60, 100, 150, 151, 152, 600003, UNKNOWN)


def normals(points):
    across = np.cross(points[:, 1] - points[:, 0], points[:, 2] - points[:, 0])
    return across / np.linalg.norm(across, axis=1, keepdims=True)


def test_an_unknown_type_is_a_box_lit_from_above():
    """The box is a cube of 1 m around its position, 12 white triangles, and marks ahead of it."""
    points, colours = model_triangles(UNKNOWN, (255, 255, 255))
    cube = points[:12]
    sides = normals(points[:12])
    assert (cube.min(axis=(0, 1)).tolist(), cube.max(axis=(0, 1)).tolist()) == (
        [-0.5] * 3,
        [0.5] * 3,
    )
    bright = {
        tuple(np.round(side).astype(int)): colour[0]
        for side, colour in zip(sides, colours[:12], strict=True)
    }
    # towards (0.25, 0.45, 0.86), whose length is 1.0023: 0.45 + 0.55 times the cosine, or 0.45
    # behind
    expected = {
        (0, 0, 1): 0.9219,
        (1, 0, 0): 0.5872,
        (0, 1, 0): 0.6969,
    }
    assert {side: bright[side] for side in expected} == pytest.approx(expected, abs=2e-3)
    assert all(
        bright[side] == pytest.approx(0.45)
        for side in (
            (0, 0, -1),
            (-1, 0, 0),
            (0, -1, 0),
        )
    )
    assert points[12:, :, 0].max() > 0.5


def test_a_car_has_its_own_colour_and_dark_wheels():
    points, colours = model_triangles(CAR, (255, 0, 0))
    own = (colours[:, 1] == 0) & (colours[:, 0] > 0.4)
    assert 20 <= own.sum() <= 40
    below = points[..., 2].max(axis=1) < 0.3
    middle = points[below].mean(axis=1)
    expected = {
        (1, 1),
        (1, -1),
        (-1, 1),
        (-1, -1),
    }
    assert {(np.sign(x), np.sign(y)) for x, y, _ in middle.tolist()} == expected
    assert (colours[below] < 0.65).all()


@pytest.mark.parametrize("vehicle_type", TYPES)
def test_triangles_are_within_the_shape_and_grow_from_the_ground(vehicle_type):
    """4 times the size: 4 times the box of the collision shape, on the same ground."""
    kind = int(kind_of(vehicle_type))
    for scale in (1.0, 4.0):
        points, colours = model_triangles(vehicle_type, (10, 200, 90), scale)
        low = points.min(axis=(0, 1))
        high = points.max(axis=(0, 1))
        ground = -CENTRE_HEIGHT[kind]
        assert low[2] >= ground - 0.15 * scale
        assert ((high - low)[:2] <= scale * ((BOX_HIGH - BOX_LOW)[kind, :2] + 0.5)).all()
        assert len(points) == len(colours)
        assert ((colours >= 0) & (colours <= 1)).all()
    assert (model_triangles(vehicle_type, (0, 0, 0)).colours >= 0).all()


def test_three_factors_stretch_each_axis():
    plain, stretched = (
        model_triangles(CAR, (9, 9, 9), scale).points for scale in (1.0, (2.0, 3.0, 1.0))
    )
    np.testing.assert_allclose(stretched, plain * (2.0, 3.0, 1.0))
