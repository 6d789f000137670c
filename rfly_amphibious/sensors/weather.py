"""Light and fog for lidar and cameras."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError

CONTRAST = 0.05
"""what is left of a contrast at the visibility: the meteorological optical range (WMO-No. 8, volume I, chapter 9)"""


@dataclass(frozen=True)
class Weather:
    """`light` 0 (night) … 1 (day); `visibility` in m, inf: clear.

    Light that has gone r metres is left with exp(-α r) (Beer-Lambert), α = -ln 0.05 / visibility (Koschmieder).
    """

    light: float = 1.0
    visibility: float = math.inf

    def __post_init__(self) -> None:
        if not 0.0 <= self.light <= 1.0:
            raise ConfigError(f"light is {self.light}, expected 0 … 1")
        if not self.visibility > 0.0:
            raise ConfigError(f"visibility is {self.visibility} m, expected more than 0")

    @property
    def extinction(self) -> float:
        """α, 1/m."""
        return -math.log(CONTRAST) / self.visibility

    def transmission(self, ranges: ArrayLike) -> Floats:
        """What is left of light after these ways (m); 0 after an infinite one in fog."""
        if math.isinf(self.visibility):
            return np.ones(np.shape(ranges))
        return np.exp(-self.extinction * np.asarray(ranges, float))

    def reach(self, max_range: float) -> float:
        """How far a sensor with its own light sees that sees `max_range` (m) in clear air.

        A surface that fills the beam returns exp(-2 α r) / r² of the light. The weakest return that counts is that of
        `max_range` in clear air: exp(α r) r = max_range, so r = W(α max_range) / α with Lambert's W.
        """
        if math.isinf(self.visibility) or math.isinf(max_range):
            return max_range
        from scipy.special import lambertw

        return float(lambertw(self.extinction * max_range).real) / self.extinction
