# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Speed profiles and the ends of paths, with times and distances worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rfly_common.errors import ConfigError
from rfly_trajectory.motion.speed_profile import (
    SpeedProfile,
    join_schedules,
    progress,
    schedule,
)


def run(times, length, closed, profile, at_end, phase=0.0, delay=0.0):
    """Return (m, 3) arc length, speed, acceleration of one vehicle."""
    return run_with_jerk(times, schedule(length, closed, profile, at_end, phase), delay)[:, :3]


def run_with_jerk(times, motion, delay=0.0):
    """Return (m, 4) arc length, speed, acceleration, jerk of one vehicle."""
    times = np.asarray(times, float)
    return progress(join_schedules([motion], [delay]), np.zeros(times.size, np.int64), times)


def test_constant_speed_round_and_round():
    rows = run([0, 1, 30], 100.0, True, SpeedProfile(5.0), "repeat", phase=10.0)
    expected = [
        [10, 5, 0],
        [15, 5, 0],
        [160, 5, 0],
    ]
    np.testing.assert_allclose(rows, expected)


def test_a_vehicle_stands_at_its_start_until_its_delay():
    rows = run(
        [-1, 0, 2.99, 3, 4],
        100.0,
        True,
        SpeedProfile(5.0),
        "repeat",
        phase=10.0,
        delay=3.0,
    )
    np.testing.assert_allclose(rows[:, 0], [10, 10, 10, 10, 15])
    np.testing.assert_allclose(rows[:, 1], [0, 0, 0, 5, 5])


def test_trapezoid_that_stops_by_hand():
    """100 m with 10 m/s, 2 m/s² up, 5 m/s² down: 5 s and 25 m, 6.5 s and 65 m, 2 s and 10 m."""
    rows = run(
        [0, 2, 5, 8, 11.5, 12.5, 13.5, 99],
        100.0,
        False,
        SpeedProfile(10.0, 2.0, 5.0),
        "stop",
    )
    np.testing.assert_allclose(rows[:, 0], [0, 4, 25, 55, 90, 97.5, 100, 100])
    np.testing.assert_allclose(rows[:, 1], [0, 4, 10, 10, 10, 5, 0, 0])
    expected = [2, 2, 0, 0, -5, -5, 0, 0]
    np.testing.assert_allclose(rows[:, 2], expected)


def test_a_short_way_is_driven_as_a_triangle():
    """12 m with 2 m/s² up, 4 m/s² down never reach 10 m/s: the peak is √(2·12·2·4/6) = √32 m/s."""
    peak = math.sqrt(32.0)
    rows = run(
        [peak / 2, peak / 2 + peak / 4],
        12.0,
        False,
        SpeedProfile(10.0, 2.0, 4.0),
        "stop",
    )
    np.testing.assert_allclose(rows[:, 0], [8.0, 12.0])
    np.testing.assert_allclose(rows[:, 1], [peak, 0.0], atol=1e-12)


def test_repeat_accelerates_once():
    rows = run([1, 2, 100], 50.0, True, SpeedProfile(4.0, 2.0), "repeat")
    expected = [
        [1, 2, 2],
        [4, 4, 0],
        [4 + 98 * 4, 4, 0],
    ]
    np.testing.assert_allclose(rows, expected)


def test_a_closed_path_stops_after_one_lap():
    rows = run([0, 5, 10, 11], 50.0, True, SpeedProfile(5.0), "stop", phase=20.0)
    np.testing.assert_allclose(rows[:, 0], [20, 45, 70, 70])
    np.testing.assert_allclose(rows[:, 1], [5, 5, 0, 0])


def test_ping_pong_at_constant_speed():
    """A ping-pong from 30 m takes 7 s to the end at 100 m, then 10 s each way."""
    rows = run(
        [0, 6, 8, 16, 18, 26, 28, 48],
        100.0,
        False,
        SpeedProfile(10.0),
        "ping_pong",
        phase=30.0,
    )
    np.testing.assert_allclose(rows[:, 0], [30, 90, 90, 10, 10, 90, 90, 90])
    expected = [10, 10, -10, -10, 10, 10, -10, -10]
    np.testing.assert_allclose(rows[:, 1], expected)


