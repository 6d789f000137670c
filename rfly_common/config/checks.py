# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Checks of arguments: each error names the value and what would be right, in the same words."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError

VEHICLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*(/[A-Za-z][A-Za-z0-9_]*)*")
"""Names of vehicles, below which their topics can lie."""
MakeError = Callable[[str], Exception]
"""Maker of an error from its message; by default a ConfigError whose key is the value's name."""

BLAS_IN_ONE_THREAD = 10_000
"""Numbers up to which OpenBLAS computes a dot product in the caller's thread.

For more it waits for a second one, which on a busy machine takes milliseconds.
"""


def _wrong(name: str, text: str, make: MakeError | None) -> Exception:
    """Return the error of a value by its name."""
    return ConfigError(text, key=name) if make is None else make(f"{name}: {text}")


def check_unmasked(name: str, values: Any, error: type[Exception] = ValueError) -> None:
    """Raise an error for a masked array with masked elements, such as a raster's without data.

    NumPy would take the numbers below the mask.
    """
    if np.ma.is_masked(values):
        count = np.ma.count_masked(values)
        raise error(f"{name}: {count:,} masked, expected numbers; give them values with filled()")


def finite_number(
    name: str,
    value: Any,
    unit: str = "",
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    error: MakeError | None = None,
) -> float:
    """Return the value as a float. Raises `error` if it is not a finite one within the bounds."""
    try:
        result = float(value)
    except (TypeError, ValueError):
        result = math.nan
        value = repr(value)
    except OverflowError:  # a whole number beyond all floats
        value = result = math.inf
    low = max(-math.inf if bound is None else bound for bound in (above, at_least))
    high = math.inf if at_most is None else at_most
    if math.isfinite(result) and low <= result <= high and result != above:
        return result

    with_unit = f" {unit}" if unit else ""
    expected = f"expected a finite number{_limits(above, at_least, at_most)}"
    raise _wrong(name, f"{value}{with_unit}, {expected}", error)


def _limits(above: float | None, at_least: float | None, at_most: float | None) -> str:
    """Return the words for the limits of a number; "" without any."""
    limits = (("above", above), ("of at least", at_least), ("of at most", at_most))
    words = " and ".join(f"{word} {limit:.10g}" for word, limit in limits if limit is not None)
    return f" {words}" if words else ""


def whole_number(
    name: str,
    value: Any,
    *,
    at_least: int | None = None,
    at_most: int | None = None,
    error: MakeError | None = None,
) -> int:
    """Return the value as an int. Raises `error` if it is no whole number within the bounds."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        is_enough = at_least is None or value >= at_least
        if is_enough and (at_most is None or value <= at_most):
            return int(value)
    expected = f"expected a whole number{_limits(None, at_least, at_most)}"
    raise _wrong(name, f"{value!r}, {expected}", error)


def finite_array(
    name: str, values: Any, shape: tuple[int, ...] | None = None, *, error: MakeError | None = None
) -> Floats:
    """Return the values as float64, of this shape if one is given.

    Raises `error` for another shape, and for NaN and infinity.
    """
    array: Floats = np.asarray(values, float)
    if shape is not None and array.shape != shape:
        if array.ndim == len(shape) == 1:
            raise _wrong(name, f"{array.size} numbers, expected {shape[0]}", error)
        raise _wrong(name, f"shape {array.shape}, expected {shape}", error)

    if not all_finite(array):
        index = tuple(np.argwhere(~np.isfinite(array))[0].tolist())
        element = f"{name}{list(index)}" if index else name
        raise _wrong(element, f"{array[index]}, expected a finite number", error)
    return array


def all_finite(array: Floats) -> bool:
    """Return whether all numbers of an array are finite."""
    # the dot product takes half of the time of np.isfinite
    is_finite = array.size <= BLAS_IN_ONE_THREAD and math.isfinite(np.vdot(array, array))
    return is_finite or bool(np.isfinite(array).all())


def unit_quaternion(
    name: str, values: Any, *, tolerance: float = 1e-3, error: MakeError | None = None
) -> Floats:
    """Return the quaternion (4,) scaled to length 1.

    Raises `error` if its length differs from 1 by more than `tolerance`.
    """
    array = finite_array(name, values, (4,), error=error)
    norm = math.sqrt(array @ array)
    if abs(norm - 1.0) > tolerance:
        text = f"{name} has the length {norm:g}, expected 1"
        raise ConfigError(text) if error is None else error(text)
    return array / norm


def check_choice(
    name: str, value: Any, choices: Collection[str], *, error: MakeError | None = None
) -> None:
    """Raise `error` for a value that is not one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise _wrong(name, f"{value!r}, expected one of {', '.join(choices)}", error)


def check_vehicle_names(key: str, names: Iterable[str]) -> None:
    """Raise ConfigError for a name below which no topics can lie, and for one that comes twice."""
    seen: set[str] = set()
    for name in names:
        if not VEHICLE_NAME.fullmatch(name):
            raise ConfigError(
                f"{name!r} is no name of a vehicle: letters, digits, _ and /, a letter first",
                key=key,
            )
        if name in seen:
            raise ConfigError(f"{name!r} is named twice", key=key)
        seen.add(name)
