# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Shapes of the GPS velocity against the IMU: a step is the GPS's, a slope the IMU's.

Theory of operation. The IMU's acceleration is integrated without any new correction. The difference
of the GPS velocity to this integral is constant while both are right. A GPS velocity that gets a
bias makes it step at once; an accelerometer that does makes it grow with time, and a gyroscope ever
faster. The last readings are compared with both shapes, each from any reading on, by least squares.
A difference that fits a step far better than a slope, or nothing, is one of the GPS velocity, which
is refused. The velocity goes back to what it was before the step, carried on by the IMU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rfly_autonomy.estimation.error_state import POSITION, VELOCITY
from rfly_autonomy.estimation.filter_records import SHAPE_READINGS
from rfly_autonomy.estimation.row_operations import clear_error
from rfly_common.kernels.jit import inner_kernel
from rfly_common.kernels.vectors import Matrix

LEAST_BEFORE = 3
"""Number of readings before a step that show what was right."""
LEAST_AFTER = 3
"""Number of readings after it: one or two may be outliers."""
LEAST_TIME = 0.8
"""Time after it for which two readings are enough, s."""
CLEARLY_STEPS = 30.0
"""Fall of the sum of squares by a step, in variances of a reading, from which there is one."""
CLEARLY_NO_SLOPE = 16.0
"""The same by a step in place of a slope from which it is no slope."""
POOR_FIT = 2.5
"""Mean square left by a step, in variances of a reading, from which it is another shape."""
STEP_FLOOR = 0.1
"""Least standard deviation of a reading against the IMU: what 0.025 s are at 4 m/s², m/s.

Also that of a velocity that the IMU has carried on since before a step.
"""
BIAS_TIME = 20.0
"""Time with which the bias that is taken off the IMU follows the estimated one, s."""
IMU_DRIFT = 0.05
"""Change of the IMU's integral from one reading to the next, for each second between them, m/s²."""
LONGEST_SPAN = 8.0
"""Age of a reading up to which the IMU's integral still tells its velocity, s."""
ON_WHEELS = 0.1
"""Time since wheels rolled in which they may have been pushed, s."""
STEPS_BACK = 0.5
"""Share of a step up to which the velocity has stepped back."""


@inner_kernel
def integrate_imu(x: Any, book: Any, dt: float, r: Matrix, pull: Any, is_sample: bool) -> None:
    """Carry the IMU's integral on by dt seconds, or begin anew if there is no sample of an IMU.

    `r`: attitude; `pull` (3,): acceleration, m/s². The bias taken off is an old one, as the present
    one may just be learned from what is judged here.
    """
    for i in range(3):
        book.imu_velocity[i] += dt * pull[i]
    for j in range(3):
        newer = x.force_bias[j] - book.slow_force_bias[j]
        book.slow_force_bias[j] += dt / BIAS_TIME * newer
        for i in range(3):
            book.imu_velocity[i] += dt * r[3 * i + j] * newer
    if not is_sample:
        book.apart_count = 0.0


@inner_kernel
def compare_with_imu(book: Any, velocity: Any, longest_gap: float) -> None:
    """Note the difference of a GPS velocity (3,) of the IMU's place, m/s, to the IMU's integral.

    After a longer gap, s, the comparison begins anew.
    """
    count = int(book.apart_count)
    if count > 0 and book.time - book.apart_time[count - 1] > longest_gap:
        count = 0
    if count == SHAPE_READINGS or (count > 0 and book.time - book.apart_time[0] > LONGEST_SPAN):
        count -= 1
        for k in range(count):
            book.apart_time[k] = book.apart_time[k + 1]
        for k in range(3 * count):
            book.apart[k] = book.apart[k + 3]
    book.apart_time[count] = book.time
    for i in range(3):
        book.apart[3 * count + i] = velocity[i] - book.imu_velocity[i]
    book.apart_count = count + 1.0


@inner_kernel
def fall_by_shape(book: Any, first: int, slopes: bool, change: Any) -> float:
    """Return by how much a shape from reading `first` on reduces the sum of squares, (m/s)².

    `change` (3,) becomes its size: of a step, m/s, or of a slope, m/s².
    """
    count = int(book.apart_count)
    begin = book.apart_time[first - 1]
    mean = 0.0
    for k in range(first, count):
        mean += book.apart_time[k] - begin if slopes else 1.0
    mean /= count

    # regression on the shape less its mean
    square = 0.0
    products = np.zeros(3)
    for k in range(count):
        shape = -mean
        if k >= first:
            shape += book.apart_time[k] - begin if slopes else 1.0
        square += shape * shape
        for i in range(3):
            products[i] += shape * book.apart[3 * k + i]
    fall = 0.0
    for i in range(3):
        change[i] = products[i] / square
        fall += products[i] * change[i]
    return fall


