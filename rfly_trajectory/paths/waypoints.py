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
"""points between which a way never turns by more are samples of a smooth curve, others are corners
to be rounded
"""
MAX_TURN = math.radians(175.0)
MAX_START_DISTANCE = 1000.0
"""m from a vehicle to the path that it is to follow"""
ON_PATH = 1e-6
"""m and rad: a vehicle at the path's start that needs no joint"""
_WITHOUT_LOOP = 1.2
"""how much longer than the path itself a joint to it may be that counts as one without a loop"""
_MAX_SAMPLES = 1000


class MovingPose(NamedTuple):
    """Where a vehicle is and where it moves to; ENU, SI."""

    x: float
    y: float
    heading: float
    """rad counter-clockwise from east"""
    z: float = 0.0
    climb: float = 0.0
    """m up for a metre ahead"""


def path_through(points: Floats, radius: float, ends: tuple[float, float] | None = None) -> Path:
    """An open path through points (k, 2), or with heights (k, 3), in the first and last of which it
    begins and ends.

    Points as of a sampled curve are joined by the spline through them, with the headings `ends`
    [rad] at its ends where they are given. Else it runs along the straight lines between them and
    rounds each corner by two clothoids, as Polyline does, but with a radius down from `radius` [m]
    where the lines are too short for that. Raises ConfigError for less than two points in different
    places, and where the way turns straight back.
    """
    points = without_repeats(points)
    legs = np.diff(points[:, :2], axis=0)
    if not len(legs):
        raise ConfigError(
            "poses: all of them are in one place; a path needs two, and one without any means: stop"
        )
    headings = np.arctan2(legs[:, 1], legs[:, 0])
    turns = np.mod(np.diff(headings) + math.pi, 2.0 * math.pi) - math.pi
    for i in np.flatnonzero(np.abs(turns) > MAX_TURN).tolist():
        x, y = points[i + 1, :2].tolist()
        raise ConfigError(f"poses: the path turns straight back at x {x:.2f}, y {y:.2f} (map)")
    if (len(legs) > 1 or ends is not None) and np.abs(turns).max(initial=0.0) <= DENSE_TURN:
        return _smooth(points, ends)
    return _rounded(points, headings, np.hypot(legs[:, 0], legs[:, 1]), turns, radius)


def _smooth(points: Floats, ends: tuple[float, float] | None) -> Path:
    """The cubic spline through points of a curve, with centripetal parameters as `Spline` has them."""
    from scipy.interpolate import CubicSpline

    center = points[:, :2].mean(axis=0)
    knots = np.append(0.0, np.cumsum(np.sqrt(np.hypot(*np.diff(points[:, :2], axis=0).T))))
    bounds: Any = "natural"
    if ends is not None:  # as fast as the chord beside it
        speeds = np.sqrt(np.hypot(*np.diff(points[:, :2], axis=0)[[0, -1]].T))
        bounds = tuple(
            (1, v * np.array([math.cos(a), math.sin(a)])) for v, a in zip(speeds, ends, strict=True)
        )
    spline = CubicSpline(knots, points[:, :2] - center, bc_type=bounds)
    slope = spline.derivative(1)
    bend = spline.derivative(2)
    u = np.append(np.stack([knots[:-1], 0.5 * (knots[:-1] + knots[1:])], axis=-1), knots[-1])
    path, s = fit_between(lambda v: (spline(v), slope(v), bend(v)), u, center)
    return with_heights(path, s[::2], points[:, 2:].ravel())


