# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Measurement models of the sensors: the expected reading h(x), `out`, and its Jacobian H, `h`.

Jacobians are over the error state and have 27 columns. They come in as zeros.
"""

from __future__ import annotations

import math
from typing import Any

from rfly_autonomy.estimation.attitude_kernels import add_skew, attitude, attitude_quaternion
from rfly_autonomy.estimation.error_state import (
    AHRS_DRIFT,
    ATTITUDE,
    BARO_BIAS,
    FIELD_BIAS,
    GPS_DRIFT,
    GROUND_ERROR,
    GYRO_BIAS,
    POSITION,
    SLIP,
    VELOCITY,
)
from rfly_common.kernels.atmosphere import pressure_at_temperature, standard_temperature
from rfly_common.kernels.jit import kernel
from rfly_common.kernels.vectors import (
    cross,
    matrix_column,
    matrix_row,
    quat_multiply,
    rotated,
    rotated_back,
    set_vector,
    vector_at,
    vector_of,
)
from rfly_common.physics import GRAVITY, LAPSE_RATE, PRESSURE_EXPONENT
from rfly_terrain.height_map.bilinear import altitude as ground_altitude


@kernel
def expect_gps_position(x: Any, lever: Any, h: Any, out: Any) -> None:
    """Expect the antenna's position as the receiver reports it. Jacobian (3, 27)."""
    arm = rotated(attitude(x), vector_of(lever))
    for i in range(3):
        out[i] = x.position[i] + arm[i] + x.gps_drift[i]
        h[i, POSITION + i] = 1.0
        h[i, GPS_DRIFT + i] = 1.0
    add_skew(h, 0, ATTITUDE, -1.0, arm)


@kernel
def expect_velocity(x: Any, book: Any, lever: Any, h: Any, out: Any) -> None:
    """Expect the velocity of a point at a lever from the IMU: v + R (ω × l). Jacobian (3, 27)."""
    r = attitude(x)
    arm = vector_of(lever)
    swing = rotated(r, cross(vector_of(book.rates), arm))
    for i in range(3):
        out[i] = x.velocity[i] + swing[i]
        h[i, VELOCITY + i] = 1.0
        # R [l]×: the rates lose what their bias gains
        set_vector(h, i, GYRO_BIAS, cross(matrix_row(r, i), arm))
    add_skew(h, 0, ATTITUDE, -1.0, swing)


@kernel
def expect_field(x: Any, field: Any, h: Any, out: Any) -> None:
    """Expect the Earth's field in body axes with the magnetometer's bias. Jacobian (3, 27)."""
    r = attitude(x)
    earth_field = vector_of(field)
    expected = rotated_back(r, earth_field)
    for i in range(3):
        out[i] = expected[i] + x.field_bias[i]
        # Rᵀ [B]×
        set_vector(h, i, ATTITUDE, cross(matrix_column(r, i), earth_field))
        h[i, FIELD_BIAS + i] = 1.0


@kernel
def expect_pressure(x: Any, lever: Any, altitude: float, h: Any, out: Any) -> None:
    """Expect the pressure (Pa) of the standard atmosphere with the barometer's bias. Eq. 3.3.

    `altitude`: of the world's origin, m. Jacobian (1, 27).
    """
    arm = rotated(attitude(x), vector_of(lever))
    temperature = standard_temperature(altitude + x.position[2] + arm[2])
    pressure = pressure_at_temperature(temperature)
    slope = -PRESSURE_EXPONENT * LAPSE_RATE * pressure / temperature

    out[0] = pressure + x.baro_bias
    h[0, POSITION + 2] = slope
    h[0, ATTITUDE] = slope * arm[1]
    h[0, ATTITUDE + 1] = -slope * arm[0]
    h[0, BARO_BIAS] = 1.0


@kernel
def expect_height(
    x: Any, ground: Any, lever: Any, spread_x: float, spread_y: float, h: Any, out: Any
) -> float:
    """Expect the distance (m) straight down to the ground. Jacobian (1, 27).

    The ground is a plane: its mean height and mean slope around the vehicle. The spreads (m) are
    the standard deviations of the vehicle's position. Returns the variance (m²) of the ground about
    that plane. This is a filter of second order (Bar-Shalom, Li and Kirubarajan 2001, section
    10.3.2), with second derivatives from differences over ± the spreads.
    """
    arm = rotated(attitude(x), vector_of(lever))
    px = x.position[0] + arm[0]
    py = x.position[1] + arm[1]

    # mean plane
    here = ground_altitude(ground, px, py)
    east = ground_altitude(ground, px + spread_x, py)
    west = ground_altitude(ground, px - spread_x, py)
    north = ground_altitude(ground, px, py + spread_y)
    south = ground_altitude(ground, px, py - spread_y)
    slope_x = (east - west) / (2.0 * spread_x)
    slope_y = (north - south) / (2.0 * spread_y)
    bend_x = 0.5 * (east + west) - here
    bend_y = 0.5 * (north + south) - here

    out[0] = x.position[2] + arm[2] - (here + bend_x + bend_y) - x.ground_error
    h[0, POSITION] = -slope_x
    h[0, POSITION + 1] = -slope_y
    h[0, POSITION + 2] = 1.0
    # row (-slope_x, -slope_y, 1) of -[R l]×
    h[0, ATTITUDE] = slope_y * arm[2] + arm[1]
    h[0, ATTITUDE + 1] = -slope_x * arm[2] - arm[0]
    h[0, ATTITUDE + 2] = slope_x * arm[1] - slope_y * arm[0]
    h[0, GROUND_ERROR] = -1.0
    return 2.0 * (bend_x * bend_x + bend_y * bend_y)


