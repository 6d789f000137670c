# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Shortest paths of an airplane between poses in space, MATLAB's `uavDubinsConnection`.

A path is one of Dubins' six words seen from above, flown at one angle of climb. If the climb is too
steep for the angle allowed, the path gets longer: by one more arc (a medium climb), or by whole
turns of a helix (a high one), so that the angle is the limit. NED metres, headings in radians
clockwise from north; L is a turn to the left (counter-clockwise from above), R one to the right.

Sources: M. Owen, R. W. Beard, T. W. McLain, Implementing Dubins Airplane Paths on Fixed-Wing UAVs,
Handbook of Unmanned Aerial Vehicles, 2015, for low, medium and high climbs; MathWorks, UAV Toolbox,
reference pages of `uavDubinsConnection` and `uavDubinsPathSegment` for properties, defaults and
motion types. Their example, a climb of 20 m with a turn about, has a length of 138.373157 m, which
is that of a gravity of 9.8 m/s² in the radius of turns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_array, finite_number
from rfly_common.config.matlab_properties import matlab_properties
from rfly_common.imports import require
from rfly_common.kernels import dubins

GRAVITY = 9.8
"""Gravity in the radius of turns, m/s²."""

_WORDS = {
    "LSL": (dubins.same_turns, True),
    "LSR": (dubins.opposite_turns, True),
    "RSL": (dubins.opposite_turns, False),
    "RSR": (dubins.same_turns, False),
    "RLR": (dubins.three_turns, False),
    "LRL": (dubins.three_turns, True),
}
"""Function of each word, and whether it takes the mirrored poses.

In `rfly_common.kernels.dubins` y points to the left of x, here to the right.
"""

_FIRST_ARC = ("LRSL", "LRSR", "LRLR", "RLSR", "RLRL", "RLSL")
_LAST_ARC = ("LSRL", "RSRL", "LSLR", "RSLR")
PATH_TYPES = (
    *(f"{word}N" for word in _WORDS),
    *(f"H{word[0].lower()}{word}" for word in _WORDS),
    *(f"{word}H{word[-1].lower()}" for word in _WORDS),
    *_FIRST_ARC,
    *_LAST_ARC,
)
"""MATLAB's path types: no helix, a helix first or last, one more arc first or last."""

_SHOWN_POSES = 300
"""Poses of a drawn path."""
_ARC_STEPS = 180
"""Angles in a whole turn between which the length of a medium path is searched."""
_LENGTH_ERROR = 1e-6
"""Largest error of the length of a medium path, in radii."""

_TURN = {"L": -1.0, "S": 0.0, "R": 1.0, "N": 0.0, "Hl": -1.0, "Hr": 1.0}
"""Direction of each motion type, 1 clockwise from above."""


def motion_types(path_type: str) -> tuple[str, str, str, str]:
    """Return the four motions of a path type: HlLSL is Hl, L, S, L."""
    motions = []
    rest = path_type
    while rest:
        size = 2 if rest[0] == "H" else 1
        motions.append(rest[:size])
        rest = rest[size:]
    if len(motions) != 4:
        raise ValueError(f"path type: {path_type!r}, expected one of {', '.join(PATH_TYPES)}")
    return motions[0], motions[1], motions[2], motions[3]