def _rounded(
    points: Floats, headings: Floats, lengths: Floats, turns: Floats, radius: float
) -> Path:
    """Straight lines with rounded corners; each corner may use half of its lines, that at an end
    all of it.
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
    """The path from a moving pose onto an open path and along it to its end.

    No turn before the path is tighter than `radius`, and over the first `blend` metres the
    vehicle's climb becomes that to the path's heights.

    A vehicle beside the path, or a little way along it already, joins it ahead; one that is
    elsewhere first drives to its start. None for one that is at the path's end. Raises ConfigError
    where that is farther than MAX_START_DISTANCE.
    """
    begin = path.at(0.0)
    looks = np.array([math.cos(pose.heading), math.sin(pose.heading)])
    far = math.hypot(begin.position[0] - pose.x, begin.position[1] - pose.y)
    if path.altitude is None and far + math.hypot(*(begin.tangent - looks)) < ON_PATH:
        return path
    if far > MAX_START_DISTANCE:
        raise ConfigError(
            f"poses[0]: it is {far:.0f} m from the vehicle, which follows paths that begin within "
            f"{MAX_START_DISTANCE:g} m"
        )
    s, connection = _merge_ahead(path, pose, radius, far) or (
        0.0,
        _connection(path, pose, radius, np.zeros(1)),
    )
    if connection.length + path.length - s <= SAME_POINT:
        return None
    builder = PathBuilder(pose.x, pose.y, pose.heading)
    connection.append_to(builder)
    whole = _append_rest(builder, path, s)
    return (
        whole
        if path.altitude is None
        else _with_altitude(whole, builder.length, path, s, pose, blend)
    )


def _merge_ahead(
    path: Path, pose: MovingPose, radius: float, far: float
) -> tuple[float, DubinsPath] | None:
    """Where and how a vehicle on or beside the path, and with its direction, joins it without a
    loop.
    """
    reach = min(path.length, 2.0 * far + 2.0 * radius)
    s = np.linspace(0.0, reach, min(max(math.ceil(8.0 * reach / radius), 64), _MAX_SAMPLES) + 1)
    points = path.at(s)
    distance = np.hypot(points.position[:, 0] - pose.x, points.position[:, 1] - pose.y)
    nearest = int(np.argmin(distance))
    along = points.tangent[nearest] @ np.array([math.cos(pose.heading), math.sin(pose.heading)])
    if distance[nearest] > radius or along <= 0.0:
        return None
    ahead = np.linspace(s[nearest], min(path.length, s[nearest] + 8.0 * radius), 129)
    connections = _connection(path, pose, radius, ahead)
    longest = _WITHOUT_LOOP * (ahead - s[nearest]) + distance[nearest] + 1e-6 * radius
    good = np.flatnonzero(connections.length <= longest)
    if not good.size:
        return None
    i = int(good[0])
    return float(ahead[i]), DubinsPath(
        connections.start[i], radius, connections.word[i], connections.segments[i]
    )


def _connection(path: Path, pose: MovingPose, radius: float, s: Floats) -> DubinsPath:
    """The shortest paths from a pose to the points of a path at s (k,); a single one for k = 1."""
    points = path.at(s)
    heading = np.arctan2(points.tangent[:, 1], points.tangent[:, 0])
    ends = np.column_stack([points.position, heading])
    return dubins_path(np.array(pose[:3]), ends if len(s) > 1 else ends[0], radius)


def _append_rest(builder: PathBuilder, path: Path, s: float) -> Path:
    """What is built so far, and then a path from its arc length s on."""
    before = builder.path()
    if s >= path.length:
        return before
    first = int(np.searchsorted(path.start, s, side="right")) - 1
    start = path.start[first:] - s
    values = path.values[first:].copy()
    values[:, 2] = np.where(
        path.kind[first:] == SPIRAL, values[:, 2] + before.length - s, values[:, 2]
    )
    run = -float(start[0])
    if path.kind[first] == ARC:
        at = path.at(s)
        values[0, :2] = at.position
        values[0, 3:5] = at.tangent
    elif path.kind[first] == POLYNOMIAL:
        values[0] = np.concatenate([_shifted(values[0, :6], run), _shifted(values[0, 6:], run)])
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
    """`whole` with the heights of the path that it joins after `joined_at` metres at its arc length
    s.

    It begins with the height and the climb of the vehicle; `blend` metres later the climb is that
    to the next height.
    """
    assert path.altitude is not None
    table = join_profiles([path])
    later = path.altitude.start[path.altitude.start > s + SAME_POINT]
    knots = np.concatenate([[s], later[later < path.length - SAME_POINT], [path.length]])
    knots = knots[: len(knots) - (path.length - s <= SAME_POINT)]
    z = altitudes(table, np.zeros(len(knots), np.int64), knots)[:, 0]
    at = knots - s + joined_at
    if joined_at <= SAME_POINT:
        at = at[1:]
        z = z[1:]
    profile = altitude_profile(np.append(0.0, at), np.append(pose.z, z), whole.length, False)
    end = float(profile.start[1]) if len(profile.start) > 1 else whole.length
    blend = min(blend, 0.5 * end)
    rest = _shifted(profile.values[0], blend)
    # the cubic with height and climb given at both ends
    rise = (rest[0] - pose.z) / blend
    bend = (3.0 * rise - 2.0 * pose.climb - rest[1]) / blend
    twist = (pose.climb + rest[1] - 2.0 * rise) / blend**2
    first = np.array([pose.z, pose.climb, bend, twist])
    start = np.concatenate([[0.0, blend], profile.start[1:]])
    return dataclasses.replace(
        whole,
        altitude=AltitudeProfile(start, np.vstack([first, rest, profile.values[1:]])),
    )


def reversed_path(path: Path) -> Path:
    """An open path without heights from its end to its start: what drives along it backwards looks
    along this one.
    """
    ends = np.append(path.start[1:], path.length)
    at = path.at(ends)
    values = path.values.copy()
    for i, kind in enumerate(path.kind.tolist()):
        if kind == ARC:
            values[i, :5] = *at.position[i], -values[i, 2], *-at.tangent[i]
        elif kind == SPIRAL:
            values[i, 2], values[i, 4:6] = path.length - values[i, 2], -values[i, 4:6]
        else:
            signs = (-1.0) ** np.arange(6)
            run = float(ends[i] - path.start[i])
            values[i] = np.concatenate(
                [signs * _shifted(part, run) for part in (values[i, :6], values[i, 6:])]
            )
    return make_path((path.length - ends)[::-1], path.kind[::-1], values[::-1], path.length, False)


def _shifted(coefficients: Floats, run: float) -> Floats:
    """Of p(u + run), from those of p(u), lowest power first."""
    n = range(len(coefficients))
    return np.array([[math.comb(m, k) * run ** max(m - k, 0) for m in n] for k in n]) @ coefficients
