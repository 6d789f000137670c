# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Geofences: inclusion and exclusion polygons and circles, upright walls without top or bottom.

A place is within the fence if every inclusion holds it and no exclusion does (MAVLink,
MAV_CMD_NAV_FENCE_*: the vehicle must stay within an inclusion area, and outside an exclusion area).
`FenceWatch` overrides the user's command in flight after a breach: the vehicle holds for
`BREACH_HOLD` seconds, then returns. A command that is given within the fence ends that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Floats
from rfly_missions.mission.items import MissionCommand, Ned, Placing

ON_BORDER = 1e-6
"""Distance, m, from a border up to which a place lies on it; a border belongs to its area."""
CHUNK = 100
"""Number of places on a way that are held against all edges of a polygon at a time."""


@dataclass(frozen=True, eq=False)
class FencePolygon:
    """A polygon of vertices (k, 2), north and east, m, in order; the last joins the first."""

    vertices: Floats
    inclusion: bool = True

    def holds(self, north: float, east: float) -> bool:
        """Return whether a point lies in it (even-odd rule) or on its border."""
        return bool(self._hold(np.array([(north, east)]))[0])

    def _hold(self, points: Floats) -> NDArray[np.bool_]:
        """Return which of the points (n, 2) it holds, (n,)."""
        a = self.vertices
        b = np.roll(self.vertices, -1, axis=0)
        north, east = points.T[:, :, None]
        spans = (a[:, 1] > east) != (b[:, 1] > east)
        with np.errstate(divide="ignore", invalid="ignore"):
            crossing = a[:, 0] + (east - a[:, 1]) / (b[:, 1] - a[:, 1]) * (b[:, 0] - a[:, 0])
        inside = np.count_nonzero(spans & (north < crossing), axis=1) % 2 == 1
        nearest, _ = self._edge_distances(points)
        return inside | (nearest.min(axis=1) <= ON_BORDER)

    def breached_by_line(self, start: Floats, end: Floats) -> bool:
        """Return whether the straight line between two points breaches it.

        The line is cut where it crosses an edge or passes a vertex: the pieces between lie wholly
        within or without, and so do their middles.
        """
        along = end - start
        edges = np.roll(self.vertices, -1, axis=0) - self.vertices
        to_vertices = self.vertices - start

        with np.errstate(divide="ignore", invalid="ignore"):
            turn = _cross(along, edges)
            crossings = _cross(to_vertices, edges) / turn
            on_edge = np.abs(_cross(to_vertices, along) / turn - 0.5) <= 0.5 + ON_BORDER
            feet = to_vertices @ along / (along @ along)
            beside = np.hypot(*(to_vertices - feet[:, None] * along).T) <= ON_BORDER

        shares = np.concatenate([[0.0, 1.0], crossings[on_edge], feet[beside]])
        shares = np.unique(shares[(shares >= 0.0) & (shares <= 1.0)])
        shares = np.concatenate([shares, 0.5 * (shares[1:] + shares[:-1])])
        places = start + shares[:, None] * along
        return any(
            bool(np.any(self._hold(places[first : first + CHUNK]) != self.inclusion))
            for first in range(0, len(places), CHUNK)
        )

    def breached_by_circle(self, center: Floats, radius: float) -> bool:
        """Return whether the way round a circle breaches it."""
        nearest, farthest = self._edge_distances(center[None])
        margin = -ON_BORDER if self.inclusion else ON_BORDER
        meets = (nearest <= radius + margin) & (farthest >= radius - margin)
        return bool(meets.any()) or self.holds(center[0] + radius, center[1]) != self.inclusion

    def _edge_distances(self, points: Floats) -> tuple[Floats, Floats]:
        """Return the least and the largest distance (n, k), m, of each edge from points (n, 2)."""
        along = np.roll(self.vertices, -1, axis=0) - self.vertices
        squared = np.maximum(np.sum(along**2, axis=1), 1e-300)
        to_start = self.vertices - points[:, None]
        share = np.clip(-np.sum(to_start * along, axis=2) / squared, 0.0, 1.0)
        nearest = np.linalg.norm(to_start + share[..., None] * along, axis=2)
        to_vertices = np.linalg.norm(to_start, axis=2)
        return nearest, np.maximum(to_vertices, np.roll(to_vertices, -1, axis=1))

    def placed(self, place: Placing) -> FencePolygon:
        """Return the same polygon at the places of its corners."""
        corners = np.column_stack([self.vertices, np.zeros(len(self.vertices))])
        return replace(self, vertices=place(corners)[:, :2])


