# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Speeds within limits: laps and trips by hand, and a slow search that finds no faster one."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rfly_common.errors import ConfigError
from rfly_trajectory import Circle, Line, Polyline, SpeedProfile, Spline
from rfly_trajectory.motion.limited_speed import BendLimits, limited_schedule
from rfly_trajectory.motion.speed_profile import Schedule, join_schedules, progress, schedule
from rfly_trajectory.paths.path import Path, altitude_profile

LIMITS = BendLimits(2.0, 1.0)
LINE = Line((0.0, 0.0), (100.0, 0.0)).path()


def motion(done: Schedule, times):
    """Return arc length, speed and acceleration at times."""
    table = join_schedules([done], [0.0])
    times = np.asarray(times, float)
    return progress(table, np.zeros(len(times), np.int64), times)[:, :3].T


def trip_time(done: Schedule) -> float:
    """Return the time of a trip that ends, s."""
    return done.pieces[-1][0]


def test_a_straight_trip_is_the_trapezoid():
    """Up at 1 m/s² to 8 m/s in 8 s and 32 m, down at 0.5 m/s² in 16 s and 64 m, 4 m between."""
    done = limited_schedule(LINE, SpeedProfile(8.0, 2.0, 0.5), "stop", 0.0, LIMITS)
    assert trip_time(done) == pytest.approx(8.0 + 0.5 + 16.0, rel=1e-6)
    s, speed, acceleration = motion(done, [4.0, 8.25, 16.5, 30.0])
    assert s == pytest.approx([8.0, 34.0, 100.0 - 16.0, 100.0], abs=1e-6)
    assert speed == pytest.approx([4.0, 8.0, 4.0, 0.0], abs=1e-6)
    assert acceleration == pytest.approx([1.0, 0.0, -0.5, 0.0], abs=1e-6)


def test_there_and_back():
    """100 m with 1 m/s² to both sides take 2 √100 s."""
    done = limited_schedule(LINE, SpeedProfile(20.0), "ping_pong", 0.0, LIMITS)
    assert done.loop_start == pytest.approx(20.0)
    assert done.loop_period == pytest.approx(40.0)
    s, speed, _ = motion(done, [10.0, 25.0, 30.0, 40.0 * 7 + 30.0])
    assert s == pytest.approx([50.0, 87.5, 50.0, 50.0])
    assert speed == pytest.approx([10.0, -5.0, -10.0, -10.0])


@pytest.mark.parametrize(("begin", "lap"), [(0.0, 3), (100.0, 2)])
def test_a_circle_from_rest(begin, lap):
    """√(2 m/s² · 8 m) = 4 m/s need 8 m at 1 m/s²; then each lap of 50.27 m is as long."""
    ring = Circle((0.0, 0.0), 8.0).path()
    done = limited_schedule(ring, SpeedProfile(10.0), "repeat", begin, LIMITS)
    assert done.loop_period == pytest.approx(2.0 * math.pi * 8.0 / 4.0)
    time = 4.0 + (lap * ring.length - 8.0) / 4.0
    s, speed, _ = motion(done, [2.0, time])
    assert s[0] == pytest.approx(begin % ring.length + 2.0)
    # a step on which the whole speed is reached is driven a little slower
    assert math.sin((s[1] - begin) * math.pi / ring.length) == pytest.approx(0.0, abs=1e-4)
    assert speed == pytest.approx([2.0, 4.0], rel=1e-6)


def test_small_rings_take_many_laps_from_rest():
    """1 m/s on a ring of 3.14 m takes 50 m at 0.01 m/s², nearly sixteen laps."""
    ring = Circle((0.0, 0.0), 0.5).path()
    done = limited_schedule(ring, SpeedProfile(9.0, 0.01), "repeat", 0.0, LIMITS)
    _, speed, _ = motion(done, [50.0, 101.0])
    assert speed == pytest.approx([0.5, 1.0])
    with pytest.raises(ConfigError, match="for more than 1000 laps"):
        limited_schedule(ring, SpeedProfile(9.0, 1e-5), "repeat", 0.0, LIMITS)


