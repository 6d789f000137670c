# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Tracks of rolling take-offs and landings, and what is against them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from marks import exhaustively

from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.guidance.mission_guide import MissionGuide
from rfly_autonomy.guidance.rolling import rolling_plan
from rfly_common.errors import ConfigError
from rfly_lab.runs.run import run_scenario
from rfly_missions.mission.legs import DriveLeg, FlyLeg, MissionStep, legs_of
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.solids import ObjectBoxes

PARAMS = VehicleParameters.load("scale")
WAY = 40.0
HOP = FlyLeg(((0.0, 0.0, 2.0), (WAY, 0.0, 2.0)), (4.0, 4.0), True, 3.0, 3.0)


def ground(height_at):
    """Return a map of a function of x, 0.25 m apart, from -10 to 90 m."""
    x = np.arange(-10.0, 90.0, 0.25)
    heights = np.array([height_at(each) for each in x])
    return HeightMap(
        np.repeat(heights[:, None], 9, axis=1),
        origin_x=-10.0,
        origin_y=-8.0,
        step_x=0.25,
        step_y=2.0,
    )


def plan(leg=HOP, terrain=None, onward=None):
    return rolling_plan(leg, onward, PARAMS, terrain, standing=False)


def test_the_tracks_lie_along_the_ways_from_the_take_off_and_to_the_landing():
    legs = FlyLeg(
        ((0.0, 0.0, 2.0), (30.0, 0.0, 2.0), (30.0, 40.0, 5.0)), (4.0, 4.0, 4.0), True, 3.0, 2.0
    )
    tracks = plan(legs)
    assert tracks.notes == ()
    assert (tracks.take_off.start, tracks.take_off.velocity) == ((0.0, 0.0), (3.0, 0.0, 0.0))
    assert (tracks.landing.start, tracks.landing.velocity) == ((30.0, 40.0), (0.0, 2.0, 0.0))

    # 4.5 m at 0.9 m/s and 0.5 m at 0.5 m/s, at 2 m/s
    assert tracks.glide == pytest.approx(2.0 * (4.5 / 0.9 + 0.5 / 0.5))


def test_a_vehicle_rolls_on_level_ground():
    assert plan(terrain=ground(lambda x: 0.0)).notes == ()


@pytest.mark.parametrize(
    ("degrees", "height", "notes"),
    [
        # it lifts off 8.1 m on, at 0.57 m, and climbs over 18 m, on which the ground rises 1.26 m
        (4.0, 6.0, ()),
        (-4.0, 2.0, ()),
        # a climb of 0.03 m over 1.8 m, on which the ground rises 0.13 m
        (4.0, 0.6, ("no rolling take-off: the ground rises into its way",)),
    ],
)
def test_a_take_off_uphill_climbs_from_where_it_leaves_the_ground(degrees, height, notes):
    leg = dataclasses.replace(HOP, points=((0.0, 0.0, height), (WAY, 0.0, 9.0)), roll_out=0.0)
    slope = ground(lambda x: x * np.tan(np.radians(degrees)))
    assert plan(leg, slope).notes == notes


@pytest.mark.parametrize(
    ("height_at", "notes"),
    [
        (  # 6° from 50 m on
            lambda x: max(0.0, x - 45.0) * np.tan(np.radians(6.0)),
            ("no rolling landing: the track is 6.0° steep, expected below 5°",),
        ),
        (
            lambda x: max(0.0, 5.0 - x) * np.tan(np.radians(5.5)),
            ("no rolling take-off: the track is 5.5° steep, expected below 5°",),
        ),
        (  # steps of 6 cm, half a tyre's radius is 5.5 cm
            lambda x: 0.06 if 42.0 < x < 43.0 else 0.0,
            ("no rolling landing: the track is rough by 0.06 m, expected less than 0.05 m",),
        ),
        (
            lambda x: 1.5 if 33.0 < x < 34.0 else 0.0,
            ("no rolling landing: the ground rises into its way",),
        ),
    ],
)
def test_ground_on_which_it_does_not_roll(height_at, notes):
    assert plan(terrain=ground(height_at)).notes == notes


