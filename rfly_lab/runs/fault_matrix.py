# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fault matrix: what the vehicle does when one part fails, by part, kind of fault and mode.

Each case is flown, or driven, by estimates: a short scenario on level ground in a light wind, with
one fault that begins in one of the modes. In flight each kind of fault is tried. In the other modes
there are those that lie without a sign, and those of the parts that move the vehicle there. A row
of the table is one case with one seed. All cases of one seed come before those of the next, so a
matrix that was interrupted has whole seeds.
"""

from __future__ import annotations

import csv
import dataclasses
import enum
import io
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.simulation.faults import Fault, FaultKind
from rfly_common.config.checks import check_choice
from rfly_common.errors import ConfigError
from rfly_common.files import Closing, read_regular, write_text
from rfly_common.threads.processes import in_parallel
from rfly_lab.runs.closed_loop import ClosedLoopRun, run_closed_loop, warm_up
from rfly_lab.runs.recorder import STANDING_SPEED
from rfly_lab.runs.sweep import check_table, csv_line

MAX_TABLE_BYTES = 100_000_000
"""Size of the largest table that is read, bytes."""
HEIGHT = 2.0
"""Commanded height of the flights, m."""

FLOWN = """version: 1
vehicle: scale
wind: {mean_mps: [2, 1, 0], gust_sigma_mps: [0.5, 0.5, 0.2]}
mission:
  fly_speed_mps: 3
  items:
    - {mode: takeoff, height_m: 2}
    - {mode: waypoint, position_m: [4, 0], height_m: 2}
    - {mode: land}
end: {when: standing_after_landing, time_s: 25}
"""
"""Scenario of the flights."""

DRIVEN = """version: 1
vehicle: scale
wind: {mean_mps: [2, 1, 0], gust_sigma_mps: [0.5, 0.5, 0.2]}
mission:
  items:
    - {mode: waypoint, position_m: [8, 0]}
    - {mode: waypoint, position_m: [12, 3]}
end: {when: mission_done, time_s: 16}
"""
"""Scenario of the drives."""

MOST_NEES = 50.0
"""Goal: largest 95th percentile of the position's normalised estimation error squared."""

MOST_ABOVE = 5.0
"""Goal: largest true height above the commanded one, m."""

MOST_SINK = 1.2
"""Goal: largest speed downwards at a touch-down, m/s."""

MOST_ACROSS = 1.0
"""Goal: largest speed across the ground at a touch-down, m/s."""

MOST_NAMING = 2.0
"""Goal: longest time until the faulty part is named, s."""


class Phase(enum.Enum):
    """Part of the way in which the fault begins."""

    TAKEOFF = "take-off"
    FLIGHT = "flight"
    LANDING = "landing"
    DRIVE = "drive"


_BEGINS = {Phase.TAKEOFF: 3.6, Phase.FLIGHT: 6.0, Phase.LANDING: 11.0, Phase.DRIVE: 3.0}
"""Times at which faults begin, s.

The vehicle lifts off at 3.2 s and flies from 4 s on; LAND is from about 10 to 14 s.
"""

_ALL = tuple(Phase)
_AIRBORNE = (Phase.TAKEOFF, Phase.FLIGHT, Phase.LANDING)
_IN_FLIGHT = (Phase.FLIGHT,)
_IN_DRIVE = (Phase.DRIVE,)
_ON_THE_WAY = (Phase.FLIGHT, Phase.DRIVE)

_OFF = FaultKind.OFF
_STUCK = FaultKind.STUCK
_BIASED = FaultKind.BIASED
_NOISY = FaultKind.NOISY
_DELAYED = FaultKind.DELAYED
_WRONG = FaultKind.WRONG
_PARTIAL = FaultKind.PARTIAL

_Row = tuple[str, FaultKind, tuple[float, ...], str, tuple[Phase, ...]]

