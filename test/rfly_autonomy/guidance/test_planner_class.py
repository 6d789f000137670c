# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The planner's class of a vehicle: its energy is that of simulated trips, and its choice best."""

from __future__ import annotations

import dataclasses
import functools
import itertools

import numpy as np
import pytest
from marks import exhaustively

from rfly_amphibious import AmphibiousModel, Scenario, VehicleParameters
from rfly_amphibious.dynamics.trim import steady_flight
from rfly_amphibious.dynamics.wind import Wind
from rfly_amphibious.simulation.commands import Mode
from rfly_autonomy.guidance.planner_class import planner_class
from rfly_autonomy.guidance.rolling_choice import choose_rolling
from rfly_lab import run_scenario
from rfly_missions.mission.legs import legs_of_path
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.planning.plan import DRIVE, FLY, PlanPose
from rfly_terrain.planning.planner import Planner
from rfly_terrain.planning.vehicle_classes import load_vehicle_classes

SCALE = VehicleParameters.load("scale")
CLASSES = load_vehicle_classes()
SIDE = 90
STEP = 2.0
"""Samples and their distance of the maps, m."""


@functools.cache
def rolling_class():
    return planner_class(SCALE, CLASSES["land_air"])


@functools.cache
def standing_class():
    return dataclasses.replace(rolling_class(), rolling=None)


def numbers(part):
    values = dataclasses.asdict(part)
    return {key: value for key, value in values.items() if isinstance(value, float | int)}


def test_the_shipped_class_is_that_of_the_vehicle():
    shipped = CLASSES["land_air"]
    assert shipped.mass == SCALE.mass
    assert shipped.drive is not None
    assert shipped.fly is not None
    own = rolling_class()
    assert own.drive is not None
    assert own.fly is not None
    assert numbers(shipped.drive) == pytest.approx(numbers(own.drive), rel=1e-3)
    assert numbers(shipped.fly) == pytest.approx(numbers(own.fly), rel=1e-3)
    assert shipped.rolling is not None
    assert numbers(shipped.rolling) == pytest.approx(numbers(own.rolling), rel=1e-3)


def test_powers_are_those_of_the_simulator():
    """Level flight at 10 m/s costs less than hover, by the same share as in `trim`."""
    fly = standing_class().fly
    assert fly is not None
    assert fly.hover_power is not None
    assert fly.sink_power is not None
    model = AmphibiousModel(SCALE, ground_effect=False)
    share = steady_flight(model, 10.0).rotor_power / steady_flight(model).rotor_power
    assert (fly.power - 25.0) / (fly.hover_power - 25.0) == pytest.approx(share)
    climbing = fly.energy(SCALE.mass, 0.0, 10.0) / 5.0
    expected = steady_flight(model, climb=2.0).rotor_power / 0.85 + 25.0
    assert climbing == pytest.approx(expected)
    assert fly.sink_power < fly.hover_power < climbing


def test_a_flight_with_acceleration_takes_its_time():
    """The trip of 100 m at 0.8 m/s² and at most 8 m/s takes 8/0.8 + 100/8 = 22.5 s.

    10 m: 2 √(10/0.8) = 7.07 s. With a right angle in the middle it slows down to 0.707 m/s there.
    """
    flying = standing_class().fly
    assert flying is not None
    fly = dataclasses.replace(flying, speed=8.0)
    far = np.array([(0.0, 0.0, 20.0), (100.0, 0.0, 20.0)])
    assert fly.path(30.0, far)[1] == pytest.approx(22.5)
    assert fly.path(30.0, far / 10.0)[1] == pytest.approx(7.071, abs=1e-3)
    bend = np.array([(0.0, 0.0, 20.0), (50.0, 0.0, 20.0), (50.0, 50.0, 20.0)])
    # √(0.8 · 50 + 0.25) = 6.344 m/s are reached in between
    expected = 2.0 * (2.0 * 6.3443 - 0.7071) / 0.8
    assert fly.path(30.0, bend)[1] == pytest.approx(expected, rel=1e-3)


