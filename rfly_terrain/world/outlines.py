# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Convex outlines of solids seen from above: the cells that they cover, and points near them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rfly_common.arrays import Bools, Floats, Ints
from rfly_terrain.height_map.grid import Grid

_NUMBERS_AT_ONCE = 8_000_000
_TOLERANCE = 1e-6
"""Width added to outlines without an area (walls, or single points), and taken from others, cells.
"""
_DISC_CORNERS = 16
"""Corners of the polygon around a disc."""


@dataclass(frozen=True, eq=False)
class Outlines:
    """Convex polygons, lines or points; ENU, m."""

    corners: Floats
    """Corners of all polygons, (c, 2), each one's around it, polygon after polygon."""
    first: Ints
    """Place of each polygon's first corner, (n + 1,)."""
    bottom: Floats
    """Lowest z of each solid, (n,)."""
    top: Floats
    """Highest z of each solid, (n,)."""

    def __len__(self) -> int:
        return len(self.top)

    def select(self, which: Bools | Ints) -> Outlines:
        """Return some of them."""
        chosen = np.arange(len(self))[which]
        counts = np.diff(self.first)[chosen]
        first = np.concatenate([[0], np.cumsum(counts)])
        rows = np.arange(first[-1]) + np.repeat(self.first[chosen] - first[:-1], counts)
        return Outlines(self.corners[rows], first, self.bottom[chosen], self.top[chosen])

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """Lowest and highest x and y of each one, (n, 2) each."""
        if not len(self):
            return np.empty((0, 2)), np.empty((0, 2))
        starts = self.first[:-1]
        return np.minimum.reduceat(self.corners, starts), np.maximum.reduceat(self.corners, starts)

    def grown(self, distance: float) -> Outlines:
        """Return outlines with all points within `distance` (m), and up to 2 % more.

        A disc becomes a polygon around it.
        """
        if distance == 0.0 or not len(self):
            return self
        angle = (np.arange(_DISC_CORNERS) + 0.5) * (2 * math.pi / _DISC_CORNERS)
        radius = distance / math.cos(math.pi / _DISC_CORNERS)
        disc = radius * np.column_stack([np.cos(angle), np.sin(angle)])
        corners = (self.corners[:, None, :] + disc).reshape(-1, 2)
        return outlines_around(corners, self.first * _DISC_CORNERS, self.bottom, self.top)

    def cells_under(self, cells: Grid) -> tuple[Ints, Ints, Ints]:
        """Return row, column and outline of the cells with any part within an outline.

        Each pair of cell and outline comes once. Two convex figures overlap if their shadows along
        the normal of each of their sides do.
        """
        n = len(self)
        if not n:
            return (np.empty(0, np.int64),) * 3

        centres = Outlines(  # in cells, from the centre of cell 0, 0
            np.stack(cells.coordinates(*self.corners.T), axis=1) - 0.5,
            self.first,
            self.bottom,
            self.top,
        )

        low, high = centres.bounds
        normals, least, most = centres._shadows()
        half = 0.5 * np.abs(normals).sum(axis=2)
        size = np.array((cells.columns, cells.rows))
        first = np.clip(np.ceil(low - 0.5 - _TOLERANCE), 0, size).astype(np.int64)
        last = np.clip(np.floor(high + 0.5 + _TOLERANCE), -1, size - 1).astype(np.int64)

        pairs: list[tuple[Ints, Ints, Ints]] = []
        counts = np.maximum(last - first + 1, 0)
        for which, place in _in_portions(counts.prod(axis=1), _NUMBERS_AT_ONCE // normals.shape[1]):
            width = counts[which, 0]
            column = first[which, 0] + place % width
            row = first[which, 1] + place // width
            place_in_grid = np.stack((column, row), axis=-1).astype(float)
            along = np.einsum("mkj,mj->mk", normals[which], place_in_grid)
            hit = ((along > (least - half)[which]) & (along < (most + half)[which])).all(axis=1)
            pairs.append((row[hit], column[hit], which[hit]))

        if not pairs:
            return (np.empty(0, np.int64),) * 3
        row, column, which = (np.concatenate(part) for part in zip(*pairs, strict=True))
        return row, column, which

    def _shadows(self) -> tuple[Floats, Floats, Floats]:
        """Return the normals of all sides, and the ranges of the corners along each.

        Normals, (n, k, 2), include those of a cell's sides. The ranges are the least and the most
        that corners reach, (n, k).
        """
        # corners, the last one repeated: it adds no side
        counts = np.diff(self.first)
        most_corners = int(counts.max())
        place = np.minimum(np.arange(most_corners), counts[:, None] - 1)
        polygon = self.corners[self.first[:-1, None] + place]

        # sides without a length have no normal: one of the cell's stands for it
        side = np.roll(polygon, -1, axis=1) - polygon
        length = np.linalg.norm(side, axis=2)
        across = np.stack((side[..., 1], -side[..., 0]), axis=-1)
        normals = across / np.maximum(length, _TOLERANCE)[..., None]
        normals[length < _TOLERANCE] = (1.0, 0.0)
        axes = np.broadcast_to(np.eye(2), (len(self), 2, 2))
        normals = np.concatenate((normals, axes), axis=1)

        along = np.einsum("nkj,ncj->nkc", normals, polygon)
        has_area = _areas(polygon) > _TOLERANCE
        spare = np.where(has_area, _TOLERANCE, -_TOLERANCE)[:, None]
        return normals, along.min(axis=2) + spare, along.max(axis=2) - spare

    def near(self, points: Floats, distance: float) -> tuple[Ints, Ints]:
        """Return point and outline of the pairs within `distance` (m) of each other.

        Points are (m, 2).
        """
        from scipy.spatial import cKDTree

        none = np.empty(0, np.int64), np.empty(0, np.int64)
        if not len(self) or not len(points):
            return none

        # outlines near any of the points
        low, high = self.bounds
        is_near = (low - distance <= points.max(axis=0)) & (high + distance >= points.min(axis=0))
        around = np.flatnonzero(is_near.all(axis=1))
        if not len(around):
            return none

        # points in the circle around each
        centre = 0.5 * (low + high)[around]
        reach = 0.5 * np.linalg.norm(high - low, axis=1)[around] + distance
        lists = cKDTree(points).query_ball_point(centre, reach * (1 + 1e-9))
        which = np.repeat(around, [len(inside) for inside in lists])
        point = np.fromiter(itertools.chain.from_iterable(lists), np.int64, len(which))

        close = self._distance(points[point], which) <= distance
        return point[close], which[close]

    def clearance(self, x: float, y: float) -> float:
        """Return the distance from a place to the nearest outline, m.

        It is 0 within an outline, inf without any.
        """
        distances = self._distance(np.tile((x, y), (len(self), 1)), np.arange(len(self)))
        return float(distances.min(initial=math.inf))

    def _distance(self, points: Floats, which: Ints) -> Floats:
        """Return the distance from each point to an outline, (m,), m; 0 within it."""
        distance = np.empty(len(points))
        corners = np.diff(self.first)[which]

        for begin, end in _portions(corners, _NUMBERS_AT_ONCE // 8):
            count = corners[begin:end]
            starts = np.concatenate([[0], np.cumsum(count)[:-1]])
            place = np.arange(count.sum()) - np.repeat(starts, count)
            base = np.repeat(self.first[which[begin:end]], count)
            corner_count = np.repeat(count, count)

            a = self.corners[base + place]
            b = self.corners[base + (place + 1) % corner_count]
            away = np.repeat(points[begin:end], count, axis=0) - a
            side = b - a
            square = np.einsum("ij,ij->i", side, side)
            along = np.einsum("ij,ij->i", away, side)
            share = np.clip(along / np.where(square > 0, square, 1.0), 0.0, 1.0)
            to_side = np.linalg.norm(away - share[:, None] * side, axis=1)

            outside = side[:, 0] * away[:, 1] - side[:, 1] * away[:, 0] <= 0.0
            inside = ~np.logical_or.reduceat(outside, starts)
            distance[begin:end] = np.where(inside, 0.0, np.minimum.reduceat(to_side, starts))
        return distance


def outlines_around(points: Floats, first: Ints, bottom: Floats, top: Floats) -> Outlines:
    """Return the convex outlines, counter-clockwise, of groups of points (p, 2).

    `first`, (n + 1,), holds the place of each group's first point.
    """
    import cv2  # 17 MB, only for users with objects

    corners = []
    counts = []
    for begin, end in itertools.pairwise(first.tolist()):
        group = points[begin:end]
        # OpenCV computes in float32: about one of the points that is precise enough, and the points
        # keep their values
        local = (group - group[0]).astype(np.float32)
        hull = cv2.convexHull(local, returnPoints=False, clockwise=False)
        corners.append(group[hull[:, 0]])
        counts.append(len(hull))

    starts = np.concatenate([[0], np.cumsum(np.array(counts, np.int64))]).astype(np.int64)
    return Outlines(np.concatenate(corners) if corners else np.empty((0, 2)), starts, bottom, top)


def _areas(polygon: Floats) -> Floats:
    """Return twice the area of polygons (n, c, 2), (n,), by the shoelace formula."""
    local = polygon - polygon[:, :1]
    following = np.roll(local, -1, axis=1)
    return np.abs(
        (local[..., 0] * following[..., 1] - local[..., 1] * following[..., 0]).sum(axis=1)
    )


def _in_portions(counts: Ints, most: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield which and place, in portions of at most `most` numbers.

    They are each number n, repeated counts[n] times, and 0 … counts[n] − 1.
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    for portion in range(math.ceil(total / most)):
        place = np.arange(portion * most, min((portion + 1) * most, total))
        which = np.searchsorted(ends, place, side="right")
        yield which, place - (ends - counts)[which]


def _portions(counts: Ints, most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows whose counts add up to about `most`."""
    ends = np.cumsum(counts)
    begin = 0
    while begin < len(counts):
        previous = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, previous + most, side="right")))
        yield begin, end
        begin = end
