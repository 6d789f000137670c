# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Dead reckoning by IMU between two estimates, and after the last one."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from rfly_amphibious.sensors.samples import ImuSamples
from rfly_amphibious.sensors.sensor_parameters import Imu
from rfly_autonomy.estimation.estimate import Estimate, EstimatedMotion
from rfly_common.arrays import Floats
from rfly_common.frames import euler_to_quat, rotation_matrix
from rfly_common.physics import GRAVITY

KEPT = 1000
"""Number of samples that are kept for late estimates."""
SAME_TIME = 1e-6
"""Stamps nearer than this are of one instant, s."""
LONGEST_STEP = 0.05
"""Longest time between two samples for which the motion in between is known, s."""


class DeadReckoning:
    """The newest estimate, carried on by later samples of the IMU.

    The gyroscope's bias is its reading at the estimate's time less the estimated rates.
    """

    def __init__(self, imu: Imu) -> None:
        self._mounting = rotation_matrix(euler_to_quat(imu.rotation))
        self._level = bool((self._mounting == np.eye(3)).all())
        self._samples: deque[tuple[float, Floats, Floats]] = deque(maxlen=KEPT)
        self.estimate: Estimate | None = None
        """Newest estimate."""
        self.time = -math.inf
        """Time of `motion`, s: that of the newest sample or estimate."""

        self._motion: EstimatedMotion | None = None
        self._bias = np.zeros(3)
        self._done = -math.inf

    @property
    def motion(self) -> EstimatedMotion:
        """Motion at `time`, once there has been an estimate."""
        assert self._motion is not None
        if self._done < self.time:
            for time, force, rates in self._samples:
                if time > self._done + SAME_TIME:
                    self._step(time, force, rates)
        return self._motion

    @property
    def lift(self) -> float:
        """Specific force along the body's z axis by the newest sample, m/s²; NaN without one."""
        return float(self._samples[-1][1][2]) if self._samples else math.nan

    def sense(self, samples: ImuSamples) -> None:
        """Take in samples in the order of their times, and drop those older than the newest."""
        for k, time in enumerate(samples.time.tolist()):
            if self._samples and time <= self._samples[-1][0]:
                continue
            force = samples.specific_force[k]
            rates = samples.rates[k]
            if not self._level:
                force = self._mounting @ force
                rates = self._mounting @ rates
            self._samples.append((time, force, rates))
            self.time = max(self.time, time)

    def correct(self, estimate: Estimate) -> None:
        """Take in a newer estimate."""
        self.estimate = estimate

        # the gyroscope's bias
        samples = self._samples
        while samples and samples[0][0] < estimate.time - SAME_TIME:
            samples.popleft()
        if samples and samples[0][0] <= estimate.time + SAME_TIME:
            self._bias = samples[0][2] - estimate.rates

        rotation = rotation_matrix(estimate.orientation)
        self._motion = EstimatedMotion(
            np.array(estimate.position), np.array(estimate.velocity), rotation, estimate.rates
        )
        self._done = estimate.time
        self.time = max(estimate.time, samples[-1][0]) if samples else estimate.time

    def _step(self, time: float, force: Floats, rates: Floats) -> None:
        assert self._motion is not None
        now = self._motion
        dt = min(time - self._done, LONGEST_STEP)
        turning = rates - self._bias
        rotation = now.rotation @ _rotation(0.5 * dt * (turning + now.rates))
        acceleration = rotation @ force
        acceleration[2] -= GRAVITY
        velocity = now.velocity + dt * acceleration
        position = now.position + 0.5 * dt * (velocity + now.velocity)
        self._motion = EstimatedMotion(position, velocity, rotation, turning)
        self._done = time


def _rotation(vector: Floats) -> Floats:
    """Return the rotation (3, 3) of a small rotation vector (3,), rad."""
    x, y, z = (0.5 * vector).tolist()
    return rotation_matrix((x, y, z, 1.0))  # tan of half a small angle