def test_ping_pong_rests_at_both_ends_with_a_trapezoid():
    """A leg of 100 m takes 13.5 s (see above)."""
    times = [13.5, 13.5 + 2, 13.5 + 5, 27.0, 27.0 + 2, 40.5]
    rows = run(times, 100.0, False, SpeedProfile(10.0, 2.0, 5.0), "ping_pong")
    np.testing.assert_allclose(rows[:, 0], [100, 96, 75, 0, 4, 100], atol=1e-9)
    np.testing.assert_allclose(rows[:, 1], [0, -4, -10, 0, 4, 0], atol=1e-9)


@pytest.mark.parametrize("at_end", ["repeat", "ping_pong", "stop"])
def test_speed_zero_stands_still(at_end):
    expected = [[3, 0, 0]] * 2
    np.testing.assert_array_equal(
        run([0, 5], 10.0, True, SpeedProfile(0.0), at_end, phase=3.0), expected
    )


def test_negative_phase_counts_back_on_a_closed_path():
    rows = run([0], 10.0, True, SpeedProfile(1.0), "repeat", phase=-13.0)
    assert rows[0, 0] == pytest.approx(7.0)


@settings(deadline=None)
@given(
    length=st.floats(0.5, 1e4),
    cruise=st.floats(0.1, 50.0),
    up=st.floats(0.1, 10.0),
    down=st.floats(0.1, 10.0),
    part=st.floats(0.0, 1.0),
    at_end=st.sampled_from(["repeat", "ping_pong", "stop"]),
)
def test_arc_length_speed_and_acceleration_fit_together(length, cruise, up, down, part, at_end):
    """Speed is continuous and within its limit, and its integral is the arc length."""
    times = np.linspace(0.0, 4.0 * (length / cruise + cruise / up + cruise / down), 4001)
    rows = run(times, length, True, SpeedProfile(cruise, up, down), at_end, phase=part * length)
    dt = times[1]
    assert np.max(np.abs(rows[:, 1])) <= cruise * (1 + 1e-9)
    assert np.max(np.abs(np.diff(rows[:, 1]))) <= max(up, down) * dt * (1 + 1e-6) + 1e-9
    moved = np.diff(rows[:, 0])
    if at_end == "ping_pong":  # beyond the end of a lap the next one begins at its far side
        assert np.all((rows[:, 0] > -1e-6) & (rows[:, 0] < length + 1e-6))
    mean = 0.5 * (rows[1:, 1] + rows[:-1, 1]) * dt
    assert np.max(np.abs(moved - mean)) <= max(up, down) * dt**2 + 1e-6


