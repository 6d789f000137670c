# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameter sweeps: many runs of one scenario, on all cores or a Dask cluster, to one table."""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.vehicle import state_layout
from rfly_common.config.marked_yaml import parse_yaml
from rfly_common.config.parameter_files import Change, KeyPath, parse_key_path
from rfly_common.errors import ConfigError
from rfly_common.files import Closing, read_regular, write_text
from rfly_common.threads.processes import in_parallel
from rfly_lab.runs.recorder import ScenarioRun
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.tiles.open_terrain import load_terrain


@dataclasses.dataclass(frozen=True)
class Result:
    """Result of one run. Field names are the table's columns."""

    reached: bool
    """True if the scenario's end condition came true."""

    crashed: bool
    last_mode: str
    duration_s: float
    driven_m: float
    flown_m: float
    rotor_energy_j: float
    wheel_energy_j: float
    energy_j: float
    battery_energy_j: float
    """Energy drawn from the battery, with all losses."""

    battery_charge: float
    """Charge of the battery at the end, 0 … 1."""

    touchdowns: int
    """Number of touchdowns."""

    touchdown_sink_mps: float
    """Sink rate of the hardest touchdown; NaN without one."""

    touchdown_level_mps: float
    """Speed across the ground of the fastest touchdown; NaN without one."""

    largest_tilt_deg: float
    """Angle between the body's upward axis and the vertical."""

    top_speed_mps: float
    largest_clearance_m: float
    """Height of the lowest wheel above the ground."""

    largest_wheel_load_n: float
    end_x_m: float
    end_y_m: float
    end_z_m: float
    estimate_error_m: float
    """Root mean square error of the estimated position across the ground; NaN without one."""

    ending: str
    """How and why the run ended, in one line."""


def result_of(run: ScenarioRun, estimate_error: float = math.nan) -> Result:
    """Return the result of a run's samples (20 ms), its energy and its touchdowns.

    `estimate_error`: that of the estimated position across the ground, m.
    """
    driven, flown = run.distances()
    x = run.x[:, state_layout.QUATERNION + 1]
    y = run.x[:, state_layout.QUATERNION + 2]
    upright = 1.0 - 2.0 * (x * x + y * y)
    speed = np.linalg.norm(run.x[:, state_layout.VELOCITY : state_layout.VELOCITY + 3], axis=1)
    least_upright = min(1.0, max(-1.0, float(upright.min())))
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
        battery_energy_j=run.battery_energy,
        battery_charge=run.charge,
        touchdowns=len(run.touchdowns),
        touchdown_sink_mps=max((t.sink_speed for t in run.touchdowns), default=math.nan),
        touchdown_level_mps=max((t.level_speed for t in run.touchdowns), default=math.nan),
        largest_tilt_deg=math.degrees(math.acos(least_upright)),
        top_speed_mps=float(speed.max()),
        largest_clearance_m=float(run.outputs.clearance.max()),
        largest_wheel_load_n=float(run.outputs.wheel_load.max()),
        end_x_m=end_x,
        end_y_m=end_y,
        end_z_m=end_z,
        estimate_error_m=estimate_error,
        ending=run.ending,
    )


FIELDS = tuple(field.name for field in dataclasses.fields(Result))
"""Names of the fields of a result."""


def check_table(path: Path) -> None:
    """Raise ConfigError unless the name is that of a CSV file."""
    ending = path.suffix.lower()
    if ending != ".csv":
        raise ConfigError(
            f"{path}: tables can be written as .csv, not {ending or 'without ending'!r}"
        )


SCENARIO_COLUMN = "scenario"
ESTIMATE_COLUMN = "estimate"
_OF_A_RUN = ("run", SCENARIO_COLUMN, ESTIMATE_COLUMN)
"""Columns before the varied values: the run's number, its scenario, whether it is by estimates."""