_ROWS: tuple[_Row, ...] = (
    # part, kind, value in SI units, quantity, phases
    ("imu", _OFF, (), "", (Phase.FLIGHT, Phase.DRIVE)),
    ("imu", _STUCK, (), "", _ALL),
    ("imu", _BIASED, (0.0, 0.05, 0.0), "rates", _ALL),
    ("imu", _NOISY, (0.1,), "rates", _IN_FLIGHT),
    ("imu", _DELAYED, (0.05,), "", _IN_FLIGHT),
    ("imu", _WRONG, (0.0,), "rates", _IN_FLIGHT),
    ("gps", _OFF, (), "", _IN_FLIGHT),
    ("gps", _STUCK, (), "", (Phase.FLIGHT, Phase.LANDING, Phase.DRIVE)),
    ("gps", _BIASED, (30.0, 0.0, 0.0), "position", (Phase.FLIGHT, Phase.LANDING, Phase.DRIVE)),
    ("gps", _NOISY, (10.0,), "position", _IN_FLIGHT),
    ("gps", _DELAYED, (1.0,), "", _IN_FLIGHT),
    ("gps", _WRONG, (100.0, 0.0, 20.0), "position", _IN_FLIGHT),
    ("magnetometer", _OFF, (), "", _IN_FLIGHT),
    ("magnetometer", _STUCK, (), "", _IN_FLIGHT),
    ("magnetometer", _BIASED, (0.0, 2.0e-5, 0.0), "", _ON_THE_WAY),
    ("magnetometer", _NOISY, (2.0e-5,), "", _IN_FLIGHT),
    ("magnetometer", _DELAYED, (1.0,), "", _IN_FLIGHT),
    ("magnetometer", _WRONG, (2.0e-5, 0.0, -4.0e-5), "", _IN_FLIGHT),
    ("barometer", _OFF, (), "", _IN_FLIGHT),
    ("barometer", _STUCK, (), "", _AIRBORNE),
    ("barometer", _BIASED, (60.0,), "", _AIRBORNE),
    ("barometer", _NOISY, (60.0,), "", _IN_FLIGHT),
    ("barometer", _DELAYED, (1.0,), "", _IN_FLIGHT),
    ("barometer", _WRONG, (1.0e5,), "", _IN_FLIGHT),
    ("encoders", _OFF, (), "", _ON_THE_WAY),
    ("encoders", _STUCK, (), "", _ON_THE_WAY),
    ("encoders", _BIASED, (50.0,), "rotor_rate", _IN_FLIGHT),
    ("encoders", _BIASED, (0.0, 0.0, 50.0, 0.0, 0.0, 0.0), "rotor_rate", (Phase.TAKEOFF,)),
    ("encoders", _BIASED, (5.0,), "wheel_rate", _IN_DRIVE),
    ("encoders", _NOISY, (20.0,), "rotor_rate", _IN_FLIGHT),
    ("encoders", _DELAYED, (0.5,), "", _IN_FLIGHT),
    ("encoders", _WRONG, (100.0,), "rotor_rate", _IN_FLIGHT),
    ("height", _OFF, (), "", _IN_FLIGHT),
    ("height", _STUCK, (), "", _AIRBORNE),
    ("height", _BIASED, (1.0,), "", _AIRBORNE),
    ("height", _NOISY, (0.5,), "", _IN_FLIGHT),
    ("height", _DELAYED, (0.5,), "", _IN_FLIGHT),
    ("height", _WRONG, (30.0,), "", _IN_FLIGHT),
    ("wheel_loads", _OFF, (), "", _IN_FLIGHT),
    ("wheel_loads", _STUCK, (), "", (Phase.TAKEOFF, Phase.FLIGHT)),
    ("wheel_loads", _BIASED, (50.0,), "", _IN_FLIGHT),
    ("wheel_loads", _NOISY, (50.0,), "", _IN_FLIGHT),
    ("wheel_loads", _DELAYED, (0.5,), "", _IN_FLIGHT),
    ("wheel_loads", _WRONG, (75.0,), "", _IN_FLIGHT),
    ("rotor_3", _OFF, (), "", _AIRBORNE),
    ("rotor_3", _STUCK, (350.0,), "", _AIRBORNE),
    ("rotor_3", _PARTIAL, (0.5,), "", _AIRBORNE),
    ("drive_fl", _OFF, (), "", _IN_DRIVE),
    ("drive_fl", _STUCK, (5.0,), "", _IN_DRIVE),
    ("drive_fl", _PARTIAL, (0.5,), "", _IN_DRIVE),
    ("brake_fl", _STUCK, (5.0,), "", _IN_DRIVE),
    ("steering", _STUCK, (0.3,), "", _IN_DRIVE),
    ("steering", _BIASED, (0.1,), "", _IN_DRIVE),
    ("steering", _PARTIAL, (0.5,), "", _IN_DRIVE),
    ("battery", _OFF, (), "", _ON_THE_WAY),
    ("battery", _BIASED, (0.1,), "resistance", _IN_FLIGHT),
    ("battery", _PARTIAL, (11.0 / 12.0,), "cells", _IN_FLIGHT),
    ("battery_gauge", _OFF, (), "", _IN_FLIGHT),
    ("battery_gauge", _STUCK, (), "", _IN_FLIGHT),
    ("battery_gauge", _BIASED, (-0.5,), "", _IN_FLIGHT),
    ("battery_gauge", _WRONG, (0.01,), "", _IN_FLIGHT),
    ("link", _OFF, (), "", _ON_THE_WAY),
    ("link", _DELAYED, (1.0,), "", _ON_THE_WAY),
    ("link", FaultKind.INTERMITTENT, (0.9,), "", _ON_THE_WAY),
)
"""Faults of the matrix.

A bias of 60 Pa is 5 m, and 50 N are two thirds of a wheel's load. Of the battery one cell of twelve
is lost, or its resistance of 0.015 Ω grows by 0.1 Ω.
"""