@matlab_properties({})
@dataclass(frozen=True, eq=False)
class DubinsAirplanePath:
    """A path between two poses, MATLAB's `uavDubinsPathSegment`."""

    start_pose: Floats
    """x, y, z (NED, m), heading (rad), (4,)."""
    goal_pose: Floats
    """Pose at the end, (4,)."""
    min_turning_radius: float
    """Radius of the arcs, m."""
    helix_radius: float
    """Radius of the helix, m; `min_turning_radius` if there is none."""
    flight_path_angle: float
    """Angle of climb, rad, positive upwards."""
    air_speed: float
    """Airspeed, m/s."""
    motion_types: tuple[str, str, str, str]
    """S straight, L, R turn, Hl, Hr helix, N no motion."""
    motion_lengths: Floats
    """Lengths of the motions along the path, (4,), m."""

    @property
    def length(self) -> float:
        """Length along the path, m; NaN if there is no path of this type."""
        return float(self.motion_lengths.sum())

    def interpolate(self, lengths: ArrayLike | None = None) -> Floats:
        """Return poses at lengths along the path (m), (n, 6).

        They are x, y, z (NED, m), heading, flight path angle and roll angle (rad). Without lengths
        they are the poses at the start, between the motions and at the end. At the end of a motion
        the roll is that of the next one.
        """
        ends = np.cumsum(self.motion_lengths)
        if lengths is None:
            along = np.concatenate([[0.0], ends])
        else:
            along = np.clip(finite_array("lengths", lengths, error=ValueError).ravel(), 0.0, None)
        level = math.cos(self.flight_path_angle)
        x, y, z, heading = (np.full(along.shape, value) for value in self.start_pose.tolist())
        roll = np.zeros(along.shape)

        # the chord of an arc has the direction of its middle
        begin = 0.0
        for kind, length in zip(self.motion_types, self.motion_lengths.tolist(), strict=True):
            radius = self.helix_radius if kind in ("Hl", "Hr") else self.min_turning_radius
            flown = np.clip(along - begin, 0.0, length)
            half = 0.5 * _TURN[kind] * level * flown / radius
            chord = level * flown * np.sinc(half / math.pi)
            x += chord * np.cos(heading + half)
            y += chord * np.sin(heading + half)
            heading += 2.0 * half

            bank = _TURN[kind] * math.atan(self.air_speed**2 / (GRAVITY * radius))
            is_here = (along >= begin) & ((along < begin + length) | (begin + length >= ends[-1]))
            roll[is_here & (length > 0.0)] = bank
            begin += length

        z -= np.minimum(along, ends[-1]) * math.sin(self.flight_path_angle)
        angle = np.full(along.shape, self.flight_path_angle)
        return np.column_stack([x, y, z, _wrapped(heading), angle, roll])

    def show(self, ax: Any = None) -> Any:
        """Draw the path and the ends of its motions in space, north, east and up; return the axes.

        Without axes they are new ones of Matplotlib's.
        """
        require("matplotlib", "drawing")
        import matplotlib.pyplot as plt

        axes = plt.figure().add_subplot(projection="3d") if ax is None else ax
        line = self.interpolate(np.linspace(0.0, self.length, _SHOWN_POSES))
        ends = self.interpolate()
        axes.plot(line[:, 0], line[:, 1], -line[:, 2])
        axes.plot(ends[:, 0], ends[:, 1], -ends[:, 2], "o")
        axes.set(xlabel="North", ylabel="East", zlabel="Up")
        return axes


def _positive(name: str, value: Any) -> float:
    return finite_number(name, value, above=0.0, error=ValueError)


def _roll(name: str, value: Any) -> float:
    number = finite_number(name, value, "rad", above=0.0, error=ValueError)
    if number >= math.pi / 2:
        raise ValueError(f"{name}: {number:g} rad, expected less than π/2")
    return number


def _angle_limit(name: str, value: Any) -> tuple[float, float]:
    low, high = finite_array(name, value, (2,), error=ValueError).tolist()
    if not -math.pi / 2 < low <= 0.0 <= high < math.pi / 2:
        raise ValueError(
            f"{name}: {low:g}, {high:g}, expected a descent of 0 or below and a climb of 0 or "
            "above, within ±π/2 rad"
        )
    return low, high


def _disabled(name: str, value: Any) -> tuple[str, ...]:
    types = (value,) if isinstance(value, str) else tuple(value)
    for path_type in types:
        if path_type not in PATH_TYPES:
            raise ValueError(f"{name}: {path_type!r}, expected some of {', '.join(PATH_TYPES)}")
    return types


