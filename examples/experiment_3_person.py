# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Experiment 3: place a person on a mountain, with and without knowing the ground's height.

The second person stands a metre from the first; RflySim3D finds its height.
"""

from __future__ import annotations

import argparse
import math

from rfly_ue_bridge import UE4CtrlAPI

PERSON = 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="machine that runs RflySim3D")
    ue = UE4CtrlAPI(parser.parse_args().host)

    ue.sendUE4Cmd("RflyChangeMapbyName MountainTerrain")
    ue.sendUE4Pos(100, PERSON, 0, [-16.479, 1.45, -177.181], [0, 0, math.pi])
    ue.sendUE4Pos2Ground(101, PERSON, 0, [-17.479, 1.45, 0], [0, 0, math.pi])  # RflySim3D finds z


if __name__ == "__main__":
    main()
