# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mutated packets: a wrong outcome is reported with its seed; decoders withstand thousands."""

from __future__ import annotations

import random

import pytest

from attacks import wire


@pytest.mark.parametrize("name", wire.ATTACKS)
def test_the_decoders_withstand_mutated_packets(name):
    result = wire.ATTACKS[name](random.Random(4), wire.SHORT_TRIES)
    assert (result.name, result.tried, result.failures) == (name, wire.SHORT_TRIES, ())


def test_a_wrong_outcome_is_reported_with_its_seed(monkeypatch):
    from fuzz import fuzz_link

    def run(count, seed):
        raise AssertionError(f"{count} frames")

    monkeypatch.setattr(fuzz_link, "run", run)
    result = wire.ATTACKS["frames of controllers, decoded"](random.Random(4), 7)
    assert result.failed == 1
    assert result.failures == (
        f"seed {random.Random(4).getrandbits(32)}: AssertionError: 7 frames",
    )
