# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compilation of the height map's kernels, or loading from disk, ahead of the first query."""

from __future__ import annotations

from functools import cache

import numpy as np


@cache
def warm_up() -> None:
    """Run every kernel once with every type of argument that the library passes.

    This takes about a second if the disk cache holds the kernels, else as long as compiling them.
    Several threads may call it at once.
    """
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.map_files.pixel_kernel import heights_from_pixels

    heights = np.zeros((2, 2), np.float32)
    height_map = HeightMap(heights, origin_x=0.0, origin_y=0.0, step_x=1.0, step_y=1.0)
    x = np.zeros(1)
    height_map.altitude(x, x)
    height_map.altitude(x.astype(np.float32), x.astype(np.float32))
    height_map.inside(x, x)
    height_map.query(x, x)
    height_map.gradient(x, x)
    height_map.gradient_rate(x, x, x, x)
    height_map.point_cloud()

    for pixels in (np.zeros(1, np.uint8), np.zeros(1, np.uint16)):
        pixels.flags.writeable = False
        heights_from_pixels(0.0, 0.0, 1.0, pixels, np.empty(1, np.float32))

    for width in (np.float32, np.float64):
        height_map.cast(np.ones(3, width), np.ones(3, width))
