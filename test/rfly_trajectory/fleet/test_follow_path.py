# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicles that leave their fleet.

Place, heading and velocity go on, and the vehicle ends where the path ends.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from rfly_common.errors import ConfigError
from rfly_common.frames import quat_rotate
from rfly_terrain.height_map.height_map import HeightMap
from rfly_trajectory.fleet.fleet import Fleet, Limits, Vehicle
from rfly_trajectory.fleet.follow_path import (
    MAX_POSES,
    brake_to_stop,
    corner_radius,
    follow,
    reference_paths,
)
from rfly_trajectory.motion.speed_profile import SpeedProfile
from rfly_trajectory.paths.shapes import Circle, Line

GOAL = np.array(
    [
        [150.0, 20.0, 40.0],
        [150.0, 120.0, 70.0],
        [60.0, 160.0, 55.0],
    ]
)
RING = Circle((0.0, 0.0), 80.0).path()
LINE = Line((-100.0, -50.0), (100.0, -50.0)).path()


def ground():
    axis = np.arange(-300.0, 301.0, 20.0)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    return HeightMap(
        4 * np.sin(x / 60) * np.cos(y / 45) + 0.05 * x,
        origin_x=-300.0,
        origin_y=-300.0,
        step_x=20,
        step_y=20,
    )


VEHICLES = {
    "car": Vehicle("car", 1, 3, RING, SpeedProfile(10.0), "repeat"),
    "car with brakes": Vehicle("car", 1, 3, RING, SpeedProfile(10.0, 2.0, 4.0, 3.0), "repeat"),
    "on the outside of a formation": Vehicle(
        "car", 1, 3, RING, SpeedProfile(10.0), "repeat", offset=(-5.0, -20.0)
    ),
    "shifted": Vehicle("car", 1, 3, LINE, SpeedProfile(8.0, 2.0), "stop", shift=(10.0, 30.0)),
    "on wheels": Vehicle("car", 1, 3, RING, SpeedProfile(6.0), "repeat", wheelbase=2.7, track=1.6),
    "drone": Vehicle(
        "drone",
        1,
        3,
        RING,
        SpeedProfile(8.0, 3.0),
        "repeat",
        kind="multirotor",
        height=30.0,
    ),
    "plane": Vehicle(
        "plane",
        1,
        3,
        RING,
        SpeedProfile(15.0),
        "repeat",
        kind="fixed_wing",
        height=60.0,
        absolute=True,
    ),
    "not off yet": Vehicle("car", 1, 3, LINE, SpeedProfile(8.0, 2.0), "stop", delay=60.0),
}


@pytest.mark.parametrize("name", VEHICLES)
def test_place_and_velocity_go_on_and_the_end_is_the_paths(name):
    """States just before and after the hand-over are the same.

    Afterwards positions move as the velocities say.
    """
    vehicle = VEHICLES[name]
    time = 12.3
    fleet = Fleet([vehicle], ground())
    taken = follow(fleet, 0, time, reference_paths(vehicle, GOAL)[0])
    assert taken is not None
    after = Fleet([taken.vehicle], ground())
    old = fleet.sample_times([time])
    new = after.sample_times([time])
    np.testing.assert_allclose(new.position, old.position, atol=1e-9)
    np.testing.assert_allclose(new.velocity[..., :2], old.velocity[..., :2], atol=1e-9)
    np.testing.assert_allclose(
        new.velocity[..., 2],
        old.velocity[..., 2],
        atol=2e-3 if vehicle.wheelbase else 1e-9,
    )
    for states in (old, new):
        nose = quat_rotate(states.orientation[0, 0], np.array([1.0, 0.0, 0.0]))
        assert math.atan2(nose[1], nose[0]) == pytest.approx(
            math.atan2(*old.velocity[0, 0, 1::-1]), abs=0.05
        ) or not (old.velocity.any())

    times = np.arange(time, taken.stop_time + 1.0, 0.01)
    states = after.sample_times(times)
    way = np.linalg.norm(np.diff(states.position[:, 0], axis=0), axis=1)
    speed = np.linalg.norm(states.velocity[:, 0], axis=1)
    expected = 0.005 * (speed[1:] + speed[:-1])
    np.testing.assert_allclose(way, expected, atol=2e-3)
    np.testing.assert_allclose(states.position[-1, 0, :2], GOAL[-1, :2], atol=1e-6)
    assert speed[-1] == 0.0
    z = GOAL[-1, 2] if vehicle.kind != "ground" else ground().altitude(*GOAL[-1, :2])
    assert states.position[-1, 0, 2] == pytest.approx(
        z, abs=1e-6 if vehicle.wheelbase is None else 0.2
    )
    distance = np.hypot(*(states.position[:, 0, :2] - GOAL[0, :2]).T)
    assert distance.min() < 0.2  # it does not cut off the path's start


