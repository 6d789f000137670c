# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MATLAB's Waypoint Follower and Orbit Follower: the point ahead on a path, and the course to it.

Both take the pose and a look-ahead distance L and return the point of the path that is L away from
the vehicle, ahead of it (S. Park, J. Deyst, J. How, A New Nonlinear Guidance Logic for Trajectory
Tracking, AIAA 2004). If the whole path is farther away than L, it is the path's nearest point.
NED metres, angles in radians, course and yaw clockwise from north.

Source: MathWorks, UAV Toolbox, reference pages of the blocks Waypoint Follower and Orbit Follower
and of `uavWaypointFollower` and `uavOrbitFollower`. The inputs were compared with the pages. The
outputs, flags and the condition for the next waypoint follow them from memory and were not. What
follows the last waypoint, how the orbit's look-ahead point is found, and which yaw a multirotor has
on an orbit are choices of this module.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats
from rfly_common.config.checks import check_choice, finite_array, finite_number
from rfly_common.config.matlab_properties import matlab_properties
from rfly_missions.followers.multirotor import free_turn
from rfly_missions.mission.items import finite_numbers

UAV_TYPES = ("fixed-wing", "multirotor")
START_FROM = ("first", "closest")
RADIUS_SOURCES = ("internal", "external")

Yaws = str | float | ArrayLike


class WaypointOutput(NamedTuple):
    """Outputs of a step of `WaypointFollower`, in MATLAB's order."""

    lookahead_point: Floats
    """Point of the path to fly to, (3,), NED, m."""
    desired_course: float
    """Course to the look-ahead point, rad, −π … π."""
    desired_yaw: float
    """Heading of the body, rad, −π … π; the course for a fixed wing."""
    lookahead_dist_flag: int
    """1 if the look-ahead distance was raised to its minimum, else 0."""
    cross_track_error: float
    """Distance from the current piece of the path, m."""
    status: int
    """1 once all waypoints have been passed, else 0."""


class OrbitOutput(NamedTuple):
    """Outputs of a step of `OrbitFollower`, in MATLAB's order."""

    lookahead_point: Floats
    """Point of the circle to fly to, (3,), NED, m."""
    desired_course: float
    """Course to the look-ahead point, rad, −π … π."""
    desired_yaw: float
    """Heading of the body, rad, −π … π."""
    orbit_radius_flag: int
    """1 if the radius was raised to its minimum, else 0."""
    lookahead_dist_flag: int
    """1 if the look-ahead distance was raised to its minimum, else 0."""
    cross_track_error: float
    """Distance from the circle, m."""
    num_turns: float
    """Turns flown in the orbit's direction; flying the other way counts down."""


def _positive(name: str, value: Any) -> float:
    return finite_number(name, value, "m", above=0.0, error=ValueError)


def _uav_type(name: str, value: Any) -> str:
    check_choice(name, value, UAV_TYPES, error=ValueError)
    return str(value)


def _start_from(name: str, value: Any) -> str:
    check_choice(name, value, START_FROM, error=ValueError)
    return str(value)


def _radius_source(name: str, value: Any) -> str:
    check_choice(name, value, RADIUS_SOURCES, error=ValueError)
    return str(value)


def _waypoints(name: str, value: Any) -> Floats:
    """Return waypoints as (n, 3 … 5); an empty array has none."""
    array = finite_array(name, value, error=ValueError)
    if array.size == 0:
        return np.zeros((0, 3))
    if array.ndim != 2 or not 3 <= array.shape[1] <= 5:
        raise ValueError(f"{name}: the shape {array.shape}, expected n-by-3, n-by-4 or n-by-5")
    return array.copy()


def _yaw_angles(name: str, value: Any) -> Any:
    if isinstance(value, str):
        check_choice(name, value, ("auto",), error=ValueError)
        return value
    return finite_array(name, value, error=ValueError).reshape(-1)


def _radii(name: str, value: Any) -> Floats:
    radii = finite_array(name, value, error=ValueError).reshape(-1)
    if not (radii > 0.0).all():
        raise ValueError(f"{name}: {value!r}, expected radii above 0 m")
    return radii


