# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""PlannerHybridAStar: paths known by hand, free cells, radii and directions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_terrain import (
    BinaryOccupancyMap,
    OccupancyMap,
    PlannerHybridAStar,
    ValidatorOccupancyMap,
)


def planner_on(occupancy, **options):
    validator = ValidatorOccupancyMap(map=occupancy)
    validator.state_space.state_bounds = [
        occupancy.x_world_limits,
        occupancy.y_world_limits,
        [-math.pi, math.pi],
    ]
    return PlannerHybridAStar(validator, **options)


def test_defaults_follow_from_the_map():
    """⌈√2 cells⌉ and 2 lengths / π."""
    planner = planner_on(BinaryOccupancyMap(10, 10, 0.5))
    assert planner.turning_radius() == pytest.approx(2 * 3 / math.pi)
    planner.MotionPrimitiveLength = 5
    assert planner.turning_radius() == pytest.approx(10 / math.pi)
    planner.MinTurningRadius = 4
    assert planner.turning_radius() == 4
    planner.MinTurningRadius = 3
    with pytest.raises(ValueError, match="at most a quarter of the turning circle"):
        planner.turning_radius()


def test_half_a_circle_and_straight_on():
    planner = planner_on(BinaryOccupancyMap(40, 40, 2), min_turning_radius=4)
    path, directions, info = planner.plan([10, 10, 0], [10, 18, math.pi])
    assert info.path_cost == pytest.approx(4 * math.pi, rel=1e-6)
    assert (directions == 1).all()
    assert path.states[0].tolist() == [10, 10, 0]
    assert path.states[-1].tolist() == [10, 18, math.pi]
    # on the circle about (10, 14)
    assert np.hypot(path.states[:, 0] - 10, path.states[:, 1] - 14) == pytest.approx(4)
    assert np.hypot(*np.diff(path.states[:, :2], axis=0).T).max() <= 1.0


def test_backwards_by_the_costs():
    planner = planner_on(BinaryOccupancyMap(60, 60, 2), min_turning_radius=4)
    start = [30, 30, 0]
    back = [26, 30, 0]
    path, directions, info = planner.plan(start, back)
    assert (directions == -1).all()
    assert info.path_cost == pytest.approx(3 * 4)
    assert path.states[:, 1] == pytest.approx(30)
    planner.ReverseCost = 100
    planner.ForwardCost = 2
    _, directions, info = planner.plan(start, back)
    assert (directions == 1).all()
    # Dubins' loop backwards by less than a diameter is longer than a whole circle
    assert info.path_cost > 2 * 2 * math.pi * 4


def test_paths_keep_to_free_cells_within_the_bounds():
    occupancy = BinaryOccupancyMap(30, 30, 2)
    occupancy.set_occupancy((10, 0), np.ones((48, 2)))
    planner = planner_on(occupancy, MinTurningRadius=2)
    path, _, info = planner.plan([5, 5, 0], [20, 5, 0])
    assert info.is_path_found
    assert planner.state_validator.is_state_valid(path.states).all()
    assert path.states[:, 1].max() > 24
    planner.state_validator.state_space.state_bounds = [[0, 30], [0, 20], [-4, 4]]
    path, directions, info = planner.plan([5, 5, 0], [20, 5, 0])
    assert (path.num_states, directions.size) == (0, 0)
    assert (info.IsPathFound, info.reason, info.PathCost) == (False, "unreachable", math.inf)


def test_unknown_cells_are_not_entered():
    m = OccupancyMap(20, 10, 2)
    m.set_occupancy((0, 0), np.full((20, 10), 0.1))
    m.set_occupancy((15, 0), np.full((20, 10), 0.1))
    planner = planner_on(m, MinTurningRadius=1)
    assert not planner.plan([2, 5, 0], [18, 5, 0])[2].is_path_found
    m.set_occupancy((0, 4), np.full((4, 40), 0.1))
    assert planner.plan([2, 5, 0], [18, 5, 0])[2].is_path_found


@pytest.mark.parametrize(
    ("options", "start", "text"),
    [
        ({}, [50, 5, 0], "start: .* is not a free place"),
        ({}, [5, 5, 4], "start: .* is not a free place"),
        ({}, [8, 8, 0], "where the start is"),
        ({"reverse_cost": 0.5}, [5, 5, 0], "reverse_cost: 0.5, expected at least"),
    ],
)
def test_bad_requests_are_refused(options, start, text):
    planner = planner_on(BinaryOccupancyMap(10, 10), min_turning_radius=1, **options)
    with pytest.raises(ValueError, match=text):
        planner.plan(start, [8, 8, 0])


def test_bad_properties_are_refused():
    with pytest.raises(ValueError, match="min_turning_radius"):
        PlannerHybridAStar(min_turning_radius=0)
    with pytest.raises(TypeError, match="no property NumMotionPrimitives, expected one of"):
        PlannerHybridAStar(NumMotionPrimitives=5)


def test_a_plan_is_drawn():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    planner = planner_on(BinaryOccupancyMap(10, 10), min_turning_radius=1)
    with pytest.raises(ValueError, match="nothing has been planned"):
        planner.show()
    path, _, _ = planner.plan([2, 2, 0], [8, 2, 0])
    figure, ax = pyplot.subplots()
    assert planner.show(ax) is ax
    assert ax.lines[0].get_xydata().tolist() == path.states[:, :2].tolist()
    pyplot.close(figure)
