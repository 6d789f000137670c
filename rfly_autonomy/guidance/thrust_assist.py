# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Thrust-assisted driving: rotors lift one axle while the wheels of the other one drive.

Theory of operation. `ThrustAssist` holds one `Gait`. A vehicle that rolls and gets no further lifts
the front axle, or the rear one if its nose is up already: before a step, on it, and on a ramp that
is too slippery. Nose down, the thrust also pulls it forward. It lowers the axle once it has moved
on, and rolls again. docs/model, section 10.8.
"""

from __future__ import annotations

import enum
import math
from collections import deque
from typing import NamedTuple

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.setpoint import Assist, Axle
from rfly_autonomy.estimation.estimate import Estimate
from rfly_common.frames import rotation_matrix

STALL_TIME = 1.5
"""Time within which a rolling vehicle has to move on, s."""

STALL_SHARE = 0.3
"""Share of the wanted way that it has to move in this time."""

NOSE_IS_UP = math.radians(4.0)
"""Pitch beyond which the front axle is already higher, rad."""

FRONT_UP_PITCH = math.radians(14.0)
"""Pitch with the front axle lifted, rad, positive nose up."""

REAR_UP_PITCH = math.radians(-8.0)
"""Pitch with the rear axle lifted, rad."""

PITCH_FOR_SPEED = 0.2
"""Pitch, rad, for each m/s above ASSISTED_SPEED with the rear axle lifted.

