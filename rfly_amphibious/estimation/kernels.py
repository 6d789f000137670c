"""Kalman filter kernels of the state estimator, compiled where numba is; else NumPy and plain Python, same results.

An error-state Kalman filter. World axes ENU, body axes FLU, SI units. Its point is the IMU, so that no angular
acceleration is needed; attitude errors are rotation vectors in world axes: R_true = exp(error) R.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rfly_common.kernels.atmosphere import pressure_at_temperature, standard_temperature
from rfly_common.kernels.jit import inner_kernel, kernel, use_numba
from rfly_common.kernels.rotations import rotation_matrix
from rfly_common.physics import GRAVITY, LAPSE_RATE, PRESSURE_EXPONENT
from rfly_terrain.height_map.bilinear import altitude as ground_altitude

POSITION, VELOCITY, QUATERNION, GYRO_BIAS, FORCE_BIAS = 0, 3, 6, 10, 13
GPS_DRIFT, BARO_BIAS, FIELD_BIAS, AHRS_DRIFT, GROUND_ERROR, SLIP = 16, 19, 20, 23, 26, 27
"""nominal state: quaternion w x y z, biases in body axes, drifts of GPS and of the IMU's own orientation in world axes,
the field's bias in T, how much higher the ground is than the map says, m, the share by which wheels turn faster than
they roll"""

E_POSITION, E_VELOCITY, E_ATTITUDE, E_GYRO, E_FORCE = 0, 3, 6, 9, 12
E_GPS, E_BARO, E_FIELD, E_AHRS, E_GROUND, E_SLIP = 15, 18, 19, 22, 25, 26
ERRORS = 27

SENSORS = (
    "gps_position",
    "gps_velocity",
    "magnetometer",
    "barometer",
    "orientation",
    "wheel_speed",
    "side_slip",
    "standstill",
    "height",
)
"""what is fused, in the order of all counters"""
DEGREES = (3, 3, 3, 1, 3, 1, 1, 6, 1)
"""numbers in a measurement of each"""
GPS_POSITION, GPS_VELOCITY, MAGNETOMETER, BAROMETER, ORIENTATION, WHEEL_SPEED, SIDE_SLIP, STANDSTILL, HEIGHT = range(9)
NOTHING = -1

TIME, RATES, FORCE, LOADS, LOAD_TIME = 28, 29, 32, 35, 39
STILL_SINCE, STILL_ANGLE, LAST_STILL, LAST_SIDE = 40, 41, 45, 46
ACCEPTED, REJECTED, LAST_ACCEPTED, INNOVATION, INNOVATION_SUM = 47, 56, 65, 74, 83
"""of each sensor; the last normalised innovation squared, and the sum of all of them"""
SIZE = 92

IMU_TIME, IMU_COASTS, IMU_FORCE, IMU_RATES, IMU_WIDTH = 0, 1, 2, 5, 8
"""a row of the IMU's log, in body axes; it coasts where the IMU was silent"""

LOG_TIME, LOG_KIND, LOG_VALUES, LOG_WIDTH = 0, 1, 2, 14
KIND_LOADS, KIND_JOINTS, KIND_GPS, KIND_FIELD, KIND_PRESSURE, KIND_ORIENTATION, KIND_HEIGHT = range(7)
"""rows of the measurements' log, and the order of those of one time. Joints: rates, steering, angles, 4 each"""

SAME_TIME = 1e-7
"""s: stamps nearer than this are of one instant"""


class Constants(NamedTuple):
    """What stays the same in a run. Noise: densities for what is integrated, standard deviations for what is read."""

    force_noise: float
    gyro_noise: float
    force_walk: float
    gyro_walk: float
    coast_force: float
    coast_gyro: float
    gps_sigma: Any
    """(3,) of its drift"""
    gps_time: float
    baro_walk: float
    ahrs_sigma: Any
    """(3,)"""
    ahrs_time: float
    ground_known: bool
    ground_sigma: float
    ground_time: float
    ground_slope: float
    slip_sigma: float
    slip_time: float
    gps_white: Any
    """(3,)"""
    gps_velocity: float
    field: Any
    """(3,) T, ENU"""
    field_white: float
    pressure_white: float
    altitude: float
    """m, of the world's origin"""
    ahrs_white: float
    height_white: float
    wheel_noise: float
    """rad/s, of one wheel"""
    wheel_floor: float
    """m/s, of all together"""
    wheel_delay: float
    """s, by which a wheel's rate is older than its stamp"""
    slip_gain: float
    """share of slip for each m/s² along the vehicle"""
    drag: float
    """m/s², of rolling wheels"""
    side_gain: float
    """rad of slip angle for each m/s² across"""
    side_noise: float
    side_slip: float
    side_slip_rate: float
    """rad of slip angle for each m/s² of side force"""
    side_period: float
    still_time: float
    still_rate: float
    still_way: float
    still_speed: float
    still_gyro: float
    still_period: float
    wheel_load: float
    """N, from which a wheel rolls on the ground"""
    still_load: float
    """N, of all wheels, from which a vehicle may stand"""
    load_age: float
    radius: Any
    """(4,)"""
    hub_x: Any
    """(4,) from the IMU"""
    hub_y: Any
    lever_gps: Any
    """(3,) from the IMU, body axes"""
    lever_baro: Any
    lever_height: Any
    gates: Any
    """(7,) largest normalised innovation squared of as many numbers"""
    reacquire: float
    """s of rejections after which a sensor of position or velocity is believed again"""


