# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Path shapes of a fleet file: circle, line, waypoints and others, each a path by arc length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_number
from rfly_common.errors import ConfigError, Key
from rfly_trajectory.paths.curves import fit_path, fit_spans
from rfly_trajectory.paths.path import (
    Path,
    PathBuilder,
    altitude_profile,
    rotation,
    spiral_end,
)

Point = Sequence[float]

# largest numbers of lanes and of a spline's points
MAX_LANES = 10_000
MAX_SPLINE_POINTS = 2000
SLENDEREST = 12.0
"""Largest ratio of an ellipse's axes; a path of polynomials can't follow sharper tips."""


class PathShape(Protocol):
    """Shape of a path in a fleet file."""

    def path(self) -> Path:
        """Return the shape as a path. Raises ConfigError for impossible numbers."""


def _point(key: str | tuple[Key, ...], value: Point) -> tuple[float, float]:
    """Return a point [east, north], m. Raises ConfigError with the key for anything else."""
    if len(value) != 2 or not all(math.isfinite(number) for number in value):
        raise ConfigError(f"{list(value)!r} is not a point [east, north] in metres", key=key)
    return float(value[0]), float(value[1])


def _positive(name: str, value: float) -> float:
    """Return a length, m. Raises ConfigError if it is not above 0."""
    return finite_number(name, value, "m", above=0.0)


def check_points(what: str, points: Sequence[Point], closed: bool) -> tuple[Floats, Floats]:
    """Return points (n, 2) that a path can go through, and their heights (n,).

    The heights are (0,) if the points have none. Raise ConfigError if the points are too few, or if
    two in a row lie in one place seen from above.
    """
    flat = [_point(("points", i), point[:2]) for i, point in enumerate(points)]
    array = np.array(flat).reshape(-1, 2)
    heights = check_heights("points", points, 2)

    if len(array) < (3 if closed else 2):
        raise ConfigError(
            f"{len(array)} are too few, {'a closed' if closed else 'an open'} {what} "
            f"needs at least {3 if closed else 2}",
            key="points",
        )

    legs = (np.roll(array, -1, axis=0) - array)[: None if closed else -1]
    for i in np.flatnonzero(~legs.any(axis=1)).tolist():
        raise ConfigError(
            f"the same point as points[{i}] before it", key=("points", (i + 1) % len(array))
        )
    return array, heights


def check_heights(name: str, points: Sequence[Point], flat: int) -> Floats:
    """Return the heights (n,) of points or poses that have them, else (0,).

    The height is the number after the first `flat` ones. Raise ConfigError if only some of the
    points have it.
    """
    for i, point in enumerate(points):
        if len(point) != len(points[0]):
            raise ConfigError(
                f"{list(point)!r} has {len(point)} numbers, {name}[0] has {len(points[0])}",
                key=(name, i),
            )
        if len(point) not in (flat, flat + 1) or not all(math.isfinite(number) for number in point):
            raise ConfigError(
                f"{list(point)!r}, expected {flat} finite numbers or, with a height, {flat + 1}",
                key=(name, i),
            )
    return np.array([point[2] for point in points if len(point) > flat], float)


def with_heights(path: Path, s: Sequence[float] | Floats, heights: Floats) -> Path:
    """Return the path with the altitudes `heights` (n,) at arc lengths s (n,), m.

    It is unchanged if there are no heights.
    """
    if not len(heights):
        return path
    return replace(path, altitude=altitude_profile(s, heights, path.length, path.closed))


@dataclass(frozen=True)
class Line(PathShape):
    """Straight line; open."""

    start: Point
    end: Point

    def path(self) -> Path:
        x0, y0 = _point("from", self.start)
        x1, y1 = _point("to", self.end)
        length = math.hypot(x1 - x0, y1 - y0)
        if length == 0.0:
            raise ConfigError("the line ends where it begins", key="to")
        return PathBuilder(x0, y0, math.atan2(y1 - y0, x1 - x0)).arc(length).path()


