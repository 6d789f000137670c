"""Manoeuvre: signals over time for rotors, steering, motors and brakes, and when to take off and
land.

What they excite shows in a log, from which `identification` finds a vehicle's parameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from rfly_amphibious.control.attitude_controller import Mixer
from rfly_amphibious.control.commands import RotorCommand, Setpoint, WheelCommand
from rfly_amphibious.control.modes import Mode
from rfly_amphibious.estimation.estimate import Estimate
from rfly_amphibious.vehicle.parameters import VehicleParameters

Channel = Literal[
    "lift_n", "roll_nm", "pitch_nm", "yaw_nm", "steering_rad", "drive_nm", "brake_nm", "height_m"
]
"""thrust on the ground, and moments, of the rotors; steering of the virtual wheel, torques of each
wheel while it drives; height of a flight above the place of the take-off
"""
_WRENCH: tuple[Channel, ...] = ("lift_n", "roll_nm", "pitch_nm", "yaw_nm")
_WHEELS: tuple[Channel, ...] = ("steering_rad", "drive_nm", "brake_nm")
_WORDS = {Mode.TAKEOFF: (Mode.DRIVE,), Mode.LAND: (Mode.TAKEOFF, Mode.FLIGHT)}
"""in which modes which mode is to be asked for"""


class Signal(NamedTuple):
    """value + amplitude · sin, at a frequency that goes evenly from the first to the second, from
    begin to end.
    """

    channel: Channel
    begin: float
    """s"""
    end: float
    value: float = 0.0
    amplitude: float = 0.0
    frequency: tuple[float, float] = (0.0, 0.0)
    """Hz"""

    def at(self, time: float) -> float:
        """In the channel's unit, at a time (s) within it."""
        t = time - self.begin
        (first, last) = self.frequency
        cycles = first * t + 0.5 * (last - first) * t * t / (self.end - self.begin)
        return self.value + self.amplitude * math.sin(math.tau * cycles)


@dataclass(frozen=True)
class Manoeuvre:
    """Signals, and modes with the time (s) from which on they are asked for. Signals of one channel
    add up.
    """

    signals: tuple[Signal, ...]
    modes: tuple[tuple[float, Mode], ...] = ()

    def value(self, channel: Channel, time: float) -> float | None:
        """Of all signals of the channel at a time (s); None: there is none."""
        found = [
            s.at(time) for s in self.signals if s.channel == channel and s.begin <= time < s.end
        ]
        return sum(found) if found else None


class ManoeuvreGuide:
    """Carries out a manoeuvre in place of a mission: setpoints as `MissionGuide`, and what comes on
    top of commands.
    """

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
        """The setpoint from now on: it stands, or hovers above the place of its take-off."""
        if mode is Mode.ABORT:
            self.problem = "the flight was aborted"
        self.done = now.time >= self._end and mode is Mode.DRIVE
        if mode is Mode.DISARMED:
            return Setpoint(now.time, Mode.DRIVE)
        if mode is Mode.DRIVE:
            x, y, z = now.position.tolist()
            self._home = (x, y, z)
        wanted = next((m for time, m in reversed(self.manoeuvre.modes) if time <= now.time), None)
        if wanted is not None and mode not in _WORDS[wanted]:
            wanted = None
        if self._home is None or mode is not Mode.FLIGHT:
            return Setpoint(now.time, wanted)
        x, y, z = self._home
        height = self.manoeuvre.value("height_m", now.time)
        return Setpoint(now.time, wanted, target=(x, y, z + (2.0 if height is None else height)))

    def superimpose(
        self, time: float, mode: Mode, rotors: RotorCommand, wheels: WheelCommand
    ) -> tuple[RotorCommand, WheelCommand]:
        """The commands with the signals: on top of the rotors', in place of the wheels' where it
        drives.
        """
        wrench = [self.manoeuvre.value(channel, time) for channel in _WRENCH]
        if any(part is not None for part in wrench) and mode in (Mode.DRIVE, Mode.FLIGHT):
            added = np.array([part or 0.0 for part in wrench])
            speeds = self._mixer.rotor_speeds(self._mixer.wrench(rotors.value) + added)
            rotors = RotorCommand(rotors.time, speeds)
        steering, drive, brake = (self.manoeuvre.value(channel, time) for channel in _WHEELS)
        if mode is Mode.DRIVE and not steering is drive is brake is None:
            torques = (
                np.full(self._wheels, drive or 0.0),
                np.full(self._wheels, max(brake or 0.0, 0.0)),
            )
            wheels = WheelCommand(wheels.time, steering or 0.0, *torques)
        return rotors, wheels
