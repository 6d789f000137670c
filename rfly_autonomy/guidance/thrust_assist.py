# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Thrust-assisted driving: rotors lift one axle while the wheels of the other one drive.

Theory of operation. `ThrustAssist` holds one `Gait`. A vehicle that rolls and gets no further lifts
the front axle, or the rear one if its nose is up already or the front one was lifted in vain:
before a step, on it, and on a ramp that is too slippery. Nose down, the thrust also pulls it
forward. It lowers the axle once it has moved on, and rolls again. It only gives orders: the flight
controller's `AxleLift` carries them out, and the body's rest shows here that the axle is down.
docs/model, section 10.9.

On a slope it drives straight up, whatever its path, where it begins or after a stall, until its
wheels have carried it on: askew, the thrust would push it to the side. The attitude shows the
direction of ascent while all wheels stand. A vehicle that stalls askew rolls back and turns before
it lifts an axle. Way and height are sums of the velocity, because a position jumps with each
correction.
"""

from __future__ import annotations

import enum
import math
from collections import deque
from typing import NamedTuple

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.axle_lift import (
    ASSISTED_SPEED,
    LEAST_FRONT_UP,
    LONGEST_LOWERING,
    LOWERED,
    PITCH_RATE,
    Assist,
    pitch_of,
)
from rfly_autonomy.control.speed_controller import max_virtual_steering
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.guidance.route import Route
from rfly_common.arrays import Floats
from rfly_common.frames import rotation_matrix
from rfly_missions.mission.legs import Leg

STALL_TIME = 1.5
"""Time within which a rolling vehicle has to move on, s."""

STALL_SHARE = 0.3
"""Share of the wanted way that it has to move in this time."""

NOSE_IS_UP = math.radians(4.0)
"""Pitch beyond which the front axle is already higher, rad."""

READY = math.radians(2.0)
"""Pitch below the least one from which a vehicle drives on with the front axle lifted, rad."""

LONGEST_LIFT = 10.0
"""Time within which a vehicle with an axle lifted has to move on, s."""

LEAST_SPEED = 0.05
"""Mean speed with an axle lifted below which it does not move on, m/s."""

FRONT_UP_WAY = 0.5
"""Way with the front axle lifted, in wheelbases."""

REAR_UP_WAY = 1.5
"""Shortest way with the rear axle lifted, in wheelbases."""

STEEP = 0.1
"""Slope of the last half of a wheelbase above which the rear axle stays lifted."""

RESTS_BELOW = 0.2 * PITCH_RATE
"""Pitch rate below which a body rests that an axle was lowered with, rad/s."""

REST_TIME = LOWERED / PITCH_RATE
"""Time for which it has to rest, s: until the flight controller's pitch is LOWERED beyond."""

LEAST_LOWERING = 0.5
"""Time in which it begins to fall, s."""

SLOPED = math.radians(5.0)
"""Slope from which a vehicle drives straight up, rad."""

LEVEL_WAY = 0.5
"""Level way after which it follows its path again, in wheelbases."""

ALIGN_GAIN = 1.5
"""Steering for each rad between its heading and the ascent."""

ASKEW = math.radians(10.0)
"""Angle to the ascent from which it turns before it lifts an axle, rad."""

ALIGNED = math.radians(4.0)
"""The same at which it has turned, rad."""

UPWARD = math.radians(80.0)
"""Largest angle to the ascent of a vehicle that drives up, rad."""

BACK_SPEED = 0.3
"""Speed backwards while it turns, m/s."""

BACK_WAY = 2.5
"""Longest way back, in wheelbases."""

LONGEST_TURN = 8.0
"""Time within which it has to turn, s."""

NEARLY_UP = math.radians(45.0)
"""Angle to the ascent up to which it drives straight up before it has stalled, rad."""

RESUME_WAY = 4.0
"""Way on all wheels after which it follows its path again, in wheelbases: more than BACK_WAY."""

MOST_LIFTS = 4
"""Number of lifts within a wheelbase of way after which it does not lift any more."""

MOST_TURNS = 3
"""Number of turns within a wheelbase of way after which it does not turn any more."""


class Gait(enum.Enum):
    """Way of moving on."""

    ROLL = "all wheels down"
    FRONT_UP = "front axle lifted"
    REAR_UP = "rear axle lifted"
    LOWER = "axle lowered"
    TURN = "back, to turn straight up"


_LIFTS = {Gait.FRONT_UP: Assist.LIFT_FRONT, Gait.REAR_UP: Assist.LIFT_REAR}
"""Order of a gait."""


class AssistStep(NamedTuple):
    """Answer of thrust assistance to an estimate."""

    speed: float
    """Speed to drive, m/s."""

    assist: Assist | None
    """What the rotors do; None: they stand."""

    steering: float | None
    """Steering in place of that along the path, rad; None: follow the path."""