# rows at once: compiled, or NumPy

if use_numba():

    @inner_kernel
    def add_scaled(out: Any, factor: float, row: Any) -> None:
        """out += factor row"""
        for n in range(out.shape[0]):
            out[n] += factor * row[n]

    @inner_kernel
    def add_outer(out: Any, column: Any, row: Any) -> None:
        """out += column rowᵀ"""
        for m in range(out.shape[0]):
            for n in range(out.shape[1]):
                out[m, n] += column[m] * row[n]

    @inner_kernel
    def scale(out: Any, factor: float) -> None:
        """out *= factor"""
        for n in range(out.shape[0]):
            out[n] *= factor

    @inner_kernel
    def symmetrise(out: Any) -> None:
        """out = ½ (out + outᵀ)"""
        for m in range(out.shape[0]):
            for n in range(m):
                mean = 0.5 * (out[m, n] + out[n, m])
                out[m, n] = mean
                out[n, m] = mean

    @inner_kernel
    def transpose(out: Any) -> None:
        """out = outᵀ"""
        for m in range(out.shape[0]):
            for n in range(m):
                kept = out[m, n]
                out[m, n] = out[n, m]
                out[n, m] = kept

else:

    def add_scaled(out: Any, factor: float, row: Any) -> None:
        """out += factor row"""
        out += factor * row

    def add_outer(out: Any, column: Any, row: Any) -> None:
        """out += column rowᵀ"""
        out += column[:, None] * row

    def scale(out: Any, factor: float) -> None:
        """out *= factor"""
        out *= factor

    def symmetrise(out: Any) -> None:
        """out = ½ (out + outᵀ)"""
        out[:] = 0.5 * (out + out.T)

    def transpose(out: Any) -> None:
        """out = outᵀ"""
        out[:] = out.T.copy()


@inner_kernel
def attitude(x: Any, out: Any) -> None:
    """(3, 3) body -> world of the state."""
    q = QUATERNION
    r00, r01, r02, r10, r11, r12, r20, r21, r22 = rotation_matrix(x[q + 1], x[q + 2], x[q + 3], x[q])
    out[0, 0], out[0, 1], out[0, 2] = r00, r01, r02
    out[1, 0], out[1, 1], out[1, 2] = r10, r11, r12
    out[2, 0], out[2, 1], out[2, 2] = r20, r21, r22


@inner_kernel
def turn(x: Any, vx: float, vy: float, vz: float, world: bool) -> None:
    """Turns the attitude in x by a rotation vector in world axes, or in body axes."""
    angle = math.sqrt(vx * vx + vy * vy + vz * vz)
    share = 0.5 if angle < 1e-9 else math.sin(0.5 * angle) / angle
    aw, ax, ay, az = math.cos(0.5 * angle), share * vx, share * vy, share * vz
    bw, bx, by, bz = x[QUATERNION], x[QUATERNION + 1], x[QUATERNION + 2], x[QUATERNION + 3]
    if not world:
        aw, ax, ay, az, bw, bx, by, bz = bw, bx, by, bz, aw, ax, ay, az
    qw, qx = aw * bw - ax * bx - ay * by - az * bz, aw * bx + ax * bw + ay * bz - az * by
    qy, qz = aw * by - ax * bz + ay * bw + az * bx, aw * bz + ax * by - ay * bx + az * bw
    length = 1.0 / math.sqrt(qw * qw + qx * qx + qy * qy + qz * qz)
    x[QUATERNION], x[QUATERNION + 1] = length * qw, length * qx
    x[QUATERNION + 2], x[QUATERNION + 3] = length * qy, length * qz


@inner_kernel
def put_cross(out: Any, first_row: int, first: int, factor: float, a: float, b: float, c: float) -> None:
    """out[first_row …, first …] += factor [(a, b, c)]×"""
    out[first_row, first + 1] -= factor * c
    out[first_row, first + 2] += factor * b
    out[first_row + 1, first] += factor * c
    out[first_row + 1, first + 2] -= factor * a
    out[first_row + 2, first] -= factor * b
    out[first_row + 2, first + 1] += factor * a


# propagation


