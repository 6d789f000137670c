# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Worked examples of a binary occupancy map: set-up, call and expected result.

An example is a function without arguments. It returns the actual and the expected result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rfly_terrain import BinaryOccupancyMap as Map

Example = Callable[[], tuple[Any, Any]]

THREE_BY_FOUR = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
"""Occupied cells of many examples."""


def collected_in(examples: dict[str, Example]) -> Callable[[Example], Example]:
    """Return a decorator that adds an example under its name in capitals."""

    def example(function: Example) -> Example:
        examples[function.__name__.upper()] = function
        return function

    return example


def touched(m: Map, *ray: Any) -> tuple[Any, Any]:
    """Return the endpoints and the midpoints of a ray, each sorted."""
    endpoints, midpoints = m.raycast(*ray)
    for cells in (endpoints, midpoints):
        assert cells.shape == (len(cells), 2)
        assert cells.dtype.kind == "i"
    return in_any_order((endpoints.tolist(), midpoints.tolist()))


def in_any_order(cells: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the endpoints and the midpoints, each sorted."""
    endpoints, midpoints = cells
    return sorted(map(tuple, endpoints)), sorted(map(tuple, midpoints))


def check(actual: Any, expected: Any) -> None:
    """Compare tuples element by element, numbers within 1e-9, booleans as 0 and 1."""
    if isinstance(expected, tuple) and isinstance(actual, tuple):
        assert len(actual) == len(expected)
        for actual_part, expected_part in zip(actual, expected, strict=True):
            check(actual_part, expected_part)
        return

    actual = np.asarray(actual, float)
    expected = np.asarray(expected, float)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-9)
