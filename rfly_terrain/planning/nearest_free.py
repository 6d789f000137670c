# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The free cell nearest to a place, for messages about a blocked start or goal."""

from __future__ import annotations

import math

import cv2
import numpy as np

from rfly_common.arrays import Bools
from rfly_terrain.planning.plan import PlanPose, cell_at

FIRST_REACH = 32
"""Distance, in cells, of the first search; each further one doubles it."""


def nearest_free(
    free: Bools,
    origin: tuple[float, float],
    side: float,
    x: float,
    y: float,
    start: tuple[float, float],
) -> tuple[float, float] | None:
    """Return the centre (m) of the nearest free cell to (x, y) that is connected to `start`.

    Cells are connected through common sides. `free`: (rows, columns), row along y; `origin`: x, y
    of its south-west corner, `side` of a cell, m. If `start` is not free itself, any free cell
    counts. Returns None if there is none.
    """
    _, parts = cv2.connectedComponents(free.astype(np.uint8), connectivity=4, ltype=cv2.CV_32S)
    row, column = cell_at(*origin, side, x, y)
    start_row, start_column = cell_at(*origin, side, *start)
    inside = 0 <= start_row < free.shape[0] and 0 <= start_column < free.shape[1]
    part = int(parts[start_row, start_column]) if inside else 0

    # larger and larger windows around the place
    reach = FIRST_REACH
    while True:
        first = max(0, row - reach), max(0, column - reach)
        window = parts[first[0] : max(0, row + reach + 1), first[1] : max(0, column + reach + 1)]
        rows, columns = np.nonzero(window == part if part else window > 0)
        if len(rows):
            free_x = origin[0] + (columns + first[1] + 0.5) * side
            free_y = origin[1] + (rows + first[0] + 0.5) * side
            distance = np.hypot(free_x - x, free_y - y)
            nearest = int(distance.argmin())
            if distance[nearest] <= reach * side or window.shape == parts.shape:
                return float(free_x[nearest]), float(free_y[nearest])
        if window.shape == parts.shape:
            return None
        reach *= 2


def name_nearest_free(
    free: Bools, origin: tuple[float, float], side: float, pose: PlanPose, start: PlanPose | None
) -> str:
    """Return the end of a message that names the nearest free place.

    The place is connected to `start`; any place counts if `start` is None. The end is "" if there
    is no such place.
    """
    connected_to = (origin[0] - side, origin[1] - side) if start is None else (start.x, start.y)
    nearest = nearest_free(free, origin, side, pose.x, pose.y, connected_to)
    if nearest is None:
        return ""
    away = math.hypot(nearest[0] - pose.x, nearest[1] - pose.y)
    place = f"({nearest[0]:g}, {nearest[1]:g})"
    return f"; the nearest free place is {place} in map, {away:.1f} m away"
