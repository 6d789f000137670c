"""Geofences: inclusion and exclusion polygons and circles, upright walls without top or bottom.

A place is within the fence where every inclusion holds it and no exclusion does (MAVLink,
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
    """A polygon of vertices (k, 2), north and east in metres, in order; the last is joined to the
    first.
    """

    vertices: Floats
    inclusion: bool = True

    def holds(self, north: float, east: float) -> bool:
        """Whether a point lies in it (even-odd rule)."""
        a = self.vertices
        b = np.roll(self.vertices, -1, axis=0)
        spans = (a[:, 1] > east) != (b[:, 1] > east)
        with np.errstate(divide="ignore", invalid="ignore"):
            crossing = a[:, 0] + (east - a[:, 1]) / (b[:, 1] - a[:, 1]) * (b[:, 0] - a[:, 0])
        return bool(np.count_nonzero(spans & (north < crossing)) % 2)

    def crossed_by(self, start: Floats, end: Floats) -> bool:
        """Whether the straight line between two points cuts its border."""
        a = self.vertices
        b = np.roll(self.vertices, -1, axis=0)
        sides_of_ends = _cross(b - a, start - a) * _cross(b - a, end - a)
        sides_of_edges = _cross(end - start, a - start) * _cross(end - start, b - start)
        return bool(np.any((sides_of_ends < 0) & (sides_of_edges < 0)))

    def moved(self, offset: Floats) -> FencePolygon:
        """The same, moved by (2,) metres."""
        return replace(self, vertices=self.vertices + offset)


@dataclass(frozen=True, eq=False)
class FenceCircle:
    """A circle around (north, east), metres."""

    center: tuple[float, float]
    radius: float
    inclusion: bool = True

    def holds(self, north: float, east: float) -> bool:
        """Whether a point lies in it."""
        return math.hypot(north - self.center[0], east - self.center[1]) <= self.radius

    def crossed_by(self, start: Floats, end: Floats) -> bool:
        """Whether the straight line between two points that lie both outside or both inside leaves
        that side.
        """
        along = end - start
        to_center = np.asarray(self.center) - start
        squared = float(along @ along)
        share = min(1.0, max(0.0, float(to_center @ along) / squared)) if squared > 0 else 0.0
        nearest = float(np.linalg.norm(to_center - share * along))
        farthest = max(float(np.linalg.norm(to_center)), float(np.linalg.norm(to_center - along)))
        return nearest < self.radius < farthest

    def moved(self, offset: Floats) -> FenceCircle:
        """The same, moved by (2,) metres."""
        return replace(
            self, center=(self.center[0] + float(offset[0]), self.center[1] + float(offset[1]))
        )


@dataclass(frozen=True)
class Geofence:
    """All areas of a mission; north and east in metres. Without areas everything is within."""

    areas: tuple[FencePolygon | FenceCircle, ...] = ()
    breach_return: tuple[float, float, float] | None = None
    """NED m: where a vehicle returns to that has left the fence; None: as any return"""

    def __bool__(self) -> bool:
        return bool(self.areas)

    def breach(self, north: float, east: float) -> str:
        """Which area a point breaches, "" where it is within the fence."""
        for number, area in enumerate(self.areas, 1):
            if area.holds(north, east) != area.inclusion:
                return self._name(number, area)
        return ""

    def breach_of_line(self, start: ArrayLike, end: ArrayLike) -> str:
        """Which area the straight line between two points (north, east) breaches, "" for none."""
        a = np.asarray(start, dtype=float)[:2]
        b = np.asarray(end, dtype=float)[:2]
        for number, area in enumerate(self.areas, 1):
            for north, east in (a.tolist(), b.tolist()):
                if area.holds(north, east) != area.inclusion:
                    return self._name(number, area)
            inside_a_round_wall = isinstance(area, FenceCircle) and area.inclusion
            if not inside_a_round_wall and area.crossed_by(a, b):
                return self._name(number, area)
        return ""

    def moved(self, offset: Sequence[float]) -> Geofence:
        """The same, moved by NED metres; (north, east) leaves heights as they are."""
        by = np.zeros(3)
        by[: len(offset)] = offset
        back = (
            None
            if self.breach_return is None
            else tuple((np.asarray(self.breach_return) + by).tolist())
        )
        return Geofence(tuple(area.moved(by[:2]) for area in self.areas), back)

    @staticmethod
    def _name(number: int, area: FencePolygon | FenceCircle) -> str:
        shape = "circle" if isinstance(area, FenceCircle) else "polygon"
        return (
            f"area {number} of the fence ({'inclusion' if area.inclusion else 'exclusion'} {shape})"
        )


def _cross(a: Floats, b: Floats) -> Floats:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
