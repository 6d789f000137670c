# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Consistency of the speeds across the ground: wheels, GPS and IMU outvote one of them.

Theory of operation. A small filter of the level velocity knows IMU and GPS velocity but no wheels,
so that wheels which slide cannot drag it along. Wheels and GPS velocity are compared with it.

- Wheels that move otherwise than this velocity, while the GPS moves with it, slide: on ice, in
  wind, behind a locked brake. They are left out until they agree again.
- If the wheels move with it, and the GPS does not, the GPS velocity is wrong. It is wrong as well
  if the GPS's own positions do not move as it says, in the air or while the wheels seem to slide.
  It is left out until it fits again, and the small filter follows the large one meanwhile.
- If wheels and GPS differ from it alike, or there are no wheels on the ground, the IMU is wrong.
"""

from __future__ import annotations

import math
from typing import Any

from rfly_autonomy.estimation import filter_records
from rfly_autonomy.estimation.error_state import GPS_DRIFT, VELOCITY
from rfly_autonomy.estimation.filter_records import LONGEST_GAP
from rfly_autonomy.estimation.row_operations import clear_error
from rfly_common.kernels.jit import inner_kernel

LAG_TIME = 1.0
"""Time with which the lag of a height, or the way of a fix, fades, s."""
LARGEST_SHARE = 0.45
"""Largest weight of a reading in the averages of those that do not fit: one proves nothing alone,
below `consistency.ALONE`, and seconds another sensor, above `consistency.OUTVOTED`.
"""
FREE_NOISE = 0.1
"""Noise of a small filter's acceleration in addition to the IMU's, m/s²/√Hz."""
FREE_GATE = 25.0
"""Largest normalised innovation squared of a small filter."""

AVERAGED = 0.3
"""Time over which wheels and GPS are compared with the small filter, s: some fixes of a GPS."""
SLIDE_LIMIT = 3.0
"""Speed of the wheels beyond that velocity, in standard deviations, above which they slide."""
ROLL_LIMIT = 2.0
"""The same below which they roll again."""
SLIDE_FLOOR = 0.05
"""Standard deviation of this speed that is left with perfect sensors, m/s: bumps and slip."""
AGREES = 0.5
"""Share of the others' contradiction up to which a sensor counts as one that agrees."""
FITS_AGAIN = 0.3
"""Share of readings that do not fit well below which a GPS velocity is used again."""
WAY_TIME = 4.0
"""Time with which the way of a fix fades during a contradiction, s: later its drift counts."""
WAY_LIMIT = 3.0
"""Way of the fixes beyond that of their velocity, in standard deviations, from which the velocity
is wrong.
"""
WAY_DOUBT = 1.5
"""The same from which the next fix is waited for."""

NO_VERDICT = 0
IMU_IS_WRONG = 1
GPS_IS_WRONG = 2
WHEELS_SLIDE = 3
"""Verdicts about a GPS velocity that does not fit."""


@inner_kernel
def predict_free_velocity(book: Any, dt: float, pull: Any, noise: float) -> None:
    """Carry the small filter on by dt seconds, with an acceleration (m/s²) and its variance."""
    for i in range(2):
        book.free_velocity[i] += dt * pull[i]
    book.free_variance += noise + FREE_NOISE * FREE_NOISE * dt


@inner_kernel
def begin_free_velocity(x: Any, book: Any, residual: Any, variance: float) -> None:
    """Begin the small filter anew with a GPS velocity, of which `residual` is the innovation."""
    for i in range(2):
        book.free_velocity[i] = x.velocity[i] + residual[i]
        book.gps_apart[i] = 0.0
    book.free_variance = variance


