# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Plans of a class that rolls, over a wall on level ground: energies and tracks by hand."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from rfly_common.errors import ConfigError, PlanError
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.planning.fly import plan_fly
from rfly_terrain.planning.plan import DRIVE, FLY, PlanPose
from rfly_terrain.planning.planner import Planner
from rfly_terrain.planning.rolling_flights import Flight, RollingFlights
from rfly_terrain.planning.vehicle_classes import parse_vehicle_classes

TEXT = """version: 1
classes:
  - name: mule
    kind: land_air
    mass: 20
    radius: 0.5
    drive: {speed: 4, turning_radius: 1, half_wheelbase: 0.4, max_slope_deg: 20,
            rolling_resistance: 0.05, efficiency: 0.5, start_energy: 100, stopping_distance: 10}
    fly: {min_height: 3, speed: 8, climb_rate: 2, sink_rate: 1, power: 1000, hover_power: 1200,
          sink_power: 1100, efficiency: 0.5, takeoff_energy: 500, landing_energy: 5000,
          acceleration: 1}
    rolling: {takeoff_speed: 4, climb_rate: 1, climb_power: 1100, landing_speed: 2, sink_rate: 0.5,
              sink_power: 900, lift_off_energy: 300, flare_energy: 200, run_up: 6, braking: 8,
              flare: 1, roll_out: 5, track: 0.6, max_roughness: 0.05, highest_takeoff: 50,
              highest_landing: 20}
"""
MULE = parse_vehicle_classes(TEXT.encode(), "mule.yaml")["mule"]
STANDING = dataclasses.replace(MULE, rolling=None)
WEIGHT = 20 * 9.80665
DRIVEN = WEIGHT * 0.05 / 0.5
"""Energy of a metre on level ground, J."""


def ground(change=lambda x, y: 0.0 * x):
    """Return level ground, 400 m by 160 m, with a wall of 2 m at x = 200 m, and a change to it."""
    x, y = np.meshgrid(np.arange(0.0, 401.0, 1.0), np.arange(0.0, 161.0, 1.0), indexing="ij")
    heights = np.where(np.abs(x - 200.0) < 2.5, 2.0, 0.0) + change(x, y)
    return HeightMap(heights, origin_x=0.0, origin_y=0.0, step_x=1.0, step_y=1.0)


def plan_over(terrain, vehicle, begin=(60.0, 80.0, None), end=(340.0, 80.0, None)):
    return Planner(terrain).mixed(vehicle, PlanPose(*begin), PlanPose(*end))


def test_what_rolling_saves_by_hand():
    """From 5 m: by hand, with 3 s and 1.75 s of speeding up that a flight does not need."""
    flights = RollingFlights(Planner(ground()), MULE, MULE.rolling, None)
    standing = 500.0 + 1200.0 * 5.0 / 2.0 + WEIGHT * 5.0 / 0.5
    rolling = 300.0 + 1100.0 * 5.0 / 1.0 - DRIVEN * 4.0 * 5.0
    gained = (64.0 - 16.0) / 16.0 * 1100.0
    assert flights.saved_by_take_off(5.0) == pytest.approx(standing + gained - rolling)

    standing = 5000.0 + 1100.0 * 5.0
    rolling = 200.0 + 900.0 * 5.0 / 0.5 - DRIVEN * (2.0 * 5.0 / 0.5 + 1.0)
    gained = (64.0 - 36.0) / 16.0 * 1100.0
    assert flights.saved_by_landing(5.0) == pytest.approx(standing + gained - rolling)

    # at 1 m/s up and 0.5 m/s down it gets dear far above the ground
    assert flights.saved_by_take_off(200.0) < 0.0
    assert flights.saved_by_landing(40.0) < 0.0


