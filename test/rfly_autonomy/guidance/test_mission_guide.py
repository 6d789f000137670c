# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Setpoints for modes, legs and estimates made by hand; legs of planned paths."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.guidance.gauge_watch import charge_of_flight
from rfly_autonomy.guidance.mission_guide import ASKING_TIME, HOVER_TIME, MissionGuide
from rfly_common.errors import PlanError
from rfly_common.frames import euler_to_quat
from rfly_missions.mission.legs import (
    DriveLeg,
    FlyLeg,
    legs_of,
    legs_of_path,
    steps_of_file,
    way_of_legs,
)
from rfly_terrain.height_map.height_map import HeightMap

PARAMS = VehicleParameters.load("scale")
UP = PARAMS.origin_height
HOVER_SHARE = 3811.0 / ((39.6 - 0.015 * 3811.0 / 39.6) * 22.0 * 3600.0)
"""Charge of a second of hovering: 12 empty cells of 3.3 V under load, 22 Ah, 1/s."""

HOP = (
    FlyLeg(((0.0, 0.0, 3.0), (6.0, 0.0, 3.0)), (4.0, 4.0), lands=True),
    DriveLeg(((6.0, 5.0),), (2.0,)),
)


def estimate(time, position=(0.0, 0.0, UP), velocity=(0.0, 0.0, 0.0), yaw=0.0, roll=0.0):
    orientation = euler_to_quat((roll, 0.0, yaw))
    return Estimate(
        time, np.array(position, float), orientation, np.array(velocity, float), np.zeros(3)
    )


def fly_after(guide, start, begin=0.0):
    """Fly a vehicle that is always at its target; return the places, and the final order."""
    place = np.array(start, float)
    velocity = (0.0, 0.0, 0.0)
    places = []
    for k in range(10000):
        order = guide.step(estimate(begin + 0.02 * k, place, velocity), Mode.FLIGHT)
        if order.mode is not None or guide.done:
            return np.array(places), order
        place = np.array(order.target)
        velocity = order.velocity
        places.append(place)
    raise AssertionError("the flight did not end")


def test_from_take_off_to_the_drive_behind_the_landing():
    guide = MissionGuide(HOP, PARAMS)

    # take-off
    assert guide.step(estimate(0.0), Mode.DISARMED).mode is Mode.DRIVE
    assert guide.step(estimate(0.1, velocity=(0.6, 0, 0)), Mode.DRIVE).mode is None
    assert guide.step(estimate(0.2), Mode.DRIVE).mode is Mode.TAKEOFF
    assert guide.step(estimate(0.3), Mode.TAKEOFF) == (
        0.3,
        None,
        0.0,
        0.0,
        None,
        (0.0, 0.0, 0.0),
        None,
        None,
    )

    # flight
    places, order = fly_after(guide, (0, 0, UP + 0.6), 1.0)
    assert order.mode is Mode.LAND
    assert places[:, 2].max() == pytest.approx(3.0 + UP, abs=1e-6)
    assert places[-1] == pytest.approx((6.0, 0.0, 3.0 + UP), abs=0.05)
    steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    assert steps.max() <= 4.0 * 0.02 + 1e-9
    # down, turned towards the drive that follows: from (6, 0) to (6, 5) is north
    assert guide.step(estimate(60.0, (6, 0, 2)), Mode.LAND).yaw == pytest.approx(math.pi / 2)

    # landing
    guide.step(estimate(66.0, (6, 0, UP)), Mode.SPOOL_DOWN)
    guide.step(estimate(68.0, (6, 0, UP)), Mode.DRIVE)
    assert guide.route.index == 1

    # drive
    order = guide.step(estimate(68.1, (6, 0, UP), yaw=math.pi / 2), Mode.DRIVE)
    assert 0.0 < order.speed <= 2.0
    assert order.steering == pytest.approx(0.0, abs=1e-9)

    guide.step(estimate(75.0, (6, 5, UP), (0, 0.3, 0), math.pi / 2), Mode.DRIVE)
    assert not guide.done, "it rolls"
    guide.step(estimate(77.0, (6, 5, UP), yaw=math.pi / 2), Mode.DRIVE)
    assert guide.done
    assert guide.step(estimate(78.0, (6, 5, UP)), Mode.DRIVE).speed == 0.0


