# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Thrust-assisted driving: a slippery ramp and a high step, by truth and by estimates."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from marks import exhaustively

from rfly_amphibious.scenarios.scenario import Scenario
from rfly_common.errors import ConfigError
from rfly_lab.runs.closed_loop import run_closed_loop
from rfly_lab.runs.run import run_scenario
from rfly_missions.mission.legs import DriveLeg

RADIUS = 0.11
"""Radius of the scale vehicle's wheels, m."""

STEP = f"{{box: [12, 12, {1.2 * RADIUS:g}], x: 8, y: 0}}"
"""A step of 1.2 wheel radii, 2 m ahead."""

RAMP = (
    "{hull: [[0, -6, 0], [0, 6, 0], [3, -6, 1.4], [3, 6, 1.4], [14, -6, 1.4], [14, 6, 1.4]], "
    "x: 2, y: 0}"
)
"""A ramp of 25° and 3 m, 2 m ahead, and level ground behind it."""

ICE = "ground: {areas: [{friction: 0.3, corners: [[1.5, -9], [17, -9], [17, 9], [1.5, 9]]}]}\n"


def scenario(tmp_path, what, assisted, x=6.0, more="", mission=""):
    world = f"version: 1\n{more}objects: [{what}]\n"
    (tmp_path / "world.yaml").write_text(world, encoding="utf-8")
    flag = ", thrust_assist: true" if assisted else ""
    text = f"""version: 1
vehicle: scale
world: world.yaml
method: semi_implicit_euler
mission: {{{mission}items: [{{mode: waypoint, position_m: [{x}, 0], speed_mps: 1.5{flag}}}]}}
end: {{when: mission_done, time_s: 40}}
"""
    return Scenario.parse(text.encode(), "s.yaml", "s", tmp_path)


CASES = {"step": (STEP, 5.5, ""), "ramp": (RAMP, 9.0, ICE)}


@pytest.mark.parametrize(
    ("case", "estimated"),
    [
        ("step", False),
        exhaustively("ramp", False),
        exhaustively("step", True),
    ],
)
def test_it_gets_up_where_wheels_alone_do_not(tmp_path, case, estimated):
    """Some wheel carries load for most of the way, and the wheels stay near the ground."""
    what, x, more = CASES[case]
    assisted = scenario(tmp_path, what, True, x, more)
    if estimated:
        closed = run_closed_loop(assisted.with_seed(1))
        run = closed.run
        assert "imu" not in {finding.part for finding in closed.findings}, "the step shakes it"
    else:
        run = run_scenario(assisted)
    assert run.reached, run.ending
    assert not run.final.crashed
    height = 1.2 * RADIUS if case == "step" else 1.4
    assert run.final.position[2] == pytest.approx(height + 0.22, abs=0.05)
    assert np.mean(run.outputs.wheel_load.sum(axis=1) > 5.0) > 0.9
    assert run.outputs.clearance.max() < 0.6
    assert not any("stuck" in text for _, text in run.log)


@pytest.mark.exhaustive
def test_it_gets_up_the_ramp_by_estimates_whose_position_is_metres_off(tmp_path):
    """The path meets the ramp at up to 20°, and wheels that spin are no encoders that lie."""
    closed = run_closed_loop(scenario(tmp_path, RAMP, True, 9.0, ICE).with_seed(1))
    run = closed.run
    assert run.reached, run.ending
    assert run.final.position[2] == pytest.approx(1.4 + 0.22, abs=0.05)
    assert np.mean(run.outputs.wheel_load.sum(axis=1) > 5.0) > 0.9
    assert run.outputs.clearance.max() < 0.6
    assert not any("stuck" in text for _, text in run.log)
    assert not {finding.part for finding in closed.findings} & {"encoders", "wheel_loads"}


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", ["step", "ramp"])
def test_wheels_alone_do_not_get_up(tmp_path, case):
    what, x, more = CASES[case]
    alone = dataclasses.replace(scenario(tmp_path, what, False, x, more), end_time=18.0)
    run = run_scenario(alone)
    assert not run.reached
    assert "stuck: it was to drive" in run.log[0][1]
    assert run.rotor_energy == 0.0


def test_scenarios_say_where_rotors_may_help(tmp_path):
    text = """version: 1
vehicle: scale
mission:
  thrust_assist: true
  items:
    - {mode: waypoint, position_m: [2, 0]}
    - {mode: waypoint, position_m: [4, 0], thrust_assist: false}
    - {mode: waypoint, position_m: [6, 0], thrust_assist: false}
    - {mode: waypoint, position_m: [8, 0]}
end: {time_s: 9}
"""
    legs = Scenario.parse(text.encode(), "s.yaml").legs
    assert [(len(leg.points), leg.thrust_assist) for leg in legs] == [
        (1, True),
        (2, False),
        (1, True),
    ]
    assert all(isinstance(leg, DriveLeg) for leg in legs)

    wrong = text.replace(
        "{mode: waypoint, position_m: [8, 0]}", "{mode: land, thrust_assist: true}"
    )
    with pytest.raises(ConfigError, match=r"s.yaml:9: .*thrust_assist: a land has none"):
        Scenario.parse(wrong.encode(), "s.yaml")
    with pytest.raises(ConfigError, match=r"s.yaml:4: mission.thrust_assist"):
        Scenario.parse(text.replace("assist: true", "assist: much").encode(), "s.yaml")
