# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Checks of arguments that go into datagrams and console commands.

They work without NumPy, so that a script can do without it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

MakeError = Callable[[str], Exception]

INT32 = (-(2**31), 2**31 - 1)
FLOAT_MAX = 3.4028234663852886e38
"""Largest number that the packets' floats and Unreal's numbers hold."""


def whole_number(
    name: str, value: Any, low: int = INT32[0], high: int = INT32[1], error: MakeError = ValueError
) -> int:
    """Return the value as an int.

    Raises `error` if it is a bool, or no whole number from low to high.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = None

    if number is None or isinstance(value, bool) or not low <= number <= high:
        raise error(f"{name}: {value!r}, expected a whole number from {low} to {high}")
    return number


def number_within(
    name: str,
    value: Any,
    low: float = -FLOAT_MAX,
    high: float = FLOAT_MAX,
    error: MakeError = ValueError,
) -> float:
    """Return the value as a float.

    Raises `error` if it is a text, a bool, or no number from low to high.
    """
    try:
        number = math.nan if isinstance(value, (str, bytes, bool)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan

    if not low <= number <= high:
        raise error(f"{name}: {value!r}, expected a number from {low:g} to {high:g}")
    return number


def check_flag(name: str, value: Any, error: MakeError = ValueError) -> bool:
    """Return 0, 1, False or True as a bool. Raises `error` for anything else."""
    if value not in (0, 1):
        raise error(f"{name}: {value!r}, expected True or False")
    return bool(value)
