# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Driven paths: lengths known by hand, and dense samples of every path and bend."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from oracles.planning import least_costs

from rfly_common.errors import PlanError
from rfly_common.kernels.dubins import shortest_dubins
from rfly_terrain.planning import cost_kernels as plan_kernels
from rfly_terrain.planning.drive import PlanPose, check_drive, plan_drive, weights


@dataclass
class Grid:
    cost: np.ndarray
    resolution: float = 1.0
    origin: tuple[float, float] = (-7.0, 3.0)
    at: tuple[float, float] = field(init=False)

    def __post_init__(self):
        self.cost = np.asarray(self.cost, np.int8)

    def cells(self, points):
        column, row = np.floor((points - self.origin) / self.resolution).astype(int).T
        return self.cost[row, column]

    def pose(self, row, column, heading=None):
        """Return the pose in the middle of a cell."""
        x, y = (np.array([column, row]) + 0.5) * self.resolution + self.origin
        return PlanPose(float(x), float(y), heading)


def check(path, grid, start, goal, radius, reverses=False):
    """Check by dense samples: free cells only, no bend too tight, and the right ends."""
    fine = path.poses(0.01 * grid.resolution)

    # free cells
    cells = grid.cells(fine[:, :2])
    assert cells.min() >= 0
    assert cells.max() < 100

    # bends
    step = np.hypot(*np.diff(fine[:, :2], axis=0).T)
    long = step > 1e-4 * grid.resolution
    turn = np.abs(np.remainder(np.diff(fine[:, 2]) + math.pi, 2 * math.pi) - math.pi)
    assert np.all(turn[long] <= step[long] / radius * (1 + 1e-3) + 1e-9)

    # headings along the way, so that no part is driven backwards
    along = np.arctan2(*np.diff(fine[:, :2], axis=0)[:, ::-1].T)
    off = np.abs(np.remainder(along - fine[:-1, 2] + math.pi, 2 * math.pi) - math.pi)
    if reverses:
        off = np.minimum(off, math.pi - off)
    assert np.all(off[long] <= step[long] / radius + 1e-6)

    # ends
    assert fine[0, :2] == pytest.approx([start.x, start.y], abs=1e-9)
    assert fine[-1, :2] == pytest.approx([goal.x, goal.y], abs=1e-6)
    for pose, heading in ((start, fine[0, 2]), (goal, fine[-1, 2])):
        if pose.heading is not None:
            assert math.cos(heading - pose.heading) == pytest.approx(1.0)

    assert step.sum() == pytest.approx(path.length, rel=1e-3)
    assert check_drive(path, grid)


@pytest.mark.parametrize("start_heading", [0.0, 2.0, 4.5])
@pytest.mark.parametrize("goal_heading", [0.3, 3.0, 5.5])
def test_on_an_empty_plain_the_way_is_dubins(start_heading, goal_heading):
    grid = Grid(np.zeros((120, 140)), 0.5)
    start = grid.pose(40, 50, start_heading)
    goal = grid.pose(70, 90, goal_heading)
    path = plan_drive(grid, start, goal, 4.0)
    word = shortest_dubins(start.x, start.y, start_heading, goal.x, goal.y, goal_heading, 4.0)
    assert path.length == pytest.approx(sum(word[:3]), abs=1e-6)
    assert path.cost == pytest.approx(
        path.length, rel=1e-6
    )  # the best ground: a metre costs a metre
    check(path, grid, start, goal, 4.0)


def test_free_headings_at_both_ends_give_the_straight_line():
    grid = Grid(np.zeros((60, 60)))
    start = grid.pose(5, 8)
    goal = grid.pose(50, 41)
    path = plan_drive(grid, start, goal, 6.0)
    assert path.length == pytest.approx(math.hypot(45, 33), abs=1e-6)
    check(path, grid, start, goal, 6.0)


@pytest.mark.parametrize(
    ("left", "ahead"), [(1.0, 0.5), (0.2, -0.1), (-3.0, 1.0), (5.0, -9.0), (-20.0, 0.0)]
)
def test_the_way_to_a_point_is_the_best_over_all_headings(left, ahead):
    word = plan_kernels.shortest_to_point(0.0, 0.0, 0.0, ahead, left, 3.0)
    end = (0.0, 0.0, 0.0)
    for k in range(3):
        end = plan_kernels.piece_end(*end, word[k], word[3 + k] / 3.0)
    assert end[:2] == pytest.approx((ahead, left), abs=1e-7)
    every = [
        sum(shortest_dubins(0, 0, 0, ahead, left, h, 3.0)[:3])
        for h in np.radians(np.arange(0, 360, 0.25))
    ]
    assert min(every) - 1e-3 * 3.0 <= sum(word[:3]) <= min(every) + 1e-9


