# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Detection of a driving vehicle that is stuck at its place, or whose steering is stuck."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rfly_amphibious.sensors.samples import JointSamples
from rfly_amphibious.vehicle.ackermann import virtual_steering
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.command_age import CommandAge
from rfly_autonomy.control.speed_controller import steering_lever
from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError

WANTED_SHARE = 2.0
"""Wanted way from which on a vehicle has to leave its place, as a multiple of the distance.

A vehicle that is to stand, or to creep, is not stuck.
"""

MEMORY_SHARE = 0.6
"""Time for which places count as old ones, as a share of the time within which one must be left.

A vehicle that rolls up a slippery ramp and back down again is at no new place.
"""

STEERING_OFF = 0.05
"""Deviation of the steering from its expected angle that is a fault, rad."""

STEERING_OFF_TIME = 0.5
"""Time for which this deviation has to last, s."""

LEAST_TURNING = 0.007
"""Standard deviation of the expected angle that shows how much the steering turns, rad.

This is two counts of an encoder with 2048 counts a turn, and what wind of 2 m/s takes.
"""

TURNING_TIME = 0.3
"""Time over which this deviation is averaged, s, and for which a wrong share has to last."""

LEAST_SHARE = 0.7
"""Share of the expected turn below which the steering turns too little."""

USUAL_ANGLE = 2.0
"""Angle by which the age of commands is judged, rad: changes of 0.004 rad count."""

LONGEST_GAP = 0.1
"""Longest time between two readings that counts, s."""

FAST_ENOUGH = 0.5
"""Speed above which the yaw rate shows how the wheels are steered, m/s."""


@dataclass(frozen=True)
class StuckLimits:
    """Time and distance after which a vehicle counts as stuck."""

    time: float = 10.0
    """Time within which it has to leave its place, s; 0: it is never stuck."""

    distance: float = 1.0
    """Distance from its place that it has to reach, m.

    An estimated place wanders by some decimetres, though the vehicle stands.
    """

    def __post_init__(self) -> None:
        if not (math.isfinite(self.time) and self.time >= 0.0):
            raise ConfigError(f"stuck_time is {self.time} s, expected at least 0")
        if not (math.isfinite(self.distance) and self.distance > 0.0):
            raise ConfigError(f"stuck_distance is {self.distance} m, expected more than 0")


@dataclass
class _Place:
    """Place at which a vehicle was."""

    place: Floats
    """Place, (2,), m."""

    seen: float
    """Time at which it was there last, s."""


class StuckWatch:
    """Watch over a vehicle that drives: `text` is the reason if it is stuck, otherwise empty.

    The speed is no sign of it: wheels that spin mislead the estimate.
    """

    def __init__(self, limits: StuckLimits | None = None) -> None:
        self.limits = limits or StuckLimits()
        self.reset()

    def reset(self) -> None:
        """Forget the place."""
        self._place = np.full(2, math.inf)
        self._earlier: list[_Place] = []
        self._since = math.nan
        """Time at which the vehicle came to this place, s."""

        self._reach = 0.0
        """Largest distance from this place since then, m."""

        self._wanted = 0.0
        """Way that it was to drive since then, m."""

        self._time = math.nan
        self.text = ""

    def update(self, time: float, place: Floats, speed: float) -> str:
        """Return `text` at a time, s, by the place (2,), m, and the wanted speed, m/s."""
        limits = self.limits
        dt = time - self._time
        self._time = time
        self._wanted += abs(speed) * (dt if dt > 0.0 else 0.0)

        # at another place, or to stand
        if speed == 0.0 or self._is_new(time, place):
            self._earlier.append(_Place(self._place, time))
            self._place = np.array(place)
            self._since = time
            self._wanted = 0.0
            self._reach = limits.distance
        self._reach = max(self._reach, math.dist(place, self._place))

        is_long = limits.time > 0.0 and time - self._since >= limits.time
        self.text = ""
        if is_long and self._wanted >= WANTED_SHARE * limits.distance:
            self.text = (
                f"stuck: it was to drive {self._wanted:.0f} m and stayed within "
                f"{self._reach:.2g} m for {time - self._since:.0f} s"
            )
        return self.text

    def _is_new(self, time: float, place: Floats) -> bool:
        """Return whether a place (2,), m, is away from the present one and from earlier ones."""
        distance = self.limits.distance
        if math.dist(place, self._place) <= distance:
            return False
        memory = MEMORY_SHARE * self.limits.time
        self._earlier = [old for old in self._earlier if time - old.seen <= memory]
        back = [old for old in self._earlier if math.dist(place, old.place) <= distance]
        for old in back:
            old.seen = time
        return not back


