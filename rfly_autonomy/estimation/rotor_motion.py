# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Specific force and rates by the rotors' speeds, in place of an IMU that is silent or stuck.

Theory of operation. The encoders show the speeds of the rotors, hence their thrust T and moments τ.
In the air the specific force is T/m along the body's z axis, and the rates are the integral of
J⁻¹ τ. While there is an IMU, the angular acceleration that τ lacks, as that by the wind, is learned
from the gyroscope. The filter takes both for readings of an IMU whose biases wander fast, and the
magnetometer and the velocity of the GPS correct them.

A rotor follows its command with a lag, so that a fast change goes on. An encoder whose reading
leaps and stays there lies by that leap, which is taken off until the vehicle is on the ground.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_amphibious.vehicle.rotor_wrench import rotor_matrix
from rfly_common.arrays import Floats
from rfly_common.physics import GRAVITY

AIRBORNE_SHARE = 0.5
"""Thrust as a share of the weight above which a vehicle without load on its wheels flies."""

GROUND_SHARE = 0.05
"""Share of the weight on the wheels above which the ground acts on the vehicle."""

LOAD_TIMEOUT = 0.1
"""Age at which the load of the wheels no longer counts, s."""

LONGEST_GAP = 0.05
"""Longest time between two readings of the encoders that can be bridged, s."""

LEARNING_TIME = 0.5
"""Time constant with which an angular acceleration is learned, s."""

LEAP_SHARE = 0.05
"""Change from one reading to the next, as a share of the largest speed, that is fast."""

GOES_ON_SHARE = 0.6
"""Share of a rotor's next change, by its lag, below which a fast change does not go on."""

LEAP_TIME = 0.1
"""Time between two leaps of an encoder below which it is noisy, and taken as it is, s."""

KEPT = 100
"""Number of readings that are kept for an IMU whose silence shows later."""


class RotorMotion(NamedTuple):
    """Motion by the rotors from the reading before up to this one."""

    time: float
    """Time of the reading, s."""

    duration: float
    """Time since the reading before, s."""

    force: float
    """Specific force along the body's z axis, m/s²."""

    turning: Floats
    """Angular acceleration by the rotors' moments, (3,), rad/s²."""

    unknown: Floats
    """Angular acceleration that these lack, (3,), rad/s²."""

    @property
    def turn(self) -> Floats:
        """Angular acceleration, (3,), rad/s²."""
        return self.turning + self.unknown


class EncoderLeaps:
    """Leaps of encoders, which no rotor makes, taken off their readings."""

    def __init__(self, params: VehicleParameters) -> None:
        self._leap = LEAP_SHARE * params.max_rotor_speed
        self._lag = params.rotor_lag
        self._rotors = params.rotors
        self.reset()

    def reset(self) -> None:
        """Take the next readings as they are."""
        self._speeds = np.full(self._rotors, math.nan)
        """Last believed speeds, (rotors,), rad/s."""

        self._off = np.zeros(self._rotors)
        """Sum of the leaps, (rotors,), rad/s."""

        self._doubt = np.zeros(self._rotors)
        """Fast changes at the last reading, which may go on, (rotors,), rad/s; 0: none."""

        self._since = np.full(self._rotors, math.inf)
        """Times since the last leap, (rotors,), s."""

        self._change = np.zeros(self._rotors)
        """Last believed changes, (rotors,), rad/s."""

        self._noisy = np.zeros(self._rotors, bool)

    def believed(self, speeds: Floats, duration: float) -> Floats:
        """Return speeds without leaps, `duration` seconds after the last ones, (rotors,), rad/s."""
        self._since = self._since + duration
        change = speeds - self._off - self._speeds
        doubt = self._doubt
        next_change = change - doubt

        # a fast change goes on, comes back at once, or was a leap
        doubted = doubt != 0.0
        keep = math.exp(-duration / self._lag)
        goes_on = next_change * doubt >= GOES_ON_SHARE * keep * doubt * doubt
        leaps = doubted & ~goes_on & (np.abs(next_change) <= self._leap)
        self._noisy |= leaps & (self._since < LEAP_TIME)
        self._since = np.where(leaps, 0.0, self._since)
        self._off = np.where(self._noisy, 0.0, self._off + np.where(leaps, doubt, 0.0))

        # one that begins
        is_fast = np.abs(change - keep * self._change) > self._leap
        begins = ~doubted & ~self._noisy & is_fast
        self._doubt = np.where(begins, change, 0.0)
        self._change = np.where(doubted, np.where(goes_on, next_change, 0.0), change)
        self._speeds = np.where(begins, self._speeds, speeds - self._off)
        return self._speeds


