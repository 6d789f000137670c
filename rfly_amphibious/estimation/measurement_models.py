"""Measurement models of the sensors: the expected reading h(x) and its Jacobian H, `h`, for the
error state.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_amphibious.estimation import filter_layout as at
from rfly_amphibious.estimation.attitude_kernels import add_skew, attitude, rotate_vector
from rfly_common.kernels.atmosphere import pressure_at_temperature, standard_temperature
from rfly_common.kernels.jit import kernel
from rfly_common.physics import GRAVITY, LAPSE_RATE, PRESSURE_EXPONENT
from rfly_terrain.height_map.bilinear import altitude as ground_altitude


@kernel
def expect_gps_position(x: Any, lever: Any, h: Any, out: Any) -> None:
    """The antenna's place as the receiver says it, and its Jacobian (3, 27)."""
    r = np.empty((3, 3))
    arm = np.empty(3)
    attitude(x, r)
    rotate_vector(r, lever, arm)
    for i in range(3):
        out[i] = x[at.POSITION + i] + arm[i] + x[at.GPS_DRIFT + i]
        h[i, at.E_POSITION + i] = 1.0
        h[i, at.E_GPS + i] = 1.0
    add_skew(h, 0, at.E_ATTITUDE, -1.0, arm[0], arm[1], arm[2])


@kernel
def expect_velocity(x: Any, lever: Any, h: Any, out: Any) -> None:
    """World velocity of a point at a lever from the IMU: v + R (ω × l), and its Jacobian (3, 27)."""
    r = np.empty((3, 3))
    arm = np.empty(3)
    swing = np.empty(3)
    attitude(x, r)
    swing[0] = x[at.RATES + 1] * lever[2] - x[at.RATES + 2] * lever[1]
    swing[1] = x[at.RATES + 2] * lever[0] - x[at.RATES] * lever[2]
    swing[2] = x[at.RATES] * lever[1] - x[at.RATES + 1] * lever[0]
    rotate_vector(r, swing, arm)
    for i in range(3):
        out[i] = x[at.VELOCITY + i] + arm[i]
        h[i, at.E_VELOCITY + i] = 1.0
        # R [l]×: the rates lose what their bias gains
        h[i, at.E_GYRO] = r[i, 1] * lever[2] - r[i, 2] * lever[1]
        h[i, at.E_GYRO + 1] = r[i, 2] * lever[0] - r[i, 0] * lever[2]
        h[i, at.E_GYRO + 2] = r[i, 0] * lever[1] - r[i, 1] * lever[0]
    add_skew(h, 0, at.E_ATTITUDE, -1.0, arm[0], arm[1], arm[2])


@kernel
def expect_field(x: Any, field: Any, h: Any, out: Any) -> None:
    """The Earth's field in body axes with the magnetometer's bias, and its Jacobian (3, 27)."""
    r = np.empty((3, 3))
    attitude(x, r)
    bx = field[0]
    by = field[1]
    bz = field[2]
    for i in range(3):
        ra = r[0, i]
        rb = r[1, i]
        rc = r[2, i]
        out[i] = ra * bx + rb * by + rc * bz + x[at.FIELD_BIAS + i]
        # Rᵀ [B]×
        h[i, at.E_ATTITUDE] = rb * bz - rc * by
        h[i, at.E_ATTITUDE + 1] = rc * bx - ra * bz
        h[i, at.E_ATTITUDE + 2] = ra * by - rb * bx
        h[i, at.E_FIELD + i] = 1.0


@kernel
def expect_pressure(x: Any, lever: Any, altitude: float, h: Any, out: Any) -> None:
    """Pa of the standard atmosphere with the barometer's bias, and its Jacobian (1, 27). Eq. 3.3."""
    r = np.empty((3, 3))
    arm = np.empty(3)
    attitude(x, r)
    rotate_vector(r, lever, arm)
    temperature = standard_temperature(altitude + x[at.POSITION + 2] + arm[2])
    pressure = pressure_at_temperature(temperature)
    slope = -PRESSURE_EXPONENT * LAPSE_RATE * pressure / temperature
    out[0] = pressure + x[at.BARO_BIAS]
    h[0, at.E_POSITION + 2] = slope
    h[0, at.E_ATTITUDE] = slope * arm[1]
    h[0, at.E_ATTITUDE + 1] = -slope * arm[0]
    h[0, at.E_BARO] = 1.0


@kernel
def expect_height(
    x: Any, ground: Any, lever: Any, spread_x: float, spread_y: float, h: Any, out: Any
) -> float:
    """m straight down to the ground, and its Jacobian (1, 27): of the ground's mean height and mean
    slope where the vehicle may be, the spreads (m) being the standard deviations of its place.

    -> m², the variance of the ground about that plane. As a filter of second order has it
    (Bar-Shalom, Li and Kirubarajan 2001, section 10.3.2), the second derivatives being those of
    differences over ± the spreads.
    """
    r = np.empty((3, 3))
    arm = np.empty(3)
    attitude(x, r)
    rotate_vector(r, lever, arm)
    px = x[at.POSITION] + arm[0]
    py = x[at.POSITION + 1] + arm[1]
    here = ground_altitude(ground, px, py)
    east = ground_altitude(ground, px + spread_x, py)
    west = ground_altitude(ground, px - spread_x, py)
    north = ground_altitude(ground, px, py + spread_y)
    south = ground_altitude(ground, px, py - spread_y)
    gx = (east - west) / (2.0 * spread_x)
    gy = (north - south) / (2.0 * spread_y)
    bend_x = 0.5 * (east + west) - here
    bend_y = 0.5 * (north + south) - here
    out[0] = x[at.POSITION + 2] + arm[2] - (here + bend_x + bend_y) - x[at.GROUND_ERROR]
    h[0, at.E_POSITION] = -gx
    h[0, at.E_POSITION + 1] = -gy
    h[0, at.E_POSITION + 2] = 1.0
    # the row (-gx, -gy, 1) of -[R l]×
    h[0, at.E_ATTITUDE] = gy * arm[2] + arm[1]
    h[0, at.E_ATTITUDE + 1] = -gx * arm[2] - arm[0]
    h[0, at.E_ATTITUDE + 2] = gx * arm[1] - gy * arm[0]
    h[0, at.E_GROUND] = -1.0
    return 2.0 * (bend_x * bend_x + bend_y * bend_y)


