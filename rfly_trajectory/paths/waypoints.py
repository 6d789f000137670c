# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Smooth paths through waypoints, and transitions of a moving vehicle onto them."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError
from rfly_trajectory.kernels.tables import ARC, POLYNOMIAL, SPIRAL
from rfly_trajectory.paths.curves import fit_between
from rfly_trajectory.paths.dubins import DubinsPath, dubins_path
from rfly_trajectory.paths.nav_path import SAME_POINT, without_repeats
from rfly_trajectory.paths.path import (
    AltitudeProfile,
    Path,
    PathBuilder,
    altitude_profile,
    altitudes,
    join_profiles,
    make_path,
)
from rfly_trajectory.paths.shapes import corner_reach, rounded_path, with_heights

DENSE_TURN = math.radians(15.0)
"""Largest turn, rad, between the samples of a smooth curve.

Larger turns are corners to be rounded.
"""
MAX_TURN = math.radians(175.0)
"""Largest turn at a corner, rad; beyond it the path turns straight back."""
MAX_START_DISTANCE = 1000.0
"""Largest distance from a vehicle to the path that it shall follow, m."""
ON_PATH = 1e-6
"""Distance, m, and angle, rad, below which a vehicle at the path's start needs no joint."""
_WITHOUT_LOOP = 1.2
"""Largest length of a joint without a loop, in lengths of the path that it replaces."""
_MAX_SAMPLES = 1000


class MovingPose(NamedTuple):
    """Position, heading and climb of a moving vehicle; ENU, SI."""

    x: float
    y: float
    heading: float
    """Heading, rad counter-clockwise from east."""
    z: float = 0.0
    climb: float = 0.0
    """Climb, m up for each metre ahead."""


def path_through(points: Floats, radius: float, ends: tuple[float, float] | None = None) -> Path:
    """Return an open path through points (k, 2), or with heights (k, 3).

    It goes from the first to the last. Points of a sampled curve are joined by the spline through
    them, with the headings `ends`, rad, at its ends if they are given. Other points are joined by
    straight lines with each corner rounded by two clothoids, as in Polyline, but with a radius
    below `radius`, m, if the lines are too short. Raise ConfigError for fewer than two points in
    different places, and if the path turns straight back.
    """
    points = without_repeats(points)
    legs = np.diff(points[:, :2], axis=0)
    if not len(legs):
        raise ConfigError(
            "all of them are in one place; a path needs two, and one without any means: stop",
            key="poses",
        )

    # turns at the inner points
    headings = np.arctan2(legs[:, 1], legs[:, 0])
    turns = np.mod(np.diff(headings) + math.pi, 2.0 * math.pi) - math.pi
    for i in np.flatnonzero(np.abs(turns) > MAX_TURN).tolist():
        x, y = points[i + 1, :2].tolist()
        raise ConfigError(
            f"the path turns straight back at x {x:.2f}, y {y:.2f} (map)", key="poses"
        )

    # a sampled curve, or corners
    if (len(legs) > 1 or ends is not None) and np.abs(turns).max(initial=0.0) <= DENSE_TURN:
        return _smooth(points, ends)
    return _rounded(points, headings, np.hypot(legs[:, 0], legs[:, 1]), turns, radius)


def _smooth(points: Floats, ends: tuple[float, float] | None) -> Path:
    """Return the cubic spline through points of a curve.

    Its parameters are centripetal (see `Spline`).
    """
    from scipy.interpolate import CubicSpline

    center = points[:, :2].mean(axis=0)
    knots = np.append(0.0, np.cumsum(np.sqrt(np.hypot(*np.diff(points[:, :2], axis=0).T))))
    bounds: Any = "natural"
    if ends is not None:
        # at both ends as fast as the chord there
        speeds = np.sqrt(np.hypot(*np.diff(points[:, :2], axis=0)[[0, -1]].T))
        bounds = tuple(
            (1, speed * np.array([math.cos(heading), math.sin(heading)]))
            for speed, heading in zip(speeds, ends, strict=True)
        )

    spline = CubicSpline(knots, points[:, :2] - center, bc_type=bounds)
    slope = spline.derivative(1)
    second = spline.derivative(2)

    # one piece from each point to the middle of its leg, and one from there to the next
    u = np.append(np.stack([knots[:-1], 0.5 * (knots[:-1] + knots[1:])], axis=-1), knots[-1])
    path, s = fit_between(lambda v: (spline(v), slope(v), second(v)), u, center)
    return with_heights(path, s[::2], points[:, 2:].ravel())