@inner_kernel
def transition_rows(p: Any, dt: float, r: Any, ax: float, ay: float, az: float, coasts: bool) -> None:
    """p = F p: the error's motion over dt with the specific force (ax, ay, az) in world axes."""
    half = 0.5 * dt * dt
    if coasts:  # nothing is known of force and rates, so their biases do not matter
        for i in range(3):
            add_scaled(p[E_POSITION + i], dt, p[E_VELOCITY + i])
        return
    for i in range(3):
        add_scaled(p[E_POSITION + i], dt, p[E_VELOCITY + i])
    for first, step in ((E_POSITION, half), (E_VELOCITY, dt)):
        # -[a]× δθ - R δb
        add_scaled(p[first], step * az, p[E_ATTITUDE + 1])
        add_scaled(p[first], -step * ay, p[E_ATTITUDE + 2])
        add_scaled(p[first + 1], -step * az, p[E_ATTITUDE])
        add_scaled(p[first + 1], step * ax, p[E_ATTITUDE + 2])
        add_scaled(p[first + 2], step * ay, p[E_ATTITUDE])
        add_scaled(p[first + 2], -step * ax, p[E_ATTITUDE + 1])
        for i in range(3):
            for j in range(3):
                add_scaled(p[first + i], -step * r[i, j], p[E_FORCE + j])
    for i in range(3):
        for j in range(3):
            add_scaled(p[E_ATTITUDE + i], -dt * r[i, j], p[E_GYRO + j])


@inner_kernel
def decay_rows(p: Any, gps: float, ahrs: float, ground: float, slip: float) -> None:
    """Gauss-Markov errors fade."""
    for i in range(3):
        scale(p[E_GPS + i], gps)
        scale(p[E_AHRS + i], ahrs)
    if ground != 1.0:
        scale(p[E_GROUND], ground)
    scale(p[E_SLIP], slip)


@kernel(nogil=True, error_model="numpy")
def propagate(x: Any, p: Any, dt: float, force: Any, rates: Any, coasts: bool, c: Any) -> None:
    """State and covariance dt seconds on, with mean readings of the IMU in body axes; `coasts`: there are none."""
    r = np.empty((3, 3))
    if coasts:
        wx = wy = wz = 0.0
        ax = ay = az = 0.0
        attitude(x, r)
        for i in range(3):
            x[FORCE + i], x[RATES + i] = GRAVITY * r[2, i], 0.0
        noise, gyro = c.coast_force * c.coast_force * dt, c.coast_gyro * c.coast_gyro * dt
    else:
        for i in range(3):
            x[FORCE + i] = force[i] - x[FORCE_BIAS + i]
            x[RATES + i] = rates[i] - x[GYRO_BIAS + i]
        wx, wy, wz = x[RATES], x[RATES + 1], x[RATES + 2]
        turn(x, 0.5 * dt * wx, 0.5 * dt * wy, 0.5 * dt * wz, False)
        attitude(x, r)
        turn(x, 0.5 * dt * wx, 0.5 * dt * wy, 0.5 * dt * wz, False)
        fx, fy, fz = x[FORCE], x[FORCE + 1], x[FORCE + 2]
        ax = r[0, 0] * fx + r[0, 1] * fy + r[0, 2] * fz
        ay = r[1, 0] * fx + r[1, 1] * fy + r[1, 2] * fz
        az = r[2, 0] * fx + r[2, 1] * fy + r[2, 2] * fz
        noise, gyro = c.force_noise * c.force_noise * dt, c.gyro_noise * c.gyro_noise * dt
    speed = math.sqrt(x[VELOCITY] * x[VELOCITY] + x[VELOCITY + 1] * x[VELOCITY + 1])
    for i in range(3):
        pull = ax if i == 0 else (ay if i == 1 else az - GRAVITY)
        pull = 0.0 if coasts else pull
        x[POSITION + i] += dt * x[VELOCITY + i] + 0.5 * dt * dt * pull
        x[VELOCITY + i] += dt * pull
    gps, ahrs, slip = math.exp(-dt / c.gps_time), math.exp(-dt / c.ahrs_time), math.exp(-dt / c.slip_time)
    ground = math.exp(-dt / c.ground_time) if c.ground_known else 1.0
    for i in range(3):
        x[GPS_DRIFT + i] *= gps
        x[AHRS_DRIFT + i] *= ahrs
    x[GROUND_ERROR] *= ground
    x[SLIP] *= slip
    x[TIME] += dt

    transition_rows(p, dt, r, ax, ay, az, coasts)
    decay_rows(p, gps, ahrs, ground, slip)
    transpose(p)
    transition_rows(p, dt, r, ax, ay, az, coasts)
    decay_rows(p, gps, ahrs, ground, slip)
    symmetrise(p)
    for i in range(3):
        p[E_POSITION + i, E_POSITION + i] += noise * dt * dt / 3.0
        p[E_POSITION + i, E_VELOCITY + i] += 0.5 * noise * dt
        p[E_VELOCITY + i, E_POSITION + i] += 0.5 * noise * dt
        p[E_VELOCITY + i, E_VELOCITY + i] += noise
        p[E_ATTITUDE + i, E_ATTITUDE + i] += gyro
        p[E_GYRO + i, E_GYRO + i] += c.gyro_walk * c.gyro_walk * dt
        p[E_FORCE + i, E_FORCE + i] += c.force_walk * c.force_walk * dt
        p[E_GPS + i, E_GPS + i] += c.gps_sigma[i] * c.gps_sigma[i] * (1.0 - gps * gps)
        p[E_AHRS + i, E_AHRS + i] += c.ahrs_sigma[i] * c.ahrs_sigma[i] * (1.0 - ahrs * ahrs)
    p[E_BARO, E_BARO] += c.baro_walk * c.baro_walk * dt
    if c.ground_known:
        p[E_GROUND, E_GROUND] += c.ground_sigma * c.ground_sigma * (1.0 - ground * ground)
    else:
        rough = c.ground_slope * speed + 1e-3
        p[E_GROUND, E_GROUND] += rough * rough * dt
    p[E_SLIP, E_SLIP] += c.slip_sigma * c.slip_sigma * (1.0 - slip * slip)


