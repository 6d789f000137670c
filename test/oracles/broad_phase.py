# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Oracle of `rfly_collision.world.overlap_kernels`: boxes around bodies, and overlaps."""

from __future__ import annotations

from typing import Any

import numpy as np

from rfly_collision.narrow_phase.bodies import PlacedShapes, SweptMotion
from rfly_collision.shapes.shape import TOUCHING, ShapeTable
from rfly_common.arrays import Ints
from rfly_common.frames import rotation_matrix

AT_ONCE = 1_000_000
"""Candidates that are examined in one piece, which bounds the memory."""


def swept_boxes(table: ShapeTable, motion: SweptMotion, dt: float, placed: PlacedShapes) -> None:
    """Compute rotation matrices and boxes, as `kernels.swept_boxes`."""
    shape_index, position, orientation, velocity, angular_velocity = motion
    rotation, low, high = placed
    rotation[:] = rotation_matrix(orientation)

    for shape in np.unique(shape_index):
        chosen = np.flatnonzero(shape_index == shape)
        corners = table.vertices[table.first[shape, 0] : table.first[shape + 1, 0]]
        points = np.einsum("nij,vj->nvi", rotation[chosen], corners)
        low[chosen] = position[chosen] + points.min(axis=1) - table.radius[shape] - TOUCHING
        high[chosen] = position[chosen] + points.max(axis=1) + table.radius[shape] + TOUCHING

    if dt > 0.0:
        angle = dt * np.linalg.norm(angular_velocity, axis=1)
        around = (table.reach[shape_index] * np.minimum(angle, 2.0))[:, None]
        back = dt * velocity
        low -= np.maximum(back, 0.0) + around
        high += around - np.minimum(back, 0.0)


def overlaps(
    low: Any, high: Any, static: Any, group: Any, ignored: Any, limits: Any, out: Any
) -> int:
    """Return how many boxes overlap, as `kernels.overlaps`: sorted along x, each box with those
    that begin before it ends.
    """
    n = len(low)
    order = np.argsort(low[:, 0], kind="stable")
    begin = np.arange(1, n + 1)
    end = np.searchsorted(low[order, 0], high[order, 0], side="right")
    candidates = np.concatenate([[0], np.cumsum(np.maximum(end - begin, 0))])
    found: list[Ints] = []
    first = count = 0

    while first < n:
        if count > limits[0] or candidates[first] > limits[1]:
            return int(limits[0]) + 1
        last = max(
            int(np.searchsorted(candidates, candidates[first] + AT_ONCE, side="right")) - 1,
            first + 1,
        )
        counts = np.diff(candidates[first : last + 1])
        one = np.repeat(np.arange(first, last), counts)
        other = np.arange(len(one)) - np.repeat(candidates[first:last] - candidates[first], counts)
        i = order[one]
        j = order[other + one + 1]
        good = (low[i, 1:] <= high[j, 1:]).all(axis=1) & (low[j, 1:] <= high[i, 1:]).all(axis=1)
        good &= ~(static[i] & static[j]) & ~((group[i] == group[j]) & (group[i] >= 0))
        i = i[good]
        j = j[good]
        keys = np.minimum(i, j) * n + np.maximum(i, j)
        found.append(keys[~np.isin(keys, ignored)])
        count += len(found[-1])
        first = last

    all_keys = np.concatenate([np.empty(0, np.int64), *found])
    out[: len(all_keys)] = all_keys[: len(out)]

    return len(all_keys)