def _rounded(
    points: Floats, headings: Floats, lengths: Floats, turns: Floats, radius: float
) -> Path:
    """Return straight lines with rounded corners.

    Each corner may use half of its lines, but all of a line at the path's end.
    """
    turns = np.append(np.where(np.abs(turns) < 1e-9, 0.0, turns), 0.0)
    reach = corner_reach(turns)

    room = 0.5 * lengths
    room[[0, -1]] = lengths[[0, -1]]
    room = np.minimum(room, np.append(room[1:], math.inf))

    radii = np.minimum(
        radius,
        np.divide(room, reach, out=np.full_like(reach, radius), where=reach > 0.0),
    )
    path, s = rounded_path(points, headings, lengths, turns, radii, reach * radii, closed=False)
    return with_heights(path, s, points[:, 2:].ravel())


def transition_to(path: Path, pose: MovingPose, radius: float, blend: float = 10.0) -> Path | None:
    """Return the path from a moving pose onto an open path and along it to its end.

    No turn before the path is tighter than `radius`, m, and over the first `blend` metres the
    vehicle's climb changes to the climb towards the path's heights.

    A vehicle next to the path, or a little way along it already, joins it ahead; any other first
    drives to the path's start. None for a vehicle at the path's end. Raises ConfigError for a start
    that is farther than MAX_START_DISTANCE.
    """
    begin = path.at(0.0)
    direction = np.array([math.cos(pose.heading), math.sin(pose.heading)])
    distance = math.hypot(begin.position[0] - pose.x, begin.position[1] - pose.y)
    if path.altitude is None and distance + math.hypot(*(begin.tangent - direction)) < ON_PATH:
        return path

    if distance > MAX_START_DISTANCE:
        raise ConfigError(
            f"it is {distance:.0f} m from the vehicle, which follows paths that begin "
            f"within {MAX_START_DISTANCE:g} m",
            key=("poses", 0),
        )

    merge = _merge_ahead(path, pose, radius, distance)
    if merge is None:
        merge = 0.0, _connection(path, pose, radius, np.zeros(1))
    s, connection = merge
    if connection.length + path.length - s <= SAME_POINT:
        return None

    builder = PathBuilder(pose.x, pose.y, pose.heading)
    connection.append_to(builder)
    joined = _append_rest(builder, path, s)
    if path.altitude is None:
        return joined
    return _with_altitude(joined, builder.length, path, s, pose, blend)


def _merge_ahead(
    path: Path, pose: MovingPose, radius: float, far: float
) -> tuple[float, DubinsPath] | None:
    """Return where and how a vehicle joins the path without a loop; None if it can't.

    Only a vehicle near the path and with its direction can.
    """
    reach = min(path.length, 2.0 * far + 2.0 * radius)
    s = np.linspace(0.0, reach, min(max(math.ceil(8.0 * reach / radius), 64), _MAX_SAMPLES) + 1)
    points = path.at(s)
    distance = np.hypot(points.position[:, 0] - pose.x, points.position[:, 1] - pose.y)
    nearest = int(np.argmin(distance))

    # near enough, and in the path's direction
    along = points.tangent[nearest] @ np.array([math.cos(pose.heading), math.sin(pose.heading)])
    if distance[nearest] > radius or along <= 0.0:
        return None

    # the first point ahead whose connection has no loop
    ahead = np.linspace(s[nearest], min(path.length, s[nearest] + 8.0 * radius), 129)
    connections = _connection(path, pose, radius, ahead)
    longest = _WITHOUT_LOOP * (ahead - s[nearest]) + distance[nearest] + 1e-6 * radius
    good = np.flatnonzero(connections.length <= longest)
    if not good.size:
        return None
    i = int(good[0])
    connection = DubinsPath(
        connections.start[i], radius, connections.word[i], connections.segments[i]
    )
    return float(ahead[i]), connection


def _connection(path: Path, pose: MovingPose, radius: float, s: Floats) -> DubinsPath:
    """Return the shortest paths from a pose to the points at s (k,); a single one for k = 1."""
    points = path.at(s)
    heading = np.arctan2(points.tangent[:, 1], points.tangent[:, 0])
    ends = np.column_stack([points.position, heading])
    return dubins_path(np.array(pose[:3]), ends if len(s) > 1 else ends[0], radius)