@pytest.mark.parametrize("error", [-2.5, 3.0])
def test_heights_count_from_the_ground_as_the_estimate_sees_it(error):
    """Three metres of height stay so with ground of 40 m and an estimate off by `error`."""
    terrain = HeightMap(np.full((3, 3), 40.0), origin_x=-50, origin_y=-50, step_x=50, step_y=50)
    leg = FlyLeg(((0.0, 0.0, 43.0), (6.0, 0.0, 43.0)), (4.0, 4.0), lands=True)
    guide = MissionGuide([leg], PARAMS, terrain)
    stood = 40.0 + UP + error
    assert guide.step(estimate(0.0, (0, 0, stood)), Mode.DRIVE).mode is Mode.TAKEOFF
    places, _ = fly_after(guide, (0, 0, stood + 0.6))
    assert places[-1][2] - stood == pytest.approx(3.0, abs=1e-6)


def test_noise_in_velocity_and_gusts_do_not_keep_it_from_being_there():
    guide = MissionGuide([DriveLeg(((1.0, 0.0),), (1.0,)), HOP[0]], PARAMS)
    guide.step(estimate(0.0), Mode.DRIVE)
    place = (1.0, 0.0, UP)

    # a standing vehicle with an estimated speed of 0.1 m/s
    for k in range(30):
        guide.step(estimate(1.0 + 0.05 * k, place, (0.1, 0.0, 0.0)), Mode.DRIVE)
    assert guide.route.index == 1
    assert guide.step(estimate(3.0, place), Mode.DRIVE).mode is Mode.TAKEOFF

    # a vehicle that is blown about, 1.5 m from the end, at 0.6 m/s
    asked_at = None
    for k in range(1500):
        now = 5.0 + 0.02 * k
        away = min(0.05 * k, 6.0)
        order = guide.step(estimate(now, (away + 1.0, 1.1, 3.0 + UP), (0.6, 0.0, 0.0)), Mode.FLIGHT)
        if order.mode is Mode.LAND:
            asked_at = now
            break

    assert asked_at is not None
    assert asked_at > 5.0 + HOVER_TIME


def test_who_disarms_a_vehicle_on_its_way_is_not_overruled():
    guide = MissionGuide(HOP, PARAMS)
    assert guide.step(estimate(0.0), Mode.DISARMED).mode is Mode.DRIVE
    assert guide.step(estimate(0.1), Mode.DRIVE).mode is Mode.TAKEOFF
    for k in range(100):
        order = guide.step(estimate(0.2 + 0.02 * k), Mode.DISARMED)
        assert (order.mode, order.speed, order.target) == (None, 0.0, None)
    assert guide.problem == "it was disarmed: it goes on once it is armed"

    assert guide.step(estimate(3.0), Mode.DRIVE).mode is Mode.TAKEOFF
    assert not guide.problem

    # a path that was planned again does not, also after a stop; a new mission arms it
    guide.step(estimate(3.1), Mode.DISARMED)
    guide.follow(HOP, arms=False)
    assert guide.step(estimate(3.2), Mode.DISARMED).mode is None
    assert guide.problem == "it was disarmed: it goes on once it is armed"
    guide.hold(estimate(3.3), Mode.DISARMED)
    guide.follow(HOP, arms=False)
    assert guide.step(estimate(3.4), Mode.DISARMED).mode is None
    guide.follow(HOP)
    assert guide.step(estimate(3.5), Mode.DISARMED).mode is Mode.DRIVE

    # it was armed in between, and disarmed while it rested
    guide.step(estimate(3.6), Mode.DISARMED)
    guide.step(estimate(3.7), Mode.DRIVE)
    guide.follow([])
    guide.follow(HOP, arms=False)
    assert guide.step(estimate(3.8), Mode.DISARMED).mode is Mode.DRIVE


