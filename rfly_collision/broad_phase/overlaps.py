"""Overlapping pairs of swept bounding boxes, the narrow phase's input."""

from __future__ import annotations

import numpy as np

from rfly_collision.narrow_phase.arguments import Motion, Placed
from rfly_collision.narrow_phase.bodies import Bodies
from rfly_collision.shapes.shape_table import ShapeTable
from rfly_common.arrays import Ints
from rfly_common.errors import CrowdError
from rfly_common.kernels.jit import KernelModule

KERNELS = KernelModule("rfly_collision.broad_phase.kernels")

ROOM = 4
"""pairs for each body that fit at the first go"""
MOST_NEIGHBOURS = 50_000_000
"""pairs whose boxes are compared, with those that no filter lets pass: about 0.1 s of work"""


def place(table: ShapeTable, motion: Motion, dt: float) -> Placed:
    """Rotation matrices and boxes of all bodies."""
    n = len(motion.position)
    placed = Placed(np.empty((n, 3, 3)), np.empty((n, 3)), np.empty((n, 3)))
    KERNELS.choose().swept_boxes(table, motion, dt, placed)
    return placed


def pairs_of(bodies: Bodies, placed: Placed, most: int) -> Ints:
    """(m, 2) pairs a < b whose boxes overlap and that no filter drops, sorted by a, then b.

    Raises CrowdError where they are more than `most`, before all of them are found, and where so many bodies lie in one
    place that MOST_NEIGHBOURS would be compared.
    """
    n = len(bodies)
    ignore = np.sort(bodies.ignore[bodies.ignore.min(axis=1, initial=0) >= 0], axis=1)
    ignored = np.unique(ignore[:, 0] * n + ignore[:, 1])
    keys, limits = np.empty(ROOM * n + 1024, np.int64), np.array([most, MOST_NEIGHBOURS])
    function = KERNELS.choose().overlaps
    while True:
        count = function(placed.low, placed.high, bodies.static, bodies.group, ignored, limits, keys)
        if count > most:
            raise CrowdError(f"the boxes of more than {most:,} pairs of bodies overlap, no more are tested")
        if count <= len(keys):
            break
        keys = np.empty(count, np.int64)
    keys = np.sort(keys[:count])
    pairs = np.empty((count, 2), np.int64)
    np.floor_divide(keys, n, out=pairs[:, 0])
    pairs[:, 1] = keys - pairs[:, 0] * n
    return pairs
