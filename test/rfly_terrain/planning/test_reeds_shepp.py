# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Reeds' and Shepp's curves: ways known by hand, ends that are met, and symmetries.

No shorter way is found among thousands.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rfly_common.kernels.dubins import shortest_dubins
from rfly_terrain.planning.reeds_shepp import shortest_reeds_shepp

PLACES = st.integers(-1200, 1200).map(lambda number: 0.01 * number)
ANGLES = st.integers(-314, 314).map(lambda number: 0.01 * number)


def drive(word, radius):
    """Return the end of the pieces from the origin, by the geometry of circles.

    It is independent of the formulas.
    """
    x = y = heading = 0.0
    for length, turn in zip(word[:5], word[5:], strict=True):
        if turn == 0:
            x = x + length * math.cos(heading)
            y = y + length * math.sin(heading)
            continue
        centre_x = x - turn * radius * math.sin(heading)
        centre_y = y + turn * radius * math.cos(heading)
        heading += turn * length / radius
        x = centre_x + turn * radius * math.sin(heading)
        y = centre_y - turn * radius * math.cos(heading)
    return x, y, heading


def length_to(x, y, heading, radius=1.0):
    return float(np.abs(shortest_reeds_shepp(x, y, heading, radius, 1.0, 0.0)[:5]).sum())


@pytest.mark.parametrize(
    ("goal", "length"),
    [
        ((10.0, 0.0, 0.0), 10.0),
        ((-7.0, 0.0, 0.0), 7.0),  # straight back
        ((2.0, 2.0, math.pi / 2), math.pi),  # a quarter of radius 2
        ((-2.0, 2.0, -math.pi / 2), math.pi),  # the same backwards
        ((0.0, 0.0, math.pi), 2 * math.pi),  # about where it stands: three arcs of 60°
        ((0.0, 4.0, math.pi), 2 * math.pi),  # half a circle, which no way with cusps undercuts
        ((0.0, 0.0, 0.0), 0.0),
    ],
)
def test_ways_known_by_hand(goal, length):
    assert length_to(*goal, 2.0) == pytest.approx(length, abs=1e-9)


@given(PLACES, PLACES, ANGLES)
@settings(max_examples=300, deadline=None)
def test_ends_and_symmetries_of_any_way(x, y, heading):
    """Lengths agree for a way turned in time, mirrored, there and back, and scaled.

    No way is longer than Dubins'.
    """
    word = shortest_reeds_shepp(x, y, heading, 1.5, 1.0, 0.0)
    end = drive(word, 1.5)
    assert end[:2] == pytest.approx((x, y), abs=1e-6)
    assert math.cos(end[2] - heading) == pytest.approx(1.0)

    length = length_to(x, y, heading, 1.5)
    assert length <= sum(shortest_dubins(0.0, 0.0, 0.0, x, y, heading, 1.5)[:3]) + 1e-9
    assert length >= math.hypot(x, y) - 1e-9

    # symmetries
    c = math.cos(heading)
    s = math.sin(heading)
    same = [
        (-x, y, -heading),
        (x, -y, -heading),
        (-x, -y, heading),
        (-x * c - y * s, x * s - y * c, -heading),
    ]
    assert [length_to(*pose, 1.5) for pose in same] == pytest.approx([length] * 4, abs=1e-6)
    assert length_to(2 * x, 2 * y, heading, 3.0) == pytest.approx(2 * length, abs=1e-6)


def test_none_of_many_other_ways_is_shorter():
    """Words of up to five pieces drawn at random are no shorter.

    The poses where they end can't have a longer shortest way.
    """
    rng = np.random.default_rng(5)
    equal = 0
    for _ in range(6000):
        count = rng.integers(1, 6)
        turns = np.zeros(5)
        turns[:count] = rng.integers(-1, 2, count)
        lengths = np.zeros(5)
        lengths[:count] = rng.uniform(-1.0, 1.0, count) * rng.choice([0.6, 1.6, 3.0])
        found = length_to(*drive((*lengths, *turns), 1.0))
        assert found <= np.abs(lengths).sum() + 1e-7
        equal += found > np.abs(lengths).sum() - 1e-7
    assert equal > 300, "some of them are the shortest themselves"


@given(PLACES, PLACES, ANGLES)
@settings(max_examples=200, deadline=None)
def test_what_backwards_and_cusps_cost(x, y, heading):
    """The price lies between the shortest length and that of Dubins' way.

    At any price the way ends at the goal.
    """
    word = np.array(shortest_reeds_shepp(x, y, heading, 1.0, 3.0, 4.0))
    assert drive(word, 1.0)[:2] == pytest.approx((x, y), abs=1e-6)
    pieces = word[:5][word[:5] != 0.0]
    price = (
        pieces[pieces > 0].sum()
        - 3.0 * pieces[pieces < 0].sum()
        + 4.0 * (np.diff(np.sign(pieces)) != 0).sum()
    )
    ahead = sum(shortest_dubins(0.0, 0.0, 0.0, x, y, heading, 1.0)[:3])
    assert length_to(x, y, heading) - 1e-9 <= price
    if not (pieces < 0).any():
        assert price == pytest.approx(ahead, abs=1e-6)
