# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Detours of a vehicle that is stuck at an obstacle which no map shows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from marks import exhaustively

from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.guidance.detour_guide import MOST_DETOURS, Detours
from rfly_lab.runs.closed_loop import run_closed_loop
from rfly_lab.runs.run import run_scenario
from rfly_missions.mission.legs import DriveLeg
from rfly_terrain.height_map.height_map import HeightMap

WHEELBASE = 0.66
"""Wheelbase of the scale vehicle, m."""


def detours(rest, backward=False, terrain=None):
    params = VehicleParameters.load("scale")
    places = [np.array(point, float) for point in rest]
    return Detours(np.array((5.0, 1.0)), places, [2.0] * len(rest), backward, params, terrain)


@pytest.mark.parametrize("backward", [False, True])
def test_the_first_detour_by_hand(backward):
    """The way leads north; 5 wheelbases ahead is y = 4.3, 4 aside x = 2.36."""
    ways = detours([(5.0, 3.0), (5.0, 6.0), (9.0, 9.0)], backward)
    assert ways.left == MOST_DETOURS == 2
    away, around = ways.next(np.array((5.0, 1.0)))
    assert away.backward is not backward
    assert away.points == (pytest.approx((5.0, 1.0 - 4 * WHEELBASE)),)
    assert away.speeds == (1.5,)
    corners = ((5.0 - 4 * WHEELBASE, 1.0), (5.0 - 4 * WHEELBASE, 1.0 + 5 * WHEELBASE))
    assert around == DriveLeg(
        tuple(pytest.approx(point) for point in (*corners, (5.0, 6.0), (9.0, 9.0))),
        (2.0,) * 4,
        backward,
    )

    # the second one on the other side, farther from the first place
    away, around = ways.next(np.array((3.0, 1.5)))
    assert away.points == (pytest.approx((3.0, 1.5 - 6 * WHEELBASE)),)
    assert around.points[0] == pytest.approx((5.0 + 6 * WHEELBASE, 1.0))
    assert ways.left == 0


def test_an_end_beside_the_place_is_not_passed():
    _, around = detours([(5.0, 2.0)]).next(np.array((5.0, 1.0)))
    assert around.points[1:] == (pytest.approx((5.0 - 4 * WHEELBASE, 2.0)), (5.0, 2.0))


def test_the_more_level_side_comes_first_and_none_off_the_map():
    x = np.linspace(-20.0, 20.0, 41)
    heights = np.repeat(0.3 * np.clip(5.0 - x, 0.0, 9.0)[:, None], 41, axis=1)
    slope = HeightMap(heights, origin_x=-20.0, origin_y=-20.0, step_x=1.0, step_y=1.0)
    _, around = detours([(5.0, 9.0)], terrain=slope).next(np.array((5.0, 1.0)))
    assert around.points[0][0] > 5.0

    narrow = HeightMap(np.zeros((2, 2)), origin_x=4.0, origin_y=-20.0, step_x=9.0, step_y=40.0)
    ways = detours([(5.0, 9.0)], terrain=narrow)
    assert ways.left == 1
    assert ways.next(np.array((5.0, 1.0)))[1].points[0][0] > 5.0


@pytest.mark.parametrize(
    ("wall", "tries", "estimated"),
    [
        ("{box: [0.5, 1.5, 4], x: 6, y: 0}", 1, False),
        exhaustively("{box: [0.5, 5, 4], x: 6, y: 1.7}", 2, False),
        exhaustively("{box: [0.5, 1.5, 4], x: 6, y: 0}", 1, True),
    ],
)
def test_it_gets_round_an_obstacle_that_the_map_does_not_show(tmp_path, wall, tries, estimated):
    """The wall is 1.5 m wide, or reaches 4.2 m to the left, farther than the first detour.

    An estimate without a map is wrong by some metres at the beginning, and so is the end.
    """
    (tmp_path / "wall.yaml").write_text(f"version: 1\nobjects: [{wall}]\n", encoding="utf-8")
    text = """version: 1
vehicle: scale
world: wall.yaml
method: semi_implicit_euler
mission: {items: [{mode: waypoint, position_m: [14, 0], speed_mps: 1}]}
end: {when: mission_done, time_s: 80}
"""
    scenario = Scenario.parse(text.encode(), "s.yaml", "s", tmp_path)
    run = run_closed_loop(scenario.with_seed(3)).run if estimated else run_scenario(scenario)
    assert run.reached, run.ending
    assert sum("goes back and round the place" in text for _, text in run.log) == tries
    assert math.dist(run.final.position[:2], (14.0, 0.0)) < (3.0 if estimated else 0.5)
    assert not run.final.crashed
