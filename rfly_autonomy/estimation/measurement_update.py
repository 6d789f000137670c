# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Measurement update of the error-state Kalman filter: gate, gain, Joseph's form, injection."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_autonomy.estimation import filter_records
from rfly_autonomy.estimation.attitude_kernels import turn_in_world
from rfly_autonomy.estimation.consistency import count_misfit, reacquire_velocity
from rfly_autonomy.estimation.error_state import (
    AHRS_DRIFT,
    ATTITUDE,
    BARO_BIAS,
    ERRORS,
    FIELD_BIAS,
    FORCE_BIAS,
    GPS_DRIFT,
    GROUND_ERROR,
    GYRO_BIAS,
    POSITION,
    SLIP,
    VELOCITY,
)
from rfly_autonomy.estimation.row_operations import (
    add_outer,
    add_scaled,
    clear_error,
    scale,
    symmetrise,
)
from rfly_common.kernels.jit import inner_kernel, kernel
from rfly_common.kernels.vectors import vector_of

UNKNOWN_GROUND = 1e6
"""Variance of unknown ground, m²."""
DOUBTED_FIXES = 5.0
"""Surplus of fixes that do not fit from which a GPS is refused. It is accepted again after as many
fixes that fit, at most twice as many.
"""
FIXES_APART = 6.0
"""Largest difference between two fixes that agree, in standard deviations of their scatter."""


@kernel
def inject_error(x: Any, book: Any, d: Any) -> None:
    """Add an error d (27,) to the nominal state."""
    for i in range(3):
        x.position[i] += d[POSITION + i]
        x.velocity[i] += d[VELOCITY + i]
    turn_in_world(x, vector_of(d[ATTITUDE:]))

    # biases and drifts
    for i in range(3):
        x.gyro_bias[i] += d[GYRO_BIAS + i]
        x.force_bias[i] += d[FORCE_BIAS + i]
        x.gps_drift[i] += d[GPS_DRIFT + i]
        x.field_bias[i] += d[FIELD_BIAS + i]
        x.ahrs_drift[i] += d[AHRS_DRIFT + i]
    x.baro_bias += d[BARO_BIAS]
    x.ground_error += d[GROUND_ERROR]
    x.slip += d[SLIP]

    for i in range(3):
        book.rates[i] -= d[GYRO_BIAS + i]
        book.force[i] -= d[FORCE_BIAS + i]


@inner_kernel
def innovation_covariance(p: Any, h: Any, variance: Any, hp: Any, s: Any) -> None:
    """Compute H P -> hp (m, 27) and S = H P Hᵀ + R -> s (m, m)."""
    m = h.shape[0]
    for i in range(m):
        for j in range(ERRORS):
            if h[i, j] != 0.0:
                add_scaled(hp[i], h[i, j], p[j])
    for i in range(m):
        for j in range(m):
            total = variance[i] if i == j else 0.0
            for n in range(ERRORS):
                if h[j, n] != 0.0:
                    total += hp[i, n] * h[j, n]
            s[i, j] = total


@inner_kernel
def whiten(s: Any, residual: Any, low: Any) -> float:
    """Factorise S = L Lᵀ -> low (m, m). Return |L⁻¹ residual|², the innovation normalised."""
    m = s.shape[0]
    white = np.empty(m)
    nis = 0.0
    for i in range(m):
        # Cholesky
        for j in range(i + 1):
            total = 0.5 * (s[i, j] + s[j, i])
            for n in range(j):
                total -= low[i, n] * low[j, n]
            low[i, j] = math.sqrt(total) if i == j else total / low[j, j]

        # forward substitution
        total = residual[i]
        for n in range(i):
            total -= low[i, n] * white[n]
        white[i] = total / low[i, i]
        nis += white[i] * white[i]
    return nis


@inner_kernel
def solve_gain(low: Any, gain: Any) -> None:
    """Replace `gain` (m, 27), which is H P, by the transposed Kalman gain (L Lᵀ)⁻¹ H P."""
    m = low.shape[0]
    for i in range(m):
        for n in range(i):
            add_scaled(gain[i], -low[i, n], gain[n])
        scale(gain[i], 1.0 / low[i, i])
    for k in range(m):
        i = m - 1 - k
        for n in range(i + 1, m):
            add_scaled(gain[i], -low[n, i], gain[n])
        scale(gain[i], 1.0 / low[i, i])


@inner_kernel
def is_vertical(n: int) -> bool:
    """Return whether a height may correct error n: altitude, climb and what is bound to them."""
    if FORCE_BIAS <= n < FORCE_BIAS + 3:
        return True
    return n in (POSITION + 2, VELOCITY + 2, GPS_DRIFT + 2, BARO_BIAS, GROUND_ERROR)


@inner_kernel
def reduce_covariance(p: Any, h: Any, variance: Any, hp: Any, gain: Any) -> None:
    """Replace p by (I - K H) P (I - K H)ᵀ + K R Kᵀ, Joseph's form, which holds for any gain."""
    m = h.shape[0]

    # A = (I - K H) P
    for i in range(m):
        add_outer(p, -gain[i], hp[i])

    # A + (K R - A Hᵀ) Kᵀ
    back = np.zeros((m, ERRORS))
    for i in range(m):
        add_scaled(back[i], variance[i], gain[i])
        for n in range(ERRORS):
            if h[i, n] != 0.0:
                add_scaled(back[i], -h[i, n], p[:, n])
    for i in range(m):
        add_outer(p, back[i], gain[i])
    symmetrise(p)


