# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Consistency of the sensors with each other: who contradicts the others is outvoted.

Theory of operation.

- Height against climb. A second, small filter of altitude and climb knows IMU, barometer and GPS
  velocity but no height. The lag is the sum of what the height's altitude moved otherwise than that
  climb. It fades with LAG_TIME, and each step is bounded, so that a roof's edge matters little. A
  height whose lag exceeds its deviation LAG_LIMIT times is refused, and altitude and climb of the
  estimate begin anew from the small filter. It is used again after some way up or down without a
  lag. On the ground nothing is judged. PX4's EKF2 has such a check, too (pull requests 19340, 22117
  and 19904).
- Vote about the attitude. If most readings of most of magnetometer, orientation and GPS velocity
  have not fitted well for about a second, the prediction is wrong, as after a step of the
  gyroscope's bias. Attitude, velocity and biases of the IMU are estimated anew. If only the GPS
  velocity does not fit, velocity and the accelerometer's bias are. With neither magnetometer nor
  GPS the orientation decides alone: rates and orientation are of one IMU, which contradicts itself.
- A GPS that comes back after some seconds may find a prediction that went wrong meanwhile. If
  neither its positions nor its velocities fit, the latter are judged all the same.
- A part of the IMU whose estimated bias is far beyond what is usual is at fault.
- Pressure against climb. Innovations of a sound barometer have the mean 0. If it is clearly another
  one while the GPS velocity, or a vehicle that stands, confirms the climb, the barometer's bias is
  estimated anew, and what it has pulled the altitude along is taken back. Weather gets a new bias
  this way, too; a barometer whose bias changes faster than weather is at fault.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_autonomy.estimation import filter_records
from rfly_autonomy.estimation.error_state import (
    ATTITUDE,
    BARO_BIAS,
    ERRORS,
    FORCE_BIAS,
    GYRO_BIAS,
    POSITION,
    VELOCITY,
)
from rfly_autonomy.estimation.filter_records import LONGEST_GAP
from rfly_autonomy.estimation.row_operations import clear_error
from rfly_autonomy.estimation.speed_consistency import (
    FREE_GATE,
    FREE_NOISE,
    GPS_IS_WRONG,
    IMU_IS_WRONG,
    LAG_TIME,
    LARGEST_SHARE,
    WHEELS_SLIDE,
    begin_free_velocity,
    begin_slide,
    forget_velocity_off,
    verdict,
)
from rfly_common.kernels.jit import inner_kernel
from rfly_common.physics import GRAVITY

LAG_LIMIT = 4.0
"""Lag in standard deviations above which a height contradicts the climb."""
LAG_AGREES = 2.0
"""The same below which it agrees with the climb."""
LAG_FLOOR = 0.05
"""Standard deviation of a lag that is left with perfect sensors, m."""
LAG_STEP = 5.0
"""Largest step of a height, in standard deviations of its noise, that counts whole."""
FASTEST_STEP = 2.0
"""Its increase for each second between two heights, m/s."""
AGREED_WAY = 1.0
"""Way up and down without a lag after which a refused height is used again, m."""

OUTVOTED = 0.4
"""Share of readings that do not fit well from which an aid votes against the prediction."""
LONGEST_DOUBT = 5.0
"""Time of rejected readings after which an aid is the one that is wrong, and votes no more, s: a
wrong prediction is outvoted sooner, by a GPS of 1 Hz, too.
"""
ALONE = 0.5
"""The same for the GPS velocity alone."""
STEADY_SHARE = 0.3
"""Square of the mean innovation of a GPS velocity as a share of the mean square below which they
are noise: 0.08 remains of white noise, and a step reaches half when it has not fitted for long.
"""
LIKELY_NOISE = 0.2
"""The same below which they may be noise, for readings of little weight: the next one decides."""
LIKELY_OF_WEIGHT = 0.7
"""Its increase with the weight of a reading: of white noise 0.3 remains at 1 Hz."""
LARGEST_FORCE_ERROR = 10.0
"""Error of the IMU's acceleration that is thought possible, m/s²."""
UNKNOWN_ATTITUDE = 0.3
"""Standard deviation of an attitude after the vote, rad."""
GYRO_STEP = 0.3
"""Standard deviation of the gyroscope's bias after the vote, rad/s."""
UNKNOWN_SPEED = 0.3
"""Standard deviation of the velocity after the vote beyond the GPS's last innovation, m/s."""
UNKNOWN_WAY = 1.0
"""Standard deviation of the position that the vote adds, m."""

