# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Light, clouds, fog and rain for lidar, cameras and the window. docs/model, Eq. 11.8, 11.9."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError

CONTRAST = 0.05
"""Contrast that remains at the visibility: the meteorological optical range (WMO-No. 8, volume I,
chapter 9).
"""
MOST_RAIN = 500.0
"""Rain rate, at most, mm/h."""


@dataclass(frozen=True)
class Weather:
    """Light, visibility, clouds and rain.

    After r metres a share of exp(-α r) of the light remains (Beer-Lambert), α = -ln 0.05 /
    visibility (Koschmieder) and for rain 1.076 R^0.67 dB/km (Recommendation ITU-R P.1814). Under
    clouds the light is 1 - 0.75 c^3.4 of a clear sky's, and 0.3 + 0.7 c² of it come from the sky,
    not the sun (Kasten and Czeplak, Solar Energy 24, 1980).
    """

    light: float = 1.0
    """Light, 0 (night) … 1 (day)."""
    visibility: float = math.inf
    """Visibility, m; inf: clear."""
    cloud_cover: float = 0.0
    """Cloud cover of the sky, 0 … 1."""
    rain_rate: float = 0.0
    """Rain rate, mm/h."""

    def __post_init__(self) -> None:
        for name, unit, most in (
            ("light", "", 1.0),
            ("cloud_cover", "", 1.0),
            ("rain_rate", " mm/h", MOST_RAIN),
        ):
            value = getattr(self, name)
            if not 0.0 <= value <= most:
                raise ConfigError(f"{name} is {value}{unit}, expected 0 … {most:g}")
        if not self.visibility > 0.0:
            raise ConfigError(f"visibility is {self.visibility} m, expected more than 0")

    @classmethod
    def from_values(
        cls, light: float, visibility: float, cloud_cover: float, rain_rate: float
    ) -> Weather:
        """Return the weather of files, parameters and messages: visibility 0 means clear air."""
        return cls(light, visibility or math.inf, cloud_cover, rain_rate)

    @property
    def extinction(self) -> float:
        """Extinction α, 1/m."""
        db_per_km = 1.076 * self.rain_rate**0.67 if self.rain_rate else 0.0
        rain = db_per_km * math.log(10.0) / 10.0 / 1000.0
        return -math.log(CONTRAST) / self.visibility + rain

    @property
    def skylight(self) -> float:
        """Brightness of a white surface in the shade, over that by day, 0 … 1."""
        return self._brightness * (0.3 + 0.7 * self.cloud_cover**2)

    @property
    def sunlight(self) -> float:
        """Brightness that the sun adds at right angles, 0 … 1."""
        return self._brightness * 0.7 * (1.0 - self.cloud_cover**2)

    @property
    def _brightness(self) -> float:
        """Light below the clouds, 0 … 1."""
        return self.light * (1.0 - 0.75 * self.cloud_cover**3.4)

    def transmission(self, ranges: ArrayLike) -> Floats:
        """Return the share of light after these ways (m); 0 after an infinite one in fog."""
        if self.extinction == 0.0:
            return np.ones(np.shape(ranges))
        return np.exp(-self.extinction * np.asarray(ranges, float))

    def reach(self, max_range: float) -> float:
        """Return the range, m, of a sensor with its own light, in this air.

        The sensor's range in clear air is `max_range` (m). A surface that fills the beam returns
        exp(-2 α r) / r² of the light. The weakest return that counts is that of `max_range` in
        clear air: exp(α r) r = max_range, so r = W(α max_range) / α with Lambert's W.
        """
        if self.extinction == 0.0 or math.isinf(max_range):
            return max_range

        from scipy.special import lambertw

        return float(lambertw(self.extinction * max_range).real) / self.extinction


CLEAR = Weather()
"""A bright day."""
