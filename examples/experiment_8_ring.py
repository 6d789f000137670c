# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Experiment 8: a convoy in a ring: eight vehicles evenly spaced on the same circle.

The same as a file: rfly up --fleet experiment_8
"""

from __future__ import annotations

from drive import drive

from rfly_trajectory import Circle, Fleet, SpeedProfile, Vehicle

VEHICLES = 8
RING = Circle(center=(0.0, 0.0), radius=60.0).path()


def main() -> None:
    spacing = RING.length / VEHICLES
    cars = [
        Vehicle(
            f"car_{k + 1}",
            801 + k,
            50,
            RING,
            SpeedProfile(cruise=8.0),
            "repeat",
            phase=-k * spacing,
        )
        for k in range(VEHICLES)
    ]
    drive(Fleet(cars), __doc__)


if __name__ == "__main__":
    main()
