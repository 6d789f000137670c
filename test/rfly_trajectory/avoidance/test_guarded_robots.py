# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Robots that others steer, whose velocities are made safe."""

from __future__ import annotations

import math

import numpy as np
import pytest
from unicycles import Unicycles, wish_to

from rfly_common.errors import CommandError, ConfigError, VehicleStatesError
from rfly_terrain.world.solids import ObjectBoxes
from rfly_trajectory.avoidance.avoidance import AvoidanceAction, OtherVehicles, abilities
from rfly_trajectory.avoidance.guarded_robots import GuardedRobots
from rfly_trajectory.avoidance.pose_tracks import PoseTracks
from rfly_trajectory.kernels.tables import FIXED_WING, GROUND, MULTIROTOR

STEP = 0.05
STEP_NS = 50_000_000
RADIUS = 0.35
MARGIN = 0.1


def guard(n, kind=GROUND, step=STEP, **change):
    able = {
        "radius": RADIUS + MARGIN,
        "height": 0.5,
        "most": 1.0,
        "gain": 1.0,
        "brake": 1.0,
        "lateral": 2.0,
        "turn_rate": 1.5,
        "climb": 1.0,
    }
    return GuardedRobots(
        abilities([kind] * n, **{**able, **change}),
        np.full(n, 0.05),
        step=step,
        pose_timeout=0.5,
        command_timeout=0.5,
    )


def run(robots, goals, seconds, *, hears=lambda tick, row: True, others=lambda tick: None):
    """Let robots go to their goals through the guard; return it."""
    guarded = guard(len(robots.pose))
    for tick in range(round(seconds / STEP)):
        now = 1_000_000_000 + tick * STEP_NS
        for row, (x, y, yaw) in enumerate(robots.pose.tolist()):
            if hears(tick, row):
                velocity = robots.velocity[row]
                rate = float(robots.yaw_rate[row])
                guarded.tracks.see(row, now, now, (x, y, 0.0), yaw, velocity, rate)
            speed, turn = wish_to((x, y, yaw), goals[row], 0.9)
            guarded.wish(row, now, (speed, 0.0, 0.0, turn))
        safe = guarded.step(now, others(tick))
        robots.drive(safe.velocity[:, 0], safe.yaw_rate, STEP)
    return guarded


def test_alone_a_robot_gets_what_it_wishes():
    guarded = guard(1)
    guarded.tracks.see(0, 10**9, 10**9, (0.0, 0.0, 0.0), 0.4, (0.0, 0.0, 0.0))
    for wish in ((0.02, 0.0, 0.0, 0.3), (0.0, 0.0, 0.0, -0.8), (-0.03, 0.0, 0.0, 0.1)):
        guarded.wish(0, 10**9, wish)
        safe = guarded.step(10**9)
        assert safe.velocity[0].tolist() == pytest.approx(wish[:3])
        assert safe.yaw_rate[0] == pytest.approx(wish[3])


def test_a_command_gains_and_loses_speed_as_the_robot_can():
    """The limit of 1 m/s² gives 0.05 m/s a step from rest, and 1 m/s after 20 steps."""
    guarded = guard(1)
    speeds = []
    place = 0.0
    for tick in range(30):
        now = 10**9 + tick * STEP_NS
        speed = speeds[-1] if speeds else 0.0
        guarded.tracks.see(0, now, now, (place, 0.0, 0.0), 0.0, (speed, 0.0, 0.0))
        guarded.wish(0, now, (5.0, 0.0, 0.0, 0.0))
        speeds.append(float(guarded.step(now).velocity[0, 0]))
        place += STEP * speeds[-1]
    np.testing.assert_allclose(speeds, np.minimum(0.05 * np.arange(1, 31), 1.0), atol=1e-9)


@pytest.mark.parametrize("offset", [0.0, 0.2])
def test_two_that_would_meet_pass(offset):
    robots = Unicycles([(0.0, 0.0, 0.0), (8.0, offset, math.pi)])
    goals = [(8.0, 0.0), (0.0, offset)]
    run(robots, goals, 25.0)
    assert robots.least > 2.0 * RADIUS
    assert np.hypot(*(robots.pose[:, :2] - goals).T).max() < 0.6


