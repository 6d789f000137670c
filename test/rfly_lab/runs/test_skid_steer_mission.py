# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A mission of a vehicle whose wheels don't steer: it turns by its motors, flies and drives on."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pytest
from recorded_runs import recorded

from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle import state_layout
from rfly_lab.runs.closed_loop import run_closed_loop
from rfly_lab.runs.run import run_scenario

MISSION = """version: 1
vehicle: skid.yaml
mission:
  items:
    - {mode: waypoint, position_m: [8, 0]}
    - {mode: waypoint, position_m: [10, 5]}
    - {mode: takeoff, height_m: 2}
    - {mode: waypoint, position_m: [14, 8]}
    - {mode: land}
    - {mode: waypoint, position_m: [14, 14]}
    - {mode: waypoint, position_m: [10, 16]}
end: {time_s: 60}
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "seed",
    [None, 1],
    ids=["truth", "estimate"],
)
def test_bends_before_and_behind_a_flight(tmp_path, seed):
    """The way turns left by 68° before the flight, and by 63° behind it."""
    shipped = files("rfly_amphibious") / "data" / "vehicles" / "scale.yaml"
    text = shipped.read_text(encoding="utf-8").replace("wheels: front ", "wheels: none ")
    text = text.replace("max_angle_rad: 0.5", "max_angle_rad: 0")
    (tmp_path / "skid.yaml").write_text(text, encoding="utf-8")
    scenario = Scenario.parse(MISSION.encode(), "s.yaml", "s", tmp_path)
    assert scenario.params.steered == "none"

    if seed is None:
        run = recorded(run_scenario, scenario)
        place = run.position
    else:
        closed = recorded(run_closed_loop, scenario.with_seed(seed))
        run = closed.run
        place = closed.estimated

    assert run.reached, run.ending
    modes = [mode for _, mode in run.modes if mode is not Mode.DISARMED]
    assert modes == [
        Mode.DRIVE,
        Mode.TAKEOFF,
        Mode.FLIGHT,
        Mode.LAND,
        Mode.SPOOL_DOWN,
        Mode.DRIVE,
    ]
    for corner in ((8, 0), (10, 5), (14, 14), (10, 16)):
        away = np.linalg.norm(place[:, :2] - corner, axis=1)
        assert np.nanmin(away) < 0.5, corner
    columns = state_layout.state_columns(scenario.params.rotors, 4)
    assert (run.x[:, columns["steering"]] == 0.0).all()