@dataclass(frozen=True)
class Circle(PathShape):
    """Circle; closed. It begins at `start_angle_deg` as seen from its centre."""

    center: Point
    radius: float
    """Radius, m."""
    start_angle_deg: float = 0.0
    """Start, degrees counter-clockwise from east: 0 is east of the centre, 90 north of it."""
    clockwise: bool = False
    """Direction seen from above."""

    def path(self) -> Path:
        x, y = _point("center", self.center)
        radius = _positive("radius", self.radius)
        angle = math.radians(self.start_angle_deg)
        turn = -1.0 if self.clockwise else 1.0
        heading = angle + turn * math.pi / 2
        start = PathBuilder(x + radius * math.cos(angle), y + radius * math.sin(angle), heading)
        return start.arc(2.0 * math.pi * radius, turn / radius).path(closed=True)


@dataclass(frozen=True)
class Ellipse(PathShape):
    """Ellipse; closed. It begins at the tip of its `width` axis that `heading_deg` points to.

    The tightest radius of a long ellipse is that at the tips, height²/(2 width). Neither axis may
    be more than SLENDEREST times the other.
    """

    center: Point
    width: float
    """Length from tip to tip along `heading_deg`, m."""
    height: float
    """Length across, m."""
    heading_deg: float = 0.0
    """Direction of the width axis, degrees counter-clockwise from east."""
    clockwise: bool = False
    """Direction seen from above."""

    def path(self) -> Path:
        center = np.array(_point("center", self.center))
        width = _positive("width", self.width)
        height = _positive("height", self.height)
        if max(width, height) > SLENDEREST * min(width, height):
            raise ConfigError(
                f"{height:.10g} m and a width of {width:.10g} m; at most "
                f"{SLENDEREST:g} : 1 can be driven",
                key="height",
            )

        half = 0.5 * np.array([width, -height if self.clockwise else height])
        to_map = rotation(self.heading_deg)

        def curve(u: Floats) -> tuple[Floats, ...]:
            arm = (np.stack([np.cos(u), np.sin(u)], -1) * half) @ to_map
            slope = (np.stack([-np.sin(u), np.cos(u)], -1) * half) @ to_map
            return center + arm, slope, -arm

        return fit_path(curve, 0.0, 2.0 * math.pi, closed=True)  # type: ignore[arg-type]


@dataclass(frozen=True)
class LawnMower(PathShape):
    """Parallel lanes over a rectangle, back and forth, as a survey flies them; open.

    Seen along `heading_deg` the path begins at the near end of the lane on the right. Lanes are
    `spacing` apart or a little less, so that the first and the last lie on the rectangle's sides.
    The turns lie outside the rectangle: two clothoids each, which turn by 180° with a smallest
    radius of 0.363 times the distance of the lanes and reach 0.89 times that distance out.
    """

    center: Point
    length: float
    """Length of the lanes, m."""
    width: float
    """Width across the lanes, m."""
    spacing: float
    """Largest distance between lanes, m."""
    heading_deg: float = 0.0
    """Heading of the first lane, degrees counter-clockwise from east."""

    def path(self) -> Path:
        x, y = _point("center", self.center)
        length = _positive("length", self.length)
        width = _positive("width", self.width)
        spaces = max(math.ceil(width / _positive("spacing", self.spacing) * (1.0 - 1e-12)), 1)
        if spaces >= MAX_LANES:
            raise ConfigError(
                f"{self.spacing:.10g} m makes {spaces + 1} lanes, at most {MAX_LANES} are allowed",
                key="spacing",
            )

        # a turn of 180°: two clothoids of length π R, the second the mirror image of the first
        across = width / spaces
        _, side = spiral_end(0.5 * math.pi, math.pi)
        radius = 0.5 * across / side

        # lanes by turns forth and back
        heading = math.radians(self.heading_deg)
        to_map = rotation(self.heading_deg)
        path = PathBuilder(0.0, 0.0, 0.0)
        for lane in range(spaces + 1):
            forth = 1.0 if lane % 2 == 0 else -1.0
            east, north = np.array([-forth * length / 2, lane * across - width / 2]) @ to_map
            path.anchor(x + east, y + north, heading + (0.0 if forth > 0 else math.pi))
            path.arc(length)
            if lane < spaces:
                turn = math.pi * radius
                path.spiral_in(turn, forth / radius).spiral_out(turn, forth / radius)
        return path.path()


