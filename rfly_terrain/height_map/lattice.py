# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Lattices of nodes: the neighbours of each, and the cheapest path through a graph."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from rfly_common.arrays import Ints

Edges = tuple[Any, Any, Any]
"""Numbers of the nodes from which and to which edges lead, and their costs, (n,) each."""

EIGHT = ((0, 1), (1, 0), (1, 1), (1, -1))
"""Steps to half of eight neighbours, by both indices; the opposite ones give the other half."""
SIXTEEN = (*EIGHT, (1, 2), (2, 1), (2, -1), (1, -2))
"""The same of sixteen, those of a knight's move too."""


def neighbours(
    shape: tuple[int, int], steps: Sequence[tuple[int, int]]
) -> Iterator[tuple[tuple[int, int], Ints, Ints]]:
    """Yield each step with the numbers of the nodes that it leads from and to, (n,) each.

    The nodes are numbered row by row.
    """
    number = np.arange(math.prod(shape)).reshape(shape)
    rows, columns = shape
    for down, right in steps:
        here = number[: rows - down, max(-right, 0) : columns - max(right, 0)]
        there = number[down:, max(right, 0) : columns - max(-right, 0)]
        if here.size:
            yield (down, right), here.ravel(), there.ravel()


def cheapest_path(
    edges: Sequence[Edges], nodes: int, begin: int, ends: Sequence[int], *, directed: bool = True
) -> list[int]:
    """Return the nodes from the begin to the end that is cheapest to reach; [] if none can be.

    `nodes`: number of all nodes. Each edge comes once: costs of equal ones would be added.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    from_, to, cost = (np.concatenate(part) for part in zip(*edges, strict=True))
    graph = coo_array(
        (cost, (from_.astype(np.int32), to.astype(np.int32))), shape=(nodes, nodes)
    ).tocsr()
    best, before = dijkstra(graph, directed=directed, indices=begin, return_predecessors=True)

    path = [min(ends, key=best.__getitem__)]
    if not math.isfinite(best[path[0]]):
        return []
    while path[-1] != begin:
        path.append(int(before[path[-1]]))
    return path[::-1]
