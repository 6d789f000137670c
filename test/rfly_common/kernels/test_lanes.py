# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Kernels in lanes: the same numbers, bit by bit, as the same kernel for one vehicle after the
other.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rfly_common.kernels.jit import inlined_kernel, kernel
from rfly_common.kernels.lanes import (
    LANES,
    aligned_lane_record,
    aligned_record,
    any_lane,
    borrowed,
    first_vector,
    flat,
    lane_record,
    lanes_of,
    lookup,
    numbers,
    other_side,
    parts_of,
    plain,
    rough_quotient,
    rough_root,
    rows_of,
    vectors,
    where,
)


class Group(NamedTuple):
    """A table beside a number."""

    table: NDArray[np.float64]
    factor: float


ROWS = np.dtype([("rows", float, (4, LANES))])
RECORD = np.dtype(
    [
        ("total", float, (LANES,)),
        ("inner", ROWS),
        ("table", float, (4, 3, LANES)),
    ]
)
TABLE = np.linspace(-3.0, 9.0, 13)


@inlined_kernel
def _work(x, y, p, table):
    """Every operation that lanes have, with plain numbers among them."""
    pair = (0.0, 0.0)
    for k in range(3):
        pair = (pair[0] + x * k, pair[1] - y * 0.5)
    z = where(
        (pair[0] > 1.0) & (x < 3.0) | (y == 0.0),
        math.sqrt(abs(pair[1])),
        -2.0 * x,
    )
    positive = z > 0.0
    if any_lane(positive):
        z = where(positive, max(z, 0.5) + p, z)
    if any_lane(x != x):
        z = where(x != x, -1.0, z)
    z += lookup(table, np.floor(min(abs(y), 12.0)), 0)
    z += lookup(table, np.floor(min(abs(x), 11.0)), 1)
    z += rough_quotient(x, 1.0 + abs(y)) + rough_root(abs(z))
    z += math.tan(x) + math.cos(y) * math.tanh(x) + math.hypot(x, y)
    z /= 1.0 + y * y

    return min(z, 7.0) + where(x >= y, 1, 0) + abs(x) ** 0.5


@kernel
def _one_by_one(x, table, out):
    for lane in range(LANES):
        for n in range(4):
            out[n, lane] = _work(x[n, lane], x[0, lane], 2.0, table)


@kernel
def _abreast(given, table, out):
    x = lane_record(given[0]).rows
    rows = lane_record(out[0]).rows
    for n in range(4):
        rows[n] = _work(x[n], x[0], 2.0, table)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-50.0, 50.0), min_size=4 * LANES, max_size=4 * LANES))
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_arithmetic(kind, values):
    x = np.reshape(values, (4, LANES))
    alone = np.empty((4, LANES))
    given_rows = np.zeros(1, ROWS)
    given_rows["rows"] = x
    abreast = np.empty(1, ROWS)
    _one_by_one(x, TABLE.astype(kind), alone)
    _abreast(given_rows, TABLE.astype(kind), abreast)
    assert abreast.tobytes() == alone.tobytes()


@kernel
def _fill(given, records):
    record = lane_record(records[0])
    x = lane_record(given[0]).rows
    rows = record.inner.rows
    record.total = 1.0

    for n in range(4):
        rows[n] = x[n]
        record.table[n, 2] = 2.0 * x[n]
        record.total += x[n]

    all_numbers = flat(record.inner)
    for k in range(4 * lanes_of(record)):
        all_numbers[k] += 10.0
    lanes = numbers(record.inner)
    for n in range(4):
        lanes[n] = where(
            x[n] > 5.0,
            lanes[n] + 100.0,
            lanes[n],
        )


def test_records_and_their_numbers_one_after_the_other():
    x = np.arange(4.0 * LANES).reshape(4, LANES)
    given_rows = np.zeros(1, ROWS)
    given_rows["rows"] = x
    records = np.zeros(1, RECORD)
    _fill(given_rows, records)
    assert (records["total"][0] == 1.0 + x.sum(axis=0)).all()
    assert (records["inner"]["rows"][0] == x + 10.0 + 100.0 * (x > 5.0)).all()
    assert (records["table"][0] == 2.0 * x[:, None] * (np.arange(3) == 2)[:, None]).all()


@kernel
def _fill_the_total(records):
    aligned_lane_record(records[0]).total = 1.0


def test_an_aligned_record_begins_at_a_line_of_the_cache():
    numbers_of_one = RECORD.itemsize // 8
    memory = np.zeros(2 * numbers_of_one + LANES)
    for first in range(LANES):
        memory[:] = 0.0
        records = memory[first : first + numbers_of_one].view(RECORD)
        _fill_the_total(records)
        written = np.flatnonzero(memory)
        assert (np.diff(written) == 1).all()
        assert len(written) == LANES
        assert first <= written[0] < first + LANES
        assert (memory.ctypes.data + 8 * written[0]) % (8 * LANES) == 0


def test_plain_numbers_are_what_they_are_in_python():
    assert where(1.0 > 0.0, 2.0, 3.0) == 2.0
    assert not any_lane(1.0 < 0.0)
    assert lookup(np.arange(3.0), 1.0, 1) == 2.0
    assert rows_of(np.zeros((3, 2))) == 3
    assert rough_quotient(1.0, 3.0) == pytest.approx(1.0 / 3.0, rel=1e-7)
    assert rough_root(2.0) == pytest.approx(math.sqrt(2.0), rel=1e-7)


PARTS = np.dtype(
    [
        ("one", float),
        ("wheels", float, (LANES,)),
        ("places", float, (3, LANES)),
        ("axes", float, (3,)),
        ("points", float, (2 * LANES,)),
        ("room", float, (LANES,)),
    ]
)


@kernel
def _use_parts(records, group):
    record = aligned_record(records[0])
    parts = parts_of(record, record)
    tables = borrowed(group)
    parts.one = tables.factor
    parts.axes[1] = 5.0
    for i in range(vectors(parts, 4)):
        parts.wheels[i] = parts.one * other_side(parts, parts.wheels, i)
        parts.places[2, i] = parts.wheels[i] + parts.axes[1]

    # the second group of points, from a table
    first = first_vector(parts, LANES)
    for k in range(first, first + vectors(parts, LANES)):
        parts.points[k] = lookup(tables.table, parts.wheels[0], rows_of(tables.table) - 20)
    return plain(parts).wheels[1] + vectors(record, 4)


def test_all_parts_of_one_vehicle_are_computed_at_once():
    memory = np.zeros(PARTS.itemsize // 8 + LANES)
    records = memory[: PARTS.itemsize // 8].view(PARTS)
    begin = -(memory.ctypes.data // 8) % LANES
    record = memory[begin : begin + PARTS.itemsize // 8].view(PARTS)[0]
    record["wheels"][:] = np.arange(LANES)
    group = Group(np.arange(40.0), 2.0)
    swapped = 2.0 * np.array((1, 0, 3, 2, 5, 4, 7, 6))
    assert _use_parts(records, group) == swapped[1] + 4
    assert record["one"] == 2.0
    assert record["wheels"].tolist() == swapped.tolist()
    assert record["places"].tolist() == [[0.0] * LANES] * 2 + [(swapped + 5.0).tolist()]
    assert record["axes"].tolist() == [0.0, 5.0, 0.0]
    assert record["points"].tolist() == [0.0] * LANES + (swapped + 20.0).tolist()
