# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Worked examples of a binary occupancy map, without those of its rays."""

from __future__ import annotations

import subprocess
import sys
from math import nan
from pathlib import Path

import numpy as np
import pytest
from occupancy_examples import (
    THREE_BY_FOUR,
    Example,
    Map,
    check,
    collected_in,
)

from rfly_terrain import cells_to_image, image_to_cells

EXAMPLES: dict[str, Example] = {}
"""Worked examples by name."""

example = collected_in(EXAMPLES)


# construction


@example
def o1():
    m = Map()
    actual = (m.grid_size, m.resolution, m.default_value)
    expected = ((10, 10), 1.0, False)
    return actual, expected


@example
def o2():
    m = Map(10, 5, 2)
    actual = (m.grid_size, m.x_world_limits, m.y_world_limits)
    expected = ((10, 20), [0, 10], [0, 5])
    return actual, expected


@example
def o3():
    m = Map(1.05, 0.3, 10)
    actual = (m.grid_size, m.x_world_limits)
    expected = ((3, 11), [0, 1.1])
    return actual, expected


@example
def o4():
    m = Map.from_grid_size(3, 4, 2)
    actual = (m.grid_size, m.x_world_limits, m.y_world_limits)
    expected = ((3, 4), [0, 2], [0, 1.5])
    return actual, expected


@example
def o5():
    m = Map.from_matrix(THREE_BY_FOUR)
    actual = (m.grid_size, m.occupancy_matrix())
    expected = ((3, 4), THREE_BY_FOUR)
    return actual, expected


@example
def o6():
    m = Map.from_matrix([[0, 0.3], [2, -1]])
    actual = m.occupancy_matrix()
    expected = [[0, 1], [1, 1]]
    return actual, expected


@example
def o7():
    m = Map(2, 2, 1, default_value=True)
    actual = (m.occupancy_matrix(), m.get_occupancy([[9, 9]]))
    expected = ([[1, 1], [1, 1]], [1])
    return actual, expected


@example
def o8():
    m = Map(4, 2, 1, grid_origin_in_local=(-1, -2), local_origin_in_world=(10, 20))
    actual = (
        m.grid_location_in_world,
        m.x_local_limits,
        m.y_local_limits,
        m.x_world_limits,
        m.y_world_limits,
    )
    expected = ([9, 18], [-1, 3], [-2, 0], [9, 13], [18, 20])
    return actual, expected


@example
def o9():
    m = Map(4, 2, 1, grid_origin_in_local=(-1, -2))
    m.grid_location_in_world = (5, 5)
    actual = (m.local_origin_in_world, m.grid_origin_in_local)
    expected = ([6, 7], [-1, -2])
    return actual, expected


@example
def o10():
    s = Map.from_matrix([[1, 0], [0, 0]])
    m = Map.from_map(s, 2)
    actual = (m.occupancy_matrix(), m.x_world_limits)
    expected = ([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], [0, 2])
    return actual, expected


@example
def o11():
    s = Map.from_matrix([[0, 0, 0], [0, 0, 1], [0, 0, 0]], 2)
    m = Map.from_map(s, 1)
    actual = (m.occupancy_matrix(), m.x_world_limits)
    expected = ([[0, 0], [0, 1]], [0, 2])
    return actual, expected


@example
def o12():
    m = Map.from_matrix(THREE_BY_FOUR)
    c = m.copy()
    c.set_occupancy([[0, 0]], [0], frame="grid")
    c.local_origin_in_world = (1, 1)
    actual = (m.occupancy_matrix()[0, 0], c.occupancy_matrix()[0, 0], m.local_origin_in_world)
    expected = (True, False, [0, 0])
    return actual, expected


# world, local and grid coordinates


@example
def o13():
    m = Map(10, 10, 1)
    actual = m.world2grid([[0, 0], [10, 10], [0, 10], [10, 0]])
    expected = [[9, 0], [0, 9], [0, 0], [9, 9]]
    return actual, expected


@example
def o14():
    m = Map(10, 10, 1)
    actual = m.world2grid([[0.5, 0.5], [1, 1], [1.5, 9.5], [2, 0]])
    expected = [[9, 0], [9, 0], [0, 1], [9, 1]]
    return actual, expected