@inner_kernel
def correct_free_velocity(x: Any, book: Any, p: Any, residual: Any, variance: float) -> bool:
    """Correct the small filter by a GPS velocity, of which `residual` is the innovation.

    Returns whether it fits. One that is refused does not: the small filter follows the large one.
    """
    refused = book.gps_velocity_refused != 0.0
    if refused:
        book.free_variance = max(p[VELOCITY, VELOCITY], p[VELOCITY + 1, VELOCITY + 1])
        for i in range(2):
            book.free_velocity[i] = x.velocity[i]

    # difference to it
    gap = min(book.time - book.last_measured[filter_records.GPS_VELOCITY], LONGEST_GAP)
    share = -math.expm1(-gap / AVERAGED)
    east = x.velocity[0] + residual[0] - book.free_velocity[0]
    north = x.velocity[1] + residual[1] - book.free_velocity[1]
    book.gps_apart[0] += share * (east - book.gps_apart[0])
    book.gps_apart[1] += share * (north - book.gps_apart[1])

    spread = book.free_variance + variance
    if refused or east * east + north * north > FREE_GATE * spread:
        return False
    gain = book.free_variance / spread
    book.free_velocity[0] += gain * east
    book.free_velocity[1] += gain * north
    book.free_variance *= 1.0 - gain
    return True


@inner_kernel
def spread_of_wheels(book: Any, variance: float) -> float:
    """Return the standard deviation of the wheels' speed less that of the small filter, m/s.

    `variance`: of the wheels' speed.
    """
    return math.sqrt(book.free_variance + variance + SLIDE_FLOOR * SLIDE_FLOOR)


@inner_kernel
def judge_wheels(
    x: Any, book: Any, p: Any, east: float, north: float, variance: float, c: Any
) -> None:
    """Find out whether the wheels slide.

    `east`, `north`: their speed less that of the small filter, m/s; `variance`: its own, of both.
    """
    gap = book.time - book.wheels_time
    book.wheels_time = book.time
    if gap > LONGEST_GAP:
        book.wheels_apart[0] = 0.0
        book.wheels_apart[1] = 0.0
        book.wheels_slide = 0.0
    share = -math.expm1(-min(gap, LONGEST_GAP) / AVERAGED)
    book.wheels_apart[0] += share * (east - book.wheels_apart[0])
    book.wheels_apart[1] += share * (north - book.wheels_apart[1])

    # the GPS has to know better
    heard = book.time - book.last_measured[filter_records.GPS_VELOCITY] < c.gps_gap
    if not heard or book.gps_velocity_refused != 0.0:
        book.wheels_slide = 0.0
        return

    apart = math.hypot(book.wheels_apart[0], book.wheels_apart[1])
    sigma = spread_of_wheels(book, variance)
    if book.wheels_slide == 0.0:
        gps = math.hypot(book.gps_apart[0], book.gps_apart[1])
        if apart > SLIDE_LIMIT * sigma and gps < AGREES * apart:
            begin_slide(x, book, p)
    elif apart < ROLL_LIMIT * sigma:
        book.wheels_slide = 0.0
    else:
        since = book.time - book.slide_since
        error = -book.wheels_apart[0], -book.wheels_apart[1], 0.0
        if way_verdict(book, error, since, c) == GPS_IS_WRONG:
            end_slide(x, book, p)


@inner_kernel
def forget_velocity_off(book: Any) -> None:
    """Begin to judge the GPS velocity anew: its earlier innovations were those of another error."""
    book.misfits[filter_records.GPS_VELOCITY] = 0.0
    book.velocity_off_square = 0.0
    for i in range(3):
        book.velocity_off[i] = 0.0


@inner_kernel
def begin_slide(x: Any, book: Any, p: Any) -> None:
    """Begin anew with the small filter's velocity: sliding wheels have dragged the other along."""
    book.wheels_slide = 1.0
    book.slide_since = book.time
    forget_velocity_off(book)
    for i in range(2):
        clear_error(p, VELOCITY + i)
        p[VELOCITY + i, VELOCITY + i] = book.free_variance + SLIDE_FLOOR * SLIDE_FLOOR
        x.velocity[i] = book.free_velocity[i]