@dataclass(frozen=True)
class FigureEight(PathShape):
    """Figure of eight; closed.

    The curve is Gerono's lemniscate, the 1:2 Lissajous figure

        x' = width/2 · sin u,   y' = height/2 · sin 2u,

    turned by `heading_deg` and moved to `center`. It begins in the centre, where it crosses itself,
    towards +x', +y'. The radius at the tips is 2 height²/width, which is the tightest one for a
    height below about half the width.
    """

    center: Point
    width: float
    """Length from tip to tip, m."""
    height: float
    """Length across the loops, m."""
    heading_deg: float = 0.0
    """Direction of the long axis, degrees counter-clockwise from east."""

    def path(self) -> Path:
        center = np.array(_point("center", self.center))
        half = np.array([_positive("width", self.width) / 2, _positive("height", self.height) / 2])
        to_map = rotation(self.heading_deg)

        def curve(u: Floats) -> tuple[Floats, ...]:
            u2 = 2.0 * u
            point = np.stack([np.sin(u), np.sin(u2)], -1)
            slope = np.stack([np.cos(u), 2.0 * np.cos(u2)], -1)
            second = np.stack([-np.sin(u), -4.0 * np.sin(u2)], -1)
            return (
                center + (point * half) @ to_map,
                (slope * half) @ to_map,
                (second * half) @ to_map,
            )

        return fit_path(curve, 0.0, 2.0 * math.pi, closed=True)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Polyline(PathShape):
    """Straight legs between points with rounded corners; open or closed.

    A closed one has a leg from the last point to the first. A corner is two clothoids: the
    curvature grows from 0 to 1/corner_radius and falls back to 0, each over half of the turn. So
    the curvature is continuous (no jump of the yaw rate), and corner_radius is the smallest radius
    that is driven. The sharper a corner, the farther before its point it begins; corners that need
    more than their legs have are refused.
    """

    points: Sequence[Point]
    """Points [east, north] or, for aircraft, [east, north, up], m.

    A height is that in the middle of its corner.
    """
    corner_radius: float = 0.0
    """Radius of the corners, m; 0 only if nothing turns."""
    closed: bool = False

    def path(self) -> Path:
        points, heights = check_points("polyline", self.points, self.closed)
        following = np.roll(points, -1, axis=0) if self.closed else points[1:]
        legs = following - points[: len(following)]
        lengths = np.hypot(legs[:, 0], legs[:, 1])
        headings = np.arctan2(legs[:, 1], legs[:, 0])

        # turns[i] lies at the end of leg i; an open polyline has none at the end of its last leg
        after = np.roll(headings, -1)
        turns = np.arctan2(np.sin(after - headings), np.cos(after - headings))
        if not self.closed:
            turns[-1] = 0.0
        turns[np.abs(turns) < 1e-9] = 0.0

        cuts = self._cuts(turns, lengths)
        radii = np.full(len(turns), self.corner_radius)
        path, s = rounded_path(points, headings, lengths, turns, radii, cuts, self.closed)
        return with_heights(path, s, heights)

    def _cuts(self, turns: Floats, lengths: Floats) -> Floats:
        """Return how far each leg's corner reaches before and behind the leg's end, (legs,), m."""
        if turns.any() and not (math.isfinite(self.corner_radius) and self.corner_radius > 0.0):
            raise ConfigError(
                f"{self.corner_radius!r} m, must be finite and above 0: the path turns",
                key="corner_radius",
            )

        count = len(lengths)
        for i in np.flatnonzero(math.pi - np.abs(turns) < 1e-6).tolist():
            raise ConfigError(
                "the path turns straight back, which no arc can round",
                key=("points", (i + 1) % count),
            )

        # each leg must have room for the corners at both of its ends
        unit_reach = corner_reach(turns)
        before = np.roll(unit_reach, 1)  # the corner at the beginning of each leg
        needed = unit_reach + before
        short = np.flatnonzero(needed * self.corner_radius > lengths * (1.0 + 1e-12))
        if short.size:
            leg = int(short[0])
            fits = float(np.min(lengths[needed > 0.0] / needed[needed > 0.0]))
            end = (leg + 1) % (count if self.closed else count + 1)
            raise ConfigError(
                f"{self.corner_radius:.10g} m takes "
                f"{needed[leg] * self.corner_radius:.4g} m of the leg "
                f"from points[{leg}] to points[{end}], which is {lengths[leg]:.4g} m long; "
                f"at most {_floor4(fits):.4g} m fits everywhere",
                key="corner_radius",
            )
        return np.asarray(unit_reach * self.corner_radius)