def walled(rng):
    """Return rolling ground with a wall across, which only flights pass."""
    x, y = np.meshgrid(np.arange(SIDE), np.arange(SIDE), indexing="ij")
    heights = sum(
        rng.uniform(0.2, 0.8)
        * np.sin(x / rng.uniform(10, 18) + rng.uniform(0, 6))
        * np.cos(y / rng.uniform(10, 18) + rng.uniform(0, 6))
        for _ in range(3)
    )
    thickness = rng.uniform(1.5, 15.0)
    wall = (np.abs(x - 45) < thickness) * rng.uniform(4.0, 14.0)
    return HeightMap(heights + wall, origin_x=0.0, origin_y=0.0, step_x=STEP, step_y=STEP)


def trip(seed):
    """Return (plan, run) of a random trip, across the wall or not."""
    rng = np.random.default_rng([36, seed])
    terrain = walled(rng)
    begin = rng.uniform((12.0, 15.0), (40.0, 165.0))
    far = rng.random() < 0.75
    end = (
        rng.uniform((140.0, 15.0), (168.0, 165.0))
        if far
        else rng.uniform((12.0, 15.0), (40.0, 165.0))
    )
    heading = float(rng.uniform(-np.pi, np.pi))
    start = PlanPose(*begin, heading=heading)
    plan = Planner(terrain).mixed(standing_class(), start, PlanPose(*end))
    return plan, simulated(plan, terrain)


def simulated(plan, terrain, rolls=False):
    """Return the run of a plan by the pilot, without wind; `rolls`: where that saves energy."""
    begin = plan.position[0, :2]
    drive = standing_class().drive
    fly = standing_class().fly
    assert drive is not None
    assert fly is not None

    legs = legs_of_path(plan.position, terrain, drive.speed, fly.speed, begin, plan.heading)
    if rolls:
        legs = choose_rolling(legs, tuple(begin), SCALE, terrain).legs
    scenario = dataclasses.replace(
        Scenario.load("hop"),
        params=SCALE,
        legs=legs,
        terrain=terrain,
        start=tuple(begin),
        heading=float(plan.heading[0]),
        wind=Wind(),
        events=(),
        end="mission_done",
        end_time=300.0,
    )
    return run_scenario(scenario)


@pytest.mark.parametrize(
    "seed",
    [0, *(exhaustively(seed) for seed in range(3, 30, 12))],
)
def test_the_planned_energy_is_that_of_the_simulated_trip(seed):
    plan, run = trip(seed)
    assert run.reached, run.ending
    assert plan.energy == pytest.approx(run.battery_energy, rel=0.05)