class ResultTable(Closing):
    """CSV file of a sweep: a row per run with its number, scenario, varied values and result.

    Rows are written as they come, so a sweep that is killed leaves them; `close` puts them in
    order. Varied values are written with all their digits: a row is enough to repeat its run.
    """

    def __init__(self, sweep: Sweep, path: Path) -> None:
        """Open the file. Raise ConfigError for another ending than .csv, OSError for the path."""
        check_table(path)
        self._path = path
        self._sweep = sweep
        self._combinations = list(sweep.combinations())
        self._rows: dict[int, str] = {}
        self._header = csv_line([*_OF_A_RUN, *self._combinations[0], *FIELDS])
        self._file = path.open("w", encoding="utf-8", newline="")
        self._file.write(self._header)
        self._file.flush()

    def add(self, run: int, result: Result) -> None:
        """Write the result of a run, given by its number."""
        own = run, self._sweep.source, self._sweep.estimate
        self._rows[run] = csv_line([*own, *self._combinations[run].values(), *_written(result)])
        self._file.write(self._rows[run])
        self._file.flush()

    def close(self) -> None:
        """Write the rows in the order of the runs."""
        self._file.close()
        rows = [self._rows[run] for run in sorted(self._rows)]
        if rows != list(self._rows.values()):
            write_text(self._path, self._header + "".join(rows))


def _written(result: Result) -> list[str]:
    """Return the fields of a result as a table has them."""
    values = dataclasses.astuple(result)
    return [f"{value:.9g}" if isinstance(value, float) else str(value) for value in values]