def test_around_a_wall():
    """The path leads around the end of a wall, 5 cells from the map's edge: computed by hand."""
    cost = np.zeros((60, 60))
    cost[30:32, :55] = 100
    grid = Grid(cost)
    start = grid.pose(10, 40)
    goal = grid.pose(51, 40)
    path = plan_drive(grid, start, goal, 2.0)
    check(path, grid, start, goal, 2.0)
    # a string around both corners of the wall's end, (55, 30) and (55, 32), from (40.5, 10.5) to
    # (40.5, 51.5)
    string = math.hypot(14.5, 19.5) + 2.0 + math.hypot(14.5, 19.5)
    assert string < path.length < 1.04 * string


def bay():
    """A road of 6 m along x with a dead-end bay, 2 m wide and 6 m long, south of it."""
    cost = np.full((60, 80), 100)
    cost[32:44, :] = 0
    cost[20:32, 36:40] = 0
    return Grid(cost, 0.5)


@pytest.mark.parametrize("free_start", [False, True])
def test_backwards_into_a_bay_that_is_too_narrow_to_turn_in(free_start):
    """A vehicle that reverses passes by the bay, stops and backs in.

    The goal is nose out at the bay's end. A vehicle that drives forwards only can't reach it.
    """
    grid = bay()
    start = grid.pose(38, 10, None if free_start else 0.0)
    goal = PlanPose(12.0, 14.5, math.pi / 2)
    with pytest.raises(PlanError, match="can drive forwards with") as refused:
        plan_drive(grid, start, goal, 2.0)
    assert refused.value.reason == "too_tight"
    path = plan_drive(grid, start, goal, 2.0, backward_cost=2.0, cusp_cost=5.0)
    check(path, grid, start, goal, 2.0, reverses=True)
    lengths = path.pieces[:, 0]
    assert lengths[0] > 0 > lengths[-1]
    assert np.count_nonzero(np.diff(np.sign(lengths))) == 1
    assert path.cost == pytest.approx(
        lengths[lengths > 0].sum() - 2.0 * lengths[lengths < 0].sum() + 5.0, rel=1e-6
    )


def test_on_a_plain_it_is_the_cheapest_of_reeds_and_shepps():
    """Straight back is shorter than any turn; at a high price it is Dubins' path again."""
    grid = Grid(np.zeros((60, 60)))
    start = grid.pose(30, 30, 0.0)
    goal = grid.pose(30, 25, 0.0)
    path = plan_drive(grid, start, goal, 3.0, backward_cost=2.0, cusp_cost=5.0)
    check(path, grid, start, goal, 3.0, reverses=True)
    assert path.pieces == pytest.approx(np.array([[-5.0, 0.0]]), abs=1e-9)
    assert path.cost == pytest.approx(10.0)
    straight_back = plan_drive(
        grid, start, PlanPose(goal.x, goal.y), 3.0, backward_cost=2.0, cusp_cost=5.0
    )
    assert straight_back.pieces == pytest.approx(np.array([[-5.0, 0.0]]), abs=1e-9)
    ahead = plan_drive(grid, start, goal, 3.0, backward_cost=20.0, cusp_cost=50.0)
    assert ahead.cost == pytest.approx(plan_drive(grid, start, goal, 3.0).cost, rel=1e-3)


def test_the_cheaper_detour_is_taken():
    """The path leads around a strip whose metres cost 3 instead of 1.

    The way across it is shorter, the way around it is cheaper.
    """
    cost = np.zeros((40, 40))
    cost[10:30, :32] = 99
    grid = Grid(cost)
    start = grid.pose(5, 25)
    goal = grid.pose(34, 25)
    path = plan_drive(grid, start, goal, 2.0)
    check(path, grid, start, goal, 2.0)
    straight = 9 + 20 * 3  # 29 m, of which 20 cost three times as much
    around = 2 * math.hypot(6.5, 4.5) + 20  # around the corners (32, 10) and (32, 30)
    assert around <= path.cost < 1.05 * around < straight
    assert grid.cells(path.poses(0.1)[:, :2]).max() == 0


