# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Experiment 7: models of different types on the same path; delay and spacing combine.

Each has its own id and type. The second starts 3 s after the first. The third starts 3 s later
still, on a path shifted by 10 m to the east.

The same as a file: rfly up --fleet experiment_7
"""

from __future__ import annotations

from drive import drive

from rfly_trajectory import FigureEight, Fleet, SpeedProfile, Vehicle

PATH = FigureEight(center=(-300.0, -50.0), width=420.0, height=200.0).path()
SPEED = SpeedProfile(cruise=12.0, acceleration=2.0)


def main() -> None:
    fleet = [
        Vehicle("lead", 701, 50, PATH, SPEED, "repeat"),
        Vehicle("truck", 702, 51, PATH, SPEED, "repeat", delay=3.0),
        Vehicle("scout", 703, 100050, PATH, SPEED, "repeat", delay=6.0, shift=(10.0, 0.0)),
    ]
    drive(Fleet(fleet), __doc__)


if __name__ == "__main__":
    main()