def csv_line(values: Sequence[Any]) -> str:
    """Return a line of a CSV file."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(values)
    return line.getvalue()


_MAX_TABLE_BYTES = 200_000_000
"""Largest table of a sweep, bytes: 100,000 runs."""


class TableRow(NamedTuple):
    """Facts of a run that a row of a table holds."""

    scenario: str
    changes: tuple[Change, ...]
    estimate: bool
    """True for a run by estimates."""

    fields: tuple[str, ...]
    """Fields of the result as written, in the order of FIELDS; empty if some are absent."""

    def differences(self, result: Result) -> list[str]:
        """Return the names of the fields that another result has otherwise."""
        both = zip(FIELDS, self.fields, _written(result), strict=False)
        return [name for name, old, new in both if old != new]


def read_row(path: Path, run: int) -> TableRow:
    """Return a run of a table, by its number. Raise ConfigError for another file or number.

    A spreadsheet may have saved the table, with a mark of UTF-8 and TRUE instead of True.
    """
    try:
        text = read_regular(path, _MAX_TABLE_BYTES).decode("utf-8-sig")
        table = csv.DictReader(io.StringIO(text, newline=""))
        names = list(table.fieldnames or ())
        rows = list(table)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; expected the table of a sweep") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{path}: no table of rfly sim sweep: {error}") from None

    if tuple(names[: len(_OF_A_RUN)]) != _OF_A_RUN:
        first = ",".join(_OF_A_RUN)
        raise ConfigError(f"{path}:1: no table of rfly sim sweep, which begins with {first}")
    named = [row for row in rows if row["run"] == str(run)]
    if len(named) > 1:
        raise ConfigError(
            f"{path}: {len(named)} rows of run {run}: expected the table of one sweep"
        )
    if not named or None in named[0].values():
        raise ConfigError(f"{path}: no run {run} among its {len(rows)} rows")
    row = {name: _as_written(cell) for name, cell in named[0].items()}
    estimate = row[ESTIMATE_COLUMN]
    if estimate not in ("True", "False"):
        raise ConfigError(
            f"{path}: run {run}: {ESTIMATE_COLUMN}: {estimate!r}, expected True or False"
        )

    changes = tuple(
        (parse_key_path(name), parse_yaml(row[name], f"{path}: run {run}: {name}").value)
        for name in names
        if name not in _OF_A_RUN and name not in FIELDS
    )
    fields = tuple(row[name] for name in FIELDS) if row.keys() >= set(FIELDS) else ()
    return TableRow(row[SCENARIO_COLUMN], changes, estimate == "True", fields)


def _as_written(cell: str) -> str:
    """Return a cell as a sweep writes it."""
    return cell.capitalize() if cell in ("TRUE", "FALSE") else cell


class Spread(NamedTuple):
    """Least, median and largest value of a column over all runs that have it."""

    name: str
    least: float
    median: float
    largest: float


def spreads(results: Sequence[Result]) -> list[Spread]:
    """Return the spread of every column of numbers, without those that no run has."""
    result = []
    for name in FIELDS:
        values = [getattr(each, name) for each in results]
        if isinstance(values[0], bool | str):
            continue
        numbers = np.array([value for value in values if not math.isnan(value)], float)
        if numbers.size:
            least = float(numbers.min())
            median = float(np.median(numbers))
            result.append(Spread(name, least, median, float(numbers.max())))
    return result


MAX_RUNS = 100_000
"""Most runs of a sweep."""


_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER}):({_NUMBER})(?::({_NUMBER}))?")

OnResult = Callable[[int, Result], None]
"""Called with the number of a run, from 0, and its result, in the order in which runs end."""


@dataclass(frozen=True)
class Variation:
    """Values that a key of a scenario, or of its vehicle (`vehicle.…`), takes in turn."""

    key: str
    path: KeyPath
    values: tuple[Any, ...]

    @classmethod
    def parse(cls, text: str) -> Variation:
        """Return the variation in `KEY=VALUE,VALUE,…`.

        A VALUE may be a range START:STOP or START:STOP:STEP, which ends before STOP. Raise
        ConfigError for any other text.
        """
        key, equals, values_text = text.partition("=")
        if not equals or not values_text.strip():
            raise ConfigError(f"{text!r}: expected KEY=VALUE,VALUE,… or KEY=START:STOP")
        path = parse_key_path(key.strip())
        values = tuple(
            value for part in values_text.split(",") for value in _values(part.strip(), text)
        )
        return cls(key.strip(), path, values)


def _values(part: str, text: str) -> Iterable[Any]:
    """Return the values of one part of a variation: a single value or a range."""
    if not part:
        raise ConfigError(f"{text!r}: a value between commas is missing")
    parts = _RANGE.fullmatch(part)
    if parts is None:
        value = parse_yaml(part, repr(text)).value
        if isinstance(value, dict | list):
            raise ConfigError(
                f"{text!r}: {part} is no single value; an element of a list is varied as KEY[0]"
            )

        return (value,)

    start, stop, step = (_number(number or "1") for number in parts.groups())
    steps = (stop - start) / step if step else 0.0
    count = math.ceil(steps - 1e-9) if math.isfinite(steps) else 0
    if count < 1:
        raise ConfigError(
            f"{text!r}: {part} is empty; expected START:STOP:STEP that gets from START to STOP"
        )
    if count > MAX_RUNS:
        raise ConfigError(f"{text!r}: {count} values, allowed: up to {MAX_RUNS}")
    values = (start + n * step for n in range(count))
    return [value if isinstance(value, int) else float(f"{value:.12g}") for value in values]


def _number(text: str) -> int | float:
    """Return an int or a float."""
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)


@dataclass(frozen=True)
class Sweep:
    """Every combination of some values; the last variation changes fastest."""

    source: str
    """Name or file of the scenario."""

    variations: tuple[Variation, ...]
    scenarios: tuple[Scenario, ...]
    """Checked scenario of each run, without its map."""

    terrains: tuple[HeightMap | None, ...]
    """All maps."""

    terrain_of: tuple[int, ...]
    """Index in `terrains` of each run's map."""

    estimate: bool = False
    """True for runs by estimates, False for those of the pilot who sees the truth."""

    @classmethod
    def load(
        cls,
        source: str,
        variations: Sequence[Variation],
        map_folders: Sequence[str] = (),
        estimate: bool = False,
    ) -> Sweep:
        """Read and check the scenario with every combination, before anything runs.

        `estimate`: close the loop with sensors, estimator and controllers. Raise ConfigError that
        names the combination and what is allowed.
        """
        _check_variations(variations)
        load_map = functools.lru_cache(maxsize=None)(load_terrain)
        scenarios: list[Scenario] = []
        terrains: list[HeightMap | None] = []
        terrain_of: list[int] = []

        for values in itertools.product(*(variation.values for variation in variations)):
            changes = [
                (variation.path, value) for variation, value in zip(variations, values, strict=True)
            ]
            try:
                scenario = Scenario.load(
                    source,
                    map_folders,
                    changes,
                    lambda name, folders: load_map(name, tuple(map(str, folders))),
                )
            except ConfigError as error:
                combination = ", ".join(
                    f"{v.key}={value}" for v, value in zip(variations, values, strict=True)
                )
                text = f"with {combination}: {error}" if combination else str(error)
                raise ConfigError(text) from None

            # each map once
            known = [n for n, terrain in enumerate(terrains) if terrain is scenario.terrain]
            if not known:
                terrains.append(scenario.terrain)
            terrain_of.append(known[0] if known else len(terrains) - 1)
            scenarios.append(replace(scenario, terrain=None))

        return cls(
            source,
            tuple(variations),
            tuple(scenarios),
            tuple(terrains),
            tuple(terrain_of),
            estimate,
        )

    def __len__(self) -> int:
        return len(self.scenarios)

    def combinations(self) -> Iterator[dict[str, Any]]:
        """Yield the values of each run by key, in the order of the runs."""
        for values in itertools.product(*(variation.values for variation in self.variations)):
            yield {
                variation.key: value
                for variation, value in zip(self.variations, values, strict=True)
            }


