# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Do mixed vehicles that cross at random touch, jam or take long ways? Each seed is a crossing.

    python -m benchmarks.crossings --seeds 1000 --file build/crossings.csv

A hundred vehicles in a square of 600 m go from random places to others. Contacts are looked for at
ten instants of every step with NumPy and SciPy alone. The file gets a line for each seed, and seeds
that it has are not run again: a run that was stopped goes on. A deadlock is a vehicle that stands
for 30 s on its way, or a ground vehicle or multirotor that does not arrive within 180 s.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from crossing_vehicles import random_crossing

from rfly_trajectory.kernels.tables import FIXED_WING

VEHICLES = 100
SIDE = 600.0
LONGEST = 180.0
"""Time of a crossing, s."""
DEADLOCK = 30.0
"""Time at a standstill on the way that counts as a deadlock, s."""
MOST_DEADLOCKS = 0.01
"""Share of crossings with a deadlock that is allowed."""
LONGEST_WAY = 1.15
"""Largest median of the way over the straight one."""


class Crossing(NamedTuple):
    """What came of a crossing."""

    seed: int
    room: float
    """Least room between two bodies, m; negative: contact."""
    stood: float
    """Longest time at a standstill, s."""
    missing: int
    """Vehicles that can stop and have not arrived."""
    way: float
    """Median of the way over the straight one."""


def cross(seed: int) -> Crossing:
    """Return the crossing of a seed."""
    run = random_crossing(VEHICLES, seed, SIDE, LONGEST)
    missing = int((~np.isfinite(run.arrived[run.kinds != FIXED_WING])).sum())
    return Crossing(seed, run.room, float(run.stood.max()), missing, float(np.median(run.ratio)))


def known(file: Path) -> list[Crossing]:
    """Return the crossings of a file; none if there is no file."""
    if not file.exists():
        return []
    with file.open(newline="") as lines:
        return [
            Crossing(
                int(row["seed"]),
                float(row["room"]),
                float(row["stood"]),
                int(row["missing"]),
                float(row["way"]),
            )
            for row in csv.DictReader(lines)
        ]


def summary(crossings: list[Crossing]) -> tuple[str, bool]:
    """Return what came of all crossings in words, and whether it meets the goals."""
    contacts = sum(each.room <= 0.0 for each in crossings)
    deadlocks = sum(each.stood >= DEADLOCK or each.missing > 0 for each in crossings)
    way = float(np.median([each.way for each in crossings]))
    text = (
        f"{len(crossings)} crossings of {VEHICLES} vehicles: {contacts} with a contact, "
        f"{deadlocks} with a deadlock, way {way:.3f} of the straight one in the median; longest "
        f"standstill {max(each.stood for each in crossings):.1f} s, least room "
        f"{min(each.room for each in crossings):.3f} m"
    )
    few = deadlocks <= MOST_DEADLOCKS * len(crossings)
    return text, contacts == 0 and few and way <= LONGEST_WAY


def main() -> int:
    """Run the seeds that the file lacks. Return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--seeds", type=int, default=1000, help="number of seeds")
    parser.add_argument("--file", type=Path, default=Path("build/crossings.csv"))
    given = parser.parse_args()
    if given.seeds < 1 or given.first < 0:
        parser.error("--seeds is at least 1, --first at least 0")

    wanted = range(given.first, given.first + given.seeds)
    done = {each.seed: each for each in known(given.file) if each.seed in wanted}
    given.file.parent.mkdir(parents=True, exist_ok=True)
    is_new = not given.file.exists()
    with given.file.open("a", newline="") as lines:
        writer = csv.writer(lines)
        if is_new:
            writer.writerow(Crossing._fields)
        for seed in wanted:
            if seed not in done:
                done[seed] = cross(seed)
                writer.writerow(done[seed])
                lines.flush()
    text, good = summary(list(done.values()))
    print(text)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
