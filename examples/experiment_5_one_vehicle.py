# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Experiment 5: one model drives along a path, glued to the ground and tilted with its slope.

    python examples/experiment_5_one_vehicle.py --duration 30

The same as a file: rfly up --fleet experiment_5
"""

from __future__ import annotations

from drive import drive

from rfly_trajectory import FigureEight, Fleet, SpeedProfile, Vehicle

PATH = FigureEight(center=(-300.0, -50.0), width=420.0, height=200.0).path()


def main() -> None:
    car = Vehicle(
        "car", 501, 50, PATH, SpeedProfile(cruise=12.0, acceleration=2.0), at_end="repeat"
    )
    drive(Fleet([car]), __doc__)


if __name__ == "__main__":
    main()
