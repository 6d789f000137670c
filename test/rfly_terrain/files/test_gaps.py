# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Cells without data, filled as a membrane would."""

from __future__ import annotations

import numpy as np
import pytest

from rfly_terrain.files import gaps


def saddle(rows, columns):
    """x² - y² solves the five-point Laplace equation exactly."""
    y, x = np.mgrid[0:rows, 0:columns].astype(float)
    return (x - 20.0) ** 2 / 50 - (y - 30.0) ** 2 / 50


@pytest.mark.parametrize("direct", [200_000, 0], ids=["solved at once", "approached"])
def test_a_harmonic_surface_comes_back(monkeypatch, direct):
    """Holes of several sizes and shapes, none at the edge."""
    monkeypatch.setattr(gaps, "_DIRECT", direct)
    whole = saddle(80, 90)
    holed = whole.astype(np.float32)
    holed[10:30, 15:40] = np.nan
    holed[50, 60] = holed[52, 60] = np.nan
    y, x = np.mgrid[0:80, 0:90]
    holed[(y - 55) ** 2 + (x - 30) ** 2 < 100] = np.inf
    gaps.fill_gaps(holed)
    np.testing.assert_allclose(holed, whole, atol=2e-3)


def test_each_filled_cell_is_the_mean_of_its_neighbours_within_the_map():
    """The gaps lie inside, at an edge and in a corner; they are checked cell by cell."""
    rng = np.random.default_rng(3)
    heights = rng.uniform(-50, 50, (9, 7)).astype(np.float32)
    gap = np.zeros_like(heights, bool)
    gap[0:3, 0:2] = gap[5:8, 3:6] = gap[4, 6] = True
    known = heights.copy()
    heights[gap] = np.nan
    gaps.fill_gaps(heights)
    np.testing.assert_array_equal(heights[~gap], known[~gap])
    for row, column in np.argwhere(gap):
        beside = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
        values = [heights[r, c] for r, c in beside if 0 <= r < 9 and 0 <= c < 7]
        assert heights[row, column] == pytest.approx(np.mean(values), abs=1e-4)


def test_a_large_hole_in_smooth_ground_leaves_no_ridge():
    """Filled ground is near the ground that was there, and nowhere steeper than twice it.

    The hole has 20 x 25 cells of 10 m in rolling hills.
    """
    y, x = np.mgrid[0:120, 0:120]
    ground = 40 * np.sin(x / 25.0) + 30 * np.cos(y / 30.0)
    holed = ground.astype(np.float32)
    holed[50:70, 40:65] = np.nan
    gaps.fill_gaps(holed)
    assert np.abs(holed - ground)[50:70, 40:65].max() < 4.0
    steepest = max(np.abs(np.diff(ground, axis=axis)).max() for axis in (0, 1))
    assert max(np.abs(np.diff(holed, axis=axis)).max() for axis in (0, 1)) < 1.3 * steepest


def test_nothing_to_fill_and_one_cell_to_fill_from():
    full = np.ones((3, 4), np.float32)
    gaps.fill_gaps(full)
    np.testing.assert_array_equal(full, 1.0)
    lonely = np.full((4, 5), np.nan, np.float32)
    lonely[2, 3] = 7.5
    gaps.fill_gaps(lonely)
    np.testing.assert_allclose(lonely, 7.5)