@kernel
def expect_wheels(x: Any, book: Any, steering: Any, rolls: Any, c: Any, h: Any, out: Any) -> None:
    """Expect the mean speed along, and across, the rolling wheels. Jacobian (2, 27).

    `rolls` (wheels,): 1 for a wheel that rolls, else 0. The speed along includes slip, and belongs
    to the time in the middle of the encoders' counting. Tyres slip as much as the force takes that
    the IMU measures; Jacobians leave that out, as its bias matters little.
    """
    r = attitude(x)
    velocity = vector_of(x.velocity)
    body = rotated_back(r, velocity)
    force = book.force
    rates = book.rates
    count = rolls.sum()

    # mean heading of the wheels, and their levers about the vertical
    ahead = 0.0
    aside = 0.0
    turn_along = 0.0
    turn_across = 0.0
    for i in range(rolls.size):
        if rolls[i] == 0.0:
            continue
        cosine = math.cos(steering[i]) / count
        sine = math.sin(steering[i]) / count
        ahead += cosine
        aside += sine
        turn_along += sine * c.hub_x[i] - cosine * c.hub_y[i]
        turn_across += cosine * c.hub_x[i] + sine * c.hub_y[i]

    # speeds at the wheels
    body_x = body[0] + rates[1] * c.hub_z
    body_y = body[1] - rates[0] * c.tread_z
    lag_x = (force[0] - GRAVITY * r[6]) * c.wheel_delay
    lag_y = (force[1] - GRAVITY * r[7]) * c.wheel_delay
    along = ahead * (body_x - lag_x) + aside * (body_y - lag_y) + turn_along * rates[2]
    across = ahead * body_y - aside * body_x + turn_across * rates[2]

    # slip
    drag = c.drag if body_x > 0.0 else -c.drag
    grown = 1.0 + x.slip + c.slip_gain * (force[0] + drag)
    out[0] = grown * along
    out[1] = across + c.side_gain * force[1] * along

    # δ(Rᵀ v) = Rᵀ δv + Rᵀ [v]× δθ
    for n in range(3):
        h[0, VELOCITY + n] = grown * (ahead * r[3 * n] + aside * r[3 * n + 1])
        h[1, VELOCITY + n] = ahead * r[3 * n + 1] - aside * r[3 * n]
    for row in range(2):
        set_vector(h, row, ATTITUDE, cross(vector_at(h, row, VELOCITY), velocity))
    h[0, GYRO_BIAS] = grown * aside * c.tread_z
    h[1, GYRO_BIAS] = ahead * c.tread_z
    h[0, GYRO_BIAS + 1] = -grown * ahead * c.hub_z
    h[1, GYRO_BIAS + 1] = aside * c.hub_z
    h[0, GYRO_BIAS + 2] = -grown * turn_along
    h[1, GYRO_BIAS + 2] = -turn_across
    h[0, SLIP] = along


@kernel
def expect_orientation(x: Any, reading: Any, h: Any, out: Any) -> None:
    """Return the residual itself: the rotation vector from the estimated attitude to the one read.

    The vector is in world axes, and the drift of the reading is taken off. `reading`: w x y z.
    Jacobian (3, 27) of the expected reading.
    """
    bx, by, bz, bw = attitude_quaternion(x)
    qx, qy, qz, qw = quat_multiply(
        (reading[1], reading[2], reading[3], reading[0]), (-bx, -by, -bz, bw)
    )

    # of q and -q the shorter turn
    sign = -1.0 if qw < 0.0 else 1.0
    length = math.sqrt(qx * qx + qy * qy + qz * qz)
    share = sign * (2.0 if length < 1e-9 else 2.0 * math.atan2(length, sign * qw) / length)

    out[0] = share * qx - x.ahrs_drift[0]
    out[1] = share * qy - x.ahrs_drift[1]
    out[2] = share * qz - x.ahrs_drift[2]
    for i in range(3):
        h[i, ATTITUDE + i] = 1.0
        h[i, AHRS_DRIFT + i] = 1.0