def test_one_that_is_disarmed_as_soon_as_it_has_landed_has_landed():
    guide = MissionGuide(HOP, PARAMS)
    guide.step(estimate(0.0), Mode.DRIVE)
    fly_after(guide, (0, 0, UP + 0.6), 1.0)
    guide.step(estimate(66.0, (6, 0, UP)), Mode.SPOOL_DOWN)
    guide.step(estimate(68.0, (6, 0, UP)), Mode.DISARMED)
    assert guide.route.index == 1
    assert not guide.problem


def test_problems_are_told_and_end_where_they_do():
    guide = MissionGuide(HOP, PARAMS)
    assert guide.step(estimate(0.0, roll=math.radians(12.0)), Mode.DRIVE).mode is None
    assert guide.problem == "no take-off: the slope is 12.0°, expected below 10°"

    assert guide.step(estimate(0.1), Mode.DRIVE).mode is Mode.TAKEOFF
    assert not guide.problem
    guide.step(estimate(0.2 + ASKING_TIME), Mode.DRIVE)
    assert guide.problem == "asked for TAKEOFF in vain, it stays in DRIVE"

    guide.step(estimate(20.0, (0, 0, 2)), Mode.FLIGHT)
    guide.step(estimate(21.0), Mode.DRIVE)
    assert guide.problem == "it has landed on the way without a request"

    guide.follow(HOP)
    guide.step(estimate(22.0, (0, 0, 2)), Mode.ABORT)
    assert not guide.problem, "it is not on the ground yet"
    guide.step(estimate(30.0), Mode.DRIVE)
    assert guide.problem == "the flight was aborted"
    assert not guide.done


def test_legs_that_are_replaced_in_the_air():
    guide = MissionGuide(HOP, PARAMS)
    guide.step(estimate(0.0), Mode.DRIVE)
    guide.step(estimate(3.0, (0, 0, 2)), Mode.FLIGHT)
    guide.follow([FlyLeg(((9.0, 9.0, 5.0), (20.0, 9.0, 5.0)), (4.0, 4.0), lands=False)])
    places, _ = fly_after(guide, (0, 0, 2), 3.1)
    assert guide.done
    assert places[-1] == pytest.approx((20, 9, 5 + UP), abs=0.05)
    held = guide.step(estimate(200.0, places[-1]), Mode.FLIGHT)
    assert held.target == pytest.approx((20, 9, 5 + UP))
    guide.follow([DriveLeg(((30.0, 9.0),), (2.0,))])
    assert guide.step(estimate(201.0, places[-1]), Mode.FLIGHT).mode is Mode.LAND
    assert guide.step(estimate(202.0, places[-1]), Mode.LAND).mode is None
    assert guide.step(estimate(210.0, (20, 9, UP)), Mode.DRIVE).speed > 0.0


def test_a_mixed_path_becomes_legs():
    """Level ground of 10 m: driven to x 20, up to 25, over to x 60, down, driven to x 70."""
    terrain = HeightMap(np.full((3, 3), 10.0), origin_x=-100, origin_y=-100, step_x=100, step_y=100)
    path = [
        (0, 0, 10),
        (10, 0, 10),
        (20, 0, 10),
        (20, 0, 25),
        (60, 5, 25),
        (60, 5, 10),
        (70, 5, 10),
    ]

    assert legs_of_path(path, terrain, 3.0, 6.0) == (
        DriveLeg(((10.0, 0.0), (20.0, 0.0)), (3.0, 3.0)),
        FlyLeg(((20.0, 0.0, 25.0), (60.0, 5.0, 25.0)), (6.0, 6.0), lands=True),
        DriveLeg(((70.0, 5.0),), (3.0,)),
    )
    # slanting up and down: straight up first, and on to above the place of the landing
    slanting = [
        (0, 0, 10),
        (20, 0, 25),
        (60, 5, 25),
        (70, 5, 10),
    ]
    assert legs_of_path(slanting, terrain, 3.0, 6.0) == (
        FlyLeg(
            (
                (0.0, 0.0, 25.0),
                (20.0, 0.0, 25.0),
                (60.0, 5.0, 25.0),
                (70.0, 5.0, 25.0),
            ),
            (6.0,) * 4,
            lands=True,
        ),
    )

    hovering = legs_of_path(
        [
            (0, 0, 10),
            (0, 0, 25),
            (60, 5, 30),
        ],
        terrain,
        3.0,
        6.0,
    )
    assert hovering == (FlyLeg(((0.0, 0.0, 25.0), (60.0, 5.0, 30.0)), (6.0, 6.0), lands=False),)