UNSEEN: dict[tuple[str, ...], str] = {
    (
        "height",
        "biased",
    ): "over ground of unknown height a step of the reading is one of the ground",
    ("battery", "biased"): "only the charge is measured, and the rotors still reach their speeds",
    ("battery", "partial"): "only the charge is measured, and the rotors still reach their speeds",
    ("drive_fl", "off"): "at the torques of this drive its wheel slips by less than 1 % otherwise",
    ("drive_fl", "partial"): "as a motor that is off",
}
"""Part and kind of faults that nothing aboard can tell from a sound part, with the reason."""

HELPLESS: dict[tuple[str, ...], str] = {
    ("battery", "off", "flight"): "without power it falls, unsteered: from 2 m it hits the "
    "ground at 6.3 m/s",
}
"""Part, kind and mode of faults that no controller can survive, with the reason."""


@dataclass(frozen=True)
class Case:
    """One part that fails in one way in one phase."""

    phase: Phase
    fault: Fault

    @property
    def key(self) -> tuple[str, str, str]:
        """Part, kind and phase in words: no two cases have the same."""
        return self.fault.part, self.fault.kind.value, self.phase.value

    def scenario(self, seed: int) -> Scenario:
        """Return the case's scenario with a seed of wind and noise."""
        text = DRIVEN if self.phase is Phase.DRIVE else FLOWN
        made = Scenario.parse(text.encode(), f"fault matrix, {self.phase.value}")
        self.fault.check(made.params)
        return dataclasses.replace(made.with_seed(seed), events=(self.fault,))


def all_cases() -> tuple[Case, ...]:
    """Return the cases of the whole matrix."""
    return tuple(
        Case(phase, Fault(_BEGINS[phase], part, kind, value, quantity))
        for part, kind, value, quantity, phases in _ROWS
        for phase in phases
    )


def chosen_cases(
    parts: Sequence[str] = (), kinds: Sequence[str] = (), phases: Sequence[str] = ()
) -> tuple[Case, ...]:
    """Return the cases of these parts, kinds and phases; none given: all of them.

    Raise ConfigError for a word that no case has, or if no case is left.
    """
    cases = all_cases()
    chosen = cases
    for number, (field, words) in enumerate(
        (("part", parts), ("kind", kinds), ("mode", phases)),
    ):
        for word in words:
            check_choice(field, word, sorted({case.key[number] for case in cases}))
        chosen = tuple(case for case in chosen if not words or case.key[number] in words)
    if not chosen:
        raise ConfigError("no case of the matrix has these parts, kinds and modes together")
    return chosen


class Outcome(enum.Enum):
    """End of a run of the matrix."""

    REACHED = "reached"
    """It reached its end as without the fault."""

    STOOD = "landed"
    """It stands on its wheels, elsewhere or earlier than it should."""

    LOST = "lost"
    """It crashed, or was not down at the end of the run."""


