# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Thrust-assisted driving: rotors lift one axle while the wheels of the other one drive.

Theory of operation. `ThrustAssist` holds one `Gait`. A vehicle that rolls and gets no further lifts
the front axle, or the rear one if its nose is up already: before a step, on it, and on a ramp that
is too slippery. Nose down, the thrust also pulls it forward. It lowers the axle once it has moved
on, and rolls again. It only gives orders: the flight controller's `AxleLift` carries them out, and
the body's rest shows here that the axle is down. docs/model, section 10.8.
"""

from __future__ import annotations

import enum
import math
from collections import deque
from typing import NamedTuple

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.axle_lift import (
    ASSISTED_SPEED,
    FRONT_UP_PITCH,
    LONGEST_LOWERING,
    LOWERED,
    PITCH_RATE,
    Assist,
    pitch_of,
)
from rfly_autonomy.estimation.estimate import Estimate
from rfly_common.frames import rotation_matrix

STALL_TIME = 1.5
"""Time within which a rolling vehicle has to move on, s."""

STALL_SHARE = 0.3
"""Share of the wanted way that it has to move in this time."""

NOSE_IS_UP = math.radians(4.0)
"""Pitch beyond which the front axle is already higher, rad."""

READY = math.radians(5.0)
"""Deviation of the pitch up to which a vehicle drives on with the front axle lifted, rad."""

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

RESTS_BELOW = 0.2 * PITCH_RATE
"""Pitch rate below which a body rests that an axle was lowered with, rad/s."""

REST_TIME = LOWERED / PITCH_RATE
"""Time for which it has to rest, s: until the flight controller's pitch is LOWERED beyond."""

MOST_LIFTS = 4
"""Number of lifts within a wheelbase of way after which it does not lift any more."""


class Gait(enum.Enum):
    """Way of moving on."""

    ROLL = "all wheels down"
    FRONT_UP = "front axle lifted"
    REAR_UP = "rear axle lifted"
    LOWER = "axle lowered"


_LIFTS = {Gait.FRONT_UP: Assist.LIFT_FRONT, Gait.REAR_UP: Assist.LIFT_REAR}
"""Order of a gait."""


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

    def update(self, now: Estimate, speed: float, dt: float) -> tuple[float, Assist | None]:
        """Return the speed to drive, m/s, and what the rotors do, dt seconds after the last time.

        `speed`: the wanted one, m/s; 0 to stop.
        """
        rotation = rotation_matrix(now.orientation)
        pitch = pitch_of(rotation)
        self._move(now, math.atan2(rotation[1, 0], rotation[0, 0]))

        if self.gait is Gait.ROLL:
            wanted = min(speed, ASSISTED_SPEED)
            if self._stalls(wanted):
                self._lift(now.time, pitch)
            return wanted, None

        assist = self._assist
        most = min(speed, assist.max_speed)
        if self.gait is Gait.LOWER:
            rests = abs(float(now.rates[1])) < RESTS_BELOW
            self._rests_for = self._rests_for + dt if rests else 0.0
            if self._rests_for >= REST_TIME or now.time - self._since >= LONGEST_LOWERING:
                self._begin(Gait.ROLL, now.time)
                return most, None
            return most, assist

        # an axle is lifted
        moved = self._way - self._from
        spent = now.time - self._since
        self._lowest = min(self._lowest, self._way)
        late = spent > LONGEST_LIFT and self._way - self._lowest < LEAST_SPEED * spent
        if speed == 0.0 or late or self._is_over(moved):
            self._begin(Gait.LOWER, now.time)
        ready = not assist.is_front or abs(pitch - FRONT_UP_PITCH) < READY
        return most if ready else 0.0, assist

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
            self._begin(Gait.REAR_UP if pitch > NOSE_IS_UP else Gait.FRONT_UP, time)

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
