# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""PlannerAStarGrid against Dijkstra's algorithm in plain Python, and ways known by hand."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from kernels_as_python import as_python

from rfly_terrain import BinaryOccupancyMap, OccupancyMap, PlannerAStarGrid, matlab_mapping
from rfly_terrain.planning import grid_search_kernels, search_kernels
from rfly_terrain.planning.grid_planner import METRICS

STEP_COSTS = {
    "Euclidean": math.hypot,
    "EuclideanSquared": lambda i, j: i * i + j * j,
    "Manhattan": lambda i, j: abs(i) + abs(j),
    "Chebyshev": lambda i, j: max(abs(i), abs(j)),
}


def dijkstra(occupied, start, goal, step_cost, diagonal=True):
    """The least cost from a start to a goal, inf where no way leads."""
    steps = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    steps = [s for s in steps if diagonal or 0 in s]
    best = {start: 0.0}
    heap = [(0.0, start)]
    while heap:
        cost, (row, column) = heapq.heappop(heap)
        if (row, column) == goal:
            return cost
        if cost > best[row, column]:
            continue
        for i, j in steps:
            to = row + i, column + j
            if not (0 <= to[0] < occupied.shape[0] and 0 <= to[1] < occupied.shape[1]):
                continue
            if not occupied[to] and cost + step_cost(i, j) < best.get(to, math.inf):
                best[to] = cost + step_cost(i, j)
                heapq.heappush(heap, (best[to], to))
    return math.inf


def path_cost(path, step_cost):
    return sum(step_cost(*step) for step in np.diff(path, axis=0).tolist())


@settings(max_examples=60)
@given(
    arrays(bool, (9, 11), elements=st.booleans()),
    st.sampled_from(["Euclidean", "EuclideanSquared", "Manhattan", "Chebyshev"]),
    st.booleans(),
)
def test_the_path_is_the_cheapest(occupied, metric, diagonal):
    """The estimate Chebyshev is at most the real cost under each of the metrics."""
    occupied[0, 0] = occupied[8, 10] = False
    planner = PlannerAStarGrid(
        BinaryOccupancyMap.from_matrix(occupied),
        GCost=metric,
        HCost="Chebyshev",
        DiagonalSearch=diagonal,
    )
    path, info = planner.plan([0, 0], [8, 10])
    least = dijkstra(occupied, (0, 0), (8, 10), STEP_COSTS[metric], diagonal)
    assert info.path_cost == pytest.approx(least)

    if math.isinf(least):
        assert path.shape == (0, 2)
        return
    assert path[0].tolist() == [0, 0]
    assert path[-1].tolist() == [8, 10]
    assert not occupied[tuple(path.T)].any()
    assert np.abs(np.diff(path, axis=0)).max() == 1
    assert path_cost(path, STEP_COSTS[metric]) == pytest.approx(least)


def test_around_a_wall_by_hand():
    """Over a wall of one gap: three cells down, three across, by diagonals."""
    cells = np.zeros((4, 4))
    cells[1, :3] = 1
    planner = PlannerAStarGrid(BinaryOccupancyMap.from_matrix(cells))
    path, info = planner.plan([0, 0], [3, 3])
    assert path.tolist() == [[0, 0], [0, 1], [0, 2], [1, 3], [2, 3], [3, 3]]
    assert info.path_cost == pytest.approx(4 + math.sqrt(2))
    assert info.GCostMatrix[3, 3] == pytest.approx(4 + math.sqrt(2))
    assert np.isinf(info.g_cost_matrix[1, 0])
    planner.DiagonalSearch = "off"
    assert planner.plan([0, 0], [3, 3])[1].PathCost == 6


def test_the_world_frame():
    planner = PlannerAStarGrid(BinaryOccupancyMap(5, 5, 2, local_origin_in_world=(10, 20)))
    path, _ = planner.plan([10.1, 20.1], [11.1, 20.1], "world")
    assert path == pytest.approx(np.array([[10.25, 20.25], [10.75, 20.25], [11.25, 20.25]]))


def test_unknown_cells_are_not_entered():
    m = OccupancyMap(3, 1)
    m.set_occupancy([[0.5, 0.5], [2.5, 0.5]], 0.1)
    planner = PlannerAStarGrid(m)
    assert planner.plan([0, 0], [0, 2])[0].size == 0
    m.set_occupancy([[1.5, 0.5]], 0.1)
    assert planner.plan([0, 0], [0, 2])[0].tolist() == [[0, 0], [0, 1], [0, 2]]


def test_own_cost_functions_get_whole_arrays():
    """Row 0 is expensive: the path leaves it at once."""

    def cost(a, b):
        assert a.shape == b.shape == (15, 2)
        return 1.0 + 10.0 * (b[:, 0] == 0)

    planner = PlannerAStarGrid(
        BinaryOccupancyMap(5, 3), g_cost=cost, h_cost=lambda a, b: np.zeros(len(a))
    )
    path, info = planner.plan([0, 0], [0, 4])
    assert path[1:-1, 0].min() == 1
    assert info.path_cost == 3 + 11
    with pytest.raises(ValueError, match="h_cost: 1 costs for 15 pairs"):
        PlannerAStarGrid(BinaryOccupancyMap(5, 3), h_cost=lambda a, b: 1).plan([0, 0], [0, 4])
    with pytest.raises(ValueError, match="of at least 0"):
        PlannerAStarGrid(BinaryOccupancyMap(5, 3), g_cost=lambda a, b: 0 * a[:, 0] - 1).plan(
            [0, 0], [0, 4]
        )


