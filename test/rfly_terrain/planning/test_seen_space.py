# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Obstacles and known places of an octomap, by boxes computed by hand; plans that hold or not."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from rfly_common.errors import PlanError
from rfly_terrain import HeightMap
from rfly_terrain.costmap.traversability import TraversabilityGrid, TraversabilityLimits
from rfly_terrain.occupancy.octree import Leaves
from rfly_terrain.planning.plan import DRIVE, FLY, PlanPose
from rfly_terrain.planning.planner import Planner, Replanner
from rfly_terrain.planning.seen_space import SeenSpace, seen_space
from rfly_terrain.planning.vehicle_classes import Driving, Flying, VehicleClass
from rfly_terrain.world.solids import ObjectBoxes

RADIUS = 0.5
MARGIN = 0.5
DRIVING = Driving(
    3.0, 1.0, TraversabilityLimits(25.0, vehicle_radius=RADIUS, half_wheelbase=0.5), 0.05, 0.8
)
MULE = VehicleClass(
    "mule",
    "land_air",
    20.0,
    RADIUS,
    DRIVING,
    Flying(3.0, 4.0, 2.0, 2.0, power=2000.0, hover_power=2400.0),
)
GROUND = HeightMap(np.full((61, 61), 10.0), origin_x=-30.0, origin_y=-30.0, step_x=1.0, step_y=1.0)
"""level, at 10 m"""
START = PlanPose(-20.0, 0.1, 0.0, 13.0)
GOAL = PlanPose(20.0, 0.1)


def leaves(occupied, free=()):
    """Return the leaves of rows x, y, z (m, lowest corner), side."""
    rows = np.array([*occupied, *free], float).reshape(-1, 4)
    return Leaves(rows[:, :3], rows[:, 3], np.arange(len(rows)) < len(occupied))


def column(x, y, low=10.5, high=16.0, side=0.5):
    return [(x, y, z, side) for z in np.arange(low, high, side)]


def wall(y_low, y_high, x=0.0):
    return [voxel for y in np.arange(y_low, y_high, 0.5) for voxel in column(x, y)]


def planner():
    return Planner(GROUND, margin=MARGIN, resolution=0.5)


def test_rows_of_voxels_are_boxes_and_the_ground_is_none():
    seen = seen_space(
        leaves(
            [(x, 2.0, z, 0.5) for x in (1.0, 1.5, 2.0, 4.0) for z in (10.5, 11.0)]
            + [(0.0, 0.0, 10.0, 0.5)]
        ),
        GROUND,
    )
    boxes = seen.obstacles
    assert (boxes.centre - boxes.half_extent).tolist() == [[1.0, 2.0, 10.5], [4.0, 2.0, 10.5]]
    assert (boxes.centre + boxes.half_extent).tolist() == [[2.5, 2.5, 11.5], [4.5, 2.5, 11.5]]
    assert (
        len(seen_space(leaves([(0.0, 0.0, 10.0, 0.5)]), GROUND, ground_margin=0.0).obstacles) == 1
    )
    assert not len(seen_space(leaves([]), GROUND).obstacles)


def test_what_is_not_known_is_dear_cell_by_cell():
    """Squares of five sizes are compared with a check of each of their points.

    Half of them are off the grid.
    """
    rng = np.random.default_rng(3)
    side = 0.3 * 2.0 ** rng.integers(0, 5, 60)
    squares = np.column_stack([rng.uniform(-12.0, 12.0, (60, 2)), side])
    seen = SeenSpace(ObjectBoxes(np.empty((0, 3)), np.empty((0, 3))), squares)
    grid = TraversabilityGrid(np.zeros((20, 30), np.int8), 0.5, (-7.0, -4.0))

    expected = np.full((20, 30), 80, np.int8)
    for x, y, s in squares:
        parts = int(np.ceil(s / 0.5))
        for i, j in np.ndindex(parts, parts):
            row = int(np.floor((y + (j + 0.5) * s / parts + 4.0) / 0.5))
            cell = int(np.floor((x + (i + 0.5) * s / parts + 7.0) / 0.5))
            if 0 <= row < 20 and 0 <= cell < 30:
                expected[row, cell] = 0

    assert 50 < np.count_nonzero(expected) < 550
    np.testing.assert_array_equal(seen.on(grid, 0.5, 80).cost, expected)


