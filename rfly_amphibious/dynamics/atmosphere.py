"""Standard atmosphere below 11 km. Eq. 3.3."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

GAS_CONSTANT = 287.053
"""J/(kg K), of air"""


def standard_pressure(altitude: ArrayLike) -> Any:
    """Pa at metres above sea level: a float for a float, else an array."""
    height = np.asarray(altitude, float)
    pressure = 101325.0 * ((288.15 - 0.0065 * height) / 288.15) ** 5.25588
    return pressure if pressure.ndim else float(pressure)


def standard_density(altitude: ArrayLike) -> Any:
    """kg/m³ at metres above sea level: a float for a float, else an array."""
    height = np.asarray(altitude, float)
    density = standard_pressure(height) / (GAS_CONSTANT * (288.15 - 0.0065 * height))
    return density if np.ndim(density) else float(density)
