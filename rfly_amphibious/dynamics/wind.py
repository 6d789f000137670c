"""Wind model: mean and gusts. Eq. 3.5, 3.6."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats, Ints
from rfly_common.errors import ConfigError

GUST_PERIOD = 0.01
"""s: gusts change this often, whatever the step of the integration, and so do not depend on it"""

MOST_TURBULENCE = 50.0
"""m/s"""
_HASH = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


@dataclasses.dataclass(frozen=True)
class Wind:
    """Mean wind and gusts, first-order Gauss–Markov or Dryden's, world axes (ENU), m/s.

    `mean` (3,) or (n, 3), one for each vehicle of a batch. Gusts depend on `seed`, the vehicle's
    index and the time only: the same seed gives the same gusts, for any step and however a run is
    cut into pieces.
    """

    mean: tuple[float, float, float] | Floats = (0.0, 0.0, 0.0)
    gust_sigma: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """standard deviation by axis, m/s"""
    gust_time: tuple[float, float, float] = (2.0, 2.0, 1.0)
    """correlation time by axis, s"""
    seed: int = 0
    turbulence: float = 0.0
    """m/s: of the mean wind at 6 m above the ground, which tells how strong Dryden's gusts are; 0:
    Gauss–Markov's
    """

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
        if self.turbulence and any(self.gust_sigma):
            raise ConfigError(
                "wind: turbulence is Dryden's gusts, gust_sigma Gauss–Markov's: expected one of them"
            )

    def gust_coefficients(self) -> tuple[Floats, Floats]:
        """(keep, add), each (3,): gust ← keep · gust + add · ξ over one period, the exact solution."""
        keep = np.exp(-GUST_PERIOD / np.asarray(self.gust_time))
        return keep, np.asarray(self.gust_sigma) * np.sqrt(1.0 - keep * keep)

    def gust_noise(self, vehicles: int, first: int, count: int) -> Floats:
        """(vehicles, count, 3) unit normal numbers of the periods `first`, `first` + 1, …"""
        if not (any(self.gust_sigma) or self.turbulence):
            return np.zeros((vehicles, count, 3))
        axis, period, vehicle = np.meshgrid(
            np.arange(6, dtype=np.uint64),
            np.arange(first, first + count, dtype=np.uint64),
            np.arange(vehicles, dtype=np.uint64),
            indexing="ij",
        )
        seed = _mixed(np.full(1, self.seed & 0xFFFFFFFFFFFFFFFF, np.uint64))
        numbers = _mixed(_mixed(_mixed(seed + vehicle) + period) + axis)
        uniform = ((numbers >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53
        # Box and Muller
        normal = np.sqrt(-2.0 * np.log(uniform[:3])) * np.cos(2.0 * np.pi * uniform[3:])
        return np.ascontiguousarray(normal.transpose(2, 1, 0))


def gust_times(start: float, dt: float, steps: int) -> Ints:
    """(steps + 1,) the gust periods begun at the time of the step before the first, and of each
    step.
    """
    times = start + dt * np.arange(-1, steps)
    return np.floor((times + 1e-6 * GUST_PERIOD) / GUST_PERIOD).astype(np.int64)


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64 (Steele, Lea and Flood, 2014): numbers in a row become numbers without relation."""
    z = numbers + np.uint64(_HASH[0])
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_HASH[1])
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_HASH[2])
    return z ^ (z >> np.uint64(31))