PRESSURE_TIME = 2.0
"""Time over which innovations of pressures are averaged, s."""
CLEARLY_OFF = 3.0
"""Their mean in standard deviations from which the barometer's bias is estimated anew."""
DRIFT_TIME = 10.0
"""Longer time over which they are averaged, too, to find a slow drift, s."""
DRIFTS = 3.0
"""That mean in standard deviations of the mean of white noise from which the pressure drifts."""
UNKNOWN_BIAS = 10.0
"""Standard deviation of that bias then, in those of the barometer's noise."""
KNOWN_BIAS = 0.3
"""The same below which the bias is known well enough to judge the barometer by."""
CLIMB_TIME = 1.0
"""Time over which innovations of the GPS's climb are averaged, s."""
CLIMB_FITS = 2.5
"""Their mean in standard deviations up to which the GPS confirms the climb."""
WEATHER_RATE = 1.5
"""Fastest change of the air's pressure, Pa/s: the front of a thunderstorm has 1 Pa/s."""
STEP_SHARE = 1.2
"""Step of the barometer's bias beyond that, in standard deviations of its noise, that is a fault.
"""

BIASED = 4.0
"""Bias in its usual standard deviations above which a part of the IMU is at fault."""
UNBIASED = 2.0
"""The same below which it is sound again."""


@inner_kernel
def predict_climb(book: Any, dt: float, pull: float, noise: float) -> None:
    """Carry the small filter on by dt seconds, with an acceleration (m/s²) and its variance."""
    book.free_altitude += dt * book.free_climb + 0.5 * dt * dt * pull
    book.free_climb += dt * pull
    book.free_way += dt * book.free_climb
    book.free_p[0] += dt * (2.0 * book.free_p[1] + dt * book.free_p[2])
    book.free_p[1] += dt * book.free_p[2]
    book.free_p[2] += noise + FREE_NOISE * FREE_NOISE * dt


@inner_kernel
def correct_climb(book: Any, residual: float, variance: float, climbs: bool) -> None:
    """Correct the small filter by an altitude (m), or by a climb (m/s)."""
    here = 1 if climbs else 0
    spread = book.free_p[2 * here] + variance
    if residual * residual > FREE_GATE * spread:
        return
    altitude_gain = book.free_p[here] / spread
    climb_gain = book.free_p[1 + here] / spread
    book.free_altitude += altitude_gain * residual
    book.free_climb += climb_gain * residual

    # P - K S Kᵀ
    book.free_p[0] -= altitude_gain * altitude_gain * spread
    book.free_p[1] -= altitude_gain * climb_gain * spread
    book.free_p[2] -= climb_gain * climb_gain * spread


@inner_kernel
def judge_height(x: Any, book: Any, p: Any, altitude: float, on_ground: bool, c: Any) -> None:
    """Refuse heights that contradict the climb, until they agree with it again.

    `altitude`: that of the IMU by the height and the ground below it, m.
    """
    step = altitude - book.height_altitude - book.free_way
    gap = book.time - book.height_time
    way = abs(book.free_way)
    book.height_altitude = altitude
    book.height_time = book.time
    book.free_way = 0.0
    if on_ground or gap > LONGEST_GAP:
        book.height_lag = 0.0
        return

    most = LAG_STEP * c.height_white + FASTEST_STEP * gap
    book.height_lag *= math.exp(-gap / LAG_TIME)
    book.height_lag += min(max(step, -most), most)

    # noise, climb and the slope of unknown ground
    variance = 2.0 * c.height_white * c.height_white + LAG_FLOOR * LAG_FLOOR
    variance += LAG_TIME * LAG_TIME * book.free_p[2] + book.bend_variance
    if not c.ground_known or book.off_map != 0.0:
        slope = c.ground_slope * LAG_TIME * math.hypot(x.velocity[0], x.velocity[1])
        variance += slope * slope

    lag = book.height_lag * book.height_lag
    if book.height_refused != 0.0:
        book.height_way = book.height_way + way if lag < LAG_AGREES**2 * variance else 0.0
        book.height_refused = 1.0 if book.height_way < AGREED_WAY else 0.0
    elif lag > LAG_LIMIT**2 * variance:
        book.height_refused = 1.0
        book.height_way = 0.0
        take_over_climb(x, book, p)


