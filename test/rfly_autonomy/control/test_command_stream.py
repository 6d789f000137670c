# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Streams of commands: a link that loses most differs from a sender that changes its mind."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import exhaustively

from rfly_autonomy.control.command_stream import (
    FORGOTTEN,
    PAUSE,
    SILENCE,
    TIMEOUT,
    CommandStream,
)

STEADY = [0.02] * 10


def lossy_at(gaps, period=math.nan):
    """Return the numbers (from 1) of the gaps, s, after which most commands count as lost."""
    stream = CommandStream(period)
    time = 0.0
    stream.hear(time, time)
    lossy = []
    for number, gap in enumerate(gaps, start=1):
        time += gap
        stream.hear(time, time)
        if stream.loses_most(time):
            lossy.append(number)
    return lossy


@pytest.mark.parametrize(
    ("gaps", "period", "lossy"),
    [
        # gaps of 2, 5 and 3 periods after seven of one: 10 commands of 17
        ([*STEADY, 0.04, 0.10, 0.06, *STEADY], math.nan, []),
        # gaps of 4, 8 and 5 periods: 10 commands of 24
        ([*STEADY, 0.08, 0.16, 0.10], math.nan, [13]),
        # with nine sound ones and the gap of 5 it is 10 of 14, and then 10 of 10
        ([*STEADY, 0.08, 0.16, 0.10, *STEADY], math.nan, list(range(13, 23))),
        ([0.08, 0.16, 0.10], 0.02, [3]),
        ([0.08, 0.16, 0.10], math.nan, []),
        ([*STEADY[1:], 0.08, 0.16, 0.10], math.nan, []),
        ([*STEADY, 0.3, *STEADY, 0.4, *STEADY], math.nan, []),
        ([*STEADY, *[0.2] * 30], math.nan, []),
        ([*STEADY, 0.12, *[0.3] * 30], math.nan, []),
        ([*[0.4] * 10, *STEADY, *STEADY], math.nan, []),
        ([*STEADY, 3.0, 0.08, 0.16, 0.10], math.nan, []),
        ([*STEADY, 3.0, 0.02, 0.08, 0.16, 0.10], math.nan, [15]),
        ([*STEADY, 1.1, 0.08, 0.16, 0.10], math.nan, [14]),
        ([*STEADY, 3.0, 0.08, 0.16, 0.10], 0.02, [14]),
    ],
    ids=[
        "half come",
        "few come",
        "sound again",
        "of a known period",
        "from the first on",
        "period not shown yet",
        "pauses",
        "slower",
        "slower after a pause",
        "faster",
        "events after a rest",
        "few come after a rest",
        "after a pause",
        "after a silence",
    ],
)
def test_few_commands_in_gaps_that_differ_are_a_link_that_loses_them(gaps, period, lossy):
    assert lossy_at(gaps, period) == lossy


@pytest.mark.parametrize("loss", [0.7, 0.8, 0.9])
def test_most_losses_by_chance_are_noticed_within_two_seconds(loss):
    """Few of 300 links that do so after 1 s are late (2 %), but for pauses of 0.6 s."""
    rng = np.random.default_rng(3)
    late = 0
    for _ in range(300):
        arrives = rng.random(150) >= loss
        arrives[:50] = True
        stamps = 0.02 * np.flatnonzero(arrives)
        gaps = np.diff(stamps)
        lossy = lossy_at(gaps.tolist())
        assert not lossy or stamps[lossy[0]] > 1.0
        late += not lossy and gaps.max() <= PAUSE * TIMEOUT
    assert late <= 6


@pytest.mark.parametrize("period", [0.5, 1.0])
def test_losses_of_a_slow_stream_are_noticed(period):
    """Few of 100 links that lose 7 of 10 commands of 1 or 2 Hz go unnoticed for 100 periods."""
    rng = np.random.default_rng(11)
    missed = 0
    for _ in range(100):
        arrives = rng.random(114) >= 0.7
        arrives[:14] = True
        lossy = lossy_at((period * np.diff(np.flatnonzero(arrives))).tolist())
        assert not lossy or lossy[0] > 13
        missed += not lossy
    assert missed <= 5


@pytest.mark.parametrize("period", [0.5, 1.0])
def test_a_slow_sender_that_pauses_or_becomes_uneven_is_no_lossy_link(period):
    """It pauses once in a while, and then a hand sends by it."""
    rng = np.random.default_rng(12)
    warned = 0
    for _ in range(200):
        gaps = [period] * 12 + [rng.uniform(1.5, 8.0) * period] + [period] * 12
        warned += bool(lossy_at([*gaps, *(period * rng.uniform(0.3, 5.0, 40)).tolist()]))
    assert warned <= 2