# measurements


@kernel(nogil=True, error_model="numpy")
def add_error(x: Any, d: Any) -> None:
    """The nominal state takes over the error d (27,)."""
    for i in range(3):
        x[POSITION + i] += d[E_POSITION + i]
        x[VELOCITY + i] += d[E_VELOCITY + i]
    turn(x, d[E_ATTITUDE], d[E_ATTITUDE + 1], d[E_ATTITUDE + 2], True)
    for i in range(ERRORS - E_GYRO):
        x[GYRO_BIAS + i] += d[E_GYRO + i]
    for i in range(3):
        x[RATES + i] -= d[E_GYRO + i]
        x[FORCE + i] -= d[E_FORCE + i]


@kernel(nogil=True, error_model="numpy")
def correct(x: Any, p: Any, h: Any, residual: Any, variance: Any, gate: float, vertical_only: bool) -> float:
    """One measurement of m numbers: Jacobian h (m, 27), residuals and variances (m,); Joseph's form.

    Its normalised innovation squared; above `gate` nothing changes. `vertical_only`: level position, attitude and what
    is bound to them stay as they are; the covariance allows for that.
    """
    m = h.shape[0]
    hp, s, low = np.zeros((m, ERRORS)), np.empty((m, m)), np.zeros((m, m))
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
            for n in range(ERRORS):
                kept = n in (E_POSITION + 2, E_VELOCITY + 2, E_GPS + 2, E_BARO, E_GROUND)
                if not (kept or E_FORCE <= n < E_FORCE + 3):
                    gain[i, n] = 0.0
    d, back = np.zeros(ERRORS), np.zeros((m, ERRORS))
    for i in range(m):
        add_scaled(d, residual[i], gain[i])
    # (I - K H) P (I - K H)ᵀ + K R Kᵀ = A + (K R - A Hᵀ) Kᵀ with A = (I - K H) P
    for i in range(m):
        add_outer(p, -gain[i], hp[i])
    for i in range(m):
        add_scaled(back[i], variance[i], gain[i])
        for n in range(ERRORS):
            if h[i, n] != 0.0:
                add_scaled(back[i], -h[i, n], p[:, n])
    for i in range(m):
        add_outer(p, back[i], gain[i])
    symmetrise(p)
    add_error(x, d)
    return nis


@inner_kernel
def count_result(x: Any, p: Any, sensor: int, nis: float, gate: float, residual: Any, m: int, reacquire: float) -> None:
    """Counts a measurement. A sensor of place or speed that was rejected for too long is believed again."""
    x[INNOVATION + sensor] = nis
    if nis <= gate:
        x[ACCEPTED + sensor] += 1.0
        x[INNOVATION_SUM + sensor] += nis
        x[LAST_ACCEPTED + sensor] = x[TIME]
        return
    x[REJECTED + sensor] += 1.0
    if sensor in (GPS_POSITION, GPS_VELOCITY, HEIGHT) and x[TIME] - x[LAST_ACCEPTED + sensor] > reacquire:
        first = E_VELOCITY if sensor == GPS_VELOCITY else (E_POSITION + 2 if sensor == HEIGHT else E_POSITION)
        for i in range(m):
            p[first + i, first + i] += residual[i] * residual[i]


@inner_kernel
def turned_lever(r: Any, lever: Any, out: Any) -> None:
    """out = R lever"""
    for i in range(3):
        out[i] = r[i, 0] * lever[0] + r[i, 1] * lever[1] + r[i, 2] * lever[2]


@kernel(nogil=True, error_model="numpy")
def expect_gps_position(x: Any, lever: Any, h: Any, out: Any) -> None:
    """The antenna's place as the receiver says it, and its Jacobian (3, 27)."""
    r, arm = np.empty((3, 3)), np.empty(3)
    attitude(x, r)
    turned_lever(r, lever, arm)
    for i in range(3):
        out[i] = x[POSITION + i] + arm[i] + x[GPS_DRIFT + i]
        h[i, E_POSITION + i] = 1.0
        h[i, E_GPS + i] = 1.0
    put_cross(h, 0, E_ATTITUDE, -1.0, arm[0], arm[1], arm[2])