@dataclass(frozen=True)
class CaseResult:
    """Result of a case with one seed. Field names are the table's columns."""

    part: str
    kind: str
    mode: str
    """Phase in which the fault begins."""

    seed: int
    fault: str
    """Fault in words, with its value."""

    reaction: str
    """Modes after the begin of the fault, one after the other."""

    named: str
    """First text of the vehicle's log that names the part; empty: none."""

    named_after_s: float
    """Time from the first wrong reading, at which the fault shows, until then; NaN: never."""

    outcome: str
    """Outcome in a word."""

    sink_mps: float
    """Sink rate of the hardest touch-down after the fault; NaN without one."""

    across_mps: float
    """Speed across the ground of the fastest one."""

    above_m: float
    """Largest true height above the commanded one after the fault; NaN for drives."""

    nees_95: float
    """95th percentile of the position's NEES after the fault; NaN without an estimate."""

    said_lost: bool
    """True if the mode became ABORT."""

    ending: str
    """How and why the run ended, in one line."""


_FIELDS = tuple(field.name for field in dataclasses.fields(CaseResult))


def fly_case(case: Case, seed: int) -> CaseResult:
    """Fly or drive a case with a seed, and return its result."""
    return result_of_case(case, seed, run_closed_loop(case.scenario(seed)))


def result_of_case(case: Case, seed: int, closed: ClosedLoopRun) -> CaseResult:
    """Return the result of a case's run."""
    run = closed.run
    fault = case.fault
    begin = fault.time

    # what the vehicle did and said
    reaction = [mode.value for time, mode in run.modes if time >= begin]
    name = fault.part.replace("_", " ") if fault.part.startswith("rotor") else fault.part
    named = next((f for f in closed.findings if f.part == name and f.time >= begin), None)
    if named is None:  # a reason to abort that is the part's alone
        named = next((f for f in closed.findings if f.part == "ABORT" and f.time >= begin), None)
        if named is not None and fault.part not in named.text.lower():
            named = None

    # what became of it
    said_lost = any(mode is Mode.ABORT and time >= begin for time, mode in run.modes)
    after = run.time >= begin
    touchdowns = [touch for touch in run.touchdowns if touch.time >= begin]
    nees = closed.position_nees()[after]
    nees = nees[np.isfinite(nees)]
    above = float((run.position[after, 2] - run.position[0, 2]).max(initial=-HEIGHT)) - HEIGHT
    return CaseResult(
        *case.key,
        seed=seed,
        fault=str(fault),
        reaction=", ".join(reaction) or run.modes[-1][1].value,
        named="" if named is None else named.text,
        named_after_s=math.nan if named is None else named.time - _shows_at(fault, closed),
        outcome=_outcome(closed, said_lost).value,
        sink_mps=max((touch.sink_speed for touch in touchdowns), default=math.nan),
        across_mps=max((touch.level_speed for touch in touchdowns), default=math.nan),
        above_m=math.nan if case.phase is Phase.DRIVE else above,
        nees_95=float(np.percentile(nees, 95)) if nees.size else math.nan,
        said_lost=said_lost,
        ending=run.ending,
    )


def _shows_at(fault: Fault, closed: ClosedLoopRun) -> float:
    """Return the time, s, of the first reading that a fault makes wrong.

    Load cells that are stuck in the air show no load, which is right until the next touch-down.
    """
    run = closed.run
    if fault.part != "wheel_loads" or fault.kind is not FaultKind.STUCK:
        return fault.time
    after = run.time >= fault.time
    held = run.outputs.wheel_load[int(np.argmax(after))]
    wrong = after & (np.abs(run.outputs.wheel_load - held) > 0.0).any(axis=1)
    return float(run.time[int(np.argmax(wrong))]) if wrong.any() else fault.time


def _outcome(closed: ClosedLoopRun, said_lost: bool) -> Outcome:
    """Return how a run ended; one that was aborted has not reached its end."""
    run = closed.run
    if run.reached and not said_lost:
        return Outcome.REACHED
    speed = float(np.linalg.norm(run.final.velocity))
    stands = bool((run.outputs.wheel_load[-1] > 0.0).all()) and speed < STANDING_SPEED
    return Outcome.STOOD if stands and not run.final.crashed else Outcome.LOST


