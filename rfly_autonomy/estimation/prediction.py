# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Prediction of the error-state Kalman filter: strapdown integration of the IMU, P = F P Fᵀ + Q."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_autonomy.estimation.attitude_kernels import attitude, turn_in_body
from rfly_autonomy.estimation.consistency import predict_climb
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
from rfly_autonomy.estimation.filter_records import GPS_VELOCITY, IMU, NOTHING, ROTORS
from rfly_autonomy.estimation.row_operations import (
    add_scaled,
    clear_error,
    scale,
    symmetrise,
    transpose,
)
from rfly_autonomy.estimation.speed_consistency import predict_free_velocity
from rfly_autonomy.estimation.velocity_shapes import integrate_imu
from rfly_common.kernels.jit import inner_kernel, kernel
from rfly_common.kernels.vectors import Matrix, Vector, rotated, scaled, vector_of
from rfly_common.physics import GRAVITY

WEATHER_WALK = 1.0
"""Density of the change of the air's pressure while no GPS velocity shows the climb, Pa/√s.

A barometer drifted by 1.4 m, 17 Pa, in a flight of 4 minutes (issue 44 of PX4-ECL).
"""

ROTORS_RATE = 0.1
"""Standard deviation of rates by the rotors at the begin, rad/s."""
ROTORS_TURN = 0.3
"""Density of the angular acceleration that the rotors do not cause, rad/s²/√Hz."""
ROTORS_FORCE = 0.5
"""Standard deviation of a force by the rotors at the begin, m/s²."""
ROTORS_PUSH = 0.5
"""Density of the change of the force that the rotors do not cause, m/s³/√Hz."""


@inner_kernel
def set_motion(x: Any, book: Any, force: Any, rates: Any) -> None:
    """Set specific force and rates of the vehicle from readings (3,), without their biases."""
    for i in range(3):
        book.force[i] = force[i] - x.force_bias[i]
        book.rates[i] = rates[i] - x.gyro_bias[i]


@inner_kernel
def apply_transition(p: Any, dt: float, r: Matrix, force: Vector, coasts: bool) -> None:
    """p = F p: the error's motion over dt with a specific force in world axes."""
    for i in range(3):
        add_scaled(p[POSITION + i], dt, p[VELOCITY + i])
    if coasts:  # force and rates are unknown, so their biases do not matter
        return

    # -[a]× δθ - R δb
    ax, ay, az = force
    for first, step in ((POSITION, 0.5 * dt * dt), (VELOCITY, dt)):
        add_scaled(p[first], step * az, p[ATTITUDE + 1])
        add_scaled(p[first], -step * ay, p[ATTITUDE + 2])
        add_scaled(p[first + 1], -step * az, p[ATTITUDE])
        add_scaled(p[first + 1], step * ax, p[ATTITUDE + 2])
        add_scaled(p[first + 2], step * ay, p[ATTITUDE])
        add_scaled(p[first + 2], -step * ax, p[ATTITUDE + 1])
        for i in range(3):
            for j in range(3):
                add_scaled(p[first + i], -step * r[3 * i + j], p[FORCE_BIAS + j])

    for i in range(3):
        for j in range(3):
            add_scaled(p[ATTITUDE + i], -dt * r[3 * i + j], p[GYRO_BIAS + j])


@inner_kernel
def decay_factors(dt: float, c: Any, keep: Any) -> None:
    """Compute the share of each Gauss-Markov error that is left after dt -> keep (27,)."""
    keep[:GYRO_BIAS] = 1.0
    for i in range(GYRO_BIAS, ERRORS):
        if c.markov_time[i] == c.markov_time[i - 1]:
            keep[i] = keep[i - 1]
        else:
            keep[i] = math.exp(-dt / c.markov_time[i])


@inner_kernel
def ground_decay(p: Any, dt: float, speed: float, share: float, keep: float) -> float:
    """Return the share of the ground's error that is left after dt.

    It is two errors in one: the map's, of which `keep` is left, and with this share of the variance
    the ground's about its mean plane. The latter is another one as soon as the vehicle has moved as
    far as its position is uncertain.
    """
    reach = math.sqrt(p[POSITION, POSITION] + p[POSITION + 1, POSITION + 1])
    return keep ** (1.0 - share) * math.exp(-dt * share * speed / max(reach, 0.05))


@inner_kernel
def fade_state(x: Any, keep: Any) -> None:
    """Let biases, drifts and slip of the nominal state fade."""
    for i in range(3):
        x.gyro_bias[i] *= keep[GYRO_BIAS + i]
        x.force_bias[i] *= keep[FORCE_BIAS + i]
        x.gps_drift[i] *= keep[GPS_DRIFT + i]
        x.field_bias[i] *= keep[FIELD_BIAS + i]
        x.ahrs_drift[i] *= keep[AHRS_DRIFT + i]
    x.baro_bias *= keep[BARO_BIAS]
    x.ground_error *= keep[GROUND_ERROR]
    x.slip *= keep[SLIP]


