# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Viewshed: which samples of a map are in sight of a point."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Bools
from rfly_common.config.checks import finite_array, finite_number

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap

_SAMPLES_AT_ONCE = 250_000
"""Samples whose lines are followed in one go: 20 MB of arrays, a tenth of a second of work."""


def viewshed(
    height_map: HeightMap,
    observer: ArrayLike,
    *,
    target_height: float = 0.0,
    max_range: float = math.inf,
    earth_radius: float = math.inf,
    stride: int = 1,
    progress: Callable[[float], None] = lambda share: None,
) -> Bools:
    """Return which samples are in sight of `observer`, (rows, columns), every `stride`-th.

    A sample is in sight if the ground leaves free the line from the observer to the point that is
    `target_height` above it: exact on the bilinear surface, as `HeightMap.line_of_sight` has it,
    with the same `earth_radius`. RADIO_EARTH_RADIUS makes it the coverage of an antenna. `progress`
    gets the share that is done.

    `observer`: (3,), ENU, m, on the map or off it. `target_height`, `max_range` (over level
    ground), `earth_radius`: m.

    Raises ValueError for an observer in the ground, which sees nothing, and for numbers that cannot
    be.
    """
    place = finite_array("observer", observer, (3,), error=ValueError)
    ground = height_map.altitude(place[0], place[1])
    if height_map.inside(place[0], place[1]) and place[2] < ground:
        raise ValueError(f"observer is at z = {place[2]:g} m, in the ground of {ground:g} m")
    finite_number("target_height", target_height, "m", at_least=0.0, error=ValueError)
    if not max_range > 0.0:
        raise ValueError(f"max_range is {max_range}, expected more than 0 m")

    heights = height_map.heights[::stride, ::stride]
    rows, columns = heights.shape
    x = height_map.origin_x + np.arange(rows) * (stride * height_map.step_x)
    y = height_map.origin_y + np.arange(columns) * (stride * height_map.step_y)
    seen = np.empty((rows, columns), bool)

    rows_at_once = max(1, _SAMPLES_AT_ONCE // columns)
    for first in range(0, rows, rows_at_once):
        part = slice(first, first + rows_at_once)
        targets = np.empty((*seen[part].shape, 3))
        targets[..., 0] = x[part, None]
        targets[..., 1] = y
        targets[..., 2] = heights[part]
        targets[..., 2] += target_height
        seen[part] = height_map.line_of_sight(place, targets, earth_radius=earth_radius)
        seen[part] &= np.hypot(x[part, None] - place[0], y - place[1]) <= max_range
        progress(min(1.0, (first + rows_at_once) / rows))
    return seen
