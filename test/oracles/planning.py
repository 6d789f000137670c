"""Oracle of `rfly_terrain.planning.kernels`: costs to a goal by SciPy's graph search."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from rfly_terrain.planning.drive import Weights

_HALF_OF_THE_STEPS = (
    (0, 1, ()),
    (1, 0, ()),
    *((1, side, ((1, 0), (0, side))) for side in (1, -1)),
    *((1, 2 * side, ((0, side), (1, side))) for side in (1, -1)),
    *((2, side, ((1, 0), (1, side))) for side in (1, -1)),
)
"""rows, columns, and the cells that are crossed on the way; the other half are these backwards"""


def cost_to_go(weight: Weights, goal: tuple[int, int]) -> NDArray[np.float32]:
    """Return the cost from each cell to the goal, as `kernels.cost_to_go`, by SciPy's Dijkstra."""
    rows, columns = weight.shape
    number = np.arange(rows * columns).reshape(rows, columns)
    wide = weight.astype(float)
    ends: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []
    for d_row, d_column, crossed in _HALF_OF_THE_STEPS:
        here = slice(0, rows - d_row), slice(max(-d_column, 0), columns - max(d_column, 0))

        def shifted(array: NDArray[Any], row: int, column: int, at: Any = here) -> NDArray[Any]:
            return array[
                at[0].start + row : at[0].stop + row, at[1].start + column : at[1].stop + column
            ]

        costs = [shifted(wide, *offset) for offset in ((0, 0), (d_row, d_column), *crossed)]
        free = np.all([cost > 0 for cost in costs], axis=0)
        taken = (
            costs[:2] if d_row == abs(d_column) else costs
        )  # a diagonal passes the corner of the cells beside it
        cost = math.hypot(d_row, d_column) * np.mean(taken, axis=0)
        ends.append((number[here][free], shifted(number, d_row, d_column)[free], cost[free]))
    a, b, edge = (np.concatenate(part) for part in zip(*ends, strict=True))
    graph = coo_array(
        (edge, (a.astype(np.int32), b.astype(np.int32))), shape=(number.size, number.size)
    ).tocsr()
    best = dijkstra(graph, directed=False, indices=goal[0] * columns + goal[1])
    return best.reshape(rows, columns).astype(np.float32)