@inner_kernel
def end_slide(x: Any, book: Any, p: Any) -> None:
    """Begin anew with the wheels' velocity: the GPS's is wrong."""
    book.wheels_slide = 0.0
    book.gps_velocity_refused = 1.0
    book.misfits[filter_records.GPS_VELOCITY] = 1.0
    for i in range(2):
        clear_error(p, VELOCITY + i)
        p[VELOCITY + i, VELOCITY + i] = book.free_variance + SLIDE_FLOOR * SLIDE_FLOOR
        x.velocity[i] = book.free_velocity[i] + book.wheels_apart[i]


@inner_kernel
def follow_fixes(book: Any, row: Any, c: Any) -> None:
    """Sum up what the GPS's positions move beyond the way of its velocities; it fades.

    The way between two fixes is that of the mean of their velocities.
    """
    gap = row.time - book.fix_time
    book.fix_time = row.time
    book.fix_gap = min(gap, c.gps_gap)
    fits = book.misfits[filter_records.GPS_VELOCITY] < FITS_AGAIN and book.wheels_slide == 0.0
    keep = math.exp(-gap / (LAG_TIME if fits else WAY_TIME))
    begins = row.values[filter_records.GPS_WITHOUT_VELOCITY] != 0.0 or gap > c.gps_gap
    for i in range(3):
        velocity = 0.5 * (book.fix_velocity[i] + row.values[3 + i])
        step = row.values[i] - book.fix_position[i] - gap * velocity
        book.fix_position[i] = row.values[i]
        book.fix_velocity[i] = row.values[3 + i]
        book.fix_way[i] = 0.0 if begins else keep * book.fix_way[i] + step


@inner_kernel
def way_verdict(book: Any, error: Any, since: float, c: Any) -> int:
    """Return whether the GPS's positions show that its velocity is wrong.

    `error`: of that velocity, (3,), m/s, which would be there for `since` seconds.
    """
    size = math.sqrt(error[0] ** 2 + error[1] ** 2 + error[2] ** 2)
    history = min(LAG_TIME + since, WAY_TIME)
    way = 0.0
    variance = 0.0
    for i in range(3):
        share = error[i] / size
        drift = c.markov_sigma[GPS_DRIFT + i]
        way -= share * book.fix_way[i]
        wander = 2.0 * drift * drift * history / c.markov_time[GPS_DRIFT + i]
        sum_of_noise = c.gps_velocity * c.gps_velocity * book.fix_gap * history
        variance += share * share * (c.gps_white[i] * c.gps_white[i] + wander + sum_of_noise)

    due = -math.expm1(-since / WAY_TIME) * WAY_TIME * size
    sigma = math.sqrt(variance)
    if way < AGREES * due or way < WAY_DOUBT * sigma:
        return IMU_IS_WRONG
    return GPS_IS_WRONG if way > WAY_LIMIT * sigma else NO_VERDICT


@inner_kernel
def verdict(book: Any, residual: Any, c: Any) -> int:
    """Return what is wrong if a GPS velocity has not fitted for long, by its innovation (3,)."""
    if book.time - book.wheels_time < LONGEST_GAP and book.wheels_slide == 0.0:
        gps = math.hypot(book.gps_apart[0], book.gps_apart[1])
        wheels = math.hypot(book.wheels_apart[0], book.wheels_apart[1])
        between = math.hypot(
            book.gps_apart[0] - book.wheels_apart[0], book.gps_apart[1] - book.wheels_apart[1]
        )
        sigma = spread_of_wheels(book, 0.0)
        if gps > SLIDE_LIMIT * sigma and wheels < AGREES * gps:
            return GPS_IS_WRONG
        if wheels > ROLL_LIMIT * sigma and gps < AGREES * wheels:
            return WHEELS_SLIDE
        # the small filter lies between them
        if between > max(gps, wheels, ROLL_LIMIT * sigma):
            return NO_VERDICT

    # the misfits are averaged, beginning with 0
    misfits = min(book.misfits[filter_records.GPS_VELOCITY], 0.99)
    since = -c.reacquire * math.log1p(-misfits)
    return way_verdict(book, (residual[0], residual[1], residual[2]), since, c)
