# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Make the maps that come from formulas.

They are RollingHills of the scenario `hills`, and stand-ins for two maps of RflySim.

    python examples/make_formula_maps.py [folder]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rfly_terrain import HeightMap, package_maps, write_map

CELLS = 129
Heights = NDArray[np.float64]


def rolling_hills(x: Heights, y: Heights) -> Heights:
    """Return 384 m of round hills with bumps on them; x east, y north, z up, m."""
    hills = 6.0 * np.sin(x / 31.0 + 0.5) * np.cos(y / 43.0) + 2.5 * np.sin((x + y) / 19.0)
    return hills + 0.12 * np.sin(x / 2.9) * np.sin(y / 3.7)


def mountain(x: Heights, y: Heights) -> Heights:
    """Return 2 km with a summit in the north-east, ridges and valleys.

    The ground is 177.181 m high where experiment 3 puts its person (16.479 m south, 1.45 m east).
    """
    east = x - 260.0
    north = y - 330.0
    summit = 240.0 * np.exp(-(east**2 + 0.7 * north**2) / 520.0**2)

    # ridges of four lengths
    ridges = 0.0 * x
    for height, length, c, s, phase in (
        (75.0, 210.0, 0.8, 0.6, 0.4),
        (40.0, 120.0, -0.28, 0.96, 1.1),
        (16.0, 61.0, 0.96, -0.28, 2.3),
        (6.0, 33.0, 0.6, 0.8, 0.2),
    ):
        bend = 0.7 * np.sin((c * y - s * x) / (1.7 * length))
        ridges += height * (1.0 - np.abs(np.sin((c * x + s * y) / length + bend + phase)))

    # the height that experiment 3 states
    heights = summit + ridges
    step = float(x[1, 0] - x[0, 0])
    height_at_person = HeightMap(
        heights, origin_x=x[0, 0], origin_y=y[0, 0], step_x=step, step_y=step
    ).altitude(1.45, -16.479)
    return heights + (177.181 - height_at_person)


def grasslands(x: Heights, y: Heights) -> Heights:
    """Return 1 km that rolls by 10 m, level at 10.465 m around the targets of experiment 2.

    Experiment 1 finds the same height.
    """
    distance = np.hypot(x, y - 80.0)
    away = np.clip((distance - 130.0) / 120.0, 0.0, 1.0)
    blend = away**2 * (3.0 - 2.0 * away)
    rolling = 3.0 * np.sin(x / 71.0 + 0.3) * np.cos(y / 93.0) + 1.6 * np.sin((x - 2.0 * y) / 57.0)
    bumps = 0.15 * np.sin(x / 17.0) * np.sin(y / 13.0)
    return 10.465 + blend * (rolling + bumps)


MAPS = {
    "RollingHills": (rolling_hills, 3.0, (40.0, 116.3, 50.0)),
    "MountainTerrain": (mountain, 16.0, None),
    "Grasslands": (grasslands, 8.0, None),
}
"""Formula, cell size (m) and geo origin of each map by name."""


def main(folder: Path) -> None:
    for name, (formula, step, gps) in MAPS.items():
        axis = (np.arange(CELLS) - CELLS // 2) * step
        x, y = np.meshgrid(axis, axis, indexing="ij")
        files = write_map(
            formula(x, y),
            folder / name,
            origin_x=float(axis[0]),
            origin_y=float(axis[0]),
            step_x=step,
            step_y=step,
            gps=gps,
            overwrite=True,
            compression=9,
        )
        print(files.png, files.txt, sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else package_maps())
