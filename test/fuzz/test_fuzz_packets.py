# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The short run of `fuzz_packets`; `make attack AREAS=wire` has a long one."""

from __future__ import annotations

from fuzz.fuzz_packets import run

from rfly_ue_bridge.codec.to_rflysim3d import TO_RFLYSIM3D

OUTCOMES = {"length", "checksum", "text", *(packet_type.name for packet_type in TO_RFLYSIM3D)}


def assert_every_outcome_occurs(outcome):
    """Otherwise the fuzzer has stopped reaching a part of the decoder."""
    assert set(outcome) == OUTCOMES


def test_short_run():
    assert_every_outcome_occurs(run(20_000, seed=20_260_101))