@inner_kernel
def fade_rows(p: Any, keep: Any) -> None:
    """Let the rows of Gauss-Markov errors fade."""
    for i in range(GYRO_BIAS, ERRORS):
        if keep[i] != 1.0:
            scale(p[i], keep[i])


@inner_kernel
def add_motion_noise(p: Any, dt: float, force: float, gyro: float) -> None:
    """Add the noise of force and rates over dt; both as variances of the integrals over dt."""
    for i in range(3):
        p[POSITION + i, POSITION + i] += force * dt * dt / 3.0
        p[POSITION + i, VELOCITY + i] += 0.5 * force * dt
        p[VELOCITY + i, POSITION + i] += 0.5 * force * dt
        p[VELOCITY + i, VELOCITY + i] += force
        p[ATTITUDE + i, ATTITUDE + i] += gyro


@kernel
def begin_source(x: Any, p: Any, source: float, c: Any) -> None:
    """Take force and rates from another source, IMU or ROTORS, whose biases are not the same."""
    for i in range(3):
        x.gyro_bias[i] = 0.0
        x.force_bias[i] = 0.0
        clear_error(p, GYRO_BIAS + i)
        clear_error(p, FORCE_BIAS + i)
        rotors = source == ROTORS
        rate = ROTORS_RATE if rotors else c.gyro_usual[i]
        force = ROTORS_FORCE if rotors else c.force_usual[i]
        p[GYRO_BIAS + i, GYRO_BIAS + i] = rate * rate
        p[FORCE_BIAS + i, FORCE_BIAS + i] = force * force


@kernel
def predict(
    x: Any, book: Any, p: Any, dt: float, force: Any, rates: Any, source: float, c: Any
) -> None:
    """Carry state and covariance on by dt seconds with mean readings of the IMU, body axes.

    `source`: of these readings; NOTHING: there are none.
    """
    coasts = source == NOTHING
    if coasts:
        r = attitude(x)
        world_force = (0.0, 0.0, 0.0)
        pull = (0.0, 0.0, 0.0)
        for i in range(3):
            book.force[i] = GRAVITY * r[6 + i]
            book.rates[i] = 0.0
        force_noise = c.coast_force * c.coast_force * dt
        gyro_noise = c.coast_gyro * c.coast_gyro * dt
    else:
        set_motion(x, book, force, rates)
        half_turn = scaled(0.5 * dt, vector_of(book.rates))
        turn_in_body(x, half_turn)
        r = attitude(x)  # in the middle of dt
        turn_in_body(x, half_turn)
        world_force = rotated(r, vector_of(book.force))
        pull = world_force[0], world_force[1], world_force[2] - GRAVITY
        force_noise = c.force_noise * c.force_noise * dt
        gyro_noise = c.gyro_noise * c.gyro_noise * dt

    speed = math.sqrt(x.velocity[0] * x.velocity[0] + x.velocity[1] * x.velocity[1])
    for i in range(3):
        x.position[i] += dt * x.velocity[i] + 0.5 * dt * dt * pull[i]
        x.velocity[i] += dt * pull[i]
    predict_climb(book, dt, pull[2], force_noise)
    free_noise = force_noise if source == IMU else c.coast_force * c.coast_force * dt
    predict_free_velocity(book, dt, pull, free_noise)
    integrate_imu(x, book, dt, r, pull, source == IMU)

    # fading errors
    keep = np.empty(ERRORS)
    decay_factors(dt, c, keep)
    wanders = not c.ground_known or book.off_map != 0.0
    map_variance = c.markov_sigma[GROUND_ERROR] * c.markov_sigma[GROUND_ERROR]
    ground_variance = map_variance + book.bend_variance
    if wanders:
        keep[GROUND_ERROR] = 1.0
    elif ground_variance > 0.0:
        share = book.bend_variance / ground_variance
        keep[GROUND_ERROR] = ground_decay(p, dt, speed, share, keep[GROUND_ERROR])
    fade_state(x, keep)
    book.time += dt

    # F P Fᵀ
    apply_transition(p, dt, r, world_force, coasts)
    fade_rows(p, keep)
    transpose(p)
    apply_transition(p, dt, r, world_force, coasts)
    fade_rows(p, keep)
    symmetrise(p)

    # Q
    add_motion_noise(p, dt, force_noise, gyro_noise)
    for i in range(GYRO_BIAS, ERRORS):
        stationary = c.markov_sigma[i] * c.markov_sigma[i]
        if i == GROUND_ERROR:
            stationary = ground_variance
        p[i, i] += stationary * (1.0 - keep[i] * keep[i])
    if wanders:
        rough = c.ground_slope * speed + 1e-3
        p[GROUND_ERROR, GROUND_ERROR] += rough * rough * dt
    if book.time - book.last_accepted[GPS_VELOCITY] > c.gps_gap:
        p[BARO_BIAS, BARO_BIAS] += WEATHER_WALK * WEATHER_WALK * dt
    if source == ROTORS:
        for i in range(3):
            p[GYRO_BIAS + i, GYRO_BIAS + i] += ROTORS_TURN * ROTORS_TURN * dt
            p[FORCE_BIAS + i, FORCE_BIAS + i] += ROTORS_PUSH * ROTORS_PUSH * dt
