# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Motions that begin on the way.

Trapezoids are worked out by hand, all profiles compared with integrals of their pieces.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rfly_trajectory.fleet.follow_path import schedule_to_end, stop
from rfly_trajectory.motion.speed_profile import SpeedProfile, join_schedules, progress


def run(motion, times):
    """Return (m, 4) arc length, speed, acceleration, jerk."""
    times = np.asarray(times, float)
    return progress(join_schedules([motion], [0.0]), np.zeros(times.size, np.int64), times)


def test_trapezoid_entered_at_a_speed_by_hand():
    """6 m/s to 10 m/s with 2 m/s² takes 2 s and 16 m.

    The brake with 5 m/s² takes 2 s and 10 m; 74 m at 10 m/s are in between.
    """
    motion = schedule_to_end(100.0, 6.0, SpeedProfile(10.0, 2.0, 5.0))
    rows = run(motion, [0, 1, 2, 9.4, 10.4, 11.4, 99])
    np.testing.assert_allclose(rows[:, 0], [0, 7, 16, 90, 97.5, 100, 100])
    np.testing.assert_allclose(rows[:, 1], [6, 8, 10, 10, 5, 0, 0], atol=1e-12)


def test_at_cruising_speed_without_accelerations_it_brakes_gently():
    """A vehicle at 10 m/s drives 75 m at that speed, then brakes on 25 m with 2 m/s²."""
    rows = run(schedule_to_end(100.0, 10.0, SpeedProfile(10.0)), [0, 7.5, 12.5, 20])
    expected = [
        [0, 10],
        [75, 10],
        [100, 0],
        [100, 0],
    ]
    np.testing.assert_allclose(rows[:, :2], expected, atol=1e-12)


def test_too_fast_and_too_short_by_hand():
    """A vehicle above its cruising speed brakes to that speed.

    With 10 m left and 10 m/s it takes 5 m/s², whatever the profile.
    """
    rows = run(schedule_to_end(100.0, 12.0, SpeedProfile(10.0, 2.0)), [0, 1, 2])
    expected = [[0, 12], [11, 10], [21, 10]]
    np.testing.assert_allclose(rows[:, :2], expected)
    rows = run(schedule_to_end(10.0, 10.0, SpeedProfile(10.0, 2.0)), [0, 1, 2, 3])
    expected = [
        [0, 10],
        [7.5, 5],
        [10, 0],
        [10, 0],
    ]
    np.testing.assert_allclose(rows[:, :2], expected, atol=1e-12)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_stop_by_hand(sign):
    rows = run(stop(50.0, sign * 8.0, 4.0), [0, 1, 2, 9])
    expected = 50.0 + sign * np.array([0, 6, 8, 8])
    np.testing.assert_allclose(rows[:, 0], expected)
    expected = sign * np.array([8, 4, 0, 0])
    np.testing.assert_allclose(rows[:, 1], expected, atol=1e-12)


@given(
    st.floats(1.0, 500.0),
    st.floats(0.0, 30.0),
    st.floats(1.0, 25.0),
    st.one_of(
        st.none(),
        st.tuples(st.floats(0.5, 5), st.floats(0.5, 5), st.one_of(st.none(), st.floats(0.5, 5))),
    ),
)
@example(2.0, 1.0, 1.0, (0.5000000000000001, 1.0, 0.5))
@example(1.0, 1.0, 1.0, (0.5, 0.5000000000000001, None))
def test_every_motion_begins_at_its_speed_and_ends_at_rest(length, speed, cruise, accelerations):
    """Every motion begins at its speed and comes to rest exactly at the path's end.

    Pieces fit together in place and speed, and also in acceleration where there is a jerk and no
    emergency. It never drives backwards, nor faster than it was or cruises.
    """
    profile = SpeedProfile(cruise, *(accelerations or ()))
    motion = schedule_to_end(length, speed, profile)

    # the end of each piece is the beginning of the next
    rows = np.array(motion.pieces)
    dt = np.diff(rows[:, 0])
    s, v, a, j = rows[:-1, 1:].T
    ends = s + dt * (v + dt * (a / 2 + dt * j / 6)), v + dt * (a + dt * j / 2), a + dt * j
    np.testing.assert_allclose(ends[0], rows[1:, 1], atol=1e-7)
    np.testing.assert_allclose(ends[1], rows[1:, 2], atol=1e-6)
    if profile.jerk is not None and 1e-9 < speed <= cruise and len(rows) > 2:
        np.testing.assert_allclose(ends[2], rows[1:, 3], atol=1e-5)

    if speed > 1e-9:
        np.testing.assert_allclose(rows[0, :3], [0.0, 0.0, speed], atol=1e-9)
    np.testing.assert_allclose(rows[-1, 1:], [length, 0, 0, 0], atol=1e-9)

    times = np.linspace(0.0, rows[-1, 0] + 1.0, 300)
    speeds = run(motion, times)[:, 1]
    assert speeds.min() > -1e-6
    assert speeds.max() < max(speed, cruise) + 1e-6
    assert math.isinf(motion.loop_period)
