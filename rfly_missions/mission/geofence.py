# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Geofences: inclusion and exclusion polygons and circles, upright walls without top or bottom.

A place is within the fence if every inclusion holds it and no exclusion does (MAVLink,
MAV_CMD_NAV_FENCE_*: the vehicle must stay within an inclusion area, and outside an exclusion area).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats


@dataclass(frozen=True, eq=False)
class FencePolygon:
    """A polygon of vertices (k, 2), north and east, m, in order; the last joins the first."""

    vertices: Floats
    inclusion: bool = True

    def holds(self, north: float, east: float) -> bool:
        """Return whether a point lies in it (even-odd rule)."""
        a = self.vertices
        b = np.roll(self.vertices, -1, axis=0)
        spans = (a[:, 1] > east) != (b[:, 1] > east)
        with np.errstate(divide="ignore", invalid="ignore"):
            crossing = a[:, 0] + (east - a[:, 1]) / (b[:, 1] - a[:, 1]) * (b[:, 0] - a[:, 0])
        return bool(np.count_nonzero(spans & (north < crossing)) % 2)

    def crossed_by(self, start: Floats, end: Floats) -> bool:
        """Return whether the straight line between two points cuts its border."""
        a = self.vertices
        b = np.roll(self.vertices, -1, axis=0)
        sides_of_ends = _cross(b - a, start - a) * _cross(b - a, end - a)
        sides_of_edges = _cross(end - start, a - start) * _cross(end - start, b - start)
        return bool(np.any((sides_of_ends < 0) & (sides_of_edges < 0)))

    def moved(self, offset: Floats) -> FencePolygon:
        """Return the same polygon, moved by (2,) metres."""
        return replace(self, vertices=self.vertices + offset)


@dataclass(frozen=True, eq=False)
class FenceCircle:
    """A circle around (north, east), m."""

    center: tuple[float, float]
    radius: float
    inclusion: bool = True

    def holds(self, north: float, east: float) -> bool:
        """Return whether a point lies in it."""
        return math.hypot(north - self.center[0], east - self.center[1]) <= self.radius

    def crossed_by(self, start: Floats, end: Floats) -> bool:
        """Return whether the straight line between two points leaves the side on which both lie."""
        along = end - start
        to_center = np.asarray(self.center) - start
        squared = float(along @ along)

        share = min(1.0, max(0.0, float(to_center @ along) / squared)) if squared > 0 else 0.0
        nearest = float(np.linalg.norm(to_center - share * along))
        farthest = max(float(np.linalg.norm(to_center)), float(np.linalg.norm(to_center - along)))
        return nearest < self.radius < farthest

    def moved(self, offset: Floats) -> FenceCircle:
        """Return the same circle, moved by (2,) metres."""
        return replace(
            self, center=(self.center[0] + float(offset[0]), self.center[1] + float(offset[1]))
        )


@dataclass(frozen=True)
class Geofence:
    """The areas of a mission; north and east in metres. Without areas every place is within."""

    areas: tuple[FencePolygon | FenceCircle, ...] = ()
    breach_return: tuple[float, float, float] | None = None
    """Place to which a vehicle returns after a breach, NED, m; None: that of any return."""

    def __bool__(self) -> bool:
        return bool(self.areas)

    def breach(self, north: float, east: float) -> str:
        """Return the area that a point breaches, "" if it is within the fence."""
        for number, area in enumerate(self.areas, 1):
            if area.holds(north, east) != area.inclusion:
                return self._name(number, area)
        return ""

    def breach_of_line(self, start: ArrayLike, end: ArrayLike) -> str:
        """Return the area that the straight line between two points breaches, "" for none.

        Points: north, east, m.
        """
        first = np.asarray(start, dtype=float)[:2]
        last = np.asarray(end, dtype=float)[:2]

        for number, area in enumerate(self.areas, 1):
            for north, east in (first.tolist(), last.tolist()):
                if area.holds(north, east) != area.inclusion:
                    return self._name(number, area)
            is_round_wall = isinstance(area, FenceCircle) and area.inclusion
            if not is_round_wall and area.crossed_by(first, last):
                return self._name(number, area)
        return ""

    def moved(self, offset: Sequence[float]) -> Geofence:
        """Return the same fence, moved by NED metres; (north, east) leaves heights as they are."""
        shift = np.zeros(3)
        shift[: len(offset)] = offset
        back = None
        if self.breach_return is not None:
            back = tuple((np.asarray(self.breach_return) + shift).tolist())
        return Geofence(tuple(area.moved(shift[:2]) for area in self.areas), back)

    @staticmethod
    def _name(number: int, area: FencePolygon | FenceCircle) -> str:
        shape = "circle" if isinstance(area, FenceCircle) else "polygon"
        kind = "inclusion" if area.inclusion else "exclusion"
        return f"area {number} of the fence ({kind} {shape})"


def _cross(a: Floats, b: Floats) -> Floats:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
