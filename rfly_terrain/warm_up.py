"""Compilation of the height map's kernels, or loading from the disk cache, ahead of the first
query.
"""

from __future__ import annotations

import numpy as np

from rfly_common.kernels.jit import use_numba


def warm_up() -> None:
    """Runs every kernel once with every type of argument that the library passes. Without numba
    there is nothing to do.

    Takes about a second where the disk cache holds the kernels, else as long as compiling them.
    Threads may call it at once.
    """
    if not use_numba():
        return
    from rfly_terrain.height_map import dispatch, kernels, ray_cast
    from rfly_terrain.height_map.height_map import HeightMap

    dispatch.KERNELS.load()  # from now on all queries and rays use compiled kernels
    ray_cast.KERNELS.load()

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
    for width in (np.float32, np.float64):
        height_map.cast(np.ones(3, width), np.ones(3, width))
    for dtype in (np.uint8, np.uint16):
        pixels = np.zeros(1, dtype)
        pixels.flags.writeable = False
        kernels.heights_from_pixels((0.0, 0.0, 1.0), pixels, np.empty(1, np.float32))
