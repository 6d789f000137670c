# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Link to the rotors: how late it brings their commands, and the gains that follow."""

from __future__ import annotations

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.attitude_controller import AttitudeController
from rfly_autonomy.control.flight_laws import attitude_frequency
from rfly_autonomy.control.flight_modes import FlightModes
from rfly_common.arrays import Floats

LATE = 0.03
"""Age of the rotor commands beyond the known delay from which the link is at fault, s."""

RESTS_SHARE = 0.01
"""Share of the hover speed up to which all rotors stand still."""


class RotorLink:
    """Link by which an attitude loop commands its rotors."""

    def __init__(self, loop: AttitudeController, delay: float) -> None:
        """`delay`: known one from a sample until its command acts, s."""
        self._loop = loop
        self._delay = delay

    @property
    def warnings(self) -> dict[str, str]:
        """Text about the link, by its name; empty for a sound one."""
        if self._loop.command_age.age > self._delay + LATE:
            return {"link": "the link brings rotor commands late or loses them"}
        return {}

    def frequency(self, params: VehicleParameters) -> float:
        """Return the frequency of the loop in roll and pitch, rad/s.

        It is below the parameters' if motors and delay are too slow.
        """
        delay = max(self._delay, self._loop.command_age.age)
        return attitude_frequency(params.attitude_frequency, params.rotor_lag, delay)

    def soften(self, modes: FlightModes) -> None:
        """Fly as gently as delay and age of the commands need."""
        params = modes.params
        frequency = self.frequency(params)
        self._loop.set_gains(params, frequency)
        modes.position_controller.softness = frequency / params.attitude_frequency

    def measure(self, speeds: Floats, ahead: float, may_grow: bool, modes: FlightModes) -> None:
        """Learn how old the commands are that the rotors obey, and fly by it.

        `speeds`: measured, (rotors,), rad/s. `ahead`: their time after the last step, s.
        `may_grow`: False while a fault may look like a greater age.
        """
        command_age = self._loop.command_age
        before = command_age.age
        command_age.measure(speeds, ahead, may_grow)
        if command_age.age != before:
            self.soften(modes)

    def rest(self, modes: FlightModes) -> None:
        """Forget the age with the flight: rotors that stand still by their commands show none.

        One that has failed may turn on.
        """
        loop = self._loop
        if loop.command_age.age == 0.0:
            return
        speeds = np.maximum(loop.commanded, loop.expected)
        speeds[list(modes.failed_rotors)] = 0.0
        if speeds.max() < RESTS_SHARE * loop.params.hover_speed:
            loop.command_age.reset()
            self.soften(modes)
