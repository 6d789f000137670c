# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Manoeuvre: signals over time for rotors and wheels, with take-offs and landings.

`identification` finds a vehicle's parameters from the log of a manoeuvre.
"""

from __future__ import annotations

import numpy as np

from rfly_amphibious.scenarios.scenario import Channel, Manoeuvre
from rfly_amphibious.simulation.commands import Mode, RotorCommand, WheelCommand
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.attitude_controller import Mixer
from rfly_autonomy.control.setpoint import Setpoint
from rfly_autonomy.estimation.estimate import Estimate

_WRENCH: tuple[Channel, ...] = ("lift_n", "roll_nm", "pitch_nm", "yaw_nm")
"""Channels of the rotors."""

_WHEELS: tuple[Channel, ...] = ("steering_rad", "drive_nm", "brake_nm")
"""Channels of the wheels."""

HOVER_HEIGHT = 2.0
"""Height of a flight without a signal of its height, m."""

_REQUESTED_IN = {Mode.TAKEOFF: (Mode.DRIVE,), Mode.LAND: (Mode.TAKEOFF, Mode.FLIGHT)}
"""Modes in which each mode is requested."""


class ManoeuvreGuide:
    """Guide of a manoeuvre: setpoints as of `MissionGuide`, and signals to add to the commands."""

    def __init__(self, manoeuvre: Manoeuvre, params: VehicleParameters) -> None:
        self.manoeuvre = manoeuvre
        self._mixer = Mixer(params)
        self._wheels = len(params.wheels)
        self.log: list[tuple[float, str]] = []
        self.done = False
        self.problem = ""
        self._end = max(
            [time for time, _ in manoeuvre.modes] + [signal.end for signal in manoeuvre.signals]
        )
        self._home: tuple[float, float, float] | None = None

    def step(self, now: Estimate, mode: Mode) -> Setpoint:
        """Return the setpoint from now on: the vehicle stands, or hovers above its take-off."""
        if mode is Mode.ABORT:
            self.problem = "the flight was aborted"
        self.done = now.time >= self._end and mode is Mode.DRIVE

        if mode is Mode.DISARMED:
            return Setpoint(now.time, Mode.DRIVE)

        if mode is Mode.DRIVE:
            x, y, z = now.position.tolist()
            self._home = (x, y, z)

        wanted = next((m for time, m in reversed(self.manoeuvre.modes) if time <= now.time), None)
        if wanted is not None and mode not in _REQUESTED_IN[wanted]:
            wanted = None

        if self._home is None or mode is not Mode.FLIGHT:
            return Setpoint(now.time, wanted)

        x, y, z = self._home
        height = self.manoeuvre.value("height_m", now.time)
        if height is None:
            height = HOVER_HEIGHT
        return Setpoint(now.time, wanted, target=(x, y, z + height))

    def superimpose(
        self, time: float, mode: Mode, rotors: RotorCommand, wheels: WheelCommand
    ) -> tuple[RotorCommand, WheelCommand]:
        """Return the commands with the signals.

        They are added to the rotors' commands, and replace the wheels' while the vehicle drives.
        """
        wrench = [self.manoeuvre.value(channel, time) for channel in _WRENCH]
        if any(part is not None for part in wrench) and mode in (Mode.DRIVE, Mode.FLIGHT):
            added = np.array([part or 0.0 for part in wrench])
            speeds = self._mixer.rotor_speeds(self._mixer.wrench(rotors.value) + added)
            rotors = RotorCommand(rotors.time, speeds)

        steering, drive, brake = (self.manoeuvre.value(channel, time) for channel in _WHEELS)
        if mode is Mode.DRIVE and not steering is drive is brake is None:
            drives = np.full(self._wheels, drive or 0.0)
            brakes = np.full(self._wheels, max(brake or 0.0, 0.0))
            wheels = WheelCommand(wheels.time, steering or 0.0, drives, brakes)
        return rotors, wheels
