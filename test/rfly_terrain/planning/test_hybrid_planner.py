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
)


def test_defaults_follow_from_the_map():
    """⌈√2 cells⌉ and 2 lengths / π."""
    planner = PlannerHybridAStar(BinaryOccupancyMap(10, 10, 0.5))
    assert planner.turning_radius() == pytest.approx(2 * 3 / math.pi)
    planner.MotionPrimitiveLength = 5
    assert planner.turning_radius() == pytest.approx(10 / math.pi)
    planner.MinTurningRadius = 4
    assert planner.turning_radius() == 4
    planner.MinTurningRadius = 3
    with pytest.raises(ValueError, match="at most a quarter of the turning circle"):
        planner.turning_radius()


def test_half_a_circle_and_straight_on():
    planner = PlannerHybridAStar(BinaryOccupancyMap(40, 40, 2), min_turning_radius=4)
    path, directions, info = planner.plan([10, 10, 0], [10, 18, math.pi])
    assert info.path_cost == pytest.approx(4 * math.pi, rel=1e-6)
    assert (directions == 1).all()
    assert path[0].tolist() == [10, 10, 0]
    assert path[-1].tolist() == [10, 18, math.pi]
    # on the circle about (10, 14)
    assert np.hypot(path[:, 0] - 10, path[:, 1] - 14) == pytest.approx(4)
    assert np.hypot(*np.diff(path[:, :2], axis=0).T).max() <= 1.0


def test_backwards_by_the_costs():
    planner = PlannerHybridAStar(BinaryOccupancyMap(60, 60, 2), min_turning_radius=4)
    start = [30, 30, 0]
    back = [26, 30, 0]
    path, directions, info = planner.plan(start, back)
    assert (directions == -1).all()
    assert info.path_cost == pytest.approx(3 * 4)
    assert path[:, 1] == pytest.approx(30)
    planner.ReverseCost = 100
    planner.ForwardCost = 2
    _, directions, info = planner.plan(start, back)
    assert (directions == 1).all()
    # Dubins' loop backwards by less than a diameter is longer than a whole circle
    assert info.path_cost > 2 * 2 * math.pi * 4


def test_paths_keep_to_free_cells():
    occupancy = BinaryOccupancyMap(30, 30, 2)
    occupancy.set_occupancy((10, 0), np.ones((48, 2)))
    planner = PlannerHybridAStar(occupancy, MinTurningRadius=2)
    path, _, info = planner.plan([5, 5, 0], [20, 5, 0])
    assert info.is_path_found
    assert not occupancy.check_occupancy(path[:, :2]).any()
    assert path[:, 1].max() > 24
    occupancy.set_occupancy((10, 24), np.ones((12, 2)))
    path, directions, info = planner.plan([5, 5, 0], [20, 5, 0])
    assert (path.shape, directions.size) == ((0, 3), 0)
    assert (info.IsPathFound, info.reason, info.PathCost) == (False, "unreachable", math.inf)


def test_unknown_cells_are_not_entered():
    m = OccupancyMap(20, 10, 2)
    m.set_occupancy((0, 0), np.full((20, 10), 0.1))
    m.set_occupancy((15, 0), np.full((20, 10), 0.1))
    planner = PlannerHybridAStar(m, MinTurningRadius=1)
    assert not planner.plan([2, 5, 0], [18, 5, 0])[2].is_path_found
    m.set_occupancy((0, 4), np.full((4, 40), 0.1))
    assert planner.plan([2, 5, 0], [18, 5, 0])[2].is_path_found


@pytest.mark.parametrize(
    ("options", "start", "text"),
    [
        ({}, [50, 5, 0], "start: .* is not in a free cell"),
        ({}, [5, 5], "start: 2 numbers, expected 3"),
        ({"interpolation_distance": 1e-9}, [5, 5, 0], "interpolation_distance: 1e-09 m, .* 4e-07"),
        ({"reverse_cost": 0.5}, [5, 5, 0], "reverse_cost: 0.5, expected at least"),
    ],
)
def test_bad_requests_are_refused(options, start, text):
    planner = PlannerHybridAStar(BinaryOccupancyMap(10, 10), min_turning_radius=1, **options)
    with pytest.raises(ValueError, match=text):
        planner.plan(start, [8, 8, 0])


def test_bad_properties_are_refused():
    with pytest.raises(ValueError, match="min_turning_radius"):
        PlannerHybridAStar(min_turning_radius=0)
    with pytest.raises(TypeError, match="no option NumMotionPrimitives, expected one of"):
        PlannerHybridAStar(NumMotionPrimitives=5)


def test_a_plan_is_drawn():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    planner = PlannerHybridAStar(BinaryOccupancyMap(10, 10), min_turning_radius=1)
    with pytest.raises(ValueError, match="nothing has been planned"):
        planner.show()
    path, _, _ = planner.plan([2, 2, 0], [8, 2, 0])
    figure, ax = pyplot.subplots()
    assert planner.show(ax) is ax
    assert ax.lines[0].get_xydata().tolist() == path[:, :2].tolist()
    pyplot.close(figure)


def test_a_path_from_a_pose_to_itself_is_that_pose():
    planner = PlannerHybridAStar(BinaryOccupancyMap(10, 10), min_turning_radius=1)
    path, directions, info = planner.plan([1, 1, 0], [1, 1, 0])
    assert (path.tolist(), directions.tolist()) == ([[1, 1, 0]], [1])
    assert (info.is_path_found, info.path_cost) == (True, 0.0)


@pytest.mark.parametrize("radius", [1e-3, 2.8e7])
def test_extreme_radii_end(radius):
    """A tiny one is driven like a point; a huge one leaves straight lines only."""
    planner = PlannerHybridAStar(BinaryOccupancyMap(20, 20), min_turning_radius=radius)
    path, _, info = planner.plan([2, 2, 0], [18, 2, 0])
    assert info.path_cost == pytest.approx(16)
    assert path[:, 1] == pytest.approx(2)
    found = planner.plan([2, 2, 0], [10, 10, 1.5])[2].is_path_found
    assert found == (radius < 1)


@pytest.mark.parametrize("radius", [1e-9, 1e12])
def test_a_radius_that_rounding_spoils_is_refused(radius):
    """The distances go from a thousandth of a cell to 10⁶ diagonals, √800 m each."""
    planner = PlannerHybridAStar(BinaryOccupancyMap(20, 20), min_turning_radius=radius)
    limits = r"at least 0\.001 and of at most 28284271"
    with pytest.raises(ValueError, match=f"turning_radius: .*{limits}"):
        planner.plan([2, 2, 0], [18, 2, 0])