@matlab_properties(
    {
        "air_speed": _positive,
        "max_roll_angle": _roll,
        "flight_path_angle_limit": _angle_limit,
        "disabled_path_types": _disabled,
    }
)
@dataclass(eq=False)
class DubinsAirplane:
    """Shortest paths of an airplane with limits of roll and climb, MATLAB's `uavDubinsConnection`.

    The radius of turns is air_speed² / (g tan max_roll_angle). Of path types of the same length
    the first in PATH_TYPES is taken. A helix has as many whole turns as fit, widened until the
    climb is right; if none fits, it has one, and the climb is less steep.

    >>> path = DubinsAirplane().connect([0, 0, 0, 0], [0, 0, 20, np.pi])
    >>> path.motion_types, round(path.length, 6)
    (('R', 'L', 'R', 'N'), 138.373157)
    """

    air_speed: float = 10.0
    """Airspeed, m/s."""
    max_roll_angle: float = 0.5
    """Largest roll angle, rad."""
    flight_path_angle_limit: tuple[float, float] = (-0.5, 0.5)
    """Least and greatest angle of climb, rad."""
    disabled_path_types: Sequence[str] = field(default=())
    """Path types that are not used."""

    @property
    def min_turning_radius(self) -> float:
        """Radius of turns, m."""
        return self.air_speed**2 / (GRAVITY * math.tan(self.max_roll_angle))

    def connect(self, start: ArrayLike, goal: ArrayLike) -> DubinsAirplanePath:
        """Return the shortest path between two poses: x, y, z (NED, m), heading (rad).

        ValueError for poses that are not four finite numbers, and if all path types that exist are
        disabled.
        """
        paths = self.connect_all(start, goal)
        lengths = [path.length for path in paths]
        best = math.inf
        shortest = None
        for path, length in zip(paths, lengths, strict=True):
            if length < best - 1e-9:
                best = length
                shortest = path
        if shortest is None:
            raise ValueError(
                "no path: of the path types that are not disabled none joins these poses within "
                "the angles of climb"
            )
        return shortest

    def connect_all(self, start: ArrayLike, goal: ArrayLike) -> list[DubinsAirplanePath]:
        """Return the path of each type that is not disabled, with NaN lengths if there is none."""
        begin = finite_array("start", np.ravel(start), (4,), error=ValueError)
        end = finite_array("goal", np.ravel(goal), (4,), error=ValueError)
        paths = []
        for path_type in PATH_TYPES:
            if path_type in self.disabled_path_types:
                continue
            lengths, helix_radius, angle = _flown(
                path_type, begin, end, self.min_turning_radius, self.flight_path_angle_limit
            )
            path = DubinsAirplanePath(
                begin,
                end,
                self.min_turning_radius,
                helix_radius,
                angle,
                self.air_speed,
                motion_types(path_type),
                np.array(lengths) / math.cos(angle),
            )
            paths.append(path)
        return paths

    MinTurningRadius = min_turning_radius


_Lengths = tuple[float, float, float, float]
_NONE: _Lengths = (math.nan, math.nan, math.nan, math.nan)


