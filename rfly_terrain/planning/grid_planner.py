# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""PlannerAStarGrid: the cheapest way from cell to cell of an occupancy map.

Source of properties, cost functions and outputs: MathWorks, Navigation Toolbox, reference pages of
`plannerAStarGrid` and of its `plan`. The pages leave open which cells of a map of probabilities may
be entered, and whether a diagonal step may pass between two occupied cells; the docstring here
says what is done.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats, Ints
from rfly_common.config.checks import check_choice
from rfly_common.config.matlab_properties import matlab_properties
from rfly_common.kernels.interruptible import check_memory, interruptible
from rfly_terrain.occupancy.cell_grid import check_frame, pair, points, whole
from rfly_terrain.occupancy.occupancy_map import BinaryOccupancyMap
from rfly_terrain.occupancy.probability_map import OccupancyMap

Map = BinaryOccupancyMap | OccupancyMap
CostFunction = Callable[[Floats, Floats], Any]
"""Function of two arrays of cells, (n, 2) row, column, that returns n costs."""

_BYTES_PER_CELL = 32
"""Memory of a search: costs, parents, marks, and the heap of a wide front."""

STRAIGHT_STEPS = ((-1, 0), (0, -1), (0, 1), (1, 0))
DIAGONAL_STEPS = ((-1, -1), (-1, 1), (1, -1), (1, 1))


METRICS: dict[str, CostFunction] = {
    "Chebyshev": lambda a, b: np.abs(a - b).max(axis=1),
    "Euclidean": lambda a, b: np.hypot(*(a - b).T),
    "EuclideanSquared": lambda a, b: np.square(a - b).sum(axis=1),
    "Manhattan": lambda a, b: np.abs(a - b).sum(axis=1),
}
"""MATLAB's cost functions, in cells."""


def map_of(name: str, value: Any) -> Any:
    """Return a planner's map, checked."""
    if not isinstance(value, BinaryOccupancyMap | OccupancyMap):
        raise ValueError(f"{name}: {type(value).__name__}, expected an occupancy map")
    return value


def _cost(name: str, value: Any) -> Any:
    if not callable(value):
        check_choice(name, value, METRICS, error=ValueError)
    return value


def _switch(name: str, value: Any) -> bool:
    """Return True for on and False for off."""
    if value not in (True, False, "on", "off"):
        raise ValueError(f"{name}: {value!r}, expected on or off")
    return value in (True, "on")


@matlab_properties({}, {"g_cost_matrix": "GCostMatrix"})
@dataclass(frozen=True, eq=False)
class GridPlanInfo:
    """Details of a plan of `PlannerAStarGrid`."""

    path_cost: float
    """Cost of the path; infinite if there is none."""
    num_nodes_explored: int
    """Number of cells that were explored."""
    g_cost_matrix: Floats
    """Cost from the start of each cell that was reached, (rows, columns); else infinite."""


