# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Experiment 4: send commands and ask for altitudes while a simulation runs.

It uses RflySim's MATLAB calls under their own names. The camera flies along the demo map, 20 m
above the ground, and looks 30 degrees down.
"""

from __future__ import annotations

import argparse
import time

from rfly_terrain import LoadPngData, getTerrainAltData
from rfly_ue_bridge import RflyCameraPosAng, RflySendUE4CMD

HEIGHT = 20.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="machine that runs RflySim3D; 255.255.255.255 = MATLAB's",
    )
    parser.add_argument(
        "--map",
        default="JacksboroFault",
        help="map for the altitudes; LoadPngData keeps it in a file",
    )
    parser.add_argument("--steps", type=int, default=20, help="views of the camera")
    parser.add_argument("--pause", type=float, default=0.25, help="between two views, s")
    options = parser.parse_args()

    # writes MapHeightData.mat into the current folder, as MATLAB's does
    LoadPngData(options.map, search_further=True)
    RflySendUE4CMD("RflyChangeMapbyName Grasslands", options.host)
    time.sleep(1.0)  # RflySim3D ignores messages meanwhile, and MATLAB's call does not wait

    for step in range(options.steps):
        north = 5.0 * step
        east = 0.0
        RflyCameraPosAng(
            north, east, getTerrainAltData(north, east) - HEIGHT, 0, -30, 0, host=options.host
        )
        time.sleep(options.pause)

    print(f"ground at 10 m north, 3.5 m west: z = {getTerrainAltData(10.0, -3.5):.3f} m (down)")


if __name__ == "__main__":
    main()