@example
def o15():
    m = Map(10, 10, 20)
    actual = m.world2grid([[8, 5]])
    expected = [[100, 159]]
    return actual, expected


@example
def o16():
    m = Map(10, 10, 10)
    actual = m.world2grid([[1.2, 5], [2.3, 4], [3.4, 3], [4.5, 2], [5.6, 1]])
    expected = [[50, 11], [60, 22], [70, 33], [80, 44], [90, 55]]
    return actual, expected


@example
def o17():
    m = Map(10, 10, 1)
    actual = m.world2grid([[-0.3, 5.5], [10.2, 5.5], [5.5, -1], [5.5, 11.5]])
    expected = [[4, -1], [4, 10], [11, 5], [-2, 5]]
    return actual, expected


@example
def o18():
    m = Map(10, 10, 1)
    actual = m.grid2world([[0, 0], [9, 0], [9, 9], [3, 6]])
    expected = [[0.5, 9.5], [0.5, 0.5], [9.5, 0.5], [6.5, 6.5]]
    return actual, expected


@example
def o19():
    m = Map(10, 10, 1)
    actual = m.grid2world([[-1, 10]])
    expected = [[10.5, 10.5]]
    return actual, expected


@example
def o20():
    m = Map(4, 2, 2, grid_origin_in_local=(-1, -2), local_origin_in_world=(10, 20))
    actual = (m.grid2local([[0, 0]]), m.grid2world([[0, 0]]))
    expected = ([[-0.75, -0.25]], [[9.25, 19.75]])
    return actual, expected


@example
def o21():
    m = Map(4, 2, 2, grid_origin_in_local=(-1, -2), local_origin_in_world=(10, 20))
    actual = (
        m.local2grid([[0, -1]]),
        m.world2grid([[10, 19]]),
        m.local2world([[0, -1]]),
        m.world2local([[10, 19]]),
    )
    expected = ([[2, 1]], [[2, 1]], [[10, 19]], [[0, -1]])
    return actual, expected


# reading


@example
def o22():
    p = np.zeros((20, 20))
    p[10:, 10:] = 1
    m = Map.from_matrix(p, 10)
    actual = (
        m.get_occupancy([[1.5, 1]]),
        m.check_occupancy([[1.5, 1]]),
        m.get_occupancy([[4, 4]], frame="grid"),
    )
    expected = ([1], [1], [0])
    return actual, expected


@example
def o23():
    m = Map(10, 10, 1)
    actual = m.get_occupancy([[5, 5], [-1, 5], [10, 10], [10.1, 5]], return_valid=True)
    expected = ([0, 0, 0, 0], [1, 0, 1, 0])
    return actual, expected


@example
def o24():
    m = Map(10, 10, 1)
    m.default_value = True
    actual = m.get_occupancy([[5, 5], [-1, 5]], return_valid=True)
    expected = ([0, 1], [1, 0])
    return actual, expected


@example
def o25():
    m = Map(10, 10, 1)
    actual = m.check_occupancy([[5, 5], [-1, 5]], return_valid=True)
    expected = ([0, -1], [1, 0])
    return actual, expected


@example
def o26():
    m = Map(10, 10, 1)
    actual = (m.check_occupancy([[10, 0]], frame="grid"), m.get_occupancy([[10, 0]], frame="grid"))
    expected = ([-1], [0])
    return actual, expected


@example
def o27():
    m = Map.from_matrix(THREE_BY_FOUR)
    actual = m.get_occupancy((0, 0), (2, 2))
    expected = [[0, 1], [0, 0]]
    return actual, expected


@example
def o28():
    m = Map.from_matrix(THREE_BY_FOUR)
    actual = m.get_occupancy((1.5, 0.5), (2, 1))
    expected = [[0, 0]]
    return actual, expected


@example
def o29():
    m = Map.from_matrix(THREE_BY_FOUR)
    actual = m.get_occupancy((0, 1), (3, 2), frame="grid")
    expected = [[0, 0], [1, 0], [0, 0]]
    return actual, expected


@example
def o30():
    m = Map.from_matrix(THREE_BY_FOUR)
    actual = m.check_occupancy((2, 1), (3, 3))
    expected = [[-1, -1, -1], [0, 0, -1], [0, 0, -1]]
    return actual, expected