def hairpin() -> Path:
    """Return a street of 60 m with a bend of radius 3 m, and back."""
    return Polyline([(0.0, 0.0), (60.0, 0.0), (60.0, 12.0), (0.0, 12.0)], corner_radius=3.0).path()


@pytest.mark.parametrize(
    ("path", "cruise", "offset"),
    [
        (hairpin(), 6.0, 0.0),
        (hairpin(), 50.0, 2.0),
        (hairpin(), 50.0, -3.0),
        (Spline([(0.0, 0.0), (30.0, 5.0), (20.0, 40.0), (70.0, 60.0)]).path(), 50.0, 0.0),
    ],
    ids=["cruising", "on the left", "on the right", "spline"],
)
def test_no_limit_is_exceeded_and_one_is_always_reached(path, cruise, offset):
    done = limited_schedule(path, SpeedProfile(cruise), "stop", 0.0, LIMITS, ((0.0, offset),))
    times = np.linspace(0.0, trip_time(done), 20_001)[1:-1]
    s, speed, acceleration = motion(done, times)
    points = path.at(np.clip(s, 0.0, path.length))
    own = 1.0 - points.curvature * offset
    sideways = np.abs(points.curvature) / own * (speed * own) ** 2
    by_bend = np.abs(points.curvature_rate * offset) * speed**2
    along = np.abs(acceleration) * own + by_bend

    assert sideways.max() <= 2.0 * (1.0 + 1e-6)
    assert along.max() <= 1.0 + 1e-6
    assert speed.max() <= cruise * (1.0 + 1e-9)
    most = 1.0 / np.maximum(own, 1.0)
    reached = (np.abs(acceleration) > 0.999 * most) | (sideways > 1.9) | (speed > 0.999 * cruise)
    reached |= (by_bend > 0.49) | (along > 0.9)
    # where the bend begins or ends, the step beside it counts as tight, too
    assert reached.mean() > 0.95


@pytest.mark.parametrize("left", [9.0, -9.0])
def test_a_member_gains_no_speed_beyond_the_limit_where_the_bend_changes(left):
    """The places, 1 ms apart, have the acceleration along the way as second difference."""
    path = Spline([(0.0, 0.0), (60.0, 0.0), (60.0, 60.0), (0.0, 60.0)]).path()
    done = limited_schedule(path, SpeedProfile(20.0), "stop", 0.0, LIMITS, ((0.0, left),))
    times = np.linspace(0.01, trip_time(done) - 0.01, 4001)
    places = []
    for shift in (-1e-3, 0.0, 1e-3):
        points = path.at(motion(done, times + shift)[0])
        sideways = np.stack([-points.tangent[:, 1], points.tangent[:, 0]], axis=1)
        places.append(points.position + left * sideways)
    before, here, behind = places
    velocity = (behind - before) / 2e-3
    gained = np.einsum("ij,ij->i", velocity, before - 2.0 * here + behind) / 1e-6
    along = np.abs(gained) / np.maximum(np.hypot(*velocity.T), 0.1)
    assert 0.85 < along.max() < 1.005


def test_climbs_keep_the_climb_speed():
    """3 m/s up a slope of 1.5 are 2 m/s over ground: 2 s of gain, 48 s, 2 s of loss."""
    hill = dataclasses.replace(LINE, altitude=altitude_profile([0, 100], [0, 150], 100.0, False))
    limits = LIMITS._replace(climb_speed=3.0)
    done = limited_schedule(hill, SpeedProfile(20.0), "stop", 0.0, limits)
    assert trip_time(done) == pytest.approx(52.0, rel=1e-3)


@pytest.mark.parametrize("at_end", ["stop", "ping_pong"])
def test_a_start_at_the_end_of_the_path(at_end):
    done = limited_schedule(LINE, SpeedProfile(20.0), at_end, 100.0, LIMITS)
    s, speed, _ = motion(done, [0.0, 10.0])
    assert s[0] == 100.0
    expected = (100.0, 0.0) if at_end == "stop" else (50.0, -10.0)
    assert (s[1], speed[1]) == pytest.approx(expected)


