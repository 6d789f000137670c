# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Plane paths by arc length, made of segments with exact formulas, and the altitudes along them.

A path is a row of pieces, each with the arc length s0 at which it begins:

- ARC: constant curvature, a straight line if that is 0. Closed form.
- SPIRAL: a clothoid, whose curvature is proportional to the distance from its straight end. Power
  series, exact to rounding.
- POLYNOMIAL: x and y are polynomials of degree 5 in s - s0 (see `curves.py`, which makes them from
  any smooth curve).

Position, tangent, curvature and rate of curvature follow from the same formula of a piece, so they
are derivatives of each other to rounding. Paths of many vehicles lie in one table (`PathTable`),
and one call evaluates all of them. Coordinates are ENU metres; curvature is positive where the path
turns left (counter-clockwise seen from above).

An altitude profile is z by horizontal arc length, through the waypoints' heights. Between them it
is a cubic polynomial that keeps within their heights (PCHIP; Fritsch and Butland, SIAM Journal on
Scientific and Statistical Computing 5(2), 1984): it climbs where they climb, is level at the
highest and lowest, and its slope has no steps.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Floats, Ints
from rfly_trajectory.kernels.tables import (
    ARC,
    PIECE_VALUES,
    SPIRAL,
    SPIRAL_TERMS,
    AltitudeTable,
    PathTable,
)


class PathPoints(NamedTuple):
    """Points of paths, arrays of one leading shape."""

    position: Floats
    """Positions, (…, 2), ENU, m."""
    tangent: Floats
    """Unit vectors in the direction of growing s, (…, 2)."""
    curvature: Floats
    """Curvatures, (…), 1/m, left positive."""
    curvature_rate: Floats
    """Derivatives of the curvature by s, (…), 1/m²."""


class Bend(NamedTuple):
    """Curvature of a path at one point."""

    s: float
    """Arc length, m."""
    curvature: float
    """Curvature, 1/m, left positive."""


@dataclass(frozen=True, eq=False)
class AltitudeProfile:
    """z along one path; immutable."""

    start: Floats
    """Arc lengths at which pieces begin, (p,), m; the first is 0."""
    values: Floats
    """Coefficients of z, m, in the arc length since the piece's start, (p, 4), lowest power first.
    """

    def __post_init__(self) -> None:
        for array in (self.start, self.values):
            array.flags.writeable = False


@dataclass(frozen=True, eq=False)
class Path:
    """One path; immutable. The columns are those of PathTable."""

    start: Floats
    kind: NDArray[np.uint8]
    values: Floats
    length: float
    closed: bool
    altitude: AltitudeProfile | None = None
    """Altitudes of an aircraft's path, if its waypoints have heights."""

    def __post_init__(self) -> None:
        for array in (self.start, self.kind, self.values):
            array.flags.writeable = False

    @functools.cached_property
    def curvature_range(self) -> tuple[Bend, Bend]:
        """Return where the path turns most to the right, and most to the left.

        Exact for lines, arcs and clothoids; the best of 17 points on each polynomial piece.
        """
        ends = np.append(self.start[1:], self.length)

        # inside each piece: at a joint the next piece has its own curvature
        share = np.linspace(1e-9, 1.0 - 1e-9, 17)
        s = (self.start[:, None] + share * (ends - self.start)[:, None]).reshape(-1)

        curvature = self.at(s).curvature
        lowest = int(np.argmin(curvature))
        highest = int(np.argmax(curvature))
        right = Bend(float(s[lowest]), float(curvature[lowest]))
        left = Bend(float(s[highest]), float(curvature[highest]))
        return right, left

    @functools.cached_property
    def _table(self) -> PathTable:
        return join_paths([self])

    def at(self, s: ArrayLike) -> PathPoints:
        """Return the points at the arc lengths s, m, of any shape.

        A closed path goes round; an open one ends at 0 and `length`. Raises ValueError for an s
        that is not finite.
        """
        s = np.asarray(s, dtype=float)
        if not np.isfinite(s).all():
            raise ValueError("s: arc lengths must be finite")
        rows = path_points(self._table, np.zeros(s.size, np.int64), s.reshape(-1)).reshape(
            *s.shape, 6
        )
        return PathPoints(rows[..., 0:2], rows[..., 2:4], rows[..., 4], rows[..., 5])


