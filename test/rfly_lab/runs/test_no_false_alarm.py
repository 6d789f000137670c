# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Drives and flights over slopes and rough ground in wind, of a sound vehicle: nothing is named."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from rfly_amphibious.scenarios.scenario import Scenario
from rfly_lab.runs.closed_loop import run_closed_loop
from rfly_terrain.height_map.height_map import HeightMap
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
@pytest.mark.parametrize("seed", [0, 3, 6, 9, 12, 15, 19])
def test_a_trip_over_slopes_and_rough_ground_has_no_false_alarm(seed):
    """Up to 7° or bumps of 2 cm, or some of both: no take-off is refused there."""
    share = seed / 19.0
    closed = run_over(TRIP, seed, 0.12 * share, 0.02 * (1.0 - share))
    assert closed.run.reached, closed.run.ending
    assert closed.findings == ()


def test_a_drive_over_rough_slopes_has_no_false_alarm():
    """Slopes up to 17° and bumps of 3 cm."""
    closed = run_over(DRIVE, 3, 0.3, 0.03)
    assert closed.run.reached, closed.run.ending
    assert closed.findings == ()
