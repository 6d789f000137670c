# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""PlannerRRTStar: random trees of motions on an occupancy map, improved while they grow.

Source of properties, defaults, outputs and the radius of the ball: MathWorks, Navigation Toolbox,
reference pages of `plannerRRTStar` and of its `plan`; which of them were compared, docs/support.md
says. MATLAB's GoalReachedFcn is a distance here,
and its random numbers are not those of NumPy, so trees differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_number
from rfly_common.config.matlab_properties import matlab_properties
from rfly_terrain.planning.state_space import (
    NavPath,
    ValidatorOccupancyMap,
    states_of,
    validator_of,
)


def _positive(name: str, value: Any) -> float:
    return finite_number(name, value, above=0.0, error=ValueError)


def _share(name: str, value: Any) -> float:
    return finite_number(name, value, at_least=0.0, at_most=1.0, error=ValueError)


def _count(name: str, value: Any) -> int:
    number = finite_number(name, value, at_least=1.0, error=ValueError)
    if number != int(number):
        raise ValueError(f"{name}: {value!r}, expected a whole number")
    return int(number)


@matlab_properties({})
@dataclass(frozen=True, eq=False)
class TreePlanInfo:
    """Details of a plan of `PlannerRRTStar`."""

    is_path_found: bool
    """True if a path was found."""
    exit_flag: int
    """1 the goal was reached, 2 all iterations were used, 3 the tree has its most nodes."""
    num_nodes: int
    """Number of nodes of the tree."""
    num_iterations: int
    """Number of iterations."""
    path_costs: Floats
    """Cost of the best path after each iteration, NaN before there is one."""
    tree_states: Floats
    """States of the nodes, (num_nodes, 3)."""
    tree_parents: Any
    """Index of each node's parent, -1 of the start."""


@matlab_properties(
    {
        "state_validator": validator_of,
        "max_connection_distance": _positive,
        "ball_radius_constant": _positive,
        "max_num_tree_nodes": _count,
        "max_iterations": _count,
        "goal_tolerance": _positive,
        "goal_bias": _share,
    }
)
@dataclass(eq=False)
class PlannerRRTStar:
    """RRT* on an occupancy map, MATLAB's `plannerRRTStar`.

    Neighbours of a new node within min((ball_radius_constant ln n / (n V))^(1/3),
    max_connection_distance) are connected through it where that is cheaper, n being the number of
    nodes and V the volume of the unit ball. The space is that of the validator. The same seed gives
    the same tree.

    >>> validator = ValidatorOccupancyMap(validation_distance=0.1)
    >>> validator.state_space.state_bounds = [[0, 10], [0, 10], [-3.2, 3.2]]
    >>> planner = PlannerRRTStar(validator, max_connection_distance=1)
    >>> path, info = planner.plan([1, 1, 0], [9, 9, 0], seed=1)
    >>> info.is_path_found, bool(path.length >= 8 * np.sqrt(2) - 0.1)
    (True, True)
    """

    state_validator: ValidatorOccupancyMap = field(default_factory=ValidatorOccupancyMap)
    """Map, bounds and distance of states."""
    max_connection_distance: float = 0.1
    """Longest motion that is added to the tree."""
    ball_radius_constant: float = 100.0
    """Constant of the radius within which neighbours are connected anew."""
    continue_after_goal_reached: bool = False
    """True to go on improving the path until iterations or nodes are used up."""
    max_num_tree_nodes: int = 10_000
    """Largest number of nodes."""
    max_iterations: int = 10_000
    """Largest number of iterations."""
    goal_tolerance: float = 0.1
    """Distance from the goal, in the state space, that counts as reached."""
    goal_bias: float = 0.05
    """Share of the samples that are the goal."""

    def plan(
        self, start: ArrayLike, goal: ArrayLike, seed: int | None = None
    ) -> tuple[NavPath, TreePlanInfo]:
        """Return a path between two states x, y (m), theta (rad), and details.

        The path ends within `goal_tolerance` of the goal; it is empty if none was found. ValueError
        for a start or goal that is not valid.
        """
        from rfly_terrain.planning import tree_kernels as kernels

        first = states_of(start, "start")[0]
        last = states_of(goal, "goal")[0]
        for name, state in (("start", first), ("goal", last)):
            if not self.state_validator.is_state_valid(state)[0]:
                raise ValueError(
                    f"{name}: {state.tolist()} is not a free place within the state bounds"
                )

        # all samples at once
        rng = np.random.default_rng(seed)
        space = self.state_validator.state_space
        samples = space.sample_uniform(self.max_iterations, rng)
        samples[rng.random(self.max_iterations) < self.goal_bias] = last

        tree = kernels.Tree(
            np.empty((self.max_num_tree_nodes, 3)),
            np.zeros(self.max_num_tree_nodes),
            np.full(self.max_num_tree_nodes, -1),
        )
        tree.states[0] = first
        growth = kernels.Growth(
            self.max_connection_distance,
            self.ball_radius_constant,
            self.goal_tolerance,
            bool(self.continue_after_goal_reached),
        )
        costs = np.full(self.max_iterations, np.nan)
        result, nodes, iterations, node = kernels.grow(
            self.state_validator.kernel_space(), growth, last, samples, tree, costs
        )

        path = []
        while node >= 0:
            path.append(tree.states[node])
            node = tree.parents[node]
        info = TreePlanInfo(
            bool(path),
            int(result),
            int(nodes),
            int(iterations),
            costs[:iterations],
            tree.states[:nodes],
            tree.parents[:nodes],
        )
        return NavPath(np.array(path[::-1]).reshape(-1, 3), space), info
