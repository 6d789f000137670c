# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The ground with its friction, as flat arrays for the dynamics' kernels.

No kernel stands here: each would be compiled anew after a change of a map's reader.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats
from rfly_terrain.height_map.height_map import HeightMap, ground_of
from rfly_terrain.world.ground_friction import GroundFriction


class TyreGround(NamedTuple):
    """Heights on a grid as in `GroundGrid`, and factors on the friction of tyres. Eq. 3.9."""

    heights: NDArray[np.float32]
    rows: int
    columns: int
    origin_x: float
    origin_y: float
    step_x: float
    step_y: float
    slack_u: float
    slack_v: float
    x_min: float
    x_max: float
    y_min: float
    y_max: float
    least_normal_z: float
    friction: float
    """Factor where nothing else says another one."""
    edges: Floats
    """Edges of areas, as `GroundFriction.edges` has them."""
    layer: NDArray[np.float32]
    """Factors at the samples of the heights, (rows·columns,); empty: none."""


def tyre_ground(terrain: HeightMap | None, friction: GroundFriction) -> TyreGround:
    """Return the ground of a terrain, None for level ground, with its friction.

    Raise ConfigError if the friction's layer is for another map.
    """
    return TyreGround(
        *ground_of(terrain),
        float(friction.elsewhere),
        friction.edges(),
        friction.layer_on(terrain),
    )
