# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Flights by estimates with sensors that lie: what lies is named, and the flight ends well."""

from __future__ import annotations

import numpy as np
import pytest
from recorded_runs import closed_run

from rfly_amphibious.simulation.commands import Mode

HEIGHT = 2.0
HOP = """version: 1
vehicle: scale
seed: {seed}
wind: {{mean_mps: [2, 1, 0], gust_sigma_mps: [0.5, 0.5, 0.2]}}
mission: {{items: [{{mode: takeoff, height_m: 2}}, {{mode: land}}]}}
events: [{{time_s: {time}, fault: {{part: {part}, kind: {kind}}}}}]
end: {{when: standing_after_landing, time_s: 40}}
"""
IN_TAKEOFF = 3.5
IN_FLIGHT = 5.0


def exhaustively(*values):
    return pytest.param(*values, marks=pytest.mark.exhaustive)


def flown(part, kind, time, seed=1):
    """Return the run of a hop with a fault, after checks that hold for all of them."""
    done = closed_run(HOP.format(seed=seed, time=time, part=part, kind=kind))
    run = done.run
    assert not run.final.crashed, run.ending
    assert (run.position[:, 2] - run.position[0, 2]).max() < HEIGHT + 5.0
    assert np.nanpercentile(done.position_nees(), 95) < 50.0
    assert all(touch.sink_speed < 1.2 for touch in run.touchdowns)
    named = [begin for begin, text in run.log if text.startswith(part) and "left out" in text]
    assert time < named[0] < time + 2.0
    return run


@pytest.mark.parametrize(
    ("part", "time", "seed"),
    [
        ("height", IN_TAKEOFF, 1),
        *(exhaustively("height", IN_TAKEOFF, seed) for seed in (2, 3)),
        *(
            exhaustively(part, time, 1)
            for part in ("height", "gps", "barometer", "magnetometer")
            for time in (2.0, IN_FLIGHT)
        ),
    ],
)
def test_a_stuck_sensor_is_left_out_and_the_mission_goes_on(part, time, seed):
    run = flown(part, "stuck", time, seed)
    assert run.reached, run.ending
    assert run.touchdowns[0].level_speed < 1.0


@pytest.mark.parametrize("seed", [1, exhaustively(2), exhaustively(3)])
def test_a_stuck_imu_aborts_the_flight(seed):
    """Nothing shows how the vehicle turns then: it comes down as it does without an IMU."""
    run = flown("imu", "stuck", IN_FLIGHT, seed)
    aborted = next(begin for begin, mode in run.modes if mode is Mode.ABORT)
    assert aborted == pytest.approx(IN_FLIGHT + 0.02, abs=0.02)
