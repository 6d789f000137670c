# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Footprints, with reentrant corners and courtyards too, as convex pieces."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import cv2
import numpy as np

from rfly_common.arrays import Floats

GRID = 0.05
"""Grid to which corners are rounded, m: walls that are nearly along an axis lie along it."""
MAX_PIECES = 100
MAX_CORNERS = 4_000
_SIMPLIFIED = (GRID, 0.2, 0.5, 1.0)
"""Tolerances of a simplified outline, m; the next one is tried if there are too many pieces."""
_FILLED = 0.01
"""Area by which two pieces may grow when they are joined, m²."""


def convex_pieces(rings: Sequence[Floats]) -> list[Floats]:
    """Return the convex pieces, (k, 2) corners each, of the area within an odd number of the rings.

    Rings are (n, 2), m. Corners may be off by GRID, and by up to 1 m if there would be more than
    MAX_PIECES pieces. An area of zero, or one with too many corners, has no pieces.
    """
    if sum(map(len, rings)) > MAX_CORNERS:
        return []
    for tolerance in _SIMPLIFIED:
        simpler = [
            cv2.approxPolyDP(ring.astype(np.float32), tolerance, True)[:, 0] for ring in rings
        ]
        rounded = [np.round(ring.astype(float) / GRID) * GRID for ring in simpler if len(ring) > 2]
        pieces = _slabs(rounded)
        if len(pieces) <= MAX_PIECES:
            return pieces
    return []


def _slabs(rings: list[Floats]) -> list[Floats]:
    """Return trapezoids between the levels of all corners, or the first of too many.

    A trapezoid is joined to the one below it if the result is convex.
    """
    if not rings:
        return []
    # edges, from their lower to their upper ends
    edges = np.concatenate([np.stack([ring, np.roll(ring, -1, axis=0)], axis=1) for ring in rings])
    falling = edges[:, 0, 1] > edges[:, 1, 1]
    edges[falling] = edges[falling][:, ::-1]
    x_low, y_low = edges[:, 0].T
    x_high, y_high = edges[:, 1].T

    done: list[Floats] = []
    below: list[Floats] = []
    for low, high in itertools.pairwise(np.unique(edges[..., 1]).tolist()):
        # where the edges cross the slab, from west to east
        across = np.flatnonzero((y_low <= low) & (y_high >= high))
        slope = (x_high[across] - x_low[across]) / (y_high[across] - y_low[across])
        x = x_low[across] + slope * (np.array([[low], [high]]) - y_low[across])
        x = x[:, np.argsort(x.sum(axis=0), kind="stable")]

        here: list[Floats] = []
        for (a, b), (c, d) in zip(x[:, ::2].T.tolist(), x[:, 1::2].T.tolist(), strict=True):
            piece = np.array([(a, low), (c, low), (d, high), (b, high)])
            for index, lower in enumerate(below):
                joined = _joined(lower, piece)
                if joined is not None:
                    piece = joined
                    del below[index]
                    break
            if _area(piece) > _FILLED:
                here.append(piece)
        done += below
        below = here
        if len(done) + len(below) > MAX_PIECES:
            break
    return done + below


def _joined(a: Floats, b: Floats) -> Floats | None:
    """Return the hull of two pieces, (k, 2); None if it is larger than they are."""
    hull: Floats = cv2.convexHull(np.concatenate([a, b]).astype(np.float32))[:, 0].astype(float)
    return hull if _area(hull) - _area(a) - _area(b) < _FILLED else None


def _area(polygon: Floats) -> float:
    """Return the area of a polygon, m²."""
    return float(cv2.contourArea(polygon.astype(np.float32)))
