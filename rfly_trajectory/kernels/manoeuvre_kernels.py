# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Manoeuvres that vehicles can drive or fly, those to choose from, and what each costs.

`avoidance_kernels` chooses. A state is x, y, z, course, speed, climb, turn: m, rad counter-
clockwise from east, m/s. `turn` is the curvature of a ground vehicle's way, 1/m, and the side, ±1,
to which a fixed wing circles.
"""

from __future__ import annotations

import math

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.kernels.jit import inner_kernel
from rfly_trajectory.kernels.tables import FIXED_WING, GROUND, MULTIROTOR, AbilityTable

State = tuple[float, float, float, float, float, float, float]
"""x, y, z, course, speed, climb, turn."""
Wish = tuple[float, float, float]
"""Course, speed and climb that a vehicle goes for; a negative speed is backwards."""

STANDSTILL = 1e-6
"""Speed below which a vehicle stands, m/s."""

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
def limited(value: float, low: float, high: float) -> float:
    """Return a value within low … high."""
    return min(max(value, low), high)


@inner_kernel
def wrapped(angle: float) -> float:
    """Return an angle within -π … π."""
    return angle - 2.0 * math.pi * math.floor(angle / (2.0 * math.pi) + 0.5)


@inner_kernel
def speed_towards(speed: float, wanted: float, gain: float, brake: float) -> float:
    """Return the speed after a step that gains up to `gain` and loses up to `brake`, m/s."""
    if speed > STANDSTILL or (wanted >= 0.0 and speed > -STANDSTILL):
        return limited(wanted, speed - brake, speed + gain)
    return limited(wanted, speed - gain, speed + brake)


@inner_kernel
def moved_along(state: State, speed: float, climb: float, bend: float, dt: float) -> State:
    """Return the state after a step along an arc of curvature `bend`, 1/m."""
    x, y, z, course, before, climb_before, _ = state
    distance = 0.5 * (before + speed) * dt
    middle = course + 0.5 * bend * distance
    x += distance * math.cos(middle)
    y += distance * math.sin(middle)
    z += 0.5 * (climb_before + climb) * dt
    return x, y, z, wrapped(course + bend * distance), speed, climb, bend


@inner_kernel
def velocity_changed(
    state: State, vx: float, vy: float, climb: float, most: float, dt: float
) -> State:
    """Return a multirotor's state after a step towards a velocity; `most` is its change, m/s."""
    x, y, z, course, speed, climb_before, turn = state
    vx_before = speed * math.cos(course)
    vy_before = speed * math.sin(course)

    # the change points straight to what is wanted
    change_x = vx - vx_before
    change_y = vy - vy_before
    change = math.hypot(change_x, change_y)
    share = 1.0 if change <= most else most / change
    vx = vx_before + share * change_x
    vy = vy_before + share * change_y

    x += 0.5 * (vx_before + vx) * dt
    y += 0.5 * (vy_before + vy) * dt
    z += 0.5 * (climb_before + climb) * dt
    speed = math.hypot(vx, vy)
    if speed > STANDSTILL:
        course = math.atan2(vy, vx)
    return x, y, z, course, speed, climb, turn


@inner_kernel
def advanced(able: AbilityTable, i: int, state: State, wish: Wish, dt: float) -> State:
    """Return the state of vehicle i after a step, s, towards a wish, within its abilities."""
    course, speed, climb = wish
    rise = able.climb_gain[i] * dt
    climb = limited(climb, state[5] - rise, state[5] + rise)

    if able.kind[i] == GROUND or able.kind[i] == FIXED_WING:
        speed = speed_towards(state[4], speed, able.gain[i] * dt, able.brake[i] * dt)
        mean = 0.5 * (state[4] + speed)
        distance = mean * dt
        tightest = tightest_bend(able, i, max(abs(state[4]), abs(speed)))
        bend = 0.0
        if abs(distance) > STANDSTILL * dt:
            bend = limited(wrapped(course - state[3]) / distance, -tightest, tightest)
        if able.kind[i] == GROUND:
            return moved_along(state, speed, 0.0, bend, dt)
        side = state[6] if bend == 0.0 else math.copysign(1.0, bend)
        x, y, z, course, speed, climb, _ = moved_along(state, speed, climb, bend, dt)
        return x, y, z, course, speed, climb, side

    vx = speed * math.cos(course)
    vy = speed * math.sin(course)
    return velocity_changed(state, vx, vy, climb, able.gain[i] * dt, dt)


