# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Wind model: mean and gusts. Eq. 3.5, 3.6. `wind_field` has the mean at a place."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from rfly_amphibious.dynamics.arguments import WindSeries
from rfly_common.arrays import Floats, Ints
from rfly_common.errors import ConfigError

GUST_PERIOD = 0.01
"""Period of the gusts, s. It does not depend on the step of the integration."""

MOST_TURBULENCE = 50.0
"""Largest mean wind at 6 m for Dryden's gusts, m/s."""
MOST_ROUGHNESS = 3.0
"""Largest roughness length, m: high-rise centres have 2 m."""
_HASH = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


@dataclasses.dataclass(frozen=True)
class Wind:
    """Mean wind and gusts, first-order Gauss–Markov or Dryden's, world axes (ENU), m/s.

    Gusts depend only on `seed`, the vehicle's index and the time: the same seed gives the same
    gusts, for any step and however a run is cut into pieces.
    """

    mean: tuple[float, float, float] | Floats = (0.0, 0.0, 0.0)
    """Mean wind, (3,) or (n, 3), one for each vehicle of a batch."""
    gust_sigma: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Standard deviation of the gusts by axis, m/s."""
    gust_time: tuple[float, float, float] = (2.0, 2.0, 1.0)
    """Correlation time of the gusts by axis, s."""
    seed: int = 0
    """Seed of the gusts."""
    turbulence: float = 0.0
    """Mean wind at 6 m above the ground, m/s, which determines the strength of Dryden's gusts.

    0: the gusts are Gauss–Markov's.
    """

    roughness: float = 0.0
    """Roughness length of the ground, m, for a mean wind that grows with height. Eq. 3.7.

    The mean is then that at 10 m. 0: it is the same at all heights.
    """
    lee: bool = False
    """True if objects have wakes, in which the mean wind is weaker. Eq. 3.8."""

    def __post_init__(self) -> None:
        for name, least in (("mean", -math.inf), ("gust_sigma", 0.0), ("gust_time", GUST_PERIOD)):
            values = np.asarray(getattr(self, name), float)
            if values.shape[-1:] != (3,) or not np.isfinite(values).all() or (values < least).any():
                raise ConfigError(
                    f"wind: {name} is {values.tolist()}, expected three finite numbers ≥ {least:g}"
                )
        if not 0.0 <= self.turbulence <= MOST_TURBULENCE:
            raise ConfigError(
                f"wind: turbulence is {self.turbulence}, expected 0 … {MOST_TURBULENCE:g} m/s"
            )
        if not 0.0 <= self.roughness <= MOST_ROUGHNESS:
            raise ConfigError(
                f"wind: roughness is {self.roughness}, expected 0 … {MOST_ROUGHNESS:g} m"
            )
        if self.turbulence and any(self.gust_sigma):
            raise ConfigError(
                "wind: turbulence is Dryden's gusts, gust_sigma Gauss–Markov's: "
                "expected one of them"
            )

    @property
    def has_gusts(self) -> bool:
        """True if the wind has gusts of either kind."""
        return any(self.gust_sigma) or self.turbulence > 0.0

    def check_period(self, period: float) -> None:
        """Raise ConfigError if gusts do not begin at the same times of each period, s."""
        gusts = round(period / GUST_PERIOD)
        if self.has_gusts and abs(gusts * GUST_PERIOD - period) > 1e-9:
            raise ConfigError(
                f"period: {period:g} s, expected a multiple of {GUST_PERIOD:g} s, "
                "the period of the gusts"
            )

    def gust_coefficients(self) -> tuple[Floats, Floats]:
        """Return (keep, add), each (3,): gust ← keep · gust + add · ξ over one period.

        This is the exact solution.
        """
        keep = np.exp(-GUST_PERIOD / np.asarray(self.gust_time))
        return keep, np.asarray(self.gust_sigma) * np.sqrt(1.0 - keep * keep)

    def gust_noise(self, vehicles: int, first: int, count: int) -> Floats:
        """Return unit normal numbers of the periods from `first`, (vehicles, count, 3)."""
        if not self.has_gusts:
            return np.zeros((vehicles, count, 3))
        vehicle = np.arange(vehicles, dtype=np.uint64)
        keys = vehicle + hashed(np.full(1, self.seed & 0xFFFFFFFFFFFFFFFF, np.uint64))
        return gust_numbers(keys, np.full(vehicles, first).astype(np.uint64), count)


def gust_numbers(keys: NDArray[np.uint64], first: NDArray[np.uint64], count: int) -> Floats:
    """Return unit normal numbers of `count` periods from `first` (n,) on, (n, count, 3).

    Those of a key (n,) and a period are always the same: `hashed(seed) + i` is the key of vehicle i
    in a `Wind` of this seed.
    """
    axis = np.arange(6, dtype=np.uint64)[:, None, None]
    period = first + np.arange(count, dtype=np.uint64)[:, None]
    numbers = hashed(hashed(hashed(keys) + period) + axis)
    uniform = ((numbers >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53

    # Box and Muller
    normal = np.sqrt(-2.0 * np.log(uniform[:3])) * np.cos(2.0 * np.pi * uniform[3:])
    return np.ascontiguousarray(normal.transpose(2, 1, 0))


def gust_times(start: float, dt: float, steps: int) -> Ints:
    """Return (steps + 1,) the gust periods that have begun by each step.

    The first of them is for the time of the step before the first.
    """
    times = start + dt * np.arange(-1, steps)
    return np.floor((times + 1e-6 * GUST_PERIOD) / GUST_PERIOD).astype(np.int64)


def gust_series(wind: Wind, mean: Floats, start: float, dt: float, steps: int) -> WindSeries:
    """Return the wind of a run at n vehicles, whose mean is (n, 3), for kernels.

    `start` is the time of the state before the first step, s.
    """
    periods = gust_times(start, dt, steps)
    begins = periods[1:] > periods[:-1]
    # several periods may begin within a step: only the last of them counts
    noise = wind.gust_noise(len(mean), int(periods[0]) + 1, int(periods[-1] - periods[0]))
    noise = np.ascontiguousarray(noise[:, periods[1:][begins] - periods[0] - 1])
    keep, add = wind.gust_coefficients()
    return WindSeries(mean, noise, begins, keep, add, float(wind.turbulence), GUST_PERIOD)


def hashed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return unrelated numbers for consecutive ones: SplitMix64 (Steele, Lea and Flood, 2014)."""
    z = numbers + np.uint64(_HASH[0])
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_HASH[1])
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_HASH[2])
    return z ^ (z >> np.uint64(31))
