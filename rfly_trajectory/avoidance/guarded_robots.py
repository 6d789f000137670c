# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Robots that others steer by velocities, which are made safe. No clock and no ROS.

Theory of operation. Poses and wished velocities come when they come. In each step the robots whose
poses are fresh are vehicles of `Avoidance`, at the place where they will be when a command takes
effect: their poses, moved on by the pose's age and the robot's `latency`. A robot counts as moving
as it was commanded while its measured velocity is near to that. So its commands gain and lose speed
as its abilities say, even if it follows them late.

A pose that grows old makes the robot's body larger, by ½ braking · age². After `pose_timeout` the
robot is commanded to stop, and the others keep clear of it as of any vehicle that does not give
way, wherever it may have come to a stop. A wish that is older than `command_timeout` is one to
stand. A fixed wing circles instead.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.config.checks import finite_number
from rfly_common.errors import CommandError, ConfigError
from rfly_trajectory.avoidance.avoidance import (
    CLIMB,
    COURSE,
    MAX_PLACES,
    SPEED,
    TURN,
    Avoidance,
    AvoidanceAction,
    OtherVehicles,
)
from rfly_trajectory.avoidance.pose_tracks import NEVER, PoseTracks
from rfly_trajectory.kernels.tables import FIXED_WING, GROUND, MULTIROTOR, AbilityTable

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.world.solids import Solids

NEAR_COMMAND = 0.1
"""Share of its largest speed by which a robot may differ from its command, beside `latency`."""
FASTER = 1.5
"""A robot counts as at most this much faster than its largest speed."""
LONGEST_STOP = 60.0
"""Longest time that a robot may need to stop, s, also at most MOST_STEPS steps."""
MOST_STEPS = MAX_PLACES - 10
"""Largest number of steps in which a robot has to stop: `Avoidance` takes no more."""
SLOW = 0.05
"""Speed below which the way of a ground vehicle counts as straight, m/s."""


class SafeVelocities(NamedTuple):
    """Velocities for n robots."""

    velocity: Floats
    """Velocity forward, to the left and up, (n, 3), m/s."""
    yaw_rate: Floats
    """Rate of the yaw angle, counter-clockwise, (n,), rad/s."""


