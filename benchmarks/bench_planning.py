# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Planning on 1,000 x 1,000 cells, against SciPy's Dijkstra and OMPL's BIT*.

Dijkstra uses the same costs and knows no turning radius; BIT* plans among Dubins paths. Rows of
peers that are not installed are left out.
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from oracles.planning import least_costs

from benchmarks.budgets import SCALED, scaled
from benchmarks.harness import DISAGREES, Row, agreement, measure
from rfly_terrain.planning import cost_kernels as plan_kernels
from rfly_terrain.planning.drive import PlanPose, check_drive, plan_drive, weights
from rfly_terrain.planning.planner import warm_up

SIZE = 1_000
RADIUS = 4.0
"""Radius of turns on cells of 1 m, m."""
LIMIT_S = 1.0
OMPL_S = 30.0
"""Time limit of OMPL for its first path, s."""
CHECKS = 50_000
"""Checks of states that are timed."""


class Costs(NamedTuple):
    """A grid of costs."""

    cost: NDArray[np.int8]
    resolution: float
    origin: tuple[float, float]


def rows() -> Iterator[Row]:
    """Yield a field of costs and a whole plan, from corner to corner.

    The grounds are rough, and with walls to drive around.
    """
    warm_up()
    yield field("rough ground", rough_ground())
    for name, grid in (("rough ground", rough_ground()), ("walls", walls())):
        yield plan(name, grid)
    if importlib.util.find_spec("ompl"):
        yield compared_with_ompl(walls())


def rough_ground() -> Costs:
    """Return smooth noise: a sixth of the cells is forbidden, in patches of some tens of metres."""
    import cv2

    noise = cv2.GaussianBlur(np.random.default_rng(1).normal(size=(SIZE, SIZE)), (0, 0), 8.0)
    noise /= noise.std()
    cost = np.where(noise > 1.0, 100, np.clip((noise + 1.0) / 2.0, 0.0, 1.0) * 99.0).astype(np.int8)
    cost[:20, :20] = cost[-20:, -20:] = 0
    return Costs(cost, 1.0, (0.0, 0.0))


def walls() -> Costs:
    """Return level ground with nine walls, which almost cross it from alternating sides."""
    cost = np.zeros((SIZE, SIZE), np.int8)
    for k in range(1, 10):
        cost[100 * k : 100 * k + 4, slice(30, None) if k % 2 else slice(None, -30)] = 100
    return Costs(cost, 1.0, (0.0, 0.0))


def field(name: str, grid: Costs) -> Row:
    """Return the least costs from all cells to one, in 16 directions."""
    weight = weights(grid)
    goal = (SIZE - 10, SIZE - 10)
    start = (9, 9)
    ours = plan_kernels.cost_to_go(weight, goal, start, math.inf)
    peer = least_costs(weight, goal)

    # both reach the same cells
    known = np.isfinite(peer)
    same_cells = np.array_equal(known, np.isfinite(ours))
    agree = (
        agreement(ours[known], peer[known], 0.05, "cells")
        if same_cells
        else f"{DISAGREES}: other cells reached"
    )

    seconds = measure(
        lambda: plan_kernels.cost_to_go(weight, goal, start, math.inf),
        lambda: least_costs(weight, goal),
        repeat=2,
        warm_ups=0,
        clock=time.process_time,
    )

    return Row(
        f"cost to go on {SIZE:,} x {SIZE:,}, {name}",
        *seconds,
        "scipy.sparse.csgraph.dijkstra, graph included",
        3.0,
        agree=agree,
        note="CPU time of one thread",
    )


