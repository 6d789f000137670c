"""Run of the filter over the logs of IMU and measurements, and its report for the body's origin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_amphibious.estimation import filter_layout as at
from rfly_amphibious.estimation.attitude_kernels import add_skew, attitude, rotate_vector
from rfly_amphibious.estimation.measurement_models import (
    expect_field,
    expect_gps_position,
    expect_height,
    expect_orientation,
    expect_pressure,
    expect_velocity,
    expect_wheels,
)
from rfly_amphibious.estimation.measurement_update import (
    bend_ground,
    count_update,
    judge_fix,
    leave_map,
    return_to_map,
    update,
)
from rfly_amphibious.estimation.prediction import predict
from rfly_amphibious.estimation.row_operations import add_scaled, symmetrise
from rfly_common.kernels.jit import inner_kernel, kernel

ROCKING = 0.1
"""m: springs and tyres give way to a body that rolls and pitches, m/s for each rad/s"""


@inner_kernel
def wheel_innovation(
    x: Any, row: Any, stage: int, c: Any, h: Any, residual: Any, variance: Any
) -> int:
    """Wheels that roll on the ground: speed along them, then none across; none at all where all
    stand.

    A wheel that touched down has to take up speed first, and tyres at the limit of their grip
    slide: how fast they turn tells nothing then.
    """
    wheels = c.radius.size
    rolls = np.zeros(wheels)
    radii = 0.0
    loaded = 0.0
    count = 0.0
    if x[at.TIME] - x[at.LOAD_TIME] <= c.load_age:
        for i in range(wheels):
            loaded += x[at.LOADS + i]
            if x[at.LOADS + i] >= c.wheel_load and x[at.TIME] - x[at.CONTACT + i] >= c.contact_time:
                rolls[i] = 1.0
                count += 1.0
    rocks = ROCKING * ROCKING * (x[at.RATES] ** 2 + x[at.RATES + 1] ** 2)
    slides = math.hypot(x[at.FORCE], x[at.FORCE + 1]) > c.grip * loaded / c.weight
    if stage == 0:
        turned = 0.0
        angles = at.LOG_VALUES + 2 * wheels
        for i in range(wheels):
            turned = max(turned, abs(row[angles + i] - x[at.STILL_ANGLE + i]) * c.radius[i])
        rate = math.sqrt(x[at.RATES] ** 2 + x[at.RATES + 1] ** 2 + x[at.RATES + 2] ** 2)
        upright = 1.0 - 2.0 * (x[at.QUATERNION + 1] ** 2 + x[at.QUATERNION + 2] ** 2)
        if slides or not (
            turned <= c.still_way and rate <= c.still_rate and loaded >= c.still_load * upright
        ):
            x[at.STILL_SINCE] = x[at.TIME]
            for i in range(wheels):
                x[at.STILL_ANGLE + i] = row[angles + i]
    if x[at.TIME] - x[at.STILL_SINCE] >= c.still_time - at.SAME_TIME:
        if stage > 0 or x[at.TIME] - x[at.LAST_STILL] < c.still_period - at.SAME_TIME:
            return at.NOTHING
        x[at.LAST_STILL] = x[at.TIME]
        for i in range(3):
            h[i, at.E_VELOCITY + i] = 1.0
            h[3 + i, at.E_GYRO + i] = -1.0
            residual[i] = -x[at.VELOCITY + i]
            residual[3 + i] = -x[at.RATES + i]
            variance[i] = c.still_speed * c.still_speed
            variance[3 + i] = c.still_gyro * c.still_gyro
        return at.STANDSTILL
    if (
        slides
        or count == 0.0
        or (stage == 1 and x[at.TIME] - x[at.LAST_SIDE] < c.side_period - at.SAME_TIME)
    ):
        return at.NOTHING
    expected = np.empty(2)
    expect_wheels(
        x, row[at.LOG_VALUES + wheels : at.LOG_VALUES + 2 * wheels], rolls, c, h, expected
    )
    if stage == 0:
        read = 0.0
        for i in range(wheels):
            radii += rolls[i] * c.radius[i]
            # counted against the body, rolled against the ground
            read += rolls[i] * c.radius[i] * (row[at.LOG_VALUES + i] + x[at.RATES + 1]) / count
        residual[0] = read - expected[0]
        variance[0] = c.wheel_noise * c.wheel_noise * radii * radii / (count * count * count)
        variance[0] += c.wheel_floor * c.wheel_floor + rocks
        return at.WHEEL_SPEED
    x[at.LAST_SIDE] = x[at.TIME]
    for n in range(at.ERRORS):
        h[0, n] = h[1, n]
    slip = c.side_slip + c.side_slip_rate * abs(x[at.FORCE + 1])
    residual[0] = -expected[1]
    variance[0] = c.side_noise * c.side_noise + rocks + (slip * expected[0]) ** 2
    return at.SIDE_SLIP


@inner_kernel
def innovation(x: Any, row: Any, stage: int, c: Any, h: Any, residual: Any, variance: Any) -> int:
    """Jacobian (6, 27), residual and variance (6,) of a row's measurement, no height; `stage`: its
    first or second.

    -> which sensor's it is; NOTHING where there is none.
    """
    h[:] = 0.0
    kind = int(row[at.LOG_KIND])
    if kind == at.KIND_JOINTS:
        return wheel_innovation(x, row, stage, c, h, residual, variance)
    if kind == at.KIND_GPS:
        if stage == 0:
            expect_gps_position(x, c.lever_gps, h, residual)
        else:
            expect_velocity(x, c.lever_gps, h, residual)
        for i in range(3):
            residual[i] = row[at.LOG_VALUES + 3 * stage + i] - residual[i]
            white = c.gps_white[i] if stage == 0 else c.gps_velocity
            variance[i] = white * white
        return at.GPS_POSITION if stage == 0 else at.GPS_VELOCITY
    if stage > 0:
        return at.NOTHING
    if kind == at.KIND_LOADS:
        for i in range(c.radius.size):
            x[at.LOADS + i] = row[at.LOG_VALUES + i]
            if x[at.LOADS + i] < c.wheel_load:
                x[at.CONTACT + i] = row[at.LOG_TIME]
        x[at.LOAD_TIME] = row[at.LOG_TIME]
        return at.NOTHING
    if kind == at.KIND_FIELD:
        expect_field(x, c.field, h, residual)
        for i in range(3):
            residual[i] = row[at.LOG_VALUES + i] - residual[i]
            variance[i] = c.field_white * c.field_white
        return at.MAGNETOMETER
    if kind == at.KIND_ORIENTATION:
        expect_orientation(x, row[at.LOG_VALUES : at.LOG_VALUES + 4], h, residual)
        for i in range(3):
            variance[i] = c.ahrs_white * c.ahrs_white
        return at.ORIENTATION
    expect_pressure(x, c.lever_baro, c.altitude, h, residual)
    variance[0] = c.pressure_white * c.pressure_white
    residual[0] = row[at.LOG_VALUES] - residual[0]
    return at.BAROMETER


@inner_kernel
def height_innovation(
    x: Any, p: Any, row: Any, c: Any, ground: Any, h: Any, residual: Any, variance: Any
) -> int:
    """As `innovation`, of a height above the ground."""
    h[:] = 0.0
    spread_x = max(0.05, math.sqrt(p[at.E_POSITION, at.E_POSITION]))
    spread_y = max(0.05, math.sqrt(p[at.E_POSITION + 1, at.E_POSITION + 1]))
    bent = expect_height(x, ground, c.lever_height, spread_x, spread_y, h, residual)
    residual[0] = row[at.LOG_VALUES] - residual[0]
    variance[0] = c.height_white * c.height_white
    bend_ground(x, p, bent)
    if x[at.OFF_MAP] != 0.0:
        return_to_map(x, p, h, residual, variance, c)
    return at.HEIGHT


@inner_kernel
def interpolate_imu(before: Any, after: Any, share: float, force: Any, rates: Any) -> None:
    """Specific force and rates (3,) between two rows of the IMU's log; after a gap only the later."""
    share = 1.0 if before[at.IMU_COASTS] != 0.0 else share
    for i in range(3):
        force[i] = before[at.IMU_FORCE + i] * (1.0 - share) + after[at.IMU_FORCE + i] * share
        rates[i] = before[at.IMU_RATES + i] * (1.0 - share) + after[at.IMU_RATES + i] * share