def _append_rest(builder: PathBuilder, path: Path, s: float) -> Path:
    """Return the built path, followed by another one from its arc length s."""
    before = builder.path()
    if s >= path.length:
        return before

    # pieces from s to the end; a clothoid knows the arc length of its straight end
    first = int(np.searchsorted(path.start, s, side="right")) - 1
    start = path.start[first:] - s
    values = path.values[first:].copy()
    values[:, 2] = np.where(
        path.kind[first:] == SPIRAL, values[:, 2] + before.length - s, values[:, 2]
    )

    # the first piece begins inside
    offset = -float(start[0])
    if path.kind[first] == ARC:
        point = path.at(s)
        values[0, :2] = point.position
        values[0, 3:5] = point.tangent
    elif path.kind[first] == POLYNOMIAL:
        values[0] = np.concatenate(
            [_shifted(values[0, :6], offset), _shifted(values[0, 6:], offset)]
        )

    start[0] = 0.0
    return make_path(
        np.concatenate([before.start, start + before.length]),
        np.concatenate([before.kind, path.kind[first:]]),
        np.concatenate([before.values, values]),
        before.length + path.length - s,
        False,
    )


def _with_altitude(
    whole: Path, joined_at: float, path: Path, s: float, pose: MovingPose, blend: float
) -> Path:
    """Return `whole` with the heights of the path that it joins.

    It joins that path after `joined_at` m, at arc length s there. It begins with the height and the
    climb of the vehicle. After `blend` metres the climb is the one towards the next height.
    """
    assert path.altitude is not None
    table = join_profiles([path])

    # heights of the path that lie ahead, by arc length of the whole
    ahead = path.altitude.start[path.altitude.start > s + SAME_POINT]
    knots = np.concatenate([[s], ahead[ahead < path.length - SAME_POINT], [path.length]])
    knots = knots[: len(knots) - (path.length - s <= SAME_POINT)]
    z = altitudes(table, np.zeros(len(knots), np.int64), knots)[:, 0]
    knots_of_whole = knots - s + joined_at
    if joined_at <= SAME_POINT:
        knots_of_whole = knots_of_whole[1:]
        z = z[1:]

    profile = altitude_profile(
        np.append(0.0, knots_of_whole), np.append(pose.z, z), whole.length, False
    )
    end = float(profile.start[1]) if len(profile.start) > 1 else whole.length
    blend = min(blend, 0.5 * end)
    rest = _shifted(profile.values[0], blend)

    # the cubic with height and climb given at both ends
    rise = (rest[0] - pose.z) / blend
    quadratic = (3.0 * rise - 2.0 * pose.climb - rest[1]) / blend
    cubic = (pose.climb + rest[1] - 2.0 * rise) / blend**2
    first = np.array([pose.z, pose.climb, quadratic, cubic])
    start = np.concatenate([[0.0, blend], profile.start[1:]])
    return dataclasses.replace(
        whole,
        altitude=AltitudeProfile(start, np.vstack([first, rest, profile.values[1:]])),
    )


def reversed_path(path: Path) -> Path:
    """Return an open path without heights from its end to its start.

    A vehicle that drives along it backwards points along the given path.
    """
    ends = np.append(path.start[1:], path.length)
    end_points = path.at(ends)
    values = path.values.copy()
    for i, kind in enumerate(path.kind.tolist()):
        if kind == ARC:
            values[i, :5] = *end_points.position[i], -values[i, 2], *-end_points.tangent[i]
        elif kind == SPIRAL:
            values[i, 2] = path.length - values[i, 2]
            values[i, 4:6] = -values[i, 4:6]
        else:
            # p(length - u): shift by the length, then change the sign of odd powers
            signs = (-1.0) ** np.arange(6)
            length = float(ends[i] - path.start[i])
            x = signs * _shifted(values[i, :6], length)
            y = signs * _shifted(values[i, 6:], length)
            values[i] = np.concatenate([x, y])
    return make_path((path.length - ends)[::-1], path.kind[::-1], values[::-1], path.length, False)


def _shifted(coefficients: Floats, offset: float) -> Floats:
    """Return the coefficients of p(u + offset) from those of p(u), lowest power first."""
    n = range(len(coefficients))
    return (
        np.array([[math.comb(m, k) * offset ** max(m - k, 0) for m in n] for k in n]) @ coefficients
    )
