"""Measurement update of the error-state Kalman filter: gate, gain, Joseph's form, injection of the
error.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_amphibious.estimation import filter_layout as at
from rfly_amphibious.estimation.attitude_kernels import rotate_attitude
from rfly_amphibious.estimation.row_operations import add_outer, add_scaled, scale, symmetrise
from rfly_common.kernels.jit import inner_kernel, kernel

UNKNOWN_GROUND = 1e6
"""m², variance of a ground of which nothing is known"""
DOUBTED_FIXES = 5.0
"""that do not fit, more than do, from which on a GPS is refused; it comes back after as many that
fit, at most twice
"""
FIXES_APART = 6.0
"""standard deviations of its scatter, within which the difference from a fix to the next agrees"""


@kernel
def inject_error(x: Any, d: Any) -> None:
    """The nominal state takes over the error d (27,)."""
    for i in range(3):
        x[at.POSITION + i] += d[at.E_POSITION + i]
        x[at.VELOCITY + i] += d[at.E_VELOCITY + i]
    rotate_attitude(x, d[at.E_ATTITUDE], d[at.E_ATTITUDE + 1], d[at.E_ATTITUDE + 2], True)
    for i in range(at.ERRORS - at.E_GYRO):
        x[at.GYRO_BIAS + i] += d[at.E_GYRO + i]
    for i in range(3):
        x[at.RATES + i] -= d[at.E_GYRO + i]
        x[at.FORCE + i] -= d[at.E_FORCE + i]


@kernel
def update(
    x: Any, p: Any, h: Any, residual: Any, variance: Any, gate: float, vertical_only: bool
) -> float:
    """One measurement of m numbers: Jacobian h (m, 27), residuals and variances (m,); Joseph's
    form.

    Its normalised innovation squared; above `gate` nothing changes. `vertical_only`: level
    position, attitude and what is bound to them stay as they are; the covariance allows for that.
    """
    m = h.shape[0]
    hp = np.zeros((m, at.ERRORS))
    s = np.empty((m, m))
    low = np.zeros((m, m))
    for i in range(m):
        for j in range(at.ERRORS):
            if h[i, j] != 0.0:
                add_scaled(hp[i], h[i, j], p[j])
    for i in range(m):
        for j in range(m):
            total = variance[i] if i == j else 0.0
            for n in range(at.ERRORS):
                if h[j, n] != 0.0:
                    total += hp[i, n] * h[j, n]
            s[i, j] = total
    white = np.empty(m)
    nis = 0.0
    for i in range(m):
        for j in range(i + 1):
            total = 0.5 * (s[i, j] + s[j, i])
            for n in range(j):
                total -= low[i, n] * low[j, n]
            low[i, j] = math.sqrt(total) if i == j else total / low[j, j]
        total = residual[i]
        for n in range(i):
            total -= low[i, n] * white[n]
        white[i] = total / low[i, i]
        nis += white[i] * white[i]
    if not nis <= gate:
        return nis
    # gain' = S⁻¹ (H P), row by row
    gain = hp.copy()
    for i in range(m):
        for n in range(i):
            add_scaled(gain[i], -low[i, n], gain[n])
        scale(gain[i], 1.0 / low[i, i])
    for k in range(m):
        i = m - 1 - k
        for n in range(i + 1, m):
            add_scaled(gain[i], -low[n, i], gain[n])
        scale(gain[i], 1.0 / low[i, i])
    if vertical_only:
        for i in range(m):
            for n in range(at.ERRORS):
                kept = n in (
                    at.E_POSITION + 2,
                    at.E_VELOCITY + 2,
                    at.E_GPS + 2,
                    at.E_BARO,
                    at.E_GROUND,
                )
                if not (kept or at.E_FORCE <= n < at.E_FORCE + 3):
                    gain[i, n] = 0.0
    d = np.zeros(at.ERRORS)
    back = np.zeros((m, at.ERRORS))
    for i in range(m):
        add_scaled(d, residual[i], gain[i])
    # (I - K H) P (I - K H)ᵀ + K R Kᵀ = A + (K R - A Hᵀ) Kᵀ with A = (I - K H) P
    for i in range(m):
        add_outer(p, -gain[i], hp[i])
    for i in range(m):
        add_scaled(back[i], variance[i], gain[i])
        for n in range(at.ERRORS):
            if h[i, n] != 0.0:
                add_scaled(back[i], -h[i, n], p[:, n])
    for i in range(m):
        add_outer(p, back[i], gain[i])
    symmetrise(p)
    inject_error(x, d)
    return nis


@inner_kernel
def count_update(
    x: Any, p: Any, sensor: int, nis: float, gate: float, residual: Any, m: int, reacquire: float
) -> None:
    """Counts a measurement. A speed that was rejected for too long is believed again."""
    x[at.INNOVATION + sensor] = nis
    if nis <= gate:
        x[at.ACCEPTED + sensor] += 1.0
        x[at.INNOVATION_SUM + sensor] += nis
        x[at.LAST_ACCEPTED + sensor] = x[at.TIME]
        return
    x[at.REJECTED + sensor] += 1.0
    if sensor == at.GPS_VELOCITY and x[at.TIME] - x[at.LAST_ACCEPTED + sensor] > reacquire:
        for i in range(m):
            p[at.E_VELOCITY + i, at.E_VELOCITY + i] += residual[i] * residual[i]


@kernel
def bend_ground(x: Any, p: Any, bent: float) -> None:
    """Where the vehicle may be, the map's ground has now the variance `bent` (m²) about its mean
    plane: as much is what a height tells of the ground's error, for as long as the vehicle stays in
    such a place (`predict`).
    """
    p[at.E_GROUND, at.E_GROUND] += max(0.0, bent - x[at.GROUND_BENT])
    x[at.GROUND_BENT] = bent


@kernel
def leave_map(x: Any, p: Any, residual: float, c: Any) -> None:
    """After a height that does not fit: there is other ground below, such as a roof, and unknown
    how high it is.
    """
    x[at.OFF_MAP] = 1.0 if c.ground_known else 0.0
    p[at.E_GROUND, at.E_GROUND] += min(residual * residual, UNKNOWN_GROUND)


@inner_kernel
def return_to_map(x: Any, p: Any, h: Any, residual: Any, variance: Any, c: Any) -> None:
    """The ground below is the map's again, where a height fits that; `h`, `residual`, `variance` of
    the height.
    """
    off = residual[0] - x[at.GROUND_ERROR]
    error = c.markov_sigma[at.E_GROUND] ** 2 + x[at.GROUND_BENT]
    spread = variance[0] + error
    for i in range(at.E_GROUND):
        for n in range(at.E_GROUND):
            spread += h[0, i] * p[i, n] * h[0, n]
    if off * off <= c.return_gate * spread:
        x[at.OFF_MAP] = 0.0
        x[at.GROUND_ERROR] = 0.0
        residual[0] = off
        for n in range(at.ERRORS):
            p[at.E_GROUND, n] = p[n, at.E_GROUND] = 0.0
        p[at.E_GROUND, at.E_GROUND] = error


@inner_kernel
def judge_fix(x: Any, p: Any, nis: float, residual: Any, c: Any) -> None:
    """Refuses a GPS whose positions do not fit, until they fit well again for as long.

    Meanwhile the errors grow as without it. Where its fixes agree with each other for long enough,
    its position is taken over all the same: of what was known of the place, nothing is kept.
    """
    refused = x[at.GPS_REFUSED] != 0.0
    fits = nis <= (c.return_gate if refused else c.gates[3])
    x[at.GPS_DOUBT] += -1.0 if fits else 1.0
    x[at.GPS_DOUBT] = min(max(x[at.GPS_DOUBT], 0.0), 2.0 * DOUBTED_FIXES)
    agrees = True
    for i in range(3):
        agrees = agrees and abs(residual[i] - x[at.GPS_OFF + i]) <= FIXES_APART * c.gps_white[i]
        x[at.GPS_OFF + i] = residual[i]
    if not agrees or not (refused or x[at.GPS_DOUBT] > 0.0):
        x[at.GPS_AGREES] = x[at.TIME]
    if not refused:
        x[at.GPS_REFUSED] = 1.0 if x[at.GPS_DOUBT] >= DOUBTED_FIXES else 0.0
        return
    resets = not fits and x[at.TIME] - x[at.GPS_AGREES] > c.gps_reset
    if resets:
        x[at.GPS_RESETS] += 1.0
        for i in range(3):
            for n in range(at.ERRORS):
                for first in (at.E_POSITION, at.E_GPS):
                    p[first + i, n] = p[n, first + i] = 0.0
        for i in range(3):
            x[at.GPS_DRIFT + i] = 0.0
            p[at.E_GPS + i, at.E_GPS + i] = c.markov_sigma[at.E_GPS + i] ** 2
            p[at.E_POSITION + i, at.E_POSITION + i] = (
                residual[i] ** 2 + c.markov_sigma[at.E_GPS + i] ** 2
            )
    if resets or x[at.GPS_DOUBT] == 0.0:
        x[at.GPS_REFUSED] = x[at.GPS_DOUBT] = 0.0