@inner_kernel
def set_motion(x: Any, force: Any, rates: Any) -> None:
    """Specific force and rates (3,) of the nominal state, without their biases."""
    for i in range(3):
        x[at.FORCE + i] = force[i] - x[at.FORCE_BIAS + i]
        x[at.RATES + i] = rates[i] - x[at.GYRO_BIAS + i]


@kernel
def advance(history: Any, first: int, last: int, x: Any, p: Any, c: Any, ground: Any) -> None:
    """From the IMU's row first - 1, where x and p are, to row last - 1, with the measurements on
    the way.

    `history`: a `History`, whose x, p and cursor are written at these rows.
    """
    imu = history.imu
    measurements = history.measurements
    force = np.empty(3)
    rates = np.empty(3)
    h = np.zeros((6, at.ERRORS))
    residual = np.empty(6)
    variance = np.empty(6)
    cursor = history.cursor[first - 1]
    for k in range(first, last):
        before = imu[k - 1]
        after = imu[k]
        begin = before[at.IMU_TIME]
        end = after[at.IMU_TIME]
        coasts = after[at.IMU_COASTS] != 0.0
        now = begin
        while True:
            due = (
                cursor < measurements.shape[0]
                and measurements[cursor, at.LOG_TIME] <= end + at.SAME_TIME
            )
            to = min(measurements[cursor, at.LOG_TIME], end) if due else end
            if to - now > at.SAME_TIME:
                interpolate_imu(
                    before, after, (0.5 * (now + to) - begin) / (end - begin), force, rates
                )
                predict(x, p, to - now, force, rates, coasts, c)
                now = to
            if not due:
                break
            x[at.TIME] = now
            if not coasts:
                interpolate_imu(before, after, (now - begin) / (end - begin), force, rates)
                set_motion(x, force, rates)
            row = measurements[cursor]
            is_height = row[at.LOG_KIND] == at.KIND_HEIGHT
            for stage in range(1 if is_height else 2):
                if is_height:
                    sensor = height_innovation(x, p, row, c, ground, h, residual, variance)
                else:
                    sensor = innovation(x, row, stage, c, h, residual, variance)
                if sensor == at.NOTHING:
                    break
                m = at.DEGREES[sensor]
                level = sensor == at.HEIGHT and c.ground_known
                gate = (
                    -1.0 if sensor == at.GPS_POSITION and x[at.GPS_REFUSED] != 0.0 else c.gates[m]
                )
                nis = update(x, p, h[:m], residual, variance, gate, level)
                count_update(x, p, sensor, nis, gate, residual, m, c.reacquire)
                if sensor == at.HEIGHT and nis > gate:
                    leave_map(x, p, residual[0], c)
                if sensor == at.GPS_POSITION:
                    judge_fix(x, p, nis, residual, c)
                    if nis > gate:  # nor is its velocity used
                        break
            cursor += 1
        x[at.TIME] = end
        if not coasts:
            set_motion(
                x, after[at.IMU_FORCE : at.IMU_FORCE + 3], after[at.IMU_RATES : at.IMU_RATES + 3]
            )
        history.x[k] = x
        history.p[k] = p
        history.cursor[k] = cursor


