# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A ramp that is too slippery to be climbed: how much energy the wheels burn before it."""

from __future__ import annotations

import numpy as np
import pytest

from rfly_amphibious import VehicleParameters
from rfly_amphibious.scenarios.scenario import Scenario
from rfly_lab.runs.closed_loop import run_closed_loop
from rfly_lab.runs.run import run_scenario
from rfly_missions.mission.legs import DriveLeg
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.ground_friction import FrictionArea, GroundFriction
from rfly_terrain.world.world import World

G = 9.80665
FRICTION = 0.3
SPEED = 2.0


def slippery_ramp():
    """Return a drive to a ramp of 25° that begins 6 m ahead."""
    step = 0.25
    x = np.arange(-10.0, 40.0, step)
    heights = np.tan(np.radians(25.0)) * np.clip(x - 6.0, 0.0, 12.0)
    terrain = HeightMap(
        np.repeat(heights[:, None], 2, axis=1),
        origin_x=-10.0,
        origin_y=-20.0,
        step_x=step,
        step_y=40.0,
    )
    area = FrictionArea(np.array([(5.5, -9.0), (30.0, -9.0), (30.0, 9.0), (5.5, 9.0)]), FRICTION)
    return Scenario(
        "ramp",
        VehicleParameters.load("scale"),
        (DriveLeg(((20.0, 0.0),), (SPEED,)),),
        terrain=terrain,
        end_time=15.0,
        world=World(terrain=terrain, friction=GroundFriction(areas=(area,))),
    )


@pytest.mark.parametrize("estimated", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_wheels_hardly_spin_before_a_ramp_that_is_too_slippery(estimated):
    """Wheels that hardly spin do no more work than friction does along the way that is wanted.

    That, and the energy of the motion, is 2.5 kJ. Without a limit they burn 15 kJ.
    """
    scenario = slippery_ramp()
    if estimated:
        run = run_closed_loop(scenario).run
    else:
        run = run_scenario(scenario)
        assert "stuck: it was to drive 20 m" in run.log[-1][1]

    p = scenario.params
    friction = FRICTION * p.friction_x * p.mass * G
    most = friction * SPEED * run.time[-1] + 0.5 * p.effective_mass * SPEED**2
    assert run.wheel_energy < most