@inner_kernel
def find_step(book: Any, variance: float, change: Any) -> int:
    """Return the first reading of a step of the GPS velocity, or 0 if there is none.

    `variance`: of one reading, (m/s)². `change` (3,) becomes the step, m/s.
    """
    count = int(book.apart_count)
    if count < LEAST_BEFORE + 2:
        return 0
    first = 0
    by_step = 0.0
    last = count - LEAST_AFTER
    if book.time - book.apart_time[count - 2] > 0.5 * LEAST_TIME:
        last += 1
    for k in range(LEAST_BEFORE, last + 1):
        fall = fall_by_shape(book, k, False, change)
        if fall > by_step:
            first = k
            by_step = fall

    # two readings may be a step, too: the next one decides
    by_two = 0.0 if last > count - LEAST_AFTER else fall_by_shape(book, count - 2, False, change)
    if max(by_step, by_two) < CLEARLY_STEPS * variance:
        return 0
    if by_two > by_step:
        book.may_step = 1.0
        return 0

    # what it leaves
    total = 0.0
    for i in range(3):
        mean = 0.0
        for k in range(count):
            mean += book.apart[3 * k + i] / count
        for k in range(count):
            total += (book.apart[3 * k + i] - mean) ** 2
    left = (total - by_step) / (3.0 * (count - 2))
    if left > POOR_FIT * variance or by_step < CLEARLY_STEPS * left:
        return 0

    # a slope
    by_slope = 0.0
    for k in range(1, count):
        by_slope = max(by_slope, fall_by_shape(book, k, True, change))
    if by_step < by_slope:
        return 0
    if by_step - by_slope < CLEARLY_NO_SLOPE * max(variance, left):
        book.may_step = 1.0
        return 0
    fall_by_shape(book, first, False, change)
    return first


@inner_kernel
def refuse_step(x: Any, book: Any, p: Any, first: int, variance: float) -> None:
    """Refuse a GPS velocity that stepped at a reading; go back to the velocity without it."""
    book.gps_velocity_refused = 1.0
    since = book.time - book.apart_time[first - 1]
    spread = variance / first + STEP_FLOOR * STEP_FLOOR
    for i in range(3):
        velocity = book.imu_velocity[i]
        for k in range(first):
            velocity += book.apart[3 * k + i] / first
        pulled = x.velocity[i] - velocity
        clear_error(p, VELOCITY + i)
        p[VELOCITY + i, VELOCITY + i] = spread
        p[POSITION + i, POSITION + i] += (0.5 * since * pulled) ** 2
        x.velocity[i] = velocity
    book.free_climb = x.velocity[2]
    book.free_p[1] = 0.0
    book.free_p[2] = spread
    book.apart_count = 0.0


@inner_kernel
def believe_again(book: Any) -> None:
    """Use a refused GPS velocity that fits again, unless it still is where it stepped to."""
    square = 0.0
    left = 0.0
    for i in range(3):
        square += book.gps_velocity_step[i] ** 2
        left += book.gps_velocity_step[i] * book.velocity_off[i]
    if left <= STEPS_BACK * square:
        book.gps_velocity_refused = 0.0
        for i in range(3):
            book.gps_velocity_step[i] = 0.0


@inner_kernel
def judge_steps(
    x: Any,
    book: Any,
    p: Any,
    residual: Any,
    variance: float,
    force_noise: float,
    longest_gap: float,
) -> None:
    """Refuse a GPS velocity that has made a step in the air.

    `residual` (3,): its innovation, which is corrected if the velocity is. `force_noise`: density
    of the IMU's noise, m/s²/√Hz, with which its integral walks.
    """
    is_anew = book.time - book.realigned_at < longest_gap
    if is_anew or book.time - book.wheels_time < ON_WHEELS:
        book.apart_count = 0.0
        book.may_step = 0.0
        book.slow_force_bias[:] = x.force_bias
        return
    velocity = np.empty(3)
    for i in range(3):
        velocity[i] = x.velocity[i] + residual[i]
    compare_with_imu(book, velocity, longest_gap)
    book.may_step = 0.0
    if book.gps_velocity_refused != 0.0:
        return
    count = int(book.apart_count)
    period = (book.time - book.apart_time[0]) / max(count - 1, 1)
    variance = max(variance, STEP_FLOOR * STEP_FLOOR) + (IMU_DRIFT * period) ** 2
    # of a walk about its mean
    variance += force_noise * force_noise * (book.time - book.apart_time[0]) / 6.0
    change = np.zeros(3)
    first = find_step(book, variance, change)
    if first > 0:
        book.gps_velocity_step[:] = change
        refuse_step(x, book, p, first, variance)
        for i in range(3):
            residual[i] = velocity[i] - x.velocity[i]
