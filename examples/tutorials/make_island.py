# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Write heights of an island with a crater as a NumPy array.

The first row is the northern edge; cells are 5 m x 5 m.

    python examples/tutorials/make_island.py island.npy
"""

from __future__ import annotations

import sys

import numpy as np

CELL = 5.0  # m
SIDE = 241  # cells


def island() -> np.ndarray:
    """Return (SIDE, SIDE) heights, m.

    A mountain 160 m high has a crater at its top and gullies on its slopes; the sea is at 0.
    """
    axis = (np.arange(SIDE) - SIDE // 2) * CELL
    east, north = np.meshgrid(axis, -axis)  # rows run from north to south
    distance = np.hypot(east, north)
    direction = np.arctan2(north, east)

    shore = 480.0 + 60.0 * np.sin(3.0 * direction) + 30.0 * np.cos(5.0 * direction)
    slope = np.clip(1.0 - distance / shore, 0.0, None)
    crater = np.exp(-((distance / 90.0) ** 2))
    gullies = 4.0 * np.sin(12.0 * direction) * slope * (1.0 - crater)
    return 160.0 * slope**1.2 - 70.0 * crater + gullies


if __name__ == "__main__":
    np.save(sys.argv[1] if len(sys.argv) > 1 else "island.npy", island())