def _flown(
    path_type: str, begin: Floats, end: Floats, radius: float, limits: tuple[float, float]
) -> tuple[_Lengths, float, float]:
    """Return level lengths of a type's motions (NaN: none), radius of the helix, angle of climb."""
    rise = float(begin[2] - end[2])
    steepest = limits[1] if rise > 0.0 else limits[0]
    least = _length_at_limit(rise, steepest)
    if least == math.inf:
        return _NONE, radius, 0.0
    motions = motion_types(path_type)
    start = (float(begin[0]), float(begin[1]), float(begin[3]))
    goal = (float(end[0]), float(end[1]), float(end[3]))

    # one of the six words, at the angle that it needs
    if motions[3] == "N":
        first, second, third = _word("".join(motions[:3]), start, goal, radius)
        level = first + second + third
        if not level >= least - 1e-9 or level == math.inf:
            return _NONE, radius, 0.0
        return (first, second, third, 0.0), radius, math.atan2(rise, level)

    # whole turns of a helix before or after a word
    if "H" in path_type:
        helix_first = motions[0][0] == "H"
        word = motions[1:] if helix_first else motions[:3]
        pieces = _word("".join(word), start, goal, radius)
        missing = least - sum(pieces)
        if not missing > 0.0:
            return _NONE, radius, 0.0

        # one turn at least, at a smaller angle where it is too much
        circle = 2.0 * math.pi * radius
        turns = max(1, math.floor(missing / circle + 1e-9))
        helix = max(missing, turns * circle)
        lengths = (helix, *pieces) if helix_first else (*pieces, helix)
        return lengths, helix / (2.0 * math.pi * turns), math.atan2(rise, sum(lengths))

    # an arc before or after a word, as long as the climb needs
    if least == 0.0:
        return _NONE, radius, 0.0
    lengths = _with_arc(path_type, start, goal, radius, least)
    return lengths, radius, 0.0 if math.isnan(lengths[0]) else steepest


def _length_at_limit(rise: float, steepest: float) -> float:
    """Return the level length over which a rise takes the steepest angle, m."""
    if rise == 0.0:
        return 0.0
    return rise / math.tan(steepest) if steepest != 0.0 else math.inf


_Pose = tuple[float, float, float]


def _word(word: str, start: _Pose, goal: _Pose, radius: float) -> tuple[float, float, float]:
    """Return the lengths of a word's pieces, m, infinite if it does not join the poses."""
    function, is_mirrored = _WORDS[word]
    ends, mirrored = dubins.between(*start, *goal, radius)
    pieces = function(mirrored if is_mirrored else ends)
    best = dubins.shorter(dubins.NO_WORD, pieces, dubins.LSL)
    return best[0] * radius, best[1] * radius, best[2] * radius


def _with_arc(path_type: str, start: _Pose, goal: _Pose, radius: float, wanted: float) -> _Lengths:
    """Return the lengths of a word with an arc before or after it, `wanted` metres in all."""
    arc_first = path_type in _FIRST_ARC
    word = path_type[1:] if arc_first else path_type[:3]
    turn = _TURN[path_type[0] if arc_first else path_type[3]]

    # the rest of the way shrinks or grows with the arc
    def lengths(angle: float) -> _Lengths:
        if arc_first:
            after = _turned(start, turn, angle, radius)
            return (angle * radius, *_word(word, after, goal, radius))
        before = _turned(goal, turn, -angle, radius)
        return (*_word(word, start, before, radius), angle * radius)

    def excess(angle: float) -> float:
        return sum(lengths(angle)) - wanted

    # the first angle at which the length is right; where it jumps it is not
    step = 2.0 * math.pi / _ARC_STEPS
    low = 0.0
    at_low = excess(low)
    for i in range(1, _ARC_STEPS + 1):
        high = i * step
        at_high = excess(high)
        if at_low < 0.0 <= at_high < math.inf or at_high <= 0.0 < at_low < math.inf:
            angle = float(brentq(excess, low, high, xtol=1e-13))
            if abs(excess(angle)) <= _LENGTH_ERROR * radius:
                return lengths(angle)
        low = high
        at_low = at_high
    return _NONE


def _turned(pose: _Pose, turn: float, angle: float, radius: float) -> _Pose:
    """Return the pose after an arc; backwards for a negative angle."""
    x, y, heading = pose
    half = 0.5 * turn * angle
    chord = 2.0 * radius * math.sin(0.5 * angle)
    x += chord * math.cos(heading + half)
    y += chord * math.sin(heading + half)
    return x, y, heading + 2.0 * half


def _wrapped(angles: Floats) -> Floats:
    """Return angles within −π … π."""
    return np.remainder(angles + math.pi, 2.0 * math.pi) - math.pi
