# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Kernels as plain Python: the oracle of those that have none in NumPy.

A process of its own, started with `ENVIRONMENT`, imports this module before any kernel. numba then
returns the functions as they are, and what only compiled code can do is replaced here. The
equations of motion need compiled records: their oracle is `test_second_formulation`.
"""

from __future__ import annotations

from typing import Any

import numba

from rfly_autonomy.estimation import row_operations

ENVIRONMENT = {"NUMBA_DISABLE_JIT": "1"}


def add_scaled(out: Any, factor: float, row: Any) -> None:
    """Add factor · row to out."""
    out += factor * row


def add_outer(out: Any, column: Any, row: Any) -> None:
    """Add column rowᵀ to out."""
    out += column[:, None] * row


def scale(out: Any, factor: float) -> None:
    """Multiply out by a factor."""
    out *= factor


def symmetrise(out: Any) -> None:
    """Make out the mean of itself and its transpose."""
    out[:] = 0.5 * (out + out.T)


def transpose(out: Any) -> None:
    """Make out its transpose."""
    out[:] = out.T.copy()


if numba.config.DISABLE_JIT:
    for _function in (add_scaled, add_outer, scale, symmetrise, transpose):
        setattr(row_operations, _function.__name__, _function)
