# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The nearest free cell on grids drawn by hand; # is forbidden, north is up."""

from __future__ import annotations

import numpy as np
import pytest

from rfly_terrain.planning.nearest_free import nearest_free

GRID = """
.........
.#####...
.#.#.#...
.#####...
.........
"""
"""what is free within the walls is no part of what surrounds them; cells of 2 m, the south-west
corner at (10, 20)
"""


def free():
    lines = GRID.split()
    return np.array([[cell == "." for cell in line] for line in reversed(lines)])


@pytest.mark.parametrize(
    ("goal", "start", "expected"),
    [
        pytest.param((13.0, 25.0), (11.0, 21.0), (11.0, 25.0), id="the-wall-at-its-west-side"),
        pytest.param((17.5, 25.0), (27.0, 21.0), (17.0, 29.0), id="beyond-the-pockets-within"),
        pytest.param((17.5, 25.0), (15.0, 25.0), (15.0, 25.0), id="from-within-a-pocket"),
        pytest.param(
            (17.5, 25.0), (13.0, 25.0), (19.0, 25.0), id="from-a-wall-any-free-cell-counts"
        ),
    ],
)
def test_by_hand(goal, start, expected):
    found = nearest_free(free(), (10.0, 20.0), 2.0, *goal, start)
    if expected == (17.0, 29.0):  # as far above as below
        assert found in ((17.0, 29.0), (17.0, 21.0))
    else:
        assert found == expected


def test_far_away_and_nowhere():
    """The nearest of all free cells is found, as a look at each of them confirms.

    400 forbidden cells lie all around the goal.
    """
    cells = np.zeros((1001, 1001), bool)
    rows, columns = np.mgrid[:1001, :1001]
    cells[np.hypot(rows - 500, columns - 500) > 400] = True
    found = nearest_free(cells, (0.0, 0.0), 1.0, 500.5, 500.5, (0.5, 0.5))
    distance = np.hypot(rows[cells] - 500, columns[cells] - 500).min()
    assert np.hypot(found[0] - 500.5, found[1] - 500.5) == distance
    assert nearest_free(np.zeros((5, 5), bool), (0.0, 0.0), 1.0, 2.5, 2.5, (0.5, 0.5)) is None