class GuardedRobots:
    """Robots whose wished velocities are made safe, step by step.

    `latency` (n,) is the time from a command to its effect, s. Raises ConfigError for robots and
    times that are impossible.
    """

    def __init__(
        self,
        able: AbilityTable,
        latency: Floats,
        *,
        step: float,
        pose_timeout: float,
        command_timeout: float,
    ) -> None:
        n = len(able.kind)
        finite_number("pose_timeout", pose_timeout, "s", at_least=0.01, at_most=60.0)
        finite_number("command_timeout", command_timeout, "s", at_least=0.01, at_most=60.0)
        _check_stops(able, step)
        self.tracks = PoseTracks(n)
        """Poses."""
        self._able = able
        self._latency = np.array(latency, float)
        self._step = step
        self._pose_timeout = pose_timeout
        self._command_timeout = command_timeout

        # what is around
        self._terrain: HeightMap | None = None
        self._solids: Solids | None = None
        self._avoidance: Avoidance | None = None
        self._rows: Ints = np.zeros(0, np.int64)
        """Robots that `_avoidance` moves."""

        # wishes and commands, in body axes: forward, left, up and the yaw rate
        self._wish: Floats = np.zeros((n, 4))
        self._wished_ns: Ints = np.full(n, NEVER, np.int64)
        self._command: Floats = np.zeros((n, 4))
        self._side: Floats = np.ones(n)
        """Side to which a fixed wing circles: 1 is left."""
        self.action: Ints = np.full(n, AvoidanceAction.FOLLOWED, np.int64)
        """What each robot did in the last step, see `AvoidanceAction`."""
        self.waited: Floats = np.zeros(n)
        """Time for which each robot has been waiting without progress, (n,), s, at most 8."""

    def __len__(self) -> int:
        return len(self._able.kind)

    def surround(self, terrain: HeightMap | None, solids: Solids | None) -> None:
        """Move on this ground and among these objects from now on."""
        if terrain is not self._terrain or solids is not self._solids:
            self._terrain = terrain
            self._solids = solids
            self._renew(self._rows)

    def wish(self, row: int, now_ns: int, velocity: tuple[float, float, float, float]) -> None:
        """Take a wished velocity: forward, to the left and up, m/s, and the yaw rate, rad/s.

        Raises CommandError for one that the robot's kind can't have.
        """
        if not all(map(math.isfinite, velocity)):
            raise CommandError(f"{list(velocity)} is not finite")
        if self._able.kind[row] != MULTIROTOR and velocity[1] != 0.0:
            raise CommandError(f"{velocity[1]:g} m/s to the left, which its kind can't go")
        self._wish[row] = velocity
        self._wished_ns[row] = now_ns

    def clear(self) -> None:
        """Forget poses and wishes: the clock was set back."""
        self.tracks.clear()
        self._wished_ns[:] = NEVER

    def fresh(self, now_ns: int) -> Bools:
        """Return which robots have a fresh pose, (n,)."""
        return self.tracks.age(now_ns) <= self._pose_timeout

    def commanded(self, now_ns: int) -> Bools:
        """Return which robots have a fresh wish, (n,)."""
        silence = (now_ns - self._wished_ns) * 1e-9
        return (self._wished_ns != NEVER) & (silence <= self._command_timeout)

    def step(
        self, now_ns: int, others: OtherVehicles | None = None, hold: bool = False
    ) -> SafeVelocities:
        """Return safe velocities for the next step; with `hold` all robots are to stand."""
        fresh = self.fresh(now_ns)
        rows = np.flatnonzero(fresh)
        if self._avoidance is None or not np.array_equal(rows, self._rows):
            self._renew(rows)
        self._command[~fresh] = self._stopped()[~fresh]
        self.action[~fresh] = AvoidanceAction.FELL_BACK
        self.waited[~fresh] = 0.0
        if len(rows):
            moves = self.commanded(now_ns) & (not hold)
            wishes = np.where(moves[:, None], self._wish, self._stopped())
            self._move(rows, now_ns, wishes, self._with_lost(now_ns, others))
        return SafeVelocities(self._command[:, :3].copy(), self._command[:, 3].copy())

    def _renew(self, rows: Ints) -> None:
        """Begin with other robots or surroundings; those that were here keep what they chose."""
        able = AbilityTable(**{name: column[rows] for name, column in self._able._asdict().items()})
        renewed = Avoidance(
            able,
            np.zeros((len(rows), 7)),
            step=self._step,
            terrain=self._terrain,
            solids=self._solids,
        )
        if self._avoidance is not None:
            place = np.full(len(self), -1, np.int64)
            place[self._rows] = np.arange(len(self._rows))
            renewed.remember(self._avoidance, place[rows])
        self._avoidance = renewed
        self._rows = rows

    def _stopped(self) -> Floats:
        """Return the velocities (n, 4) with which robots stand, or circle."""
        wings = self._able.kind == FIXED_WING
        stopped = np.zeros((len(self), 4))
        stopped[wings, 0] = self._able.least[wings]
        circle = self._side * self._able.lateral / np.maximum(self._able.least, 1e-3)
        stopped[wings, 3] = np.minimum(circle, self._able.turn_rate)[wings]
        return stopped

    def _move(self, rows: Ints, now_ns: int, wishes: Floats, others: OtherVehicles | None) -> None:
        """Let the robots of these rows make a step -> commands."""
        avoidance = self._avoidance
        assert avoidance is not None
        age = self.tracks.age(now_ns)
        state = self._states(age)[rows]
        yaw = self._yaw_ahead(age)[rows]

        # an old pose makes the body larger
        able = self._able
        grown = np.minimum(0.5 * able.brake * age**2, able.most * age)
        avoidance.able = avoidance.able._replace(radius=(able.radius + grown)[rows])
        avoidance.state = state.copy()
        avoidance.step(self._wishes(state, yaw, rows, wishes[rows]), others=others)

        after = avoidance.state
        kind = able.kind[rows]
        command = np.zeros((len(rows), 4))
        command[:, 0] = after[:, SPEED]
        command[:, 2] = after[:, CLIMB]
        turned = (after[:, COURSE] - state[:, COURSE] + math.pi) % (2.0 * math.pi) - math.pi
        command[:, 3] = turned / self._step

        # who stands may turn on the spot: the body is a cylinder
        spin = np.clip(wishes[rows, 3], -able.turn_rate[rows], able.turn_rate[rows])
        stands = (np.abs(after[:, SPEED]) < 1e-6) & np.isinf(able.bend[rows])
        command[:, 3] = np.where((kind == GROUND) & stands, spin, command[:, 3])

        # a multirotor yaws as it likes, and can
        rotors = kind == MULTIROTOR
        course = after[:, COURSE] - yaw
        command[rotors, 0] = (after[:, SPEED] * np.cos(course))[rotors]
        command[rotors, 1] = (after[:, SPEED] * np.sin(course))[rotors]
        command[rotors, 3] = spin[rotors]

        self._command[rows] = command
        self._side[rows] = np.where(kind == FIXED_WING, after[:, TURN], 1.0)
        self.action[rows] = avoidance.action
        self.waited[rows] = avoidance.waited

    def _body_velocities(self, age: Floats) -> tuple[Floats, Floats]:
        """Return the velocities in body axes (n, 3) and yaw rates (n,) that robots have by now."""
        able = self._able
        tracks = self.tracks
        cosine = np.cos(tracks.yaw)
        sine = np.sin(tracks.yaw)
        x, y, z = tracks.velocity.T
        measured = np.column_stack([cosine * x + sine * y, cosine * y - sine * x, z])
        measured[able.kind != MULTIROTOR, 1] = 0.0
        measured[able.kind == GROUND, 2] = 0.0

        lag = self._latency + np.minimum(age, self._pose_timeout) + self._step
        allowed = np.maximum(able.gain, able.brake) * lag + NEAR_COMMAND * able.most
        obeys = np.linalg.norm(measured - self._command[:, :3], axis=1) <= allowed
        body = np.where(obeys[:, None], self._command[:, :3], measured)
        most = FASTER * able.most
        body[:, :2] = np.clip(body[:, :2], -most[:, None], most[:, None])
        wings = able.kind == FIXED_WING
        body[wings, 0] = np.maximum(body[wings, 0], able.least[wings])
        climb = np.where(able.climb > 0.0, FASTER * able.climb, 0.0)
        body[:, 2] = np.clip(body[:, 2], -climb, climb)
        return body, np.where(obeys, self._command[:, 3], tracks.yaw_rate)

    def _yaw_ahead(self, age: Floats) -> Floats:
        """Return the yaw angles (n,) when a command takes effect, rad."""
        _, rate = self._body_velocities(age)
        return self.tracks.yaw + rate * self._lead(age)

    def _lead(self, age: Floats) -> Floats:
        """Return the time (n,) from each pose to the effect of a command, s."""
        return np.minimum(age, self._pose_timeout) + self._latency

    def _states(self, age: Floats) -> Floats:
        """Return the states (n, 7) in which robots will be when a command takes effect."""
        able = self._able
        body, rate = self._body_velocities(age)
        lead = self._lead(age)
        middle = self.tracks.yaw + 0.5 * rate * lead
        cosine = np.cos(middle)
        sine = np.sin(middle)
        forward, left, up = body.T

        state = np.zeros((len(self), 7))
        state[:, 0] = self.tracks.position[:, 0] + lead * (cosine * forward - sine * left)
        state[:, 1] = self.tracks.position[:, 1] + lead * (sine * forward + cosine * left)
        state[:, 2] = self.tracks.position[:, 2] + lead * up
        state[:, COURSE] = self.tracks.yaw + rate * lead
        state[:, SPEED] = forward
        state[:, CLIMB] = up

        # ground vehicles: the bend that they drive
        moves = np.abs(forward) > SLOW
        bend = np.divide(rate, forward, out=np.zeros(len(self)), where=moves)
        tightest = np.minimum(able.bend, able.lateral / np.maximum(forward**2, 1e-6))
        tightest = np.minimum(tightest, able.turn_rate / np.maximum(np.abs(forward), 1e-3))
        state[:, TURN] = np.clip(bend, -tightest, tightest)

        rotors = able.kind == MULTIROTOR
        level = np.hypot(forward, left)
        state[rotors, COURSE] += np.where(level > 1e-6, np.arctan2(left, forward), 0.0)[rotors]
        state[rotors, SPEED] = level[rotors]
        state[rotors, TURN] = 0.0
        wings = able.kind == FIXED_WING
        state[wings, TURN] = self._side[wings]
        return state

    def _wishes(self, state: Floats, yaw: Floats, rows: Ints, wanted: Floats) -> Floats:
        """Return the wishes (m, 4) of `Avoidance` for wished velocities (m, 4) in body axes."""
        able = self._able
        kind = able.kind[rows]
        most = able.most[rows]
        rate = np.clip(wanted[:, 3], -able.turn_rate[rows], able.turn_rate[rows])
        least = np.where(kind == FIXED_WING, able.least[rows], -most)
        wish = np.zeros((len(rows), 4))
        wish[:, 0] = state[:, COURSE] + rate * self._step
        wish[:, 1] = np.clip(wanted[:, 0], least, most)
        wish[:, 2] = np.clip(wanted[:, 2], -able.climb[rows], able.climb[rows])
        wish[:, 3] = rate

        # multirotors go in any direction
        rotors = kind == MULTIROTOR
        level = np.hypot(wanted[:, 0], wanted[:, 1])
        course = np.where(
            level > 1e-6, yaw + np.arctan2(wanted[:, 1], wanted[:, 0]), state[:, COURSE]
        )
        wish[rotors, 0] = course[rotors]
        wish[rotors, 1] = np.minimum(level, most)[rotors]
        wish[rotors, 3] = 0.0
        return wish

    def _with_lost(self, now_ns: int, others: OtherVehicles | None) -> OtherVehicles | None:
        """Return the others, and the robots whose poses have become too old."""
        able = self._able
        lost = np.flatnonzero(self.tracks.heard & ~self.fresh(now_ns))
        if not len(lost):
            return others

        # they are commanded to stop, so their reach ends where they have stopped
        age = self.tracks.age(now_ns)[lost]
        longest = self._pose_timeout + self._latency[lost] + able.most[lost] / able.brake[lost]
        moving = np.minimum(age, longest)
        is_wing = able.kind[lost] == FIXED_WING
        moving = np.where(is_wing, age, moving)
        velocity = self.tracks.velocity[lost]
        stopped = (age > longest) & ~is_wing
        mine = OtherVehicles(
            self.tracks.position[lost] + np.where(stopped, longest, 0.0)[:, None] * velocity,
            np.where(stopped[:, None], 0.0, velocity),
            able.radius[lost],
            able.below[lost],
            able.above[lost],
            able.kind[lost] == MULTIROTOR,
            able.kind[lost] != GROUND,
            moving,
            able.brake[lost],
            able.most[lost],
        )
        return mine if others is None else others.concatenate(mine)


def _check_stops(able: AbilityTable, step: float) -> None:
    """Raise ConfigError for a robot that may be faster than it can stop or level out in time."""
    brakes = able.kind != FIXED_WING
    stop = np.where(brakes, FASTER * able.most / able.brake, 0.0)
    level = FASTER * able.climb / able.climb_gain
    longest = min(LONGEST_STOP, MOST_STEPS * step)
    for what, seconds in (("stop", stop), ("level out", level)):
        if seconds.max(initial=0.0) > longest:
            row = int(seconds.argmax())
            raise ConfigError(
                f"a robot with {able.most[row]:g} m/s, {able.climb[row]:g} m/s of climb and "
                f"{able.brake[row]:g} m/s² of braking needs {seconds[row]:.0f} s to {what}, "
                f"allowed are {longest:.0f} s at {1.0 / step:g} Hz"
            )
