"""Results of a sweep: one row a run, files, and a summary."""

from __future__ import annotations

import csv
import dataclasses
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rfly_amphibious.scenarios.recorder import ScenarioRun
from rfly_amphibious.scenarios.table_log import check_parquet
from rfly_amphibious.vehicle import state_layout as at
from rfly_common.errors import ConfigError


@dataclasses.dataclass(frozen=True)
class Result:
    """Of one run. Field names are the table's columns."""

    reached: bool
    """whether the scenario's end condition came true"""
    crashed: bool
    last_mode: str
    duration_s: float
    driven_m: float
    flown_m: float
    rotor_energy_j: float
    wheel_energy_j: float
    energy_j: float
    touchdowns: int
    touchdown_sink_mps: float
    """of the hardest one; NaN without"""
    touchdown_level_mps: float
    """across the ground, of the fastest one; NaN without"""
    largest_tilt_deg: float
    """between the body's upward axis and the vertical"""
    top_speed_mps: float
    largest_clearance_m: float
    """from the ground up to the lowest wheel"""
    largest_wheel_load_n: float
    end_x_m: float
    end_y_m: float
    end_z_m: float
    ending: str


def result_of(run: ScenarioRun) -> Result:
    """Of the run's samples (20 ms), its energy and its touchdowns."""
    driven, flown = run.distances()
    x, y = run.x[:, at.QUATERNION + 1], run.x[:, at.QUATERNION + 2]
    upright = 1.0 - 2.0 * (x * x + y * y)
    speed = np.linalg.norm(run.x[:, at.VELOCITY : at.VELOCITY + 3], axis=1)
    end_x, end_y, end_z = run.final.position.tolist()
    return Result(
        reached=run.reached,
        crashed=run.final.crashed,
        last_mode=run.modes[-1][1].value,
        duration_s=run.duration,
        driven_m=driven,
        flown_m=flown,
        rotor_energy_j=run.rotor_energy,
        wheel_energy_j=run.wheel_energy,
        energy_j=run.rotor_energy + run.wheel_energy,
        touchdowns=len(run.touchdowns),
        touchdown_sink_mps=max((t.sink_speed for t in run.touchdowns), default=math.nan),
        touchdown_level_mps=max((t.level_speed for t in run.touchdowns), default=math.nan),
        largest_tilt_deg=math.degrees(math.acos(min(1.0, max(-1.0, float(upright.min()))))),
        top_speed_mps=float(speed.max()),
        largest_clearance_m=float(run.outputs.clearance.max()),
        largest_wheel_load_n=float(run.outputs.wheel_load.max()),
        end_x_m=end_x,
        end_y_m=end_y,
        end_z_m=end_z,
        ending=run.ending,
    )


FIELDS = tuple(field.name for field in dataclasses.fields(Result))


def check_table(path: Path) -> None:
    """Raises ConfigError for a name that no table can have, and where a library is missing."""
    ending = path.suffix.lower()
    if ending not in (".csv", ".parquet"):
        raise ConfigError(f"{path}: tables can be written as .csv or .parquet, not {ending or 'without ending'!r}")
    if ending == ".parquet":
        check_parquet()


def write_results(combinations: Iterable[dict[str, Any]], results: Sequence[Result], path: Path) -> None:
    """One row a run: its number, the varied values by key, the fields of `Result`; .csv or .parquet."""
    check_table(path)
    rows = [
        {"run": run, **values, **dataclasses.asdict(result)}
        for run, (values, result) in enumerate(zip(combinations, results, strict=True))
    ]
    if path.suffix.lower() == ".parquet":
        import pyarrow
        from pyarrow import parquet

        columns = {name: _column([row[name] for row in rows]) for name in rows[0]}
        parquet.write_table(pyarrow.table(columns), path)
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {name: f"{value:.9g}" if isinstance(value, float) else value for name, value in row.items()} for row in rows
        )


def _column(values: list[Any]) -> list[Any]:
    """Values that a file gives may be of several types, which a column of Parquet can't."""
    kinds = {type(value) for value in values}
    if kinds == {int, float}:
        return [float(value) for value in values]
    return values if len(kinds) == 1 else [str(value) for value in values]


class Spread(NamedTuple):
    """Of one column over all runs that have it."""

    name: str
    least: float
    median: float
    largest: float


def spreads(results: Sequence[Result]) -> list[Spread]:
    """Of every column of numbers; where no run has it (no touchdown), it is left out."""
    found = []
    for name in FIELDS:
        values = [getattr(result, name) for result in results]
        if isinstance(values[0], bool | str):
            continue
        numbers = np.array([value for value in values if not math.isnan(value)], float)
        if numbers.size:
            found.append(Spread(name, float(numbers.min()), float(np.median(numbers)), float(numbers.max())))
    return found