def test_ways_and_tracks_that_are_too_short():
    # align 3 m, lift off 5.1 m, climb 6 m, glide 8 m; from a stand 5 m more
    short = FlyLeg(((0.0, 0.0, 2.0), (22.0, 0.0, 2.0)), (4.0, 4.0), True, 3.0, 3.0)
    assert plan(short).notes == (
        "no rolling take-off: its way of 22.0 m is too short, expected 22.1 m",
    )
    shorter = FlyLeg(((0.0, 0.0, 2.0), (7.9, 0.0, 2.0)), (4.0, 4.0), True, 0.0, 3.0)
    assert plan(shorter).notes == (
        "no rolling landing: its way of 7.9 m is too short, expected 8.0 m",
    )

    # 2.5 s late at 3 m/s, and 3²/1.6 m + 2 m to stop: 15.1 m
    assert plan(onward=(WAY + 15.2, 0.0)).notes == ()
    assert plan(onward=(WAY + 5.0, 30.0)).notes == ()
    assert plan(onward=(WAY + 15.0, 1.0)).notes == (
        "no rolling landing: its track of 15.0 m is too short, expected 15.1 m",
    )
    assert plan(terrain=ground(lambda x: 0.0), leg=_moved(HOP, 40.0)).notes == (
        "no rolling landing: the track leads off the map",
    )


def _moved(leg, east):
    points = tuple((x + east, y, z) for x, y, z in leg.points)
    return FlyLeg(points, leg.speeds, leg.lands, leg.roll_off, leg.roll_out)


def step(guide, time, x=0.0, speed=0.0, mode=Mode.DRIVE):
    position = np.array((x, 0.0, PARAMS.origin_height))
    velocity = np.array((speed, 0.0, 0.0))
    return guide.step(
        Estimate(time, position, np.array((0, 0, 0, 1.0)), velocity, np.zeros(3)), mode
    )


def test_the_guide_rolls_through_the_place_of_the_take_off():
    guide = MissionGuide([DriveLeg(((10.0, 0.0),), (3.0,)), _moved(HOP, 10.0)], PARAMS)
    assert step(guide, 0.0, 9.0, 3.0).speed == pytest.approx(3.0)
    step(guide, 0.1, 10.1, 3.0)
    order = step(guide, 0.2, 10.4, 3.0)
    assert (order.mode, order.speed) == (Mode.ROLLING_TAKEOFF, 3.0)

    order = step(guide, 0.3, 10.7, 3.0, Mode.ROLLING_TAKEOFF)
    assert (order.mode, order.speed, order.velocity) == (None, 3.0, (3.0, 0.0, 0.0))
    assert guide.log == []


def test_on_rough_ground_it_stands_and_takes_off_as_usual():
    rough = ground(lambda x: 0.1 * (12.0 < x < 13.0))
    guide = MissionGuide([DriveLeg(((10.0, 0.0),), (3.0,)), _moved(HOP, 10.0)], PARAMS, rough)
    assert step(guide, 0.0, 9.0, 3.0).speed < 2.0
    note = "no rolling take-off: the track is rough by 0.10 m, expected less than 0.05 m"
    assert guide.log == [(0.0, note)]
    step(guide, 0.1, 9.9, 0.5)
    step(guide, 0.2, 10.0)
    assert step(guide, 0.3, 10.0).mode is Mode.TAKEOFF


def test_a_take_off_that_does_not_lift_off_lands_and_stops():
    guide = MissionGuide([HOP], PARAMS)
    step(guide, 0.0)
    assert step(guide, 1.0, 3.0, 3.0).mode is Mode.ROLLING_TAKEOFF
    assert step(guide, 2.0, 6.0, 3.0, Mode.ROLLING_TAKEOFF).mode is None
    assert step(guide, 5.0, 14.0, 3.0, Mode.ROLLING_TAKEOFF).mode is Mode.LAND
    assert guide.log[-1] == (5.0, "no rolling take-off: it did not lift off on its track")

    # once it stands
    assert step(guide, 7.0, 18.0).mode is Mode.TAKEOFF


def test_steps_that_roll():
    steps = [
        MissionStep("waypoint", (10.0, 0.0), speed=2.0),
        MissionStep("takeoff", height=2.0, rolling=True),
        MissionStep("land", (50.0, 0.0), rolling=True),
    ]
    drive, fly = legs_of(steps, (0.0, 0.0), None, 3.0, 4.0)
    assert isinstance(drive, DriveLeg)
    assert (fly.roll_off, fly.roll_out) == (2.0, 2.0)
    steps[2] = MissionStep("land", (50.0, 0.0))
    _, fly = legs_of(steps, (0.0, 0.0), None, 3.0, 4.0)
    assert (fly.roll_off, fly.roll_out) == (2.0, 0.0)

    with pytest.raises(ConfigError, match="rolling: there is no way to fly; expected a way-point"):
        legs_of([steps[1], MissionStep("land")], (0.0, 0.0), None, 3.0, 4.0)
    with pytest.raises(ConfigError, match="rolling: at 1 m/s; expected speeds on the ground and"):
        legs_of(steps[1:], (0.0, 0.0), None, 1.0, 4.0)


