# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Torques that let the rotors follow their wanted speeds. docs/model, Eq. 10.24 and 10.25.

Rotors that are commanded by torque have no speed controller of their own. This law replaces it: the
air's resistance is fed forward, and the inertia takes the speeds to the wanted ones with the same
lag. An observer bridges the time between two readings of the encoders, and learns how much the
resistance differs from that of hover.
"""

from __future__ import annotations

import math

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Bools, Floats

OBSERVER_TIME = 0.03
"""Time constant of the observer, s."""

LARGEST_CHANGE = 0.5
"""Largest difference of the resistance from that of hover, as a share of it."""

LEARNS_ABOVE = 0.3
"""Speed, as a share of that in hover, above which the resistance is learned."""

PLAUSIBLE_ERROR = 0.08
"""Error of the observed speed, as a share of that in hover, above which a reading is ignored."""


class RotorTorqueLaw:
    """Law from wanted speeds to torques, with its observer of the rotors' speeds."""

    def __init__(self, params: VehicleParameters) -> None:
        self._params = params
        self.reset()

    def reset(self) -> None:
        """Return to the initial state: the rotors stand still."""
        rotors = self._params.rotors
        self.speed = np.zeros(rotors)
        """Observed speeds, (rotors,), rad/s."""

        self.resistance = np.ones(rotors)
        """Observed resistance of the air, (rotors,), relative to that of hover at this speed."""

        self._torque = np.zeros(rotors)
        """Last torques, (rotors,), N m."""

        self._measured: Floats | None = None
        self._measured_time = -math.inf
        self._corrected_time = -math.inf

    def measure(self, time: float, speeds: Floats) -> None:
        """Take measured speeds, (rotors,), rad/s, of a time, s; NaN of a rotor without encoder.

        Readings that repeat all the last ones show nothing: the encoders may have failed.
        """
        if self._measured is None or not np.array_equal(speeds, self._measured):
            self._measured = speeds
            self._measured_time = time

    def torques(self, time: float, wanted: Floats, dt: float) -> Floats:
        """Return the torques, (rotors,), N m, that hold from a time, s, for dt seconds.

        `wanted`: speeds, (rotors,), rad/s. The last torques have held for dt seconds, too; at the
        same time again they stay.
        """
        p = self._params
        if dt <= 0.0:
            return self._torque
        self._observe(time, dt)

        # speeds approach the wanted ones with the lag; the air resists the speed in between
        wanted = np.clip(wanted, 0.0, p.max_rotor_speed)
        change = (1.0 - math.exp(-dt / p.rotor_lag)) * (wanted - self.speed)
        resistance = self._resistance(self.speed + 0.5 * change)
        torque = resistance + p.rotor_inertia * change / dt
        self._torque = np.clip(torque, -p.max_rotor_torque, p.max_rotor_torque)
        return self._torque

    def _resistance(self, speed: Floats) -> Floats:
        """Return the torques with which the air resists speeds, (rotors,), N m."""
        return np.asarray(self.resistance * self._params.torque_coefficient * speed * np.abs(speed))

    def _observe(self, time: float, dt: float) -> None:
        """Bring the observed speeds to the present time, s, dt seconds after the last time."""
        p = self._params
        start = (self._torque - self._resistance(self.speed)) / p.rotor_inertia
        middle = np.maximum(self.speed + 0.5 * dt * start, 0.0)
        rate = (self._torque - self._resistance(middle)) / p.rotor_inertia
        self.speed = np.maximum(self.speed + dt * rate, 0.0)

        # correct it by a new reading
        since = self._measured_time - self._corrected_time
        if self._measured is None or since <= 0.0:
            return
        self._corrected_time = self._measured_time
        if math.isinf(since):
            self.speed = np.nan_to_num(self._measured)
            return
        then = self.speed - (time - self._measured_time) * rate
        self._correct(self._measured - then, since)

    def _correct(self, error: Floats, since: float) -> None:
        """Correct speeds and resistances by errors, (rotors,), rad/s, `since` s after the last."""
        p = self._params
        keep = math.exp(-since / OBSERVER_TIME)
        sound: Bools = np.abs(error) <= PLAUSIBLE_ERROR * p.hover_speed
        error = np.where(sound, error, 0.0)
        self.speed = np.maximum(self.speed + (1.0 - keep**2) * error, 0.0)

        learns = self.speed > LEARNS_ABOVE * p.hover_speed
        torque = p.rotor_inertia * (1.0 - keep) ** 2 / since * error
        per_share = p.torque_coefficient * np.where(learns, self.speed, math.inf) ** 2
        learned = self.resistance - torque / per_share
        self.resistance = np.clip(learned, 1.0 - LARGEST_CHANGE, 1.0 + LARGEST_CHANGE)