def test_a_car_that_drives_backwards_stops_first():
    """A car on its way back halts before it follows a path.

    The halt brakes with the profile's 4 m/s²: 8 m from 8 m/s.
    """
    vehicle = Vehicle("car", 1, 3, LINE, SpeedProfile(8.0, 2.0, 4.0), "ping_pong")
    fleet = Fleet([vehicle])
    back = 40.0  # a leg: 4 s + 22 s + 2 s
    assert fleet.sample_times([back]).velocity[0, 0, 0] == pytest.approx(-8.0)
    assert follow(fleet, 0, back, reference_paths(vehicle, GOAL)[0]) is None
    halted = brake_to_stop(fleet, 0, back)
    assert halted.stop_time == pytest.approx(back + 2.0)
    after = Fleet([halted.vehicle])
    x = fleet.sample_times([back]).position[0, 0, 0]
    np.testing.assert_allclose(
        after.sample_times([back, back + 1, back + 2, 99]).position[:, 0, 0] - x,
        [0, -6, -8, -8],
    )
    assert follow(after, 0, halted.stop_time, reference_paths(vehicle, GOAL)[0]) is not None


def around_a_cusp():
    """Return points (k, 2) and headings (k,) of a way around a cusp.

    It leads east on a line, left on a quarter of radius 8, then backwards on a quarter to the left.
    """
    angle = np.radians(np.arange(0.0, 91.0, 9.0))
    line = np.column_stack(
        [
            np.arange(0.0, 10.0, 2.0),
            np.zeros(5),
            np.zeros(5),
        ]
    )
    ahead = np.column_stack([10 + 8 * np.sin(angle), 8 - 8 * np.cos(angle), angle])
    # from (18, 8), heading north, steered to the left about (10, 8) again would go back: to the
    # right, about (26, 8)
    back = np.column_stack(
        [
            26 - 8 * np.cos(angle),
            8 - 8 * np.sin(angle),
            math.pi / 2 + angle,
        ]
    )[1:]
    poses = np.concatenate([line, ahead, back])
    return np.column_stack([poses[:, :2], np.zeros(len(poses))]), poses[:, 2]


@pytest.mark.parametrize("wheels", [{}, {"wheelbase": 2.7, "track": 1.6}])
def test_a_path_with_a_cusp_is_driven_with_a_stop_and_backwards(wheels):
    """A path whose poses look against their motion is driven backwards.

    The vehicle stops at the cusp, the heading goes on, and the velocity turns round.
    """
    points, heading = around_a_cusp()
    start = Vehicle(
        "car",
        1,
        3,
        Line((0.0, 0.0), (0.5, 0.0)).path(),
        SpeedProfile(3.0, 1.5),
        "stop",
        delay=1e6,
        **wheels,
    )

    ahead, back = reference_paths(start, points, heading)
    assert (ahead.backward, back.backward) == (False, True)

    # ahead, then backwards
    fleet = Fleet([start])
    time = 5.0
    rows = []
    for reference in (ahead, back):
        taken = follow(fleet, 0, time, reference)
        fleet = Fleet([taken.vehicle])
        rows.append(fleet.sample_times(np.arange(time, taken.stop_time, 0.02)))
        time = taken.stop_time

    last = fleet.sample_times([time + 1.0])
    np.testing.assert_allclose(last.position[0, 0, :2], points[-1, :2], atol=1e-6)

    place = np.concatenate([states.position[:, 0, :2] for states in (*rows, last)])
    nose = np.concatenate(
        [
            quat_rotate(states.orientation[:, 0], np.array([1.0, 0, 0]))[:, :2]
            for states in (*rows, last)
        ]
    )
    velocity = np.concatenate([states.velocity[:, 0, :2] for states in (*rows, last)])

    # neither place nor nose jumps
    assert nose[-1] @ (math.cos(heading[-1]), math.sin(heading[-1])) == pytest.approx(1.0, abs=1e-6)
    assert np.hypot(*np.diff(place, axis=0).T).max() < 3.0 * 0.021
    assert np.linalg.norm(np.diff(nose, axis=0), axis=1).max() < 3.0 * 0.021 / 7.5

    # forwards, a stop, backwards
    count = len(rows[0].position)
    speed = (velocity * nose).sum(axis=1)
    assert speed[:count].min() >= 0.0 >= speed[count:].max()
    assert speed.max() == pytest.approx(3.0)
    assert speed.min() == pytest.approx(-3.0)
    assert abs(speed[count - 1 : count + 1]).max() < 0.05, "it stops at the cusp"

    away = np.hypot(*(place[count:] - (26.0, 8.0)).T) - 8.0
    assert np.abs(away).max() < 0.01, "on the arc of the path"


