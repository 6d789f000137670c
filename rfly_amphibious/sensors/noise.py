# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sensor error models: scale, bias, white noise, random walk, Gauss–Markov error, range.

y = (1 + k) x + b + w + m + n, cut off at the range. With T between two samples: n ~ N(0, σ²/T) for
a density σ; b is N(b₀, σ₀²), drawn once; w begins at 0 and grows by σ_b √T ξ, a random walk, or,
with a correlation time τ_b, is e^(-T/τ_b) times the one before and σ_b √(τ_b/2 (1 - e^(-2T/τ_b)))
ξ, which never leaves ± σ_b √(τ_b/2) for long; m, of variance σ_m² from the first sample on, is
e^(-T/τ) times the one before and as much noise as keeps its variance. Eq. 11.1.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_number
from rfly_common.errors import ConfigError
from rfly_sensing.random_generators import sensor_generator

FOREVER = 1e12
"""Stands for infinite correlation times, s."""


@dataclasses.dataclass(frozen=True, eq=False)
class NoiseModel:
    """Noise of a sensor's channels. Each value is (channels,), or one number for all of them."""

    channels: int
    scale_error: ArrayLike = 0.0
    """Error k of the scale, a share."""
    bias: ArrayLike = 0.0
    turn_on_bias: ArrayLike = 0.0
    """Standard deviation of the bias at the beginning about `bias`, drawn once."""
    white_density: ArrayLike = 0.0
    """Density of white noise, unit / √Hz."""
    white_sigma: ArrayLike = 0.0
    """Standard deviation of each sample at any rate, in addition to the density's."""
    walk_density: ArrayLike = 0.0
    """Growth of the bias: unit / √s, which is unit/s / √Hz."""
    walk_time: ArrayLike = math.inf
    """Correlation time of this growth, which bounds it, s.

    inf: a random walk, which has no bound.
    """
    markov_sigma: ArrayLike = 0.0
    markov_time: ArrayLike = 1.0
    """Correlation time, s."""
    low: ArrayLike = -math.inf
    high: ArrayLike = math.inf

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self)[1:]:
            name = field.name
            try:
                values = np.asarray(getattr(self, name), float)
                values = np.broadcast_to(values, (self.channels,))
            except ValueError:
                raise ConfigError(f"noise: {name} does not fit {self.channels} channels") from None

            limited = name in ("low", "high", "walk_time")
            if np.isnan(values).any() or not (limited or np.isfinite(values).all()):
                raise ConfigError(f"noise: {name} is {values.tolist()}: numbers must be finite")
            if name not in ("scale_error", "bias", "low", "high") and (values < 0.0).any():
                raise ConfigError(f"noise: {name} is {values.tolist()}, expected ≥ 0")
            object.__setattr__(self, name, values)
        for name in ("markov_time", "walk_time"):
            times = np.asarray(getattr(self, name))
            if (times <= 0.0).any():
                raise ConfigError(f"noise: {name} is {times.tolist()} s, expected more than 0")

    @classmethod
    def joined(cls, parts: Sequence[NoiseModel]) -> NoiseModel:
        """Return the noise of one sensor with the channels of several."""
        names = [field.name for field in dataclasses.fields(cls)[1:]]
        values = {
            name: np.concatenate([np.asarray(getattr(part, name)) for part in parts])
            for name in names
        }
        return cls(sum(part.channels for part in parts), **values)

    def silent(self) -> NoiseModel:
        """Return a model without any error but with the same range."""
        return NoiseModel(self.channels, low=self.low, high=self.high)

    def variance(self, period: float) -> Floats:
        """Return the variance (channels,) of a sample's error, without scale and the walk."""
        white = np.asarray(self.white_sigma) ** 2 + np.asarray(self.white_density) ** 2 / period
        return white + np.asarray(self.markov_sigma) ** 2 + np.asarray(self.turn_on_bias) ** 2


def channel_noise(
    model: NoiseModel, period: float, *, between: float | None = None
) -> NDArray[Any]:
    """Return the coefficients of a model's errors, (channels,), `sensor_kernels.CHANNEL_NOISE`.

    `period`: of the sensor, s. `between`: time from one sample that is taken to the next, where
    others in between are left out; the errors drift on over it.
    """
    # imported here: a process that only reads sensor files needs no kernels
    from rfly_amphibious.sensors import sensor_kernels as kernels

    drift = period if between is None else between
    kept = np.exp(-drift / np.asarray(model.markov_time))
    white = np.asarray(model.white_sigma) ** 2 + np.asarray(model.white_density) ** 2 / period
    walk_time = np.minimum(model.walk_time, FOREVER)
    grown = np.sqrt(-0.5 * walk_time * np.expm1(-2.0 * drift / walk_time))

    noise = np.empty(model.channels, kernels.CHANNEL_NOISE)
    noise["gain"] = 1.0 + np.asarray(model.scale_error)
    noise["white"] = np.sqrt(white)
    noise["walk"] = np.asarray(model.walk_density) * grown
    noise["walk_kept"] = np.exp(-drift / walk_time)
    noise["markov"] = np.asarray(model.markov_sigma) * np.sqrt(1.0 - kept * kept)
    noise["markov_kept"] = kept
    noise["low"] = model.low
    noise["high"] = model.high
    return noise


class NoiseSource:
    """The errors of one sensor, sample after sample, from a generator of its own.

    Each sample takes the same numbers from the generator, so that errors depend neither on the
    grouping of samples nor on other kinds of errors. The sensors of one `seed` differ by `name`.
    """

    def __init__(
        self, model: NoiseModel, period: float, seed: int | Sequence[int], name: str
    ) -> None:
        finite_number(f"{name}: the period between samples", period, "s", above=0.0)
        # imported here: a process that only reads sensor files needs no kernels
        from rfly_amphibious.sensors import sensor_kernels as kernels

        self._disturb = kernels.disturb
        self.model = model
        self.period = period
        self._generator = sensor_generator(seed, name)

        self._noise = channel_noise(model, period)

        # errors at the beginning
        markov_sigma = np.asarray(model.markov_sigma)
        begin = self._generator.standard_normal((2, model.channels))
        self._errors = np.zeros(model.channels, kernels.CHANNEL_ERRORS)
        self._errors["bias"] = np.asarray(model.bias) + np.asarray(model.turn_on_bias) * begin[0]
        self._errors["markov"] = markov_sigma * begin[1]

    @property
    def bias(self) -> Floats:
        """Bias of the next sample, (channels,)."""
        return np.asarray(self._errors["bias"] + self._errors["walk"])

    def disturb(self, truth: Floats) -> Floats:
        """Return readings (k, channels) of the next samples, whose truth is (k, channels)."""
        out = np.empty((len(truth), self.model.channels))
        normals = self._generator.standard_normal((out.shape[0], 3 * out.shape[1]))
        self._disturb(np.ascontiguousarray(truth), normals, self._noise, self._errors, out)
        return out
