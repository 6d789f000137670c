# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The short run of `fuzz_link`; `make attack AREAS=wire` has a long one."""

from __future__ import annotations

from fuzz.fuzz_link import OUTCOMES, run


def test_short_run():
    """Every type and every reason occurs: the fuzzer reaches all parts of the decoder."""
    assert set(run(3_000, seed=20_261_121)) == OUTCOMES