def test_the_estimate_and_the_tie_breaker_save_cells():
    empty = BinaryOccupancyMap(60, 60)
    plain = PlannerAStarGrid(empty, HCost=lambda a, b: np.zeros(len(a)))
    guided = PlannerAStarGrid(empty)
    eager = PlannerAStarGrid(empty, TieBreaker="on")
    ends = [5, 5], [40, 52]
    explored = [p.plan(*ends)[1].num_nodes_explored for p in (plain, guided, eager)]
    assert explored[0] > explored[1] >= explored[2]
    costs = {round(p.plan(*ends)[1].path_cost, 9) for p in (plain, guided, eager)}
    assert costs == {round(35 * math.sqrt(2) + 12, 9)}


@pytest.mark.parametrize(
    ("start", "goal", "text"),
    [
        ([-1, 0], [1, 1], "start: .* is off the map"),
        ([0, 0], [9, 9], "goal: .* is off the map"),
        ([0, 0], [1, 1], "goal: .* is not in a free cell"),
        ([0.5, 0], [1, 0], "start: expected whole rows"),
    ],
)
def test_bad_places_are_refused(start, goal, text):
    planner = PlannerAStarGrid(BinaryOccupancyMap.from_matrix([[0, 0], [0, 1]]))
    with pytest.raises(ValueError, match=text):
        planner.plan(start, goal)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"map": 3}, "map: int, expected an occupancy map"),
        ({"g_cost": "euclidean"}, "g_cost: 'euclidean', expected one of Chebyshev"),
        ({"tie_breaker": "yes"}, "tie_breaker: 'yes', expected on or off"),
    ],
)
def test_bad_properties_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        PlannerAStarGrid(**options)


def test_matlabs_names():
    planner = matlab_mapping.plannerAStarGrid(matlab_mapping.binaryOccupancyMap(3, 3))
    path, info = matlab_mapping.plan(planner, [0, 0], [2, 2])
    assert path.tolist() == [[0, 0], [1, 1], [2, 2]]
    assert info.NumNodesExplored == 3


def test_rows_and_columns_may_count_from_one():
    nav = matlab_mapping.one_based
    for planner in (nav.plannerAStarGrid(), nav.plannerAStarGrid(nav.binaryOccupancyMap(10, 10))):
        assert nav.plan(planner, [1, 1], [3, 3])[0].tolist() == [[1, 1], [2, 2], [3, 3]]
        world, _ = nav.plan(planner, [0.5, 9.5], [2.5, 7.5], "world")
        assert world.tolist() == [[0.5, 9.5], [1.5, 8.5], [2.5, 7.5]]
        with pytest.raises(ValueError, match=r"start: .* is off the map"):
            nav.plan(planner, [0, 1], [3, 3])


def test_a_plan_is_drawn():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    planner = PlannerAStarGrid(BinaryOccupancyMap(5, 5))
    with pytest.raises(ValueError, match="nothing has been planned"):
        planner.show()
    planner.plan([0, 0], [0, 2])
    figure, ax = pyplot.subplots()
    assert matlab_mapping.show(planner, ax) is ax
    reached, path, *_ = ax.lines
    assert path.get_xydata().tolist() == [[0.5, 4.5], [1.5, 4.5], [2.5, 4.5]]
    assert len(reached.get_xydata()) == int(
        np.isfinite(planner.plan([0, 0], [0, 2])[1].g_cost_matrix).sum()
    )
    pyplot.close(figure)


def test_the_compiled_search_is_the_python_one(monkeypatch):
    """An index beyond an array is an error in Python; the heap grows, too."""
    monkeypatch.setattr(grid_search_kernels, "_FIRST_ROOM", 16)
    plain = as_python(grid_search_kernels.search_cells, grid_search_kernels, search_kernels)
    free = np.random.default_rng(2).random((15, 20)) < 0.75
    free[0, 0] = free[14, 19] = True
    steps = np.array([(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)])
    step_costs = np.hypot(*steps.T)[:, None]
    given = grid_search_kernels.GIVEN, np.zeros(free.size)
    go_on = np.zeros(1, np.bool_)
    results = []
    for search in (plain, grid_search_kernels.search_cells):
        costs = np.full(free.size, np.inf)
        parents = np.full(free.size, -1)
        explored = search(free, steps, step_costs, *given, 0, free.size - 1, costs, parents, go_on)
        results.append((explored, costs.tolist(), parents.tolist()))

    assert results[0] == results[1]


@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_by_name_explores_what_the_same_function_does(metric, diagonal):
    free = np.random.default_rng(5).random((30, 40)) < 0.8
    free[0, 0] = free[29, 39] = True
    m = BinaryOccupancyMap.from_matrix(~free)
    options = {"diagonal_search": diagonal, "tie_breaker": True}
    by_name = PlannerAStarGrid(m, h_cost=metric, **options)
    by_function = PlannerAStarGrid(m, h_cost=METRICS[metric], **options)
    path, info = by_name.plan([0, 0], [29, 39])
    same_path, same_info = by_function.plan([0, 0], [29, 39])
    assert len(path) >= 30
    np.testing.assert_array_equal(path, same_path)
    assert info.num_nodes_explored == same_info.num_nodes_explored
