# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Exact clearance of straight lines over the bilinear ground and from upright boxes. NED metres."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats
from rfly_terrain.height_map.height_map import HeightMap

ITERATIONS = 40
"""Number of steps of a search by thirds: they find a place to 1e-7 of a line."""
CHUNK = 1000
"""Number of lines that are compared with all boxes at a time."""

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Boxes:
    """Upright boxes that stand on the ground; everything below their top belongs to them."""

    center: Floats
    """North and east, (n, 2), m."""
    half: Floats
    """Half the length along the box's own x axis, and across, (n, 2), m."""
    yaw: Floats
    """Yaw of the x axis clockwise from north, (n,), rad."""
    top: Floats
    """NED z of the top, (n,), m."""
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.top)

    def name(self, index: int) -> str:
        """Return the name of a box in messages."""
        return self.names[index] if self.names else f"object {index}"

    def distances(self, index: Indices, points: Floats) -> Floats:
        """Return distances (k,), m, of points (k, 3), each from the box of its index; 0 inside."""
        cos = np.cos(self.yaw[index])
        sin = np.sin(self.yaw[index])
        north, east = (points[:, :2] - self.center[index]).T
        own = np.column_stack((cos * north + sin * east, cos * east - sin * north))
        outside = np.maximum(np.abs(own) - self.half[index], 0.0)
        above = np.maximum(self.top[index] - points[:, 2], 0.0)
        return np.sqrt(np.sum(outside**2, axis=1) + above**2)


class Near(NamedTuple):
    """Pairs of a line and a box that come near each other."""

    line: Indices
    """Indices of the lines, (k,)."""
    box: Indices
    """Indices of the boxes, (k,)."""
    distance: Floats
    """Least distances, (k,), m."""
    share: Floats
    """Places of the least distances, (k,), as shares of the lines."""


def height_over_ground(terrain: HeightMap, start: Floats, end: Floats) -> tuple[float, float]:
    """Return the least height, m, of a line from start to end (3,) over the ground, and its place.

    The place is a share of the line. Within a cell the ground below a line is a quadratic of the
    way, and beyond the map its edge continues: exact except for rounding.
    """
    # shares at which the line enters another cell, and the middles between them
    breaks = [np.array([0.0, 1.0])]
    for axis, origin, step, count in (
        (1, terrain.origin_x, terrain.step_x, terrain.rows),
        (0, terrain.origin_y, terrain.step_y, terrain.columns),
    ):
        first = (start[axis] - origin) / step
        last = (end[axis] - origin) / step
        low = max(0, math.ceil(min(first, last)))
        high = min(count - 1, math.floor(max(first, last)))
        if first != last and high >= low:
            breaks.append((np.arange(low, high + 1) - first) / (last - first))
    share = np.unique(np.clip(np.concatenate(breaks), 0.0, 1.0))
    share = np.insert(share, np.arange(1, len(share)), (share[:-1] + share[1:]) / 2)

    points = start + share[:, None] * (end - start)
    height = np.asarray(terrain.altitude_ned(points[:, 0], points[:, 1])) - points[:, 2]

    # the quadratic of each cell and its vertex
    f0 = height[:-2:2]
    middle = height[1:-1:2]
    f1 = height[2::2]
    bend = 2.0 * (f0 + f1 - 2.0 * middle)
    slope = 4.0 * middle - 3.0 * f0 - f1
    with np.errstate(divide="ignore", invalid="ignore"):
        vertex = np.where(bend > 0.0, -slope / (2.0 * bend), 0.0)
    vertex = np.clip(np.nan_to_num(vertex), 0.0, 1.0)
    lowest = f0 + slope * vertex + bend * vertex**2

    cell = int(np.argmin(lowest))
    node = int(np.argmin(height))
    if height[node] <= lowest[cell]:
        return float(height[node]), float(share[node])
    place = share[2 * cell] + vertex[cell] * (share[2 * cell + 2] - share[2 * cell])
    return float(lowest[cell]), float(place)


def near_boxes(boxes: Boxes, starts: Floats, ends: Floats, clearance: float) -> Near:
    """Return the lines from starts to ends (m, 3) and the boxes nearer than `clearance` (m).

    The distance to a convex body is convex along a line: a search by thirds finds its least.
    """
    reach = clearance + np.hypot(*boxes.half.T)

    # candidates, as seen from above
    pairs = [np.empty((0, 2), np.int64)]
    for first in range(0, len(starts), CHUNK):
        start = starts[first : first + CHUNK, None, :2]
        along = (ends - starts)[first : first + CHUNK, None, :2]
        squared = np.maximum(np.sum(along**2, axis=2), 1e-300)
        share = np.clip(np.sum((boxes.center - start) * along, axis=2) / squared, 0.0, 1.0)
        away = boxes.center - start - share[..., None] * along
        pairs.append(
            np.argwhere(np.hypot(away[..., 0], away[..., 1]) < reach) + np.array([first, 0])
        )
    line, box = np.concatenate(pairs).T

    # search by thirds
    start = starts[line]
    along = ends[line] - starts[line]
    low = np.zeros(len(line))
    high = np.ones(len(line))
    for _ in range(ITERATIONS):
        third = (high - low) / 3.0
        a = low + third
        b = high - third
        distance_a = boxes.distances(box, start + a[:, None] * along)
        distance_b = boxes.distances(box, start + b[:, None] * along)
        nearer = distance_a <= distance_b
        low = np.where(nearer, low, a)
        high = np.where(nearer, b, high)

    share = (low + high) / 2
    distance = boxes.distances(box, start + share[:, None] * along)
    is_near = distance < clearance
    return Near(line[is_near], box[is_near], distance[is_near], share[is_near])
