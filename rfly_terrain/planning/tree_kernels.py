# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compiled kernels: states and motions on an occupancy map, and the tree of RRT*.

States are x, y (m), theta (rad).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rfly_common.arrays import Floats, Ints
from rfly_common.kernels.jit import inlined_kernel, kernel
from rfly_terrain.occupancy.cell_grid import SNAP

# results of `grow`
GOAL_REACHED = 1
MOST_ITERATIONS = 2
MOST_NODES = 3


class Space(NamedTuple):
    """Where states are valid, and how far apart they are."""

    free: Any
    """Free cells, (rows, columns) bool, row 0 on top."""
    area: tuple[float, float, float]
    """Position x, y of the bottom-left corner, m, and cells a metre."""
    bounds: Floats
    """Least and greatest x, y and theta, (3, 2)."""
    weights: tuple[float, float]
    """Weights of squared metres and squared radians in the distance of two states."""
    validation_distance: float
    """Distance between the states of a motion that are checked; inf: its ends only."""


class Growth(NamedTuple):
    """Settings of a tree."""

    reach: float
    """Longest motion that is added."""
    ball: float
    """Constant of the radius in which neighbours are rewired."""
    tolerance: float
    """Distance from the goal that counts as reached."""
    goes_on: bool
    """True to go on improving after the goal has been reached."""


class Tree(NamedTuple):
    """Nodes of a tree; the start is node 0."""

    states: Floats
    """States of the nodes, (n, 3)."""
    costs: Floats
    """Costs from the start, (n,)."""
    parents: Ints
    """Index of each node's parent, (n,), -1 of the start."""


@inlined_kernel
def _snapped(value: float) -> float:
    nearest = np.rint(value)
    return nearest if abs(value - nearest) <= SNAP else value


@kernel
def state_is_valid(space: Space, x: float, y: float, theta: float) -> bool:
    """Return whether a state lies within the bounds and in a free cell of the map.

    A point on an edge belongs to the cell on its left, or below, as in `MatrixGrid.indices`.
    """
    bounds = space.bounds
    if x < bounds[0, 0] or x > bounds[0, 1] or y < bounds[1, 0] or y > bounds[1, 1]:
        return False
    if theta < bounds[2, 0] or theta > bounds[2, 1]:
        return False

    rows, columns = space.free.shape
    u = _snapped((x - space.area[0]) * space.area[2])
    v = _snapped((y - space.area[1]) * space.area[2])
    if not (0.0 <= u <= columns and 0.0 <= v <= rows):
        return False
    column = max(math.ceil(u) - 1, 0)
    above = max(math.ceil(v) - 1, 0)
    return bool(space.free[rows - 1 - above, column])


@kernel
def states_are_valid(space: Space, states: Any, valid: Any) -> None:
    """Write whether each of states (n, 3) is valid -> valid (n,) bool."""
    for i in range(states.shape[0]):
        valid[i] = state_is_valid(space, states[i, 0], states[i, 1], states[i, 2])


@inlined_kernel
def _turn(start: float, end: float) -> float:
    """Return the shorter turn from one angle to another."""
    turn = end - start
    return turn - 2.0 * math.pi * np.rint(turn / (2.0 * math.pi))


@kernel
def distance(space: Space, a: Any, b: Any) -> float:
    """Return the distance of two states."""
    dx = b[0] - a[0]
    dy = b[1] - a[1]
    turn = _turn(a[2], b[2])
    across, around = space.weights
    return math.sqrt(across * (dx * dx + dy * dy) + around * turn * turn)


@kernel
def between(a: Any, b: Any, share: float, state: Any) -> None:
    """Write the state at a share of the motion from one state to another."""
    state[0] = a[0] + share * (b[0] - a[0])
    state[1] = a[1] + share * (b[1] - a[1])
    theta = a[2] + share * _turn(a[2], b[2])
    state[2] = theta - 2.0 * math.pi * np.rint(theta / (2.0 * math.pi))


@kernel
def valid_share(space: Space, a: Any, b: Any, state: Any) -> float:
    """Return the share of a motion up to its last valid state; -1 if its start is not valid.

    States are checked at the start, every validation distance, and at the end. `state` (3,) is
    written to.
    """
    length = distance(space, a, b)
    count = 0
    if space.validation_distance < math.inf and length > 0.0:
        count = math.ceil(length / space.validation_distance - 1e-9) - 1

    last = -1.0
    for i in range(count + 2):
        share = i * space.validation_distance / length if 0 < i <= count else min(i, 1) + 0.0
        between(a, b, share, state)
        if not state_is_valid(space, state[0], state[1], state[2]):
            return last
        last = share
    return last


