# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Watch for stuck sensors, which repeat a reading bit by bit, and for far too noisy ones.

Theory of operation. The watch learns from each quantity how often its readings are quiet: equal to
the one before, or on a straight line with the two before within a part of the declared noise. A run
of n equal readings has at most the probability quietⁿ for a sound sensor. Hence a noisy sensor is
found at fault after a few readings, one with coarse steps after more of them, and one that is quiet
most of the time, as in a simulation without noise, never.

The deviation of a reading from the straight line through the two before, a second difference,
scatters by √6 of the noise, and the motion adds little to it. A sensor most of whose readings are
loud, many times that away, is too noisy. A step, such as a roof's edge below a height sensor, is
loud for three readings only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rfly_amphibious.sensors.sensor_parameters import Gps, NoisySensor, SensorParameters
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

LEAST_WEIGHT = 1.0 / (MEMORY + 1)
"""Weight of a reading in that share, once there have been that many."""

LOUD = 4.0
"""Deviation from a line in its standard deviations from which a reading is loud."""

FROM_LINE = math.sqrt(6.0)
"""Standard deviation of the second difference of three readings with unit noise."""

NOISY_SHARE = 0.5
"""Share of loud readings above which a sensor is too noisy."""

CALM_SHARE = 0.1
"""The same below which it is sound again."""

NOISY_TIME = 0.3
"""Time above that share after which it is named, s."""

_MOTION = {"specific_force": 3.0, "rates": 0.1, "distance": 0.1}
"""Deviations from a line that rough ground causes, in units of the quantity; others: 0."""

MANOEUVRE = 4.0
"""Acceleration, m/s², and its change, m/s³, of a vehicle: a slow GPS sees large deviations."""

DEGREES_PER_METRE = 1.0 / 111_320.0
"""Latitude of one metre, degrees."""

METRE = np.array((DEGREES_PER_METRE, DEGREES_PER_METRE, 1.0))
"""One metre as latitude, longitude (degrees, both as long as the former) and altitude."""


class Repeats:
    """Run of equal readings of one quantity, and whether it is too long for its noise."""

    def __init__(self, scatter: Floats, shortest: float, motion: float | Floats = 0.0) -> None:
        """Begin to watch.

        `scatter`: standard deviations of the white noise of the components. `shortest`: time from
        which a run may count, s. `motion`: deviation from a line that is no noise.
        """
        quiet = (QUIET * scatter).tolist()
        loud = (LOUD * FROM_LINE * scatter + motion).tolist()
        self._limits = list(zip(quiet, loud, strict=True))
        """Deviations from a line of a reading that is not quiet, and of one that is loud."""

        self._loud = 0.0
        """Share of loud readings."""

        self._loud_since = math.inf
        """Time since when it is above NOISY_SHARE, s."""

        self.noisy = False
        """True while the quantity is far noisier than it should be."""

        self._squares = [0.0] * len(scatter)
        """Squares of the components' deviations from a line, averaged while there are loud ones."""

        self._shortest = shortest
        self.stuck = False
        """True while the quantity is stuck."""

        self.since = -math.inf
        """Time of the first of the equal readings, s."""

        self.sound_at = -math.inf
        """Time of the reading before that one, s: a sensor may be wrong from the first one on."""

        self._time = -math.inf
        self._last: list[float] = []
        self._older: list[float] = []
        self._repeats = 0
        self._weight = 0.5
        """Weight of the next reading in the share of quiet ones."""

        self._quiet = 1.0
        """Share of quiet readings."""

    def update(self, time: float, values: list[float]) -> bool:
        """Take in a reading; return whether it belongs to a run that is too long."""
        if time <= self._time:  # late, or received twice
            return self.stuck
        before = self._time
        self._time = time
        last = self._last
        if values == last:
            self._repeats += 1
            if time - self.since >= self._shortest - 1e-9 and self._quiet < MOST_QUIET:
                odds = -self._repeats * math.log(self._quiet)
                self.stuck = self.stuck or odds >= IMPROBABLE
            return self.stuck

        # the habit of a sound sensor
        if self._repeats:
            if not self.stuck:
                for _ in range(min(self._repeats, 5 * MEMORY)):
                    self._learn(1.0)
            self._older = last
            self._repeats = 0
            self.stuck = False
        quiet = 1.0
        loud = 0.0
        for new, old, older, (limit, loud_limit) in zip(
            values, last, self._older, self._limits, strict=False
        ):
            deviation = abs(new - 2.0 * old + older)
            if not deviation <= limit:
                quiet = 0.0
            if deviation > loud_limit:
                loud = 1.0
                break
        self._learn(quiet)
        if loud or self._loud_since < math.inf:
            self._measure_noise(values)
            self._judge_noise(time, loud)
        else:
            self._loud *= 1.0 - LEAST_WEIGHT

        self._older = last
        self._last = values
        self.since = time
        self.sound_at = before
        return False

    def _measure_noise(self, values: list[float]) -> None:
        """Average the squares of the deviations from a line."""
        triples = zip(values, self._last, self._older, strict=False)
        for k, (new, old, older) in enumerate(triples):
            deviation = new - 2.0 * old + older
            if math.isfinite(deviation):
                self._squares[k] += LEAST_WEIGHT * (deviation * deviation - self._squares[k])

    @property
    def scatter(self) -> float:
        """Standard deviation of the noise of the noisiest component, if it is far too noisy."""
        return math.sqrt(max(self._squares)) / FROM_LINE

    def _judge_noise(self, time: float, loud: float) -> None:
        """Average over a reading that is loud (1) or not (0), and judge the noise."""
        self._loud += LEAST_WEIGHT * (loud - self._loud)
        if self._loud > NOISY_SHARE:
            self._loud_since = min(self._loud_since, time)
            self.noisy = self.noisy or time - self._loud_since >= NOISY_TIME - 1e-9
        elif not self.noisy or self._loud < CALM_SHARE:
            self._loud_since = math.inf
            self.noisy = False

    def _learn(self, quiet: float) -> None:
        """Average over a reading that is quiet (1) or not (0)."""
        weight = self._weight
        self._quiet += weight * (quiet - self._quiet)
        if weight > LEAST_WEIGHT:
            self._weight = weight / (1.0 + weight)