@example
def o31():
    m = Map.from_matrix(THREE_BY_FOUR)
    m.default_value = True
    actual = m.get_occupancy((3, 2), (2, 1))
    expected = [[0, 1]]
    return actual, expected


# writing


@example
def o32():
    m = Map(3, 3, 1)
    ok = m.set_occupancy([[0.5, 0.5], [2.5, 2.5], [5, 5]], [1, 1, 1])
    actual = (ok, m.occupancy_matrix())
    expected = ([1, 1, 0], [[0, 0, 1], [0, 0, 0], [1, 0, 0]])
    return actual, expected


@example
def o33():
    m = Map(3, 3, 1)
    m.set_occupancy([[0.5, 0.5], [0.5, 1.5]], 1)
    m.set_occupancy([[0.5, 0.5], [0.4, 0.4]], [0, 1])
    actual = m.occupancy_matrix()
    expected = [[0, 0, 0], [1, 0, 0], [1, 0, 0]]
    return actual, expected


@example
def o34():
    m = Map(4, 4, 1)
    ok = m.set_occupancy((1, 1), [[1, 0], [1, 1]])
    actual = (ok, m.occupancy_matrix())
    expected = ([[1, 1], [1, 1]], [[0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]])
    return actual, expected


@example
def o35():
    m = Map(3, 3, 1)
    ok = m.set_occupancy((1, 2), [[1, 1, 1], [1, 0, 1]], frame="grid")
    actual = (ok, m.occupancy_matrix())
    expected = ([[1, 0, 0], [1, 0, 0]], [[0, 0, 0], [0, 0, 1], [0, 0, 1]])
    return actual, expected


@example
def o36():
    m = Map(3, 3, 1, local_origin_in_world=(10, 10))
    m.set_occupancy([[0.5, 0.5]], [1], frame="local")
    actual = (m.get_occupancy([[10.5, 10.5]]), m.get_occupancy([[2, 0]], frame="grid"))
    expected = ([1], [1])
    return actual, expected


# inflating


@example
def o37():
    m = Map(5, 5, 1)
    m.set_occupancy([[2, 2]], [1], frame="grid")
    m.inflate(1)
    actual = m.occupancy_matrix()
    expected = [[0, 0, 0, 0, 0], [0, 1, 1, 1, 0], [0, 1, 1, 1, 0], [0, 1, 1, 1, 0], [0, 0, 0, 0, 0]]
    return actual, expected


@example
def o38():
    m = Map(7, 7, 1)
    m.set_occupancy([[3, 3]], [1], frame="grid")
    m.inflate(2, "grid")
    actual = m.occupancy_matrix()
    expected = [
        [0, 0, 0, 0, 0, 0, 0],
        [0, 0, 1, 1, 1, 0, 0],
        [0, 1, 1, 1, 1, 1, 0],
        [0, 1, 1, 1, 1, 1, 0],
        [0, 1, 1, 1, 1, 1, 0],
        [0, 0, 1, 1, 1, 0, 0],
        [0, 0, 0, 0, 0, 0, 0],
    ]

    return actual, expected


@example
def o39():
    m = Map(3, 3, 1)
    m.set_occupancy([[0, 0]], [1], frame="grid")
    m.inflate(0.1)
    actual = m.occupancy_matrix()
    expected = [[1, 1, 0], [1, 1, 0], [0, 0, 0]]
    return actual, expected


@example
def o40():
    m = Map(5, 5, 10)
    m.set_occupancy([[2.5, 2.5]], [1])
    m.inflate(0.5)
    actual = m.occupancy_matrix().sum(axis=1)[19:32]
    expected = [0, 5, 7, 9, 11, 11, 11, 11, 11, 9, 7, 5, 0]
    return actual, expected


@example
def o41():
    m = Map(3, 3, 1)
    m.set_occupancy([[1, 1]], [1], frame="grid")
    m.inflate(0)
    actual = m.occupancy_matrix().sum()
    expected = 1
    return actual, expected


# moving


@example
def o66():
    m = Map.from_matrix(THREE_BY_FOUR)
    m.move((1, 0))
    actual = (m.local_origin_in_world, m.occupancy_matrix())
    expected = ([1, 0], [[0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]])
    return actual, expected