def test_steps_that_roll_by_choice():
    """No speed and no way of a step is wrong then: it takes off from a stand."""
    steps = [
        MissionStep("waypoint", (10.0, 0.0)),
        MissionStep("takeoff", height=2.0),
        MissionStep("land", (50.0, 0.0)),
    ]
    _, fly = legs_of(steps, (0.0, 0.0), None, 5.0, 6.0, may_roll=True)
    assert (fly.roll_off, fly.roll_out, fly.by_choice) == (5.0, 3.0, True)
    upright = [steps[1], MissionStep("land")]
    for way, speed in ((upright, 3.0), (steps, 1.0)):
        fly = legs_of(way, (0.0, 0.0), None, speed, 4.0, may_roll=True)[-1]
        assert (fly.roll_off, fly.roll_out) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("height", "notes"),
    [
        (2.0, ()),
        # 5.2 m up at 2 m/s and 1 m/s cost as much: see test_rolling_choice
        (6.0, ("no rolling take-off: it saves nothing",)),
    ],
)
def test_by_choice_it_rolls_where_that_saves_energy(height, notes):
    points = ((0.0, 0.0, height), (80.0, 0.0, height))
    leg = FlyLeg(points, (4.0, 4.0), True, 3.0, 3.0, by_choice=True)
    assert plan(leg).notes == notes
    assert plan(dataclasses.replace(leg, by_choice=False)).notes == ()


def test_a_take_off_counts_the_speed_of_the_way_that_follows_it():
    """The flight saves, at 2 m/s, 1.25 s + 0.27 s - 3.5 m/(2 m/s); with 4 m/s in the air 0.4 s.

    Only the climb before it has 4 m/s.
    """
    points = ((0.0, 0.0, 3.5), (80.0, 0.0, 3.5))
    leg = FlyLeg(points, (4.0, 2.0), True, 2.0, 2.0, by_choice=True)
    assert plan(leg).notes == ("no rolling take-off: it saves nothing",)
    assert plan(dataclasses.replace(leg, speeds=(2.0, 4.0))).notes == ()


@pytest.mark.parametrize(
    ("x", "y", "top", "notes"),
    [
        (10.0, 0.0, 0.3, ("no rolling take-off: an object is in its way",)),
        (10.0, 3.0, 3.0, ()),
        # half of the climb from 8.1 to 14.1 m
        (14.0, 0.0, 1.2, ("no rolling take-off: an object is in its way",)),
        (50.0, 0.0, 0.3, ("no rolling landing: an object is in its way",)),
        (80.0, 0.0, 3.0, ()),
        (50.0, 0.0, 0.03, ()),
    ],
)
def test_it_rolls_into_no_object(x, y, top, notes):
    solids = ObjectBoxes([(x, y, 0.5 * top)], [(0.1, 0.1, 0.5 * top)])
    for terrain in (None, ground(lambda x: 0.0)):
        assert rolling_plan(HOP, None, PARAMS, terrain, False, solids).notes == notes


@pytest.mark.parametrize("x", [12.0, exhaustively(70.0)])
def test_a_mission_that_may_roll_flies_over_a_wall_or_lands_before_it(tmp_path, x):
    """The wall is 3 m high; the vehicle lands at 62 m, where a roll-out takes up to 15 m."""
    world = f"version: 1\nobjects: [{{box: [0.5, 6, 3], x: {x}, y: 0}}]\n"
    (tmp_path / "wall.yaml").write_text(world, encoding="utf-8")
    text = """version: 1
vehicle: scale
world: wall.yaml
method: semi_implicit_euler
mission: {rolling: true, items: [{mode: takeoff, height_m: 5}, {mode: land, position_m: [62, 0]}]}
end: {when: standing_after_landing, time_s: 90}
"""
    run = run_scenario(Scenario.parse(text.encode(), "s.yaml", "s", tmp_path))
    assert run.reached, run.ending
    assert not run.final.crashed
    assert any("an object is in its way" in text for _, text in run.log)
