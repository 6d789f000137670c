# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Tasks of the environments to learn in: where an episode begins, how it ends, what it pays."""

from __future__ import annotations

import enum
from typing import NamedTuple

from rfly_common.config.checks import check_choice


class Ending(enum.IntEnum):
    """How an episode stands after a step."""

    RUNNING = 0
    """It goes on."""
    SUCCESS = 1
    """The task is solved: at once, or for a task that goes on, at its time limit."""
    OUT_OF_TIME = 2
    """The time limit came first."""
    CRASHED = 3
    """The vehicle has crashed. Eq. 6.5."""
    ASTRAY = 4
    """The vehicle is farther from its target than the task allows."""
    FAILED = 5
    """The vehicle's state is not finite."""


class Course(enum.IntEnum):
    """Kind of places where the targets of an episode lie."""

    POINT = 0
    """One above the ground, near the vehicle, which flies."""
    CHAIN = 1
    """A chain of way-points above the ground; the vehicle flies."""
    TRACK = 2
    """Neighbours on a curve over the ground, from the vehicle, which stands."""
    PLACE = 3
    """One on the ground, some way from the vehicle, which stands."""
    ROOF = 4
    """One on the roof of a house, beside and below the vehicle, which flies."""
    HOP = 5
    """One on the ground, a few lengths of the vehicle away, which stands."""


ON_GROUND = (Course.TRACK, Course.PLACE, Course.HOP)
"""Courses that begin with a vehicle that stands."""


class Task(NamedTuple):
    """Rules of a task, as kernels take them. Lengths in m, times in s.

    The reward of a step of T seconds is the sum of

    - `near` / (1 + d²), d being the distance to the target, m,
    - `progress` · (w before - w after the step), w being the way left, m: d, and with a `cruise`
      the distance of the wheels from the height at which to fly there, and what of the weight they
      do not carry,
    - `reached`, where a target was reached that is not the last,
    - `success`, where the episode ends with success,
    - -`turning` · |ω|² · T, ω in rad/s,
    - -`power` · (power of the rotors / that of hover) · T,
    - -`broken`, where the episode ends by a crash, a failure or going astray.
    """

    course: int
    """A `Course`, as a plain number: numba takes 50 µs for each call with an enum."""
    duration: float
    """Time limit."""
    targets: int
    """Number of targets."""
    is_level: bool
    """True if distances to targets are those across the ground."""
    reach: float
    """Distance within which a target is reached."""
    astray: float
    """Distance to the target beyond which an episode ends."""
    hold: float
    """Time for which the vehicle has to stay at the last target; 0: it only has to reach it."""
    still: float
    """Speed below which it stays, m/s."""
    on_wheels: bool
    """True if it stays only while all wheels carry load."""
    goes_on: bool
    """True if success does not end the episode."""
    sees_ground: bool
    """True if observations contain heights of the ground around the vehicle."""
    cruise: float = 0.0
    """Clearance at which the way leads to the target, m, until it goes down to it; 0: none."""
    near: float = 0.0
    progress: float = 0.0
    reached: float = 0.0
    success: float = 0.0
    turning: float = 0.0
    power: float = 0.0
    broken: float = 0.0


TASKS = {
    "hover": Task(
        course=int(Course.POINT),
        duration=10.0,
        targets=1,
        is_level=False,
        reach=0.3,
        astray=10.0,
        hold=1.0,
        still=0.3,
        on_wheels=False,
        goes_on=True,
        sees_ground=False,
        near=1.0,
        turning=0.5,
        broken=100.0,
    ),
    "waypoints": Task(
        course=int(Course.CHAIN),
        duration=30.0,
        targets=4,
        is_level=False,
        reach=1.0,
        astray=30.0,
        hold=0.0,
        still=0.0,
        on_wheels=False,
        goes_on=False,
        sees_ground=False,
        progress=1.0,
        reached=5.0,
        success=20.0,
        turning=0.5,
        broken=20.0,
    ),
    "path": Task(
        course=int(Course.TRACK),
        duration=30.0,
        targets=20,
        is_level=True,
        reach=1.0,
        astray=6.0,
        hold=0.0,
        still=0.0,
        on_wheels=False,
        goes_on=False,
        sees_ground=True,
        progress=1.0,
        reached=0.5,
        success=20.0,
        broken=20.0,
    ),
    "goal": Task(
        course=int(Course.PLACE),
        duration=40.0,
        targets=1,
        is_level=True,
        reach=2.0,
        astray=60.0,
        hold=0.5,
        still=0.3,
        on_wheels=True,
        goes_on=False,
        sees_ground=True,
        progress=1.0,
        success=50.0,
        turning=0.1,
        power=0.5,
        broken=50.0,
    ),
    "roof": Task(
        course=int(Course.ROOF),
        duration=20.0,
        targets=1,
        is_level=False,
        reach=1.0,
        astray=30.0,
        hold=0.5,
        still=0.3,
        on_wheels=True,
        goes_on=False,
        sees_ground=False,
        progress=1.0,
        success=50.0,
        turning=0.5,
        broken=50.0,
    ),
    "hop": Task(
        course=int(Course.HOP),
        duration=20.0,
        targets=1,
        is_level=True,
        reach=2.0,
        astray=30.0,
        hold=0.5,
        still=0.3,
        on_wheels=True,
        goes_on=False,
        sees_ground=False,
        cruise=2.0,
        progress=1.0,
        success=50.0,
        turning=0.5,
        power=0.5,
        broken=20.0,
    ),
}
"""Tasks by name: hover at a point, fly through way-points, drive along a path, drive or fly to a
place and stand there, land on a roof, and take off, fly to a place and stand there."""

USUAL_ACTIONS = {
    "hover": "wrench",
    "waypoints": "wrench",
    "path": "wheels",
    "goal": "wrench+wheels",
    "roof": "wrench",
    "hop": "wrench",
}
"""Kind of actions of each task, a name of `actions.ACTIONS`, unless another is chosen."""


def task_of(name: str) -> Task:
    """Return the task of a name. Raise ConfigError for another name."""
    check_choice("task", name, tuple(TASKS))
    return TASKS[name]