@example
def o67():
    m = Map.from_matrix(THREE_BY_FOUR)
    m.move((0, 1))
    actual = (m.y_world_limits, m.occupancy_matrix())
    expected = ([1, 4], [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]])
    return actual, expected


@example
def o68():
    m = Map.from_matrix(THREE_BY_FOUR)
    m.move((-1, -1), fill_value=1)
    actual = m.occupancy_matrix()
    expected = [[1, 0, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]]
    return actual, expected


@example
def o69():
    m = Map.from_matrix(THREE_BY_FOUR)
    m.move((1.9, -0.9))
    actual = m.local_origin_in_world
    expected = [1, 0]
    return actual, expected


@example
def o70():
    m = Map.from_matrix(THREE_BY_FOUR)
    m.move((2, 0))
    m.move((-0.5, 0), move_type="relative")
    actual = m.local_origin_in_world
    expected = [2, 0]
    return actual, expected


@example
def o71():
    m = Map.from_matrix(THREE_BY_FOUR)
    m.move((2, 0))
    m.move((0.5, 0))
    actual = m.local_origin_in_world
    expected = [0, 0]
    return actual, expected


@example
def o72():
    m = Map(3, 3, 1, local_origin_in_world=(0.25, 0))
    m.move((2, 2))
    actual = m.local_origin_in_world
    expected = [1.25, 2]
    return actual, expected


@example
def o73():
    m = Map.from_matrix(THREE_BY_FOUR)
    m.move((7, 7))
    actual = (m.occupancy_matrix().any(), m.x_world_limits)
    expected = (False, [7, 11])
    return actual, expected


# synchronising with another map


@example
def o74():
    w = Map.from_matrix(np.eye(6))
    m = Map(2, 2, 1)
    m.move((2, 2), move_type="relative", sync_with=w)
    actual = m.occupancy_matrix()
    expected = [[1, 0], [0, 1]]
    return actual, expected


@example
def o75():
    w = Map.from_matrix(np.eye(6))
    m = Map(2, 2, 1)
    m.move((5, 0), fill_value=1, sync_with=w)
    actual = m.occupancy_matrix()
    expected = [[0, 1], [1, 1]]
    return actual, expected


@example
def o76():
    w = Map.from_matrix(np.ones((4, 4)))
    m = Map(3, 3, 1, local_origin_in_world=(2, 2))
    r = m.sync_with(w)
    actual = (m.occupancy_matrix(), r)
    expected = ([[0, 0, 0], [1, 1, 0], [1, 1, 0]], [[0, 0, 0], [1, 1, 0], [1, 1, 0]])
    return actual, expected


@example
def o77():
    w = Map(1, 1, 1)
    m = Map.from_matrix(np.ones((2, 2)))
    m.default_value = True
    m.sync_with(w)
    actual = m.occupancy_matrix()
    expected = [[1, 1], [0, 1]]
    return actual, expected


