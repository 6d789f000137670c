"""Prediction of the error-state Kalman filter: strapdown integration of the IMU, covariance P = F P
Fᵀ + Q.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_amphibious.estimation import filter_layout as at
from rfly_amphibious.estimation.attitude_kernels import attitude, rotate_attitude
from rfly_amphibious.estimation.row_operations import add_scaled, scale, symmetrise, transpose
from rfly_common.kernels.jit import inner_kernel, kernel
from rfly_common.physics import GRAVITY


@inner_kernel
def apply_transition(
    p: Any, dt: float, r: Any, ax: float, ay: float, az: float, coasts: bool
) -> None:
    """p = F p: the error's motion over dt with the specific force (ax, ay, az) in world axes."""
    half = 0.5 * dt * dt
    if coasts:  # nothing is known of force and rates, so their biases do not matter
        for i in range(3):
            add_scaled(p[at.E_POSITION + i], dt, p[at.E_VELOCITY + i])
        return
    for i in range(3):
        add_scaled(p[at.E_POSITION + i], dt, p[at.E_VELOCITY + i])
    for first, step in ((at.E_POSITION, half), (at.E_VELOCITY, dt)):
        # -[a]× δθ - R δb
        add_scaled(p[first], step * az, p[at.E_ATTITUDE + 1])
        add_scaled(p[first], -step * ay, p[at.E_ATTITUDE + 2])
        add_scaled(p[first + 1], -step * az, p[at.E_ATTITUDE])
        add_scaled(p[first + 1], step * ax, p[at.E_ATTITUDE + 2])
        add_scaled(p[first + 2], step * ay, p[at.E_ATTITUDE])
        add_scaled(p[first + 2], -step * ax, p[at.E_ATTITUDE + 1])
        for i in range(3):
            for j in range(3):
                add_scaled(p[first + i], -step * r[i, j], p[at.E_FORCE + j])
    for i in range(3):
        for j in range(3):
            add_scaled(p[at.E_ATTITUDE + i], -dt * r[i, j], p[at.E_GYRO + j])


@inner_kernel
def apply_decay(p: Any, keep: Any) -> None:
    """Gauss-Markov errors fade."""
    for i in range(at.E_GYRO, at.ERRORS):
        if keep[i] != 1.0:
            scale(p[i], keep[i])


@kernel
def predict(x: Any, p: Any, dt: float, force: Any, rates: Any, coasts: bool, c: Any) -> None:
    """State and covariance dt seconds on, with mean readings of the IMU in body axes; `coasts`:
    there are none.
    """
    r = np.empty((3, 3))
    if coasts:
        wx = wy = wz = 0.0
        ax = ay = az = 0.0
        attitude(x, r)
        for i in range(3):
            x[at.FORCE + i] = GRAVITY * r[2, i]
            x[at.RATES + i] = 0.0
        noise = c.coast_force * c.coast_force * dt
        gyro = c.coast_gyro * c.coast_gyro * dt
    else:
        for i in range(3):
            x[at.FORCE + i] = force[i] - x[at.FORCE_BIAS + i]
            x[at.RATES + i] = rates[i] - x[at.GYRO_BIAS + i]
        wx = x[at.RATES]
        wy = x[at.RATES + 1]
        wz = x[at.RATES + 2]
        rotate_attitude(x, 0.5 * dt * wx, 0.5 * dt * wy, 0.5 * dt * wz, False)
        attitude(x, r)
        rotate_attitude(x, 0.5 * dt * wx, 0.5 * dt * wy, 0.5 * dt * wz, False)
        fx = x[at.FORCE]
        fy = x[at.FORCE + 1]
        fz = x[at.FORCE + 2]
        ax = r[0, 0] * fx + r[0, 1] * fy + r[0, 2] * fz
        ay = r[1, 0] * fx + r[1, 1] * fy + r[1, 2] * fz
        az = r[2, 0] * fx + r[2, 1] * fy + r[2, 2] * fz
        noise = c.force_noise * c.force_noise * dt
        gyro = c.gyro_noise * c.gyro_noise * dt
    speed = math.sqrt(x[at.VELOCITY] * x[at.VELOCITY] + x[at.VELOCITY + 1] * x[at.VELOCITY + 1])
    for i in range(3):
        pull = ax if i == 0 else (ay if i == 1 else az - GRAVITY)
        pull = 0.0 if coasts else pull
        x[at.POSITION + i] += dt * x[at.VELOCITY + i] + 0.5 * dt * dt * pull
        x[at.VELOCITY + i] += dt * pull
    wanders = not c.ground_known or x[at.OFF_MAP] != 0.0
    keep = np.ones(at.ERRORS)
    for i in range(at.E_GYRO, at.ERRORS):
        keep[i] = (
            keep[i - 1]
            if c.markov_time[i] == c.markov_time[i - 1]
            else math.exp(-dt / c.markov_time[i])
        )
    ground_variance = c.markov_sigma[at.E_GROUND] * c.markov_sigma[at.E_GROUND] + x[at.GROUND_BENT]
    if wanders:
        keep[at.E_GROUND] = 1.0
    elif ground_variance > 0.0:
        # two errors in one, by their shares: the map's, and the ground's about its mean plane,
        # which is another one as soon as the vehicle has moved as far as it is uncertain where it
        # is
        reach = math.sqrt(p[at.E_POSITION, at.E_POSITION] + p[at.E_POSITION + 1, at.E_POSITION + 1])
        other = x[at.GROUND_BENT] / ground_variance
        keep[at.E_GROUND] = keep[at.E_GROUND] ** (1.0 - other) * math.exp(
            -dt * other * speed / max(reach, 0.05)
        )
    for i in range(at.E_GYRO, at.ERRORS):
        x[at.GYRO_BIAS + i - at.E_GYRO] *= keep[i]
    x[at.TIME] += dt

    apply_transition(p, dt, r, ax, ay, az, coasts)
    apply_decay(p, keep)
    transpose(p)
    apply_transition(p, dt, r, ax, ay, az, coasts)
    apply_decay(p, keep)
    symmetrise(p)
    for i in range(3):
        p[at.E_POSITION + i, at.E_POSITION + i] += noise * dt * dt / 3.0
        p[at.E_POSITION + i, at.E_VELOCITY + i] += 0.5 * noise * dt
        p[at.E_VELOCITY + i, at.E_POSITION + i] += 0.5 * noise * dt
        p[at.E_VELOCITY + i, at.E_VELOCITY + i] += noise
        p[at.E_ATTITUDE + i, at.E_ATTITUDE + i] += gyro
    for i in range(at.E_GYRO, at.ERRORS):
        stationary = ground_variance if i == at.E_GROUND else c.markov_sigma[i] * c.markov_sigma[i]
        p[i, i] += stationary * (1.0 - keep[i] * keep[i])
    if wanders:
        rough = c.ground_slope * speed + 1e-3
        p[at.E_GROUND, at.E_GROUND] += rough * rough * dt
