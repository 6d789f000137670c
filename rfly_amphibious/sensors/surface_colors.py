"""Surface colours for cameras: ground as on the relief, by height and light; one colour for each body."""

from __future__ import annotations

import colorsys
import math

import numpy as np

from rfly_amphibious.sensors.scene_rays import SceneRays
from rfly_common.arrays import Floats, Ints

TINTS = (
    np.array(
        [
            (85, 144, 106),
            (134, 178, 119),
            (188, 207, 141),
            (235, 225, 171),
            (223, 192, 137),
            (192, 149, 106),
            (165, 132, 117),
            (207, 198, 193),
            (252, 251, 250),
        ]
    )
    / 255.0
)
"""from the lowest ground to the highest, those of `rfly_terrain.plots.relief`"""
SUN = np.array((-0.5, 0.5, math.sqrt(0.5)))
"""towards it: in the north-west, at 45°"""
DARK = 0.35
"""of a colour, where the sun does not reach"""
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


def body_color(number: int) -> tuple[float, float, float]:
    """RGB 0 … 1 of an id: hues of neighbouring ids lie far apart."""
    return colorsys.hsv_to_rgb(GOLDEN * number % 1.0, 0.75, 0.95)


def surface_colors(scene: SceneRays, points: Floats, normals: Floats, body: Ints) -> Floats:
    """(n, 3) RGB 0 … 1 of points on the ground (body < 0) and on bodies, with unit normals; in daylight."""
    low, high = (0.0, 1.0) if scene.terrain is None else (scene.terrain.z_min, scene.terrain.z_max)
    share = (points[:, 2] - low) / max(high - low, 1e-6)
    at = np.linspace(0.0, 1.0, len(TINTS))
    colors = np.stack([np.interp(share, at, TINTS[:, channel]) for channel in range(3)], axis=1)
    if scene.bodies is not None and len(scene.bodies):
        which, inverse = np.unique(scene.bodies.id, return_inverse=True)
        own = np.array([body_color(number) for number in which.tolist()])[inverse.reshape(-1)]
        hit = body >= 0
        colors[hit] = own[body[hit]]
    light: Floats = DARK + (1.0 - DARK) * np.maximum(normals @ SUN, 0.0)
    lit: Floats = colors * np.minimum(light, 1.0)[:, None]
    return lit
