# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Run of the filter over the logs of IMU and measurements, and its report for the body's origin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_autonomy.estimation import filter_records
from rfly_autonomy.estimation.attitude_kernels import add_skew, attitude
from rfly_autonomy.estimation.consistency import (
    LONGEST_DOUBT,
    average_climb,
    average_velocity,
    correct_climb,
    count_misfit,
    gps_is_back,
    judge_height,
    judge_imu,
    judge_pressure,
    vote_on_attitude,
)
from rfly_autonomy.estimation.error_state import (
    ATTITUDE,
    ERRORS,
    GYRO_BIAS,
    POSITION,
    SLIP,
    VELOCITY,
)
from rfly_autonomy.estimation.filter_records import (
    GPS_WITHOUT_VELOCITY,
    IMU,
    NO_SENSOR,
    NOTHING,
    ROTORS,
    SAME_TIME,
)
from rfly_autonomy.estimation.measurement_models import (
    expect_field,
    expect_gps_position,
    expect_height,
    expect_orientation,
    expect_pressure,
    expect_velocity,
    expect_wheels,
)
from rfly_autonomy.estimation.measurement_update import (
    bend_ground,
    count_update,
    judge_fix,
    leave_map,
    return_to_map,
    update,
)
from rfly_autonomy.estimation.prediction import begin_source, predict, set_motion
from rfly_autonomy.estimation.row_operations import add_scaled, symmetrise
from rfly_autonomy.estimation.speed_consistency import (
    FITS_AGAIN,
    correct_free_velocity,
    follow_fixes,
    judge_wheels,
)
from rfly_autonomy.estimation.velocity_shapes import believe_again, judge_steps
from rfly_common.kernels.jit import inner_kernel, kernel
from rfly_common.kernels.vectors import cross, matrix_row, rotated, vector_of

ROCKING = 0.1
"""Speed of a wheel for each rate at which the body rolls and pitches on springs and tyres, m."""

LARGEST = 1e9
"""Bound of a credible estimate, m, m/s, rad/s. Impossible readings lead beyond it."""


@inner_kernel
def take_loads(book: Any, row: Any, c: Any) -> None:
    """Note the loads of the wheels, and which of them are off the ground."""
    for i in range(c.radius.size):
        book.wheel_load[i] = row.values[i]
        if book.wheel_load[i] < c.wheel_load:
            book.last_lifted[i] = row.time
    book.wheel_load_time = row.time


@inner_kernel
def touches_ground(book: Any, c: Any) -> bool:
    """Return whether a wheel is known to carry load."""
    if book.time - book.wheel_load_time > c.load_age:
        return False
    loaded = False
    for i in range(c.radius.size):
        loaded |= book.wheel_load[i] >= c.wheel_load
    return loaded


@inner_kernel
def find_rolling(book: Any, c: Any, rolls: Any) -> float:
    """Find the wheels that roll on the ground -> rolls (wheels,), 1 or 0.

    Returns the load of all wheels, N. A wheel that touched down has to take up speed first.
    """
    loaded = 0.0
    if book.time - book.wheel_load_time > c.load_age:
        return loaded
    for i in range(c.radius.size):
        load = book.wheel_load[i]
        loaded += load
        if load >= c.wheel_load and book.time - book.last_lifted[i] >= c.contact_time:
            rolls[i] = 1.0
    return loaded


@inner_kernel
def watch_standstill(x: Any, book: Any, angles: Any, loaded: float, slides: bool, c: Any) -> None:
    """Begin the time of standing anew if wheels or body move, or the wheels are not loaded."""
    wheels = c.radius.size
    turned = 0.0
    for i in range(wheels):
        turned = max(turned, abs(angles[i] - book.still_angle[i]) * c.radius[i])
    rate = math.sqrt(book.rates[0] ** 2 + book.rates[1] ** 2 + book.rates[2] ** 2)
    upright = 1.0 - 2.0 * (x.quaternion[1] ** 2 + x.quaternion[2] ** 2)
    still = turned <= c.still_way and rate <= c.still_rate and loaded >= c.still_load * upright
    if slides or not still:
        book.still_since = book.time
        for i in range(wheels):
            book.still_angle[i] = angles[i]