def test_voxels_larger_than_the_world_take_no_room():
    """A foreign map may have 16 levels above a kilometre."""
    whole = [(-3.2768e7, -3.2768e7, -3.2768e7, 6.5536e7)]
    grid = TraversabilityGrid(np.zeros((20, 30), np.int8), 0.5, (-7.0, -4.0))
    assert not seen_space(leaves([], whole), GROUND).on(grid, 0.5, 80).cost.any()
    full = seen_space(leaves([(-3.2768e7, -3.2768e7, 16.0, 6.5536e7)]), GROUND).on(grid, 0.5, 80)
    assert (full.cost == 100).all()


def test_what_nothing_is_known_above_may_be_taller():
    """Objects are taller below unknown space.

    The first has a free voxel on top, the second a larger free one, the third none.
    """
    seen = seen_space(
        leaves(
            [(x, 2.0, 11.5, 0.5) for x in (0.0, 4.0, 8.0)],
            [
                (0.0, 2.0, 12.0, 0.5),
                (4.0, 2.0, 12.0, 2.0),
                (8.0, 2.0, 12.5, 0.5),
                (8.5, 2.0, 12.0, 0.5),
            ],
        ),
        GROUND,
        unknown_height=7.0,
    )

    tops = (seen.obstacles.centre + seen.obstacles.half_extent)[:, 2]
    assert tops.tolist() == [12.0, 12.0, 19.0]


def test_costs_around_what_has_been_seen():
    """Cells with any part within 1 m of the box of x 0 … 0.5, y 0 … 0.5 are forbidden.

    Cells of unknown ground are dear.
    """
    grid = planner().grid(MULE)
    assert not grid.cost[20:-20, 20:-20].any()
    seen = seen_space(leaves(column(0.0, 0.0), [(-4.0, -4.0, 10.0, 8.0)]), GROUND)
    cost = seen.on(grid, 1.0, 60).cost

    # distance of the cell's nearest part
    rows, columns = np.indices(cost.shape)
    x = grid.origin[0] + (columns + 0.5) * 0.5
    y = grid.origin[1] + (rows + 0.5) * 0.5
    away = np.hypot(*(np.maximum(np.abs(middle - 0.25) - 0.5, 0.0) for middle in (x, y)))

    assert (cost[away < 1.0 - 1e-6] == 100).all()
    assert (cost[(away > 1.03) & (np.maximum(np.abs(x), np.abs(y)) < 4.0)] == 0).all()
    far = (np.maximum(np.abs(x), np.abs(y)) > 4.5) & (grid.cost >= 0)
    assert (cost[far] == 60).all()
    assert (cost == -1).sum() == (grid.cost == -1).sum()


def test_unknown_ground_is_shunned_or_forbidden():
    """A known strip leads past the straight way through the unknown, 10 m away."""
    known = [(x, y, 10.0, 1.0) for x in np.arange(-24.0, 24.0) for y in (-1.0, 0.0)]
    detour = [(x, y, 10.0, 1.0) for x in np.arange(-24.0, 24.0) for y in np.arange(-1.0, 12.0)]
    gap = [voxel for voxel in detour if not (-8.0 <= voxel[0] < 8.0 and voxel[1] < 9.0)]

    # through the unknown, or around it
    assert (
        planner()
        .amid(seen_space(leaves([], gap), GROUND), MULE, START)
        .drive(MULE, START, GOAL)
        .length
        < 41.0
    )
    for cost in (99, 100):
        amid = planner().amid(seen_space(leaves([], gap), GROUND), MULE, START, cost)
        assert amid.drive(MULE, START, GOAL).position[:, 1].max() > 8.5

    # no other way
    without = [voxel for voxel in known if not -8.0 <= voxel[0] < 8.0]
    with pytest.raises(PlanError, match="no way leads"):
        planner().amid(seen_space(leaves([], without), GROUND), MULE, START, 100).drive(
            MULE, START, GOAL
        )


