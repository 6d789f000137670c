"""The short run of `fuzz_packets`; the full one has a marker of its own."""

from __future__ import annotations

import pytest
from fuzz.fuzz_packets import run

from rfly_ue_bridge.codec.to_rflysim3d import TO_RFLYSIM3D

OUTCOMES = {"length", "checksum", "text", *(packet_type.name for packet_type in TO_RFLYSIM3D)}


def assert_every_outcome_occurs(outcome):
    """Otherwise the fuzzer has stopped reaching a part of the decoder."""
    assert set(outcome) == OUTCOMES


def test_short_run():
    assert_every_outcome_occurs(run(20_000, seed=20_260_101))


@pytest.mark.fuzz_full
def test_a_million_datagrams():
    outcome = run(1_000_000, seed=7)
    assert outcome.total() == 1_000_000
    assert_every_outcome_occurs(outcome)