@inner_kernel
def standstill_innovation(x: Any, book: Any, c: Any, h: Any, residual: Any, variance: Any) -> int:
    """Measure that speed and rates are 0."""
    book.last_standstill = book.time
    h[:] = 0.0
    for i in range(3):
        h[i, VELOCITY + i] = 1.0
        h[3 + i, GYRO_BIAS + i] = -1.0
        residual[i] = -x.velocity[i]
        residual[3 + i] = -book.rates[i]
        variance[i] = c.still_speed * c.still_speed
        variance[3 + i] = c.still_gyro * c.still_gyro
    return filter_records.STANDSTILL


@inner_kernel
def compare_wheels(
    x: Any, book: Any, p: Any, along: float, across: float, variance: float, h: Any, c: Any
) -> None:
    """Compare the wheels, which move by these speeds beyond the state, with the small filter.

    `h`: the Jacobian of their speeds along and across. Their estimated slip would hide what is
    wrong.
    """
    along += h[0, SLIP] * x.slip
    for i in range(2):
        change = book.free_velocity[i] - x.velocity[i]
        along -= h[0, VELOCITY + i] * change
        across -= h[1, VELOCITY + i] * change
    r = attitude(x)
    east = r[0] * along + r[1] * across
    north = r[3] * along + r[4] * across
    judge_wheels(x, book, p, east, north, variance, c)


@inner_kernel
def wheel_innovation(
    x: Any, book: Any, p: Any, row: Any, stage: int, c: Any, h: Any, residual: Any, variance: Any
) -> int:
    """Measure with the wheels that roll: speed along them (stage 0), then none across (stage 1).

    A vehicle that stands measures that instead. Tyres at the limit of their grip slide, and measure
    nothing.
    """
    wheels = c.radius.size
    rates = row.values[:wheels]
    steering = row.values[wheels : 2 * wheels]
    angles = row.values[2 * wheels : 3 * wheels]
    rolls = np.zeros(wheels)
    loaded = find_rolling(book, c, rolls)
    count = rolls.sum()
    slides = math.hypot(book.force[0], book.force[1]) > c.grip * loaded / c.weight

    # speed of the wheels
    expected = np.empty(2)
    rocks = ROCKING * ROCKING * (book.rates[0] ** 2 + book.rates[1] ** 2)
    if count > 0.0:
        expect_wheels(x, book, steering, rolls, c, h, expected)
    if count > 0.0 and stage == 0:
        radii = 0.0
        speed = 0.0
        for i in range(wheels):
            radii += rolls[i] * c.radius[i]
            # encoders count against the body, the wheel rolls against the ground
            speed += rolls[i] * c.radius[i] * (rates[i] + book.rates[1]) / count
        residual[0] = speed - expected[0]
        variance[0] = c.wheel_noise * c.wheel_noise * radii * radii / (count * count * count)
        variance[0] += c.wheel_floor * c.wheel_floor + rocks
        compare_wheels(x, book, p, residual[0], -expected[1], variance[0], h, c)
    slides |= book.wheels_slide != 0.0

    # standing
    if stage == 0:
        watch_standstill(x, book, angles, loaded, slides, c)
    if book.time - book.still_since >= c.still_time - SAME_TIME:
        if stage > 0 or book.time - book.last_standstill < c.still_period - SAME_TIME:
            return NO_SENSOR
        return standstill_innovation(x, book, c, h, residual, variance)

    # rolling
    if stage == 0 and count > 0.0 and book.wheels_slide != 0.0:
        count_misfit(book, filter_records.WHEEL_SPEED, True, c)
    if slides or count == 0.0:
        return NO_SENSOR
    if stage == 1 and book.time - book.last_side_slip < c.side_period - SAME_TIME:
        return NO_SENSOR
    if stage == 0:
        return filter_records.WHEEL_SPEED

    # across
    book.last_side_slip = book.time
    for n in range(ERRORS):
        h[0, n] = h[1, n]
    slip = c.side_slip + c.side_slip_rate * abs(book.force[1])
    residual[0] = -expected[1]
    variance[0] = c.side_noise * c.side_noise + rocks + (slip * expected[0]) ** 2
    return filter_records.SIDE_SLIP