@dataclass(frozen=True, eq=False)
class FenceCircle:
    """A circle around (north, east), m."""

    center: tuple[float, float]
    radius: float
    inclusion: bool = True

    def holds(self, north: float, east: float) -> bool:
        """Return whether a point lies in it or on its border."""
        away = math.hypot(north - self.center[0], east - self.center[1])
        return away <= self.radius + ON_BORDER

    def breached_by_line(self, start: Floats, end: Floats) -> bool:
        """Return whether the straight line between two points breaches it."""
        places = [start, end]
        along = end - start
        squared = float(along @ along)
        if not self.inclusion and squared > 0.0:
            share = float((np.asarray(self.center) - start) @ along) / squared
            places.append(start + min(1.0, max(0.0, share)) * along)
        return any(self.holds(*place.tolist()) != self.inclusion for place in places)

    def breached_by_circle(self, center: Floats, radius: float) -> bool:
        """Return whether the way round a circle breaches it."""
        away = math.hypot(center[0] - self.center[0], center[1] - self.center[1])
        if self.inclusion:
            return away + radius > self.radius + ON_BORDER
        return abs(away - radius) <= self.radius + ON_BORDER

    def placed(self, place: Placing) -> FenceCircle:
        """Return the same circle at the place of its centre."""
        north, east, _ = place(np.array([*self.center, 0.0])).tolist()
        return replace(self, center=(north, east))


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
        return self._first_breached(lambda area: area.holds(north, east) != area.inclusion)

    def breach_of_line(self, start: ArrayLike, end: ArrayLike) -> str:
        """Return the area that the straight line between two points breaches, "" for none.

        Points: north, east, m.
        """
        first = np.asarray(start, dtype=float)[:2]
        last = np.asarray(end, dtype=float)[:2]

        return self._first_breached(lambda area: area.breached_by_line(first, last))

    def breach_of_circle(self, center: ArrayLike, radius: float) -> str:
        """Return the area that the way round a circle breaches, "" for none.

        `center`: north, east, m; `radius`: m.
        """
        middle = np.asarray(center, dtype=float)[:2]
        return self._first_breached(lambda area: area.breached_by_circle(middle, radius))

    def moved(self, offset: Sequence[float]) -> Geofence:
        """Return the same fence, moved by NED metres; (north, east) leaves heights as they are."""
        shift = np.zeros(3)
        shift[: len(offset)] = offset
        return self.placed(lambda places: places + shift)

    def placed(self, place: Placing) -> Geofence:
        """Return the same fence at other places: `place` turns NED (…, 3) into NED, m."""
        back = None
        if self.breach_return is not None:
            north, east, down = place(np.array(self.breach_return)).tolist()
            back = (north, east, down)
        return Geofence(tuple(area.placed(place) for area in self.areas), back)

    def _first_breached(self, is_breached: Callable[[FencePolygon | FenceCircle], bool]) -> str:
        """Return the name of the first breached area, "" for none."""
        for number, area in enumerate(self.areas, 1):
            if is_breached(area):
                shape = "circle" if isinstance(area, FenceCircle) else "polygon"
                kind = "inclusion" if area.inclusion else "exclusion"
                return f"area {number} of the fence ({kind} {shape})"
        return ""


def _cross(a: Floats, b: Floats) -> Floats:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


class FlightAreaPlan(NamedTuple):
    """Where a vehicle may be, and where it may return to."""

    fence: Geofence = Geofence()
    rally: tuple[Ned, ...] = ()
    """Places besides home."""


BREACH_HOLD = 2.0
"""Time of HOLD after leaving the fence, s; then RTL."""


class Breach(NamedTuple):
    """A breach that no command has ended yet."""

    area: str
    """The area of the fence that was left or entered."""
    since: float
    """Time of the breach, s."""


class FenceWatch:
    """The fence of the loaded mission, and its breach."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._position: tuple[float, float] | None = None
        self.fence = Geofence()
        self.breach: Breach | None = None

    @property
    def area(self) -> str:
        """The breached area; "" for none."""
        return self.breach.area if self.breach is not None else ""

    def replace(self, fence: Geofence) -> None:
        """Watch another fence, of a new mission."""
        self.fence = fence
        self.breach = None

    def forgive(self) -> None:
        """End the breach if the vehicle is within the fence: a command has been given."""
        if self.breach is None or self._position is None:
            return
        if not self.fence.breach(*self._position):
            self.breach = None

    def command(
        self, requested: MissionCommand, position: tuple[float, float], now: float
    ) -> MissionCommand:
        """Return the command that counts for a vehicle at `position` (north, east, m)."""
        self._position = position
        if self.fence and self.breach is None:
            area = self.fence.breach(*position)
            if area:
                self.breach = Breach(area, now)
                self._log(f"{area} is breached: holding, then returning")

        if self.breach is None:
            return requested
        holds = now - self.breach.since < BREACH_HOLD
        return MissionCommand.HOLD if holds else MissionCommand.RTL