@inner_kernel
def take_over_climb(x: Any, book: Any, p: Any) -> None:
    """Begin anew with altitude and climb, which a wrong height has dragged along."""
    spread = p[POSITION + 2, POSITION + 2] + book.height_lag * book.height_lag
    clear_error(p, POSITION + 2)
    clear_error(p, VELOCITY + 2)
    p[POSITION + 2, POSITION + 2] = spread
    p[VELOCITY + 2, VELOCITY + 2] = book.free_p[2]
    x.velocity[2] = book.free_climb


@inner_kernel
def weight_of_reading(book: Any, sensor: int, c: Any) -> float:
    """Return the weight of a sensor's reading in the averages of those that do not fit."""
    gap = min(book.time - book.last_measured[sensor], LONGEST_GAP)
    return min(-math.expm1(-gap / c.reacquire), LARGEST_SHARE)


@inner_kernel
def longest_gap(sensor: int, c: Any) -> float:
    """Return the time between two readings of a sensor above which it was away, s."""
    return c.gps_gap if sensor == filter_records.GPS_VELOCITY else LONGEST_GAP


@inner_kernel
def count_misfit(book: Any, sensor: int, misfits: bool, c: Any) -> float:
    """Average the share of a sensor's readings that do not fit well; return this one's weight."""
    weight = weight_of_reading(book, sensor, c)
    if book.time - book.last_measured[sensor] > longest_gap(sensor, c):
        book.doubted_since[sensor] = book.time
    book.last_measured[sensor] = book.time
    share = 1.0 if misfits else 0.0
    book.misfits[sensor] += weight * (share - book.misfits[sensor])
    return weight


@inner_kernel
def reacquire_velocity(x: Any, book: Any, p: Any, residual: Any, weight: float, c: Any) -> None:
    """Believe a GPS velocity that has not fitted for long, unless it is the one that is wrong.

    A biased force may be the cause. Innovations that contradict each other are noise of the GPS.
    Meanwhile the position becomes as uncertain as a wrong IMU may have moved it.
    `weight`: of this reading in the averages.
    """
    if book.gps_velocity_refused != 0.0:
        return
    since = min(book.time - book.last_accepted[filter_records.GPS_VELOCITY], c.gps_gap)
    for i in range(3):
        speed = min(abs(residual[i]), LARGEST_FORCE_ERROR * since)
        p[POSITION + i, POSITION + i] += (0.5 * since * speed) ** 2
    if book.misfits[filter_records.GPS_VELOCITY] <= ALONE:
        return
    mean = book.velocity_off[0] ** 2 + book.velocity_off[1] ** 2 + book.velocity_off[2] ** 2
    if mean < STEADY_SHARE * book.velocity_off_square:
        book.gps_velocity_refused = 1.0
        return
    likely = LIKELY_NOISE + LIKELY_OF_WEIGHT * weight
    if book.may_step != 0.0 or mean < likely * book.velocity_off_square:
        return
    wrong = verdict(book, residual, c)
    if wrong == GPS_IS_WRONG:
        book.gps_velocity_refused = 1.0
    elif wrong == WHEELS_SLIDE:
        begin_slide(x, book, p)
    if wrong != IMU_IS_WRONG:
        return
    variance = book.free_variance + residual[0] ** 2 + residual[1] ** 2
    begin_free_velocity(x, book, residual, variance)
    book.realigned_at = book.time
    forget_velocity_off(book)
    if gps_is_back(book):
        use_gps_again(book, p)
    change = 0.0
    for i in range(3):
        p[VELOCITY + i, VELOCITY + i] += residual[i] * residual[i]
        change += residual[i] * residual[i]
    for i in range(3):
        p[FORCE_BIAS + i, FORCE_BIAS + i] += change / (LAG_TIME * LAG_TIME)


@inner_kernel
def vote_on_attitude(x: Any, book: Any, p: Any, c: Any) -> None:
    """Estimate the motion anew if most of the sensors that see the attitude reject it."""
    voters = 0
    against = 0
    for sensor in (
        filter_records.MAGNETOMETER,
        filter_records.ORIENTATION,
        filter_records.GPS_VELOCITY,
    ):
        refused = sensor == filter_records.GPS_VELOCITY and book.gps_velocity_refused != 0.0
        refused |= book.time - book.doubted_since[sensor] > LONGEST_DOUBT
        if book.time - book.last_measured[sensor] < longest_gap(sensor, c) and not refused:
            voters += 1
            against += 1 if book.misfits[sensor] > OUTVOTED else 0
    alone = voters == 1 and book.misfits[filter_records.ORIENTATION] > OUTVOTED
    if (against < 2 or 2 * against <= voters) and not (against == 1 and alone):
        return
    align_anew(x, book, p, c)