@example
def o78():
    w = Map.from_matrix([[1, 0], [0, 0]], 2)
    m = Map(1, 1, 4)
    m.sync_with(w)
    actual = m.occupancy_matrix()
    expected = [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    return actual, expected


# ROS occupancy grids


@example
def o79():
    m = Map.from_matrix(THREE_BY_FOUR)
    m.grid_location_in_world = (-2, 3)
    info, data = m.to_occupancy_grid()
    actual = (info["width"], info["height"], info["resolution"], info["origin"], data)
    expected = (4, 3, 1.0, (-2, 3, 0), [0, 0, 0, 100, 0, 100, 0, 0, 100, 0, 0, 0])
    return actual, expected


@example
def o80():
    m = Map.from_occupancy_grid(
        {"width": 3, "height": 2, "resolution": 0.05000000074505806, "origin": (1, 2, 0)},
        [0, 49, 50, -1, 100, 0],
    )
    actual = (m.occupancy_matrix(), m.resolution, m.grid_location_in_world)
    expected = ([[0, 1, 0], [0, 0, 1]], 20.0, [1, 2])
    return actual, expected


@example
def o81():
    m = Map.from_occupancy_grid(
        {"width": 3, "height": 1, "resolution": 1, "origin": (0, 0, 0)}, [-1, 70, 71], 71, True
    )
    actual = m.occupancy_matrix()
    expected = [[1, 0, 1]]
    return actual, expected


# images


@example
def o82():
    actual = image_to_cells([[0, 89, 90, 191, 192, 205, 254, 255]])
    expected = [[100, 100, -1, -1, 0, 0, 0, 0]]
    return actual, expected


@example
def o83():
    actual = image_to_cells([[0, 205, 254]], free_thresh=0.196)
    expected = [[100, -1, 0]]
    return actual, expected


@example
def o84():
    actual = image_to_cells([[0, 127, 255]], negate=1)
    expected = [[0, -1, 100]]
    return actual, expected


@example
def o85():
    actual = image_to_cells([[0, 128, 255]], mode="scale")
    expected = [[100, 62, 0]]
    return actual, expected


@example
def o86():
    actual = image_to_cells([[0, 64, 100, 101]], mode="raw")
    expected = [[0, 64, 100, -1]]
    return actual, expected


@example
def o87():
    actual = cells_to_image([[0, 25, 26, 64, 65, 100, -1]])
    expected = [[254, 254, 205, 205, 0, 0, 205]]
    return actual, expected


REFUSED = {
    "X1": lambda: Map(0, 1, 1),  # zero width
    "X2": lambda: Map(1, 1, -1),  # negative resolution
    "X3": lambda: Map.from_matrix([1, 0]),  # not 2-D
    "X4": lambda: Map.from_matrix([[nan]]),  # NaN cell
    "X5": lambda: Map(1, 1, 1, default_value=2),  # default not 0 or 1
    "X6": lambda: Map(3, 3, 1).world2grid([[1, 2, 3]]),  # not n-by-2
    "X7": lambda: Map(3, 3, 1).world2grid([[nan, 1]]),  # NaN point
    "X8": lambda: Map(3, 3, 1).set_occupancy([[1, 1], [2, 2]], [1, 0, 1]),  # wrong count of values
    "X9": lambda: Map(3, 3, 1).get_occupancy([[1, 1]], frame="map"),  # unknown frame
    "X10": lambda: Map(3, 3, 1).inflate(-1),  # negative radius
    "X11": lambda: Map(3, 3, 1).raycast([1, 1, 0], -1, 0),  # negative range
    "X12": lambda: Map(3, 3, 1).ray_intersection([1, 1, 0], [0], 0),  # max_range not positive
    "X13": lambda: Map(3, 3, 1).insert_ray(
        [1, 1, 0], [1, 2], [0], 5
    ),  # ranges and angles differ in length
    "X14": lambda: Map(3, 3, 1).move((1, 1), move_type="up"),  # unknown move type
    "X15": lambda: Map(3, 3, 1).move((1, 1), fill_value=2),  # fill value not 0 or 1
    "X16": lambda: Map.from_occupancy_grid(
        {"width": 1, "height": 1, "resolution": 1, "origin": (0, 0, 0.5)}, [0]
    ),  # rotated origin
    "X17": lambda: Map.from_occupancy_grid(
        {"width": 2, "height": 1, "resolution": 1, "origin": (0, 0, 0)}, [0]
    ),  # data too short
}
"""Calls that raise a ValueError, by name."""


@pytest.mark.parametrize("function", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_example(function):
    check(*function())


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED.keys())
def test_refused(call):
    with pytest.raises(ValueError, match=r"\w"):
        call()


def test_all_examples_are_here():
    assert list(EXAMPLES) == [f"O{n}" for n in (*range(1, 42), *range(66, 88))]
    assert list(REFUSED) == [f"X{n}" for n in range(1, 18)]


def test_examples_in_a_process_of_their_own():
    """Every example passes in a fresh interpreter too, whatever this process has loaded."""
    here = Path(__file__)
    program = f"""
import importlib
import sys
sys.path[:0] = {[str(here.parent), str(here.parents[2])]!r}
from occupancy_examples import check
count = 0
for module in ("test_examples", "test_ray_examples"):
    for name, function in importlib.import_module(module).EXAMPLES.items():
        try:
            check(*function())
        except AssertionError as error:
            raise SystemExit(f"{{name}}: {{error}}")
        count += 1
print(count)
"""
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["87"]
