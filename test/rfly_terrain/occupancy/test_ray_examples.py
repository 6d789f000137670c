# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Worked examples of rays over a binary occupancy map: touched cells, first hits, scans."""

from __future__ import annotations

from math import inf, nan, pi

import numpy as np
import pytest
from occupancy_examples import (
    Example,
    Map,
    check,
    collected_in,
    in_any_order,
    touched,
)

EXAMPLES: dict[str, Example] = {}
"""Worked examples by name."""

example = collected_in(EXAMPLES)


# cells along a ray


@example
def o42():
    m = Map(10, 10, 1)
    actual = touched(m, [2, 3], [8.5, 8])
    expected = in_any_order(
        (
            [[1, 8], [2, 8]],
            [
                [6, 1],
                [6, 2],
                [7, 1],
                [7, 2],
                [6, 3],
                [5, 3],
                [5, 4],
                [4, 4],
                [4, 5],
                [3, 5],
                [3, 6],
                [3, 7],
                [2, 7],
            ],
        )
    )
    return actual, expected


@example
def o43():
    m = Map(10, 10, 1)
    actual = touched(m, [0.5, 0.5], [3.5, 0.5])
    expected = in_any_order(([[9, 3]], [[9, 0], [9, 1], [9, 2]]))
    return actual, expected


@example
def o44():
    m = Map(10, 10, 1)
    actual = touched(m, [0.5, 0.5], [2.5, 2.5])
    expected = in_any_order(([[7, 2]], [[9, 0], [9, 1], [8, 0], [8, 1], [8, 2], [7, 1]]))
    return actual, expected


@example
def o45():
    m = Map(10, 10, 1)
    actual = touched(m, [0.5, 2], [2.5, 2])
    expected = in_any_order(([[7, 2], [8, 2]], [[7, 0], [8, 0], [7, 1], [8, 1]]))
    return actual, expected


@example
def o46():
    m = Map(10, 10, 1)
    actual = touched(m, [4.5, 4.5], [4.5, 4.5])
    expected = in_any_order(([[5, 4]], []))
    return actual, expected


@example
def o47():
    m = Map(10, 10, 1)
    actual = touched(m, [1.5, 1.5, 0], 2, pi / 2)
    expected = in_any_order(([[6, 1]], [[8, 1], [7, 1]]))
    return actual, expected


@example
def o48():
    m = Map(10, 10, 1)
    actual = touched(m, [8.5, 0.5], [12.5, 0.5])
    expected = in_any_order(([], [[9, 8], [9, 9]]))
    return actual, expected


@example
def o49():
    m = Map(10, 10, 1)
    actual = touched(m, [0.25, 0.1], [2.75, 0.9])
    expected = in_any_order(([[9, 2]], [[9, 0], [9, 1]]))
    return actual, expected


@example
def o50():
    m = Map(10, 10, 1)
    actual = touched(m, [0.9, 0.2], [1.2, 1.9])
    expected = in_any_order(([[8, 1]], [[9, 0], [9, 1]]))
    return actual, expected


# the first occupied cell along a ray


@example
def o51():
    m = Map(10, 10, 2)
    m.set_occupancy([[4, 10], [3, 5], [7, 7]], [1, 1, 1])
    m.inflate(0.25)
    actual = m.ray_intersection([4, 4, pi / 2], [pi / 4, -pi / 4, 0, -pi / 8], 6)
    expected = [[3.5, 4.5], [6, 6], [4, 9], [nan, nan]]
    return actual, expected


@example
def o52():
    m = Map(10, 10, 1)
    m.set_occupancy([[4.5, 0.5]], [1])
    actual = m.ray_intersection([0.5, 0.5, 0], [0, pi / 2], 8)
    expected = [[4, 0.5], [nan, nan]]
    return actual, expected


@example
def o53():
    m = Map(10, 10, 1)
    m.set_occupancy([[4.5, 0.5]], [1])
    actual = m.ray_intersection([0.5, 0.5, 0], [0], 3.5)
    expected = [[nan, nan]]
    return actual, expected


@example
def o54():
    m = Map(10, 10, 1)
    m.set_occupancy([[4.5, 0.5]], [1])
    actual = m.ray_intersection([0.5, 0.5, 0], [0], 3.6)
    expected = [[4, 0.5]]
    return actual, expected


@example
def o55():
    m = Map(10, 10, 1)
    m.set_occupancy([[4.5, 4.5]], [1])
    actual = m.ray_intersection([4.25, 4.5, 0], [0, pi], 5)
    expected = [[4.25, 4.5], [4.25, 4.5]]
    return actual, expected


@example
def o56():
    m = Map(10, 10, 1)
    m.set_occupancy([[4.5, 4.5]], [1])
    actual = m.ray_intersection([2, 4, 0], [0], 5)
    expected = [[4, 4]]
    return actual, expected


@example
def o57():
    m = Map(10, 10, 1)
    m.set_occupancy([[2.5, 1.5], [1.5, 2.5]], [1, 1])
    actual = m.ray_intersection([0.5, 0.5, 0], [pi / 4], 5)
    expected = [[2, 2]]
    return actual, expected


@example
def o58():
    m = Map(10, 10, 1)
    m.set_occupancy([[4.5, 4.5]], [1])
    actual = m.ray_intersection([-2, 4.5, 0], [0], 10)
    expected = [[4, 4.5]]
    return actual, expected


# inserting scans


@example
def o59():
    m = Map(10, 10, 20)
    m.insert_ray([5, 5, 0], 3 * np.ones(100), np.linspace(-pi / 2, pi / 2, 100), 20)
    actual = (m.get_occupancy([[8, 5]]), m.get_occupancy([[6, 5]]))
    expected = ([1], [0])
    return actual, expected


@example
def o60():
    m = Map(5, 1, 1, default_value=True)
    m.insert_ray([0.5, 0.5, 0], [3], [0], 10)
    actual = m.occupancy_matrix()
    expected = [[0, 0, 0, 1, 1]]
    return actual, expected


@example
def o61():
    m = Map(5, 1, 1, default_value=True)
    m.insert_ray([0.5, 0.5, 0], [3], [0], 3)
    actual = m.occupancy_matrix()
    expected = [[0, 0, 0, 0, 1]]
    return actual, expected


@example
def o62():
    m = Map(5, 1, 1, default_value=True)
    m.insert_ray([0.5, 0.5, 0], [inf, nan], [0, 0], 2)
    actual = m.occupancy_matrix()
    expected = [[0, 0, 0, 1, 1]]
    return actual, expected


@example
def o63():
    m = Map(5, 2, 1, default_value=True)
    m.insert_ray([0.5, 0.5], [[2.5, 0.5], [4.5, 0.5]])
    actual = m.occupancy_matrix()
    expected = [[1, 1, 1, 1, 1], [0, 0, 1, 0, 1]]
    return actual, expected


@example
def o64():
    m = Map(3, 3, 1)
    m.insert_ray([0.5, 0.5], [[2, 2]])
    actual = m.occupancy_matrix()
    expected = [[0, 1, 1], [0, 1, 1], [0, 0, 0]]
    return actual, expected


@example
def o65():
    m = Map(3, 1, 1, default_value=True)
    m.insert_ray([0.5, 0.5], [[9.5, 0.5]])
    actual = m.occupancy_matrix()
    expected = [[0, 0, 0]]
    return actual, expected


@pytest.mark.parametrize("function", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_example(function):
    check(*function())


def test_all_examples_are_here():
    assert list(EXAMPLES) == [f"O{n}" for n in range(42, 66)]
