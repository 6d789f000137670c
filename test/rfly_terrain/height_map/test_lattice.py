# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Lattices: each step from each node, and paths against a search by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfly_terrain.height_map.lattice import EIGHT, SIXTEEN, cheapest_path, neighbours


@pytest.mark.parametrize("steps", [EIGHT, SIXTEEN])
@given(shape=st.tuples(st.integers(1, 5), st.integers(1, 5)))
def test_each_pair_of_neighbours_comes_once(steps, shape):
    """The steps are a king's moves, or a knight's too: one way of each pair, none over an edge."""
    rows, columns = shape
    pairs = []
    for (down, right), start, end in neighbours(shape, steps):
        for one, other in zip(start.tolist(), end.tolist(), strict=True):
            assert (other // columns - one // columns, other % columns - one % columns) == (
                down,
                right,
            )
            pairs.append(frozenset((one, other)))

    squares = {1, 2} if steps is EIGHT else {1, 2, 5}
    expected = {
        frozenset((one, other))
        for one, other in itertools.combinations(range(rows * columns), 2)
        if (one // columns - other // columns) ** 2 + (one % columns - other % columns) ** 2
        in squares
    }
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == expected


EDGES = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(1, 9)), min_size=1, max_size=20
)


@pytest.mark.parametrize("directed", [True, False])
@given(edges=EDGES)
def test_no_path_is_cheaper(directed, edges):
    """Against all lengths by relaxing each edge as often as there are nodes (Bellman, Ford)."""
    edges = list({(a, b): (a, b, cost) for a, b, cost in edges}.values())
    if not directed:
        edges = list({frozenset((a, b)): (a, b, cost) for a, b, cost in edges}.values())
    both = edges + ([] if directed else [(b, a, cost) for a, b, cost in edges])
    best = [0.0] + [math.inf] * 6
    for _ in best:
        for a, b, cost in both:
            best[b] = min(best[b], best[a] + cost)

    ends = (3, 5)
    from_, to, cost = (np.array(part) for part in zip(*edges, strict=True))
    path = cheapest_path([(from_, to, cost.astype(float))], 7, 0, ends, directed=directed)
    cheapest = min(best[end] for end in ends)
    if math.isinf(cheapest):
        assert path == []
        return
    assert path[0] == 0
    assert path[-1] in ends
    costs = {(a, b): cost for a, b, cost in both}
    assert sum(costs[pair] for pair in itertools.pairwise(path)) == cheapest


def test_edges_of_several_kinds_are_one_graph():
    """The way 0 -> 1 -> 2 costs 3, the other kind's way 0 -> 3 -> 2 costs 2.5; 4 is apart."""
    drive = (np.array([0, 1]), np.array([1, 2]), np.array([1.0, 2.0]))
    fly = (np.array([0, 3]), np.array([3, 2]), np.array([2.0, 0.5]))
    assert cheapest_path([drive, fly], 5, 0, [2]) == [0, 3, 2]
    assert cheapest_path([drive], 5, 0, [4, 2]) == [0, 1, 2]
    assert cheapest_path([drive, fly], 5, 0, [4]) == []
    assert cheapest_path([drive, fly], 5, 2, [0]) == []
    assert cheapest_path([drive, fly], 5, 0, [0]) == [0]
