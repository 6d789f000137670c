# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compiled search for the shortest wait after which vehicles keep clear of others."""

from __future__ import annotations

from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.kernels.jit import kernel


@kernel
def keeps_clear(
    moving: Floats,
    fixed: Floats,
    apart: float,
    begin: int,
    wait: int,
) -> bool:
    """Return whether two tracks (m, 3), m, are `apart`, m, at each instant from `begin` on.

    The first one waits at its first point for so many instants more.
    """
    for t in range(begin, len(fixed)):
        own = max(t - wait, 0)
        x = moving[own, 0] - fixed[t, 0]
        y = moving[own, 1] - fixed[t, 1]
        z = moving[own, 2] - fixed[t, 2]
        if x * x + y * y + z * z < apart * apart:
            return False
    return True


@kernel
def first_clear_wait(
    moving: Floats,
    fixed: Floats,
    apart: Floats,
    together: Bools,
    times: tuple[Ints, Ints, Ints, Ints],
    waits: Ints,
) -> int:
    """Return the index of the first wait with which k vehicles keep clear of n others, or -1.

    `moving` (k, m, 3) and `fixed` (n, m, 3) are tracks, m, `apart` (k, n) the distances, m. Those
    that start `together` (k, n) count from the instant at which both have departed or one has been
    away; `times` has the instants of departure and of being away: (k,), (k,), (n,), (n,).
    """
    departs, away, others_depart, others_away = times
    for number in range(len(waits)):
        wait = waits[number]
        clear = True

        # every pair keeps clear
        for i in range(len(moving)):
            for j in range(len(fixed)):
                begin = 0
                if together[i, j]:
                    both_departed = max(departs[i] + wait, others_depart[j])
                    begin = min(both_departed, away[i] + wait, others_away[j])
                if not keeps_clear(moving[i], fixed[j], apart[i, j], begin, wait):
                    clear = False
                    break
            if not clear:
                break
        if clear:
            return number
    return -1
