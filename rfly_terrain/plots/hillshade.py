"""Light and shadow of heights on a regular grid, as arrays: for pictures of the ground and for its mesh."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats

_LIGHTS = ((315.0, 0.6), (0.0, 0.2), (270.0, 0.2))
"""azimuth (degrees clockwise from north) and share: one lamp alone hides the ridges that run along its rays"""
_LIGHT_ELEVATION_DEG = 45.0
_STEEP = 0.75
"""exaggerated slope of the steepest tenth of the ground: steep enough for contrast, short of black faces"""


def hillshade(z: Floats, step_x: float, step_y: float, exaggeration: float | None = None) -> Floats:
    """Brightness 0 … 1 of heights (rows along y north, columns along x east; m), lit from the north-west.

    Level ground has 0.5. `exaggeration` of the heights; None: by how steep the ground is.
    """
    slope_y, slope_x = np.gradient(z, step_y, step_x)
    if exaggeration is None:
        steep = float(np.quantile(np.hypot(slope_x, slope_y), 0.9))
        exaggeration = min(max(_STEEP / steep, 0.1), 1000.0) if steep > 0 else 1.0
    light, up = np.zeros(z.shape), math.sin(math.radians(_LIGHT_ELEVATION_DEG))
    for azimuth_deg, share in _LIGHTS:
        azimuth, level = math.radians(azimuth_deg), math.cos(math.radians(_LIGHT_ELEVATION_DEG))
        facing = up - exaggeration * level * (slope_x * math.sin(azimuth) + slope_y * math.cos(azimuth))
        facing /= np.sqrt(1.0 + exaggeration**2 * (slope_x**2 + slope_y**2))
        light += share * (0.5 + 0.62 * (facing - up))
    return np.clip(light, 0.06, 0.94)


def lit(colours: NDArray[Any], light: NDArray[Any]) -> NDArray[Any]:
    """RGB 0 … 1, darker below a light of 0.5 and paler above; the arrays broadcast."""
    shaded, shine = np.minimum(2 * light, 1.0), np.maximum(2 * light - 1, 0.0)
    colours = colours * (0.3 + 0.7 * shaded)
    return np.clip(colours + (1 - colours) * 0.55 * shine, 0.0, 1.0)