def corner_reach(turns: Floats) -> Floats:
    """Return how far corners of radius 1 reach along their two lines, (n,), for turns (n,), rad."""
    ends = [spiral_end(0.5 * turn, turn) for turn in np.abs(turns).tolist()]
    x, y = np.array(ends).reshape(-1, 2).T
    return np.asarray(x + y * np.tan(0.5 * np.abs(turns)))


def rounded_path(
    points: Floats,
    headings: Floats,
    lengths: Floats,
    turns: Floats,
    radii: Floats,
    cuts: Floats,
    closed: bool,
) -> tuple[Path, list[float]]:
    """Return straight legs (n,) with rounded corners at their ends, and s at each point.

    A corner consists of two clothoids. It turns by turns[i], rad, with a smallest radius of
    radii[i], from cuts[i] m before its point to as far behind it. A closed path begins on its first
    leg, behind the corner at its first point.
    """
    behind = float(cuts[-1]) if closed else 0.0
    path = PathBuilder(0.0, 0.0, 0.0)
    middles = []
    corners = zip(headings.tolist(), turns.tolist(), radii.tolist(), strict=True)
    for i, (heading, turn, radius) in enumerate(corners):
        x, y = points[i, :2].tolist()
        path.anchor(x + behind * math.cos(heading), y + behind * math.sin(heading), heading)
        path.arc(float(lengths[i] - behind - cuts[i]))

        # the corner, whose middle is the point's place
        spiral = abs(turn) * radius
        middles.append(path.length + spiral)
        if turn:
            curvature = math.copysign(1.0 / radius, turn)
            path.spiral_in(spiral, curvature).spiral_out(spiral, curvature)
        behind = float(cuts[i])
    return path.path(closed), [middles.pop() if closed else 0.0, *middles]


def _floor4(value: float) -> float:
    """Return the value rounded down to four significant digits, so that advice works."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 3)
    return math.floor(value / unit) * unit


@dataclass(frozen=True)
class Spline(PathShape):
    """Cubic spline through points, in their order; open or closed.

    A closed one has a span from the last point to the first. The parameter between two points is
    the square root of their distance (centripetal parametrisation; Lee, Computer-Aided Design
    21(6), 1989), which keeps uneven spacing from making loops. Position, heading and curvature are
    continuous; an open spline begins and ends with curvature 0.
    """

    points: Sequence[Point]
    """Points [east, north] or, for aircraft, [east, north, up], m."""
    closed: bool = False

    def path(self) -> Path:
        from scipy.interpolate import CubicSpline

        points, heights = check_points("spline", self.points, self.closed)
        if len(points) > MAX_SPLINE_POINTS:
            raise ConfigError(
                f"got {len(points)}, a spline takes at most {MAX_SPLINE_POINTS}", key="points"
            )
        if self.closed:
            points = np.concatenate([points, points[:1]])

        center = points.mean(axis=0)
        knots = np.concatenate([[0.0], np.cumsum(np.sqrt(np.hypot(*np.diff(points, axis=0).T)))])
        spline = CubicSpline(
            knots, points - center, bc_type="periodic" if self.closed else "natural"
        )

        def curve(u: Floats) -> tuple[Floats, ...]:
            return spline(u), spline(u, 1), spline(u, 2)

        try:
            path, s = fit_spans(curve, knots, center, closed=self.closed)  # type: ignore[arg-type]
        except ConfigError:
            raise ConfigError(
                "the spline through them has a corner where it turns back; points farther "
                "apart there, or fewer, make it smooth",
                key="points",
            ) from None
        return with_heights(path, s[: len(heights)], heights)
