"""Scheduled events of a run: failing rotors, gusts, silent sensors."""

from __future__ import annotations

import math
from dataclasses import dataclass

SWITCHED_SENSORS = ("imu", "gps", "magnetometer", "barometer", "encoders", "height", "wheel_loads", "wind")
"""that can be switched off: the sensors of a `SensorSuite` but the truth, by their names in files of sensors"""


@dataclass(frozen=True)
class RotorFails:
    """From `time` (s) on rotor `rotor` (from 0) is driven no more."""

    time: float
    rotor: int


@dataclass(frozen=True)
class Gust:
    """A gust that swells to `velocity` (m/s, ENU) and dies away, ½ (1 − cos), from `time` on for `duration` s."""

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
