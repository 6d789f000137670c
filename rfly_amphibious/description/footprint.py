"""base_footprint (REP-120): the vehicle's pose brought down to the ground, level."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.frames import rotation_matrix
from rfly_terrain.height_map.height_map import HeightMap


def footprint(
    position: ArrayLike, orientation: ArrayLike, terrain: HeightMap | None
) -> tuple[tuple[float, float, float], tuple[float, float, float, float]]:
    """Place (m, ENU) on the ground below base_link at `position` (3,) with `orientation` (4,) x y z w, and its
    heading alone, likewise.

    `terrain` None: level ground at z = 0.
    """
    x, y = np.asarray(position, float)[:2].tolist()
    rotation = rotation_matrix(orientation)
    half = 0.5 * math.atan2(rotation[1, 0], rotation[0, 0])
    ground = 0.0 if terrain is None else float(terrain.altitude(x, y))
    return (x, y, ground), (0.0, 0.0, math.sin(half), math.cos(half))