@inner_kernel
def align_anew(x: Any, book: Any, p: Any, c: Any) -> None:
    """Estimate attitude, velocity and biases of the IMU anew."""
    # a wrong attitude leads gravity astray
    orientation = filter_records.FIRST_NUMBERS[filter_records.ORIENTATION]
    angle = 0.0
    for i in range(3):
        angle += book.residual[orientation + i] ** 2
    since = book.time - book.last_accepted[filter_records.ORIENTATION]
    since = min(since, LONGEST_DOUBT)
    astray = 0.5 * GRAVITY * math.sqrt(angle) * since

    # the velocity by the GPS, or the earlier one
    speed_variance = UNKNOWN_SPEED * UNKNOWN_SPEED
    innovation = np.zeros(3)
    variance = np.empty(3)
    unheard = book.time - book.last_measured[filter_records.GPS_VELOCITY]
    hears_gps = unheard < c.gps_gap and book.gps_velocity_refused == 0.0
    first = filter_records.FIRST_NUMBERS[filter_records.GPS_VELOCITY]
    for i in range(3):
        if hears_gps:
            innovation[i] = book.residual[first + i]
            variance[i] = innovation[i] * innovation[i] + speed_variance
        else:
            variance[i] = p[VELOCITY + i, VELOCITY + i] + astray * astray + speed_variance
    free_variance = speed_variance if hears_gps else max(variance[0], variance[1])
    begin_free_velocity(x, book, innovation, free_variance)

    book.realigned_at = book.time
    for sensor in range(len(filter_records.SENSORS)):
        book.misfits[sensor] = 0.0
    forget_velocity_off(book)
    for i in range(3):
        clear_error(p, VELOCITY + i)
        clear_error(p, ATTITUDE + i)
        clear_error(p, GYRO_BIAS + i)
        clear_error(p, FORCE_BIAS + i)
    for i in range(3):
        p[VELOCITY + i, VELOCITY + i] = variance[i]
        p[ATTITUDE + i, ATTITUDE + i] = UNKNOWN_ATTITUDE * UNKNOWN_ATTITUDE
        p[GYRO_BIAS + i, GYRO_BIAS + i] = GYRO_STEP * GYRO_STEP
        p[FORCE_BIAS + i, FORCE_BIAS + i] = c.markov_sigma[FORCE_BIAS + i] ** 2
        p[POSITION + i, POSITION + i] += UNKNOWN_WAY * UNKNOWN_WAY
        if not hears_gps:
            p[POSITION + i, POSITION + i] += (astray * since / 3.0) ** 2
    if book.gps_refused != 0.0 or gps_is_back(book):
        use_gps_again(book, p)


@inner_kernel
def gps_is_back(book: Any) -> bool:
    """Return whether the GPS was away until lately, so that the prediction may be wrong."""
    return book.time - book.gps_back_at < LONGEST_DOUBT


@inner_kernel
def use_gps_again(book: Any, p: Any) -> None:
    """Use the GPS's positions, as not they were wrong: the position may be as far off as they."""
    book.gps_refused = 0.0
    book.gps_doubt = 0.0
    for i in range(3):
        p[POSITION + i, POSITION + i] += book.gps_offset[i] * book.gps_offset[i]


@inner_kernel
def is_biased(biased: float, bias: Any, p: Any, first: int, usual: Any) -> float:
    """Return 1 if a bias (3,), whose errors begin at `first`, is beyond its usual size, else 0.

    `biased`: the same before.
    """
    for i in range(3):
        most = UNBIASED * usual[i]
        if biased == 0.0:
            most = BIASED * usual[i] + 2.0 * math.sqrt(p[first + i, first + i])
        if abs(bias[i]) > most:
            return 1.0
    return 0.0


@inner_kernel
def judge_imu(x: Any, book: Any, p: Any, c: Any) -> None:
    """Find the parts of the IMU that are biased."""
    book.gyro_biased = is_biased(book.gyro_biased, x.gyro_bias, p, GYRO_BIAS, c.gyro_usual)
    book.force_biased = is_biased(book.force_biased, x.force_bias, p, FORCE_BIAS, c.force_usual)


