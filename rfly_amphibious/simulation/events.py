# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Scheduled events of a run: failing rotors, gusts, silent sensors, faults."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rfly_amphibious.dynamics.model import Controls
from rfly_amphibious.simulation.faults import QUANTITIES, Fault, in_span
from rfly_common.arrays import Floats

SWITCHED_SENSORS = tuple(QUANTITIES)
"""Sensors that can be switched off, by their names in files of sensors.

They are the sensors of a `SensorSuite` without the truth.
"""


@dataclass(frozen=True)
class RotorFails:
    """A rotor that is not driven any more."""

    time: float
    """Time of the failure, s."""
    rotor: int
    """Rotor, from 0."""


@dataclass(frozen=True)
class Gust:
    """A gust that swells and dies away as ½ (1 − cos)."""

    time: float
    """Time of its begin, s."""
    velocity: tuple[float, float, float]
    """Largest velocity, m/s, ENU."""
    duration: float
    """Duration, s."""

    def strength(self, time: float) -> float:
        """Return the share of `velocity` at a time (s), 0 … 1."""
        share = (time - self.time) / self.duration
        if not 0.0 < share < 1.0:
            return 0.0
        return 0.5 * (1.0 - math.cos(math.tau * share))


@dataclass(frozen=True)
class SensorOff:
    """A sensor that is silent for some time."""

    time: float
    """Time of the begin, s."""
    sensor: str
    """One of SWITCHED_SENSORS."""
    duration: float | None = None
    """Duration, s; None for the rest of the run."""

    def off(self, time: float) -> bool:
        """Return whether the sensor is silent at `time` (s)."""
        return in_span(time, self.time, self.duration)


Event = RotorFails | Gust | SensorOff | Fault


def gust_wind(events: Iterable[Event], time: float) -> Floats:
    """Return the wind of all gusts among the events at a time (s), (3,), m/s, ENU."""
    wind = np.zeros(3)
    for event in events:
        if isinstance(event, Gust):
            wind += event.strength(time) * np.array(event.velocity)
    return wind


def without_rotors(controls: Controls, failed: Sequence[int], rotors: int) -> Controls:
    """Return the same controls, but with the rotors `failed` (from 0) not driven."""
    if not failed:
        return controls
    name = "rotor_torque" if controls.torques else "rotor_speed"
    commands = getattr(controls, name)
    values = np.zeros(rotors)
    if commands is not None:
        values += commands
    values[list(failed)] = 0.0
    return replace(controls, **{name: values})