def plan(name: str, grid: Costs) -> Row:
    """Return a plan from corner to corner, with the weights of its cells: at most a second."""
    start = PlanPose(9.5, 9.5, 0.0)
    goal = PlanPose(SIZE - 9.5, SIZE - 9.5, 0.0)

    # our path beside Dijkstra's cost
    best = float(least_costs(weights(grid), (SIZE - 10, SIZE - 10))[9, 9])
    path = plan_drive(grid, start, goal, RADIUS)
    longer = path.cost / best - 1.0
    fits = check_drive(path, grid) and longer < 0.05
    agree = f"no forbidden cell; {100 * longer:+.1f} % of Dijkstra's cost without a turning radius"

    seconds: list[float] = []

    def timed() -> Any:
        """Plan once, and note the processor time."""
        begin = time.process_time()
        plan_drive(grid, start, goal, RADIUS)
        seconds.append(time.process_time() - begin)

    for _ in range(4):
        timed()

    return Row(
        f"drive plan on {SIZE:,} x {SIZE:,}, {name}",
        float(np.median(seconds[1:])),
        scaled(LIMIT_S),
        f"1 s, {SCALED}",
        1.0,
        agree=agree if fits else f"{DISAGREES}: {agree}",
        note=f"turning radius {RADIUS:g} m, {path.length:,.0f} m; CPU time of one thread",
        kind="at most",
    )


def compared_with_ompl(grid: Costs) -> Row:
    """Compare paths from corner to corner around walls: ours, and the first that BIT* finds.

    A metre costs 1 in all free cells. OMPL asks Python about each state, through the compiled
    function that our search uses, at samples with the same spacing as ours. The wheels of OMPL
    hold no headers to compile a checker with, so the time of as many checks is taken off.
    """
    from ompl import base, geometric, util

    util.setLogLevel(util.LOG_WARN)
    util.RNG.setSeed(1)

    # the same question for OMPL
    weight = weights(grid)
    place = (*grid.origin, grid.resolution)
    start = PlanPose(9.5, 9.5, 0.0)
    goal = PlanPose(SIZE - 9.5, SIZE - 9.5, 0.0)
    space = base.DubinsStateSpace(RADIUS)
    bounds = base.RealVectorBounds(2)
    bounds.setLow(0.0)
    bounds.setHigh(SIZE * grid.resolution)
    space.setBounds(bounds)
    setup = geometric.SimpleSetup(space)
    checks = 0

    def is_free(state: Any) -> bool:
        nonlocal checks
        checks += 1
        return bool(plan_kernels.weight_at(weight, place, state.getX(), state.getY()) > 0.0)

    setup.setStateValidityChecker(is_free)
    information = setup.getSpaceInformation()
    information.setStateValidityCheckingResolution(
        plan_kernels.STEP * grid.resolution / space.getMaximumExtent()
    )

    ends = []
    for pose in (start, goal):
        state = space.allocState()
        state.setX(pose.x)
        state.setY(pose.y)
        state.setYaw(pose.heading)
        ends.append(state)
    setup.setStartAndGoalStates(*ends)
    planner = geometric.BITstar(information)
    planner.setStopOnSolnImprovement(True)
    setup.setPlanner(planner)

    # both plans
    plan_drive(grid, start, goal, RADIUS)
    begin = time.process_time()
    path = plan_drive(grid, start, goal, RADIUS)
    between = time.process_time()
    setup.solve(OMPL_S)
    end = time.process_time()

    # the time of their checks
    in_solve = checks
    for _ in range(CHECKS):
        is_free(ends[0])
    of_checks = (time.process_time() - end) * in_solve / CHECKS

    # the first path that either finds
    is_solved = setup.haveExactSolutionPath()
    length = setup.getSolutionPath().length() if is_solved else math.inf
    fits = check_drive(path, grid) and path.length <= length
    lengths = (
        f"ours {path.length:,.0f} m, theirs {length:,.0f} m"
        if is_solved
        else f"none by OMPL in {OMPL_S:g} s"
    )

    return Row(
        "drive plan around walls, OMPL's first path",
        between - begin,
        end - between - of_checks,
        "OMPL BIT*, Dubins paths, without the time of its checks",
        10.0,
        agree=f"no forbidden cell; {lengths}" if fits else f"{DISAGREES}: {lengths}",
        note=f"CPU time of one thread; {in_solve:,} checks took {of_checks:.2g} s more",
    )
