# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Hops that take off and land on rolling wheels, and those that break off."""

from __future__ import annotations

import numpy as np
import pytest
from recorded_runs import closed_run, recorded

from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle import state_layout
from rfly_common.frames import rotation_matrix
from rfly_lab.runs.run import run_scenario
from rfly_missions.mission.files import Mission, write_mission
from rfly_missions.mission.items import MissionItem

HOP = """version: 1
vehicle: {vehicle}
mission:
  items:
    - {{mode: takeoff, height_m: 2{rolling}}}
    - {{mode: land, position_m: [30, 0]{rolling}}}
events: [{events}]
end: {{when: {when}, time_s: {time}}}
"""
ROLLED = [
    Mode.DRIVE,
    Mode.ROLLING_TAKEOFF,
    Mode.FLIGHT,
    Mode.ROLLING_LAND,
    Mode.ROLL_OUT,
    Mode.DRIVE,
]
ROLLING_SPEED = 3.0
"""Speed on the ground of a mission that sets none, m/s."""

HOVER_POWER = 3811.0
"""Power of `scale` in hover, W: Eq. 4.18 by hand, as in test_mission_guide."""

STOP_AND_HOVER = HOVER_POWER * (1.0 + 30.0 / 4.0 + 4.0 / 0.8 + 2.0 / 0.5)
"""Energy of the same hop from stand to stand, J, less than it takes.

2 m up at 2 m/s at most; 30 m at 4 m/s and 0.8 m/s²; 2 m down at 0.5 m/s.
"""


def hop_text(vehicle="scale", rolling=True, events="", when="standing_after_landing", time=40):
    rolls = ", rolling: true" if rolling else ""
    return HOP.format(vehicle=vehicle, rolling=rolls, events=events, when=when, time=time)


def hop(*arguments, **more):
    text = hop_text(*arguments, **more)
    return recorded(run_scenario, Scenario.parse(text.encode(), "s.yaml"))


def velocities(run):
    return run.x[:, state_layout.VELOCITY : state_layout.VELOCITY + 3]


def span(run, mode):
    """Return which samples lie in a mode."""
    begin = next(time for time, each in run.modes if each is mode)
    end = next((time for time, _ in run.modes if time > begin), run.duration)
    return (run.time >= begin) & (run.time <= end)


def check_hop(run):
    """Check speeds of a hop, by the truth."""
    assert run.reached, run.ending

    # never below half of the speed while it lifts off
    level = np.linalg.norm(velocities(run)[:, :2], axis=1)
    assert level[span(run, Mode.ROLLING_TAKEOFF)].min() > 0.8 * ROLLING_SPEED

    # soft and forward on the ground, and then along the track to a stand
    (touchdown,) = run.touchdowns
    assert touchdown.sink_speed < 1.2
    assert touchdown.level_speed > 1.0
    assert touchdown.skid_speed < 0.3
    after = run.time > touchdown.time
    assert np.abs(run.position[after, 1] - touchdown.position[1]).max() < 0.5
    assert level[-1] < 0.1
    rolled = run.position[-1, 0] - touchdown.position[0]
    assert rolled == pytest.approx(touchdown.level_speed**2 / 1.6 + 2.0, abs=2.0)


def test_a_rolling_hop_takes_less_than_0_7_of_the_energy_of_stop_and_hover():
    run = hop()
    assert [mode for _, mode in run.modes] == ROLLED
    check_hop(run)
    assert max(run.position[:, 2]) == pytest.approx(2.0 + 0.22, abs=0.3)

    # the meter against the integral of the rotors' power, by 0.85, and 25 W
    rotors = np.trapezoid(run.outputs.rotor_power, run.time) / 0.85
    assert run.battery_energy == pytest.approx(rotors + 25.0 * run.duration, rel=0.02)
    assert run.battery_energy < 0.7 * STOP_AND_HOVER


def test_a_mission_file_rolls_where_that_saves_energy(tmp_path):
    """A .plan has no items that roll: the scenario lets its take-off and landing do so."""
    places = [(0.0, 0.0, -2.0), (0.0, 30.0, -2.0)]
    items = (
        MissionItem.takeoff(places[0]),
        MissionItem.waypoint(places[1]),
        MissionItem.land((0.0, 50.0, 0.0)),
    )
    mission = Mission(items, (47.0, 8.0, 400.0))
    write_mission(tmp_path / "m.plan", mission, uav_type="land-air")
    text = "version: 1\nvehicle: scale\nmission: {file: m.plan, rolling: true}\n"
    text += "end: {when: standing_after_landing, time_s: 60}\n"
    run = run_scenario(Scenario.parse(text.encode(), "s.yaml", "s", tmp_path))
    assert [mode for _, mode in run.modes] == ROLLED
    assert run.reached


@pytest.mark.exhaustive
@pytest.mark.parametrize("vehicle", ["scale", "scale_quad", "scale_six", "full"])
def test_both_hops_of_each_vehicle(vehicle):
    rolling = hop(vehicle)
    check_hop(rolling)
    assert rolling.battery_energy < 0.7 * hop(vehicle, rolling=False).battery_energy


@pytest.mark.parametrize(
    ("time", "mode"),
    [
        (2.7, Mode.ROLLING_TAKEOFF),
        pytest.param(4.4, Mode.FLIGHT, marks=pytest.mark.exhaustive),
    ],
)
def test_a_rotor_that_fails_in_the_roll_or_after_it_ends_on_the_wheels(time, mode):
    # it brakes for up to 3 s before it sinks
    run = hop(events=f"{{time_s: {time}, rotor_fails: 2}}", when="time", time=time + 8.0)
    assert [each for _, each in run.modes][-2:] == [mode, Mode.ABORT]

    # upright all the time, and at rest with all wheels on the ground at the end
    turns = run.x[:, state_layout.QUATERNION_XYZW]
    assert min(rotation_matrix(turn)[2, 2] for turn in turns) > 0.95
    assert all(touchdown.level_speed < 1.0 for touchdown in run.touchdowns)
    assert np.linalg.norm(velocities(run)[-1]) < 0.1
    assert (run.outputs.wheel_load[-1] > 0.0).all()


@pytest.mark.exhaustive
def test_a_rolling_hop_by_estimates():
    run = closed_run(hop_text()).run
    assert [mode for _, mode in run.modes] == [Mode.DISARMED, *ROLLED]
    check_hop(run)