@matlab_properties(
    {
        "uav_type": _uav_type,
        "start_from": _start_from,
        "waypoints": _waypoints,
        "yaw_angles": _yaw_angles,
        "transition_radius": _radii,
        "min_lookahead_distance": _positive,
        "transition_radius_source": _radius_source,
    },
    {"uav_type": "UAVType"},
)
@dataclass(eq=False)
class WaypointFollower:
    """A follower of straight lines from waypoint to waypoint, MATLAB's `uavWaypointFollower`.

    The path begins at the pose of the first step, or of the first one with other waypoints, and
    leads through the waypoints; equal neighbours count once. The follower goes on to the next line
    when the vehicle is within the transition radius of the waypoint ahead, or has passed it. The
    first of several waypoints counts as passed where (p − w1) · (w2 − w1) ≥ 0 for the position p,
    as the reference page says of consecutive waypoints w1 and w2. Every other one is passed at the
    plane through it, normal to the line that leads there: by the page's formula a waypoint with a
    right-angled turn would be passed as soon as it is ahead. After the last waypoint the status is
    1 and the look-ahead point stays there; it never lies beyond the waypoint ahead.
    Without waypoints the point is the vehicle, the course is that of the pose and the status 1.

    >>> follower = WaypointFollower(waypoints=[[0, 0, 0], [100, 0, 0]], transition_radius=5)
    >>> follower([10, 3, 0, 0], 5).lookahead_point
    array([14.,  0.,  0.])
    """

    uav_type: str = "fixed-wing"
    """"fixed-wing" or "multirotor"."""
    start_from: str = "first"
    """Waypoint to start from: "first", or the "closest" piece of the path."""
    waypoints: ArrayLike = ()
    """Positions, (n, 3), NED, m; more columns as the two options below say."""
    yaw_angles: Yaws = "auto"
    """Yaw at each waypoint of a multirotor, rad, or one for all; "auto": towards the point."""
    transition_radius: ArrayLike = 10.0
    """Distance at which a waypoint counts as reached, m, or one for each waypoint."""
    min_lookahead_distance: float = 0.1
    """Least look-ahead distance, m."""
    show_yaw: bool = False
    """True if the fourth column of the waypoints is their yaw, rad."""
    transition_radius_source: str = "internal"
    """"external" if the last column of the waypoints is their transition radius, m."""

    _path: Floats | None = field(default=None, init=False, repr=False)
    """Waypoints of the last step, without repetitions; None before the first step."""
    _start: Floats = field(default_factory=lambda: np.zeros(3), init=False, repr=False)
    """Position of the first step with these waypoints, NED, m."""
    _ahead: int = field(default=0, init=False, repr=False)
    """Index in the path of the waypoint ahead; the number of waypoints after the last one."""

    def reset(self) -> None:
        """Begin anew with the next step."""
        self._path = None

    def __call__(
        self, pose: ArrayLike, lookahead_distance: float, waypoints: ArrayLike | None = None
    ) -> WaypointOutput:
        """Return the outputs of a step, as `step`."""
        return self.step(pose, lookahead_distance, waypoints)

    def step(
        self, pose: ArrayLike, lookahead_distance: float, waypoints: ArrayLike | None = None
    ) -> WaypointOutput:
        """Return where to fly from `pose`: x, y, z (NED, m), course (rad).

        `waypoints` are those of the block's input port; without them those of the property.
        ValueError names an input that is wrong; such a step changes nothing.
        """
        x, y, z, course = _pose(pose)
        position = np.array([x, y, z])
        distance, distance_flag = _raised(
            lookahead_distance, self.min_lookahead_distance, "lookahead_distance"
        )
        rows = self.waypoints if waypoints is None else _waypoints("waypoints", waypoints)
        points, yaws, radii = self._columns(np.asarray(rows))

        # other waypoints begin another path
        if self._path is None or not np.array_equal(self._path, points):
            self._begin(points, position)
        count = len(points)
        if count == 0:
            return WaypointOutput(position, _wrapped(course), _wrapped(course), distance_flag, 0, 1)

        # the next line, and the point on it
        here = min(self._ahead, count - 1)
        if self._ahead < count and self._reached(points, position, here, float(radii[here])):
            self._ahead += 1
        here = min(self._ahead, count - 1)
        begin = points[here - 1] if here > 0 else self._start
        end = points[here]
        point, error = on_line(position, begin, end, distance)
        if self._ahead == count:
            point = end.copy()

        # where to, and where to look
        line_course = math.atan2(end[1] - begin[1], end[0] - begin[0])
        desired = course_to(position, point, line_course)
        yaw = desired
        if self.uav_type == "multirotor" and yaws is not None:
            yaw = _wrapped(float(yaws[here]))
        return WaypointOutput(point, desired, yaw, distance_flag, error, int(self._ahead == count))

    def _columns(self, rows: Floats) -> tuple[Floats, Floats | None, Floats]:
        """Return positions, yaws (None: none are wanted) and transition radii of waypoints."""
        count = len(rows)
        external = self.transition_radius_source == "external"
        columns = 3 + bool(self.show_yaw) + external
        if count and rows.shape[1] != columns:
            raise ValueError(
                f"waypoints: {rows.shape[1]} columns, expected {columns} with show_yaw "
                f"{bool(self.show_yaw)} and transition_radius_source "
                f"{self.transition_radius_source!r}"
            )

        yaws: Floats | None = None
        if self.show_yaw:
            yaws = rows[:, 3] if count else np.zeros(0)
        elif not isinstance(self.yaw_angles, str):
            yaws = _one_each(np.asarray(self.yaw_angles), count, "yaw_angles")

        if external and count:
            radii = _radii("transition radii of the waypoints", rows[:, -1])
        else:
            radii = _one_each(np.asarray(self.transition_radius), count, "transition_radius")

        # neighbours that are the same place
        points = rows[:, :3]
        distinct = np.ones(count, bool)
        distinct[1:] = (np.diff(points, axis=0) != 0.0).any(axis=1)
        yaws = None if yaws is None else yaws[distinct]
        return points[distinct], yaws, radii[distinct]

    def _begin(self, points: Floats, position: Floats) -> None:
        """Begin the path through these waypoints at a position."""
        self._path = points.copy()
        self._start = position
        self._ahead = 0
        if self.start_from == "closest" and len(points) > 1:
            errors = [on_line(position, begin, end, math.inf)[1] for begin, end in pairwise(points)]
            self._ahead = 1 + int(np.argmin(errors))

    def _reached(self, points: Floats, position: Floats, index: int, radius: float) -> bool:
        """Return whether a waypoint counts as reached."""
        from_it = position - points[index]
        if math.sqrt(from_it @ from_it) <= radius:
            return True
        if index > 0:
            onwards = points[index] - points[index - 1]
        elif len(points) > 1:
            onwards = points[1] - points[0]
        else:
            onwards = points[0] - self._start
        return bool(from_it @ onwards >= 0.0)