def _first_pieces(starts: Sequence[Floats]) -> Ints:
    """Return the index of each path's first piece in a table of several, (n + 1,)."""
    counts = [len(start) for start in starts]
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def join_paths(paths: Sequence[Path]) -> PathTable:
    """Return the table of several paths, in their order."""
    return PathTable(
        first=_first_pieces([path.start for path in paths]),
        start=np.concatenate([path.start for path in paths]),
        kind=np.concatenate([path.kind for path in paths]),
        values=np.concatenate([path.values for path in paths]),
        length=np.array([path.length for path in paths]),
        closed=np.array([path.closed for path in paths]),
    )


def path_points(table: PathTable, path: Ints, s: Floats) -> Floats:
    """Return the points (k, 6) at the arc lengths s (k,), m, of paths of the table.

    `path` (k,) are the indices of the paths. Columns are x, y, tangent x, tangent y, curvature,
    curvature rate. One call evaluates all.
    """
    from rfly_trajectory.kernels import motion_kernels

    return motion_kernels.path_points(table, path, np.ascontiguousarray(s))


def curvature_bends(table: PathTable, path: Ints, s: Floats) -> Floats:
    """Return the second derivative of the curvature by arc length (k,), 1/m³; see `path_points`.

    It is 0 on lines, arcs and clothoids. On polynomials |dp/ds| counts as 1, which it is to 1e-8.
    """
    from rfly_trajectory.kernels import motion_kernels

    return motion_kernels.curvature_bends(table, path, s)


def altitude_profile(s: ArrayLike, z: ArrayLike, length: float, closed: bool) -> AltitudeProfile:
    """Return the profile through the heights z (k,), m, at the arc lengths s (k,), m, of a path.

    s grows; on an open path from 0 to `length`, on a closed one (which goes round) from any value.
    """
    from scipy.interpolate import PchipInterpolator

    knots = np.asarray(s, float)
    heights = np.asarray(z, float)

    # a closed path continues before its start and behind its end
    if closed:
        knots = np.mod(knots, length)
        order = np.argsort(knots)
        knots = knots[order]
        heights = np.tile(heights[order], 3)
        knots = np.concatenate([knots - length, knots, knots + length])

    curve = PchipInterpolator(knots, heights)

    # cubic pieces inside the path
    inside = (curve.x > 0.0) & (curve.x < length)
    start = np.concatenate([np.zeros(1), curve.x[inside]])
    values = np.stack(
        [curve(start), curve(start, 1), curve(start, 2) / 2.0, curve(start, 3) / 6.0], axis=-1
    )
    return AltitudeProfile(start, values)


def join_profiles(paths: Sequence[Path]) -> AltitudeTable:
    """Return the altitude table of several paths, in their order."""
    empty = AltitudeProfile(np.zeros(0), np.zeros((0, 4)))
    profiles = [path.altitude or empty for path in paths]
    return AltitudeTable(
        first=_first_pieces([profile.start for profile in profiles]),
        start=np.concatenate([profile.start for profile in profiles]),
        values=np.concatenate([profile.values for profile in profiles]),
        length=np.array([path.length for path in paths]),
        closed=np.array([path.closed for path in paths]),
    )


def altitudes(table: AltitudeTable, path: Ints, s: Floats) -> Floats:
    """Return z, m, its slope, and the slope's rate, 1/m, (k, 3) at the arc lengths s (k,), m.

    `path` (k,) holds the paths' indices; they must have a profile. Beyond its
    ends an open path keeps the slope that it has there.
    """
    from rfly_trajectory.kernels import motion_kernels

    return motion_kernels.altitudes(table, path, s)


def rotation(heading_deg: float) -> Floats:
    """Return the matrix (2, 2) from row vectors (ahead, left) to (east, north).

    The heading is in degrees, counter-clockwise from east.
    """
    c = math.cos(math.radians(heading_deg))
    s = math.sin(math.radians(heading_deg))
    return np.array([[c, s], [-s, c]])


