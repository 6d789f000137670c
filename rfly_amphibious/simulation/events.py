"""Scheduled events of a run: failing rotors, gusts, silent sensors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rfly_amphibious.dynamics.model import Controls
from rfly_common.arrays import Floats

SWITCHED_SENSORS = (
    "imu",
    "gps",
    "magnetometer",
    "barometer",
    "encoders",
    "height",
    "wheel_loads",
    "wind",
)
"""that can be switched off: the sensors of a `SensorSuite` but the truth, by their names in files
of sensors
"""


@dataclass(frozen=True)
class RotorFails:
    """From `time` (s) on rotor `rotor` (from 0) is driven no more."""

    time: float
    rotor: int


@dataclass(frozen=True)
class Gust:
    """A gust that swells to `velocity` (m/s, ENU) and dies away, ½ (1 − cos), from `time` on for
    `duration` s.
    """

    time: float
    velocity: tuple[float, float, float]
    duration: float

    def strength(self, time: float) -> float:
        """0 … 1."""
        share = (time - self.time) / self.duration
        return 0.5 * (1.0 - math.cos(math.tau * share)) if 0.0 < share < 1.0 else 0.0


@dataclass(frozen=True)
class SensorOff:
    """From `time` (s) on the sensor says nothing: for `duration` s, or None: to the end."""

    time: float
    sensor: str
    """one of SWITCHED_SENSORS"""
    duration: float | None = None

    def off(self, time: float) -> bool:
        """Whether it is silent at `time` (s)."""
        return self.time <= time and (self.duration is None or time < self.time + self.duration)


Event = RotorFails | Gust | SensorOff


def gust_wind(events: Iterable[Event], time: float) -> Floats:
    """(3,) m/s, ENU: of all gusts among the events at a time (s)."""
    wind = np.zeros(3)
    for event in events:
        if isinstance(event, Gust):
            wind += event.strength(time) * np.array(event.velocity)
    return wind


def without_rotors(controls: Controls, failed: Sequence[int], rotors: int) -> Controls:
    """The same controls, but that rotors `failed` (from 0) of a vehicle with so many rotors are not
    driven.
    """
    if not failed:
        return controls
    name = "rotor_torque" if controls.torques else "rotor_speed"
    given = getattr(controls, name)
    values = np.zeros(rotors) + (0.0 if given is None else given)
    values[list(failed)] = 0.0
    return replace(controls, **{name: values})