@given(
    st.lists(
        st.tuples(st.floats(0.005, 0.45), st.integers(12, 30), st.floats(0.0, 5.0)),
        min_size=1,
        max_size=6,
    ),
    st.integers(0, 2**32 - 1),
)
def test_a_sender_that_starts_stops_and_changes_its_rate_loses_nothing(parts, seed):
    """Each part is a period, s, a number of commands that come up to 15 % off, and a pause, s."""
    rng = np.random.default_rng(seed)
    gaps = []
    for period, count, pause in parts:
        gaps += (period * rng.uniform(0.85, 1.15, count)).tolist()
        gaps.append(pause)
    assert lossy_at(gaps) == []


def test_after_a_silence_nothing_is_known_of_the_link():
    stream = CommandStream(0.02)
    for stamp in (0.0, 0.08, 0.24, 0.34):
        stream.hear(stamp, 100.0 + stamp)
    assert stream.loses_most(100.34 + SILENCE * TIMEOUT)
    assert not stream.loses_most(100.36 + SILENCE * TIMEOUT)


def test_a_sender_that_becomes_slow_and_uneven_is_no_lossy_link_for_long():
    """A camera's pipeline is quick while it sees nothing; of a link that loses 9 of 10 it stays."""
    rng = np.random.default_rng(5)
    uneven = rng.uniform(0.07, 0.2, 400)
    lossy = lossy_at([*STEADY, *uneven.tolist()])
    assert max(lossy, default=0) < len(STEADY) + FORGOTTEN
    assert lossy_at([*STEADY, *uneven.tolist()], 0.02)[-1] == 410, "the period is known"

    stamps = 0.02 * np.flatnonzero(rng.random(5000) >= 0.9)
    gaps = [*STEADY, *np.diff(stamps).tolist()]
    assert len(lossy_at(gaps)) > 0.9 * len(gaps)


def test_a_clock_that_goes_back_without_commands_tells_of_no_loss():
    stream = CommandStream(0.02)
    for stamp in (50.0, 50.08, 50.24, 50.34):
        stream.hear(stamp, stamp)
    assert stream.loses_most(50.4)
    assert not stream.loses_most(0.0)


def test_a_clock_that_goes_back_begins_anew():
    stream = CommandStream(0.02)
    for stamp in (50.0, 50.08, 50.24, 50.34, 0.0):
        stream.hear(stamp, stamp)
    assert not stream.loses_most(0.0)


def test_commands_of_one_stamp_count_once():
    stream = CommandStream(0.02)
    for stamp in (0.0, 0.08, 0.08, 0.08, 0.08, 0.24, 0.24, 0.34):
        stream.hear(stamp, stamp)
    assert stream.loses_most(0.34)


def by_events(rng, grid):
    """Return gaps of a timer, and then of bursts of one to eight events, 0.7 to 6 s apart."""
    gaps = [0.02] * rng.integers(11, 30)
    for _ in range(40):
        gaps.append(rng.uniform(0.7, 6.0))
        gaps += rng.uniform(0.03, 0.4, rng.integers(1, 9)).tolist()
    return (np.round(np.array(gaps) / grid) * grid).tolist()


def moved_by_hand(rng, _):
    """Return gaps of a joystick: while it moves it repeats by a timer, then a hand moves it."""
    gaps = []
    for _ in range(10):
        gaps += [0.02] * rng.integers(11, 30)
        gaps += rng.uniform(0.03, 0.4, rng.integers(5, 30)).tolist()
    return gaps


@pytest.mark.parametrize(
    "grid", [pytest.param(1e-6, id="any time"), exhaustively(0.01, id="half periods")]
)
@pytest.mark.parametrize("sender", [by_events, moved_by_hand])
def test_a_sender_by_events_is_no_lossy_link(sender, grid):
    """At most one of 200 runs warns, though each has a hundred gaps and more."""
    rng = np.random.default_rng(7)
    assert sum(bool(lossy_at(sender(rng, grid))) for _ in range(200)) <= 1


def test_losses_of_a_timer_that_is_late_by_chance_are_noticed():
    """The stamps are up to 5 % of a period late."""
    rng = np.random.default_rng(8)
    missed = 0
    for _ in range(100):
        arrives = rng.random(200) >= 0.9
        arrives[:50] = True
        stamps = 0.02 * (np.arange(200) + rng.uniform(0.0, 0.05, 200))[arrives]
        missed += not lossy_at(np.diff(stamps).tolist())
    assert missed <= 5


@pytest.mark.parametrize(("timeout", "lossy"), [(TIMEOUT, []), (2.0, [13])])
def test_a_gap_counts_up_to_the_timeout_of_the_receiver(timeout, lossy):
    """A timer of 0.2 s has gaps of 4, 8 and 5 periods: 1.6 s are a pause for 0.5 s only."""
    stream = CommandStream(timeout=timeout)
    time = 0.0
    found = []
    stream.hear(time, time)
    for number, gap in enumerate([0.2] * 10 + [0.8, 1.6, 1.0], start=1):
        time += gap
        stream.hear(time, time)
        if stream.loses_most(time):
            found.append(number)
    assert found == lossy
