# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Experiment 2: place three targets by script, with the measured offset of each model in z.

The same without Python:

    rfly send --window 0 "RflyChangeMapbyName Grasslands"
    rfly objects place --file grasslands_targets
"""

from __future__ import annotations

import argparse

from rfly_ue_bridge import UE4CtrlAPI


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--host", default="127.0.0.1", help="machine that runs RflySim3D")
    ue = UE4CtrlAPI(parser.parse_args().host)

    ue.sendUE4Cmd("RflyChangeMapbyName Grasslands", 0)  # waits until RflySim3D takes poses again
    ue.sendUE4Pos(1001, 200150, 0, [43.943, 1.620, -11.465], [0, 0, 0])
    ue.sendUE4Pos(1002, 100150, 0, [72.946, -4.388, -11.465], [0, 0, 0])
    ue.sendUE4Pos(1003, 151, 0, [115.915, 5.510, -10.448], [0, 0, 0])


if __name__ == "__main__":
    main()
