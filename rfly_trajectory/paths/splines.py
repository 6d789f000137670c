"""Cubic splines through waypoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError
from rfly_trajectory.paths.curves import fit_spans
from rfly_trajectory.paths.path import Path
from rfly_trajectory.paths.shapes import Point, Shape, check_points, with_heights

MAX_POINTS = 2000


@dataclass(frozen=True)
class Spline(Shape):
    """The cubic spline through points, in their order; open, or closed with a span from the last one to the first.

    Its parameter between two points is the square root of their distance (centripetal parametrisation; Lee, Computer-
    Aided Design 21(6), 1989), which keeps uneven spacing from making loops. Position, heading and curvature are
    continuous; an open one begins and ends with curvature 0.
    """

    points: Sequence[Point]
    """[east, north] or, for aircraft, [east, north, up], m"""
    closed: bool = False

    def path(self) -> Path:
        from scipy.interpolate import CubicSpline

        points, heights = check_points("spline", self.points, self.closed)
        if len(points) > MAX_POINTS:
            raise ConfigError(f"points: {len(points)} of them, a spline takes at most {MAX_POINTS}")
        if self.closed:
            points = np.concatenate([points, points[:1]])
        center = points.mean(axis=0)
        knots = np.concatenate([[0.0], np.cumsum(np.sqrt(np.hypot(*np.diff(points, axis=0).T)))])
        spline = CubicSpline(knots, points - center, bc_type="periodic" if self.closed else "natural")

        def curve(u: Floats) -> tuple[Floats, ...]:
            return spline(u), spline(u, 1), spline(u, 2)

        try:
            path, s = fit_spans(curve, knots, center, closed=self.closed)  # type: ignore[arg-type]
        except ConfigError:
            raise ConfigError(
                "points: the spline through them has a corner where it turns back; points farther apart there, or "
                "fewer, make it smooth"
            ) from None
        return with_heights(path, s[: len(heights)], heights)