@kernel(nogil=True, error_model="numpy")
def expect_velocity(x: Any, lever: Any, h: Any, out: Any) -> None:
    """World velocity of a point at a lever from the IMU: v + R (ω × l), and its Jacobian (3, 27)."""
    r, arm, swing = np.empty((3, 3)), np.empty(3), np.empty(3)
    attitude(x, r)
    swing[0] = x[RATES + 1] * lever[2] - x[RATES + 2] * lever[1]
    swing[1] = x[RATES + 2] * lever[0] - x[RATES] * lever[2]
    swing[2] = x[RATES] * lever[1] - x[RATES + 1] * lever[0]
    turned_lever(r, swing, arm)
    for i in range(3):
        out[i] = x[VELOCITY + i] + arm[i]
        h[i, E_VELOCITY + i] = 1.0
        # R [l]×: the rates lose what their bias gains
        h[i, E_GYRO] = r[i, 1] * lever[2] - r[i, 2] * lever[1]
        h[i, E_GYRO + 1] = r[i, 2] * lever[0] - r[i, 0] * lever[2]
        h[i, E_GYRO + 2] = r[i, 0] * lever[1] - r[i, 1] * lever[0]
    put_cross(h, 0, E_ATTITUDE, -1.0, arm[0], arm[1], arm[2])


@kernel(nogil=True, error_model="numpy")
def expect_field(x: Any, field: Any, h: Any, out: Any) -> None:
    """The Earth's field in body axes with the magnetometer's bias, and its Jacobian (3, 27)."""
    r = np.empty((3, 3))
    attitude(x, r)
    bx, by, bz = field[0], field[1], field[2]
    for i in range(3):
        ra, rb, rc = r[0, i], r[1, i], r[2, i]
        out[i] = ra * bx + rb * by + rc * bz + x[FIELD_BIAS + i]
        # Rᵀ [B]×
        h[i, E_ATTITUDE] = rb * bz - rc * by
        h[i, E_ATTITUDE + 1] = rc * bx - ra * bz
        h[i, E_ATTITUDE + 2] = ra * by - rb * bx
        h[i, E_FIELD + i] = 1.0


@kernel(nogil=True, error_model="numpy")
def expect_pressure(x: Any, lever: Any, altitude: float, h: Any, out: Any) -> None:
    """Pa of the standard atmosphere with the barometer's bias, and its Jacobian (1, 27). Eq. 3.3."""
    r, arm = np.empty((3, 3)), np.empty(3)
    attitude(x, r)
    turned_lever(r, lever, arm)
    temperature = standard_temperature(altitude + x[POSITION + 2] + arm[2])
    pressure = pressure_at_temperature(temperature)
    slope = -PRESSURE_EXPONENT * LAPSE_RATE * pressure / temperature
    out[0] = pressure + x[BARO_BIAS]
    h[0, E_POSITION + 2] = slope
    h[0, E_ATTITUDE], h[0, E_ATTITUDE + 1] = slope * arm[1], -slope * arm[0]
    h[0, E_BARO] = 1.0


@kernel(nogil=True, error_model="numpy")
def expect_height(x: Any, ground: Any, lever: Any, spread_x: float, spread_y: float, h: Any, out: Any) -> float:
    """m straight down to the ground, and its Jacobian (1, 27) with the ground's mean slope over ± the spreads (m).

    -> the variance of what is not linear in the ground there.
    """
    r, arm = np.empty((3, 3)), np.empty(3)
    attitude(x, r)
    turned_lever(r, lever, arm)
    px, py = x[POSITION] + arm[0], x[POSITION + 1] + arm[1]
    here = ground_altitude(ground, px, py)
    east, west = ground_altitude(ground, px + spread_x, py), ground_altitude(ground, px - spread_x, py)
    north, south = ground_altitude(ground, px, py + spread_y), ground_altitude(ground, px, py - spread_y)
    gx, gy = (east - west) / (2.0 * spread_x), (north - south) / (2.0 * spread_y)
    out[0] = x[POSITION + 2] + arm[2] - here - x[GROUND_ERROR]
    h[0, E_POSITION], h[0, E_POSITION + 1], h[0, E_POSITION + 2] = -gx, -gy, 1.0
    # the row (-gx, -gy, 1) of -[R l]×
    h[0, E_ATTITUDE] = gy * arm[2] + arm[1]
    h[0, E_ATTITUDE + 1] = -gx * arm[2] - arm[0]
    h[0, E_ATTITUDE + 2] = gx * arm[1] - gy * arm[0]
    h[0, E_GROUND] = -1.0
    bend_x, bend_y = 0.5 * (east + west) - here, 0.5 * (north + south) - here
    return bend_x * bend_x + bend_y * bend_y