@kernel
def update(
    x: Any,
    book: Any,
    p: Any,
    h: Any,
    residual: Any,
    variance: Any,
    gate: float,
    vertical_only: bool,
) -> float:
    """Use a measurement of m numbers: Jacobian h (m, 27), residuals and variances (m,).

    Returns its normalised innovation squared; above `gate` nothing changes. `vertical_only`: level
    position, attitude and all errors bound to them stay; the covariance allows for that.
    """
    m = h.shape[0]
    hp = np.zeros((m, ERRORS))
    s = np.empty((m, m))
    low = np.zeros((m, m))
    innovation_covariance(p, h, variance, hp, s)
    nis = whiten(s, residual, low)
    if not nis <= gate:  # also for NaN
        return nis

    # the gain
    gain = hp.copy()
    solve_gain(low, gain)
    if vertical_only:
        for n in range(ERRORS):
            if not is_vertical(n):
                gain[:, n] = 0.0

    # correction of covariance and state
    d = np.zeros(ERRORS)
    for i in range(m):
        add_scaled(d, residual[i], gain[i])
    reduce_covariance(p, h, variance, hp, gain)
    inject_error(x, book, d)
    return nis


@inner_kernel
def count_update(
    x: Any, book: Any, p: Any, sensor: int, nis: float, gate: float, residual: Any, m: int, c: Any
) -> None:
    """Count a measurement. Believe GPS velocity again after it has not fitted for too long."""
    weight = count_misfit(book, sensor, not nis <= c.return_gate, c)
    book.innovation[sensor] = nis
    first = filter_records.FIRST_NUMBERS[sensor]
    for i in range(m):
        book.residual[first + i] = residual[i]
    if nis <= gate:
        book.accepted[sensor] += 1.0
        book.innovation_sum[sensor] += nis
        book.last_accepted[sensor] = book.time
        book.doubted_since[sensor] = book.time
        return

    book.rejected[sensor] += 1.0
    if sensor == filter_records.GPS_VELOCITY:
        reacquire_velocity(x, book, p, residual, weight, c)


@kernel
def bend_ground(book: Any, p: Any, bend_variance: float) -> None:
    """Set the variance (m²) of the map's ground about its mean plane around the vehicle.

    A height says this much about the ground's error, as long as the vehicle stays in such a place
    (`predict`).
    """
    p[GROUND_ERROR, GROUND_ERROR] += max(0.0, bend_variance - book.bend_variance)
    book.bend_variance = bend_variance


@kernel
def leave_map(book: Any, p: Any, residual: float, c: Any) -> None:
    """Expect a roof or other ground of unknown height below, as a height does not fit the map."""
    book.off_map = 1.0 if c.ground_known else 0.0
    p[GROUND_ERROR, GROUND_ERROR] += min(residual * residual, UNKNOWN_GROUND)


@inner_kernel
def return_to_map(x: Any, book: Any, p: Any, h: Any, residual: Any, variance: Any, c: Any) -> None:
    """Expect the map's ground below again if a height fits it.

    `h`, `residual` and `variance` belong to the height; the residual becomes that from the map.
    """
    residual_to_map = residual[0] - x.ground_error
    error = c.markov_sigma[GROUND_ERROR] ** 2 + book.bend_variance
    spread = variance[0] + error
    for i in range(GROUND_ERROR):
        for n in range(GROUND_ERROR):
            spread += h[0, i] * p[i, n] * h[0, n]
    if not residual_to_map * residual_to_map <= c.return_gate * spread:
        return

    book.off_map = 0.0
    x.ground_error = 0.0
    residual[0] = residual_to_map
    clear_error(p, GROUND_ERROR)
    p[GROUND_ERROR, GROUND_ERROR] = error


@inner_kernel
def judge_fix(x: Any, book: Any, p: Any, nis: float, residual: Any, c: Any) -> None:
    """Refuse a GPS whose positions do not fit, until as many fit well again.

    Meanwhile the errors grow as without it. If its fixes agree with each other for long enough, its
    position is taken over all the same, and the earlier knowledge of the position is dropped.
    """
    refused = book.gps_refused != 0.0
    fits = nis <= (c.return_gate if refused else c.gates[3])
    book.gps_doubt += -1.0 if fits else 1.0
    book.gps_doubt = min(max(book.gps_doubt, 0.0), 2.0 * DOUBTED_FIXES)

    # fix against fix
    agrees = True
    for i in range(3):
        step = abs(residual[i] - book.gps_offset[i])
        agrees = agrees and step <= FIXES_APART * c.gps_white[i]
        book.gps_offset[i] = residual[i]
    if not agrees or not (refused or book.gps_doubt > 0.0):
        book.gps_agrees_since = book.time

    if not refused:
        book.gps_refused = 1.0 if book.gps_doubt >= DOUBTED_FIXES else 0.0
        return
    resets = not fits and book.time - book.gps_agrees_since > c.gps_reset
    if resets:
        take_over_gps(x, book, p, residual, c)
    if resets or book.gps_doubt == 0.0:
        book.gps_refused = 0.0
        book.gps_doubt = 0.0


@inner_kernel
def take_over_gps(x: Any, book: Any, p: Any, residual: Any, c: Any) -> None:
    """Make position and drift of the GPS as uncertain as the last fix is off."""
    book.gps_resets += 1.0
    for i in range(3):
        clear_error(p, POSITION + i)
        clear_error(p, GPS_DRIFT + i)
    for i in range(3):
        drift_variance = c.markov_sigma[GPS_DRIFT + i] ** 2
        x.gps_drift[i] = 0.0
        p[GPS_DRIFT + i, GPS_DRIFT + i] = drift_variance
        p[POSITION + i, POSITION + i] = residual[i] ** 2 + drift_variance
