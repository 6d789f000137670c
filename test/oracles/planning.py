# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Least costs over a grid by SciPy's Dijkstra: the peer of planning's `kernels.cost_to_go`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

_HALF_OF_THE_STEPS = (
    (0, 1, ()),
    (1, 0, ()),
    *((1, side, ((1, 0), (0, side))) for side in (1, -1)),
    *((1, 2 * side, ((0, side), (1, side))) for side in (1, -1)),
    *((2, side, ((1, 0), (1, side))) for side in (1, -1)),
)
"""Rows, columns, and the cells that are crossed on the way; the other half is these backwards."""


def least_costs(weight: NDArray[np.float32], goal: tuple[int, int]) -> NDArray[np.float32]:
    """Return (rows, columns) least costs in cells from each cell's centre to the goal's, in 16
    directions.
    """
    rows, columns = weight.shape
    number = np.arange(rows * columns).reshape(rows, columns)
    weight = weight.astype(float)
    edges: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []
    for d_row, d_column, crossed in _HALF_OF_THE_STEPS:
        row_range = (0, rows - d_row)
        column_range = (max(-d_column, 0), columns - max(d_column, 0))

        def shifted(
            array: NDArray[Any], row: int, column: int, r: Any = row_range, c: Any = column_range
        ) -> NDArray[Any]:
            return array[r[0] + row : r[1] + row, c[0] + column : c[1] + column]

        costs = [shifted(weight, *offset) for offset in ((0, 0), (d_row, d_column), *crossed)]
        free = np.all([cost > 0 for cost in costs], axis=0)
        if d_row == abs(d_column):  # a diagonal only touches the corners of the cells next to it
            costs = costs[:2]
        cost = math.hypot(d_row, d_column) * np.mean(costs, axis=0)
        ends = shifted(number, 0, 0), shifted(number, d_row, d_column)
        edges.append((ends[0][free], ends[1][free], cost[free]))
    a, b, edge = (np.concatenate(part) for part in zip(*edges, strict=True))
    graph = coo_array(
        (edge, (a.astype(np.int32), b.astype(np.int32))), shape=(number.size, number.size)
    ).tocsr()
    best = dijkstra(graph, directed=False, indices=goal[0] * columns + goal[1])
    return best.reshape(rows, columns).astype(np.float32)
