# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Samples of a run as a table, in a CSV file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rfly_amphibious.vehicle import state_layout
from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError
from rfly_common.files import open_whole
from rfly_lab.runs.recorder import ScenarioRun

_UNSUPPORTED_FORMATS = (".npz", ".parquet")


def check_run_format(path: Path) -> None:
    """Raise ConfigError if the ending names a format in which no run is written."""
    ending = path.suffix.lower()
    if ending in _UNSUPPORTED_FORMATS:
        raise ConfigError(f"{path}: runs can be written as .csv or .mcap, not {ending!r}")


def table(run: ScenarioRun) -> tuple[list[str], Floats]:
    """Return the names of the columns, and their numbers (k, names).

    Time, state (`state_layout.state_names`), loads, tyre forces, thrusts, power, wind, forces of
    the suspension, slips and torques of the rotors.
    """
    rotors = run.scenario.params.rotors
    wheels = run.scenario.params.wheels
    out = run.outputs

    names = ["time_s", *state_layout.state_names(rotors, len(wheels))]
    for quantity in ("wheel_load", "tyre_force_x", "tyre_force_y"):
        names += [f"{quantity}_{wheel}_n" for wheel in wheels]
    names += [f"thrust_{rotor + 1}_n" for rotor in range(rotors)]
    names += ["rotor_power_w", "wheel_power_w", "clearance_m"]
    names += [f"wind_{axis}_mps" for axis in "xyz"]
    for quantity, unit in (
        ("spring_force", "_n"),
        ("damper_force", "_n"),
        ("slip_ratio", ""),
        ("slip_angle", "_rad"),
    ):
        names += [f"{quantity}_{wheel}{unit}" for wheel in wheels]
    names += [f"rotor_torque_{rotor + 1}_nm" for rotor in range(rotors)]

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
            out.spring_force,
            out.damper_force,
            out.slip_ratio,
            out.slip_angle,
            out.rotor_torque,
        ]
    )
    return names, numbers


def modes(run: ScenarioRun) -> list[str]:
    """Return the mode in which each sample came about.

    A mode that begins at a sample shows from the next sample.
    """
    begins = np.array([time for time, _ in run.modes])
    index = np.searchsorted(begins, run.time, side="left") - 1
    return [run.modes[mode][1].value for mode in index.clip(0).tolist()]


def write_csv(run: ScenarioRun, path: Path) -> None:
    """Write one row per sample: the mode, then the columns of `table`."""
    names, numbers = table(run)
    with open_whole(path) as file:
        file.write((",".join(["mode", *names]) + "\n").encode())
        for mode, row in zip(modes(run), numbers.tolist(), strict=True):
            line = mode + "," + ",".join(f"{value:.9g}" for value in row) + "\n"
            file.write(line.encode())