@inner_kernel
def average_velocity(book: Any, residual: Any, c: Any) -> None:
    """Average the innovation of the GPS velocity, (3,), m/s, and its square."""
    share = weight_of_reading(book, filter_records.GPS_VELOCITY, c)
    square = 0.0
    for i in range(3):
        book.velocity_off[i] += share * (residual[i] - book.velocity_off[i])
        square += residual[i] * residual[i]
    book.velocity_off_square += share * (square - book.velocity_off_square)


@inner_kernel
def average_climb(x: Any, book: Any, p: Any, residual: float, variance: float) -> None:
    """Average the innovation of the GPS's climb, m/s, to see whether it confirms the estimate."""
    gap = min(book.time - book.last_measured[filter_records.GPS_VELOCITY], LONGEST_GAP)
    share = -math.expm1(-gap / CLIMB_TIME)
    book.climb_apart += share * (residual - book.climb_apart)
    spread = variance * share / (2.0 - share) + p[VELOCITY + 2, VELOCITY + 2]
    fits = book.climb_apart * book.climb_apart < CLIMB_FITS * CLIMB_FITS * spread
    book.climb_fits = 1.0 if fits and book.gps_velocity_refused == 0.0 else 0.0


@inner_kernel
def climb_is_confirmed(book: Any, c: Any) -> bool:
    """Return whether something else than the barometer shows that the climb is right."""
    if book.time - book.realigned_at < LONGEST_GAP:
        return False
    if book.time - book.last_standstill < LONGEST_GAP:
        return True
    heard = book.time - book.last_measured[filter_records.GPS_VELOCITY] < c.gps_gap
    return heard and book.climb_fits != 0.0


@inner_kernel
def judge_pressure(x: Any, book: Any, p: Any, h: Any, residual: Any, noise: float, c: Any) -> None:
    """Estimate the barometer's bias anew if it is clearly off, and find out whether it is at fault.

    `h`: Jacobian of the pressure; `residual`: its innovation, Pa, which is corrected if the
    altitude is. `noise`: the barometer's variance, Pa².
    """
    gap = min(book.time - book.last_measured[filter_records.BAROMETER], LONGEST_GAP)
    share = -math.expm1(-gap / PRESSURE_TIME)
    loud = LAG_STEP * math.sqrt(noise)
    apart = min(max(residual[0], -loud), loud)
    book.pressure_apart += share * (apart - book.pressure_apart)
    book.pressure_pull *= 1.0 - share
    slow_share = -math.expm1(-gap / DRIFT_TIME)
    book.pressure_drift += slow_share * (apart - book.pressure_drift)
    book.pressure_drag *= 1.0 - slow_share

    spread = noise * share / (2.0 - share)
    for i in range(ERRORS):
        if h[0, i] != 0.0:
            for n in range(ERRORS):
                spread += h[0, i] * p[i, n] * h[0, n]
    off = book.pressure_apart * book.pressure_apart > CLEARLY_OFF * CLEARLY_OFF * spread
    slow_spread = noise * slow_share / (2.0 - slow_share)
    drifts = book.pressure_drift * book.pressure_drift > DRIFTS * DRIFTS * slow_spread
    if (off or drifts) and climb_is_confirmed(book, c):
        pull = book.pressure_pull if off else book.pressure_drag
        begin_pressure_bias(x, book, p, h, residual, noise, pull)

    # slow changes are usual
    if p[BARO_BIAS, BARO_BIAS] > KNOWN_BIAS * KNOWN_BIAS * noise:
        return
    change = x.baro_bias - book.usual_pressure_bias
    most = WEATHER_RATE * PRESSURE_TIME + STEP_SHARE * math.sqrt(noise)
    if book.pressure_stepped != 0.0:
        book.pressure_stepped = 1.0 if abs(change) > 0.5 * most else 0.0
    elif abs(change) > most:
        book.pressure_stepped = 1.0
    else:
        book.usual_pressure_bias += share * change


@inner_kernel
def begin_pressure_bias(
    x: Any, book: Any, p: Any, h: Any, residual: Any, noise: float, pull: float
) -> None:
    """Begin anew with the barometer's bias, and take back what it has pulled the altitude, m."""
    x.position[2] -= pull
    residual[0] += h[0, POSITION + 2] * pull
    p[POSITION + 2, POSITION + 2] += pull * pull
    clear_error(p, BARO_BIAS)
    p[BARO_BIAS, BARO_BIAS] = UNKNOWN_BIAS * UNKNOWN_BIAS * noise + residual[0] * residual[0]
    book.pressure_apart = 0.0
    book.pressure_pull = 0.0
    book.pressure_drift = 0.0
    book.pressure_drag = 0.0
