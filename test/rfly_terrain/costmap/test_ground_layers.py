# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Layers of the ground, compared with planes fitted one after the other and with a map's costs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_common.errors import ConfigError
from rfly_terrain import HeightMap, TraversabilityLimits, ground_layers, traversability

LIMITS = TraversabilityLimits(max_slope_deg=35, half_wheelbase=1.1, vehicle_radius=0.6)


def some_map(step=(0.5, 0.5), shape=(19, 27)):
    heights = np.random.default_rng(3).normal(0, 0.05, shape).cumsum(axis=0).cumsum(axis=1) + 300.0
    return HeightMap(heights, origin_x=-3.0, origin_y=40.0, step_x=step[0], step_y=step[1])


def plane_at(terrain, x, y, side, radius):
    """Return (slope, roughness, normal) of the plane through the cells around x, y, by lstsq.

    It fits all cells of `side`. Returns None off the map.
    """
    reach = range(-math.floor(radius / side), math.floor(radius / side) + 1)
    places = [
        (x + a * side, y + b * side)
        for a in reach
        for b in reach
        if math.hypot(a, b) * side <= radius + 1e-9
    ]
    if not all(terrain.inside(*place) for place in places):
        return None

    rows = np.array([(1.0, a - x, b - y) for a, b in places])
    z = np.array([terrain.altitude(*place) for place in places])
    (_, east, north), *_ = np.linalg.lstsq(rows, z, rcond=None)
    roughness = math.sqrt(np.mean((z - rows @ np.linalg.lstsq(rows, z, rcond=None)[0]) ** 2))

    normal = np.array((-east, -north, 1.0)) / math.sqrt(east**2 + north**2 + 1)
    return math.atan(math.hypot(east, north)), roughness, normal


@pytest.mark.parametrize(
    ("step", "resolution"), [((0.5, 0.5), None), ((0.5, -0.7), None), ((0.5, 0.5), 1.5)]
)
def test_layers_are_those_of_planes_fitted_one_by_one(step, resolution):
    terrain = some_map(step)
    costs = traversability(terrain, LIMITS, resolution=resolution)
    grid = ground_layers(terrain, costs, LIMITS)
    assert grid.shape == costs.cost.shape
    assert (grid.resolution, grid.origin) == (costs.resolution, pytest.approx(costs.origin))

    known = 0
    for (row, column), cost in np.ndenumerate(costs.cost):
        at = {name: float(layer[row, column]) for name, layer in grid.layers.items()}
        x = grid.origin[0] + (column + 0.5) * grid.resolution
        y = grid.origin[1] + (row + 0.5) * grid.resolution
        assert at["elevation"] == pytest.approx(terrain.altitude(x, y), abs=1e-4)
        assert at["traversability"] == pytest.approx(
            1 - cost / 100 if cost >= 0 else math.nan, nan_ok=True
        )

        expected = plane_at(terrain, x, y, 0.5, 1.1)
        if expected is None:
            assert all(
                math.isnan(at[name])
                for name in ("slope", "roughness", "normal_x", "normal_y", "normal_z")
            )
            continue
        slope, roughness, normal = expected
        assert (at["slope"], at["roughness"]) == pytest.approx((slope, roughness), abs=2e-6)
        assert [at[f"normal_{axis}"] for axis in "xyz"] == pytest.approx(normal.tolist(), abs=2e-6)
        known += 1

    assert known > 0.3 * costs.cost.size
    assert np.unique(costs.cost).size > 4, "the map has ground of many kinds"


def test_windows_meet_without_a_seam(monkeypatch):
    terrain = some_map()
    costs = traversability(terrain, LIMITS)
    whole = ground_layers(terrain, costs, LIMITS)
    monkeypatch.setattr("rfly_terrain.costmap.ground_layers._CELLS_AT_ONCE", 4)
    parts = ground_layers(terrain, costs, LIMITS)
    for name, layer in whole.layers.items():
        np.testing.assert_allclose(parts.layers[name], layer, atol=1e-6)


def test_a_region_gets_the_cells_that_it_touches():
    """A region gets every cell of 0.5 m that it touches.

    x 0.8 … 2.2 touches those about 1, 1.5 and 2, y 41.25 … 42 those about 41.5 and 42.
    """
    terrain = some_map()
    costs = traversability(terrain, LIMITS)
    whole = ground_layers(terrain, costs, LIMITS)
    grid = ground_layers(
        terrain, costs, LIMITS, region=(0.8, 2.2, 41.25, 42.0), names=("slope", "elevation")
    )

    assert list(grid.layers) == ["slope", "elevation"]
    assert grid.shape == (2, 3)
    assert grid.origin == pytest.approx((0.75, 41.25))
    rows = slice(3, 5)
    columns = slice(8, 11)
    for name, layer in grid.layers.items():
        np.testing.assert_allclose(layer, whole.layers[name][rows, columns], atol=1e-6)

    # all of the map, a point, and off the map
    assert (
        ground_layers(terrain, costs, LIMITS, region=(-1e9, 1e9, -1e9, 1e9)).shape
        == costs.cost.shape
    )
    assert ground_layers(terrain, costs, LIMITS, region=(1.1, 1.1, 41.1, 41.1)).shape == (1, 1)
    for off in ((100, 200, 41, 42), (-200, -100, 41, 42), (0, 1, -10, 0)):
        assert ground_layers(terrain, costs, LIMITS, region=off) is None


def test_too_many_cells_become_larger_ones():
    """27 x 19 cells become 9 x 6, since at most 60 may remain: 3 to a side.

    Each has the worst of its nine, and the elevation of the centre.
    """
    terrain = some_map()
    costs = traversability(terrain, LIMITS)
    grid = ground_layers(terrain, costs, LIMITS, max_cells=60)
    assert (grid.resolution, grid.shape) == (1.5, (9, 6))
    assert grid.origin == pytest.approx((costs.origin[0], costs.origin[1]))

    # traversability of the worst cell, all else at the centre
    for (row, column), value in np.ndenumerate(grid.layers["traversability"]):
        block = costs.cost[3 * row : 3 * row + 3, 3 * column : 3 * column + 3]
        worst = block.max() if (block.min() >= 0 or block.max() == 100) else None
        assert value == pytest.approx(
            math.nan if worst is None else 1 - worst / 100, nan_ok=True, abs=1e-6
        )
    whole = ground_layers(terrain, costs, LIMITS)
    for name in ("elevation", "slope", "normal_x"):
        np.testing.assert_allclose(
            grid.layers[name], whole.layers[name][1::3, 1::3][:9, :6], atol=1e-6
        )

    one = ground_layers(terrain, costs, LIMITS, max_cells=1)
    assert one.shape == (1, 1)


def test_a_disc_wider_than_the_map_is_unknown_everywhere():
    terrain = some_map()
    wide = TraversabilityLimits(half_wheelbase=500.0)
    grid = ground_layers(terrain, traversability(terrain, wide), wide)
    assert np.isnan(grid.layers["slope"]).all()
    assert np.isfinite(grid.layers["elevation"]).all()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"names": ("elevation", "colour")}, "layers: colour, expected some of elevation, slope"),
        ({"names": ()}, "layers: none, expected some of"),
        (
            {"region": (0.0, math.nan, 0.0, 1.0)},
            "region: .*nan.*, expected finite x_min, x_max, y_min, y_max",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(fields, expected):
    terrain = some_map()
    with pytest.raises(ConfigError, match=expected):
        ground_layers(terrain, traversability(terrain), **fields)
