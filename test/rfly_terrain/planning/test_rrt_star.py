# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""PlannerRRTStar: whole trees, valid motions, costs that only fall, the way around a wall."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kernels_as_python import as_python

from rfly_terrain import BinaryOccupancyMap, PlannerRRTStar, ValidatorOccupancyMap
from rfly_terrain.planning import tree_kernels


def walled(**options):
    """A map of 10 m with a wall at x = 5 that ends at y = 8."""
    occupancy = BinaryOccupancyMap(10, 10, 10)
    occupancy.set_occupancy((5, 0), np.ones((80, 2)))
    validator = ValidatorOccupancyMap(map=occupancy, validation_distance=0.05)
    validator.state_space.state_bounds = [[0, 10], [0, 10], [-math.pi, math.pi]]
    return PlannerRRTStar(validator, max_connection_distance=1.0, **options)


ENDS = ([1, 1, 0], [9, 1, 0])


def test_defaults_are_those_of_matlab():
    planner = PlannerRRTStar()
    assert (planner.MaxConnectionDistance, planner.BallRadiusConstant) == (0.1, 100.0)
    assert (planner.MaxNumTreeNodes, planner.MaxIterations) == (10000, 10000)
    assert (planner.ContinueAfterGoalReached, planner.GoalBias) == (False, 0.05)


def test_a_path_around_a_wall():
    planner = walled()
    path, info = planner.plan(*ENDS, seed=3)
    assert info.is_path_found
    assert info.exit_flag == 1
    assert path.states[0].tolist() == [1, 1, 0]
    assert planner.state_validator.state_space.distance(path.states[-1], ENDS[1])[0] <= 0.1
    for a, b in zip(path.states[:-1], path.states[1:], strict=True):
        assert planner.state_validator.is_motion_valid(a, b)[0]
        assert planner.state_validator.state_space.distance(a, b)[0] <= 1.0 + 1e-9
    # at least the two straight lines over the wall's end
    assert path.length >= 2 * math.hypot(4, 7) - 0.2
    assert path.length == pytest.approx(info.path_costs[-1])


def test_the_tree_is_whole_and_its_costs_are_those_of_its_motions():
    """Every node leads to the start, after many of them have got other parents."""
    planner = walled(continue_after_goal_reached=True, max_iterations=3000)
    path, info = planner.plan(*ENDS, seed=5)
    space = planner.state_validator.state_space
    assert info.exit_flag == 2
    assert info.num_iterations == 3000
    lengths = np.zeros(info.num_nodes)
    lengths[1:] = space.distance(info.tree_states[info.tree_parents[1:]], info.tree_states[1:])
    costs = np.zeros(info.num_nodes)
    depth = np.zeros(info.num_nodes, int)
    for node in range(info.num_nodes):
        at = node
        while at > 0:
            costs[node] += lengths[at]
            depth[node] += 1
            at = info.tree_parents[at]
            assert depth[node] < info.num_nodes
    # the nodes at the goal; the best of them ends the path
    at_goal = space.distance(info.tree_states, np.tile(ENDS[1], (info.num_nodes, 1))) <= 0.1
    assert costs[at_goal].min() == pytest.approx(info.path_costs[-1])
    assert path.length == pytest.approx(info.path_costs[-1])
    # a parent may come later than its child only where a node was connected anew
    assert (info.tree_parents[1:] > np.arange(1, info.num_nodes)).any()


def test_costs_only_fall_and_more_iterations_do_not_harm():
    planner = walled(continue_after_goal_reached=True, max_iterations=4000)
    _, info = planner.plan(*ENDS, seed=5)
    known = info.path_costs[~np.isnan(info.path_costs)]
    assert (np.diff(known) <= 1e-9).all()
    assert known[-1] < known[0]
    first = walled().plan(*ENDS, seed=5)[1]
    assert info.path_costs[first.num_iterations - 1] >= known[-1]


def test_the_same_seed_gives_the_same_tree():
    one = walled().plan(*ENDS, seed=9)[1]
    same = walled().plan(*ENDS, seed=9)[1]
    other = walled().plan(*ENDS, seed=10)[1]
    assert np.array_equal(one.tree_states, same.tree_states)
    assert not np.array_equal(one.tree_states[:5], other.tree_states[:5])


def test_limits_of_nodes_and_iterations():
    path, info = walled(max_num_tree_nodes=20).plan(*ENDS, seed=1)
    assert (path.num_states, info.exit_flag, info.num_nodes) == (0, 3, 20)
    path, info = walled(max_iterations=15).plan(*ENDS, seed=1)
    assert (path.num_states, info.exit_flag, info.num_iterations) == (0, 2, 15)
    assert np.isnan(info.path_costs).all()


def test_no_way_is_found_where_there_is_none():
    planner = walled(max_iterations=500)
    planner.state_validator.map.set_occupancy((5, 0), np.ones((100, 2)))
    path, info = planner.plan(*ENDS, seed=1)
    assert not info.is_path_found
    assert path.states.shape == (0, 3)
    assert (info.tree_states[:, 0] <= 5).all()


@pytest.mark.parametrize(
    ("start", "text"),
    [([5.05, 1, 0], "start: .* is not a free place"), ([11, 1, 0], "start: .* is not a free")],
)
def test_bad_starts_are_refused(start, text):
    with pytest.raises(ValueError, match=text):
        walled().plan(start, ENDS[1])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"goal_bias": 1.5}, "goal_bias: 1.5"),
        ({"max_iterations": 0}, "max_iterations: 0"),
        ({"max_iterations": 1.5}, "expected a whole number"),
        ({"state_validator": 1}, "state_validator: int, expected a ValidatorOccupancyMap"),
    ],
)
def test_bad_properties_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        PlannerRRTStar(**options)


def test_the_compiled_tree_is_the_python_one():
    """In Python an index beyond an array is an error."""
    planner = walled()
    space = planner.state_validator.kernel_space()
    samples = planner.state_validator.state_space.sample_uniform(400, np.random.default_rng(7))
    samples[::20] = ENDS[1]
    growth = tree_kernels.Growth(1.0, 100.0, 0.1, True)
    results = []
    for grow in (as_python(tree_kernels.grow, tree_kernels), tree_kernels.grow):
        tree = tree_kernels.Tree(np.zeros((300, 3)), np.zeros(300), np.full(300, -1))
        tree.states[0] = ENDS[0]
        costs = np.full(400, np.nan)
        found = grow(space, growth, np.array(ENDS[1], float), samples, tree, costs)
        results.append((found, tree, costs))
    (found, tree, costs), (same_found, same_tree, same_costs) = results
    assert found == same_found
    assert found[1] > 100
    assert tree.parents.tolist() == same_tree.parents.tolist()
    assert tree.states == pytest.approx(same_tree.states, abs=1e-12)
    assert tree.costs == pytest.approx(same_tree.costs, abs=1e-12)
    assert costs == pytest.approx(same_costs, abs=1e-12, nan_ok=True)
