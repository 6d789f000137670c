# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Lanes: kernels for one vehicle that also run for eight at once.

Each number of such a kernel may be a vector of the processor's (SIMD) instead, with one number for
each vehicle. The kernel reads as scalar code; it only writes `where` and `any_lane` in place of
`if`, and `lookup` for a number from a table. With plain numbers these are what they look like.
`lane_types` defines for numba what they do with `Lanes`, vectors of LANES numbers.
"""

from __future__ import annotations

from typing import Any

LANES = 8
"""Vehicles side by side: their numbers of 64 bits fill a register of AVX-512."""


def where(condition: Any, yes: Any, no: Any) -> Any:
    """Return `yes` where the condition holds, else `no`, for each vehicle. Both are computed."""
    return yes if condition else no


def any_lane(condition: Any) -> bool:
    """Return whether the condition holds for any vehicle."""
    return bool(condition)


def lookup(table: Any, index: Any) -> Any:
    """Return the number of a flat table at an index: a whole number, but a float."""
    return float(table[int(index)])


# records: the fields of `Lanes` are those of plain numbers with one more axis of LANES


def lane_record(record: Any) -> Any:
    """Return a record whose fields have a last axis of LANES as one with fields of `Lanes`."""
    raise NotImplementedError("for compiled kernels only")


def aligned_lane_record(record: Any) -> Any:
    """Return what `lane_record` does, but of what begins at the next full line of the cache.

    A vector that lies in two lines takes twice as long. The record ends with LANES numbers of room.
    """
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
