# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Ways and fences: every straight way on a grid, held against exact rational arithmetic."""

import math
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest

from rfly_missions.mission.geofence import FenceCircle, FencePolygon, Geofence

SHAPES = {
    "diamond": [(20, 10), (30, 20), (20, 30), (10, 20)],
    "square": [(10, 10), (10, 30), (30, 30), (30, 10)],
    "u": [(0, 10), (40, 10), (40, 40), (30, 40), (30, 20), (10, 20), (10, 40), (0, 40)],
    "spike": [(10, 10), (40, 20), (10, 30), (20, 20)],
}
GRID = [(x, y) for x in range(0, 50, 10) for y in range(0, 50, 10)]


def turn(a, b, c):
    """Return twice the signed area of a triangle."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def on_segment(p, a, b):
    within = all(min(a[i], b[i]) <= p[i] <= max(a[i], b[i]) for i in (0, 1))
    return turn(a, b, p) == 0 and within


def holds_exactly(p, corners):
    """Return whether a closed polygon holds a point: on an edge, or an odd number of edges east."""
    edges = list(pairwise([*corners, corners[0]]))
    if any(on_segment(p, a, b) for a, b in edges):
        return True
    inside = False
    for a, b in edges:
        if (a[1] > p[1]) != (b[1] > p[1]):
            inside ^= p[0] < a[0] + Fraction(p[1] - a[1], b[1] - a[1]) * (b[0] - a[0])
    return inside


def places_exactly(start, end, corners):
    """Return the ends of a way, its meetings with all edges' lines, and the middles between."""
    along = end[0] - start[0], end[1] - start[1]
    shares = {Fraction(0), Fraction(1)}
    for a, b in pairwise([*corners, corners[0]]):
        edge = b[0] - a[0], b[1] - a[1]
        slope = along[0] * edge[1] - along[1] * edge[0]
        if slope:
            cut = (a[0] - start[0]) * edge[1] - (a[1] - start[1]) * edge[0]
            shares.add(Fraction(cut, slope))
        size = along[0] ** 2 + along[1] ** 2
        foot = (a[0] - start[0]) * along[0] + (a[1] - start[1]) * along[1]
        shares.add(Fraction(foot, size))
    shares = sorted(share for share in shares if 0 <= share <= 1)
    shares += [(a + b) / 2 for a, b in pairwise(shares)]
    return [(start[0] + share * along[0], start[1] + share * along[1]) for share in shares]


@pytest.mark.parametrize("name", SHAPES)
def test_every_way_on_a_grid_is_judged_as_exactly(name):
    """A border belongs to its area: an exclusion may not be touched, an inclusion's edge may."""
    corners = SHAPES[name]
    yaw = 0.3
    turned = np.array([[math.cos(yaw), -math.sin(yaw)], [math.sin(yaw), math.cos(yaw)]])
    offset = np.array([1234.5, -678.9])

    fences = {
        inclusion: [
            Geofence((FencePolygon(np.array(corners, float), inclusion),)),
            Geofence((FencePolygon(np.array(corners) @ turned + offset, inclusion),)),
        ]
        for inclusion in (True, False)
    }
    wrong = []
    for start, end in combinations(GRID, 2):
        held = {holds_exactly(place, corners) for place in places_exactly(start, end, corners)}
        ways = [(start, end), (np.array((start, end)) @ turned + offset).tolist()]
        for inclusion, pair in fences.items():
            answers = [bool(f.breach_of_line(*way)) for f, way in zip(pair, ways, strict=True)]
            if answers != [held != {inclusion}] * 2:
                wrong.append((start, end, inclusion, answers))
    assert wrong == []


@pytest.mark.parametrize(
    ("center", "radius", "inclusion", "breached"),
    [
        ((0, 0), 100.0, False, True),  # through a small area between any few points of the circle
        ((0, 0), 90.0, False, True),
        ((0, 0), 89.0, False, False),
        ((0, 0), 111.5, False, True),
        ((0, 0), 112.0, False, False),  # the area lies within the circle
        ((100, 5), 2.0, False, True),
        ((100, 5), 2.0, True, False),
        ((100, 5), 6.0, True, True),
        ((0, 0), 100.0, True, True),
    ],
)
def test_the_way_round_a_circle(center, radius, inclusion, breached):
    """The square spans 90 to 110 m north and 0 to 20 m east: its farthest corner is 111.8 m off."""
    square = np.array([(90.0, 0.0), (110.0, 0.0), (110.0, 20.0), (90.0, 20.0)])
    fence = Geofence((FencePolygon(square, inclusion),))
    assert bool(fence.breach_of_circle(center, radius)) == breached


@pytest.mark.parametrize(
    ("line", "radius", "inclusion", "breached"),
    [
        (((-9, 5), (9, 5)), 5.0, False, True),  # a tangent
        (((-9, 5.01), (9, 5.01)), 5.0, False, False),
        (((0, -5), (0, 5)), 5.0, True, False),
        (((0, -5), (0, 5.01)), 5.0, True, True),
        (((0, 0), (0, 0)), 5.0, False, True),
    ],
)
def test_ways_and_round_areas(line, radius, inclusion, breached):
    fence = Geofence((FenceCircle((0.0, 0.0), radius, inclusion),))
    assert bool(fence.breach_of_line(*line)) == breached


@pytest.mark.parametrize(
    ("center", "radius", "inclusion", "breached"),
    [
        ((0, 0), 95.0, False, True),
        ((0, 0), 90.0, False, True),
        ((0, 0), 89.0, False, False),
        ((100, 0), 11.0, False, False),
        ((100, 0), 9.0, True, False),
        ((100, 5), 9.0, True, True),
    ],
)
def test_circles_and_round_areas(center, radius, inclusion, breached):
    """The area spans 10 m around a place 100 m north."""
    fence = Geofence((FenceCircle((100.0, 0.0), 10.0, inclusion),))
    assert bool(fence.breach_of_circle(center, radius)) == breached