@kernel(nogil=True, error_model="numpy")
def expect_wheels(x: Any, steering: Any, rolls: Any, c: Any, h: Any, out: Any) -> None:
    """Mean speed along, and across, the rolling wheels, and its Jacobian (2, 27). `rolls` (4,): 1 where a wheel does.

    Along: times what slip adds, at the time in whose middle the encoders have counted. Tyres slip as much as it takes
    for the force that the IMU feels; Jacobians leave that out, as its bias matters little.
    """
    r = np.empty((3, 3))
    attitude(x, r)
    count = rolls[0] + rolls[1] + rolls[2] + rolls[3]
    vx, vy, vz = x[VELOCITY], x[VELOCITY + 1], x[VELOCITY + 2]
    rate = x[RATES + 2]
    along = across = 0.0
    a0 = a1 = lag_x = lag_y = turn_along = turn_across = 0.0
    for i in range(4):
        if rolls[i] == 0.0:
            continue
        cosine, sine = math.cos(steering[i]) / count, math.sin(steering[i]) / count
        a0, a1 = a0 + cosine, a1 + sine
        turn_along += sine * c.hub_x[i] - cosine * c.hub_y[i]
        turn_across += cosine * c.hub_x[i] + sine * c.hub_y[i]
    body_x = r[0, 0] * vx + r[1, 0] * vy + r[2, 0] * vz
    body_y = r[0, 1] * vx + r[1, 1] * vy + r[2, 1] * vz
    lag_x = (x[FORCE] - GRAVITY * r[2, 0]) * c.wheel_delay
    lag_y = (x[FORCE + 1] - GRAVITY * r[2, 1]) * c.wheel_delay
    along = a0 * (body_x - lag_x) + a1 * (body_y - lag_y) + turn_along * rate
    across = a0 * body_y - a1 * body_x + turn_across * rate
    grown = 1.0 + x[SLIP] + c.slip_gain * (x[FORCE] + (c.drag if body_x > 0.0 else -c.drag))
    out[0], out[1] = grown * along, across + c.side_gain * x[FORCE + 1] * along
    # δ(Rᵀ v) = Rᵀ δv + Rᵀ [v]× δθ
    for n in range(3):
        h[0, E_VELOCITY + n] = grown * (a0 * r[n, 0] + a1 * r[n, 1])
        h[1, E_VELOCITY + n] = a0 * r[n, 1] - a1 * r[n, 0]
    for row in range(2):
        wx, wy, wz = h[row, E_VELOCITY], h[row, E_VELOCITY + 1], h[row, E_VELOCITY + 2]
        h[row, E_ATTITUDE] = wy * vz - wz * vy
        h[row, E_ATTITUDE + 1] = wz * vx - wx * vz
        h[row, E_ATTITUDE + 2] = wx * vy - wy * vx
    h[0, E_GYRO + 2], h[1, E_GYRO + 2] = -grown * turn_along, -turn_across
    h[0, E_SLIP] = along


@inner_kernel
def prepare_joints(x: Any, row: Any, stage: int, c: Any, h: Any, residual: Any, variance: Any) -> int:
    """Wheels that roll on the ground: speed along them, then none across; none at all where all stand."""
    rolls, radii, loaded = np.zeros(4), 0.0, 0.0
    if x[TIME] - x[LOAD_TIME] <= c.load_age:
        for i in range(4):
            loaded += x[LOADS + i]
            if x[LOADS + i] >= c.wheel_load:
                rolls[i] = 1.0
    count = rolls[0] + rolls[1] + rolls[2] + rolls[3]
    if stage == 0:
        turned = 0.0
        for i in range(4):
            turned = max(turned, abs(row[LOG_VALUES + 8 + i] - x[STILL_ANGLE + i]) * c.radius[i])
        rate = math.sqrt(x[RATES] ** 2 + x[RATES + 1] ** 2 + x[RATES + 2] ** 2)
        if not (turned <= c.still_way and rate <= c.still_rate and loaded >= c.still_load):
            x[STILL_SINCE] = x[TIME]
            for i in range(4):
                x[STILL_ANGLE + i] = row[LOG_VALUES + 8 + i]
    if x[TIME] - x[STILL_SINCE] >= c.still_time - SAME_TIME:
        if stage > 0 or x[TIME] - x[LAST_STILL] < c.still_period - SAME_TIME:
            return NOTHING
        x[LAST_STILL] = x[TIME]
        for i in range(3):
            h[i, E_VELOCITY + i], h[3 + i, E_GYRO + i] = 1.0, -1.0
            residual[i], residual[3 + i] = -x[VELOCITY + i], -x[RATES + i]
            variance[i], variance[3 + i] = c.still_speed * c.still_speed, c.still_gyro * c.still_gyro
        return STANDSTILL
    if count == 0.0 or (stage == 1 and x[TIME] - x[LAST_SIDE] < c.side_period - SAME_TIME):
        return NOTHING
    expected = np.empty(2)
    expect_wheels(x, row[LOG_VALUES + 4 : LOG_VALUES + 8], rolls, c, h, expected)
    if stage == 0:
        read = 0.0
        for i in range(4):
            radii += rolls[i] * c.radius[i]
            # counted against the body, rolled against the ground
            read += rolls[i] * c.radius[i] * (row[LOG_VALUES + i] + x[RATES + 1]) / count
        residual[0] = read - expected[0]
        variance[0] = c.wheel_noise * c.wheel_noise * radii * radii / (count * count * count)
        variance[0] += c.wheel_floor * c.wheel_floor
        return WHEEL_SPEED
    x[LAST_SIDE] = x[TIME]
    for n in range(ERRORS):
        h[0, n] = h[1, n]
    slip = c.side_slip + c.side_slip_rate * abs(x[FORCE + 1])
    residual[0] = -expected[1]
    variance[0] = c.side_noise * c.side_noise + (slip * expected[0]) ** 2
    return SIDE_SLIP