class Ascent:
    """Direction straight up the slope that a vehicle stands on, by its attitude."""

    def __init__(self, length: float) -> None:
        """`length`: wheelbase, m."""
        self._length = length
        self._heading: float | None = None
        """Heading of the ascent, rad; None: level ground, or another way than up."""

        self._slope = 0.0
        """Sine of the slope at which it was found."""

        self._level_way = 0.0
        """Way since the last slope, m."""

    def update(self, rotation: Floats, stands: bool, way: float) -> None:
        """Take in an attitude, (3, 3), body -> world, `way` metres after the last one.

        `stands`: whether all wheels stand on the ground.
        """
        if not stands:
            return
        slope = math.hypot(rotation[2, 0], rotation[2, 1])
        if slope < math.sin(SLOPED):
            self._level_way += abs(way)
            if self._level_way > LEVEL_WAY * self._length:
                self._heading = None
                self._slope = 0.0
            return
        self._level_way = 0.0

        # wheels that are not all on the slope yet show less of it
        askew = math.atan2(rotation[2, 1], rotation[2, 0])
        if abs(askew) < UPWARD and slope > 0.9 * self._slope:
            self._heading = math.atan2(rotation[1, 0], rotation[0, 0]) + askew
            self._slope = max(self._slope, slope)

    def askew(self, heading: float) -> float | None:
        """Return the angle from a heading, rad, to the ascent; None if there is none."""
        if self._heading is None:
            return None
        return math.remainder(self._heading - heading, 2.0 * math.pi)


class _Track(NamedTuple):
    """Point of the way behind the vehicle."""

    time: float
    """Time, s."""

    way: float
    """Way forward, m."""

    height: float
    """Height, m."""


