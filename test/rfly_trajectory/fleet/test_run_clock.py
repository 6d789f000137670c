# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fleet time over node time, the common start of several nodes, and shards.

Expected values are integrals and counts by hand.
"""

from __future__ import annotations

import functools
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfly_common.errors import ConfigError
from rfly_trajectory.fleet.fleet_file import shard_range
from rfly_trajectory.fleet.run_clock import (
    RunClock,
    agreed_start,
    is_near,
    next_start,
    run_number,
    start_at_time,
)

S = 10**9
START = 1_700_000_000 * S


def test_fleet_time_by_hand():
    """Fleet time is 4 + 3 + 0 + 1 + 3 = 11 s by hand.

    Start; 4 s at 1; from then 6 s at 0.5; pause of 10 s; 2 s at 0.5 again; 1 s at 3.
    """
    clock = RunClock(START)
    assert clock.fleet_time(START - 3 * S) == 0.0
    assert clock.pace(START - 1) == 0.0
    assert clock.fleet_time(START + 4 * S) == 4.0

    # half the pace
    clock = clock.scaled(START + 4 * S, 0.5)
    assert clock.fleet_time(START + 10 * S) == 7.0

    # a pause
    clock = clock.paused(START + 10 * S)
    assert clock.fleet_time(START + 15 * S) == 7.0
    assert clock.pace(START + 15 * S) == 0.0

    # on at half the pace, then threefold
    clock = clock.started(START + 20 * S)
    assert clock.pace(START + 20 * S) == 0.5
    clock = clock.scaled(START + 22 * S, 3.0)
    assert clock.fleet_time(START + 23 * S) == 11.0

    again = clock.restarted(START + 30 * S)
    assert (again.fleet_time(START + 29 * S), again.fleet_time(START + 31 * S)) == (0.0, 3.0)


def test_what_happens_before_the_start_does_not_move_it():
    """A pause that ends, or a scale that changes, before the start does not move it.

    The fleet begins at the start all the same.
    """
    clock = RunClock(START).paused(START - 5 * S).scaled(START - 4 * S, 2.0).started(START - 3 * S)
    assert clock.fleet_time(START) == 0.0
    assert clock.fleet_time(START + S) == 2.0
    waiting = RunClock(START).paused(START - 5 * S)
    assert waiting.fleet_time(START + 5 * S) == 0.0
    assert waiting.started(START + 5 * S).fleet_time(START + 6 * S) == 1.0


def test_repeated_commands_change_nothing():
    clock = RunClock(START)
    assert clock.started(START + 3 * S).fleet_time(START + 9 * S) == 9.0
    paused = clock.paused(START + 3 * S).paused(START + 7 * S)
    assert paused.fleet_time(START + 9 * S) == 3.0
    assert paused.restarted(START + 20 * S).fleet_time(START + 25 * S) == 0.0


@pytest.mark.parametrize("scale", [-0.1, float("nan"), float("inf"), 1000.1])
def test_a_scale_that_is_none_is_refused(scale):
    with pytest.raises(ConfigError, match="time_scale: "):
        RunClock(START).scaled(START, scale)


commands = st.tuples(st.sampled_from(["start", "pause", "scale"]), st.floats(0.0, 10.0))


@given(
    st.lists(st.tuples(st.integers(0, 5 * S), commands), max_size=12), st.integers(-8 * S, 8 * S)
)
def test_fleet_time_is_the_integral_of_the_pace(steps, begin):
    """Fleet time does not jump at a command, whenever it comes.

    Between commands the scale counts only while the clock runs.
    """
    clock = RunClock(START)
    now = START + begin
    expected = max(0.0, begin * 1e-9)
    running = True
    scale = 1.0

    for wait, (command, value) in steps:
        after = now + wait
        if running:
            expected += scale * max(0, after - max(now, START)) * 1e-9
        now = after

        before = clock.fleet_time(now)
        if command == "start":
            clock = clock.started(now)
            running = True
        elif command == "pause":
            clock = clock.paused(now)
            running = False
        else:
            clock = clock.scaled(now, value)
            scale = value

        assert clock.fleet_time(now) == pytest.approx(before, abs=1e-9)
        assert clock.fleet_time(now) == pytest.approx(expected, abs=1e-6)


def test_the_next_whole_second_and_the_run():
    assert next_start(START + 1) == START + S
    assert next_start(START) == START + S  # a whole second is over when it is read
    assert next_start(START + S - 1, START) == START + S + 1
    assert run_number(next_start(START, START + 999)) == 0
    # a given start that is to come is kept
    assert next_start(START, START - S, START + 5 * S) == START + 5 * S + 1
    assert next_start(START, START - S, START) == START + S + 1
    assert is_near(START + 1 * S, START)
    assert not is_near(START, START - 100 * S)


@pytest.mark.parametrize(
    ("seconds", "start"), [(0.0, 0), (12.5, 12_500_000_000), (1.7e9 + 0.1, START + 100_000_000)]
)
def test_a_given_start_is_the_first_run_in_whole_microseconds(seconds, start):
    assert start_at_time(seconds) == start


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), 2.0**31])
def test_a_start_that_no_message_carries_is_refused(seconds):
    with pytest.raises(ConfigError, match="start_time: "):
        start_at_time(seconds)


def test_the_earlier_start_of_the_later_run_counts():
    # two nodes began at once
    assert agreed_start(START, START + S) == agreed_start(START + S, START) == START
    # a reset that one node has not heard of
    assert agreed_start(START + S + 1, START) == START + S + 1
    assert agreed_start(START + 9 * S, START + 998) == START + 9 * S  # run 1000 is run 0 again


runs = st.integers(0, 2) | st.integers(0, 499)
starts = st.builds(lambda second, run: START + second * S + run, st.integers(0, 9), runs)


@given(st.lists(starts, min_size=1, max_size=6), st.randoms())
def test_nodes_agree_in_whatever_order_they_hear(heard, chance):
    """Every order of messages, with repetitions, gives the same result.

    Two nodes can never stay apart.
    """
    order = [*heard, *chance.choices(heard, k=3)]
    chance.shuffle(order)
    assert functools.reduce(agreed_start, order) == functools.reduce(agreed_start, heard)
    assert agreed_start(heard[0], heard[-1]) in (heard[0], heard[-1])


@given(st.integers(0, 5000), st.integers(1, 40))
def test_shards_are_disjoint_and_together_all(vehicles, n):
    """Joined in order they are 0, 1, 2 …; their sizes differ by one at most."""
    shards = [shard_range(f"{i}/{n}", vehicles) for i in range(n)]
    assert list(itertools.chain(*shards)) == list(range(vehicles))
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


@pytest.mark.parametrize(
    "text", ["", "1", "2/2", "-1/2", "1/0", "0/0", "a/b", "1/2/3", "0.5/2", "0/99999"]
)
def test_a_shard_that_is_none_is_refused(text):
    with pytest.raises(ConfigError, match=r"shard: .*0/2 and 1/2"):
        shard_range(text, 10)
