# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Drives and flights over slopes and rough ground in wind, of a sound vehicle: nothing is named."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from marks import exhaustively
from scipy.ndimage import gaussian_filter

from rfly_amphibious.scenarios.scenario import Scenario
from rfly_lab.runs.closed_loop import run_closed_loop
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.ground_friction import GroundFriction
from rfly_terrain.world.world import World

STEP = 0.25
"""Cell of the ground, m."""

TRIP = """version: 1
vehicle: scale
wind: {mean_mps: [2, 1, 0], gust_sigma_mps: [0.5, 0.5, 0.2]}
mission:
  fly_speed_mps: 3
  items:
    - {mode: waypoint, position_m: [5, 1]}
    - {mode: takeoff, height_m: 2}
    - {mode: waypoint, position_m: [14, 3], height_m: 2}
    - {mode: land}
    - {mode: waypoint, position_m: [20, 0]}
    - {mode: waypoint, position_m: [26, 4]}
end: {when: mission_done, time_s: 60}
"""
DRIVE = """version: 1
vehicle: scale
mission: {items: [{mode: waypoint, position_m: [8, 2]}]}
end: {when: mission_done, time_s: 20}
"""

SIDEWAYS = """version: 1
vehicle: scale
seed: 133
wind: {mean_mps: [-11.46, 1.31, 0], gust_sigma_mps: [1.37, 1.37, 0.55]}
mission:
  items:
    - {mode: waypoint, position_m: [8, 0.4], speed_mps: 2.5}
    - {mode: waypoint, position_m: [14, 0.3], speed_mps: 3.5}
    - {mode: waypoint, position_m: [20, 3.3], speed_mps: 4.5}
end: {when: mission_done, time_s: 60}
"""
"""A drive against the wind."""


def ground(seed, slope, roughness):
    """Return ground of waves with at most a slope, and bumps of a standard deviation, m."""
    rng = np.random.default_rng(seed)
    x, y = np.meshgrid(np.arange(-20, 60, STEP), np.arange(-20, 20, STEP), indexing="ij")
    along, aside, phase = rng.uniform(-1.0, 1.0, 3)
    heights = slope * (
        0.4 * along * x + 0.3 * aside * y + 0.6 * 5.0 * np.sin(x / 5.0 + 6.0 * phase)
    )
    bumps = gaussian_filter(rng.standard_normal(x.shape), 1.2)
    heights += roughness / bumps.std() * bumps
    return HeightMap(heights, origin_x=-20.0, origin_y=-20.0, step_x=STEP, step_y=STEP)


def run_over(text, seed, slope, roughness):
    terrain = ground(seed, slope, roughness)
    scenario = Scenario.parse(text.encode(), "trip").with_seed(seed)
    world = World(terrain=terrain)
    return run_closed_loop(dataclasses.replace(scenario, terrain=terrain, world=world))


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", [0, 12])
def test_a_trip_over_slopes_and_rough_ground_has_no_false_alarm(seed):
    """Up to 7° or bumps of 2 cm, or some of both: no take-off is refused there."""
    share = seed / 19.0
    closed = run_over(TRIP, seed, 0.12 * share, 0.02 * (1.0 - share))
    assert closed.run.reached, closed.run.ending
    assert closed.findings == ()


@pytest.mark.exhaustive
def test_a_drive_over_rough_slopes_has_no_false_alarm():
    """Slopes up to 17° and bumps of 3 cm."""
    closed = run_over(DRIVE, 3, 0.3, 0.03)
    assert closed.run.reached, closed.run.ending
    assert closed.findings == ()


def over_a_side_slope(text):
    """Run a scenario on slippery ground whose side slope of 8° begins at x = 4 m."""
    x, y = np.meshgrid(np.arange(-30, 80, STEP), np.arange(-40, 40, STEP), indexing="ij")
    heights = 0.1406 * y / (1.0 + np.exp(4.0 - x))
    terrain = HeightMap(heights, origin_x=-30.0, origin_y=-40.0, step_x=STEP, step_y=STEP)
    world = World(terrain=terrain, friction=GroundFriction(elsewhere=0.659))
    scenario = Scenario.parse(text.encode(), "drive")
    return run_closed_loop(dataclasses.replace(scenario, terrain=terrain, world=world))


@pytest.mark.exhaustive
def test_a_drive_over_a_side_slope_against_the_wind_has_no_false_alarm():
    closed = over_a_side_slope(SIDEWAYS)
    assert closed.run.reached, closed.run.ending
    assert closed.findings == ()


@pytest.mark.exhaustive
def test_a_battery_that_dies_in_a_headwind_is_named():
    dies = "events: [{time_s: 5, fault: {part: battery, kind: 'off'}}]\n"
    closed = over_a_side_slope(SIDEWAYS.replace("time_s: 60", "time_s: 8") + dies)
    first = closed.findings[0]
    assert first.part == "battery"
    assert 5.3 < first.time < 7.0


