# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The frame `base_footprint`: base_link's place and heading on the ground."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.frames import rotation_matrix
from rfly_terrain.height_map.height_map import HeightMap


def footprint(
    position: ArrayLike, orientation: ArrayLike, terrain: HeightMap | None
) -> tuple[tuple[float, float, float], tuple[float, float, float, float]]:
    """Return the position (m, ENU) on the ground below base_link, and its heading as x y z w.

    `position` (3,) and `orientation` (4,) x y z w are those of base_link. `terrain` None: level
    ground at z = 0.
    """
    x, y = np.asarray(position, float)[:2].tolist()
    rotation = rotation_matrix(orientation)
    half = 0.5 * math.atan2(rotation[1, 0], rotation[0, 0])
    ground = 0.0 if terrain is None else float(terrain.altitude(x, y))
    return (x, y, ground), (0.0, 0.0, math.sin(half), math.cos(half))
