# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Height maps for tests: from an array, from a formula, and the worked example of the format."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rfly_terrain import HeightMap

UNIT_GRID = {"origin_x": 0.0, "origin_y": 0.0, "step_x": 1.0, "step_y": 1.0}
"""Grid with its first sample at the origin and samples 1 m apart."""

COUNTS_E = np.array([[0, 100, 200, 300], [50, 150, 250, 350], [100, 200, 300, 500]])
"""Pixels of map E."""


def map_e() -> HeightMap:
    """Return map E of RflySim's format description with its first txt.

    It has 2 cm a count, 2 m a pixel, z2 = 600 cm.
    """
    heights = (600 + 2 * COUNTS_E) / 100
    return grid_map(heights, origin_x=-2, origin_y=-3, step_x=2, step_y=2, name="E")


def grid_map(heights: Any, **grid: Any) -> HeightMap:
    """Return the map of heights on a unit grid, or on one that differs from it by keywords."""
    return HeightMap(heights, **{**UNIT_GRID, **grid})


def sampled(surface: Any, rows: int, columns: int, **grid: float) -> HeightMap:
    """Return the map of a function z(x_east, y_north) of arrays."""
    grid = {**UNIT_GRID, **grid}
    x = grid["origin_x"] + grid["step_x"] * np.arange(rows)[:, None]
    y = grid["origin_y"] + grid["step_y"] * np.arange(columns)
    z = surface(x, y)
    return HeightMap(np.broadcast_to(z, (rows, columns)), **grid)


def near(expected: Any, slack: float = 1e-12) -> Any:
    """Return what a result within `slack` of the expected one is equal to."""
    return pytest.approx(expected, abs=slack)