class StuckSensors:
    """Watch over all noisy sensors of a vehicle, and sieve of their samples."""

    def __init__(self, sensors: SensorParameters) -> None:
        self._quantities: dict[str, list[tuple[str, bool, Repeats]]] = {}
        """Fields of each kind of samples, whether they are single numbers, and their runs."""

        motion = _MOTION | _gps_motion(sensors.gps)
        for kind, fields in _scatter(sensors).items():
            shortest = IMU_STUCK_TIME if kind == "imu" else STUCK_TIME
            self._quantities[kind] = [
                (
                    field,
                    len(scatter) == 1,
                    Repeats(scatter, shortest, motion.get(field, 0.0)),
                )
                for field, scatter in fields.items()
                if scatter.any()
            ]
        self.stuck: set[str] = set()
        """Kinds of samples whose sensor is stuck."""
        self._shrink = 0.0
        """Length of a degree of longitude in those of latitude; 0 before the first fix."""

    def sound(self, kind: str, readings: Any) -> Any:
        """Return the samples of one kind that are not of a stuck sensor; None if there are none.

        A GPS that repeats its velocity alone did not measure it. `kind`: field of `SensorSamples`.
        """
        if readings is None:
            return None
        quantities = self._quantities[kind]
        times = readings.time.tolist()
        keep = [True] * len(times)
        has_moved = [False] * len(times)
        unmeasured = [False] * len(times)
        for field, is_number, repeats in quantities:
            rows = getattr(readings, field).tolist()
            if field == "geodetic":
                rows = self._level(rows)
            for k, time in enumerate(times):
                values = [rows[k]] if is_number else rows[k]
                stuck = not math.isinf(values[0]) and repeats.update(time, values)
                if field == "geodetic":
                    has_moved[k] = repeats.since == time
                unmeasured[k] = stuck and field == "velocity" and has_moved[k]
                if stuck and not unmeasured[k]:
                    keep[k] = False

        if any(unmeasured):
            velocity = readings.velocity.copy()
            velocity[unmeasured] = math.nan
            readings = readings._replace(velocity=velocity)
        elif kind not in self.stuck and all(keep):
            return readings
        if any(repeats.stuck for *_, repeats in quantities):
            self.stuck.add(kind)
        else:
            self.stuck.discard(kind)
        return type(readings)(*(field[keep] for field in readings)) if any(keep) else None

    def _level(self, fixes: list[list[float]]) -> list[tuple[float, float, float]]:
        """Return fixes whose longitudes are as long as latitudes are where the first one was."""
        if self._shrink == 0.0 and math.isfinite(fixes[0][0]):
            self._shrink = math.cos(math.radians(fixes[0][0]))
        return [(north, east * self._shrink, up) for north, east, up in fixes]

    @property
    def noisy(self) -> set[str]:
        """Kinds of samples whose sensor is far noisier than it should be."""
        return {
            kind
            for kind, quantities in self._quantities.items()
            if any(repeats.noisy for *_, repeats in quantities)
        }

    def noise(self, kind: str, field: str) -> float:
        """Return the standard deviation of a quantity's noise; 0 if it is as it should be."""
        for name, _, repeats in self._quantities[kind]:
            if name == field and repeats.noisy:
                return repeats.scatter
        return 0.0

    def since(self, kind: str) -> float:
        """Return the time of the last sound reading of a stuck sensor, s."""
        return min(repeats.sound_at for *_, repeats in self._quantities[kind] if repeats.stuck)


def _scatter(sensors: SensorParameters) -> Mapping[str, Mapping[str, Floats]]:
    """Return the white noise of each quantity of the noisy sensors, by kind and field of samples.

    It is 0 for one without noise.
    """
    imu = _white(sensors.imu, 9)
    gps = _white(sensors.gps, 6)
    scatter = {
        "imu": {"specific_force": imu[:3], "rates": imu[3:6]},
        "gps": {"geodetic": gps[:3] * METRE},
        "magnetometer": {"field": _white(sensors.magnetometer, 3)},
        "barometer": {"pressure": _white(sensors.barometer, 1)},
        "height": {"distance": _white(sensors.height, 1)},
    }
    scatter["gps"]["velocity"] = gps[3:]
    return scatter


def _gps_motion(gps: Gps | None) -> dict[str, Floats]:
    """Return the deviations from a line that manoeuvres cause, by field: a T² of positions.

    The velocity's is the same number, of the acceleration's change.
    """
    if gps is None:
        return {}
    way = MANOEUVRE / gps.rate**2
    return {"geodetic": way * METRE, "velocity": np.full(3, way)}


def _white(sensor: NoisySensor | None, channels: int) -> Floats:
    """Return the standard deviations (channels,) of a sensor's white noise, 0 without a sensor."""
    if sensor is None:
        return np.zeros(channels)
    noise = sensor.noise
    return np.hypot(noise.white_sigma, np.asarray(noise.white_density) * math.sqrt(sensor.rate))