@kernel
def expect_wheels(x: Any, steering: Any, rolls: Any, c: Any, h: Any, out: Any) -> None:
    """Mean speed along, and across, the rolling wheels, and its Jacobian (2, 27). `rolls`
    (wheels,): 1 where one does.

    Along: times what slip adds, at the time in whose middle the encoders have counted. Tyres slip
    as much as it takes for the force that the IMU feels; Jacobians leave that out, as its bias
    matters little.
    """
    r = np.empty((3, 3))
    attitude(x, r)
    count = rolls.sum()
    vx = x[at.VELOCITY]
    vy = x[at.VELOCITY + 1]
    vz = x[at.VELOCITY + 2]
    rate = x[at.RATES + 2]
    along = across = 0.0
    a0 = a1 = lag_x = lag_y = turn_along = turn_across = 0.0
    for i in range(rolls.size):
        if rolls[i] == 0.0:
            continue
        cosine = math.cos(steering[i]) / count
        sine = math.sin(steering[i]) / count
        a0 = a0 + cosine
        a1 = a1 + sine
        turn_along += sine * c.hub_x[i] - cosine * c.hub_y[i]
        turn_across += cosine * c.hub_x[i] + sine * c.hub_y[i]
    body_x = r[0, 0] * vx + r[1, 0] * vy + r[2, 0] * vz + x[at.RATES + 1] * c.hub_z
    body_y = r[0, 1] * vx + r[1, 1] * vy + r[2, 1] * vz - x[at.RATES] * c.tread_z
    lag_x = (x[at.FORCE] - GRAVITY * r[2, 0]) * c.wheel_delay
    lag_y = (x[at.FORCE + 1] - GRAVITY * r[2, 1]) * c.wheel_delay
    along = a0 * (body_x - lag_x) + a1 * (body_y - lag_y) + turn_along * rate
    across = a0 * body_y - a1 * body_x + turn_across * rate
    grown = 1.0 + x[at.SLIP] + c.slip_gain * (x[at.FORCE] + (c.drag if body_x > 0.0 else -c.drag))
    out[0] = grown * along
    out[1] = across + c.side_gain * x[at.FORCE + 1] * along
    # δ(Rᵀ v) = Rᵀ δv + Rᵀ [v]× δθ
    for n in range(3):
        h[0, at.E_VELOCITY + n] = grown * (a0 * r[n, 0] + a1 * r[n, 1])
        h[1, at.E_VELOCITY + n] = a0 * r[n, 1] - a1 * r[n, 0]
    for row in range(2):
        wx = h[row, at.E_VELOCITY]
        wy = h[row, at.E_VELOCITY + 1]
        wz = h[row, at.E_VELOCITY + 2]
        h[row, at.E_ATTITUDE] = wy * vz - wz * vy
        h[row, at.E_ATTITUDE + 1] = wz * vx - wx * vz
        h[row, at.E_ATTITUDE + 2] = wx * vy - wy * vx
    h[0, at.E_GYRO] = grown * a1 * c.tread_z
    h[1, at.E_GYRO] = a0 * c.tread_z
    h[0, at.E_GYRO + 1] = -grown * a0 * c.hub_z
    h[1, at.E_GYRO + 1] = a1 * c.hub_z
    h[0, at.E_GYRO + 2] = -grown * turn_along
    h[1, at.E_GYRO + 2] = -turn_across
    h[0, at.E_SLIP] = along


@kernel
def expect_orientation(x: Any, read: Any, h: Any, out: Any) -> None:
    """The residual itself: the rotation vector (world axes) from the estimated attitude to the one
    that was read, less its drift; and the Jacobian (3, 27) of what was expected.
    """
    aw = read[0]
    ax = read[1]
    ay = read[2]
    az = read[3]
    bw = x[at.QUATERNION]
    bx = -x[at.QUATERNION + 1]
    by = -x[at.QUATERNION + 2]
    bz = -x[at.QUATERNION + 3]
    qw = aw * bw - ax * bx - ay * by - az * bz
    qx = aw * bx + ax * bw + ay * bz - az * by
    qy = aw * by - ax * bz + ay * bw + az * bx
    qz = aw * bz + ax * by - ay * bx + az * bw
    sign = -1.0 if qw < 0.0 else 1.0
    length = math.sqrt(qx * qx + qy * qy + qz * qz)
    share = sign * (2.0 if length < 1e-9 else 2.0 * math.atan2(length, sign * qw) / length)
    out[0] = share * qx - x[at.AHRS_DRIFT]
    out[1] = share * qy - x[at.AHRS_DRIFT + 1]
    out[2] = share * qz - x[at.AHRS_DRIFT + 2]
    for i in range(3):
        h[i, at.E_ATTITUDE + i] = 1.0
        h[i, at.E_AHRS + i] = 1.0
