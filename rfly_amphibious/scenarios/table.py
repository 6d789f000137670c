"""Samples of a run as one table: column names with units, and numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rfly_amphibious.scenarios.run import ScenarioRun
from rfly_amphibious.vehicle import state_layout as at

Floats = NDArray[np.float64]


def table(run: ScenarioRun) -> tuple[list[str], Floats]:
    """(names, (k, names)): time, state (`state_layout.state_names`), loads, tyre forces, thrusts, power, wind."""
    rotors, out = run.scenario.params.rotors, run.outputs
    names = ["time_s", *at.state_names(rotors)]
    for quantity in ("wheel_load", "tyre_force_x", "tyre_force_y"):
        names += [f"{quantity}_{wheel}_n" for wheel in at.WHEELS]
    names += [f"thrust_{rotor + 1}_n" for rotor in range(rotors)]
    names += ["rotor_power_w", "wheel_power_w", "clearance_m", *(f"wind_{axis}_mps" for axis in "xyz")]
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