@kernel
def report(x: Any, p: Any, lever: Any, place: Any, velocity: Any, covariance: Any) -> None:
    """Place and velocity (3,) of the body's origin, `lever` (3,) being the IMU's from there, and
    (9, 9) of both and the attitude.
    """
    r = np.empty((3, 3))
    arm = np.empty(3)
    swing = np.empty(3)
    turned = np.empty(3)
    attitude(x, r)
    rotate_vector(r, lever, arm)
    swing[0] = x[at.RATES + 1] * lever[2] - x[at.RATES + 2] * lever[1]
    swing[1] = x[at.RATES + 2] * lever[0] - x[at.RATES] * lever[2]
    swing[2] = x[at.RATES] * lever[1] - x[at.RATES + 1] * lever[0]
    rotate_vector(r, swing, turned)
    j = np.zeros((9, at.ERRORS))
    for i in range(9):
        j[i, i] = 1.0
    add_skew(j, 0, at.E_ATTITUDE, 1.0, arm[0], arm[1], arm[2])
    add_skew(j, 3, at.E_ATTITUDE, 1.0, turned[0], turned[1], turned[2])
    for i in range(3):
        place[i] = x[at.POSITION + i] - arm[i]
        velocity[i] = x[at.VELOCITY + i] - turned[i]
        j[3 + i, at.E_GYRO] = -(r[i, 1] * lever[2] - r[i, 2] * lever[1])
        j[3 + i, at.E_GYRO + 1] = -(r[i, 2] * lever[0] - r[i, 0] * lever[2])
        j[3 + i, at.E_GYRO + 2] = -(r[i, 0] * lever[1] - r[i, 1] * lever[0])
    part = np.zeros((9, at.ERRORS))
    for i in range(9):
        for n in range(at.ERRORS):
            if j[i, n] != 0.0:
                add_scaled(part[i], j[i, n], p[n])
    covariance[:] = 0.0
    for i in range(9):
        for n in range(at.ERRORS):
            if j[i, n] != 0.0:
                add_scaled(covariance[i], j[i, n], part[:, n])
    symmetrise(covariance)