class RotorModel:
    """Motion that a vehicle's rotors cause, by readings of their speeds."""

    def __init__(self, params: VehicleParameters) -> None:
        matrix = rotor_matrix(params)
        matrix[1:] = np.linalg.solve(params.total_inertia, matrix[1:])
        matrix[0] /= params.mass
        self._matrix = matrix
        self._weight = params.mass * GRAVITY
        self._encoders = EncoderLeaps(params)
        self._load = 0.0
        self._load_time = -math.inf
        self._motions: deque[RotorMotion] = deque(maxlen=KEPT)
        self.force = 0.0
        """Specific force of the newest thrust, m/s²."""

        self._time = -math.inf
        self._rates: Floats | None = None
        self._slow_rates = np.zeros(3)
        self._slow_turn = np.zeros(3)
        self._unknown = np.zeros(3)
        """Angular acceleration that the rotors' moments lack, (3,), rad/s²."""

        self._unlearned = 0.0
        """Time since rates were compared last, s."""

    @property
    def time(self) -> float:
        """Time of the newest reading in the air, s; -inf without one."""
        return self._motions[-1].time if self._motions else -math.inf

    def sense_loads(self, time: float, load: float) -> None:
        """Take in the load of all wheels, N."""
        self._load = load
        self._load_time = time

    def sense_rates(self, rates: Floats) -> None:
        """Take in rates of a sound gyroscope, (3,), body axes, rad/s."""
        self._rates = rates

    def sense(self, time: float, speeds: Floats) -> None:
        """Take in speeds of the rotors, (rotors,), rad/s."""
        duration = time - self._time
        if duration <= 0.0:
            return
        self._time = time
        if duration > LONGEST_GAP:
            self._encoders.reset()
        speeds = self._encoders.believed(speeds, duration)
        wrench = self._matrix @ (speeds * speeds)
        force = float(wrench[0])
        self.force = force
        on_ground = self._load > GROUND_SHARE * self._weight
        on_ground = on_ground and time - self._load_time < LOAD_TIMEOUT
        if on_ground or not force > AIRBORNE_SHARE * GRAVITY or duration > LONGEST_GAP:
            self._motions.clear()
            self._encoders.reset()
            self._unknown = np.zeros(3)
            self._slow_turn = np.zeros(3)
            if self._rates is not None:
                self._slow_rates = self._rates
                self._unlearned = 0.0
            self._rates = None
            return

        turning = wrench[1:]
        self._learn(turning, duration)
        self._motions.append(RotorMotion(time, duration, force, turning, self._unknown))

    def _learn(self, turn: Floats, duration: float) -> None:
        """Compare an angular acceleration, low-passed, with that of the gyroscope, if there is one.

        The latter is the derivative of low-passed rates, so that the gyroscope's bias does not
        matter. After a gap the low-passed rates begin anew where they fit what was learned before.
        """
        share = duration / (LEARNING_TIME + duration)
        self._slow_turn = self._slow_turn + share * (turn - self._slow_turn)
        self._unlearned += duration
        if self._rates is None:
            return
        memory = LEARNING_TIME + self._unlearned
        if self._unlearned > LONGEST_GAP:
            self._slow_rates = self._rates - memory * (self._unknown + self._slow_turn)
        off = self._rates - self._slow_rates
        self._slow_rates = self._slow_rates + self._unlearned / memory * off
        self._unknown = off / memory - self._slow_turn
        self._unlearned = 0.0
        self._rates = None

    def forget_rates(self, since: float) -> None:
        """Forget what was learned from rates after a time, s: the gyroscope was at fault."""
        self._rates = None
        self._unlearned += LONGEST_GAP
        sound = [motion for motion in self._motions if motion.time <= since]
        self._unknown = sound[-1].unknown if sound else np.zeros(3)
        for k in range(len(sound), len(self._motions)):
            self._motions[k] = self._motions[k]._replace(unknown=self._unknown)

    def since(self, begin: float, end: float) -> Iterator[RotorMotion]:
        """Yield the motions after `begin` up to `end`, s, in their order."""
        return (motion for motion in self._motions if begin < motion.time <= end)