# tables


class MatrixTable(Closing):
    """CSV file of a matrix, a row per case and seed, which goes on with the rows that it has."""

    def __init__(self, path: Path | None) -> None:
        """Open a file or make one; None: keep the results without a file.

        Raise ConfigError for a file that is no such table.
        """
        self._path = path
        self._file: TextIO | None = None
        self.results: dict[tuple[str, ...], CaseResult] = {}
        """Results by part, kind, mode and seed."""

        if path is None:
            return
        check_table(path)
        if path.exists():
            self.results = {_key(result): result for result in read_matrix(path)}
            self._write_all()  # without the rest of a row that was cut off
        else:
            write_text(path, csv_line(_FIELDS))
        self._file = path.open("a", encoding="utf-8", newline="")

    def lacks(self, case: Case, seed: int) -> bool:
        """Return whether a case has no result with a seed."""
        return (*case.key, str(seed)) not in self.results

    def add(self, result: CaseResult) -> None:
        """Write a result."""
        self.results[_key(result)] = result
        if self._file is not None:
            self._file.write(_line(result))
            self._file.flush()

    def close(self) -> None:
        """Write the rows in the order of the cases and seeds."""
        if self._file is not None:
            self._file.close()
            self._write_all()

    def in_order(self) -> list[CaseResult]:
        """Return the results in the order of the matrix, then of the seeds."""
        places = {case.key: place for place, case in enumerate(all_cases())}
        return sorted(
            self.results.values(),
            key=lambda each: (places.get((each.part, each.kind, each.mode), -1), each.seed),
        )

    def _write_all(self) -> None:
        assert self._path is not None
        write_text(self._path, csv_line(_FIELDS) + "".join(map(_line, self.in_order())))


def _key(result: CaseResult) -> tuple[str, ...]:
    return result.part, result.kind, result.mode, str(result.seed)


def _line(result: CaseResult) -> str:
    """Return a result's line of the table."""
    return csv_line(
        [
            f"{value:.4g}" if isinstance(value, float) else value
            for value in dataclasses.astuple(result)
        ]
    )


_READERS: dict[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "bool": lambda text: text == "True",
    "str": str,
}
"""Readers of the table's cells, by the type of their field."""


def read_matrix(path: Path) -> list[CaseResult]:
    """Return the results of a table; a last row that was cut off is left out.

    Raise ConfigError for a file that is no such table.
    """
    readers = [_READERS[str(field.type)] for field in dataclasses.fields(CaseResult)]
    try:
        text = read_regular(path, MAX_TABLE_BYTES).decode()
        header, *rows = csv.reader(io.StringIO(text, newline=""))
        if tuple(header) != _FIELDS:
            raise ValueError("its first line has other columns")
        if rows and not text.endswith("\n"):
            rows.pop()
        return [
            CaseResult(*(read(cell) for read, cell in zip(readers, row, strict=True)))
            for row in rows
        ]
    except (UnicodeDecodeError, csv.Error, ValueError) as error:
        raise ConfigError(f"{path}: no table of rfly sim faults: {error}") from None


def missing_runs(
    cases: Iterable[Case], seeds: int, table: MatrixTable
) -> Iterator[tuple[Case, int]]:
    """Yield the cases and seeds that a table lacks, all cases of one seed after those before."""
    kept = tuple(cases)
    for seed in range(seeds):
        yield from ((case, seed) for case in kept if table.lacks(case, seed))


def run_matrix(
    runs: Sequence[tuple[Case, int]],
    jobs: int | None = None,
    on_result: Callable[[CaseResult], None] | None = None,
) -> list[CaseResult]:
    """Fly cases with seeds in `jobs` processes (None: one per core); return their results."""
    report = on_result or (lambda result: None)
    return in_parallel(fly_case, runs, lambda _, each: report(each), jobs=jobs, set_up=get_ready)


def get_ready() -> None:
    """Compile or load everything that the runs need."""
    warm_up(Scenario.parse(DRIVEN.encode(), "drive"))