def test_the_way_of_legs_follows_the_ground_and_rises_from_it():
    """Ground z = 10 + x / 10.

    Driven to x 6 in steps of 2 m, up to 25, over to x 10, and down to z 11.
    """
    east = np.arange(0.0, 101.0, 50.0)
    terrain = HeightMap(
        np.repeat(10.0 + east[:, None] / 10, 3, axis=1),
        origin_x=0,
        origin_y=-50,
        step_x=50,
        step_y=50,
    )

    legs = (
        DriveLeg(((6.0, 0.0),), (3.0,)),
        FlyLeg(((6.0, 0.0, 25.0), (10.0, 3.0, 25.0)), (6.0, 6.0), lands=True),
    )

    way = [
        (0, 0, 10),
        (2, 0, 10.2),
        (4, 0, 10.4),
        (6, 0, 10.6),
        (6, 0, 25),
        (10, 3, 25),
        (10, 3, 11),
    ]
    np.testing.assert_allclose(way_of_legs(legs, (0.0, 0.0), terrain), way, atol=1e-6)

    hovering = (FlyLeg(((0.0, 0.0, 5.0), (9.0, 0.0, 5.0)), (6.0, 6.0), lands=False),)
    expected = [
        (0, 0, 0),
        (0, 0, 5),
        (9, 0, 5),
    ]
    np.testing.assert_allclose(way_of_legs(hovering, (0.0, 0.0), None), expected)


def test_what_lies_behind_the_vehicle_is_left_out():
    path = [
        (0, 0, 0),
        (10, 0, 0),
        (20, 0, 0),
        (20, 10, 0),
    ]
    (leg,) = legs_of_path(path, None, 3.0, 6.0, place=(12.0, 1.0))
    assert leg.points == ((20.0, 0.0), (20.0, 10.0))
    (leg,) = legs_of_path(path, None, 3.0, 6.0, place=(-5.0, 0.0))
    expected = ((10.0, 0.0), (20.0, 0.0), (20.0, 10.0))
    assert leg.points == expected


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ([(0, 0, 0)], "expected two points"),
        ([(0, 0, 0), (1, math.nan, 0)], "not finite"),
        ([(0, 0, 0), (500, 0, 0)], "off the map"),
    ],
)
def test_paths_that_cannot_be_followed(path, why):
    terrain = HeightMap(np.zeros((3, 3)), origin_x=-100, origin_y=-100, step_x=100, step_y=100)
    with pytest.raises(PlanError, match=why):
        legs_of_path(path, terrain, 3.0, 6.0)


def test_a_way_of_any_length_is_drawn_with_few_points():
    """A way from pole to pole and back, a hundred times, fits into memory.

    With points 2 m apart it would not.
    """
    path = np.zeros((201, 3))
    path[1::2, 0] = 9e6
    drawn = way_of_legs(legs_of_path(path, None, 3.0, 5.0), (0.0, 0.0), None)
    assert 20_000 < len(drawn) < 21_000
    assert drawn[-1].tolist() == [0.0, 0.0, 0.0]
    short = way_of_legs(legs_of_path([(0, 0, 0), (10, 0, 0)], None, 3.0, 5.0), (0.0, 0.0), None)
    assert np.diff(short[:, 0]).max() <= 2.0
    with pytest.raises(PlanError, match=r"farther than 10,000 km from the map's origin"):
        legs_of_path([(0, 0, 0), (1e200, 0, 0)], None, 3.0, 5.0)


