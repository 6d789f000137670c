# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Budgets of time, such as half a core, as this machine should keep them.

A budget in seconds says as much about the machine as about the program: on two of one kind they
differed by 2.4. So each is multiplied by what a fixed loop in C++ takes in the same run, in units
of what it took where the budgets were set.
"""

from __future__ import annotations

import ctypes
import functools
import shutil
import statistics
import sys
import time

from benchmarks.cpp import compiled

STEPS = 30_000_000
LOOP_S = 0.45
"""Processor time of the loop on the machine where the budgets were set, s."""
TIMED = 5
SCALED = "scaled by a fixed loop in C++"


def scaled(budget: float) -> float:
    """Return a budget, in seconds or cores, for a machine of this one's speed."""
    return budget * _slowness()


@functools.cache
def _slowness() -> float:
    """Return the loop's time in units of LOOP_S; 1 without g++."""
    if shutil.which("g++") is None:
        print("budgets of time are not scaled (no g++)", file=sys.stderr)
        return 1.0
    loop = compiled("fixed_loop").fixed_loop
    loop.argtypes = [ctypes.c_int64]
    loop.restype = ctypes.c_double

    seconds = []
    for _ in range(TIMED):
        start = time.process_time()
        loop(STEPS)
        seconds.append(time.process_time() - start)
    found = statistics.median(seconds) / LOOP_S
    print(f"budgets of time are multiplied by {found:.2f}", file=sys.stderr)
    return found
