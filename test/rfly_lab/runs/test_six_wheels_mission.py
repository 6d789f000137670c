# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A mission on six wheels by estimates only, and its log."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from recorded_runs import closed_run

from rfly_amphibious.simulation.commands import Mode
from rfly_lab.runs.table_log import write_csv

MISSION = """version: 1
vehicle: scale_six
method: semi_implicit_euler
mission:
  items:
    - {mode: waypoint, position_m: [2, 0]}
    - {mode: takeoff, height_m: 1}
    - {mode: waypoint, position_m: [3, 1]}
    - {mode: land}
end: {when: mission_done, time_s: 60}
"""


@pytest.mark.exhaustive
def test_it_drives_flies_and_lands_without_the_truth(tmp_path):
    done = closed_run(MISSION)
    run = done.run
    assert run.reached, run.ending
    flight = [
        Mode.DISARMED,
        Mode.DRIVE,
        Mode.TAKEOFF,
        Mode.FLIGHT,
        Mode.LAND,
        Mode.SPOOL_DOWN,
        Mode.DRIVE,
    ]
    assert [mode for _, mode in run.modes] == flight

    assert 0.2 < run.touchdowns[0].sink_speed < 0.7
    missed = run.final.position[:2] - (3, 1)
    expected = -done.position_error[-1, :2]
    assert missed == pytest.approx(expected, abs=1.0)
    assert done.rms_error()[1] < 0.5

    # the log
    assert run.outputs.wheel_load.shape[1] == 6
    assert run.outputs.wheel_load[-1].sum() == pytest.approx(36.0 * 9.80665, rel=0.02)
    write_csv(run, tmp_path / "six.csv")
    with (tmp_path / "six.csv").open() as file:
        rows = list(csv.DictReader(file))
    logged = [float(rows[-1][f"wheel_load_{wheel}_n"]) for wheel in run.scenario.params.wheels]
    assert logged == pytest.approx(run.outputs.wheel_load[-1], rel=1e-6)

    power = sum(
        float(rows[100][f"drive_torque_{wheel}_nm"])
        * (float(rows[100][f"wheel_speed_{wheel}_radps"]) - float(rows[100]["rate_y_radps"]))
        for wheel in run.scenario.params.wheels
    )
    assert float(rows[100]["wheel_power_w"]) == pytest.approx(power, rel=1e-6, abs=1e-6)

    assert np.isfinite(run.wheel_energy)