@matlab_properties(
    {
        "uav_type": _uav_type,
        "min_orbit_radius": _positive,
        "min_lookahead_distance": _positive,
    },
    {"uav_type": "UAVType"},
)
@dataclass(eq=False)
class OrbitFollower:
    """A follower of level circles, MATLAB's `uavOrbitFollower`.

    The look-ahead point is the point of the circle at the look-ahead distance from the vehicle, in
    the direction of the turn; if the circle is farther away, its nearest point; if it lies within
    that distance, its farthest. A turn direction of 0 is chosen at the first step as the one that
    needs less turning from the course, and is kept. Turns count while the cross-track error is at
    most the look-ahead distance, from the first step with this centre, radius and direction. A
    multirotor's desired yaw is the course here, too.

    >>> follower = OrbitFollower()
    >>> output = follower([0, 10, -5, 0], [0, 0, -5], 10, -1, 2)
    >>> bool(output.lookahead_point[0] > 0), output.cross_track_error, output.num_turns
    (True, 0.0, 0.0)
    """

    uav_type: str = "fixed-wing"
    """"fixed-wing" or "multirotor"."""
    min_orbit_radius: float = 1.0
    """Least radius, m."""
    min_lookahead_distance: float = 0.1
    """Least look-ahead distance, m."""

    _orbit: tuple[float, ...] = field(default=(), init=False, repr=False)
    """Centre, radius and direction of the last step."""
    _turn: float = field(default=1.0, init=False, repr=False)
    """Direction that is flown: 1 clockwise, −1 counter-clockwise."""
    _bearing: float | None = field(default=None, init=False, repr=False)
    """Bearing of the vehicle from the centre at the last step, rad."""
    _turns: float = field(default=0.0, init=False, repr=False)
    """Turns so far."""

    def reset(self) -> None:
        """Begin anew with the next step."""
        self._orbit = ()

    def __call__(
        self,
        pose: ArrayLike,
        center: ArrayLike,
        radius: float,
        turn_direction: float,
        lookahead_distance: float,
    ) -> OrbitOutput:
        """Return the outputs of a step, as `step`."""
        return self.step(pose, center, radius, turn_direction, lookahead_distance)

    def step(
        self,
        pose: ArrayLike,
        center: ArrayLike,
        radius: float,
        turn_direction: float,
        lookahead_distance: float,
    ) -> OrbitOutput:
        """Return where to fly from `pose`: x, y, z (NED, m), course (rad).

        `center`: x, y, z (NED, m). `turn_direction`: above 0 clockwise seen from above, below 0
        counter-clockwise, 0 as the pose suggests. ValueError names an input that is wrong.
        """
        x, y, z, course = _pose(pose)
        north_0, east_0, down_0 = finite_numbers(np.ravel(center), 3, "center").tolist()
        direction = finite_number("turn_direction", turn_direction, error=ValueError)
        radius, radius_flag = _raised(radius, self.min_orbit_radius, "radius")
        distance, distance_flag = _raised(
            lookahead_distance, self.min_lookahead_distance, "lookahead_distance"
        )

        # the vehicle seen from the centre
        north = x - north_0
        east = y - east_0
        below = z - down_0
        away = math.hypot(north, east)
        bearing = math.atan2(east, north) if away > 0.0 else course
        error = math.hypot(away - radius, below)

        # another orbit begins anew
        orbit = (north_0, east_0, down_0, radius, float(np.sign(direction)))
        if orbit != self._orbit:
            self._orbit = orbit
            self._turn = orbit[-1] or free_turn(north, east, course)
            self._turns = 0.0
            self._bearing = None

        # turns
        if error <= distance:
            if self._bearing is not None:
                turned = math.remainder(bearing - self._bearing, 2.0 * math.pi)
                self._turns += self._turn * turned / (2.0 * math.pi)
            self._bearing = bearing
        else:
            self._bearing = None

        # the point ahead
        ahead = 0.0
        if error <= distance and away > 0.0:
            reach_squared = distance * distance - below * below
            cosine = (away * away + radius * radius - reach_squared) / (2.0 * away * radius)
            ahead = math.acos(min(max(cosine, -1.0), 1.0))
        angle = bearing + self._turn * ahead
        point = np.array(
            [north_0 + radius * math.cos(angle), east_0 + radius * math.sin(angle), down_0]
        )

        tangent = bearing + self._turn * 0.5 * math.pi
        desired = course_to(np.array([x, y, z]), point, tangent)
        return OrbitOutput(point, desired, desired, radius_flag, distance_flag, error, self._turns)


