"""Table of a run's samples, as CSV and Parquet files (for pandas, Polars, DuckDB; extra `log`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rfly_amphibious.scenarios.recorder import ScenarioRun
from rfly_amphibious.vehicle import state_layout as at
from rfly_common.arrays import Floats
from rfly_common.imports import require


def table(run: ScenarioRun) -> tuple[list[str], Floats]:
    """(names, (k, names)): time, state (`state_layout.state_names`), loads, tyre forces, thrusts,
    power, wind.
    """
    rotors = run.scenario.params.rotors
    wheels = run.scenario.params.wheels
    out = run.outputs
    names = ["time_s", *at.state_names(rotors, len(wheels))]
    for quantity in ("wheel_load", "tyre_force_x", "tyre_force_y"):
        names += [f"{quantity}_{wheel}_n" for wheel in wheels]
    names += [f"thrust_{rotor + 1}_n" for rotor in range(rotors)]
    names += [
        "rotor_power_w",
        "wheel_power_w",
        "clearance_m",
        *(f"wind_{axis}_mps" for axis in "xyz"),
    ]
    numbers = np.column_stack(
        [
            run.time,
            run.x,
            out.wheel_load,
            out.tyre_force_x,
            out.tyre_force_y,
            out.thrust,
            out.rotor_power,
            run.wheel_power,
            out.clearance,
            run.wind,
        ]
    )
    return names, numbers


def modes(run: ScenarioRun) -> list[str]:
    """The mode in which each sample came about: one that begins at a sample shows from the next on."""
    begins = np.array([time for time, _ in run.modes])
    index = np.searchsorted(begins, run.time, side="left") - 1
    return [run.modes[mode][1].value for mode in index.clip(0).tolist()]


def write_csv(run: ScenarioRun, path: Path) -> None:
    """One row a sample: the mode, then the columns of `table`."""
    names, numbers = table(run)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(",".join(["mode", *names]) + "\n")
        for mode, row in zip(modes(run), numbers.tolist(), strict=True):
            file.write(mode + "," + ",".join(f"{value:.9g}" for value in row) + "\n")


def check_parquet() -> None:
    """Raises ConfigError that says what to install where Parquet files can't be written."""
    require("pyarrow", "writing Parquet files")


def write_parquet(run: ScenarioRun, path: Path) -> None:
    """One row a sample, in double precision: the columns of a CSV file.

    The file's metadata say scenario, vehicle, seed and ending. Raises ConfigError without pyarrow.
    """
    check_parquet()
    import pyarrow
    from pyarrow import parquet

    names, numbers = table(run)
    columns = {"mode": pyarrow.array(modes(run)).dictionary_encode()}
    columns.update({name: pyarrow.array(numbers[:, n]) for n, name in enumerate(names)})
    scenario = run.scenario
    said = {
        "scenario": scenario.name,
        "vehicle": scenario.params.name,
        "seed": str(scenario.wind.seed),
        "ending": run.ending,
    }
    parquet.write_table(pyarrow.table(columns).replace_schema_metadata(said), path)