class ThrustAssist:
    """Gaits of a vehicle that drives with the help of its rotors."""

    def __init__(self, params: VehicleParameters) -> None:
        self._length = params.wheelbase
        self._track: deque[_Track] = deque()
        """Way of the present gait, as far as it matters."""

        self._most_steering = max_virtual_steering(params)
        self._ascent = Ascent(params.wheelbase)
        self._height = 0.0
        """Height since the beginning, m."""

        self._speed = 0.0
        """Speed forward, m/s."""

        self._way = 0.0
        """Way forward since the beginning, m."""

        self._lifts = 0
        """Number of lifts near the same place."""

        self._turns = 0
        """Number of turns near the same place."""

        self._helped_at = -math.inf
        """Way at the first of them, m."""

        self._in_vain = False
        """True if the front axle was the last one, and lifted in vain: a ramp's foot stops it."""

        self._climbs = False
        """True from a stall until the wheels have carried it on, or nothing has helped."""

        self._level_at = 0.0
        """Way at which no slope was known, m; -inf: nothing has helped since."""

        self._assist = Assist.LIFT_FRONT
        """Present or last order to the rotors."""

        self._begin(Gait.ROLL, 0.0)

    def _begin(self, gait: Gait, time: float) -> None:
        """Begin a gait at a time, s."""
        self.gait = gait
        """Present gait."""

        self._since = time
        self._from = self._way
        self._lowest = self._way
        """Least way in this gait, m: a vehicle may slide back before it moves on."""

        self._track.clear()
        self._rests_for = 0.0
        """Time for which the body has not pitched in this gait, s."""

        self._assist = (
            self._assist.lowered if gait is Gait.LOWER else _LIFTS.get(gait, self._assist)
        )

    def update(self, now: Estimate, speed: float, dt: float) -> AssistStep:
        """Return what to do, dt seconds after the last time.

        `speed`: the wanted one, m/s; 0 to stop.
        """
        rotation = rotation_matrix(now.orientation)
        pitch = pitch_of(rotation)
        heading = math.atan2(rotation[1, 0], rotation[0, 0])
        self._move(now, heading, dt)
        stands = self.gait in (Gait.ROLL, Gait.TURN)
        self._ascent.update(rotation, stands, self._speed * dt)
        askew = self._ascent.askew(heading)
        if askew is None:
            self._level_at = self._way
        if speed <= 0.0:
            askew = None

        if self.gait is Gait.ROLL:
            wanted = min(speed, ASSISTED_SPEED)
            if self._stalls(wanted):
                self._help(now.time, pitch, askew)
            elif self._way - self._from > RESUME_WAY * self._length:
                self._climbs = False
            return AssistStep(wanted, None, self._steering(askew))
        if self.gait is Gait.TURN:
            return self._turn(now.time, speed, askew)

        steering = self._steering(askew)
        assist = self._assist
        most = min(speed, assist.max_speed)
        if self.gait is Gait.LOWER:
            begins = now.time - self._since < LEAST_LOWERING
            rests = abs(float(now.rates[1])) < RESTS_BELOW and not begins
            self._rests_for = self._rests_for + dt if rests else 0.0
            if self._rests_for >= REST_TIME or now.time - self._since >= LONGEST_LOWERING:
                self._begin(Gait.ROLL, now.time)
                return AssistStep(most, None, steering)
            return AssistStep(most, assist, steering)

        # an axle is lifted
        moved = self._way - self._from
        spent = now.time - self._since
        self._lowest = min(self._lowest, self._way)
        late = spent > LONGEST_LIFT and self._way - self._lowest < LEAST_SPEED * spent
        if speed == 0.0 or late or self._is_over(moved):
            self._in_vain = late and self.gait is Gait.FRONT_UP
            self._begin(Gait.LOWER, now.time)
        ready = not assist.is_front or pitch > LEAST_FRONT_UP - READY
        return AssistStep(most if ready else 0.0, assist, steering)

    def _turn(self, time: float, speed: float, askew: float | None) -> AssistStep:
        """Return the next step of a vehicle that rolls back to turn straight up."""
        is_done = askew is None or abs(askew) < ALIGNED or speed <= 0.0
        is_long = self._from - self._way > BACK_WAY * self._length
        if is_done or is_long or time - self._since > LONGEST_TURN:
            self._begin(Gait.ROLL, time)
        if askew is None:
            return AssistStep(0.0, None, None)
        ahead = self._steering(askew)
        return AssistStep(-BACK_SPEED, None, None if ahead is None else -ahead)

    def _steering(self, askew: float | None) -> float | None:
        """Return the steering that turns a vehicle which moves forward by an angle, rad.

        None: it follows its path.
        """
        if askew is None:
            return None
        begins = self._way - self._level_at < RESUME_WAY * self._length
        if not (self._climbs or (begins and abs(askew) < NEARLY_UP)):
            return None
        most = self._most_steering
        return min(max(ALIGN_GAIN * askew, -most), most)

    def _move(self, now: Estimate, heading: float, dt: float) -> None:
        """Add the way of the last dt seconds."""
        x, y, z = now.velocity.tolist()
        self._speed = x * math.cos(heading) + y * math.sin(heading)
        self._way += self._speed * dt
        self._height += z * dt
        self._track.append(_Track(now.time, self._way, self._height))

    def _stalls(self, speed: float) -> bool:
        """Return whether a vehicle that is to roll at a speed, m/s, gets no further."""
        track = self._track
        if speed <= 0.0:
            track.clear()
            return False
        while len(track) > 1 and track[1].time <= track[-1].time - STALL_TIME:
            track.popleft()
        spent = track[-1].time - track[0].time
        moved = track[-1].way - track[0].way
        return spent >= STALL_TIME and moved < STALL_SHARE * speed * STALL_TIME

    def _help(self, time: float, pitch: float, askew: float | None) -> None:
        """Turn straight up, or lift the axle that has to come next.

        What was in vain too often near this place is left to the path.
        """
        if self._way - self._helped_at > self._length:
            self._lifts = 0
            self._turns = 0
            self._helped_at = self._way
        if askew is not None and abs(askew) > ASKEW:
            gait = Gait.TURN
            self._turns += 1
        else:
            rear = pitch > NOSE_IS_UP or self._in_vain
            gait = Gait.REAR_UP if rear else Gait.FRONT_UP
            self._lifts += 1

        self._climbs = self._turns <= MOST_TURNS and self._lifts <= MOST_LIFTS
        if self._climbs:
            self._begin(gait, time)
        else:
            self._level_at = -math.inf

    def _is_over(self, moved: float) -> bool:
        """Return whether the lifted axle may come down after a way, m."""
        if self.gait is Gait.FRONT_UP:
            return moved > FRONT_UP_WAY * self._length
        track = self._track
        while len(track) > 1 and self._way - track[1].way > 0.5 * self._length:
            track.popleft()
        run = self._way - track[0].way
        is_level = run > 0.4 * self._length and track[-1].height - track[0].height < STEEP * run
        return moved > REAR_UP_WAY * self._length and is_level


class AssistGuide:
    """Part of a mission guide that lets the rotors help where wheels get no further."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self.begin()

    def begin(self) -> None:
        """Forget everything, because other legs begin."""
        self._gaits: ThrustAssist | None = None

    def leave(self, leg: Leg) -> None:
        """Forget the state of a leg that has ended."""
        self._gaits = None

    def step(self, now: Estimate, speed: float, dt: float) -> AssistStep:
        """Return what to do, dt seconds after the last time.

        `speed`: the wanted one, m/s.
        """
        if self._gaits is None:
            self._gaits = ThrustAssist(self._route.params)
        gait = self._gaits.gait
        step = self._gaits.update(now, speed, dt)
        if self._gaits.gait is not gait:
            self._route.note(now.time, f"thrust assist: {self._gaits.gait.value}")
        return step
