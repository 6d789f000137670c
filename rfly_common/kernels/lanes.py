"""Kernels for one vehicle that also run for eight at once, each number of theirs a vector of the
processor's (SIMD).

What such a kernel asks of its numbers goes by `where` and `any_lane` in place of `if`; with plain
numbers both are what `if` is. `lane_types` tells numba what they are with `Lanes`, vectors of LANES
numbers, one of each vehicle.
"""

from __future__ import annotations

from typing import Any

LANES = 8
"""vehicles side by side: of 64 bits each they fill a register of AVX-512"""


def where(condition: Any, yes: Any, no: Any) -> Any:
    """`yes` where the condition holds, else `no`: for each vehicle. Both are computed."""
    return yes if condition else no


def any_lane(condition: Any) -> bool:
    """Whether the condition holds for any vehicle."""
    return bool(condition)


def flat(rows: Any) -> Any:
    """The numbers of an array's rows, or of a record, one after the other: of each all vehicles'
    side by side.
    """
    return rows


def lane_rows(array: Any) -> Any:
    """The rows of a contiguous array (n, LANES), each of them `Lanes`. For compiled kernels alone."""
    return array


def lane_record(record: Any) -> Any:
    """A record whose fields have a last axis of LANES, with fields of `Lanes`. For compiled kernels
    alone.
    """
    return record


def lanes_of(_scratch: Any) -> int:
    """How many vehicles a scratch record is for: 1 or LANES."""
    return 1