def slow_trip_time(path, limits, cruise, count):
    """Return the time of the fastest trip by relaxing speeds at places until none changes, s."""
    s = np.linspace(0.0, path.length, count + 1)
    step = path.length / count
    bound = [
        min(cruise**2, limits.lateral_acceleration / max(abs(k), 1e-9))
        for k in path.at(s).curvature
    ]
    bound[0] = bound[-1] = 0.0
    changed = True
    while changed:
        changed = False
        for k in range(count):
            for here, there in ((k, k + 1), (k + 1, k)):
                most = bound[here] + 2.0 * limits.acceleration * step
                if bound[there] > most * (1.0 + 1e-12):
                    bound[there] = most
                    changed = True
    speed = np.sqrt(bound)
    return float((2.0 * step / (speed[1:] + speed[:-1])).sum())


@given(
    st.lists(
        st.tuples(st.floats(-60.0, 60.0), st.floats(-60.0, 60.0)),
        min_size=3,
        max_size=6,
        unique_by=lambda point: (round(point[0] / 25.0), round(point[1] / 25.0)),
    ),
    st.floats(2.0, 30.0),
)
@settings(max_examples=15, deadline=None)
def test_no_slow_search_finds_a_faster_trip(points, cruise):
    try:
        path = Polyline(points, corner_radius=3.0).path()
    except ConfigError:
        return
    done = limited_schedule(path, SpeedProfile(cruise), "stop", 0.0, LIMITS)
    slow = slow_trip_time(path, LIMITS, cruise, max(math.ceil(path.length / 0.25), 2))
    assert slow * (1.0 - 1e-3) <= trip_time(done) <= slow * 1.05


@given(st.floats(0.5, 300.0), st.floats(1.0, 20.0), st.floats(0.5, 3.0), st.floats(0.2, 10.0))
@settings(max_examples=40, deadline=None)
def test_with_a_jerk_a_straight_trip_is_nearly_the_fastest_s_curve(distance, cruise, most, jerk):
    """The fastest one is that of `schedule`; where it holds its speed, both are the same."""
    profile = SpeedProfile(cruise, most, jerk=jerk)
    line = Line((0.0, 0.0), (distance, 0.0)).path()
    done = limited_schedule(line, profile, "stop", 0.0, BendLimits(2.0, 9.0))
    fastest = trip_time(schedule(distance, False, profile, "stop"))
    assert fastest * (1.0 - 1e-9) <= trip_time(done) <= fastest * 1.06
    ramps = cruise * (cruise / most + most / jerk)
    if cruise * jerk >= most**2 and distance >= ramps + cruise * most / jerk + 0.5:
        assert trip_time(done) == pytest.approx(fastest, rel=1e-3)


def test_with_a_jerk_from_rest_on_a_circle():
    """To √(2 · 8) = 4 m/s at 1 m/s² and 0.5 m/s³: 4 + 2 s, by symmetry 12 m, then laps."""
    ring = Circle((0.0, 0.0), 8.0).path()
    done = limited_schedule(
        ring, SpeedProfile(10.0, jerk=0.5, acceleration=1.0), "repeat", 0, LIMITS
    )
    assert done.loop_period == pytest.approx(ring.length / 4.0)
    s, speed, acceleration = motion(done, [2.0, 3.0, 6.0, 60.0])
    assert s[:3] == pytest.approx([0.5 * 2.0**3 / 6.0, 2.0 / 3.0 + 1.0 + 0.5, 12.0], abs=1e-3)
    assert speed == pytest.approx([1.0, 2.0, 4.0, 4.0], rel=1e-4)
    assert acceleration == pytest.approx([1.0, 1.0, 0.0, 0.0], abs=1e-2)
    beyond = (s[3] - 12.0 - 54.0 * 4.0) / ring.length
    assert beyond == pytest.approx(round(beyond), abs=1e-3)


