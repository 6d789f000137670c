# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compiled kernel: A* from cell to cell of a grid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_common.kernels.jit import inlined_kernel, kernel
from rfly_terrain.planning.search_kernels import _pop, _push

_FIRST_ROOM = 1 << 12
"""Cells for which the heap has room at first."""

# metrics, by which the cost to the goal is estimated
GIVEN = 0
CHEBYSHEV = 1
EUCLIDEAN = 2
EUCLIDEAN_SQUARED = 3
MANHATTAN = 4


@inlined_kernel
def measured(metric: int, rows: float, columns: float) -> float:
    """Return the distance of two cells that are so many rows and columns apart."""
    if metric == CHEBYSHEV:
        return float(max(rows, columns))
    if metric == MANHATTAN:
        return float(rows + columns)
    if metric == EUCLIDEAN_SQUARED:
        return float(rows * rows + columns * columns)
    return math.hypot(rows, columns)


@kernel
def search_cells(
    free: Any,
    steps: Any,
    step_costs: Any,
    metric: int,
    estimates: Any,
    start: int,
    goal: int,
    costs: Any,
    parents: Any,
    stopped: Any,
) -> int:
    """Fill in the costs and parents of cells from a start on, and return how many were explored.

    `free` (rows, columns) bool; all other arrays are flat. `steps` (k, 2): rows and columns to the
    neighbours; `step_costs` (k, 1) or (k, cells): what a step from a cell costs. The estimate of
    the cost to the goal is that of a `metric` times `estimates` (1,), or with GIVEN `estimates`
    (cells,); where it is no lower bound the path may not be the cheapest. `costs` (cells,) inf and
    `parents` (cells,) -1 before the call. The search ends at the goal, whose cost stays infinite if
    no path leads there, or once `stopped` (1,) is True.
    """
    rows, columns = free.shape
    cells = free.reshape(rows * columns)
    explored = np.zeros(cells.size, np.bool_)
    heap_f = np.empty(_FIRST_ROOM)
    heap_n = np.empty(_FIRST_ROOM, np.int64)

    goal_row = goal // columns
    goal_column = goal - goal_row * columns

    costs[start] = 0.0
    _push(heap_f, heap_n, 0, 0.0, start)
    waiting = 1
    count = 0
    while waiting > 0 and not stopped[0]:
        cell = heap_n[0]
        _pop(heap_f, heap_n, waiting)
        waiting -= 1
        if explored[cell]:
            continue  # entered again at a lower cost, and explored then
        explored[cell] = True
        count += 1
        if cell == goal:
            break

        if waiting + steps.shape[0] > heap_f.size:
            heap_f, heap_n = _with_more_room(heap_f, heap_n)
        row = cell // columns
        column = cell - row * columns
        place = cell if step_costs.shape[1] > 1 else 0
        for k in range(steps.shape[0]):
            to_row = row + steps[k, 0]
            to_column = column + steps[k, 1]
            if to_row < 0 or to_column < 0 or to_row >= rows or to_column >= columns:
                continue
            to = to_row * columns + to_column
            if explored[to] or not cells[to]:
                continue
            cost = costs[cell] + step_costs[k, place]
            if cost < costs[to]:
                costs[to] = cost
                parents[to] = cell
                if metric == GIVEN:
                    estimate = estimates[to]
                else:
                    estimate = estimates[0] * measured(
                        metric, abs(to_row - goal_row), abs(to_column - goal_column)
                    )
                _push(heap_f, heap_n, waiting, cost + estimate, to)
                waiting += 1
    return count


@kernel
def _with_more_room(heap_f: Any, heap_n: Any) -> tuple[Any, Any]:
    """Return the same heap in twice the room."""
    more_f = np.empty(2 * heap_f.size)
    more_n = np.empty(2 * heap_n.size, np.int64)
    more_f[: heap_f.size] = heap_f
    more_n[: heap_n.size] = heap_n
    return more_f, more_n