def spiral_end(angle: float, length: float) -> tuple[float, float]:
    """Return the end of a clothoid that begins straight along x and turns by `angle`, rad, up to π.

    x and y are in the unit of `length`. Power series of the Fresnel integrals.
    """
    x = y = 0.0
    term = length
    for n in range(SPIRAL_TERMS):
        if n % 2:
            y += term / (2 * n + 1)
        else:
            x += term / (2 * n + 1)
        term *= (angle if n % 2 == 0 else -angle) / (n + 1)
    return x, y


class PathBuilder:
    """Builder of a path: lays pieces end to end from a starting point and heading.

    Every joint keeps position and heading.
    """

    def __init__(self, x: float, y: float, heading: float) -> None:
        self.x = float(x)
        self.y = float(y)
        self.heading = float(heading)
        self.length = 0.0
        self._pieces: list[tuple[float, int, tuple[float, ...]]] = []

    def anchor(self, x: float, y: float, heading: float) -> PathBuilder:
        """Set the exact position and heading reached, against rounding of the pieces."""
        self.x = float(x)
        self.y = float(y)
        self.heading = float(heading)
        return self

    def arc(self, length: float, curvature: float = 0.0) -> PathBuilder:
        """Add an arc, or a straight line with curvature 0, 1/m. A length of 0 adds nothing."""
        if length <= 0.0:
            return self
        c = math.cos(self.heading)
        s = math.sin(self.heading)

        # the chord of an arc has the direction of its middle
        half = 0.5 * curvature * length
        chord = length * (math.sin(half) / half if half else 1.0)
        x = self.x + chord * math.cos(self.heading + half)
        y = self.y + chord * math.sin(self.heading + half)
        values = (self.x, self.y, curvature, c, s)
        return self._lay(ARC, values, length, x, y, self.heading + curvature * length)

    def spiral_in(self, length: float, curvature: float) -> PathBuilder:
        """Add a clothoid whose curvature grows from 0 to `curvature`, 1/m."""
        c = math.cos(self.heading)
        s = math.sin(self.heading)
        x, y = spiral_end(0.5 * curvature * length, length)
        end_x = self.x + c * x - s * y
        end_y = self.y + s * x + c * y
        values = (self.x, self.y, self.length, curvature / length, c, s)
        end_heading = self.heading + 0.5 * curvature * length
        return self._lay(SPIRAL, values, length, end_x, end_y, end_heading)

    def spiral_out(self, length: float, curvature: float) -> PathBuilder:
        """Add a clothoid whose curvature falls from `curvature`, 1/m, to 0.

        It is the mirror image of `spiral_in`.
        """
        x, y = spiral_end(0.5 * curvature * length, length)
        end_heading = self.heading + 0.5 * curvature * length

        # seen from its straight end and backwards, the spiral lies at x < 0 and on its turning side
        c = math.cos(end_heading)
        s = math.sin(end_heading)
        end_x = self.x + c * x + s * y
        end_y = self.y + s * x - c * y
        values = (end_x, end_y, self.length + length, -curvature / length, c, s)
        return self._lay(SPIRAL, values, length, end_x, end_y, end_heading)

    def _lay(
        self,
        kind: int,
        values: tuple[float, ...],
        length: float,
        x: float,
        y: float,
        heading: float,
    ) -> PathBuilder:
        """Add a piece that leads to a place and heading."""
        self._pieces.append((self.length, kind, values))
        self.length += length
        return self.anchor(x, y, heading)

    def path(self, closed: bool = False) -> Path:
        """Return the pieces as a path."""
        values = np.zeros((len(self._pieces), PIECE_VALUES))
        for row, (_, _, numbers) in zip(values, self._pieces, strict=True):
            row[: len(numbers)] = numbers
        return make_path(
            [piece[0] for piece in self._pieces],
            [piece[1] for piece in self._pieces],
            values,
            self.length,
            closed,
        )


def make_path(start: ArrayLike, kind: ArrayLike, values: Any, length: float, closed: bool) -> Path:
    """Return a path from its columns (see PathTable); `start` begins with 0 and grows."""
    return Path(
        np.array(start, np.float64),
        np.array(kind, np.uint8),
        np.array(values, np.float64),
        float(length),
        bool(closed),
    )