def test_robots_that_follow_late_keep_clear():
    """Four cross in the middle; their speeds lag by 0.15 s, of which 0.05 s are known."""
    angle = 0.5 * math.pi * np.arange(4)
    starts = 4.0 * np.stack([np.cos(angle), np.sin(angle)], -1)
    robots = Unicycles(np.column_stack([starts, angle + math.pi]), lag=0.15, brake=1.5)
    run(robots, -starts, 30.0)
    assert robots.least > 2.0 * RADIUS
    assert np.hypot(*(robots.pose[:, :2] + starts).T).max() < 0.6


@pytest.mark.exhaustive
def test_a_link_that_drops_a_fifth_makes_them_careful():
    random = np.random.default_rng(8)
    heard = random.random((800, 4)) >= 0.2
    angle = 0.5 * math.pi * np.arange(4)
    starts = 4.0 * np.stack([np.cos(angle), np.sin(angle)], -1)
    robots = Unicycles(np.column_stack([starts, angle + math.pi]))
    run(robots, -starts, 40.0, hears=lambda tick, row: heard[tick, row])
    assert robots.least > 2.0 * RADIUS
    assert np.hypot(*(robots.pose[:, :2] + starts).T).max() < 0.6


def test_a_robot_without_poses_stops_and_is_avoided():
    """The second robot's poses end after 3 s, when it goes 0.9 m/s across the first one's way."""
    robots = Unicycles([(0.0, 0.0, 0.0), (4.0, -4.0, 0.5 * math.pi)])
    goals = [(8.0, 0.0), (4.0, 4.0)]
    guarded = run(robots, goals, 30.0, hears=lambda tick, row: row == 0 or tick < 60)
    assert robots.least > 2.0 * RADIUS
    assert robots.speed[1] == pytest.approx(0.0, abs=1e-3)
    # 0.5 s and the way to stop from 0.9 m/s
    assert robots.pose[1, 1] < -4.0 + 0.9 * 3.6 + 0.9**2 / 2.0 + 0.1
    assert guarded.action[1] == AvoidanceAction.FELL_BACK
    assert robots.pose[0, 0] > 1.0


def test_one_that_does_not_give_way_is_avoided():
    """It crosses with 0.7 m/s, whatever comes."""
    robots = Unicycles([(0.0, 0.0, 0.0)])

    def others(tick):
        place = np.array([[3.0, -3.0 + 0.7 * STEP * tick, 0.0]])
        robots.note(place[0, :2])
        one = np.ones(1)
        no = np.zeros(1, bool)
        velocity = np.array([[0.0, 0.7, 0.0]])
        return OtherVehicles(
            place, velocity, 0.4 * one, 0.0 * one, one, no, no, 0.0 * one, 0.2 * one, 0.5 * one
        )

    run(robots, [(8.0, 0.0)], 25.0, others=others)
    assert robots.least > RADIUS + 0.4
    assert robots.pose[0, 0] > 7.0


def test_a_lost_wish_stops_a_robot():
    """The wish counts for 0.5 s, in which the robot reaches it; 1 m/s² stops it in 0.5 s more."""
    guarded = guard(1)
    robots = Unicycles([(0.0, 0.0, 0.0)])
    guarded.wish(0, 10**9, (0.5, 0.0, 0.0, 0.2))
    speeds = []
    for tick in range(40):
        now = 10**9 + tick * STEP_NS
        x, y, yaw = robots.pose[0].tolist()
        guarded.tracks.see(0, now, now, (x, y, 0.0), yaw, robots.velocity[0])
        safe = guarded.step(now)
        robots.drive(safe.velocity[:, 0], safe.yaw_rate, STEP)
        speeds.append(float(safe.velocity[0, 0]))
    expected = 0.05 * np.array([*range(1, 11), 10, *range(9, -1, -1), *[0] * 19])

    np.testing.assert_allclose(speeds, expected, atol=1e-9)
    assert not guarded.commanded(now)[0]
    assert guarded.tracks.heard[0]