@pytest.mark.parametrize("at_end", ["stop", "ping_pong", "repeat"])
@pytest.mark.parametrize("jerk", [0.2, 1.0, 8.0])
@pytest.mark.parametrize("left", [0.0, -3.0])
def test_with_a_jerk_all_limits_are_kept_without_a_step(at_end, jerk, left):
    points = [(0.0, 0.0), (30.0, 5.0), (20.0, 40.0), (70.0, 60.0)]
    path = Spline(points, closed=at_end == "repeat").path()
    profile = SpeedProfile(12.0, 0.9, 0.7, jerk)
    done = limited_schedule(path, profile, at_end, 0.0, LIMITS, ((0.0, left),))
    end = trip_time(done) if at_end == "stop" else done.loop_start + 2.5 * done.loop_period
    times = np.linspace(0.0, end, 40_001)
    rows = progress(join_schedules([done], [0.0]), np.zeros(len(times), np.int64), times)
    s, speed, acceleration, rate = rows.T
    curvature = path.at(np.mod(s, path.length) if path.closed else s).curvature
    own = 1.0 - curvature * left
    assert (np.abs(curvature) * own * speed**2).max() <= 2.0 * (1.0 + 1e-3)
    assert (np.abs(acceleration) * own).max() <= 1.0 + 1e-6
    assert np.abs(acceleration).max() <= 0.9 * (1.0 + 1e-6)
    assert np.abs(rate).max() <= jerk * (1.0 + 1e-6)

    # nothing jumps, also where the loop begins anew
    step = times[1]
    if path.closed:
        s = np.unwrap(s, period=path.length)
    moved = 0.5 * (speed[1:] + speed[:-1]) * step
    np.testing.assert_allclose(np.diff(s), moved, rtol=1e-6, atol=2e-6)
    assert np.abs(np.diff(speed)).max() <= 0.91 * step
    assert np.abs(np.diff(acceleration)).max() <= 1.01 * jerk * step


@pytest.mark.parametrize("begin", [0.0, 3.0, 20.0, 45.0, 70.0])
@pytest.mark.parametrize("jerk", [0.5, 20.0])
def test_with_a_jerk_laps_that_begin_where_the_speed_rises_have_no_jump(begin, jerk):
    points = [(0.0, 0.0), (60.0, 0.0), (60.0, 20.0), (0.0, 20.0)]
    path = Polyline(points, closed=True, corner_radius=2.0).path()
    profile = SpeedProfile(20.0, 0.3, jerk=jerk)
    done = limited_schedule(path, profile, "repeat", begin, LIMITS)
    _, _, _, acceleration, rate = np.transpose(done.pieces)
    assert np.abs(acceleration).max() <= 0.3 * (1.0 + 1e-6)
    assert np.abs(rate).max() <= jerk * (1.0 + 1e-6)
    times = done.loop_start + np.array([1e-6, done.loop_period - 1e-6])
    s, speed, acceleration = motion(done, times)
    assert s[1] - s[0] == pytest.approx(path.length, abs=1e-4)
    assert speed[0] == pytest.approx(speed[1], abs=1e-4)
    assert acceleration[0] == pytest.approx(acceleration[1], abs=1e-4)


@pytest.mark.parametrize("jerk", [1e6, 1e9, 1e12])
def test_a_huge_jerk_is_hardly_a_jerk_at_all(jerk):
    """The place is a mean over a span, and must not jump because that is very short."""
    street = Polyline([(0.0, 0.0), (4000.0, 0.0), (4000.0, 4000.0)], corner_radius=9.0).path()
    profile = SpeedProfile(20.0, 0.9)
    plain = limited_schedule(street, profile, "stop", 0.0, LIMITS)
    done = limited_schedule(street, dataclasses.replace(profile, jerk=jerk), "stop", 0.0, LIMITS)
    assert trip_time(done) == pytest.approx(trip_time(plain), rel=5e-3)

    # each piece ends where the next one begins
    start, s, speed, acceleration, rate = np.transpose(done.pieces)
    last = np.diff(start)
    moved = last * (speed[:-1] + last * (acceleration[:-1] / 2.0 + last * rate[:-1] / 6.0))
    np.testing.assert_allclose(np.diff(s), moved, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("jerk", [1e-7, 1e-30])
def test_a_jerk_that_would_take_too_many_laps_is_told(jerk):
    ring = Circle((0.0, 0.0), 0.5).path()
    with pytest.raises(ConfigError, match="for more than 1000 laps"):
        limited_schedule(ring, SpeedProfile(9.0, 1.0, jerk=jerk), "repeat", 0.0, LIMITS)
