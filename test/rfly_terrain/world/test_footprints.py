# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Footprints in convex pieces: together they cover what the outlines enclose, and nothing else."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest

from rfly_terrain.world import footprints
from rfly_terrain.world.footprints import convex_pieces


def area(polygon):
    x, y = np.asarray(polygon, float).T
    return 0.5 * abs(float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))))


def inside(rings, x, y):
    """Crossings of the ray to the east: an odd number."""
    odd = False
    for ring in rings:
        for (x0, y0), (x1, y1) in zip(
            ring.tolist(), np.roll(ring, -1, axis=0).tolist(), strict=True
        ):
            if (y0 > y) != (y1 > y) and x0 + (y - y0) * (x1 - x0) / (y1 - y0) > x:
                odd = not odd
    return odd


def depth(polygon, x, y):
    """Signed distance, > 0 inside."""
    return cv2.pointPolygonTest(np.asarray(polygon, np.float32), (x, y), True)


def star(rng, corners, least, most):
    angle = np.sort(rng.uniform(0, 2 * math.pi, corners))
    return rng.uniform(least, most, corners)[:, None] * np.column_stack(
        [np.cos(angle), np.sin(angle)]
    )


@pytest.mark.parametrize(
    ("ring", "areas"),
    [
        ([(0, 0), (14, 0), (14, 8), (0, 8)], [112]),
        ([(0, 0), (14, 0), (14, 8), (6, 8), (6, 14), (0, 14)], [112, 36]),
        ([(0, 0), (10, 0), (12, 4), (10, 8), (0, 8), (-2, 4)], [96]),  # convex: one piece
        ([(0, 0), (10, 0), (10, 10), (7, 10), (7, 3), (3, 3), (3, 10), (0, 10)], [30, 21, 21]),
        ([(0, 0), (10, 0), (10, 0.01), (0, 0.01)], []),
    ],
    ids=["rectangle", "L", "hexagon", "U", "nothing"],
)
def test_by_hand(ring, areas):
    pieces = convex_pieces([np.array(ring, float)])
    assert sorted(map(area, pieces), reverse=True) == pytest.approx(areas, abs=1e-4)


@pytest.mark.parametrize("seed", range(8))
def test_points_inside_and_outside(seed):
    """Points further than 0.2 m from all walls are where the rule of crossings says.

    The footprints are stars of 30 corners with a courtyard.
    """
    rng = np.random.default_rng(seed)
    rings = [star(rng, 30, 9.0, 25.0), star(rng, 7, 3.0, 4.0)]
    pieces = convex_pieces(rings)
    assert 1 < len(pieces) <= footprints.MAX_PIECES

    for piece in pieces:
        hull = cv2.convexHull(np.asarray(piece, np.float32))[:, 0]
        assert area(hull) == pytest.approx(area(piece), abs=1e-3), "it is convex"

    checked = 0
    for x, y in rng.uniform(-26, 26, (300, 2)).tolist():
        if min(abs(depth(ring, x, y)) for ring in rings) < 0.2:
            continue
        covered = max(depth(piece, x, y) for piece in pieces)
        assert (covered > -1e-3) == inside(rings, x, y), (x, y)
        checked += 1

    assert checked > 200


def test_a_round_wall_is_simplified_until_its_pieces_are_few():
    angle = np.linspace(0, 2 * math.pi, 300, endpoint=False)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    pieces = convex_pieces([40.0 * circle, 30.0 * circle])
    assert len(pieces) <= footprints.MAX_PIECES
    assert sum(map(area, pieces)) == pytest.approx(math.pi * (1600 - 900), rel=0.03)
    assert convex_pieces([np.zeros((footprints.MAX_CORNERS + 1, 2))]) == []
    assert convex_pieces([]) == []
