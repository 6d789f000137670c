# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""ImuNoise: how much the filter trusts an IMU that is far noisier than it should be."""

from __future__ import annotations

import math

from rfly_autonomy.estimation.filter_records import Constants
from rfly_autonomy.estimation.stuck_readings import StuckSensors

NOISIER = 1.5
"""Growth of the noise from which it counts anew: it is measured by some twenty readings."""


class ImuNoise:
    """Noise of force and rates of an IMU that is far too noisy; 0 while it is as it should be.

    The filter takes a sound IMU for nearly exact. With the declared noise it would be sure of a
    velocity that walks away, and reject the sensors that know better.
    """

    def __init__(self, rate: float) -> None:
        """Begin with a sound IMU of so many samples a second."""
        self.rate = rate
        self._force = 0.0
        self._rates = 0.0

    def update(self, sensors: StuckSensors, is_shaken: bool) -> bool:
        """Take over the noise that the watch has measured; return whether it counts anew.

        `is_shaken`: whether rough ground may be the cause, which counts until noise was found.
        """
        force = sensors.noise("imu", "specific_force")
        rates = sensors.noise("imu", "rates")
        known = self._force + self._rates > 0.0
        grows = force > NOISIER * self._force or rates > NOISIER * self._rates
        ends = (force == 0.0 < self._force) or (rates == 0.0 < self._rates)
        if not ends and (not grows or (is_shaken and not known)):
            return False
        self._force = force
        self._rates = rates
        return True

    def constants(self, usual: Constants) -> Constants:
        """Return the filter's constants with this noise. White noise integrates to a walk."""
        root_of_rate = math.sqrt(self.rate)
        return usual._replace(
            force_noise=max(usual.force_noise, self._force / root_of_rate),
            gyro_noise=max(usual.gyro_noise, self._rates / root_of_rate),
        )
