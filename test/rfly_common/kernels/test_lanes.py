"""Kernels in lanes: the same numbers, bit by bit, as the same kernel for one vehicle after the
other.
"""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rfly_common.kernels.jit import inlined_kernel, kernel
from rfly_common.kernels.lanes import LANES, any_lane, flat, lane_record, lane_rows, lanes_of, where

RECORD = np.dtype(
    [("total", float, (LANES,)), ("rows", float, (4, LANES)), ("table", float, (4, 3, LANES))]
)


@inlined_kernel
def _work(x, y, p):
    """Every operation that lanes have, with plain numbers among them."""
    pair = (0.0, 0.0)
    for k in range(3):
        pair = (pair[0] + x * k, pair[1] - y * 0.5)
    z = where((pair[0] > 1.0) & (x < 3.0) | (y == 0.0), math.sqrt(abs(pair[1])), -2.0 * x)
    positive = z > 0.0
    if any_lane(positive):
        z = where(positive, max(z, 0.5) + p, z)
    if any_lane(x != x):
        z = where(x != x, -1.0, z)
    z += math.tan(x) + math.cos(y) * math.tanh(x) + math.hypot(x, y)
    z /= 1.0 + y * y
    return min(z, 7.0) + where(x >= y, 1, 0) + abs(x) ** 0.5


@kernel
def _one_by_one(numbers, out):
    for lane in range(LANES):
        for n in range(4):
            out[n, lane] = _work(numbers[n, lane], numbers[0, lane], 2.0)


@kernel
def _abreast(numbers, out):
    x = lane_rows(numbers)
    rows = lane_rows(out)
    for n in range(4):
        rows[n] = _work(x[n], x[0], 2.0)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-50.0, 50.0), min_size=4 * LANES, max_size=4 * LANES))
def test_arithmetic(numbers):
    x = np.reshape(numbers, (4, LANES))
    alone = np.empty((4, LANES))
    abreast = np.empty((4, LANES))
    _one_by_one(x, alone)
    _abreast(x, abreast)
    assert abreast.tobytes() == alone.tobytes()


@kernel
def _fill(numbers, records):
    record = lane_record(records[0])
    x = lane_rows(numbers)
    record.total = 1.0
    for n in range(4):
        record.rows[n] = x[n]
        record.table[n, 2] = 2.0 * x[n]
        record.total += x[n]
    all_numbers = flat(record.rows)
    for k in range(4 * lanes_of(record)):
        all_numbers[k] += 10.0


def test_records_and_their_numbers_one_after_the_other():
    x = np.arange(4.0 * LANES).reshape(4, LANES)
    records = np.zeros(1, RECORD)
    _fill(x, records)
    assert (records["total"][0] == 1.0 + x.sum(axis=0)).all()
    assert (records["rows"][0] == x + 10.0).all()
    assert (records["table"][0] == 2.0 * x[:, None] * (np.arange(3) == 2)[:, None]).all()


def test_plain_numbers_are_what_they_are_in_python():
    assert where(1.0 > 0.0, 2.0, 3.0) == 2.0
    assert not any_lane(1.0 < 0.0)
    numbers = np.arange(3.0)
    assert flat(numbers) is numbers
    assert lanes_of(None) == 1
