# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Experiment 1: make a model that was placed by hand stand like the scene's own.

A double click in RflySim3D shows click point (the ground) and object pos (the model's origin).
Their difference in z is the model's offset. The script shows a target on the demo map twice, 5 m
apart: with its origin on the ground, as if its offset were unknown, and lifted by the offset. With
--xml it corrects the model's description.

    python examples/experiment_1_offset.py --xml Target.xml
"""

from __future__ import annotations

import argparse

from rfly_terrain import HeightMap
from rfly_ue_bridge import UE4CtrlAPI, correct_center_height, measure_offset

TARGET = 200150
NORTH = 43.943
EAST = 1.620


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--host", default="127.0.0.1", help="machine that runs RflySim3D")
    parser.add_argument(
        "--click", type=float, nargs=3, default=[43.943, 1.620, -10.465], help="click point, m NED"
    )
    parser.add_argument(
        "--object", type=float, nargs=3, default=[43.943, 1.620, -11.465], help="object pos, m NED"
    )
    parser.add_argument("--xml", help="the model's description, to be corrected")
    options = parser.parse_args()

    offset = measure_offset(options.click, options.object)
    print(f"offset {offset.height:g} m, CenterHeightAboveGroundCm {offset.height_cm:g}")
    if options.xml:
        done = correct_center_height(options.xml, offset.height_cm)
        print(done.diff or f"{options.xml} says so already")

    # the target twice
    terrain = HeightMap.load("JacksboroFault")
    ue = UE4CtrlAPI(options.host)
    ue.sendUE4Pos(1001, TARGET, 0, [NORTH, EAST, terrain.altitude_ned(NORTH, EAST)], [0, 0, 0])
    ground = terrain.altitude_ned(NORTH, EAST + 5.0)
    ue.sendUE4Pos(1002, TARGET, 0, [NORTH, EAST + 5.0, ground - offset.height], [0, 0, 0])


if __name__ == "__main__":
    main()
