# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""What a vehicle may do in the place of its wish, and its cost. For `avoidance_kernels`."""

from __future__ import annotations

import math

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.kernels.jit import inner_kernel
from rfly_trajectory.kernels.manoeuvre_kernels import State, wrapped
from rfly_trajectory.kernels.tables import FIXED_WING, GROUND, MULTIROTOR, AbilityTable

CHANGE_COST = 0.15
"""Cost of another choice than before, in units of losing the whole wished speed."""
LEFT_COST = 0.02
"""Cost of passing on the left."""
CLIMB_COST = 0.5
"""Cost of climbing or sinking as fast as possible against the wish."""
LEAST_CRUISE = 0.1
"""Least speed by which costs are divided, m/s."""

OFFSETS = np.radians(
    (0.0, -15.0, 15.0, -35.0, 35.0, -60.0, 60.0, -90.0, 90.0, -135.0, 135.0, 180.0)
)
"""Courses that are tried beside the wished one, rad."""
SHARES = np.array((1.0, 0.6, 0.3))
"""Speeds that are tried, as shares of the wished one."""
REVERSE = (0.1, 0.25)
"""Speeds backwards that are tried, as shares of the largest one."""
BACK_TURN_COST = 0.5
"""Cost of backing off in such a bend that the vehicle looks away from its wish."""
MAX_OPTIONS = 64


@inner_kernel
def write_option(options: Floats, count: int, course: float, speed: float, climb: float) -> int:
    """Write one more wish -> options; return their number."""
    options[count, 0] = course
    options[count, 1] = speed
    options[count, 2] = climb
    options[count, 3] = 0.0
    return count + 1


@inner_kernel
def write_options(able: AbilityTable, i: int, state: State, wish: Floats, options: Floats) -> int:
    """Write the wishes that are tried, (m, 4), the first one the vehicle's own -> options.

    Return their number.
    """
    options[0] = wish
    count = 1
    course = wish[0]
    speed = wish[1]
    climb = wish[2]
    kind = able.kind[i]
    cruise = max(abs(speed), 0.3 * able.most[i])

    # slower on the same way
    for share in SHARES[1:]:
        options[count] = wish
        options[count, 1] = max(share * speed, able.least[i])
        options[count, 3] = share * wish[3]
        count += 1
    if able.least[i] == 0.0:
        count = write_option(options, count, course, 0.0, climb)

    # other courses
    offsets = 9 if kind != MULTIROTOR else len(OFFSETS)
    for offset in OFFSETS[1:offsets]:
        for share in SHARES:
            slower = max(share * cruise, able.least[i])
            if share < 1.0 and slower == able.least[i] and kind == FIXED_WING:
                continue
            count = write_option(options, count, course + offset, slower, climb)

    # higher, lower or backwards
    if kind == GROUND:
        for share in REVERSE:
            for turn in (-0.6, 0.0, 0.6):
                count = write_option(options, count, state[3] + turn, -share * able.most[i], 0.0)
    else:
        for rise in (-1.0, 1.0):
            for offset in OFFSETS[:5]:
                count = write_option(
                    options, count, course + offset, max(speed, able.least[i]), rise * able.climb[i]
                )
            if able.least[i] == 0.0:
                count = write_option(options, count, course, 0.0, rise * able.climb[i])
    return count


@inner_kernel
def option_cost(
    able: AbilityTable, i: int, option: Floats, wish: Floats, choice: Floats, waited: float
) -> float:
    """Return what an option costs without conflicts; 1 is the loss of the whole wished speed."""
    cruise = max(abs(wish[1]), 0.3 * able.most[i], LEAST_CRUISE)
    vx = option[1] * math.cos(option[0])
    vy = option[1] * math.sin(option[0])
    wish_x = wish[1] * math.cos(wish[0])
    wish_y = wish[1] * math.sin(wish[0])
    cost = math.hypot(vx - wish_x, vy - wish_y) / cruise
    if option[1] < 0.0 <= wish[1]:
        # who backs off turns to where it will go
        turn = abs(wrapped(option[0] - wish[0])) / math.pi
        cost = (wish[1] - option[1]) / cruise + BACK_TURN_COST * turn

    change_x = vx - choice[1] * math.cos(choice[0])
    change_y = vy - choice[1] * math.sin(choice[0])
    cost += CHANGE_COST * math.hypot(change_x, change_y) / cruise
    if able.climb[i] > 0.0:
        cost += CLIMB_COST * abs(option[2] - wish[2]) / able.climb[i]
        cost += CHANGE_COST * abs(option[2] - choice[2]) / able.climb[i]

    if wrapped(option[0] - wish[0]) > 1e-3:
        cost += LEFT_COST * (1.0 + waited)
    return cost
