"""Kernels as plain Python: the oracle of those that have none in NumPy.

A process of its own, started with `ENVIRONMENT`, imports this module before any kernel. numba then
returns the functions as they are, and what only compiled code can do is replaced here.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numba
import numpy as np

from rfly_amphibious.dynamics import scratch
from rfly_amphibious.estimation import row_operations
from rfly_amphibious.vehicle import vehicle_record
from rfly_terrain.height_map.scalar import PointLookup

ENVIRONMENT = {"NUMBA_DISABLE_JIT": "1"}


def new_scratch(count: int) -> list[SimpleNamespace]:
    """Return `count` records by name, as `scratch.new_scratch`."""
    return [
        SimpleNamespace(
            **{name: np.zeros(shape) if shape else 0.0 for name, shape in scratch.FIELDS.items()}
        )
        for _ in range(count)
    ]


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
    scratch.new_scratch = new_scratch
    vehicle_record.kernel_records = lambda record: [record]
    for _function in (add_scaled, add_outer, scale, symmetrise, transpose):
        setattr(row_operations, _function.__name__, _function)
    PointLookup.compile = lambda self: None  # it reads memory by its address