@kernel(nogil=True, error_model="numpy")
def expect_orientation(x: Any, read: Any, h: Any, out: Any) -> None:
    """The residual itself: the rotation vector (world axes) from the estimated attitude to the one that was read, less
    its drift; and the Jacobian (3, 27) of what was expected.
    """
    aw, ax, ay, az = read[0], read[1], read[2], read[3]
    bw, bx, by, bz = x[QUATERNION], -x[QUATERNION + 1], -x[QUATERNION + 2], -x[QUATERNION + 3]
    qw, qx = aw * bw - ax * bx - ay * by - az * bz, aw * bx + ax * bw + ay * bz - az * by
    qy, qz = aw * by - ax * bz + ay * bw + az * bx, aw * bz + ax * by - ay * bx + az * bw
    sign = -1.0 if qw < 0.0 else 1.0
    length = math.sqrt(qx * qx + qy * qy + qz * qz)
    share = sign * (2.0 if length < 1e-9 else 2.0 * math.atan2(length, sign * qw) / length)
    out[0] = share * qx - x[AHRS_DRIFT]
    out[1] = share * qy - x[AHRS_DRIFT + 1]
    out[2] = share * qz - x[AHRS_DRIFT + 2]
    for i in range(3):
        h[i, E_ATTITUDE + i] = 1.0
        h[i, E_AHRS + i] = 1.0


@inner_kernel
def prepare(x: Any, p: Any, row: Any, stage: int, c: Any, ground: Any, h: Any, residual: Any, variance: Any) -> int:
    """Jacobian (6, 27), residual and variance (6,) of a row's measurement; `stage`: its first or second.

    -> which sensor's it is; NOTHING where there is none.
    """
    h[:] = 0.0
    kind = int(row[LOG_KIND])
    if kind == KIND_JOINTS:
        return prepare_joints(x, row, stage, c, h, residual, variance)
    if kind == KIND_GPS:
        if stage == 0:
            expect_gps_position(x, c.lever_gps, h, residual)
        else:
            expect_velocity(x, c.lever_gps, h, residual)
        for i in range(3):
            residual[i] = row[LOG_VALUES + 3 * stage + i] - residual[i]
            white = c.gps_white[i] if stage == 0 else c.gps_velocity
            variance[i] = white * white
        return GPS_POSITION if stage == 0 else GPS_VELOCITY
    if stage > 0:
        return NOTHING
    if kind == KIND_LOADS:
        for i in range(4):
            x[LOADS + i] = row[LOG_VALUES + i]
        x[LOAD_TIME] = row[LOG_TIME]
        return NOTHING
    if kind == KIND_FIELD:
        expect_field(x, c.field, h, residual)
        for i in range(3):
            residual[i] = row[LOG_VALUES + i] - residual[i]
            variance[i] = c.field_white * c.field_white
        return MAGNETOMETER
    if kind == KIND_ORIENTATION:
        expect_orientation(x, row[LOG_VALUES : LOG_VALUES + 4], h, residual)
        for i in range(3):
            variance[i] = c.ahrs_white * c.ahrs_white
        return ORIENTATION
    if kind == KIND_PRESSURE:
        expect_pressure(x, c.lever_baro, c.altitude, h, residual)
        variance[0] = c.pressure_white * c.pressure_white
        residual[0] = row[LOG_VALUES] - residual[0]
        return BAROMETER
    spread_x = max(0.05, math.sqrt(p[E_POSITION, E_POSITION]))
    spread_y = max(0.05, math.sqrt(p[E_POSITION + 1, E_POSITION + 1]))
    bent = expect_height(x, ground, c.lever_height, spread_x, spread_y, h, residual)
    residual[0] = row[LOG_VALUES] - residual[0]
    variance[0] = c.height_white * c.height_white + bent
    return HEIGHT


