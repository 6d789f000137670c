"""The short run of `fuzz_link`; the full one has a marker of its own."""

from __future__ import annotations

import pytest
from fuzz.fuzz_link import OUTCOMES, run


def test_short_run():
    """Every type and every reason occurs, or the fuzzer has stopped reaching a part of the decoder."""
    assert set(run(3_000, seed=20_261_121)) == OUTCOMES


@pytest.mark.fuzz_full
def test_a_million_frames():
    assert set(run(1_000_000, seed=9)) == OUTCOMES