@kernel
def grow(
    space: Space, growth: Growth, goal: Any, samples: Any, tree: Tree, path_costs: Any
) -> tuple[int, int, int, int]:
    """Grow a tree from its node 0 towards samples (n, 3), as RRT* does.

    Returns (result, nodes, iterations, node at the goal, -1 if none). Writes the tree and the cost
    of the best path after each iteration (NaN before there is one) -> path_costs (n,).

    S. Karaman, E. Frazzoli, Sampling-based algorithms for optimal motion planning, IJRR 30 (2011),
    algorithm 6.
    """
    states, costs, parents = tree
    room = parents.size
    new = np.empty(3)
    state = np.empty(3)
    lengths = np.empty(room)
    child = np.full(room, -1, np.int64)
    sibling = np.full(room, -1, np.int64)
    stack = np.empty(room, np.int64)
    at_goal = np.zeros(room, np.bool_)
    has_goal = False
    count = 1

    for i in range(samples.shape[0]):
        # a new state, from the nearest node towards the sample
        nearest = 0
        for node in range(count):
            lengths[node] = distance(space, states[node], samples[i])
            if lengths[node] < lengths[nearest]:
                nearest = node
        share = min(1.0, growth.reach / lengths[nearest]) if lengths[nearest] > 0.0 else 0.0
        between(states[nearest], samples[i], share, new)

        if share > 0.0 and valid_share(space, states[nearest], new, state) == 1.0:
            # the cheapest parent within the ball
            radius = min(_ball_radius(growth.ball, count), growth.reach)
            parent = nearest
            best = costs[nearest] + distance(space, states[nearest], new)
            for node in range(count):
                lengths[node] = distance(space, states[node], new)
                if node != nearest and lengths[node] <= radius:
                    total = costs[node] + lengths[node]
                    if total < best and valid_share(space, states[node], new, state) == 1.0:
                        best = total
                        parent = node
            states[count] = new
            costs[count] = best
            _set_parent(parents, child, sibling, count, parent)

            # neighbours that are cheaper through it
            for node in range(count):
                through = best + lengths[node]
                if lengths[node] > radius or through >= costs[node] - 1e-12:
                    continue
                if valid_share(space, new, states[node], state) == 1.0:
                    _leave_parent(parents, child, sibling, node)
                    _set_parent(parents, child, sibling, node, count)
                    _lower_costs(costs, child, sibling, stack, node, costs[node] - through)

            at_goal[count] = distance(space, new, goal) <= growth.tolerance
            has_goal = has_goal or at_goal[count]
            count += 1

        path_costs[i] = costs[_best_goal(costs, at_goal, count)] if has_goal else math.nan
        if has_goal and not growth.goes_on:
            return GOAL_REACHED, count, i + 1, _best_goal(costs, at_goal, count)
        if count == room:
            best_node = _best_goal(costs, at_goal, count) if has_goal else -1
            return MOST_NODES, count, i + 1, best_node
    best_node = _best_goal(costs, at_goal, count) if has_goal else -1
    return MOST_ITERATIONS, count, samples.shape[0], best_node


@inlined_kernel
def _ball_radius(ball: float, count: int) -> float:
    """Return the radius of the ball of neighbours in a tree of `count` nodes."""
    volume = 4.0 / 3.0 * math.pi
    return (ball * math.log(count) / (count * volume)) ** (1.0 / 3.0)


@kernel
def _best_goal(costs: Any, at_goal: Any, count: int) -> int:
    """Return the cheapest node at the goal; there is one."""
    best = -1
    for node in range(count):
        if at_goal[node] and (best < 0 or costs[node] < costs[best]):
            best = node
    return best


@inlined_kernel
def _set_parent(parents: Any, child: Any, sibling: Any, node: int, parent: int) -> None:
    parents[node] = parent
    sibling[node] = child[parent]
    child[parent] = node


@inlined_kernel
def _leave_parent(parents: Any, child: Any, sibling: Any, node: int) -> None:
    parent = parents[node]
    if child[parent] == node:
        child[parent] = sibling[node]
        return
    before = child[parent]
    while sibling[before] != node:
        before = sibling[before]
    sibling[before] = sibling[node]


@kernel
def _lower_costs(
    costs: Any, child: Any, sibling: Any, stack: Any, node: int, amount: float
) -> None:
    """Lower the costs of a node and all nodes that it leads to."""
    stack[0] = node
    waiting = 1
    while waiting > 0:
        waiting -= 1
        node = stack[waiting]
        costs[node] -= amount
        descendant = child[node]
        while descendant >= 0:
            stack[waiting] = descendant
            waiting += 1
            descendant = sibling[descendant]
