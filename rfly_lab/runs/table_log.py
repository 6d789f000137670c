# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Samples of a run as a table, in a CSV file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rfly_amphibious.vehicle import state_layout
from rfly_common.arrays import Floats
from rfly_common.files import open_whole
from rfly_lab.runs.recorder import ScenarioRun


def table(run: ScenarioRun) -> tuple[list[str], Floats]:
    """Return the names of the columns, and their numbers (k, names).

    Time, state (`state_layout.state_names`), loads, tyre forces, thrusts, power, wind, forces of
    the suspension, slips and torques of the rotors.
    """
    rotors = run.scenario.params.rotors
    wheels = run.scenario.params.wheels
    out = run.outputs

    def by_wheel(quantity: str, unit: str) -> list[str]:
        return [f"{quantity}_{wheel}{unit}" for wheel in wheels]

    def by_rotor(quantity: str, unit: str) -> list[str]:
        return [f"{quantity}_{rotor + 1}{unit}" for rotor in range(rotors)]

    columns = (
        (["time_s"], run.time),
        (state_layout.state_names(rotors, len(wheels)), run.x),
        (by_wheel("wheel_load", "_n"), out.wheel_load),
        (by_wheel("tyre_force_x", "_n"), out.tyre_force_x),
        (by_wheel("tyre_force_y", "_n"), out.tyre_force_y),
        (by_rotor("thrust", "_n"), out.thrust),
        (["rotor_power_w"], out.rotor_power),
        (["wheel_power_w"], run.wheel_power),
        (["clearance_m"], out.clearance),
        ([f"wind_{axis}_mps" for axis in "xyz"], run.wind),
        (by_wheel("spring_force", "_n"), out.spring_force),
        (by_wheel("damper_force", "_n"), out.damper_force),
        (by_wheel("slip_ratio", ""), out.slip_ratio),
        (by_wheel("slip_angle", "_rad"), out.slip_angle),
        (by_rotor("rotor_torque", "_nm"), out.rotor_torque),
    )
    names, numbers = zip(*columns, strict=True)
    return [name for group in names for name in group], np.column_stack(numbers)


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
