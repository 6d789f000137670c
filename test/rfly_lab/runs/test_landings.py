# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Take-offs and landings by estimates: in wind, without some sensors, and with silent ones."""

from __future__ import annotations

import math
from importlib.resources import files

import numpy as np
import pytest
from marks import exhaustively
from recorded_runs import closed_run

from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.commands import Mode

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
PROBED = ("full", 12)
"""Vehicle and seed of `make test`; the other pairs are exhaustive."""

ROUGH_SENSORS = (
    (files("rfly_amphibious") / "data" / "sensors" / "scale.yaml")
    .read_text(encoding="utf-8")
    .replace("walk_mps3_per_sqrthz: 6.0e-3", "walk_mps3_per_sqrthz: 6.0e-2")
)
"""Sensors whose accelerometer drifts ten times as much: an estimate without the rest is lost in 15
s instead of 45."""


def hop(vehicle, seed, speed=0.0, events=(), when="mission_done"):
    """Return a short hop in a wind of a speed, m/s, from a direction of the seed."""
    course = 2.4 * seed
    return HOP.format(
        vehicle=vehicle,
        seed=seed,
        east=speed * math.cos(course),
        north=speed * math.sin(course),
        events=", ".join(events),
        when=when,
    )


def off(sensor, time=5.0):
    return f"{{time_s: {time}, sensor_off: {sensor}}}"


def spools_after(run):
    """Return the time from the first touch of the ground to SPOOL_DOWN, s."""
    (touchdown,) = run.touchdowns
    begin = next(time for time, mode in run.modes if mode is Mode.SPOOL_DOWN)
    return begin - touchdown.time


@pytest.mark.parametrize(
    ("vehicle", "seed"),
    [
        PROBED,
        *(exhaustively("scale", seed) for seed in (6, 19)),
        *(exhaustively("full", seed) for seed in (3, 15)),
    ],
)
def test_the_rotors_spool_down_within_a_second_of_the_touch_down(vehicle, seed):
    """The wind blows with 6/19 m/s times the seed."""
    run = closed_run(hop(vehicle, seed, speed=6.0 * seed / 19.0)).run
    assert run.reached, run.ending
    assert [mode for _, mode in run.modes] == LANDING, "without a bounce"
    assert 0.0 <= spools_after(run) <= 1.0


@pytest.mark.parametrize(
    ("vehicle", "silent"),
    [
        exhaustively("scale", ("wheel_loads",)),
        exhaustively("full", ("wheel_loads",)),
        exhaustively("scale", ("height",)),
        exhaustively("full", ("height",)),
        exhaustively("scale", ("encoders", "wheel_loads")),
        exhaustively("full", ("encoders", "wheel_loads")),
        ("scale", ("encoders", "height", "wheel_loads", "magnetometer")),
        exhaustively("full", ("encoders", "height", "wheel_loads", "magnetometer")),
    ],
)
def test_a_landing_needs_no_sensor_that_falls_silent_in_flight(vehicle, silent):
    """The touch-down shows by the rest alone, later, without any sensor of the ground."""
    run = closed_run(hop(vehicle, 3, 2.0, map(off, silent))).run
    assert run.reached, run.ending
    begin = next(time for time, mode in run.modes if mode is Mode.SPOOL_DOWN)
    sees_ground = not {"height", "wheel_loads", "encoders"} <= set(silent)
    assert 0.0 <= begin - run.touchdowns[0].time <= (1.0 if sees_ground else 3.5)
    assert run.modes[-1][1] is Mode.DRIVE


@pytest.mark.exhaustive
@pytest.mark.parametrize("vehicle", ["scale", "full"])
def test_imu_gps_and_barometer_are_enough_to_closed_run(vehicle):
    sensors = SensorParameters.load(vehicle).replace(
        magnetometer=None, encoders=None, height=None, wheel_loads=None
    )
    run = closed_run(hop(vehicle, 1, 2.0), sensors).run
    assert run.reached, run.ending
    assert run.log == ()
    flown = run.position[:, 2].max() - run.position[0, 2]
    assert flown == pytest.approx(2.0, abs=0.5)
    assert spools_after(run) <= 2.0, "by the thrust alone"


@pytest.mark.exhaustive
def test_without_load_cells_the_struts_show_that_the_wheels_roll():
    """30 m by wheels and IMU alone: within 2 % of the way, where nothing else gives a speed."""
    sensors = SensorParameters.load("scale").replace(wheel_loads=None, gps=None)
    text = """version: 1
vehicle: scale
mission: {items: [{mode: waypoint, position_m: [30, 0]}]}
end: {time_s: 40}
"""
    done = closed_run(text, sensors)
    assert done.run.reached, done.run.ending
    assert np.linalg.norm(done.position_error[-1, :2]) < 0.6


BLIND = ("gps", "barometer", "encoders", "height")


@pytest.mark.parametrize(
    ("vehicle", "others"),
    [
        exhaustively("scale", ()),
        exhaustively("full", ()),
        exhaustively("scale", BLIND),
        exhaustively("scale", ("encoders",)),
        ("full", BLIND),
    ],
)
def test_without_the_imu_it_comes_down_level_and_by_itself(vehicle, others):
    """The flight controller aborts 0.1 s after the last sample; no fail-safe has to act."""
    events = [off(sensor) for sensor in ("imu", *others)]
    run = closed_run(hop(vehicle, 2, 1.0, events, "standing_after_landing")).run
    aborted = next(time for time, mode in run.modes if mode is Mode.ABORT)
    assert aborted == pytest.approx(5.1, abs=0.02)
    assert "standing" in run.ending or "stands after landing" in run.ending
    assert run.reached or "across the ground" in run.ending  # nothing measures that speed then
    assert not run.final.crashed
    assert run.touchdowns[0].sink_speed < 1.5
    assert not [text for _, text in run.log if "fail-safe" in text]


@pytest.fixture(scope="module")
def rough_sensors(tmp_path_factory):
    path = tmp_path_factory.mktemp("sensors") / "rough.yaml"
    path.write_text(ROUGH_SENSORS, encoding="utf-8")
    return SensorParameters.load(path)


@pytest.mark.exhaustive
def test_a_lost_estimate_warns_slows_stops_and_brakes(rough_sensors):
    """Only the IMU is left. Standard deviations of the speed: 0.5, 1 and 2 m/s."""
    silent = ("gps", "barometer", "magnetometer", "encoders")
    text = f"""version: 1
vehicle: scale
mission: {{items: [{{mode: waypoint, position_m: [500, 0]}}]}}
events: [{", ".join(off(sensor, 2.0) for sensor in silent)}]
end: {{when: time, time_s: 24}}
"""
    done = closed_run(text, rough_sensors)
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


@pytest.mark.exhaustive
def test_a_lost_estimate_lands_a_flight(rough_sensors):
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
    run = closed_run(text, rough_sensors).run
    assert [mode for _, mode in run.modes] == LANDING[:-1]
    assert run.reached or "across the ground" in run.ending, run.ending
    assert not run.final.crashed

    land = next(time for time, mode in run.modes if mode is Mode.LAND)
    (stopped,) = (time for time, text in run.log if "stops, or lands" in text)
    assert land == pytest.approx(stopped, abs=0.1)
