# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`python -m benchmarks.closed_loop`: scenarios closed through sensors and estimates only, over
three terrains with 20 seeds of noise and wind each, on two processes. Prints one row a terrain, and
what did not succeed. `--gps-off 3`: without GPS from 3 s on; the vehicle ends where it thinks the
last way-point is.

Not one of `python -m benchmarks`: it takes minutes, and compares with nothing but its target, all
of the runs.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import multiprocessing
import sys
import time

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import chdtri

SCENARIOS = ("hop", "hills", "valley")
SEEDS = 20


@dataclasses.dataclass(frozen=True)
class Result:
    """Results of one run."""

    scenario: str
    terrain: str
    seed: int
    reached: bool
    ending: str
    level_rms: float
    """Error of the estimated position across the ground, m."""
    upright_rms: float
    largest: float
    missed: float
    """True distance to the last way-point, m."""
    sink_speed: float
    level_speed: float
    """Speed at the first contact, m/s; NaN without a contact."""
    duration: float
    """Simulated time, s."""
    consistent: float
    """Share of samples whose normalised squared position error (NEES) is within its 95 % bound."""


def fly(job: tuple[str, int, float]) -> Result:
    """Return the result of one scenario with one seed."""
    from rfly_amphibious.scenarios.scenario import Scenario
    from rfly_amphibious.simulation.events import SensorOff
    from rfly_lab.runs.closed_loop import run_closed_loop

    name, seed, gps_off = job
    scenario = Scenario.load(name).with_seed(seed)
    if math.isfinite(gps_off):
        scenario = dataclasses.replace(
            scenario, events=(*scenario.events, SensorOff(gps_off, "gps", None))
        )
    closed_loop = run_closed_loop(scenario)
    run = closed_loop.run

    # what its estimate was worth
    goal = np.array(scenario.legs[-1].points[-1][:2])
    nees = closed_loop.position_nees()
    touchdown = run.touchdowns[-1] if run.touchdowns else None
    return Result(
        name,
        "level ground" if scenario.terrain is None else scenario.terrain.name,
        seed,
        run.reached,
        run.ending,
        *closed_loop.rms_error(),
        closed_loop.largest_error(),
        float(np.linalg.norm(run.final.position[:2] - goal)),
        np.nan if touchdown is None else touchdown.sink_speed,
        np.nan if touchdown is None else touchdown.level_speed,
        run.duration,
        float((nees[np.isfinite(nees)] < chdtri(3, 0.05)).mean()),
    )


def table(results: list[Result]) -> Table:
    """Return a table with a row for each scenario: its successes, and mean and largest figures."""
    summary = Table(
        "scenario",
        "terrain",
        "done",
        "error, level m",
        "upright m",
        "end missed m",
        "sinks m/s",
        "across m/s",
        "s",
        "NEES in",
    )
    for name in dict.fromkeys(result.scenario for result in results):
        rows = [result for result in results if result.scenario == name]

        def figures(attribute: str, rows: list[Result] = rows) -> str:
            """Return the mean and the largest value of an attribute."""
            values = [getattr(row, attribute) for row in rows]
            return f"{np.nanmean(values):.2f} … {np.nanmax(values):.2f}"

        summary.add_row(
            name,
            rows[0].terrain,
            f"{sum(row.reached for row in rows)} of {len(rows)}",
            *map(figures, ("level_rms", "upright_rms", "missed", "sink_speed", "level_speed")),
            f"{np.mean([row.duration for row in rows]):.0f}",
            f"{np.mean([row.consistent for row in rows]):.0%}",
        )
    return summary


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.closed_loop", description=__doc__)
    parser.add_argument(
        "scenarios",
        nargs="*",
        metavar="SCENARIO",
        help=f"scenarios, by default {' '.join(SCENARIOS)}",
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds of each scenario")
    parser.add_argument("--first-seed", type=int, default=1, help="first seed")
    parser.add_argument(
        "--gps-off",
        type=float,
        default=math.inf,
        metavar="SECONDS",
        help="time from which there is no GPS, s",
    )
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    jobs = [
        (name, seed, options.gps_off) for name in options.scenarios or SCENARIOS for seed in seeds
    ]

    # run all, two at a time
    begin = time.perf_counter()
    results = []

    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for result in pool.imap_unordered(fly, jobs):
            results.append(result)
            print(
                f"{len(results)} of {len(jobs)}: {result.scenario} {result.seed}: {result.ending}",
                file=sys.stderr,
            )

    # the table, in the order of the jobs
    results.sort(key=lambda result: jobs.index((result.scenario, result.seed, options.gps_off)))
    console = Console() if sys.stdout.isatty() else Console(width=160)
    console.print(table(results))
    console.print(
        "mean … largest; errors are root mean squares over a run, of the estimate against the truth"
    )

    for result in results:
        if not result.reached:
            console.print(f"{result.scenario}, seed {result.seed}: {result.ending}")

    reached = sum(result.reached for result in results)
    console.print(f"{reached} of {len(results)} done; {time.perf_counter() - begin:.0f} s")
    return 0 if reached == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
