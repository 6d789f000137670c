# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rhythms of answers, from schedules whose gaps are worked out by hand."""

from __future__ import annotations

import pytest

from rfly_mavlink.links.answer_rhythm import AnswerRhythm
from rfly_mavlink.links.mavlink_hil import AutopilotClock

TICK_US = 4000


def run(rhythm, ticks, is_answered):
    """Return the ticks that are waited for in vain, and those answered without a wait.

    An autopilot's answers to ticks that are not waited for come before that to the next that is.
    """
    vain = []
    surprises = []
    for number in ticks:
        now = number * TICK_US
        rhythm.tick(now)
        waits = rhythm.expects_answer
        if is_answered(number):
            rhythm.answered(now)
            surprises += [] if waits else [number]
        elif waits:
            vain.append(number)
        if waits:
            rhythm.settle()
    return vain, surprises


def test_an_autopilot_that_answers_each_tick_is_always_waited_for():
    rhythm = AnswerRhythm()
    assert run(rhythm, range(1, 50), lambda _: True) == ([], [])
    assert str(rhythm) == "every tick"
    assert rhythm.is_sure


def test_every_fourth_tick_is_known_after_four_gaps():
    rhythm = AnswerRhythm()
    vain, surprises = run(rhythm, range(1, 200), lambda number: number % 4 == 0)
    # 4 gaps of 4 ticks, after the first miss began the learning
    assert vain == [number for number in range(1, 17) if number % 4]
    assert surprises == []
    assert rhythm.pattern == (4,)
    assert str(rhythm) == "every 4th tick"


def test_100_hz_of_250_hz_are_two_of_five_ticks():
    """Outputs due every 10 ms are answers at 12, 20, 32, 40 … ms: gaps of 3 and 2 ticks."""
    rhythm = AnswerRhythm()
    at = {12, 20, 32, 40}
    answers = [ms + 40 * turn for turn in range(30) for ms in sorted(at)]
    answers = {ms // 4 for ms in answers}
    vain, surprises = run(rhythm, range(1, 250), answers.__contains__)
    assert surprises == []
    assert max(vain) <= 15  # six gaps
    assert sorted(rhythm.pattern) == [2, 3]
    assert str(rhythm) == "2 of 5 ticks"


@pytest.mark.parametrize(("before", "after"), [(4, 2), (2, 4), (4, 3), (13, 1), (1, 13)])
def test_a_changed_rate_is_learned_again(before, after):
    rhythm = AnswerRhythm()
    change = 1 + 20 * before
    run(rhythm, range(1, change), lambda number: number % before == 0)
    assert rhythm.pattern == (before,)

    vain, _ = run(
        rhythm, range(change, change + 400), lambda number: (number - change) % after == 0
    )
    assert rhythm.pattern == (after,)
    assert rhythm.is_sure
    assert max(vain, default=change) < change + before + 6 * after


def test_a_late_answer_to_a_tick_changes_nothing():
    """The gap to the missed tick is counted as soon as its answer has come."""
    rhythm = AnswerRhythm()
    run(rhythm, range(1, 21), lambda _: True)
    rhythm.tick(21 * TICK_US)
    rhythm.settle()
    assert str(rhythm) == "being learned"
    assert not rhythm.is_sure

    rhythm.answered(21 * TICK_US)
    vain, _ = run(rhythm, range(22, 30), lambda _: True)
    assert vain == []
    assert str(rhythm) == "every tick"


def test_answers_to_other_times_teach_nothing():
    rhythm = AnswerRhythm()
    for number in range(1, 10):
        rhythm.tick(number * TICK_US)
        rhythm.answered(number * TICK_US + 1)
        rhythm.answered(number * TICK_US)
        rhythm.settle()
    assert str(rhythm) == "every tick"


def test_an_irregular_autopilot_is_waited_for_at_each_tick():
    rhythm = AnswerRhythm()
    answers = {1, 2, 4, 9, 11, 20, 21, 25, 30, 32, 40, 47, 55, 58, 60}
    vain, surprises = run(rhythm, range(1, 61), answers.__contains__)
    assert vain == [number for number in range(1, 61) if number not in answers]
    assert surprises == []


@pytest.mark.parametrize(
    ("gap", "text"), [(2, "2nd"), (3, "3rd"), (11, "11th"), (12, "12th"), (21, "21st")]
)
def test_ordinals(gap, text):
    rhythm = AnswerRhythm()
    rhythm.pattern = (gap,)
    assert str(rhythm) == f"every {text} tick"


def test_a_clock_that_never_goes_back():
    clock = AutopilotClock()
    stamps_ms = [100, 104, 108, 0, 4, 8, 2, 6]
    times = [clock.advance(ms * 1_000_000) for ms in stamps_ms]
    assert times == [100_000, 104_000, 108_000, 112_000, 116_000, 120_000, 124_000, 128_000]
    assert clock.of_sample(0.005) == 127_000  # 1 ms before the last state

    # another autopilot gets the time of the simulation
    clock.restart()
    assert clock.advance(8_000_000) == 8_000
    assert clock.advance(0) == 12_000
