"""The short run of `fuzz_feedback`; the full one has a marker of its own."""

from __future__ import annotations

import pytest
from fuzz.fuzz_feedback import OUTCOMES, run


def test_short_run():
    """Every packet and every reason occurs, or the fuzzer has stopped reaching a part of the receiver."""
    assert set(run(20_000, seed=20_260_102)) == OUTCOMES


@pytest.mark.fuzz_full
def test_a_million_datagrams():
    outcome = run(1_000_000, seed=8)
    assert outcome.total() == 1_000_000
    assert set(outcome) == OUTCOMES
