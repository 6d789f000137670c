# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fleets whose vehicles leave their tracks to keep clear, and come back."""

from __future__ import annotations

import numpy as np
import pytest
from marks import exhaustively

from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.solids import ObjectBoxes
from rfly_trajectory.avoidance.fleet_avoidance import FleetAvoidance, fleet_abilities
from rfly_trajectory.fleet.fleet import Fleet, Vehicle
from rfly_trajectory.fleet.fleet_file import load_fleet
from rfly_trajectory.motion.speed_profile import SpeedProfile
from rfly_trajectory.paths.shapes import Circle, Line

CAR = 3
FIELDS = ("position", "orientation", "velocity", "angular_velocity")


def vehicle(name, number, start, end, kind="ground", **keys):
    path = Line(start, end).path()
    return Vehicle(name, number, CAR, path, SpeedProfile(8.0, 2.0), "stop", kind, **keys)


EAST = vehicle("east", 1, (-60.0, 0.0), (60.0, 0.0))
NORTH = vehicle("north", 2, (0.0, -60.0), (0.0, 60.0))


def flat():
    return HeightMap(
        np.zeros((41, 41), np.float32), origin_x=-200.0, origin_y=-200.0, step_x=10.0, step_y=10.0
    )


def track(avoidance, seconds, rate=20.0):
    times = np.arange(0.0, seconds, 1.0 / rate)
    return np.array([avoidance.sample(t).position for t in times.tolist()])


def test_without_a_conflict_states_are_the_plans_own():
    fleet = load_fleet("demo_convoy").on_terrain(flat())
    avoidance = FleetAvoidance(fleet, 0.0)
    for t in (0.0, 0.013, 1.0, 7.77):
        kept, plan = avoidance.sample(t), fleet.sample(t)
        if not avoidance.off_track:
            for name in FIELDS:
                assert (getattr(kept, name) == getattr(plan, name)).all(), name
    alone = Fleet([EAST], flat())
    avoidance = FleetAvoidance(alone, 0.0)
    for t in (0.0, 3.3, 30.0):
        kept, plan = avoidance.sample(t), alone.sample(t)
        for name in FIELDS:
            assert (getattr(kept, name) == getattr(plan, name)).all(), name


def test_two_that_cross_pass_each_other_and_arrive_on_their_tracks():
    fleet = Fleet([EAST, NORTH], flat())
    planned = np.array([fleet.sample(t).position for t in np.arange(0.0, 15.0, 0.05).tolist()])
    assert np.linalg.norm(planned[:, 0] - planned[:, 1], axis=1).min() < 0.1, "their plans meet"

    avoidance = FleetAvoidance(fleet, 0.0)
    places = track(avoidance, 40.0, 200.0)
    radius = fleet_abilities(fleet).radius.sum()
    apart = np.hypot(*(places[:, 0] - places[:, 1])[:, :2].T)
    assert apart.min() > radius
    assert np.abs(places[:, :, 2]).max() < 1e-6, "on the ground"
    steps = np.hypot(*np.moveaxis(np.diff(places, axis=0), -1, 0)[:2])
    assert steps.max() < 8.0 * 0.005 * 1.05 + 0.05, "nobody jumps"
    assert np.hypot(*(places[-1, 0, :2] - (60.0, 0.0))) < 3.0
    assert np.hypot(*(places[-1, 1, :2] - (0.0, 60.0))) < 3.0


def test_one_that_was_held_up_arrives_at_its_end_and_is_late_no_more_then():
    """Twelve that all cross one middle come to their own ends, and stand there."""
    turn = np.linspace(0.0, 2.0 * np.pi, 12, endpoint=False)
    starts = 70.0 * np.column_stack([np.cos(turn), np.sin(turn)])
    vehicles = [vehicle(f"v{i}", i + 1, at, -at) for i, at in enumerate(starts)]
    avoidance = FleetAvoidance(Fleet(vehicles, flat()), 0.0)
    at_end = avoidance.sample(50.0).position
    np.testing.assert_allclose(at_end[:, :2], -starts, atol=1e-3)
    late = avoidance.late
    assert 0.0 < late < 20.0
    assert avoidance.sample(100.0).position.tolist() == at_end.tolist()
    assert (avoidance.late, avoidance.off_track) == (late, [])


@pytest.mark.parametrize("kind", ["ground", exhaustively("multirotor")])
def test_one_that_was_held_up_turns_at_its_ends(kind):
    """The two go to and fro, which takes 19 s each way, and meet in the middle each time."""
    height = {} if kind == "ground" else {"height": 20.0}
    vehicles = [
        Vehicle(own.name, own.id, CAR, own.path, own.profile, "ping_pong", kind, **height)
        for own in (EAST, NORTH)
    ]
    avoidance = FleetAvoidance(Fleet(vehicles, flat()), 0.0)
    places = track(avoidance, 90.0)
    along = np.column_stack([places[:, 0, 0], places[:, 1, 1]])
    sides = np.sign(np.where(np.abs(along) > 50.0, along, 0.0))
    for side in sides.T:
        turns = np.flatnonzero(np.diff(side[side != 0.0]))
        assert len(turns) >= 4
    assert avoidance.late < 15.0


