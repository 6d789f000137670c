# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Lanes: kernels for one vehicle that also run for eight at once.

Each number of such a kernel may be a vector of the processor's (SIMD) instead, with one number for
each vehicle. The kernel reads as scalar code; it only writes `where` and `any_lane` in place of
`if`, and `lookup` for a number from a table. With plain numbers these are what they look like.
`rough_quotient` and `rough_root` take a third of the time of the exact ones.
`lane_types` defines for numba what they do with `Lanes`, vectors of LANES numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

LANES = 8
"""Vehicles side by side: their numbers of 64 bits fill a register of AVX-512."""


def where(condition: Any, yes: Any, no: Any) -> Any:
    """Return `yes` where the condition holds, else `no`, for each vehicle. Both are computed."""
    return yes if condition else no


def any_lane(condition: Any) -> bool:
    """Return whether the condition holds for any vehicle."""
    return bool(condition)


def lookup(table: Any, index: Any, offset: int) -> Any:
    """Return the number of a flat table `offset` after an index: a whole number, but a float."""
    return float(table[int(index) + offset])


def borrowed(group: Any) -> Any:
    """Return a named tuple with its arrays as tables, whose references nobody counts.

    `lookup` and `rows_of` take both. The arrays have to live as long as the tables.
    """
    raise NotImplementedError("for compiled kernels only")


def rows_of(table: Any) -> int:
    """Return the number of rows of a table."""
    return len(table)


def rough_quotient(over: Any, under: Any) -> Any:
    """Return over / under to seven digits, for numbers between 1e-37 and 1e37."""
    return float(np.float32(over) / np.float32(under))


def rough_root(square: Any) -> Any:
    """Return the root to seven digits, for numbers between 1e-37 and 1e37."""
    return float(np.sqrt(np.float32(square)))


def rough_inverse_root(square: Any) -> Any:
    """Return 1 / √square to six digits, for numbers between 1e-37 and 1e37."""
    return float(np.float32(1.0) / np.sqrt(np.float32(square)))


# records: the fields of `Lanes` are those of plain numbers with one more axis of LANES


def lane_record(record: Any) -> Any:
    """Return a record whose fields have a last axis of LANES as one with fields of `Lanes`."""
    raise NotImplementedError("for compiled kernels only")


def aligned_lane_record(record: Any) -> Any:
    """Return what `lane_record` does, but of what begins at the next full line of the cache.

    A vector that lies in two lines takes twice as long. The record ends with LANES numbers of room.
    """
    raise NotImplementedError("for compiled kernels only")


# all parts of one vehicle side by side: fields of a record with LANES numbers become `Lanes`


def parts_of(like: Any, record: Any) -> Any:
    """Return the record of one vehicle as one whose fields of LANES parts are `Lanes`, at [0].

    A kernel then computes all wheels, rotors or points at once. Where `like` is a record of lanes,
    the vehicles lie side by side already, and the record stays as it is.
    """
    raise NotImplementedError("for compiled kernels only")


def plain(record: Any) -> Any:
    """Return the record of which `parts_of` is a view, so that single parts can be read."""
    raise NotImplementedError("for compiled kernels only")


def vectors(like: Any, count: int) -> int:
    """Return how many numbers `count` ≤ LANES parts are: 1 of `parts_of`, else `count`."""
    return count


def first_vector(like: Any, part: int) -> int:
    """Return the place of a part whose number is a multiple of LANES in the fields of a record."""
    return part


def other_side(like: Any, field: Any, i: int) -> Any:
    """Return the parts opposite those of vector i, such as the right wheel for the left one."""
    raise NotImplementedError("for compiled kernels only")


def aligned_record(record: Any) -> Any:
    """Return a record of the same type that begins at the next full line of the cache."""
    raise NotImplementedError("for compiled kernels only")


def numbers(record: Any) -> Any:
    """Return the numbers of a record one after the other, `Lanes` if its fields are `Lanes`."""
    raise NotImplementedError("for compiled kernels only")


def flat(record: Any) -> Any:
    """Return the plain numbers of a record: those of all vehicles side by side, field by field."""
    raise NotImplementedError("for compiled kernels only")


def lanes_of(record: Any) -> int:
    """Return for how many vehicles a record is: 1 or LANES."""
    raise NotImplementedError("for compiled kernels only")