@inner_kernel
def gps_innovation(
    x: Any, book: Any, row: Any, stage: int, c: Any, h: Any, residual: Any, variance: Any
) -> int:
    """Measure the antenna's position (stage 0), then its velocity (stage 1)."""
    expected = np.empty(3)
    if stage == 0:
        sensor = filter_records.GPS_POSITION
        heard = max(book.last_measured[sensor], book.last_accepted[sensor])
        if book.time - heard > max(LONGEST_DOUBT, c.gps_gap):
            book.gps_back_at = book.time
        follow_fixes(book, row, c)
        expect_gps_position(x, c.lever_gps, h, expected)
        for i in range(3):
            residual[i] = row.values[i] - expected[i]
            variance[i] = c.gps_white[i] * c.gps_white[i]
        return filter_records.GPS_POSITION

    if row.values[GPS_WITHOUT_VELOCITY] != 0.0:
        return NO_SENSOR
    expect_velocity(x, book, c.lever_gps, h, expected)
    for i in range(3):
        residual[i] = row.values[3 + i] - expected[i]
        variance[i] = c.gps_velocity * c.gps_velocity
    return filter_records.GPS_VELOCITY


@inner_kernel
def height_innovation(
    x: Any, book: Any, p: Any, row: Any, c: Any, ground: Any, h: Any, residual: Any, variance: Any
) -> int:
    """Measure the height above the ground, unless it contradicts the climb."""
    spread_x = max(0.05, math.sqrt(p[POSITION, POSITION]))
    spread_y = max(0.05, math.sqrt(p[POSITION + 1, POSITION + 1]))
    bend_variance = expect_height(x, ground, c.lever_height, spread_x, spread_y, h, residual)
    residual[0] = row.values[0] - residual[0]
    variance[0] = c.height_white * c.height_white

    bend_ground(book, p, bend_variance)
    altitude = x.position[2] + residual[0] - x.ground_error
    judge_height(x, book, p, altitude, touches_ground(book, c), c)
    if book.height_refused != 0.0:
        return NO_SENSOR
    if book.off_map != 0.0:
        return_to_map(x, book, p, h, residual, variance, c)
    return filter_records.HEIGHT


@inner_kernel
def innovation(
    x: Any, book: Any, p: Any, row: Any, stage: int, c: Any, h: Any, residual: Any, variance: Any
) -> int:
    """Compute Jacobian (6, 27), residual and variance (6,) of a measurement but a height.

    `stage`: 0 for the row's first measurement, 1 for its second. Returns the sensor, or NO_SENSOR.
    """
    kind = int(row.kind)
    if kind == filter_records.KIND_JOINTS:
        return wheel_innovation(x, book, p, row, stage, c, h, residual, variance)
    if kind == filter_records.KIND_GPS:
        return gps_innovation(x, book, row, stage, c, h, residual, variance)
    if stage > 0:
        return NO_SENSOR

    if kind == filter_records.KIND_LOADS:
        take_loads(book, row, c)
        return NO_SENSOR
    if kind == filter_records.KIND_FIELD:
        expect_field(x, c.field, h, residual)
        for i in range(3):
            residual[i] = row.values[i] - residual[i]
            variance[i] = c.field_white * c.field_white
        return filter_records.MAGNETOMETER
    if kind == filter_records.KIND_ORIENTATION:
        expect_orientation(x, row.values, h, residual)
        for i in range(3):
            variance[i] = c.ahrs_white * c.ahrs_white
        return filter_records.ORIENTATION
    expect_pressure(x, c.lever_baro, c.altitude, h, residual)
    variance[0] = c.pressure_white * c.pressure_white
    residual[0] = row.values[0] - residual[0]
    return filter_records.BAROMETER