class _Turning:
    """Shares of the expected turns that a steering makes, around its mean angle.

    A constant deviation, by play or trim, does not matter. Means forget with TURNING_TIME.
    """

    def __init__(self) -> None:
        self._mean: Floats | None = None
        """Means of the expected, the measured and the driven angle, (3,), rad."""

        self._with_expected = np.zeros(3)
        """Their covariances with the expected angle, (3,), rad²."""

        self._measured_variance = 0.0
        """Variance of the measured angle, rad²."""

    def update(self, expected: float, measured: float, driven: float, dt: float) -> None:
        """Take in angles, rad, after dt seconds. `driven`: what its wheels turn it by."""
        angles = np.array((expected, measured, driven))
        if self._mean is None:
            self._mean = angles
        share = -math.expm1(-dt / TURNING_TIME)
        away = angles - self._mean
        self._mean = self._mean + share * away
        keep = 1.0 - share
        self._with_expected = keep * (self._with_expected + share * away[0] * away)
        self._measured_variance = keep * (self._measured_variance + share * float(away[1]) ** 2)

    @property
    def is_little(self) -> bool:
        """True if the steering, and with it the vehicle, turns too little.

        One that is late turns as much, though not at the same time; one that is reversed turns as
        much to the other side.
        """
        variance, measured, driven = self._with_expected.tolist()
        if variance < LEAST_TURNING**2:
            return False
        if measured > 0.0 and self._measured_variance > LEAST_SHARE**2 * variance:
            return False
        turns = abs(driven - measured) < abs(driven - variance)
        return turns and measured < LEAST_SHARE * variance


class SteeringWatch:
    """Watch over the steering: `text` says how it fails to follow its command, else it is empty.

    The angle is expected by the lag and the largest rate of the steering, after commands that may
    come late: a steering that follows some time later is sound. A steering that makes a
    share of its turns is found by the covariance of both angles long before their difference is
    large. Encoders that repeat all their readings show nothing. If the vehicle turns as the
    expected angle makes it turn, rather than as the measured one does, the encoder is wrong and not
    the steering.
    """

    def __init__(self, params: VehicleParameters) -> None:
        self._params = params
        self._lever = steering_lever(params)
        self._command_age = CommandAge(1, USUAL_ANGLE)
        self.reset()

    def reset(self) -> None:
        """Forget what was measured."""
        self._last: JointSamples | None = None
        self._prompt = math.nan
        """Expected angle if commands act at once, rad."""

        self._expected = math.nan
        self._command_age.reset()
        self._off_for = 0.0
        self._turning = _Turning()
        self._little_for = 0.0
        self.text = ""

    def update(self, joints: JointSamples, commanded: float, speed: float, yaw_rate: float) -> None:
        """Take in new readings, with the commanded angle, rad.

        `speed`, `yaw_rate`: of the vehicle, m/s, rad/s. A fault stays until a reset.
        """
        last = self._last
        if last is joints:
            return
        measured = virtual_steering(self._params, joints.steering[-1])
        if math.isnan(measured):
            return
        self._last = joints
        if last is None:
            self._prompt = measured
            return

        # the angle that is due
        period = min(max(float(joints.time[-1] - last.time[-1]), 0.0), LONGEST_GAP)
        p = self._params
        wanted = min(max(commanded, -p.max_steering), p.max_steering)
        turn = (1.0 - math.exp(-period / p.steering_lag)) * (wanted - self._prompt)
        most = period * p.max_steering_rate
        self._prompt += min(max(turn, -most), most)
        self._expected = float(self._command_age.go_on(np.array([self._prompt]), period)[0])

        # encoders that are stuck or wrong
        if np.array_equal(joints.wheel_angle[-1], last.wheel_angle[-1]):
            return
        self._command_age.measure(np.array([measured]), 0.0)
        is_off = abs(measured - self._expected) > STEERING_OFF
        is_little = False
        if abs(speed) > FAST_ENOUGH:
            turns = yaw_rate * self._lever / speed
            due = abs(turns - math.tan(self._expected))
            is_off = is_off and due > abs(turns - math.tan(measured))
            self._turning.update(self._expected, measured, math.atan(turns), period)
            is_little = self._turning.is_little
        else:
            self._turning = _Turning()

        self._off_for = self._off_for + period if is_off else 0.0
        self._little_for = self._little_for + period if is_little else 0.0
        is_off = self._off_for >= STEERING_OFF_TIME - 1e-9
        is_little = self._little_for >= TURNING_TIME - 1e-9
        if (is_off or is_little) and not self.text:
            self.text = f"the steering is at {measured:.2f} rad instead of {self._expected:.2f}"