def hills(seed, size=220, smooth=4.0, threshold=0.6):
    from scipy.ndimage import gaussian_filter

    field = gaussian_filter(np.random.default_rng(seed).normal(size=(size, size)), smooth)
    field /= field.std()
    cost = np.where(field > threshold, 100, np.clip((field + 1) / 2, 0, 1) * 99)
    cost[:15, :15] = cost[-15:, -15:] = 0
    return Grid(cost, 0.7)


@pytest.mark.parametrize("seed", [0, 1, 3, 5])
@pytest.mark.parametrize("radius", [1.0, 3.5])
def test_ways_through_random_ground(seed, radius):
    grid = hills(seed)
    start = grid.pose(7, 7, 0.5)
    goal = grid.pose(212, 212, None if seed % 2 else 1.0)
    path = plan_drive(grid, start, goal, radius)
    check(path, grid, start, goal, radius)
    # not far from the best: Dijkstra of SciPy, which knows no turning radius
    best = least_costs(weights(grid), (212, 212))[7, 7] * grid.resolution
    assert path.cost < 1.15 * best + 2 * math.pi * radius


@pytest.mark.parametrize("seed", [2, 4])
def test_unreachable_is_what_scipy_calls_another_region(seed):
    from scipy.ndimage import label

    grid = hills(seed)
    regions, _ = label((grid.cost >= 0) & (grid.cost < 100))
    assert regions[7, 7] != regions[212, 212]
    with pytest.raises(PlanError, match="no way leads") as error:
        plan_drive(grid, grid.pose(7, 7), grid.pose(212, 212), 1.0)
    assert error.value.reason == "unreachable"


def test_cost_to_go_beside_scipy():
    """SciPy finds the same costs.

    A search that stops early, at the start, has exact costs up to there and a lower bound beyond.
    """
    weight = weights(hills(11, 150))

    # all of the map
    ours = plan_kernels.cost_to_go(weight, (3, 4), (140, 140), 1e9)
    peer = least_costs(weight, (3, 4))
    assert np.isfinite(peer).mean() > 0.5
    np.testing.assert_allclose(ours, peer, rtol=1e-5)

    # up to the start only
    known = np.argwhere(np.isfinite(peer))
    start = tuple(known[np.argsort(peer[tuple(known.T)])[len(known) // 2]].tolist())
    early = plan_kernels.cost_to_go(weight, (3, 4), start, 5.0)
    near = peer < peer[start] + 4
    np.testing.assert_allclose(early[near], peer[near], rtol=1e-5)
    assert np.all(early <= peer * (1 + 1e-5))
    assert early.max() < peer[start] + 7  # beyond the start it does not go on for long

    # level ground
    level = plan_kernels.cost_to_go(np.ones((50, 80), np.float32), (0, 0), (49, 79), 1e9)
    row, column = np.mgrid[:50, :80]
    straight = np.hypot(row, column)
    assert np.all(level >= straight * (1 - 1e-5))
    assert np.all(level <= straight * 1.0275 + 1e-3)


def test_no_corner_is_cut():
    """Two blocks that touch at a corner: the way between them is closed for a point, too."""
    cost = np.zeros((20, 20))
    cost[10:, :10] = cost[:10, 10:] = 100
    grid = Grid(cost)
    with pytest.raises(PlanError, match="no way leads") as error:
        plan_drive(grid, grid.pose(4, 4), grid.pose(15, 15), 1.0)
    assert error.value.reason == "unreachable"


def test_what_is_wrong_is_said():
    cost = np.zeros((30, 30))
    cost[12:15] = 100
    cost[20, 20] = -1
    grid = Grid(cost)
    inside = grid.pose(3, 3, 0.0)
    beyond = grid.pose(25, 3)

    def reason(start, goal, radius=2.0):
        with pytest.raises(PlanError) as error:
            plan_drive(grid, start, goal, radius)
        return error.value.reason

    assert reason(inside, beyond) == "unreachable"
    assert reason(inside, grid.pose(13, 3)) == "goal_blocked"
    assert reason(grid.pose(20, 20), beyond) == "start_blocked"
    assert reason(inside, PlanPose(100.0, 5.0)) == "outside"
    assert reason(inside, inside) == "same_place"
    assert (
        reason(grid.pose(1, 1, math.pi), grid.pose(5, 25, 0.0), 6.0) == "too_tight"
    )  # no room to turn at the edge
    assert reason(inside, grid.pose(5, 5), math.nan) == "bad_radius"
    for bad in (math.nan, math.inf):
        with pytest.raises(PlanError, match="finite"):
            PlanPose(bad, 0.0)
        with pytest.raises(PlanError, match="heading"):
            PlanPose(0.0, 0.0, bad)
