# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Draw the track that `rfly mission fly --csv` wrote, over the relief of the map.

python examples/tutorials/draw_track.py track.csv JacksboroFault track.png
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure

from rfly_terrain import HeightMap, draw_relief


def draw(csv: str, map_name: str, picture: str) -> None:
    """Draw the track from above, and its heights with the ground below."""
    track = np.genfromtxt(csv, delimiter=",", names=True)
    x, y, z = (track[track.dtype.names[column]] for column in (1, 2, 3))
    terrain = HeightMap.load(map_name)

    figure = Figure(figsize=(12.0, 5.0), layout="constrained")
    above, beside = figure.subplots(1, 2, width_ratios=(1.0, 1.2))

    # from above
    margin = 300.0
    draw_relief(
        above,
        terrain,
        region=(x.min() - margin, x.max() + margin, y.min() - margin, y.max() + margin),
    )
    above.locator_params(axis="x", nbins=4)
    above.plot(x, y, color="white", linewidth=4.0)
    above.plot(x, y, color="#c8322b", linewidth=2.0, label="flown")
    above.plot(x[0], y[0], "o", color="white", markeredgecolor="black", label="start")
    above.legend()

    # heights along the way
    along = np.concatenate(([0.0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))))
    ground = terrain.altitude(x, y)
    beside.fill_between(along, ground, ground.min() - 10.0, color="#c8b573", label="ground")
    beside.plot(along, z, color="#c8322b", label="flown")
    beside.set(xlabel="distance covered (m)", ylabel="z up (m)")
    beside.legend()
    beside.grid(alpha=0.3)

    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    draw(*sys.argv[1:4])