def on_line(position: Floats, begin: Floats, end: Floats, distance: float) -> tuple[Floats, float]:
    """Return the point of a straight piece `distance` (m) ahead of a position, and the error.

    The point lies on the piece; it is its nearest one if that is farther away. The error is the
    distance from the piece, m.
    """
    along = end - begin
    length = math.sqrt(along @ along)
    if length == 0.0:
        return end.copy(), math.sqrt((position - end) @ (position - end))

    direction = along / length
    passed = float((position - begin) @ direction)
    nearest = begin + min(max(passed, 0.0), length) * direction
    error = math.sqrt((position - nearest) @ (position - nearest))
    if error > distance or distance == math.inf:
        return nearest, error

    # where the line leaves the sphere around the position
    aside = position - (begin + passed * direction)
    ahead = passed + math.sqrt(max(distance * distance - float(aside @ aside), 0.0))
    return begin + min(ahead, length) * direction, error


def course_to(position: Floats, point: Floats, otherwise: float) -> float:
    """Return the course to a point, rad, −π … π; `otherwise` if it is above, below or here."""
    north = point[0] - position[0]
    east = point[1] - position[1]
    if math.hypot(north, east) < 1e-9:
        return _wrapped(otherwise)
    return math.atan2(east, north)


def _pose(pose: ArrayLike) -> tuple[float, float, float, float]:
    x, y, z, course = finite_numbers(np.ravel(pose), 4, "pose").tolist()
    return x, y, z, course


def _raised(value: Any, least: float, name: str) -> tuple[float, int]:
    """Return a length raised to its least value, and 1 if it was below it."""
    number = finite_number(name, value, "m", error=ValueError)
    return (least, 1) if number < least else (number, 0)


def _one_each(values: Floats, count: int, name: str) -> Floats:
    """Return one value for each of `count` waypoints."""
    values = values.reshape(-1)
    if values.size not in (1, count):
        raise ValueError(f"{name}: {values.size} for {count} waypoints, expected one or one each")
    return np.broadcast_to(values, (count,))


def _wrapped(angle: float) -> float:
    return math.remainder(angle, 2.0 * math.pi)
