"""The nearest place to one that is forbidden."""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from rfly_terrain.planning.drive import PlanPose

_FIRST_REACH = 32
"""cells: how far is looked at first; then twice as far, and so on"""


def nearest_free(
    free: NDArray[np.bool_], origin: tuple[float, float], side: float, x: float, y: float, start: tuple[float, float]
) -> tuple[float, float] | None:
    """The centre (m) of the nearest free cell to (x, y) that cells with common sides connect to `start`.

    `free`: (rows, columns), row along y; `origin`: x, y of its south-west corner, `side` of a cell, m. Where `start` is
    not free itself any free cell counts. None where there is none.
    """
    _, parts = cv2.connectedComponents(free.astype(np.uint8), connectivity=4, ltype=cv2.CV_32S)
    (row, column), (start_row, start_column) = (
        (math.floor((at[1] - origin[1]) / side), math.floor((at[0] - origin[0]) / side)) for at in ((x, y), start)
    )
    inside = 0 <= start_row < free.shape[0] and 0 <= start_column < free.shape[1]
    part = int(parts[start_row, start_column]) if inside else 0
    reach = _FIRST_REACH
    while True:
        first = max(0, row - reach), max(0, column - reach)
        window = parts[first[0] : max(0, row + reach + 1), first[1] : max(0, column + reach + 1)]
        rows, columns = np.nonzero(window == part if part else window > 0)
        if len(rows):
            found_x = origin[0] + (columns + first[1] + 0.5) * side
            found_y = origin[1] + (rows + first[0] + 0.5) * side
            distance = np.hypot(found_x - x, found_y - y)
            nearest = int(distance.argmin())
            if distance[nearest] <= reach * side or window.shape == parts.shape:
                return float(found_x[nearest]), float(found_y[nearest])
        if window.shape == parts.shape:
            return None
        reach *= 2


def name_nearest_free(
    free: NDArray[np.bool_], origin: tuple[float, float], side: float, pose: PlanPose, start: PlanPose | None
) -> str:
    """The end of a message: the nearest free place that `start` leads to, or any at all; "" where there is none."""
    beginning = (origin[0] - side, origin[1] - side) if start is None else (start.x, start.y)
    found = nearest_free(free, origin, side, pose.x, pose.y, beginning)
    if found is None:
        return ""
    away = math.hypot(found[0] - pose.x, found[1] - pose.y)
    return f"; the nearest free place is ({found[0]:g}, {found[1]:g}) in map, {away:.1f} m away"