def _check_variations(variations: Sequence[Variation]) -> None:
    """Raise ConfigError if two variations change the same value, or there are too many runs."""
    for variation, other in itertools.combinations(variations, 2):
        short, long = sorted((variation.path, other.path), key=len)
        # a vehicle and a parameter of it may both vary
        if long[: len(short)] == short and (short != ("vehicle",) or long == short):
            raise ConfigError(
                f"{variation.key} and {other.key} are varied both, which change the same value"
            )
    runs = math.prod(len(variation.values) for variation in variations)
    if runs > MAX_RUNS:
        raise ConfigError(f"{runs} runs, allowed: up to {MAX_RUNS}")


def run_sweep(
    sweep: Sweep, jobs: int | None = None, on_result: OnResult | None = None
) -> list[Result]:
    """Run a sweep in `jobs` processes; return its results in the order of runs.

    `jobs`: by default one per core. The results do not depend on the number of jobs. `jobs` 1: in
    this process.
    """
    return _run_all(sweep, on_result, jobs=jobs)


def run_sweep_on_dask(
    sweep: Sweep, cluster: Any, on_result: OnResult | None = None
) -> list[Result]:
    """Run a sweep on a Dask cluster; return its results in the order of runs, as `run_sweep` does.

    `cluster`: the address of its scheduler, or a `Client` or `Cluster` of distributed. Its workers
    need this package; maps are sent to them. Raise ConfigError if no scheduler answers.
    """
    return _run_all(sweep, on_result, dask=cluster)


def _run_all(sweep: Sweep, on_result: OnResult | None, **where: Any) -> list[Result]:
    """Return the results of all runs."""
    tasks = list(zip(sweep.scenarios, sweep.terrain_of, itertools.repeat(sweep.estimate)))
    report = on_result or (lambda run, result: None)
    if all(terrain is None for terrain in sweep.terrains):
        # a cluster may get its workers later: there is no map for them to hold
        run = functools.partial(_run, sweep.terrains)
        return in_parallel(run, tasks, report, **where)
    return in_parallel(_run, tasks, report, sweep.terrains, **where)


def _run(
    terrains: tuple[HeightMap | None, ...], scenario: Scenario, terrain: int, estimate: bool
) -> Result:
    """Return the result of one run."""
    from rfly_lab.runs.closed_loop import run_closed_loop
    from rfly_lab.runs.run import run_scenario

    whole = replace(scenario, terrain=terrains[terrain])
    if not estimate:
        return result_of(run_scenario(whole))
    closed = run_closed_loop(whole)
    return result_of(closed.run, closed.rms_error()[0])
