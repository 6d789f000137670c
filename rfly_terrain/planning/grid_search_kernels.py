"""Compiled kernel: A* from cell to cell of a grid."""

from __future__ import annotations

from typing import Any

import numpy as np

from rfly_common.kernels.jit import kernel
from rfly_terrain.planning.search_kernels import _pop, _push


@kernel
def search_cells(
    free: Any,
    steps: Any,
    step_costs: Any,
    estimates: Any,
    start: int,
    goal: int,
    costs: Any,
    parents: Any,
) -> int:
    """Fill in the costs and parents of cells from a start on, and return how many were explored.

    `free` (rows, columns) bool; all other arrays are flat. `steps` (k, 2): rows and columns to the
    neighbours; `step_costs` (k, 1) or (k, cells): what a step from a cell costs. `estimates`
    (cells,): lower bounds of the cost to the goal; where they are none the path may not be the
    cheapest. `costs` (cells,) inf and `parents` (cells,) -1 before the call. The search ends at the
    goal, whose cost stays infinite if no path leads there.
    """
    rows, columns = free.shape
    cells = free.reshape(rows * columns)
    explored = np.zeros(cells.size, np.bool_)
    room = steps.shape[0] * cells.size + 1
    heap_f = np.empty(room)
    heap_n = np.empty(room, np.int64)

    costs[start] = 0.0
    _push(heap_f, heap_n, 0, estimates[start], start)
    waiting = 1
    count = 0
    while waiting > 0:
        cell = heap_n[0]
        _pop(heap_f, heap_n, waiting)
        waiting -= 1
        if explored[cell]:
            continue  # entered again at a lower cost, and explored then
        explored[cell] = True
        count += 1
        if cell == goal:
            break

        row = cell // columns
        column = cell - row * columns
        at = cell if step_costs.shape[1] > 1 else 0
        for k in range(steps.shape[0]):
            to_row = row + steps[k, 0]
            to_column = column + steps[k, 1]
            if to_row < 0 or to_column < 0 or to_row >= rows or to_column >= columns:
                continue
            to = to_row * columns + to_column
            if explored[to] or not cells[to]:
                continue
            cost = costs[cell] + step_costs[k, at]
            if cost < costs[to]:
                costs[to] = cost
                parents[to] = cell
                _push(heap_f, heap_n, waiting, cost + estimates[to], to)
                waiting += 1
    return count
