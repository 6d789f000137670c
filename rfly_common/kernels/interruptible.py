# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Long kernels that Ctrl-C can stop, and the memory that they need."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np

from rfly_common.errors import PlanError

_MEMORY = Path("/proc/meminfo")
_WAIT_S = 0.2
"""Longest time after which a signal is handled, s."""


def interruptible(kernel: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a kernel that Ctrl-C, or another exception of a signal, can stop.

    Python handles signals between its own instructions only, so the kernel runs in a thread while
    this one waits. Its last argument is an array (1,) bool: once it is True, the kernel returns.
    """
    stopped = np.zeros(1, np.bool_)
    with ThreadPoolExecutor(1) as pool:
        try:  # around the start, too: a kernel that runs already must see the flag
            job = pool.submit(kernel, *arguments, stopped)
            # a signal that comes just before a wait does not end it, but is handled after it
            while not job.done():
                wait((job,), _WAIT_S)
            return job.result()
        finally:
            stopped[0] = True


def check_memory(what: str, cells: int, bytes_per_cell: int) -> None:
    """Raise PlanError ("too_large") if work on so many cells needs more memory than is free.

    Where the system does not say how much is free, nothing is checked.
    """
    needed = cells * bytes_per_cell
    free = _free_memory()
    if free is not None and needed > free:
        raise PlanError(
            "too_large",
            f"{what} over {cells:,} cells needs {needed / 1e9:.1f} GB of memory, and "
            f"{free / 1e9:.1f} GB are free; expected fewer cells: a part of the map, or larger "
            "cells",
        )


def _free_memory() -> int | None:
    """Return the bytes that a process can use without swapping; None if that is not known."""
    try:
        lines = _MEMORY.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    kilobytes = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), None)
    return None if kilobytes is None else int(kilobytes) * 1024