ON_ICE = """version: 1
vehicle: scale
seed: 20
wind: {mean_mps: [14, 0, 0], gust_sigma_mps: [2.1, 2.1, 0.84]}
mission:
  items:
    - {mode: waypoint, position_m: [8, 0.4], speed_mps: 2.5}
    - {mode: waypoint, position_m: [14, 0.3], speed_mps: 3.5}
    - {mode: waypoint, position_m: [20, 3.3], speed_mps: 4.5}
    - {mode: waypoint, position_m: [12, -3], speed_mps: 2.5}
end: {when: time, time_s: 12}
"""
"""A drive that the wind carries off its way."""


IN_SIDE_WIND = """version: 1
vehicle: {vehicle}
seed: 43
wind: {{mean_mps: [0, {wind}, 0], gust_sigma_mps: [0.6, 0.6, 0.2]}}
mission:
  items:
    - {{mode: waypoint, position_m: [9, 0]}}
    - {{mode: waypoint, position_m: [12, 5]}}
    - {{mode: waypoint, position_m: [5, 9]}}
events: [{events}]
end: {{when: time, time_s: {end}}}
"""


def on_ice(vehicle="scale", wind=5, events="", end=10, friction=0.12):
    """Return a drive of three way-points on ice, from which the wind carries the vehicle off."""
    text = IN_SIDE_WIND.format(vehicle=vehicle, wind=wind, events=events, end=end)
    scenario = Scenario.parse(text.encode(), "ice")
    world = World(friction=GroundFriction(elsewhere=friction))
    return run_closed_loop(dataclasses.replace(scenario, world=world))


@pytest.mark.parametrize(
    ("vehicle", "friction", "end"),
    [("scale", 0.12, 10), exhaustively("scale", 0.06, 30), exhaustively("scale_six", 0.1, 30)],
)
def test_wheels_that_slide_across_on_ice_accuse_no_part(vehicle, friction, end):
    """The ground takes less torque there than motors and brakes of sound wheels give."""
    assert on_ice(vehicle, friction=friction, end=end).findings == ()


@pytest.mark.parametrize(
    ("part", "value"),
    [
        exhaustively("brake_fl", 5),
        exhaustively("drive_fl", 5),
        exhaustively("drive_rl", -5),
    ],
)
def test_motors_and_brakes_at_fault_are_found_on_ice(part, value):
    """The wheel spins or is locked, and nothing else is accused, not even its encoder."""
    fault = f"{{time_s: 3.5, fault: {{part: {part}, kind: stuck, value: {value}}}}}"
    closed = on_ice(wind=2, events=fault, end=8)
    assert {finding.part for finding in closed.findings} == {part}
    assert 3.9 < closed.findings[0].time < 4.5


@pytest.mark.exhaustive
def test_a_skid_steer_vehicle_on_ice_accuses_no_encoders():
    """The wheels spin and slide across for longer than the 10 s after which encoders are named."""
    text = """version: 1
vehicle: scale
seed: 2
mission:
  drive_speed_mps: 2
  items:
    - {mode: waypoint, position_m: [8, 0]}
    - {mode: waypoint, position_m: [10, 5]}
    - {mode: waypoint, position_m: [4, 8]}
    - {mode: waypoint, position_m: [0, 4]}
end: {when: time, time_s: 16}
"""
    scenario = Scenario.parse(text.encode(), "ice")
    params = scenario.params.replace(steered="none", max_steering=0.0)
    world = World(friction=GroundFriction(elsewhere=0.15))
    closed = run_closed_loop(dataclasses.replace(scenario, params=params, world=world))

    assert closed.findings == ()


@pytest.mark.exhaustive
def test_wheels_that_slide_in_the_wind_accuse_no_sensor():
    """Down a slope of 6° with a friction of 0.4 they slide for six seconds: by up to 4 m/s.

    They dragged the estimate along, and the IMU was taken for wrong.
    """
    x = np.arange(-30, 80, STEP)[:, None] + np.zeros(320)
    heights = -0.1 * np.log1p(np.exp(x - 3.0))
    terrain = HeightMap(heights, origin_x=-30.0, origin_y=-40.0, step_x=STEP, step_y=STEP)
    world = World(terrain=terrain, friction=GroundFriction(elsewhere=0.4))
    scenario = Scenario.parse(ON_ICE.encode(), "drive")
    closed = run_closed_loop(dataclasses.replace(scenario, terrain=terrain, world=world))
    assert closed.findings == ()
    velocity = np.gradient(closed.run.position, closed.run.time, axis=0)
    assert np.nanmax(np.abs(closed.estimated_velocity - velocity)[:, :2]) < 0.5
