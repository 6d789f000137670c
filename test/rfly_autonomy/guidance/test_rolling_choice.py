# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rolling take-offs and landings that are chosen for a planned path, worked out by hand."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.flight_modes import SLOW_BELOW
from rfly_autonomy.control.path_following import RISEN
from rfly_autonomy.guidance.rolling import (
    highest_landing,
    highest_take_off,
    hover_saved_down,
    hover_saved_off,
)
from rfly_autonomy.guidance.rolling_choice import assisted, choose_rolling
from rfly_lab.runs.run import run_scenario
from rfly_missions.mission.legs import DriveLeg, FlyLeg
from rfly_terrain.height_map.height_map import HeightMap

PARAMS = VehicleParameters.load("scale")
TRACK = 3.0 * 2.7 + 3.0**2 / 1.6 + 2.0
"""Ground that a take-off at 3 m/s takes, m: 2.7 s, and the way to stop."""

GLIDE = 3.0 * (1.5 / 0.9 + 1.0) + 1.0
"""Glide from 2 m, m, with a metre to come on course."""


def path(before=30.0, after=30.0, height=2.0, drive=3.0, fly=4.0, bend=0.0):
    """Drive east, fly 10 m, and drive on, in a bend after the landing; way-points each 5 m."""
    first = tuple((float(x), 0.0) for x in np.arange(5.0, before + 1.0, 5.0))
    end = before + 10.0
    cosine = math.cos(math.radians(bend))
    sine = math.sin(math.radians(bend))
    ways = np.arange(5.0, after + 1.0, 5.0)
    last = tuple((end + float(s) * cosine, float(s) * sine) for s in ways)
    return (
        DriveLeg(first, (drive,) * len(first)),
        FlyLeg(((before, 0.0, height), (end, 0.0, height)), (fly, fly), True),
        DriveLeg(last, (drive,) * len(last)),
    )


def choose(legs, terrain=None):
    return choose_rolling(legs, (0.0, 0.0), PARAMS, terrain)


@pytest.mark.parametrize(
    ("height", "off", "down"),
    [
        # 0.14 * 2 + 4/3 + 0.5 + 2.5 and 0.14 + 0.7 + 2 + 1/6.4
        (2.0, 4.616 - 2.998, 2.5 + 0.5 + 4.0 - 1.0 / 6.4 - 1.5 / 0.9 - 1.0),
        # 4 m/s up at 2 m/s takes half of the time at 1 m/s
        (8.0, 7.616 - 8.998, 2.5 + 0.5 + 10.0 + 2.0 - 1.0 / 6.4 - 7.5 / 0.9 - 1.0),
    ],
)
def test_hovering_that_rolling_saves(height, off, down):
    assert hover_saved_off(3.0, 4.0, height) == pytest.approx(off, abs=2e-3)
    assert hover_saved_down(3.0, 4.0, height) == pytest.approx(down, abs=2e-3)


@given(st.floats(1.5, 8.0), st.floats(0.0, 8.0))
def test_rolling_saves_time_below_the_highest_flight_only(speed, faster):
    """A slower flight than 1.5 m/s on the ground never rolls."""
    for highest, saved, least in (
        (highest_take_off, hover_saved_off, RISEN),
        (highest_landing, hover_saved_down, SLOW_BELOW),
    ):
        top = highest(speed, speed + faster)
        assert top > least
        assert saved(speed, speed + faster, top) == pytest.approx(0.0, abs=1e-9)
        assert saved(speed, speed + faster, 0.99 * top) > 0.0
        assert saved(speed, speed + faster, 2.0 * top) < 0.0
        assert highest(1.49, 1.49 + faster) == 0.0


def test_it_rolls_along_the_driven_ways_only():
    drive, fly, onward = choose(path()).legs
    assert drive.points == (pytest.approx((30.0 - TRACK, 0.0)),)
    assert fly.points[0] == pytest.approx((30.0 - TRACK, 0.0, 2.0))
    assert fly.points[1:3] == ((30.0, 0.0, 2.0), (40.0, 0.0, 2.0))
    assert fly.points[3] == pytest.approx((40.0 + GLIDE, 0.0, 2.0))
    assert (fly.roll_off, fly.roll_out) == (3.0, 3.0)

    # 15.1 m to roll out: the next way-point is 24.1 m or more behind the landing
    assert onward.points == ((65.0, 0.0), (70.0, 0.0))
    assert len(onward.speeds) == 2


def _rough(x):
    return 0.1 * ((x > 20.0) & (x < 21.0))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"before": 15.0}, "15.0 m of straight ground, expected 15.7 m"),
        ({"height": 6.0, "before": 60.0}, "rolling saves nothing"),
        ({"drive": 1.4}, "rolling saves nothing"),
    ],
)
def test_what_is_against_a_rolling_take_off(change, why):
    legs = path(**change)
    chosen = choose(legs)
    assert chosen.legs[0] == legs[0]
    assert chosen.legs[1].roll_off == 0.0
    assert chosen.notes[0] == f"take-off from a stand: {why}"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"after": 20.0}, "20.0 m of straight ground, expected 24.1 m"),
        ({"bend": 45.0}, "the path bends there"),
    ],
)
def test_what_is_against_a_rolling_landing(change, why):
    legs = path(**change)
    chosen = choose(legs)
    assert chosen.legs[2] == legs[2]
    assert chosen.legs[1].roll_out == 0.0
    assert chosen.notes[1] == f"landing straight down: {why}"


def test_on_rough_ground_it_takes_off_from_a_stand():
    x = np.arange(-20.0, 101.0, 0.5)
    heights = np.repeat(_rough(x)[:, None], 2, axis=1)
    terrain = HeightMap(heights, origin_x=-20.0, origin_y=-50.0, step_x=0.5, step_y=100.0)
    note = choose(path(), terrain).notes[0]
    assert note.startswith("take-off from a stand: no rolling take-off: the track is rough")


def test_rotors_may_help_where_it_drives_forward():
    back = DriveLeg(((0.0, 0.0),), (1.0,), backward=True)
    legs = assisted((*path(), back))
    assert [getattr(leg, "thrust_assist", None) for leg in legs] == [True, None, True, False]


@pytest.mark.exhaustive
def test_a_path_that_rolls_takes_less_energy():
    """It saves 5.8 s of hovering at 3.8 kW by Eq. 9.3, less as 10 m are too short for 4 m/s."""
    text = """version: 1
vehicle: scale
method: semi_implicit_euler
mission: {items: [{mode: waypoint, position_m: [1, 0]}]}
end: {when: mission_done, time_s: 60}
"""
    base = Scenario.parse(text.encode(), "s.yaml")
    legs = path(25.0, 25.0)
    standing, rolling = (
        run_scenario(dataclasses.replace(base, legs=each)) for each in (legs, choose(legs).legs)
    )
    modes = [mode for _, mode in rolling.modes]
    assert modes[1:5] == [Mode.ROLLING_TAKEOFF, Mode.FLIGHT, Mode.ROLLING_LAND, Mode.ROLL_OUT]
    assert standing.reached
    assert rolling.reached

    saved = standing.battery_energy - rolling.battery_energy
    assert 0.5 < saved / (5.8 * 3811.0) < 1.0