def test_one_beside_its_end_stops_there_and_is_late_no_more():
    """It stands; its new path comes to an end 2.8 m away, half to its left, two seconds later."""
    fleet = Fleet([EAST], flat())
    avoidance = FleetAvoidance(fleet, 0.0)
    avoidance.sample(20.0)
    beside = vehicle("east", 1, (-58.0, 2.0), (62.0, 2.0), delay=2.0)
    avoidance.use(fleet.of([beside]), None)
    assert avoidance.sample(60.0).position[0].tolist() == [60.0, 0.0, 0.0]
    assert avoidance.late < 1.0


def test_a_change_of_vehicles_forgets_nobodys_waiting():
    """One waits in a dead end of three walls; another one comes, and a wall is changed."""

    def wall(y):
        centre = [(0.0, y, 3.0), (-25.0, 6.0, 3.0), (-25.0, -6.0, 3.0)]
        return ObjectBoxes(centre, [(1.0, 6.0, 3.0), (25.0, 1.0, 3.0), (25.0, 1.0, 3.0)])

    fleet = Fleet([EAST], flat())
    avoidance = FleetAvoidance(fleet, 0.0, wall(0.0))
    avoidance.sample(15.0)
    waited = avoidance.waited[0]
    assert waited > 0.0
    other = vehicle("other", 3, (-100.0, 100.0), (-100.0, -100.0))
    avoidance.use(fleet.of([other, EAST]), wall(0.1))
    assert avoidance.waited.tolist() == [0.0, waited]


def test_no_vehicles_and_no_time():
    fleet = Fleet([EAST], flat())
    none = fleet.of([])
    avoidance = FleetAvoidance(none, 0.0)
    assert len(avoidance.sample(1.0)) == 0
    avoidance.use(fleet, None)
    assert (avoidance.sample(2.0).position == fleet.sample(2.0).position).all()
    for time in (np.nan, np.inf):
        with pytest.raises(ValueError, match=r"time: (nan|inf) s, expected a finite number"):
            avoidance.sample(time)
    avoidance.use(none, None)
    assert len(avoidance.sample(3.0)) == 0


def test_a_box_on_the_track_is_driven_round():
    fleet = Fleet([EAST], flat())
    box = ObjectBoxes([(0.0, 0.0, 1.0)], [(2.0, 2.0, 1.0)])
    places = track(FleetAvoidance(fleet, 0.0, box), 60.0)
    gap = np.hypot(*np.maximum(np.abs(places[:, 0, :2]) - 2.0, 0.0).T)
    assert gap.min() > fleet_abilities(fleet).radius[0]
    assert np.hypot(*(places[-1, 0, :2] - (60.0, 0.0))) < 3.0


@pytest.mark.parametrize("n", [8, exhaustively(40)])
def test_a_crowd_on_two_circles_keeps_clear(n):
    """Half of them go round the other way on the same circle."""
    vehicles = [
        Vehicle(
            f"v{i}",
            i + 1,
            CAR,
            Circle((0.0, 0.0), 80.0, clockwise=i % 2 == 1).path(),
            SpeedProfile(6.0),
            "repeat",
            phase=80.0 * 2.0 * np.pi * i / n,
        )
        for i in range(n)
    ]
    fleet = Fleet(vehicles, flat())
    places = track(FleetAvoidance(fleet, 0.0), 60.0)
    need = 2.0 * fleet_abilities(fleet).radius[0]
    for i in range(n):
        for j in range(i):
            assert np.hypot(*(places[:, i] - places[:, j])[:, :2].T).min() > need


def test_a_vehicle_that_comes_and_one_that_goes_leave_the_others_where_they_are():
    fleet = Fleet([EAST, NORTH], flat())
    avoidance = FleetAvoidance(fleet, 0.0)
    before = avoidance.sample(7.0).position
    other = vehicle("other", 3, (100.0, 100.0), (150.0, 100.0))
    avoidance.use(fleet.of([NORTH, other]), None)
    after = avoidance.sample(7.0).position
    assert np.allclose(after[0], before[1])
    avoidance.use(fleet.of([EAST, NORTH]), None, {"north"})
    assert np.allclose(avoidance.sample(7.0).position[1], fleet.sample(7.0).position[1], atol=0.5)


def test_after_a_small_step_back_of_time_none_leaves_its_place():
    fleet = Fleet([EAST, NORTH], flat())
    avoidance = FleetAvoidance(fleet, 0.0)
    before = avoidance.sample(9.0).position
    assert np.hypot(*(before - fleet.sample(9.0).position)[0, :2]) > 2.0
    for back in (0.03, 0.08, 0.4):
        after = avoidance.sample(9.0 - back).position
        assert np.hypot(*(after - before)[:, :2].T).max() <= 8.0 * back + 0.01
    assert (avoidance.sample(9.0).position == before).all()


def test_after_a_jump_of_time_all_are_on_their_tracks():
    fleet = Fleet([EAST, NORTH], flat())
    avoidance = FleetAvoidance(fleet, 0.0)
    avoidance.sample(7.0)
    assert (avoidance.sample(1.0).position == fleet.sample(1.0).position).all()
    assert (avoidance.sample(500.0).position == fleet.sample(500.0).position).all()