@inner_kernel
def fuse(
    x: Any,
    book: Any,
    p: Any,
    sensor: int,
    h: Any,
    residual: Any,
    variance: Any,
    c: Any,
) -> bool:
    """Update with a measurement. Return whether the row's second one may be used too."""
    m = filter_records.DEGREES[sensor]
    gate = c.gates[m]
    if sensor == filter_records.BAROMETER:
        judge_pressure(x, book, p, h, residual, variance[0], c)
        slope = h[0, POSITION + 2]  # Pa/m
        altitude = x.position[2] + residual[0] / slope
        correct_climb(book, altitude - book.free_altitude, variance[0] / (slope * slope), False)
    elif sensor == filter_records.GPS_VELOCITY:
        judge_steps(x, book, p, residual, variance[0], c.force_noise, c.gps_gap)
        average_velocity(book, residual, c)
        average_climb(x, book, p, residual[2], variance[2])
        if correct_free_velocity(x, book, p, residual, variance[0]):
            correct_climb(book, x.velocity[2] + residual[2] - book.free_climb, variance[2], True)
        if book.gps_velocity_refused != 0.0:
            gate = -1.0
    if sensor == filter_records.GPS_POSITION and book.gps_refused != 0.0:
        gate = -1.0
    level = sensor == filter_records.HEIGHT and c.ground_known
    before = x.position[2]
    nis = update(x, book, p, h[:m], residual, variance, gate, level)
    if sensor == filter_records.BAROMETER:
        book.pressure_pull += x.position[2] - before
        book.pressure_drag += x.position[2] - before
    count_update(x, book, p, sensor, nis, gate, residual, m, c)

    if sensor == filter_records.HEIGHT and nis > gate:
        leave_map(book, p, residual[0], c)
    if sensor == filter_records.GPS_POSITION:
        judge_fix(x, book, p, nis, residual, c)
        return not nis > gate or gps_is_back(book)
    if nis > gate:
        vote_on_attitude(x, book, p, c)
    if sensor == filter_records.GPS_VELOCITY and book.misfits[sensor] < FITS_AGAIN:
        believe_again(book)
    return True


@inner_kernel
def interpolate_imu(before: Any, after: Any, share: float, force: Any, rates: Any) -> None:
    """Interpolate force and rates (3,) between two rows of the IMU's log.

    After a gap only the later one counts.
    """
    if before.source != IMU:
        share = 1.0
    for i in range(3):
        force[i] = before.force[i] * (1.0 - share) + after.force[i] * share
        rates[i] = before.rates[i] * (1.0 - share) + after.rates[i] * share


