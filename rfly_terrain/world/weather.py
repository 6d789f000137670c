"""Light, clouds, fog and rain for lidar, cameras and the window. docs/model, Eq. 11.8, 11.9."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError

CONTRAST = 0.05
"""what is left of a contrast at the visibility: the meteorological optical range (WMO-No. 8, volume
I, chapter 9)
"""


MOST_RAIN = 500.0
"""mm/h"""


@dataclass(frozen=True)
class Weather:
    """`light` 0 (night) … 1 (day); `visibility` in m, inf: clear; `cloud_cover` 0 … 1 of the sky;
    `rain_rate` in mm/h.

    Light that has gone r metres is left with exp(-α r) (Beer-Lambert), α = -ln 0.05 / visibility
    (Koschmieder) and for rain 1.076 R^0.67 dB/km (Recommendation ITU-R P.1814). Under clouds the
    light is 1 - 0.75 c^3.4 of a clear sky's, and 0.3 + 0.7 c² of it come from the sky, not the sun
    (Kasten and Czeplak, Solar Energy 24, 1980).
    """

    light: float = 1.0
    visibility: float = math.inf
    cloud_cover: float = 0.0
    rain_rate: float = 0.0

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
    def told(cls, light: float, visibility: float, cloud_cover: float, rain_rate: float) -> Weather:
        """The same of numbers as files, parameters and messages have them: there a visibility of 0
        means clear air.
        """
        return cls(light, visibility or math.inf, cloud_cover, rain_rate)

    @property
    def extinction(self) -> float:
        """α, 1/m."""
        rain = (
            1.076 * self.rain_rate**0.67 * math.log(10.0) / 10.0 / 1000.0 if self.rain_rate else 0.0
        )
        return -math.log(CONTRAST) / self.visibility + rain

    @property
    def skylight(self) -> float:
        """0 … 1: of a white surface in the shade by day."""
        return self._brightness * (0.3 + 0.7 * self.cloud_cover**2)

    @property
    def sunlight(self) -> float:
        """0 … 1: what the sun adds where it falls at right angles."""
        return self._brightness * 0.7 * (1.0 - self.cloud_cover**2)

    @property
    def _brightness(self) -> float:
        return self.light * (1.0 - 0.75 * self.cloud_cover**3.4)

    def transmission(self, ranges: ArrayLike) -> Floats:
        """What is left of light after these ways (m); 0 after an infinite one in fog or rain."""
        if self.extinction == 0.0:
            return np.ones(np.shape(ranges))
        return np.exp(-self.extinction * np.asarray(ranges, float))

    def reach(self, max_range: float) -> float:
        """How far a sensor with its own light sees that sees `max_range` (m) in clear air.

        A surface that fills the beam returns exp(-2 α r) / r² of the light. The weakest return that
        counts is that of `max_range` in clear air: exp(α r) r = max_range, so r = W(α max_range) /
        α with Lambert's W.
        """
        if self.extinction == 0.0 or math.isinf(max_range):
            return max_range
        from scipy.special import lambertw

        return float(lambertw(self.extinction * max_range).real) / self.extinction


CLEAR = Weather()
"""a bright day"""
