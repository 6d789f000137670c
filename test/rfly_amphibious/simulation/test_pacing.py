# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Number of ticks that are due by the wall clock."""

from __future__ import annotations

import pytest

from rfly_amphibious.simulation.pacing import Pacer


def test_as_many_ticks_as_time_has_passed_times_the_factor() -> None:
    pacer = Pacer(2.0, 0.004)
    pacer.start(10.0)
    assert pacer.due(10.0019) == 0
    assert pacer.due(10.0021) == 1
    pacer.ran(1)
    assert pacer.due(10.0021) == 0
    assert pacer.due(10.0081) == 3
    pacer.ran(3)
    assert pacer.overruns == 2  # two of the three came a period or more too late
    assert pacer.lost == 0.0


def test_what_is_too_far_behind_is_given_up_and_counted() -> None:
    pacer = Pacer(1.0, 0.004)
    pacer.start(0.0)
    assert pacer.due(0.5) == 1
    pacer.ran(1)
    assert pacer.lost == pytest.approx(0.496)
    assert pacer.overruns == 124
    assert pacer.due(0.5039) == 0
    assert pacer.due(0.5041) == 1


def test_as_fast_as_possible_is_always_due_and_never_late() -> None:
    pacer = Pacer(0.0, 0.004)
    pacer.start(0.0)
    assert pacer.due(0.0, 50) == 50
    pacer.ran(50)
    assert pacer.due(9.0, 7) == 7
    assert (pacer.overruns, pacer.lost) == (0, 0.0)


def test_in_a_hurry_it_runs_faster_by_that_share() -> None:
    """A tenth more ticks run in the first 2 s, then no more; nothing is given up."""
    pacer = Pacer(1.0, 0.004)
    pacer.start(0.0)
    for hurry, expected in ((0.1, 550), (0.0, 500)):
        pacer.hurry = hurry
        done = 0
        begin = 0.0 if hurry else 2.0
        for step in range(1, 501):
            ticks = pacer.due(begin + 0.004 * step)
            pacer.ran(ticks)
            done += ticks
        assert done == pytest.approx(expected, abs=1)
    assert pacer.lost == 0.0
