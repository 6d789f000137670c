"""Runs of scenarios as tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rfly_amphibious import state_layout as at
from rfly_amphibious.scenario_run import ScenarioRun


def write_csv(run: ScenarioRun, path: Path) -> None:
    """One row a sample: mode, time, state (`state_layout.state_names`), loads, tyre forces, thrusts, power, wind."""
    rotors, out = run.scenario.params.rotors, run.outputs
    columns = ["time_s", *at.state_names(rotors)]
    for quantity in ("wheel_load", "tyre_force_x", "tyre_force_y"):
        columns += [f"{quantity}_{wheel}_n" for wheel in at.WHEELS]
    columns += [f"thrust_{rotor + 1}_n" for rotor in range(rotors)]
    columns += ["rotor_power_w", "wheel_power_w", "clearance_m", *(f"wind_{axis}_mps" for axis in "xyz")]
    table = np.column_stack(
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
    begins = np.array([time for time, _ in run.modes])
    modes = np.searchsorted(begins, run.time, side="left") - 1  # a mode that begins at a sample shows from the next on
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(",".join(["mode", *columns]) + "\n")
        for mode, row in zip(modes.clip(0).tolist(), table.tolist(), strict=True):
            file.write(run.modes[mode][1].value + "," + ",".join(f"{value:.9g}" for value in row) + "\n")