def test_objects_are_avoided_too():
    """A wall across the way at x = 3 m, whose face is at 2.9 m."""
    robots = Unicycles([(0.0, 0.0, 0.0)])
    guarded = guard(1)
    guarded.surround(None, ObjectBoxes([(3.0, 0.0, 0.5)], [(0.1, 20.0, 0.5)]))
    for tick in range(300):
        now = 10**9 + tick * STEP_NS
        x, y, yaw = robots.pose[0].tolist()
        guarded.tracks.see(0, now, now, (x, y, 0.0), yaw, robots.velocity[0])
        guarded.wish(0, now, (0.9, 0.0, 0.0, 0.0))
        safe = guarded.step(now)
        robots.drive(safe.velocity[:, 0], safe.yaw_rate, STEP)
        assert robots.pose[0, 0] < 2.9 - RADIUS


def test_a_multirotor_goes_sideways_and_yaws_as_it_likes():
    guarded = guard(1, MULTIROTOR)
    guarded.tracks.see(0, 10**9, 10**9, (0.0, 0.0, 5.0), 0.5 * math.pi, (0.0, 0.0, 0.0))
    guarded.wish(0, 10**9, (0.0, 0.04, 0.02, 0.7))
    safe = guarded.step(10**9)
    assert safe.velocity[0].tolist() == pytest.approx([0.0, 0.04, 0.02], abs=1e-9)
    assert safe.yaw_rate[0] == 0.7
    guarded.wish(0, 10**9, (0.0, 0.0, 0.0, -4e5))
    assert guarded.step(10**9).yaw_rate[0] == -1.5, "its turn_rate"


def test_a_fixed_wing_circles_when_wishes_or_poses_end():
    """The acceleration of 12 m/s² across turns it by 12 / 14 rad/s at 14 m/s."""
    guarded = guard(1, FIXED_WING, most=20.0, least=14.0, lateral=12.0, turn_rate=math.inf)
    safe = guarded.step(10**9)
    assert safe.velocity[0].tolist() == [14.0, 0.0, 0.0]
    assert safe.yaw_rate[0] == pytest.approx(12.0 / 14.0)
    guarded.tracks.see(0, 10**9, 10**9, (0.0, 0.0, 50.0), 0.0, (14.0, 0.0, 0.0))
    safe = guarded.step(10**9)
    assert safe.velocity[0, 0] == pytest.approx(14.0)
    assert safe.yaw_rate[0] == pytest.approx(12.0 / 14.0)


def test_velocities_come_from_poses():
    """0.04 m every 0.05 s are 0.8 m/s; a gap of 2 s says nothing of the velocity."""
    tracks = PoseTracks(1)
    for tick in range(9):
        now = 10**9 + tick * STEP_NS
        tracks.see(0, now, now, (0.04 * tick, 0.0, 1.0), 0.02 * tick)
    assert tracks.velocity[0].tolist() == pytest.approx([0.8, 0.0, 0.0])
    assert tracks.yaw_rate[0] == pytest.approx(0.4)
    tracks.see(0, now + 2 * 10**9, now + 2 * 10**9, (5.0, 0.0, 1.0), 0.0)
    assert tracks.velocity[0].tolist() == [0.0, 0.0, 0.0]


