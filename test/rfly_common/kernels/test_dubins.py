# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Dubins' curves: ways known by hand, ends that are met, and no shorter way among thousands of
others.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from rfly_common.kernels.dubins import shortest_dubins


def drive(pose, word, radius):
    """The end of three pieces, by the geometry of circles: independent of the formulas."""
    x, y, heading = pose
    for length, turn in zip(word[:3], word[3:], strict=True):
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


@pytest.mark.parametrize(
    ("goal", "length"),
    [
        ((10.0, 0.0, 0.0), 10.0),  # straight on
        ((0.0, 4.0, math.pi), 2 * math.pi),  # half a circle to the left, radius 2
        ((0.0, -4.0, math.pi), 2 * math.pi),
        ((2.0, 2.0, math.pi / 2), math.pi),  # a quarter
        ((12.0, 2.0, math.pi / 2), 10 + math.pi),
        ((4.0, 4.0, 0.0), 2 * math.pi),  # two quarters, left then right
        # turned about where it stands: three arcs about centres 4 m apart: 60° + 300° + 60° of
        # radius 2
        ((0.0, 0.0, math.pi), 2 * math.radians(420)),
        ((0.0, 0.0, 0.0), 0.0),
    ],
)
def test_ways_known_by_hand(goal, length):
    word = shortest_dubins(0.0, 0.0, 0.0, *goal, 2.0)
    assert sum(word[:3]) == pytest.approx(length, abs=1e-9)
    x, y, heading = drive((0.0, 0.0, 0.0), word, 2.0)
    assert (x, y) == pytest.approx(goal[:2], abs=1e-8)
    assert math.cos(heading - goal[2]) == pytest.approx(1.0)


def test_random_ways_end_at_the_goal_and_none_of_a_fine_search_is_shorter():
    rng = np.random.default_rng(3)
    radius = 1.5
    arcs = np.radians(np.arange(0, 360, 6.0))
    for _ in range(300):
        start = (*rng.uniform(-6, 6, 2), rng.uniform(-7, 7))
        goal = (*rng.uniform(-6, 6, 2), rng.uniform(-7, 7))
        word = shortest_dubins(*start, *goal, radius)
        assert min(word[:3]) >= 0
        x, y, heading = drive(start, word, radius)
        assert (x, y) == pytest.approx(goal[:2], abs=1e-7)
        assert math.cos(heading - goal[2]) == pytest.approx(1.0)
    # every word of arcs in steps of 6° from the origin: the pose that it ends at can't have a
    # longer shortest way
    for turns in itertools.product((-1, 0, 1), repeat=3):
        for _ in range(60):
            lengths = [
                rng.uniform(0, 8) if turn == 0 else radius * rng.choice(arcs) for turn in turns
            ]
            end = drive((0.0, 0.0, 0.0), (*lengths, *turns), radius)
            found = sum(shortest_dubins(0.0, 0.0, 0.0, *end, radius)[:3])
            assert found <= sum(lengths) + 1e-6