def test_the_graph_hopes_for_rolling_only_where_the_rule_lets_it_roll():
    """Above 0.5 m and below 50 m (a take-off) or 20 m (a landing), though more saves energy."""
    flights = RollingFlights(Planner(ground()), MULE, MULE.rolling, None)
    heights = np.array((0.5, 3.0, 19.0, 20.0, 30.0, 50.0))
    up, down = flights.hoped(heights)
    saved = flights.saved_by_take_off(heights), flights.saved_by_landing(heights)
    assert up == pytest.approx(np.where([0, 1, 1, 1, 1, 0], saved[0], 0.0))
    assert down == pytest.approx(np.where([0, 1, 1, 0, 0, 0], saved[1], 0.0))
    assert (up[1], down[1]) > (0.0, 0.0)
    assert saved[0][0] > 0.0


def test_the_energy_of_a_plan_by_hand():
    """It climbs at 4 m/s, flies with 1 m/s² until it has to slow down, glides at 2 m/s, drives."""
    plan = plan_over(ground(), MULE)
    assert [note.split(" at ")[0] for note in plan.notes] == ["rolling take-off", "rolling landing"]
    flown = np.flatnonzero(plan.mode == FLY)
    flight = plan.position[flown[1] : flown[-1] + 1]
    way = flight[-1, 0] - flight[0, 0]
    up = flight[0, 2]
    down = flight[-1, 2]
    lifted = flight[:, 2].max() - up

    top = math.sqrt((4.0**2 + 2.0**2) / 2.0 + way)
    assert top < 8.0
    level = way / 8.0
    flying = level * 1000.0 + (2.0 * top - 6.0 - level) * 1100.0 + WEIGHT * lifted / 0.5
    climb = 300.0 + 1100.0 * up
    glide = 200.0 + 900.0 * down / 0.5
    drives = DRIVEN * (280.0 - way - 4.0 * up - 2.0 * down / 0.5 - 1.0) + 2.0 * 100.0
    assert plan.energy == pytest.approx(drives + climb + flying + glide, rel=0.01)
    assert plan.energy < plan_over(ground(), STANDING).energy - 6000.0


def test_the_driven_ways_beside_a_flight_are_as_long_as_its_tracks():
    plan = plan_over(ground(), MULE)
    flown = np.flatnonzero(plan.mode == FLY)
    up = plan.position[flown[1], 2]
    down = plan.position[flown[-1], 2]
    needed = (6.0 + 4.0 * up, 2.0 * down / 0.5 + 1.0 + 5.0)
    for index, direction, least in zip((flown[0], flown[-1] + 1), (-1, 1), needed, strict=True):
        place = plan.position[index]
        ways = plan.position[index::direction, :2] - place[:2]
        straight = np.append(np.abs(ways[:, 1]) < 0.01, False)
        assert np.abs(ways[: np.argmin(straight), 0]).max() >= least
        assert place[2] == pytest.approx(0.0)


def _step(x, y):
    return 0.1 * ((np.abs(x % 8.0) < 0.5) & (x < 190.0))


@pytest.mark.parametrize(
    ("change", "rolls"),
    [
        (lambda x, _: 0.0 * x, {"take-off", "landing"}),
        (_step, {"landing"}),
        (lambda x, _: 0.1 * np.maximum(x - 203.0, 0.0), {"take-off"}),
        (lambda _, y: 0.1 * y, set()),
    ],
    ids=["level", "rough before", "steep behind", "steep across"],
)
def test_it_rolls_where_the_ground_allows_it(change, rolls):
    terrain = ground(change)
    plan = plan_over(terrain, MULE)
    assert FLY in plan.mode
    assert {note.split()[1] for note in plan.notes} == rolls
    if not rolls:
        assert plan.energy == plan_over(terrain, STANDING).energy


