# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Clock jumps: the times stay within a message's range, and nodes withstand them."""

from __future__ import annotations

import random

import pytest
from marks import exhaustively

pytestmark = pytest.mark.ros


def test_a_clock_jumps_both_ways_and_below_zero():
    from attacks import clocks

    rng = random.Random(2)
    now = 5 * clocks.HOUR_NS
    times = {name: [jump(rng, now) for _ in range(20)] for name, jump in clocks.JUMPS.items()}
    assert min(times["hours ahead"]) > now > max(times["back"])
    assert max(times["below zero"]) < 0
    assert set(times["to zero"]) == {0}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["trajectory_node", exhaustively("mission_node")])
@pytest.mark.exhaustive
def test_a_node_withstands_clock_jumps(name):
    from attacks import clocks

    result = clocks.ATTACKS[name](random.Random(3), clocks.SHORT_TRIES)
    assert (result.tried, result.failures) == (clocks.SHORT_TRIES, ())
    assert result.longest_stall_s < clocks.PATIENCE_S