@pytest.mark.parametrize("mode", [DRIVE, FLY])
def test_a_plan_holds_until_something_is_too_near(mode):
    way = Replanner(planner(), MULE, GOAL, mode)
    first = way.update(seen_space(leaves([]), GROUND), START)
    assert first.length == pytest.approx(40.0, rel=0.01)

    # an obstacle aside, and one across
    aside = seen_space(leaves(wall(3.0, 6.0)), GROUND)
    assert way.update(aside, START) is None
    across = seen_space(
        leaves(wall(-3.0, 3.0), [(x, -5.0, 17.0, 0.5) for x in (0.0,)]), GROUND, unknown_height=20.0
    )
    second = way.update(across, PlanPose(-10.0, 0.1, 0.0, 13.0))
    assert second.position[0, :2].tolist() == [-10.0, 0.1]
    near = np.abs(second.position[:, 0] - 0.25) < 0.75
    assert np.abs(second.position[near, 1]).min() > 3.0 + RADIUS + MARGIN - 0.05

    # the new plan holds
    assert (
        way.update(
            across,
            PlanPose(-5.0, *second.position[second.position[:, 0] > -5.0][0, 1:2], None, 13.0),
        )
        is None
    )

    assert way.update(seen_space(leaves([]), GROUND), START) is None, (
        "what is gone asks for no other way"
    )
    behind = seen_space(leaves(wall(-3.0, 3.0, -15.0)), GROUND)
    assert way.update(behind, PlanPose(-10.0, 0.1, 0.0, 13.0)) is None, "the rest of the way counts"


def test_without_a_way_it_says_so_and_tries_again():
    closed = seen_space(leaves(wall(-30.0, 30.0)), GROUND)
    way = Replanner(planner(), MULE, GOAL)
    assert way.update(seen_space(leaves([]), GROUND), START)
    for _ in range(2):
        with pytest.raises(PlanError, match="no way leads"):
            way.update(closed, START)
        assert way.plan is None
    assert (
        way.update(seen_space(leaves(wall(-30.0, 10.0)), GROUND), START).position[:, 1].max() > 10.0
    )


def test_at_the_goal_nothing_is_planned():
    way = Replanner(planner(), MULE, GOAL)
    assert way.update(seen_space(leaves([]), GROUND), START)
    beside = seen_space(leaves(wall(-3.0, 3.0, 20.0)), GROUND)
    assert way.update(beside, PlanPose(19.7, 0.1, 0.0)) is None
    assert way.update(None, START) is None


def test_beside_what_was_hidden_it_leaves_with_less_margin():
    """A start 0.9 m from a wall, within radius and margin, is no longer refused.

    The way there keeps the margin elsewhere.
    """
    beside = PlanPose(-20.0, 0.0, 0.0)
    seen = seen_space(leaves([(-20.25, y, 10.5, 0.5) for y in (0.9, 1.4)]), GROUND)
    fine = Planner(GROUND, margin=MARGIN, resolution=0.25)
    plan = fine.amid(seen, MULE, beside).drive(MULE, beside, GOAL)
    assert plan.position[:, 1].max() < 0.2
    with pytest.raises(PlanError, match="an object"):
        Planner(GROUND, seen.obstacles, margin=MARGIN, resolution=0.25).drive(MULE, beside, GOAL)
    far = dataclasses.replace(beside, y=-3.0)
    assert fine.amid(seen, MULE, far).margin == MARGIN