@kernel
def advance(
    history: Any,
    measurements: Any,
    first: int,
    last: int,
    states: Any,
    books: Any,
    p: Any,
    c: Any,
    ground: Any,
) -> None:
    """Carry the filter from the IMU's row first - 1 to row last - 1, with the measurements between.

    `history`: a `History`, whose rows first … last - 1 are written. `measurements`: their log.
    `states` and `books`: records (1,), which with p become those of the last row.
    """
    imu = history.imu
    states[0] = history.x[first - 1]
    books[0] = history.book[first - 1]
    for i in range(ERRORS):
        for j in range(ERRORS):
            p[i, j] = history.p[first - 1, i, j]
    x = states[0]
    book = books[0]
    force = np.empty(3)
    rates = np.empty(3)
    h = np.zeros((6, ERRORS))
    residual = np.empty(6)
    variance = np.empty(6)
    cursor = history.cursor[first - 1]
    for k in range(first, last):
        before = imu[k - 1]
        after = imu[k]
        duration = after.time - before.time
        source = after.source
        if source != before.source and (source == ROTORS or before.source == ROTORS):
            begin_source(x, p, source, c)
        now = before.time
        while True:
            # to the next measurement, or the end of the step
            due = False
            target = after.time
            if cursor < measurements.shape[0]:
                due = measurements[cursor].time <= after.time + SAME_TIME
            if due:
                target = min(measurements[cursor].time, after.time)
            if target - now > SAME_TIME:
                middle = 0.5 * (now + target)
                interpolate_imu(before, after, (middle - before.time) / duration, force, rates)
                predict(x, book, p, target - now, force, rates, source, c)
                now = target
            if not due:
                break

            # motion at the measurement
            book.time = now
            if source != NOTHING:
                interpolate_imu(before, after, (now - before.time) / duration, force, rates)
                set_motion(x, book, force, rates)

            row = measurements[cursor]
            if row.kind == filter_records.KIND_HEIGHT:
                h[:] = 0.0
                sensor = height_innovation(x, book, p, row, c, ground, h, residual, variance)
                if sensor != NO_SENSOR:
                    fuse(x, book, p, sensor, h, residual, variance, c)
            else:
                for stage in range(2):
                    h[:] = 0.0
                    sensor = innovation(x, book, p, row, stage, c, h, residual, variance)
                    if sensor == NO_SENSOR:
                        break
                    if not fuse(x, book, p, sensor, h, residual, variance, c):
                        break
            cursor += 1

        book.time = after.time
        if source != NOTHING:
            set_motion(x, book, after.force, after.rates)
        if source == IMU:
            judge_imu(x, book, p, c)
        history.x[k] = x
        history.book[k] = book
        history.p[k] = p
        history.cursor[k] = cursor


@inner_kernel
def is_credible(values: Any) -> bool:
    """Return whether all of some numbers are of a possible size."""
    credible = True
    for n in range(values.size):
        credible &= abs(values[n]) < LARGEST  # False for NaN
    return credible


@kernel
def report(
    states: Any, books: Any, p: Any, lever: Any, position: Any, velocity: Any, covariance: Any
) -> bool:
    """Compute position and velocity (3,) of the body's origin, and their covariance (9, 9).

    The covariance includes the attitude. `states` and `books`: records (1,). `lever` (3,): of the
    IMU from the origin. Returns whether the estimate is credible.
    """
    x = states[0]
    book = books[0]
    r = attitude(x)
    imu = vector_of(lever)
    arm = rotated(r, imu)
    swing = rotated(r, cross(vector_of(book.rates), imu))

    # Jacobian over the errors
    j = np.zeros((9, ERRORS))
    for i in range(9):
        j[i, i] = 1.0
    add_skew(j, 0, ATTITUDE, 1.0, arm)
    add_skew(j, 3, ATTITUDE, 1.0, swing)
    for i in range(3):
        position[i] = x.position[i] - arm[i]
        velocity[i] = x.velocity[i] - swing[i]
        turn = cross(matrix_row(r, i), imu)
        j[3 + i, GYRO_BIAS] = -turn[0]
        j[3 + i, GYRO_BIAS + 1] = -turn[1]
        j[3 + i, GYRO_BIAS + 2] = -turn[2]

    # J P Jᵀ
    part = np.zeros((9, ERRORS))
    for i in range(9):
        for n in range(ERRORS):
            if j[i, n] != 0.0:
                add_scaled(part[i], j[i, n], p[n])
    covariance[:] = 0.0
    for i in range(9):
        for n in range(ERRORS):
            if j[i, n] != 0.0:
                add_scaled(covariance[i], j[i, n], part[:, n])
    symmetrise(covariance)

    moves = is_credible(velocity) and is_credible(book.rates)
    return is_credible(position) and is_credible(x.quaternion) and moves