@inner_kernel
def tightest_bend(able: AbilityTable, i: int, speed: float) -> float:
    """Return the largest curvature that vehicle i can drive or fly at a speed, 1/m."""
    square = max(speed * speed, 1e-9)
    rate_bend = able.turn_rate[i] / math.sqrt(square)
    return min(able.bend[i], able.lateral[i] / square, rate_bend)


@inner_kernel
def fallen_back(able: AbilityTable, i: int, state: State, dt: float) -> State:
    """Return the state after a step of the manoeuvre that every vehicle can go on with for ever.

    A ground vehicle brakes to a stop along its bend, a multirotor along its course, and a fixed
    wing circles to its side.
    """
    rise = able.climb_gain[i] * dt
    climb = limited(0.0, state[5] - rise, state[5] + rise)

    if able.kind[i] == GROUND:
        speed = speed_towards(state[4], 0.0, 0.0, able.brake[i] * dt)
        return moved_along(state, speed, 0.0, state[6], dt)
    if able.kind[i] == FIXED_WING:
        side = state[6]
        bend = side * tightest_bend(able, i, state[4])
        x, y, z, course, speed, climb, _ = moved_along(state, state[4], climb, bend, dt)
        return x, y, z, course, speed, climb, side
    return velocity_changed(state, 0.0, 0.0, climb, able.brake[i] * dt, dt)


@inner_kernel
def is_at_rest(able: AbilityTable, i: int, state: State) -> bool:
    """Return whether the fallback stays as it is from here: a standstill, or a level circle."""
    if abs(state[5]) > STANDSTILL:
        return False
    return able.kind[i] == FIXED_WING or abs(state[4]) <= STANDSTILL


@inner_kernel
def circle_of(able: AbilityTable, i: int, state: State) -> float:
    """Return the radius of a fixed wing's circle, m, positive to the left; 0 for other kinds."""
    if able.kind[i] != FIXED_WING:
        return 0.0
    return state[6] / tightest_bend(able, i, state[4])


@inner_kernel
def write_fallback(
    able: AbilityTable, i: int, state: State, dt: float, begin: int, way: Floats
) -> int:
    """Write the places (m, 3) of a fallback from a state on -> way[begin:].

    Return the last one's number. Of a fixed wing the places after the first are the centre of its
    circle.
    """
    number = begin
    way[number, 0] = state[0]
    way[number, 1] = state[1]
    way[number, 2] = state[2]
    circle = circle_of(able, i, state)
    centre_x = state[0] - circle * math.sin(state[3])
    centre_y = state[1] + circle * math.cos(state[3])

    rest = False
    while number + 1 < len(way) and not rest:
        number += 1
        rest = is_at_rest(able, i, state)
        state = fallen_back(able, i, state, dt)
        way[number, 0] = state[0] if circle == 0.0 else centre_x
        way[number, 1] = state[1] if circle == 0.0 else centre_y
        way[number, 2] = state[2]
    return number


@inner_kernel
def write_intent(
    able: AbilityTable, i: int, state: State, wish: Wish, turn: float, step: float, way: Floats
) -> None:
    """Write the places (m, 3) of a vehicle that goes for a wish -> way, a time `step`, s, apart.

    The wished course turns by `turn`, rad/s.
    """
    course = wish[0]
    way[0, 0] = state[0]
    way[0, 1] = state[1]
    way[0, 2] = state[2]
    for number in range(1, len(way)):
        course += turn * step
        state = advanced(able, i, state, (course, wish[1], wish[2]), step)
        way[number, 0] = state[0]
        way[number, 1] = state[1]
        way[number, 2] = state[2]


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
