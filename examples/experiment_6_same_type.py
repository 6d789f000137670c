# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Experiment 6: several models of one type on the same path, starting 3 s apart.

The same as a file: rfly up --fleet experiment_6
"""

from __future__ import annotations

from drive import drive

from rfly_trajectory import FigureEight, Fleet, SpeedProfile, Vehicle

PATH = FigureEight(center=(-300.0, -50.0), width=420.0, height=200.0).path()
SPEED = SpeedProfile(cruise=12.0, acceleration=2.0)


def main() -> None:
    cars = [
        Vehicle(f"car_{k + 1}", 601 + k, 50, PATH, SPEED, "repeat", delay=3.0 * k) for k in range(4)
    ]
    drive(Fleet(cars), __doc__)


if __name__ == "__main__":
    main()
