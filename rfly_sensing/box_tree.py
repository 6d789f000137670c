# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Trees of boxes, which show the boxes that a ray may meet."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rfly_common.arrays import Floats, Ints
from rfly_common.kernels.jit import inner_kernel, kernel

DEPTH = 64
"""Greatest depth of a tree: 32 levels split for the least work of rays, others in the middle."""
BINS = 16
"""Number of intervals in which a split is searched."""
PADDING = 1e-6
"""Margin of boxes around their items, m, so that rounding loses no ray."""


class BoxTree(NamedTuple):
    """A binary tree, the root first; children are neighbours."""

    boxes: Floats
    """Lowest x, y, z, then highest x, y, z of each node, (m, 6)."""
    link: Ints
    """First child of each node, or first item of a leaf, (m,)."""
    held: Ints
    """Number of a leaf's items; 0: not a leaf, (m,)."""
    items: Ints
    """Boxes, leaf after leaf, (n,)."""


def box_tree(low: Floats, high: Floats, leaf: int) -> BoxTree:
    """Build a tree over n >= 1 boxes with corners (n, 3); leaves hold up to `leaf` of them."""
    n = len(low)
    tree = BoxTree(
        np.empty((2 * n, 6)), np.zeros(2 * n, np.int64), np.zeros(2 * n, np.int64), np.arange(n)
    )
    nodes = build(np.ascontiguousarray(low), np.ascontiguousarray(high), leaf, tree)
    return BoxTree(tree.boxes[:nodes], tree.link[:nodes], tree.held[:nodes], tree.items)


class Split(NamedTuple):
    """The direction in which a node's boxes are sorted into BINS bins by their middles."""

    axis: int
    """Axis along which the middles are farthest apart."""
    start: float
    """Lowest middle along it, m."""
    size: float
    """Distance from the lowest to the highest middle, m."""


@kernel
def build(low: Floats, high: Floats, leaf: int, tree: BoxTree) -> int:
    """Fill the tree, from the root down. Return the number of nodes.

    A node is split across the longest side of the boxes' middles, where the sum of both halves'
    surfaces, times their items, is least of 15 places (binned surface area heuristic: Wald, On fast
    Construction of SAH-based Bounding Volume Hierarchies, 2007).
    """
    boxes, link, held, items = tree
    begins = np.zeros(boxes.shape[0], np.int64)
    ends = np.zeros(boxes.shape[0], np.int64)
    depths = np.zeros(boxes.shape[0], np.int64)
    ends[0] = items.size
    nodes = 1
    node = 0
    while node < nodes:
        begin = begins[node]
        end = ends[node]
        split = _bound(low, high, items[begin:end], boxes[node])
        if end - begin <= leaf:
            link[node] = begin
            held[node] = end - begin
            node += 1
            continue

        # where the second half begins
        middle = (begin + end) // 2
        if split.size > 0.0 and depths[node] < DEPTH // 2:
            first = begin + _sort(low, high, items[begin:end], split)
            if begin < first < end:
                middle = first

        # children
        link[node] = nodes
        begins[nodes] = begin
        ends[nodes] = middle
        begins[nodes + 1] = middle
        ends[nodes + 1] = end
        depths[nodes] = depths[node] + 1
        depths[nodes + 1] = depths[node] + 1
        nodes += 2
        node += 1
    return nodes


@inner_kernel
def _bound(low: Floats, high: Floats, items: Ints, box: Floats) -> Split:
    """Set the box around some items, and return the direction in which to split them."""
    middles = np.empty((2, 3))
    middles[0] = math.inf
    middles[1] = -math.inf
    box[:3] = math.inf
    box[3:] = -math.inf
    for item in items:
        for c in range(3):
            box[c] = min(box[c], low[item, c] - PADDING)
            box[3 + c] = max(box[3 + c], high[item, c] + PADDING)
            middle = 0.5 * (low[item, c] + high[item, c])
            middles[0, c] = min(middles[0, c], middle)
            middles[1, c] = max(middles[1, c], middle)

    axis = 0
    for c in range(1, 3):
        if middles[1, c] - middles[0, c] > middles[1, axis] - middles[0, axis]:
            axis = c
    return Split(axis, middles[0, axis], middles[1, axis] - middles[0, axis])


@inner_kernel
def _sort(low: Floats, high: Floats, items: Ints, split: Split) -> int:
    """Sort items in place into the halves of the cheapest split. Return the size of the first."""
    # items and bounds of each bin
    bounds = np.empty((BINS, 6))
    bounds[:, :3] = math.inf
    bounds[:, 3:] = -math.inf
    filled = np.zeros(BINS, np.int64)
    for item in items:
        b = _bin(low, high, item, split)
        filled[b] += 1
        for c in range(3):
            bounds[b, c] = min(bounds[b, c], low[item, c])
            bounds[b, 3 + c] = max(bounds[b, 3 + c], high[item, c])
    last = _cheapest(bounds, filled)

    # those of the second half go to the end
    left = 0
    right = items.size - 1
    while left <= right:
        item = items[left]
        if _bin(low, high, item, split) <= last:
            left += 1
        else:
            items[left] = items[right]
            items[right] = item
            right -= 1
    return left


@inner_kernel
def _bin(low: Floats, high: Floats, item: int, split: Split) -> int:
    """Return the bin of an item's middle."""
    middle = 0.5 * (low[item, split.axis] + high[item, split.axis])
    return min(int((middle - split.start) * (BINS / split.size)), BINS - 1)


@inner_kernel
def _cheapest(bounds: Floats, filled: Ints) -> int:
    """Return the last bin of the left half of the cheapest split."""
    costs = np.empty(BINS)
    for backwards in range(2):
        box = np.empty(6)
        items = 0
        box[:3] = math.inf
        box[3:] = -math.inf
        for k in range(BINS - 1):
            b = BINS - 1 - k if backwards else k
            items += filled[b]
            for c in range(3):
                box[c] = min(box[c], bounds[b, c])
                box[3 + c] = max(box[3 + c], bounds[b, 3 + c])
            x = box[3] - box[0]
            y = box[4] - box[1]
            z = box[5] - box[2]
            cost = items * (x * y + y * z + z * x) if items else 0.0
            if backwards:
                costs[b - 1] += cost
            else:
                costs[b] = cost

    best = 0
    for b in range(1, BINS - 1):
        if costs[b] < costs[best]:
            best = b
    return best
