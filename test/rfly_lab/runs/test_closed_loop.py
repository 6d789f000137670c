# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Scenarios closed through sensors and estimates only.

They are done softly, at the place where the estimate says, not the truth.
"""

from __future__ import annotations

import numpy as np
import pytest
from marks import exhaustively
from recorded_runs import closed_run

from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.sensors.sensor_parameters import LoadCells, SensorParameters
from rfly_amphibious.simulation.commands import Mode
from rfly_lab.runs.closed_loop import run_closed_loop

SHORT = """version: 1
vehicle: scale
seed: {seed}
method: semi_implicit_euler
wind: {{mean_mps: [1.5, -1, 0], gust_sigma_mps: [0.5, 0.5, 0.2]}}
mission:
  items:
    - {{mode: waypoint, position_m: [2, 0]}}
    - {{mode: takeoff, height_m: 1}}
    - {{mode: waypoint, position_m: [3, 1]}}
    - {{mode: land}}
events: [{events}]
end: {{when: {when}, time_s: {time}}}
"""


def short(seed, events="", when="mission_done", time=60):
    return SHORT.format(seed=seed, events=events, when=when, time=time)


@pytest.mark.parametrize("seed", [1, exhaustively(2)])
def test_a_mission_is_done_without_the_truth(seed):
    done = closed_run(short(seed))
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

    (touchdown,) = run.touchdowns
    assert 0.2 < touchdown.sink_speed < 0.7
    assert touchdown.level_speed < 0.5
    # GPS is off by metres: the truth pilot lands at (3, 1), the estimating one off by the error
    error = done.position_error[-1, :2]
    missed = run.final.position[:2] - (3, 1)
    assert np.linalg.norm(error) > 2.0
    assert missed == pytest.approx(-error, abs=1.0)
    assert done.largest_error() < 7.0, (
        "three and more standard deviations of the drift of the shipped GPS"
    )

    level, upright = done.rms_error()
    assert level > 1.0
    assert upright < 0.5


def test_the_same_seed_gives_the_same_bits():
    scenario = Scenario.parse(short(4, when="time", time=2).encode(), "s.yaml")
    one, two = (run_closed_loop(scenario) for _ in range(2))
    assert one.run.reached
    assert one.run.x.tobytes() == two.run.x.tobytes()
    assert one.estimated.tobytes() == two.estimated.tobytes()
    assert one.fingerprint() == two.fingerprint() != one.run.fingerprint()
    other = closed_run(short(5, when="time", time=2))
    assert other.run.x.tobytes() != one.run.x.tobytes()


@pytest.mark.exhaustive
def test_it_takes_off_and_lands_with_noisy_load_cells():
    cells = LoadCells(rate=100, load_noise=2.0)
    sensors = SensorParameters.load("scale").replace(wheel_loads=cells)
    run = closed_run(short(1), sensors).run
    assert run.reached, run.ending
    assert Mode.FLIGHT in [mode for _, mode in run.modes]


def test_a_vehicle_without_an_imu_does_not_move():
    events = "{time_s: 0, sensor_off: imu}"
    done = closed_run(short(1, events=events, time=2))
    assert not done.run.reached
    assert [text for _, text in done.run.log] == ["imu is off"]
    assert np.isnan(done.estimated).all()
    assert np.linalg.norm(done.run.final.position[:2]) < 0.01


def test_the_reason_of_an_abort_that_ends_the_run_at_once_is_told():
    """The run ends between two samples, 20 ms apart, in which parts at fault are looked for."""
    text = """version: 1
vehicle: scale
seed: 41
method: semi_implicit_euler
mission:
  items:
    - {mode: takeoff, height_m: 2}
    - {mode: land}
events: [{time_s: 0.5, fault: {part: rotor_5, kind: "off"}}]
end: {when: mission_done, time_s: 20}
"""
    done = closed_run(text)

    assert done.run.modes[-1][1] is Mode.ABORT
    assert done.findings[-1].part == "rotor 5"
    assert done.findings[-1].text in [text for _, text in done.run.log]
