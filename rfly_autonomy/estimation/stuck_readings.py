# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Watch for stuck sensors: a noisy sensor that repeats a reading bit by bit is at fault.

Theory of operation. The watch learns from each quantity how often its readings are quiet: equal to
the one before, or on a straight line with the two before within a part of the declared noise. A run
of n equal readings has at most the probability quietⁿ for a sound sensor. Hence a noisy sensor is
found at fault after a few readings, one with coarse steps after more of them, and one that is quiet
most of the time, as in a simulation without noise, never.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rfly_amphibious.sensors.sensor_parameters import NoisySensor, SensorParameters
from rfly_common.arrays import Floats

STUCK_TIME = 0.3
"""Time of equal readings from which a sensor may be stuck, s."""

IMU_STUCK_TIME = 0.02
"""The same for the IMU, s: a vehicle that flies by a wrong rate soon tumbles."""

IMPROBABLE = math.log(1e6)
"""Logarithm of the odds against a run of equal readings from which it is no accident."""

QUIET = 0.5
"""Share of the declared noise within which a reading is quiet."""

MOST_QUIET = 0.75
"""Share of quiet readings above which equal ones say nothing."""

MEMORY = 20
"""Number of readings over which the share of quiet ones is averaged."""

DEGREES_PER_METRE = 1.0 / 111_320.0
"""Latitude of one metre, degrees; a metre is at least as many degrees of longitude."""


class Repeats:
    """Run of equal readings of one quantity, and whether it is too long for its noise."""

    def __init__(self, scatter: Floats, shortest: float) -> None:
        """Begin to watch.

        `scatter`: standard deviations of the white noise of the components. `shortest`: time from
        which a run may count, s.
        """
        self._limits = (QUIET * scatter).tolist()
        self._shortest = shortest
        self.stuck = False
        """True while the quantity is stuck."""

        self.since = -math.inf
        """Time of the first of the equal readings, s."""

        self._time = -math.inf
        self._last: list[float] = []
        self._change = [0.0] * len(self._limits)
        self._repeats = 0
        self._seen = 0
        self._quiet = 1.0
        """Share of quiet readings."""

    def update(self, time: float, values: list[float]) -> bool:
        """Take in a reading; return whether it belongs to a run that is too long."""
        if time <= self._time:  # late, or received twice
            return self.stuck
        self._time = time
        if values == self._last:
            self._repeats += 1
            if time - self.since >= self._shortest - 1e-9 and self._quiet < MOST_QUIET:
                odds = -self._repeats * math.log(self._quiet)
                self.stuck = self.stuck or odds >= IMPROBABLE
            return self.stuck

        # the habit of a sound sensor
        if not self.stuck:
            self._learn(1.0, self._repeats)
        if self._last:
            change = [new - old for new, old in zip(values, self._last, strict=True)]
            bends = zip(change, self._change, self._limits, strict=True)
            quiet = all(abs(new - old) <= limit for new, old, limit in bends)
            self._learn(1.0 if quiet else 0.0, 1)
            self._change = change

        self._last = values
        self._repeats = 0
        self.since = time
        self.stuck = False
        return False

    def _learn(self, quiet: float, readings: int) -> None:
        """Average over readings that are quiet (1) or not (0)."""
        for _ in range(min(readings, 5 * MEMORY)):
            self._seen = min(self._seen + 1, MEMORY)
            self._quiet += (quiet - self._quiet) / (self._seen + 1)


class StuckSensors:
    """Watch over all noisy sensors of a vehicle, and sieve of their samples."""

    def __init__(self, sensors: SensorParameters) -> None:
        self._quantities: dict[str, list[tuple[str, Repeats]]] = {}
        for kind, fields in _scatter(sensors).items():
            shortest = IMU_STUCK_TIME if kind == "imu" else STUCK_TIME
            self._quantities[kind] = [
                (field, Repeats(scatter, shortest))
                for field, scatter in fields.items()
                if scatter.any()
            ]

    def sound(self, kind: str, readings: Any) -> Any:
        """Return the samples of one kind that are not of a stuck sensor; None if there are none.

        `kind`: field of `SensorSamples`.
        """
        watched = self._quantities[kind]
        if readings is None or not watched:
            return readings
        columns = [getattr(readings, field).tolist() for field, _ in watched]
        keep = [True] * len(readings.time)
        for k, time in enumerate(readings.time.tolist()):
            for (_, repeats), column in zip(watched, columns, strict=True):
                values = column[k] if isinstance(column[k], list) else [column[k]]
                if not math.isinf(values[0]) and repeats.update(time, values):
                    keep[k] = False
        if all(keep):
            return readings
        return type(readings)(*(field[keep] for field in readings)) if any(keep) else None

    def is_stuck(self, kind: str) -> bool:
        """Return whether a sensor repeats itself."""
        return any(repeats.stuck for _, repeats in self._quantities[kind])

    def since(self, kind: str) -> float:
        """Return the time of the last sound reading of a stuck sensor, s."""
        stuck = (repeats.since for _, repeats in self._quantities[kind] if repeats.stuck)
        return min(stuck, default=math.inf)

    @property
    def stuck(self) -> list[str]:
        """Kinds of samples whose sensor is stuck."""
        return [kind for kind in self._quantities if self.is_stuck(kind)]


def _scatter(sensors: SensorParameters) -> Mapping[str, Mapping[str, Floats]]:
    """Return the white noise of each quantity of the noisy sensors, by kind and field of samples.

    It is 0 for one without noise.
    """
    imu = _white(sensors.imu, 9)
    gps = _white(sensors.gps, 6)
    scatter = {
        "imu": {"specific_force": imu[:3], "rates": imu[3:6]},
        "gps": {"geodetic": gps[:3] * (DEGREES_PER_METRE, DEGREES_PER_METRE, 1.0)},
        "magnetometer": {"field": _white(sensors.magnetometer, 3)},
        "barometer": {"pressure": _white(sensors.barometer, 1)},
        "height": {"distance": _white(sensors.height, 1)},
    }
    scatter["gps"]["velocity"] = gps[3:]
    return scatter


def _white(sensor: NoisySensor | None, channels: int) -> Floats:
    """Return the standard deviations (channels,) of a sensor's white noise, 0 without a sensor."""
    if sensor is None:
        return np.zeros(channels)
    noise = sensor.noise
    return np.hypot(noise.white_sigma, np.asarray(noise.white_density) * math.sqrt(sensor.rate))