@matlab_properties(
    {
        "map": map_of,
        "g_cost": _cost,
        "h_cost": _cost,
        "tie_breaker": _switch,
        "diagonal_search": _switch,
    }
)
@dataclass(eq=False)
class PlannerAStarGrid:
    """A* over the cells of an occupancy map, MATLAB's `plannerAStarGrid`.

    Only cells that `check_occupancy` says are free (0) are entered, not unknown ones. A diagonal
    step needs its target cell only: it may pass the corner of an occupied cell, so inflate the map
    by half a vehicle's width. The path is the cheapest one if `h_cost` is at most the real cost, as
    it is with the default of both; `Manhattan` is not for a diagonal search.

    >>> planner = PlannerAStarGrid(BinaryOccupancyMap(3, 3))
    >>> path, info = planner.plan([0, 0], [2, 1])
    >>> path.tolist(), round(info.path_cost, 3)
    ([[0, 0], [1, 0], [2, 1]], 2.414)
    """

    map: Map = field(default_factory=BinaryOccupancyMap)
    """Map that is searched, by default 10 m x 10 m and empty."""
    g_cost: str | CostFunction = "Euclidean"
    """Cost of a step, one of METRICS or a function of two arrays of cells."""
    h_cost: str | CostFunction = "Euclidean"
    """Estimate of the cost to the goal, one of METRICS or a function of two arrays of cells."""
    tie_breaker: bool | str = False
    """True to prefer cells near the goal among those of the same cost."""
    diagonal_search: bool | str = True
    """True for steps to eight neighbours, False for four."""
    _shown: tuple[Ints, Floats] | None = field(default=None, init=False, repr=False)
    """Cells of the last path, and costs of the cells that were reached."""

    def plan(
        self, start: ArrayLike, goal: ArrayLike, frame: str = "grid"
    ) -> tuple[Any, GridPlanInfo]:
        """Return the path and its details.

        Start and goal are row and column ("grid") or x, y ("world", m), and so is the path, (n, 2):
        cells, or their centres. It is empty if no path leads to the goal. ValueError for a start or
        goal off the map or on a cell that is not free, PlanError ("too_large") if the memory does
        not suffice.
        """
        from rfly_terrain.planning import grid_search_kernels as kernels

        check_frame(frame, ("grid", "world"))
        check_memory("A*", math.prod(self.map.grid_size), _BYTES_PER_CELL)
        free = np.ascontiguousarray(self.map.check_occupancy() == 0)
        first = self._cell("start", start, frame, free)
        last = self._cell("goal", goal, frame, free)

        # estimates: a function gives all of them, a metric is worked out where it is needed
        rows, columns = free.shape
        cells = np.empty((0, 2))
        if callable(self.g_cost) or callable(self.h_cost):
            cells = np.stack(np.divmod(np.arange(free.size), columns), axis=1).astype(float)
        metric = kernels.GIVEN
        estimates = np.ones(1)
        if callable(self.h_cost):
            goals = np.broadcast_to(cells[last], cells.shape)
            estimates = _costs("h_cost", self.h_cost, cells, goals)
        else:
            metric = {
                "Chebyshev": kernels.CHEBYSHEV,
                "Euclidean": kernels.EUCLIDEAN,
                "EuclideanSquared": kernels.EUCLIDEAN_SQUARED,
                "Manhattan": kernels.MANHATTAN,
            }[self.h_cost]
        if self.tie_breaker:
            estimates *= 1.0 + 1.0 / free.size

        # costs of steps
        steps = np.array(STRAIGHT_STEPS + (DIAGONAL_STEPS if self.diagonal_search else ()))
        if callable(self.g_cost):
            step_costs = np.stack(
                [_costs("g_cost", self.g_cost, cells, cells + step) for step in steps]
            )
        else:
            origin = np.zeros((len(steps), 2))
            step_costs = _costs("g_cost", self.g_cost, origin, steps.astype(float))[:, None]

        # the search, and the way back from the goal
        costs = np.full(free.size, np.inf)
        parents = np.full(free.size, -1, np.int32)
        explored = interruptible(
            kernels.search_cells,
            *(free, steps, step_costs, metric, estimates, first, last, costs, parents),
        )
        info = GridPlanInfo(float(costs[last]), int(explored), costs.reshape(rows, columns))
        path = []
        cell = last if np.isfinite(costs[last]) else -1
        while cell >= 0:
            path.append(divmod(int(cell), columns))
            cell = parents[cell]
        in_grid: Ints = np.array(path[::-1], np.int64).reshape(-1, 2) + self._first_index()
        self._shown = in_grid, info.g_cost_matrix
        return (in_grid if frame == "grid" else self.map.grid2world(in_grid)), info

    def show(self, ax: Any = None) -> Any:
        """Draw the map, the cells that the last plan reached, and its path; return the axes.

        Without axes they are Matplotlib's current ones. ValueError if nothing has been planned.
        """
        from rfly_terrain.occupancy.plot import draw_plan

        if self._shown is None:
            raise ValueError("show: nothing has been planned, expected a call of plan before it")
        path, costs = self._shown
        reached = np.argwhere(np.isfinite(costs)) + self._first_index()
        places = self.map.grid2world(path) if len(path) else np.empty((0, 2))
        return draw_plan(self.map, places, self.map.grid2world(reached), ax)

    def _first_index(self) -> int:
        """Return the number of the map's first row and column, 1 if it counts as MATLAB does."""
        return int(self.map.one_based)

    def _cell(self, name: str, place: ArrayLike, frame: str, free: Any) -> int:
        """Return the number of the cell of a place, which must be free."""
        where = points([pair(place, name)], name)
        in_grid = whole(where, name) if frame == "grid" else self.map.world2grid(where)
        row, column = in_grid[0] - self._first_index()
        rows, columns = free.shape
        if not (0 <= row < rows and 0 <= column < columns):
            raise ValueError(f"{name}: {where[0].tolist()} is off the map")
        if not free[row, column]:
            raise ValueError(f"{name}: {where[0].tolist()} is not in a free cell")
        return int(row * columns + column)


def _costs(name: str, function: str | CostFunction, a: Floats, b: Floats) -> Floats:
    """Return the costs between cells, checked."""
    measured = METRICS[function] if isinstance(function, str) else function
    costs = np.array(measured(a, b), float).reshape(-1)
    if costs.shape != (len(a),) or not (costs >= 0.0).all():
        raise ValueError(
            f"{name}: {costs.size} costs for {len(a)} pairs of cells, expected one each, of at "
            "least 0"
        )
    return costs