def low_wall(seed, width):
    """Return a class that flies 3 or 10 m high over a wall on nearly level ground, and a trip."""
    rng = np.random.default_rng([40, seed])
    x, y = np.meshgrid(np.arange(width), np.arange(SIDE), indexing="ij")
    heights = sum(
        rng.uniform(0.0, 0.15)
        * np.sin(x / rng.uniform(10, 18) + rng.uniform(0, 6))
        * np.cos(y / rng.uniform(10, 18) + rng.uniform(0, 6))
        for _ in range(3)
    )
    wall = (np.abs(x - width // 2) < rng.uniform(1.5, 4.0)) * rng.uniform(2.0, 8.0)
    terrain = HeightMap(heights + wall, origin_x=0.0, origin_y=0.0, step_x=STEP, step_y=STEP)

    begin = rng.uniform((12.0, 30.0), (STEP * width // 2 - 60.0, 150.0))
    end = rng.uniform((STEP * width // 2 + 60.0, 30.0), (STEP * width - 12.0, 150.0))
    rolling = rolling_class()
    fly = dataclasses.replace(rolling.fly, min_height=3.0 if seed % 2 else 10.0)
    vehicle = dataclasses.replace(rolling, fly=fly)
    pose = PlanPose(*begin, heading=float(rng.uniform(-1.0, 1.0)))
    return terrain, vehicle, pose, PlanPose(*end)


@pytest.mark.parametrize(
    "seed",
    [*(exhaustively(seed) for seed in (0, 1, 11))],
)
def test_a_plan_that_rolls_has_the_energy_of_the_simulated_trip(seed):
    """It rolls where the pilot does, who chooses by seconds of hovering; and it saves energy."""
    terrain, vehicle, begin, end = low_wall(seed, 200)
    plan = Planner(terrain).mixed(vehicle, begin, end)
    run = simulated(plan, terrain, rolls=True)
    assert run.reached, run.ending
    assert plan.energy == pytest.approx(run.battery_energy, rel=0.05)

    modes = [mode for _, mode in run.modes]
    notes = " ".join(plan.notes)
    assert (Mode.ROLLING_TAKEOFF in modes) is ("rolling take-off" in notes)
    assert (Mode.ROLL_OUT in modes) is ("rolling landing" in notes)
    standing = Planner(terrain).mixed(dataclasses.replace(vehicle, rolling=None), begin, end)
    if plan.notes:
        assert plan.energy < standing.energy
    else:
        assert plan.energy == standing.energy
    if seed == 1:
        assert len(plan.notes) == 2, "it rolls off and out"


@pytest.mark.exhaustive
def test_where_the_graph_hopes_too_much_the_plan_rolls_on_the_way_of_stands():
    """The plan once flew where it hoped in vain to roll; the pilot rolled on the plan's way.

    The plan had 90 kJ from stand to stand; the simulated trip took 69 kJ.
    """
    rng = np.random.default_rng([99, 24])
    rng.choice([3.0, 5.0, 10.0])
    width = int(rng.integers(100, 180))
    x, y = np.meshgrid(np.arange(width), np.arange(60), indexing="ij")
    heights = sum(
        rng.uniform(0, 0.4)
        * np.sin(x / rng.uniform(8, 25) + rng.uniform(0, 6))
        * np.cos(y / rng.uniform(8, 25) + rng.uniform(0, 6))
        for _ in range(3)
    )
    ends = [0.0, rng.uniform(-6, 6), rng.uniform(-6, 6)]
    heights = heights + np.interp(x, [0, width / 2, width], ends)
    heights = heights + (np.abs(x - width // 2) < rng.uniform(1.5, 6)) * rng.uniform(1, 8)
    terrain = HeightMap(heights, origin_x=0.0, origin_y=0.0, step_x=1.5, step_y=1.5)

    rolling = rolling_class()
    vehicle = dataclasses.replace(rolling, fly=dataclasses.replace(rolling.fly, min_height=3.0))
    begin = PlanPose(15.3305, 15.3175)
    plan = Planner(terrain).mixed(vehicle, begin, PlanPose(185.453, 62.8079))
    run = simulated(plan, terrain, rolls=True)
    assert run.reached, run.ending
    assert plan.energy == pytest.approx(run.battery_energy, rel=0.05)
    assert len(plan.notes) == 2


@pytest.mark.parametrize(
    ("rise", "seed"),
    [
        (0.07, 0),
        (-0.03, 1),
        *(exhaustively(rise, seed) for rise in (-0.07, -0.03, 0.0, 0.03, 0.07) for seed in (2, 3)),
    ],
)
def test_the_planned_energy_is_that_of_a_simulated_drive(rise, seed):
    """Straight starts and bends, uphill and downhill, on waves of ground.

    Downhill gains and losses nearly cancel: 100 J are four seconds of the base load.
    """
    rng = np.random.default_rng([38, seed])
    x, y = np.meshgrid(STEP * np.arange(SIDE), STEP * np.arange(SIDE), indexing="ij")
    waves = np.sin(x / rng.uniform(20, 36) + rng.uniform(0, 6)) * np.cos(y / rng.uniform(20, 36))
    terrain = HeightMap(
        rise * x + 0.4 * waves, origin_x=0.0, origin_y=0.0, step_x=STEP, step_y=STEP
    )

    begin = rng.uniform((12.0, 60.0), (40.0, 120.0))
    heading = float(rng.uniform(-0.5, 0.5))
    end = begin + rng.uniform(15.0, 120.0) * np.array((np.cos(heading), np.sin(heading)))
    plan = Planner(terrain).drive(
        standing_class(), PlanPose(*begin, heading=heading + rng.choice((0.0, 1.0))), PlanPose(*end)
    )
    run = simulated(plan, terrain)
    assert run.reached, run.ending
    assert plan.energy == pytest.approx(run.battery_energy, rel=0.05, abs=100.0)


def test_the_kinetic_energy_does_the_work_of_the_last_metres():
    """The vehicle, 10 kg at 4 m/s, has 80 J; resistance takes 0.02 · 98.07 N · 20 m.

    A rise of 2 m at the end, 196.1 J, takes the other 40.8 J, too, which would give back 20.4 J;
    155.4 J are driven. A fall of 2 m gives back 98.1 J. A drive of 10 m gets half the energy.
    """
    drive = dataclasses.replace(
        standing_class().drive,
        speed=4.0,
        rolling_resistance=0.02,
        efficiency=0.8,
        regeneration=0.5,
        idle_power=0.0,
        start_energy=30.0,
        stopping_distance=20.0,
    )

    def trip(way, climb):
        return drive.trip(10.0, np.full(100, way / 100), np.full(100, climb / 100))

    driven = 0.02 * 98.0665 / 0.8
    assert trip(20.0, 0.0) == pytest.approx(20.0 * driven + 30.0)
    assert trip(20.0, 2.0) == pytest.approx(
        20.0 * driven + 30.0 + 0.5 * 40.773 + 155.36 / 0.8, 1e-4
    )
    assert trip(20.0, -0.5) == pytest.approx(20.0 * driven + 30.0 - 0.5 * 49.033, 1e-4)
    assert trip(20.0, -2.0) == 0.0
    assert trip(10.0, 0.0) == pytest.approx(10.0 * driven + 15.0)
    assert trip(40.0, 0.0) == pytest.approx(40.0 * driven + 30.0)


@pytest.mark.parametrize("seed", range(4))
def test_no_other_take_off_and_landing_is_better(seed):
    """Brute force: all pairs of places for take-off and landing, with straight lines between.

    On level ground with a wall and no other obstacle straight lines are the best ways.
    """
    rng = np.random.default_rng([37, seed])
    x, _ = np.meshgrid(np.arange(SIDE), np.arange(SIDE), indexing="ij")
    wall = 6.0 * (np.abs(x - 45) < 3.0)
    terrain = HeightMap(wall, origin_x=0.0, origin_y=0.0, step_x=STEP, step_y=STEP)
    drive = standing_class().drive
    fly = standing_class().fly
    assert drive is not None
    assert fly is not None

    begin = rng.uniform((12.0, 15.0), (70.0, 165.0))
    end = rng.uniform((110.0, 15.0), (168.0, 165.0))
    plan = Planner(terrain).mixed(standing_class(), PlanPose(*begin), PlanPose(*end))

    before = [begin, *itertools.product(np.arange(12.0, 85.0, 2.0), np.arange(12.0, 170.0, 4.0))]
    after = [end, *itertools.product(np.arange(96.0, 170.0, 2.0), np.arange(12.0, 170.0, 4.0))]
    # flights over the wall, by their length
    height = 6.0 + fly.min_height
    lengths = np.linspace(1.0, 200.0, 400)
    corners = np.array([(0.0, 0.0, 0.0), (0.0, 0.0, height), (1.0, 0.0, height)])
    energies = [fly.path(SCALE.mass, corners * (way, 0.0, 1.0))[0] for way in lengths]
    ends = fly.energy(SCALE.mass, 0.0, -height) + fly.takeoff_energy + fly.landing_energy

    def driven(way):
        started = np.where(way > 0.0, drive.start_energy, 0.0)
        return drive.energy(SCALE.mass, way, 0.0) + started

    near = np.array(before)
    far = np.array(after)
    there = driven(np.hypot(*(near - begin).T))[:, None] + driven(np.hypot(*(far - end).T))
    across = np.linalg.norm(near[:, None] - far, axis=2)
    best = (there + np.interp(across, lengths, energies)).min() + ends
    assert (plan.mode == FLY).any()
    assert (plan.mode == DRIVE).any()
    assert plan.energy < 1.04 * best
