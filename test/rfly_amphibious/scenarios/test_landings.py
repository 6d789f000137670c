# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Take-offs and landings by estimates: in wind, without some sensors, and with silent ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_amphibious.control.modes import Mode
from rfly_amphibious.scenarios.closed_loop import run_closed_loop
from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.sensors.sensor_parameters import SensorParameters

HOP = """version: 1
vehicle: {vehicle}
seed: {seed}
wind: {{mean_mps: [{east}, {north}, 0], gust_sigma_mps: [0.5, 0.5, 0.2]}}
mission: {{items: [{{mode: takeoff, height_m: 2}}, {{mode: land}}]}}
events: [{events}]
end: {{when: {when}, time_s: 40}}
"""
LANDING = [
    Mode.DISARMED,
    Mode.DRIVE,
    Mode.TAKEOFF,
    Mode.FLIGHT,
    Mode.LAND,
    Mode.SPOOL_DOWN,
    Mode.DRIVE,
]
SEEDS = [seed if seed in (1, 12, 19) else pytest.param(seed, marks=pytest.mark.exhaustive)
         for seed in range(20)]  # fmt: skip


def hop(vehicle, seed, speed=0.0, events=(), when="mission_done"):
    """Return a short hop in a wind of a speed, m/s, from a direction of the seed."""
    course = 2.4 * seed
    text = HOP.format(
        vehicle=vehicle,
        seed=seed,
        east=speed * math.cos(course),
        north=speed * math.sin(course),
        events=", ".join(events),
        when=when,
    )
    return Scenario.parse(text.encode(), "hop.yaml")


def off(sensor, time=5.0):
    return f"{{time_s: {time}, sensor_off: {sensor}}}"


def spools_after(run):
    """Return the time from the first touch of the ground to SPOOL_DOWN, s."""
    (touchdown,) = run.touchdowns
    begin = next(time for time, mode in run.modes if mode is Mode.SPOOL_DOWN)
    return begin - touchdown.time


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("vehicle", ["scale", "full"])
def test_the_rotors_spool_down_within_a_second_of_the_touch_down(vehicle, seed):
    run = run_closed_loop(hop(vehicle, seed, speed=6.0 * seed / 19.0)).run
    assert run.reached, run.ending
    assert [mode for _, mode in run.modes] == LANDING, "without a bounce"
    assert 0.0 <= spools_after(run) <= 1.0


@pytest.mark.parametrize(
    "silent",
    [
        ("wheel_loads",),
        ("height",),
        pytest.param(("encoders", "wheel_loads"), marks=pytest.mark.exhaustive),
        ("encoders", "height", "wheel_loads", "magnetometer"),
    ],
)
@pytest.mark.parametrize("vehicle", ["scale", "full"])
def test_a_landing_needs_no_sensor_that_falls_silent_in_flight(vehicle, silent):
    run = run_closed_loop(hop(vehicle, 3, 2.0, map(off, silent))).run
    assert run.reached, run.ending
    begin = next(time for time, mode in run.modes if mode is Mode.SPOOL_DOWN)
    assert 0.0 <= begin - run.touchdowns[0].time <= 1.0
    assert run.modes[-1][1] is Mode.DRIVE


@pytest.mark.parametrize("vehicle", ["scale", "full"])
def test_imu_gps_and_barometer_are_enough_to_fly(vehicle):
    sensors = SensorParameters.load(vehicle).replace(
        magnetometer=None, encoders=None, height=None, wheel_loads=None
    )
    run = run_closed_loop(hop(vehicle, 1, 2.0), sensors).run
    assert run.reached, run.ending
    assert run.log == ()
    flown = run.position[:, 2].max() - run.position[0, 2]
    assert flown == pytest.approx(2.0, abs=0.5)
    assert spools_after(run) <= 1.0


def test_without_load_cells_the_struts_show_that_the_wheels_roll():
    """30 m by wheels and IMU alone: within 2 % of the way, where nothing else gives a speed."""
    sensors = SensorParameters.load("scale").replace(wheel_loads=None, gps=None)
    text = b"""version: 1
vehicle: scale
mission: {items: [{mode: waypoint, position_m: [30, 0]}]}
end: {time_s: 40}
"""
    done = run_closed_loop(Scenario.parse(text, "drive.yaml"), sensors)
    assert done.run.reached, done.run.ending
    assert np.linalg.norm(done.position_error[-1, :2]) < 0.6


@pytest.mark.parametrize("others", [(), ("gps", "barometer", "encoders", "height")])
@pytest.mark.parametrize("vehicle", ["scale", "full"])
def test_without_the_imu_it_comes_down_level_and_by_itself(vehicle, others):
    """The flight controller aborts 0.1 s after the last sample; no fail-safe has to act."""
    events = [off(sensor) for sensor in ("imu", *others)]
    run = run_closed_loop(hop(vehicle, 2, 1.0, events, "standing_after_landing")).run
    aborted = next(time for time, mode in run.modes if mode is Mode.ABORT)
    assert aborted == pytest.approx(5.1, abs=0.02)
    assert "standing" in run.ending or "stands after landing" in run.ending
    assert run.reached or "across the ground" in run.ending  # nothing measures that speed then
    assert not run.final.crashed
    assert run.touchdowns[0].sink_speed < 1.5
    assert not [text for _, text in run.log if "fail-safe" in text]


def test_a_lost_estimate_warns_slows_stops_and_brakes():
    """Only the IMU is left. Standard deviations of the speed: 0.5, 1 and 2 m/s."""
    silent = ("gps", "barometer", "magnetometer", "encoders")
    text = f"""version: 1
vehicle: scale
mission: {{items: [{{mode: waypoint, position_m: [500, 0]}}]}}
events: [{", ".join(off(sensor) for sensor in silent)}]
end: {{when: time, time_s: 75}}
"""
    done = run_closed_loop(Scenario.parse(text.encode(), "far.yaml"))
    run = done.run
    told = [(time, text.rpartition(": ")[2]) for time, text in run.log if "uncertain" in text]
    assert [text for _, text in told] == [
        "a warning",
        "it goes on slowly",
        "it stops, or lands",
    ]
    (_, _), (_, _), (stopped, _) = told
    moved = np.linalg.norm(run.position - run.position[run.time > stopped + 3.0][0], axis=1)
    assert moved[run.time > stopped + 3.0].max() < 0.05

    # honest: the error is within 3 standard deviations
    sigma = np.sqrt(np.linalg.eigvalsh(done.position_covariance[-1][:2, :2])[-1])
    assert np.linalg.norm(done.position_error[-1][:2]) < 3.0 * sigma


def test_a_lost_estimate_lands_a_flight():
    silent = ("gps", "barometer", "magnetometer", "encoders")
    text = f"""version: 1
vehicle: scale
seed: 1
mission:
  items:
    - {{mode: takeoff, height_m: 3}}
    - {{mode: waypoint, position_m: [400, 0], speed_mps: 2}}
    - {{mode: land}}
events: [{", ".join(off(sensor) for sensor in silent)}]
end: {{when: standing_after_landing, time_s: 120}}
"""
    run = run_closed_loop(Scenario.parse(text.encode(), "far.yaml")).run
    assert [mode for _, mode in run.modes] == LANDING[:-1]
    assert run.reached or "across the ground" in run.ending, run.ending
    assert not run.final.crashed
    land = next(time for time, mode in run.modes if mode is Mode.LAND)
    (stopped,) = (time for time, text in run.log if "stops, or lands" in text)
    assert land == pytest.approx(stopped, abs=0.1)
