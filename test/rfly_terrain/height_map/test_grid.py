# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The regular grid: corners, centres, edges and rows from the north.

The values are worked out by hand.
"""

from __future__ import annotations

import numpy as np
import pytest

from rfly_terrain.height_map.grid import SNAP, Grid, snap

SOUTH_FIRST = Grid(
    rows=3,
    columns=4,
    step_x=2.0,
    step_y=0.5,
    x_corner=-10.0,
    y_corner=1.0,
)
NORTH_FIRST = Grid(
    rows=3,
    columns=4,
    step_x=2.0,
    step_y=-0.5,
    x_corner=-10.0,
    y_corner=2.5,
)


def test_centres_lie_half_a_step_from_the_corner():
    rows = np.array([0, 2])
    columns = np.array([0, 3])
    x, y = SOUTH_FIRST.centres(rows, columns)
    assert x.tolist() == [-9.0, -3.0]
    assert y.tolist() == [1.25, 2.25]


@pytest.mark.parametrize(("grid", "row"), [(SOUTH_FIRST, 0), (NORTH_FIRST, 2)])
def test_row_0_is_in_the_south_or_by_a_step_below_0_in_the_north(grid, row):
    assert grid.cells(-5.5, 1.1) == (row, 2)
    assert grid.centres(row, 2) == (-5.0, 1.25)


def test_a_position_on_an_edge_belongs_to_the_higher_index_as_does_one_just_before_it():
    just_before = -8.0 - 0.5 * SNAP * 2.0
    x = np.array([-8.0, just_before, -8.001])
    y = np.array([1.5, 1.5, 1.499])
    rows, columns = SOUTH_FIRST.cells(x, y)
    assert columns.tolist() == [1, 1, 0]
    assert rows.tolist() == [1, 1, 0]


def test_outside_the_grid_cells_are_outside_the_array():
    x = np.array([-10.5, -9.0, -2.0, -3.0])
    y = np.array([1.2, 0.9, 1.2, 2.4])
    rows, columns = SOUTH_FIRST.cells(x, y)
    in_grid = SOUTH_FIRST.holds(rows, columns)
    assert in_grid.tolist() == [False, False, False, True]


def test_coordinates_and_positions_are_each_others_inverse():
    u, v = NORTH_FIRST.coordinates(-5.0, 2.0)
    assert (u, v) == (2.5, 1.0)
    assert NORTH_FIRST.positions(u, v) == (-5.0, 2.0)


def test_finer_cells_cover_the_same_area():
    fine = NORTH_FIRST.finer(3)
    assert fine.rows == 9
    assert fine.columns == 12

    # finer cells of the first cell
    first = np.arange(3)
    x, y = fine.centres(first, first)
    assert x.mean() == pytest.approx(-9.0, abs=1e-15)
    assert y.mean() == pytest.approx(2.25, abs=1e-15)


def test_snap_takes_what_is_near_a_whole_number_and_leaves_infinity():
    snapped = snap([2.0000005, 1.9999995, 2.00001, np.inf])
    assert snapped.tolist() == [2.0, 2.0, 2.00001, np.inf]
    assert snap(2.0000005, 1e-9) == 2.0000005