class TestSCurve:
    def test_seven_pieces_by_hand(self):
        """10 m/s with 2 m/s² and 1 m/s³ take seven pieces.

        2 s of jerk, 3 s at 2 m/s², 2 s of jerk; a ramp is 7 s and 10/2·7 = 35 m long. Of 100 m, 30
        m are left for 3 s at 10 m/s.
        """
        motion = schedule(100.0, False, SpeedProfile(10.0, 2.0, jerk=1.0), "stop")
        rows = run_with_jerk([0, 1, 2, 5, 6, 7, 8.5, 10, 11, 12, 15, 17, 99], motion)
        s = [
            0,
            1 / 6,
            4 / 3,
            49 / 3,
            35 - 10 + 1 / 6,
            35,
            50,
            65,
            75 - 1 / 6,
            100 - 49 / 3,
            100 - 4 / 3,
            100,
            100,
        ]

        np.testing.assert_allclose(rows[:, 0], s, rtol=1e-14)
        expected = [0, 0.5, 2, 8, 9.5, 10, 10, 10, 9.5, 8, 2, 0, 0]
        np.testing.assert_allclose(rows[:, 1], expected, atol=1e-13)
        expected = [0, 1, 2, 2, 1, 0, 0, 0, -1, -2, -2, 0, 0]
        np.testing.assert_allclose(rows[:, 2], expected, atol=1e-13)
        expected = [1, 1, 0, -1, -1, 0, 0, -1, -1, 0, 1, 0, 0]
        np.testing.assert_array_equal(rows[:, 3], expected)

    @pytest.mark.parametrize(
        ("profile", "length", "peak", "seconds"),
        [
            pytest.param(
                SpeedProfile(10.0, 2.0, jerk=1.0),
                2.0,
                1.0,
                4.0,
                id="neither limit: 2·1·√(1/1) m",
            ),
            pytest.param(
                SpeedProfile(10.0, 2.0, jerk=1.0),
                30.0,
                6.0,
                10.0,
                id="acceleration: 6·(6/2 + 2/1) m",
            ),
            pytest.param(
                SpeedProfile(20.0, 2.0, 6.0, 1.0),
                144.0,
                16.0,
                18.0,
                id="one of two: 8·(16/2 + 2) + 16·4 m",
            ),
            pytest.param(SpeedProfile(20.0, 6.0, 2.0, 1.0), 144.0, 16.0, 18.0, id="the other one"),
            pytest.param(
                SpeedProfile(1.0, 2.0, jerk=1.0),
                5.0,
                1.0,
                7.0,
                id="cruise, not acceleration: 1 + 3 + 1 m",
            ),
        ],
    )
    def test_short_ways_by_hand(self, profile, length, peak, seconds):
        motion = schedule(length, False, profile, "stop")
        assert motion.pieces[-1][0] == pytest.approx(seconds, rel=1e-13)
        rows = run_with_jerk(np.linspace(0.0, seconds, 20001), motion)
        assert rows[:, 1].max() == pytest.approx(peak, rel=1e-6)
        assert rows[-1, 0] == pytest.approx(length, rel=1e-14)

    def test_repeat_gathers_speed_once_and_a_delay_comes_first(self):
        motion = schedule(50.0, True, SpeedProfile(10.0, 2.0, jerk=1.0), "repeat", 5.0)
        rows = run_with_jerk([2.0, 4.0, 10.0, 110.0], motion, delay=3.0)
        expected = [
            [5, 0, 0],
            [5 + 1 / 6, 0.5, 1],
            [40, 10, 0],
            [1040, 10, 0],
        ]
        np.testing.assert_allclose(rows[:, :3], expected, rtol=1e-13)

    def test_ping_pong_rests_at_both_ends(self):
        """A leg of 100 m takes 17 s (see above); on the way back all signs are turned."""
        motion = schedule(100.0, False, SpeedProfile(10.0, 2.0, jerk=1.0), "ping_pong")
        rows = run_with_jerk([17.0, 18.0, 25.5, 33.0, 34.0, 35.0, 69.0], motion)
        expected = [100, 100 - 1 / 6, 50, 1 / 6, 0, 1 / 6, 1 / 6]
        np.testing.assert_allclose(rows[:, 0], expected, atol=1e-12)
        expected = [0, -0.5, -10, -0.5, 0, 0.5, 0.5]
        np.testing.assert_allclose(rows[:, 1], expected, atol=1e-12)
        np.testing.assert_allclose(rows[:, 2], [0, -1, 0, 1, 0, 1, 1], atol=1e-12)

    @settings(deadline=None)
    @given(
        length=st.floats(0.5, 1e4),
        cruise=st.floats(0.1, 50.0),
        up=st.floats(0.1, 10.0),
        down=st.floats(0.1, 10.0),
        jerk=st.floats(0.05, 50.0),
        at_end=st.sampled_from(["repeat", "ping_pong", "stop"]),
    )
    def test_all_limits_are_kept_and_nothing_jumps(self, length, cruise, up, down, jerk, at_end):
        """Motions keep all limits and reach one of them at each moment.

        So no motion could be faster. Each value is the integral of the next one by time, from rest
        at the start to rest at the end of the way.
        """
        motion = schedule(length, True, SpeedProfile(cruise, up, down, jerk), at_end)
        starts = np.array([piece[0] for piece in motion.pieces])
        last = (
            starts[-1] + 1.0
            if math.isinf(motion.loop_period)
            else motion.loop_start + motion.loop_period
        )

        # nine samples in each piece
        borders = np.append(starts, last)
        times = borders[:-1, None] + np.diff(borders)[:, None] * np.linspace(1e-7, 1.0 - 1e-7, 9)
        rows = run_with_jerk(times.ravel(), motion)
        dt = np.repeat(np.diff(borders) * (1.0 - 2e-7), 9).reshape(-1, 9)
        seen = dt[:, 0] > 1e-3  # pieces that rounding left are too short for samples inside them
        s, v, a, j = rows.T.reshape(4, -1, 9)

        # limits
        assert np.abs(v).max() <= cruise * (1 + 1e-9)
        assert (a * np.sign(v)).max() <= up * (1 + 1e-9)
        assert (-a * np.sign(v)).max() <= down * (1 + 1e-9)
        assert set(np.abs(j).ravel()) <= {0.0, jerk}

        # no jumps, and each value is the integral of its rate
        for value, rate in ((s, v), (v, a), (a, j)):
            np.testing.assert_allclose(
                value[1:, 0], value[:-1, -1], rtol=0, atol=1e-6 * np.abs(value).max()
            )
            simpson = dt[:, 0] / 6 * (rate[:, 0] + 4 * rate[:, 4] + rate[:, 8])
            grown = (value[:, 8] - value[:, 0])[seen]
            np.testing.assert_allclose(
                grown, simpson[seen], rtol=0, atol=1e-6 * np.abs(value).max()
            )

        # at rest at the end
        if at_end != "repeat":
            assert s[-1, -1] == pytest.approx(length, rel=1e-6)
            assert abs(v[-1, -1]) <= 1e-6 * cruise

        # one limit is reached
        even = (j[:, 4] == 0.0) & seen & (v[:, 4] != 0.0)
        at_a_limit = [
            np.isclose(np.abs(v), cruise),
            np.isclose(a * np.sign(v), up),
            np.isclose(-a * np.sign(v), down),
        ]
        assert np.any(at_a_limit, axis=0)[even, 4].all()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: schedule(10.0, False, SpeedProfile(1.0), "repeat"),
            "at_end: repeat needs a closed path",
        ),
        (
            lambda: schedule(10.0, False, SpeedProfile(1.0), "stop", 11.0),
            "phase: 11 m is not on the path, which is 10",
        ),
        (
            lambda: schedule(10.0, True, SpeedProfile(1.0), "ping_pong", -1.0),
            "phase: -1 m is not on the path",
        ),
        (
            lambda: schedule(10.0, True, SpeedProfile(1.0), "wait"),
            "at_end: 'wait', expected one of",
        ),
        (lambda: SpeedProfile(-1.0), "cruise: -1.0 m/s"),
        (lambda: SpeedProfile(math.nan), "cruise: nan m/s"),
        (lambda: SpeedProfile(1.0, 0.0), "acceleration: 0.0 m/s²"),
        (lambda: SpeedProfile(1.0, None, 2.0), "deceleration: needs an acceleration"),
        (lambda: SpeedProfile(1.0, jerk=2.0), "jerk: needs an acceleration"),
        (
            lambda: SpeedProfile(1.0, 1.0, jerk=0.0),
            "jerk: 0.0 m/s³, expected a finite number above 0",
        ),
    ],
)
def test_what_makes_no_motion_is_refused(call, text):
    with pytest.raises(ConfigError, match=text):
        call()


def test_vehicles_of_one_table_do_not_touch_each_other():
    schedules = [
        schedule(100.0, False, SpeedProfile(10.0, 2.0, 5.0), "stop"),
        schedule(50.0, True, SpeedProfile(5.0), "repeat", 7.0),
        schedule(100.0, False, SpeedProfile(10.0), "ping_pong", 30.0),
    ]
    table = join_schedules(schedules, [0.0, 2.0, 1.0])
    together = progress(table, np.array([2, 0, 1, 0]), np.array([9.0, 5.0, 4.0, 99.0]))
    expected = [
        [90, -10, 0, 0],
        [25, 10, 0, 0],
        [17, 5, 0, 0],
        [100, 0, 0, 0],
    ]
    np.testing.assert_allclose(together, expected)
