# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""ReadingTimes: which sensors are silent, late, ahead or lose readings, by the times of these."""

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
"""Time for which all readings of a sensor have to be late, or ahead, s."""
AHEAD = 0.05
"""Lead of a sensor before two others, which agree as closely, from which it is ahead, s."""
LEAP = 1.0
"""Step of a sensor's time, either way, that shows another clock, s: readings overtake by less."""

SHARE_TIME = 1.0
"""Time over which the share of the due readings that come is averaged, s."""
SHARE_PERIODS = 5.0
"""The same in periods of a slow sensor: a single reading that is lost is not many."""
FEW_SHARE = 0.7
"""Share of the due readings below which a sensor loses many."""
MOST_SHARE = 1.2
"""Largest such share: readings that come in another order come in bunches."""
SOUND_SHARE = 0.9
"""The same above which it is sound again."""


class ReadingTimes:
    """The times of the sensors' newest readings."""

    def __init__(self, sensors: SensorParameters) -> None:
        self._heard: dict[str, float] = {}
        """Time of each sensor's last reading, s."""

        self._newest = -math.inf
        """Time of the newest of them, s."""

        self._now = -math.inf
        """Time of the second newest, which one that is ahead of all others does not change, s."""

        self._leading = ""
        """Sensor that is ahead of all others; empty: none."""

        self._leading_since = math.inf
        """Time since when it is, s."""

        self._lead = 0.0
        """How far it is ahead at most, s."""

        self._late_since: dict[str, float] = {}
        """Time since when each sensor's readings come late, s."""

        self._age: dict[str, float] = {}
        """Age of each sensor's last reading when it came, s."""

        self._rates = {part: sensor.rate for part, sensor in sensors.sensors().items()}
        self._share_times = {
            part: max(SHARE_TIME, SHARE_PERIODS / rate) for part, rate in self._rates.items()
        }
        """Time over which each sensor's share is averaged, s."""

        self._counts = dict.fromkeys(self._rates, 0)
        """Readings of each sensor since its newest time."""

        self._shares = dict.fromkeys(self._rates, 1.0)
        """Share of each sensor's due readings that come."""

        self.lossy: set[str] = set()
        """Sensors that lose many readings."""

        self._silent_after = {
            part: max(SILENT_TIME, SILENT_PERIODS / sensor.rate)
            for part, sensor in sensors.sensors().items()
        }
        """Time without a reading after which each sensor is silent, s."""

        latency = {
            part: sensor.latency if isinstance(sensor, Gps) else 0.0
            for part, sensor in sensors.sensors().items()
        }
        self._oldest = {part: latency[part] + 1.0 / rate for part, rate in self._rates.items()}
        """Age of each sensor's last reading right before the next one, s."""

        self._late_after = {part: LATE + latency[part] for part in latency}
        """Age of a new reading from which each sensor is late, s."""

    def hear(self, part: str, time: float, count: int = 1) -> None:
        """Note the time, s, of a sensor's newest reading, and the count of those that came."""
        if part not in self._silent_after:
            return
        before = self._heard.get(part, -math.inf)
        if before - time > LEAP:
            self._heard[part] = before = time
            self._newest = max(self._heard.values())
        stamp = max(before, time)
        self._average_share(part, stamp - before, count)
        self._heard[part] = stamp

        # late against the others; one alone that is ahead does not count
        if stamp >= self._newest:
            self._newest = stamp
            self._late_since.pop(part, None)
        elif len(self._heard) > 1:
            now = sorted(self._heard.values())[-2]
            self._now = now
            self._age[part] = now - stamp
            if now - stamp <= self._late_after[part]:
                self._late_since.pop(part, None)
            else:
                self._late_since.setdefault(part, now)
        if self._leading or (part == "imu" and self._newest - stamp > AHEAD):
            self._judge_lead()

    def _judge_lead(self) -> None:
        """Find out whether the newest sensor is ahead of all others."""
        newest = max(self._heard, key=self._heard.__getitem__)
        *_, third, now, stamp = (-math.inf, *sorted(self._heard.values()))
        if stamp - now <= AHEAD or (newest != self._leading and self._is_prompt(newest)):
            self._leading = ""
            return

        # without the IMU the others may agree no longer
        if now - third > AHEAD:
            self._leading = self._leading if newest == self._leading else ""
            return
        if newest != self._leading:
            self._leading = newest
            self._leading_since = now
            self._lead = 0.0
        self._lead = max(self._lead, stamp - now)

    def _is_prompt(self, part: str) -> bool:
        """Return whether a slow sensor's last reading may be as old as it seems by this one's."""
        stamp = self._heard[part]
        return any(
            0.0 < stamp - heard <= self._oldest[each] + AHEAD and self._oldest[each] > AHEAD
            for each, heard in self._heard.items()
            if each != part
        )

    def _average_share(self, part: str, gap: float, count: int) -> None:
        """Average the share of a sensor's readings that come, `gap` seconds after the last ones."""
        self._counts[part] += count
        if gap <= 0.0:
            return
        share = self._shares[part]
        if gap <= self._silent_after[part]:
            came = self._counts[part] / (gap * self._rates[part])
            new = -math.expm1(-gap / self._share_times[part])
            share = min(share + new * (came - share), MOST_SHARE)
        self._shares[part] = share
        self._counts[part] = 0
        if share < FEW_SHARE:
            self.lossy.add(part)
        elif share > SOUND_SHARE:
            self.lossy.discard(part)

    def silent(self, now: float) -> list[str]:
        """Return the sensors that were heard and are silent now, s."""
        return [
            part for part, heard in self._heard.items() if now - heard > self._silent_after[part]
        ]

    def is_late(self, part: str) -> bool:
        """Return whether the readings of a sensor have come late for a while."""
        since = self._late_since.get(part, math.inf)
        return self._now - since > LATE_TIME

    def leads(self, part: str) -> bool:
        """Return whether a sensor is ahead of all others, so that its times show no silence."""
        return part == self._leading

    def is_confirmed(self, time: float) -> bool:
        """Return whether another sensor was heard at nearly this time, s, or later."""
        return sum(heard >= time - LEAP for heard in self._heard.values()) > 1

    @property
    def ahead(self) -> dict[str, float]:
        """Lead, s, of the sensor whose readings have been ahead for a while."""
        if self._leading and self._now - self._leading_since > LATE_TIME:
            return {self._leading: self._lead}
        return {}

    def late(self, now: float) -> dict[str, float]:
        """Return the ages, s, of the sensors whose readings have come late for a while."""
        return {
            part: self._age[part]
            for part, since in self._late_since.items()
            if now - since > LATE_TIME
        }