@kernel(nogil=True, error_model="numpy")
def advance(
    imu: Any,
    first: int,
    last: int,
    log: Any,
    count: int,
    x: Any,
    p: Any,
    kept_x: Any,
    kept_p: Any,
    kept_cursor: Any,
    c: Any,
    ground: Any,
) -> None:
    """From the IMU's row first - 1, where x and p are, to row last - 1, with the measurements on the way.

    `kept_x`, `kept_p`, `kept_cursor`: what was there at each row of the IMU, and the first measurement after it.
    """
    force, rates = np.empty(3), np.empty(3)
    h, residual, variance = np.zeros((6, ERRORS)), np.empty(6), np.empty(6)
    cursor = kept_cursor[first - 1]
    for k in range(first, last):
        begin, end = imu[k - 1, IMU_TIME], imu[k, IMU_TIME]
        coasts = imu[k, IMU_COASTS] != 0.0
        held = imu[k - 1, IMU_COASTS] != 0.0
        now = begin
        while True:
            due = cursor < count and log[cursor, LOG_TIME] <= end + SAME_TIME
            to = min(log[cursor, LOG_TIME], end) if due else end
            if to - now > SAME_TIME:
                share = (0.5 * (now + to) - begin) / (end - begin)
                share = 1.0 if held else share
                for i in range(3):
                    force[i] = imu[k - 1, IMU_FORCE + i] * (1.0 - share) + imu[k, IMU_FORCE + i] * share
                    rates[i] = imu[k - 1, IMU_RATES + i] * (1.0 - share) + imu[k, IMU_RATES + i] * share
                propagate(x, p, to - now, force, rates, coasts, c)
                now = to
            if not due:
                break
            x[TIME] = now
            if not coasts:
                share = (now - begin) / (end - begin)
                share = 1.0 if held else share
                for i in range(3):
                    force[i] = imu[k - 1, IMU_FORCE + i] * (1.0 - share) + imu[k, IMU_FORCE + i] * share
                    rates[i] = imu[k - 1, IMU_RATES + i] * (1.0 - share) + imu[k, IMU_RATES + i] * share
                    x[FORCE + i] = force[i] - x[FORCE_BIAS + i]
                    x[RATES + i] = rates[i] - x[GYRO_BIAS + i]
            for stage in range(2):
                sensor = prepare(x, p, log[cursor], stage, c, ground, h, residual, variance)
                if sensor == NOTHING:
                    break
                m = 3 if sensor in (GPS_POSITION, GPS_VELOCITY, MAGNETOMETER, ORIENTATION) else 1
                m = 6 if sensor == STANDSTILL else m
                level = sensor == HEIGHT and c.ground_known
                nis = correct(x, p, h[:m], residual, variance, c.gates[m], level)
                count_result(x, p, sensor, nis, c.gates[m], residual, m, c.reacquire)
            cursor += 1
        x[TIME] = end
        if not coasts:
            for i in range(3):
                x[FORCE + i] = imu[k, IMU_FORCE + i] - x[FORCE_BIAS + i]
                x[RATES + i] = imu[k, IMU_RATES + i] - x[GYRO_BIAS + i]
        kept_x[k] = x
        kept_p[k] = p
        kept_cursor[k] = cursor


@kernel(nogil=True, error_model="numpy")
def report(x: Any, p: Any, lever: Any, place: Any, velocity: Any, covariance: Any) -> None:
    """Place and velocity (3,) of the body's origin, `lever` (3,) being the IMU's from there, and (9, 9) of both and the
    attitude.
    """
    r, arm, swing, turned = np.empty((3, 3)), np.empty(3), np.empty(3), np.empty(3)
    attitude(x, r)
    turned_lever(r, lever, arm)
    swing[0] = x[RATES + 1] * lever[2] - x[RATES + 2] * lever[1]
    swing[1] = x[RATES + 2] * lever[0] - x[RATES] * lever[2]
    swing[2] = x[RATES] * lever[1] - x[RATES + 1] * lever[0]
    turned_lever(r, swing, turned)
    j = np.zeros((9, ERRORS))
    for i in range(9):
        j[i, i] = 1.0
    put_cross(j, 0, E_ATTITUDE, 1.0, arm[0], arm[1], arm[2])
    put_cross(j, 3, E_ATTITUDE, 1.0, turned[0], turned[1], turned[2])
    for i in range(3):
        place[i] = x[POSITION + i] - arm[i]
        velocity[i] = x[VELOCITY + i] - turned[i]
        j[3 + i, E_GYRO] = -(r[i, 1] * lever[2] - r[i, 2] * lever[1])
        j[3 + i, E_GYRO + 1] = -(r[i, 2] * lever[0] - r[i, 0] * lever[2])
        j[3 + i, E_GYRO + 2] = -(r[i, 0] * lever[1] - r[i, 1] * lever[0])
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
