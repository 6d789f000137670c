# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""ReadingTimes: which sensors are silent or late, by the times of their readings."""

from __future__ import annotations

import math

from rfly_amphibious.sensors.sensor_parameters import Gps, SensorParameters

SILENT_TIME = 1.0
"""Time without a reading after which a sensor is silent, s."""
SILENT_PERIODS = 3.0
"""The same in periods of a slow sensor."""
LATE = 0.03
"""Age of a new reading, beyond the sensor's latency, from which it is late, s."""
LATE_TIME = 0.5
"""Time for which all readings of a sensor have to be late, s."""


class ReadingTimes:
    """The times of the sensors' newest readings."""

    def __init__(self, sensors: SensorParameters) -> None:
        self._heard: dict[str, float] = {}
        """Time of each sensor's last reading, s."""

        self._newest = -math.inf
        """Time of the newest of them, s."""

        self._late_since: dict[str, float] = {}
        """Time since when each sensor's readings come late, s."""

        self._age: dict[str, float] = {}
        """Age of each sensor's last reading when it came, s."""

        self._silent_after = {
            part: max(SILENT_TIME, SILENT_PERIODS / sensor.rate)
            for part, sensor in sensors.sensors().items()
        }
        """Time without a reading after which each sensor is silent, s."""

        self._late_after = {
            part: LATE + (sensor.latency if isinstance(sensor, Gps) else 0.0)
            for part, sensor in sensors.sensors().items()
        }
        """Age of a new reading from which each sensor is late, s."""

    def hear(self, part: str, time: float) -> None:
        """Note the time, s, of a sensor's newest reading."""
        if part not in self._silent_after:
            return
        stamp = max(self._heard.get(part, -math.inf), time)
        self._heard[part] = stamp

        # late against the others; one alone that is ahead does not count
        if stamp >= self._newest:
            self._newest = stamp
            self._late_since.pop(part, None)
        elif len(self._heard) > 1:
            now = sorted(self._heard.values())[-2]
            self._age[part] = now - stamp
            if now - stamp <= self._late_after[part]:
                self._late_since.pop(part, None)
            else:
                self._late_since.setdefault(part, now)

    def silent(self, now: float) -> list[str]:
        """Return the sensors that were heard and are silent now, s."""
        return [
            part for part, heard in self._heard.items() if now - heard > self._silent_after[part]
        ]

    def is_late(self, part: str) -> bool:
        """Return whether the readings of a sensor have come late for a while."""
        since = self._late_since.get(part, math.inf)
        return self._newest - since > LATE_TIME

    def late(self, now: float) -> dict[str, float]:
        """Return the ages, s, of the sensors whose readings have come late for a while."""
        return {
            part: self._age[part]
            for part, since in self._late_since.items()
            if now - since > LATE_TIME
        }
