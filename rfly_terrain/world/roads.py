"""Roads that a terrain carries: the way across an area that climbs least."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rfly_common.arrays import Floats
from rfly_terrain.height_map.height_map import HeightMap

CELL = 4.0
"""m, of the lattice that roads are looked for on"""
MOST_CELLS = 250
"""on a side"""
_STEEPNESS = 400.0
"""a slope of 1:10 makes a metre of road count as five"""
_STEPS = ((0, 1), (1, 0), (1, 1), (1, -1), (1, 2), (2, 1), (2, -1), (1, -2))


@dataclass(frozen=True, eq=False)
class Road:
    """A line of at least two points over the ground, ENU, m."""

    corners: Floats
    """(n, 2) x east, y north"""

    @property
    def ways(self) -> Floats:
        """(n,) m from the begin to each corner, along it."""
        return np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(self.corners, axis=0).T))])

    @property
    def length(self) -> float:
        """m"""
        return float(self.ways[-1])

    def points(self, spacing: float) -> Floats:
        """(m, 2) places along it, at most so far apart (m)."""
        ways = self.ways
        at = np.linspace(0.0, ways[-1], math.ceil(ways[-1] / spacing) + 1)
        return np.column_stack([np.interp(at, ways, self.corners[:, axis]) for axis in (0, 1)])

    def at(self, way: float) -> tuple[float, float, float]:
        """x, y (m) and heading (rad, counter-clockwise from east) after so many metres."""
        ways = self.ways
        leg = int(np.clip(np.searchsorted(ways, way, side="right") - 1, 0, len(ways) - 2))
        d_x, d_y = (self.corners[leg + 1] - self.corners[leg]).tolist()
        x, y = (float(np.interp(way, ways, self.corners[:, axis])) for axis in (0, 1))
        return x, y, math.atan2(d_y, d_x)


def find_road(terrain: HeightMap, area: tuple[float, float, float, float]) -> Road:
    """From the western edge of an area (x_min, x_max, y_min, y_max; m) to the eastern one, past its middle.

    Of all ways over a lattice the one whose metres, weighed by the square of their steepness, are fewest; then rounded.
    """
    from scipy.ndimage import gaussian_filter1d

    x, y = (
        np.linspace(low, high, min(MOST_CELLS, max(2, round((high - low) / CELL) + 1)))
        for low, high in (area[:2], area[2:])
    )
    z = np.asarray(terrain.altitude(x[:, None], y[None, :]), float)
    middle = (len(x) // 2, len(y) // 2)
    west = _cheapest(x, y, z, middle, [(0, row) for row in range(len(y))])
    east = _cheapest(x, y, z, middle, [(len(x) - 1, row) for row in range(len(y))])
    nodes = np.array([*west, *east[::-1][1:]])
    line = np.column_stack([x[nodes[:, 0]], y[nodes[:, 1]]])
    return Road(np.column_stack([gaussian_filter1d(line[:, axis], 2.0, mode="nearest") for axis in (0, 1)]))


def _cheapest(
    x: Floats, y: Floats, z: Floats, begin: tuple[int, int], ends: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Nodes from the one of the ends that is reached best, to the begin."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    number = np.arange(z.size).reshape(z.shape)
    columns, rows = z.shape
    edges = []
    for d_x, d_y in _STEPS:
        here = slice(0, columns - d_x), slice(max(-d_y, 0), rows - max(d_y, 0))
        there = slice(d_x, columns), slice(max(d_y, 0), rows - max(-d_y, 0))
        if not number[here].size:
            continue
        way = math.hypot(d_x * (x[1] - x[0]), d_y * (y[1] - y[0]))
        slope = (z[there] - z[here]) / way
        edges.append((number[here].ravel(), number[there].ravel(), (way * (1.0 + _STEEPNESS * slope**2)).ravel()))
    from_, to, cost = (np.concatenate(part) for part in zip(*edges, strict=True))
    graph = coo_array((cost, (from_.astype(np.int32), to.astype(np.int32))), shape=(z.size, z.size)).tocsr()
    best, before = dijkstra(graph, directed=False, indices=int(number[begin]), return_predecessors=True)
    node = min((int(number[end]) for end in ends), key=lambda each: float(best[each]))
    path = [node]
    while path[-1] != number[begin]:
        path.append(int(before[path[-1]]))
    return [(each // rows, each % rows) for each in path]