def test_poses_that_come_again_change_no_velocity():
    """A transform of 10 Hz is looked up at 20 Hz: every second pose is the one before."""
    tracks = PoseTracks(1)
    for tick in range(8):
        now = 10**9 + tick * STEP_NS
        stamp = 10**9 + tick // 2 * 2 * STEP_NS
        tracks.see(0, now, stamp, (0.08 * (tick // 2), 0.0, 1.0), 0.04 * (tick // 2))
        if tick >= 2:
            assert tracks.velocity[0].tolist() == pytest.approx([0.8, 0.0, 0.0])
            assert tracks.yaw_rate[0] == pytest.approx(0.4)


def test_a_pose_that_comes_again_grows_no_younger():
    """The stamp is 5 s ahead; 0.3 s after it came first it is 0.3 s old."""
    tracks = PoseTracks(1)
    for tick in range(7):
        tracks.see(0, 10**9 + tick * STEP_NS, 6 * 10**9, np.zeros(3), 0.0)
    assert tracks.age(10**9 + 6 * STEP_NS)[0] == pytest.approx(0.3)


def test_a_pose_is_as_old_as_its_stamp_and_its_arrival():
    tracks = PoseTracks(2)
    tracks.see(0, 10**9, 9 * 10**8, np.zeros(3), 0.0)
    assert tracks.age(10**9)[0] == pytest.approx(0.1)
    tracks.see(0, 10**9, 2 * 10**9, np.zeros(3), 0.0)  # its clock is ahead
    assert tracks.age(15 * 10**8)[0] == pytest.approx(0.5)
    assert tracks.age(10**9)[1] == math.inf


@pytest.mark.parametrize(
    ("place", "speed", "text"),
    [
        ((math.nan, 0.0, 0.0), 0.0, "not finite"),
        ((1e7, 0.0, 0.0), 0.0, "at most 1e"),
        ((0.0, 0.0, 0.0), 1e4, "500 m/s are taken"),
    ],
)
def test_impossible_poses_are_refused(place, speed, text):
    tracks = PoseTracks(1)
    with pytest.raises(VehicleStatesError, match=text):
        tracks.see(0, 10**9, 10**9, place, 0.0, (speed, 0.0, 0.0))
    assert not tracks.heard[0]


def test_an_impossible_yaw_rate_is_refused():
    tracks = PoseTracks(1)
    with pytest.raises(VehicleStatesError, match="it turns by -200 rad/s; at most 100 rad/s"):
        tracks.see(0, 10**9, 10**9, np.zeros(3), 0.0, np.zeros(3), -200.0)
    assert not tracks.heard[0]


def test_impossible_wishes_and_robots_are_refused():
    guarded = guard(1)
    with pytest.raises(CommandError, match="to the left, which its kind can't go"):
        guarded.wish(0, 10**9, (1.0, 0.2, 0.0, 0.0))
    with pytest.raises(CommandError, match="not finite"):
        guarded.wish(0, 10**9, (math.nan, 0.0, 0.0, 0.0))
    assert not guarded.commanded(10**9)[0]
    with pytest.raises(ConfigError, match="needs 150 s to stop"):
        guard(1, brake=0.01)


@pytest.mark.parametrize(
    ("kind", "step", "change", "text"),
    [
        (GROUND, 0.005, {"most": 20.0}, "needs 30 s to stop, allowed are 10 s at 200 Hz"),
        (MULTIROTOR, 0.005, {"climb": 40.0}, "needs 15 s to level out, allowed are 10 s"),
    ],
)
def test_a_robot_that_stops_in_too_many_steps_is_refused(kind, step, change, text):
    with pytest.raises(ConfigError, match=text):
        guard(1, kind, step, **change)


@pytest.mark.parametrize(
    ("kind", "most", "climb", "step"),
    [(GROUND, 6.6, 1.0, 0.005), (MULTIROTOR, 5.0, 26.0, 0.005), (FIXED_WING, 200.0, 20.0, 0.05)],
)
def test_what_is_taken_steps_at_the_largest_speed_that_a_pose_may_have(kind, most, climb, step):
    least = 20.0 if kind == FIXED_WING else 0.0
    guarded = guard(1, kind, step, most=most, least=least, climb=climb)
    guarded.tracks.see(0, 10**9, 10**9, (0.0, 0.0, 100.0), 0.0, (1.5 * most, 0.0, 1.5 * climb))
    guarded.wish(0, 10**9, (most, 0.0, climb, 0.0))
    assert np.isfinite(guarded.step(10**9).velocity).all()
