# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The short run of `fuzz_feedback`; `make attack AREAS=wire` has a long one."""

from __future__ import annotations

from fuzz.fuzz_feedback import OUTCOMES, run


def test_short_run():
    """Every packet and every reason occurs: the fuzzer reaches all parts of the receiver."""
    assert set(run(20_000, seed=20_260_102)) == OUTCOMES