def test_a_car_that_moves_stops_before_it_backs_out():
    points = np.array(
        [
            [0.0, 0.0, 0.0],
            [-4.0, 0.0, 0.0],
            [-9.0, 0.0, 0.0],
        ]
    )
    vehicle = Vehicle("car", 1, 3, LINE, SpeedProfile(8.0, 2.0, 4.0), "stop")
    back = reference_paths(vehicle, points, np.zeros(3))[0]
    assert back.backward
    assert follow(Fleet([vehicle]), 0, 6.0, back) is None
    assert not reference_paths(vehicle, points, None)[0].backward

    sideways = reference_paths(vehicle, points, np.full(3, 1.0))
    assert [each.backward for each in sideways] == [False], (
        "headings across the way say nothing of it"
    )


def test_a_halt_shortly_before_the_end_does_not_run_over_it():
    """A car without accelerations brakes with 2 m/s²; with 1 m left from 8 m/s, with 32 m/s²."""
    fleet = Fleet([Vehicle("car", 1, 3, LINE, SpeedProfile(8.0), "stop")])
    halted = brake_to_stop(fleet, 0, 199.0 / 8.0)
    np.testing.assert_allclose(
        Fleet([halted.vehicle]).sample_times([199 / 8, 99]).position[:, 0, 0],
        [99.0, 100.0],
    )


def test_a_path_off_the_map_is_refused_and_one_that_leaves_it_is_not():
    fleet = Fleet([VEHICLES["drone"]], ground())
    degrees = np.array([[46.55e7, 7.98e7, 900.0], [46.56e7, 7.99e7, 900.0]]) / 1e4
    (reference,) = reference_paths(fleet.vehicles[0], degrees)
    with pytest.raises(ConfigError, match="begins and ends off the map, at x 46550, y 7980"):
        follow(fleet, 0, 3.0, reference)
    leaving = np.array([[0.0, 0.0, 60.0], [400.0, 0.0, 60.0]])
    (reference,) = reference_paths(fleet.vehicles[0], leaving)
    assert follow(fleet, 0, 3.0, reference) is not None


def test_the_radius_of_corners():
    """The radius of corners is that of the limits.

    Otherwise it is cruise² over the lateral acceleration of the limits, or 3 m/s² for cars.
    """
    car = VEHICLES["car"]
    assert corner_radius(car) == pytest.approx(100 / 3)
    assert corner_radius(
        dataclasses.replace(car, limits=Limits(lateral_acceleration=5.0))
    ) == pytest.approx(20.0)
    assert corner_radius(dataclasses.replace(car, limits=Limits(turn_radius=7.0))) == 7.0


@pytest.mark.parametrize(
    ("points", "text"),
    [
        (GOAL[:1], "got 1, expected 2 to"),
        (np.zeros((MAX_POSES + 1, 3)), f"got {MAX_POSES + 1}, expected 2 to"),
        (
            np.vstack([GOAL, [0, math.nan, 0]]),
            r"poses\[3\]: its position is not finite",
        ),
        (
            np.vstack([GOAL, [0, -1e160, 0]]),
            r"poses\[3\]: its position lies more than 1e\+07 m",
        ),
        (GOAL + np.array([0, 2000, 0]), "m from the vehicle"),
    ],
)
def test_points_that_no_vehicle_can_follow(points, text):
    with pytest.raises(ConfigError, match=text):
        follow(
            Fleet([VEHICLES["car"]]),
            0,
            5.0,
            reference_paths(VEHICLES["car"], points)[0],
        )