It keeps the rotors off the foot of a ramp.
"""

READY = math.radians(5.0)
"""Deviation of the pitch up to which a vehicle drives on with the front axle lifted, rad."""

FRONT_UP_THRUST = 0.5
"""Thrust with the front axle lifted, as a share of the weight."""

REAR_UP_THRUST = 0.8
"""Thrust with the rear axle lifted, as a share of the weight."""

THRUST_RATE = 0.8
"""Rate at which the thrust rises, weights/s."""

PITCH_RATE = math.radians(15.0)
"""Rate at which the pitch turns to the wanted one, rad/s."""

INTEGRAL_GAIN = 1.5
"""Gain of the integral of the pitch error, 1/s: the ground turns the body, too."""

MOST_INTEGRAL = math.radians(25.0)
"""Largest integral of the pitch error, rad."""

LOWERED = math.radians(4.0)
"""Deviation of the pitch from a turning target at which the lowered axle stands, rad."""

LONGEST_LOWERING = 4.0
"""Time of lowering an axle, at most, s."""

LONGEST_LIFT = 6.0
"""Time within which a vehicle with an axle lifted has to move on, s."""

LEAST_SPEED = 0.1
"""Mean speed with an axle lifted below which it does not move on, m/s."""

FRONT_UP_WAY = 0.5
"""Way with the front axle lifted, in wheelbases."""

REAR_UP_WAY = 1.5
"""Shortest way with the rear axle lifted, in wheelbases."""

STEEP = 0.1
"""Slope of the last half of a wheelbase above which the rear axle stays lifted."""

MOST_LIFTS = 4
"""Number of lifts within a wheelbase of way after which it does not lift any more."""

LIFTED_SPEED = 0.3
"""Speed with the front axle lifted, m/s."""

ASSISTED_SPEED = 0.6
"""Speed at which a vehicle with thrust assistance rolls, at most, m/s."""

CLIMBING_SPEED = 1.0
"""Speed with the rear axle lifted, m/s."""


class Gait(enum.Enum):
    """Way of moving on."""

    ROLL = "all wheels down"
    FRONT_UP = "front axle lifted"
    REAR_UP = "rear axle lifted"
    LOWER = "axle lowered"


_LIFTED = {Gait.FRONT_UP: Axle.FRONT, Gait.REAR_UP: Axle.REAR}
"""Axle that a gait lifts."""

_THRUST = {Gait.FRONT_UP: FRONT_UP_THRUST, Gait.REAR_UP: REAR_UP_THRUST}
"""Thrust of a gait, as a share of the weight."""


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

        self._last: tuple[float, float] | None = None
        self._way = 0.0
        """Way forward since the beginning, m."""

        self._lifts = 0
        """Number of lifts near the same place."""

        self._lifted_at = -math.inf
        """Way at the first of them, m."""

        self._lifted = Axle.FRONT
        """Axle that is lifted, or was last."""

        self._begin(Gait.ROLL, 0.0, 0.0)

    def _begin(self, gait: Gait, time: float, pitch: float) -> None:
        """Begin a gait at a time, s, with a pitch, rad."""
        self.gait = gait
        """Present gait."""

        self._since = time
        self._from = self._way
        self._lowest = self._way
        """Least way in this gait, m: a vehicle may slide back before it moves on."""

        self._track.clear()
        self._pitch = pitch
        """Pitch that is wanted now, rad."""

        self._lifted = _LIFTED.get(gait, self._lifted)
        if gait is Gait.ROLL:
            self._thrust = 0.0
            self._integral = 0.0

    def update(self, now: Estimate, speed: float, dt: float) -> tuple[float, Assist | None]:
        """Return the speed to drive, m/s, and what the rotors do, dt seconds after the last time.

        `speed`: the wanted one, m/s; 0 to stop.
        """
        rotation = rotation_matrix(now.orientation)
        pitch = math.asin(min(max(float(rotation[2, 0]), -1.0), 1.0))
        self._move(now, math.atan2(rotation[1, 0], rotation[0, 0]))
        moved = self._way - self._from
        spent = now.time - self._since

        if self.gait is Gait.ROLL:
            wanted = min(speed, ASSISTED_SPEED)
            if self._stalls(wanted):
                self._lift(now.time, pitch)
            return wanted, None

        if self.gait is Gait.LOWER:
            direction = 1.0 if self._lifted is Axle.REAR else -1.0
            self._pitch += direction * PITCH_RATE * dt
            stands = direction * (self._pitch - pitch) > LOWERED
            if stands or spent > LONGEST_LOWERING:
                self._begin(Gait.ROLL, now.time, pitch)
                return min(speed, LIFTED_SPEED), None
            return min(speed, LIFTED_SPEED), self._assist()

        # an axle is lifted
        ahead = float(rotation[:, 0] @ now.velocity)
        self._turn_to(self._goal(ahead), pitch, dt)
        assist = self._assist()
        self._lowest = min(self._lowest, self._way)
        late = spent > LONGEST_LIFT and self._way - self._lowest < LEAST_SPEED * spent
        if speed == 0.0 or late or self._is_over(moved):
            self._begin(Gait.LOWER, now.time, pitch)
        if self._lifted is Axle.REAR:
            return min(speed, CLIMBING_SPEED), assist
        ready = abs(pitch - FRONT_UP_PITCH) < READY
        return min(speed, LIFTED_SPEED) if ready else 0.0, assist

    def _move(self, now: Estimate, heading: float) -> None:
        """Add the way since the last estimate."""
        x, y, z = now.position.tolist()
        if self._last is not None:
            ahead = (x - self._last[0]) * math.cos(heading) + (y - self._last[1]) * math.sin(
                heading
            )
            self._way += ahead
        self._last = (x, y)
        self._track.append(_Track(now.time, self._way, z))

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

    def _lift(self, time: float, pitch: float) -> None:
        """Lift the axle that has to come next, unless that was in vain too often."""
        if self._way - self._lifted_at > self._length:
            self._lifts = 0
            self._lifted_at = self._way
        self._lifts += 1
        if self._lifts <= MOST_LIFTS:
            self._begin(Gait.REAR_UP if pitch > NOSE_IS_UP else Gait.FRONT_UP, time, pitch)

    def _goal(self, speed: float) -> float:
        """Return the pitch of the gait at a speed, m/s, rad."""
        if self.gait is Gait.FRONT_UP:
            return FRONT_UP_PITCH
        return min(REAR_UP_PITCH + PITCH_FOR_SPEED * max(speed - ASSISTED_SPEED, 0.0), 0.0)

    def _turn_to(self, goal: float, pitch: float, dt: float) -> None:
        """Raise the thrust and turn the wanted pitch to a goal, from the present one, rad."""
        self._thrust = min(self._thrust + THRUST_RATE * dt, _THRUST[self.gait])
        turn = PITCH_RATE * dt
        self._pitch += min(max(goal - self._pitch, -turn), turn)
        integral = self._integral + INTEGRAL_GAIN * dt * (self._pitch - pitch)
        self._integral = min(max(integral, -MOST_INTEGRAL), MOST_INTEGRAL)

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

    def _assist(self) -> Assist:
        """Return what the rotors do."""
        return Assist(self._pitch + self._integral, self._thrust, self._lifted)