def test_rolling_decides_between_a_flight_and_a_way_round():
    """Round the end of the wall, 600 m aside, it costs more than by a flight that rolls only."""
    x, y = np.meshgrid(np.arange(0.0, 401.0, 1.0), np.arange(0.0, 1601.0, 4.0), indexing="ij")
    heights = np.where((np.abs(x - 200.0) < 2.5) & (y < 1360.0), 2.0, 0.0)
    terrain = HeightMap(heights, origin_x=0.0, origin_y=0.0, step_x=1.0, step_y=4.0)
    ends = (100.0, 760.0, None), (300.0, 760.0, None)
    standing = plan_over(terrain, STANDING, *ends)
    rolling = plan_over(terrain, MULE, *ends)
    assert (standing.mode == DRIVE).all()
    assert (rolling.mode == FLY).any()
    assert rolling.energy < standing.energy


@pytest.mark.parametrize(
    ("heading", "rolls"), [(0.1, ["take-off", "landing"]), (math.pi / 2.0, ["landing"])]
)
def test_without_drives_a_flight_rolls_inside_its_ends_if_the_vehicle_looks_along_it(
    heading, rolls
):
    terrain = ground()

    def aloft(start, goal, _takes_off, _lands):
        return plan_fly(terrain, MULE, dataclasses.replace(start, z=0.0), goal, hold_altitude=True)

    flights = RollingFlights(Planner(terrain), MULE, MULE.rolling, aloft)
    start = PlanPose(100.0, 80.0, heading)
    plan = flights.plan(Flight(start, PlanPose(300.0, 80.0), True, True, False, False))
    assert [note.split()[1] for note in plan.notes] == rolls
    assert plan.position[[0, -1]] == pytest.approx(np.array([(100.0, 80.0, 0), (300.0, 80.0, 0)]))
    assert plan.mode[[0, -1]].tolist() == [DRIVE if "take-off" in rolls else FLY, DRIVE]

    # 30 m are less than both tracks: one of them
    plan = flights.plan(Flight(start, PlanPose(130.0, 80.0), True, True, False, False))
    assert len(plan.notes) == 1


def test_a_take_off_that_saves_nothing_at_the_end_of_its_track_is_none():
    """The vehicle rolls up from 2 m to 2.3 m, so its flight begins 14.6 m ahead.

    The ground is 0.5 m higher there, and 2.5 m are too high.
    """
    rolling = dataclasses.replace(MULE.rolling, highest_takeoff=2.3)
    vehicle = dataclasses.replace(
        MULE, rolling=rolling, fly=dataclasses.replace(MULE.fly, min_height=2.0)
    )
    terrain = ground(lambda x, _: 0.06 * np.clip(x - 106.0, 0.0, 30.0))

    def aloft(start, goal, takes_off, _lands):
        z = float(terrain.altitude(start.x, start.y)) if takes_off else None
        start = dataclasses.replace(start, z=z)
        return plan_fly(terrain, vehicle, start, goal, hold_altitude=True)

    flights = RollingFlights(Planner(terrain), vehicle, rolling, aloft)
    flight = Flight(PlanPose(100.0, 80.0, 0.0), PlanPose(300.0, 80.0), True, True, False, False)
    assert [note.split()[1] for note in flights.plan(flight).notes] == ["landing"]


def test_a_flight_that_cannot_begin_at_the_end_of_its_track_still_lands_rolling():
    terrain = ground()

    def aloft(start, goal, _takes_off, _lands):
        if start.x > 100.0:
            raise PlanError("start_blocked", "an object is above it")
        return plan_fly(terrain, MULE, dataclasses.replace(start, z=0.0), goal, hold_altitude=True)

    flights = RollingFlights(Planner(terrain), MULE, MULE.rolling, aloft)
    start = PlanPose(100.0, 80.0, 0.0)
    plan = flights.plan(Flight(start, PlanPose(300.0, 80.0), True, True, False, False))
    assert [note.split()[1] for note in plan.notes] == ["landing"]


def test_only_what_drives_and_flies_rolls():
    text = TEXT.replace("kind: land_air", "kind: multirotor").replace(
        TEXT[TEXT.index("    drive:") : TEXT.index("    fly:")], ""
    )
    with pytest.raises(ConfigError, match="a multirotor vehicle has no such key"):
        parse_vehicle_classes(text.encode(), "mule.yaml")