@pytest.mark.parametrize(
    ("take_off", "way"),
    [
        ([0, 0, 20], [(60, 0, 50), (0, 60, 50)]),
        ([None, None, 20], [(60, 0, 50), (0, 60, 50)]),
        ([None, None, 70], [(60, 0, 50), (60, 0, 70), (0, 60, 50)]),
    ],
)
def test_take_offs_in_the_air_climb_where_it_is_and_never_descend(tmp_path, take_off, way):
    """A TAKEOFF without a place begins where the vehicle is: on the ground, 30 m from home."""

    def item(command, north, east, up):
        degrees = [None, None]
        if north is not None:  # a degree of latitude is 110.57 km on the equator
            degrees = [north / 110_574.4, 8.0 + east / 111_319.5]
        params = [0, 0, 0, None, *degrees, up]
        return {"type": "SimpleItem", "command": command, "frame": 3, "params": params}

    north, east, up = take_off
    items = [item(22, None, None, 10), item(16, 0, 60, 50), item(22, north, east, up)]
    items.append(item(16, 60, 0, 50))
    mission = {"plannedHomePosition": [0.0, 8.0, 0.0], "items": items, "version": 2}
    path = tmp_path / "m.plan"
    path.write_text(json.dumps({"fileType": "Plan", "version": 1, "mission": mission}))

    steps, _, _ = steps_of_file(str(path), None, (0.0, 0.0))
    (leg,) = legs_of(steps, (30.0, 0.0), None, 3.0, 6.0)
    np.testing.assert_allclose(leg.points, [(30, 0, 10), *way], atol=0.01)


@pytest.mark.parametrize(
    ("seconds", "height", "charge"),
    [
        (0.0, 4.0, 0.15),
        (0.0, 500.0, 0.05 + 1.25 * (10.0 + 330.0) * HOVER_SHARE),
        (200.0, 20.0, 0.05 + 1.25 * (200.0 + 10.0 + 10.0) * HOVER_SHARE),
    ],
)
def test_the_charge_that_a_flight_and_its_landing_take(seconds, height, charge):
    """Down at 1.5 m/s, below 5 m at 0.5 m/s, hovering with 3811 W; at least the reserve."""
    assert charge_of_flight(PARAMS, seconds, height) == pytest.approx(charge, rel=1e-3)


@pytest.mark.parametrize(
    ("end", "charge", "says"),
    [
        (900.0, 0.25, []),
        (900.0, 0.23, ["returns home: the battery is at 23 %"]),
        (420.0, 0.23, []),
        (900.0, 0.14, ["lands where it is: the battery is at 14 %"]),
    ],
    ids=["enough", "only home", "nearly there", "only down"],
)
def test_a_flight_returns_home_while_its_charge_takes_it_there(end, charge, says):
    """400 m from home at 4 m/s and 20 m up: 100 s, and 20 s down.

    1.25 · 120 s of hovering are a charge of 0.19, and 0.05 remains. The 500 m on take 0.28.
    """
    leg = FlyLeg(((0.0, 0.0, 20.0), (end, 0.0, 20.0)), (4.0, 4.0), lands=True)
    terrain = HeightMap(np.zeros((3, 3)), origin_x=-1e3, origin_y=-1e3, step_x=1e3, step_y=1e3)
    guide = MissionGuide([leg], PARAMS, terrain)
    guide.step(estimate(0.0), Mode.DRIVE)
    place = np.array((0.0, 0.0, 20.0 + UP))
    velocity = (0.0, 0.0, 0.0)
    time = 1.0
    while place[0] < 400.0:
        time += 0.1
        order = guide.step(estimate(time, place, velocity), Mode.FLIGHT)
        place = np.array(order.target)
        velocity = order.velocity

    guide.watch_battery(charge)
    order = guide.step(estimate(time + 0.1, place, velocity), Mode.FLIGHT)
    assert [text for _, text in guide.log] == says
    assert order.mode is (Mode.LAND if charge < 0.15 else None)
    if not says or charge < 0.15:
        return

    places, order = fly_after(guide, place, time + 0.2)
    assert order.mode is Mode.LAND
    assert places[-1] == pytest.approx((0.0, 0.0, 20.0 + UP), abs=0.3)
    guide.step(estimate(time + 150.0), Mode.SPOOL_DOWN)
    guide.step(estimate(time + 151.0), Mode.DRIVE)
    assert guide.problem == "it has returned home: the battery is at 23 %"
    assert not guide.done
