# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compiled loops over vehicles: points of paths, progress in time, poses."""

from __future__ import annotations

import math

import numpy as np

from rfly_common.arrays import Floats, Ints
from rfly_common.kernels.jit import inlined_kernel, kernel, pasted_kernel
from rfly_common.physics import GRAVITY
from rfly_trajectory.kernels.tables import (
    ARC,
    FIXED_WING,
    GROUND,
    SPIRAL,
    SPIRAL_TERMS,
    STEEPEST,
    AltitudeTable,
    Departures,
    GroundRows,
    PathTable,
    Placements,
    VehiclePoses,
    WheelBases,
    WheelGround,
)

BLOCK = 128
"""Vehicles between the loops of `poses`; what they hand on fits into the first-level cache."""

# rows of a block: slopes of the floor along the heading and to its left, their rates, the heading
ALONG = 0
LEFT = 1
ALONG_RATE = 2
LEFT_RATE = 3
HEADING_X = 4
HEADING_Y = 5
YAW_RATE = 6
# and what follows from them: quaternion and body rates
QX = 7
QY = 8
QZ = 9
QW = 10
RATE_X = 11
RATE_Y = 12
RATE_Z = 13
BLOCK_ROWS = 14

Pair = tuple[float, float]

TINY = 1e-30
"""Terms of a series below this change no coordinate, m."""


@kernel
def last_not_above(starts: Floats, first: int, end: int, value: float) -> int:
    """Return the largest index in first … end-1 with starts[index] <= value, or else `first`."""
    low = first
    high = end
    while high - low > 1:
        middle = (low + high) // 2
        if starts[middle] <= value:
            low = middle
        else:
            high = middle
    return low


@pasted_kernel
def place_on_path(length: float, closed: bool, s: float) -> float:
    """Return the place on a path for arc length s; a closed path goes round and round."""
    place = s - math.floor(s / length) * length if closed else s
    return min(max(place, 0.0), length)


@kernel
def path_points(table: PathTable, path: Ints, s: Floats) -> Floats:
    """Return x, y, tangent x, tangent y, curvature, curvature rate at arc lengths s (k,), (k, 6).

    `path` (k,) are the paths. Each column is contiguous, as loops over vehicles need it.
    """
    points = np.empty((6, s.size)).T
    for i in range(s.size):
        place = place_on_path(table.length[path[i]], table.closed[path[i]], s[i])
        piece = last_not_above(table.start, table.first[path[i]], table.first[path[i] + 1], place)
        kind = table.kind[piece]
        if kind == ARC:
            write_arc(table.values[piece], place - table.start[piece], points[i])
        elif kind == SPIRAL:
            write_spiral(table.values[piece], place - table.values[piece, 2], points[i])
        else:
            write_polynomial(table.values[piece], place - table.start[piece], points[i])
    return points


@inlined_kernel
def write_arc(values: Floats, run: float, point: Floats) -> None:
    """Write the point of an arc or a straight line, `run` metres after its start."""
    c = values[3]
    d = values[4]
    if values[2] == 0.0:
        point[0] = values[0] + run * c
        point[1] = values[1] + run * d
        point[2] = c
        point[3] = d
    else:
        half = 0.5 * values[2] * run
        sine = math.sin(half)
        cosine = math.cos(half)

        # along the chord, then turned by the whole angle
        chord = 2.0 * sine / values[2]
        point[0] = values[0] + chord * (c * cosine - d * sine)
        point[1] = values[1] + chord * (d * cosine + c * sine)
        turn_sine = 2.0 * sine * cosine
        turn_cosine = 1.0 - 2.0 * sine * sine
        point[2] = c * turn_cosine - d * turn_sine
        point[3] = d * turn_cosine + c * turn_sine
    point[4] = values[2]
    point[5] = 0.0


@inlined_kernel
def write_spiral(values: Floats, run: float, point: Floats) -> None:
    """Write the point of a clothoid, `run` metres after its straight end."""
    # Fresnel's integrals by their power series
    angle = 0.5 * values[3] * run * run
    x = 0.0
    y = 0.0
    term = run
    for n in range(0, SPIRAL_TERMS, 2):
        x += term / (2 * n + 1)
        term *= angle / (n + 1)
        y += term / (2 * n + 3)
        term *= -angle / (n + 2)
        if abs(term) < TINY:
            break

    c = values[4]
    d = values[5]
    sine = math.sin(angle)
    cosine = math.cos(angle)
    point[0] = values[0] + c * x - d * y
    point[1] = values[1] + d * x + c * y
    point[2] = c * cosine - d * sine
    point[3] = d * cosine + c * sine
    point[4] = values[3] * run
    point[5] = values[3]


@inlined_kernel
def write_polynomial(values: Floats, run: float, point: Floats) -> None:
    """Write the point of a polynomial piece at its parameter `run`."""
    # Horner's scheme for the polynomials and their derivatives at once
    x = x1 = x2 = x3 = y = y1 = y2 = y3 = 0.0
    for n in range(5, -1, -1):
        x3 = x3 * run + 3.0 * x2
        x2 = x2 * run + 2.0 * x1
        x1 = x1 * run + x
        x = x * run + values[n]
        y3 = y3 * run + 3.0 * y2
        y2 = y2 * run + 2.0 * y1
        y1 = y1 * run + y
        y = y * run + values[6 + n]

    per_norm = 1.0 / math.sqrt(x1 * x1 + y1 * y1)
    square = per_norm * per_norm
    cube = square * per_norm
    curvature = (x1 * y2 - y1 * x2) * cube
    point[0] = x
    point[1] = y
    point[2] = x1 * per_norm
    point[3] = y1 * per_norm
    point[4] = curvature
    bend = 3.0 * curvature * (x1 * x2 + y1 * y2) * square
    point[5] = (x1 * y3 - y1 * x3) * cube - bend


@kernel
def curvature_bends(table: PathTable, path: Ints, s: Floats) -> Floats:
    """Return the second derivative of the curvature, (k,), 1/m³, at arc lengths s (k,) of paths."""
    bends = np.zeros(s.size)
    for i in range(s.size):
        place = place_on_path(table.length[path[i]], table.closed[path[i]], s[i])
        piece = last_not_above(table.start, table.first[path[i]], table.first[path[i] + 1], place)
        if table.kind[piece] == ARC or table.kind[piece] == SPIRAL:
            continue

        # Horner's scheme for the polynomials and their derivatives at once
        values = table.values[piece]
        run = place - table.start[piece]
        x = x1 = x2 = x3 = x4 = y = y1 = y2 = y3 = y4 = 0.0
        for n in range(5, -1, -1):
            x4 = x4 * run + 4.0 * x3
            x3 = x3 * run + 3.0 * x2
            x2 = x2 * run + 2.0 * x1
            x1 = x1 * run + x
            x = x * run + values[n]
            y4 = y4 * run + 4.0 * y3
            y3 = y3 * run + 3.0 * y2
            y2 = y2 * run + 2.0 * y1
            y1 = y1 * run + y
            y = y * run + values[6 + n]
        bends[i] = x2 * y3 - y2 * x3 + x1 * y4 - y1 * x4
    return bends


@kernel
def altitudes(table: AltitudeTable, path: Ints, s: Floats) -> Floats:
    """Return z, m, its slope and the slope's rate, 1/m, at arc lengths s (k,) of paths, (k, 3)."""
    rows = np.empty((s.size, 3))
    for i in range(s.size):
        p = path[i]
        length = table.length[p]
        place = s[i]
        if table.closed[p]:
            place -= math.floor(place / length) * length
        inside = min(max(place, 0.0), length)
        piece = last_not_above(table.start, table.first[p], table.first[p + 1], inside)
        run = inside - table.start[piece]
        values = table.values[piece]

        # an open path keeps its slope beyond its ends
        slope = values[1] + run * (2.0 * values[2] + run * 3.0 * values[3])
        rows[i, 0] = (
            values[0]
            + run * (values[1] + run * (values[2] + run * values[3]))
            + slope * (place - inside)
        )
        rows[i, 1] = slope
        rows[i, 2] = 2.0 * values[2] + run * 6.0 * values[3] if inside == place else 0.0
    return rows


@kernel
def progress(departures: Departures, vehicle: Ints, time: Floats) -> Floats:
    """Return arc length, m, its rate, m/s, acceleration, m/s², and jerk, m/s³, of vehicles, (k, 4).

    `vehicle` (k,) at `time` (k,), s. Each column is contiguous, as loops over vehicles need it.
    """
    rows = np.empty((4, time.size)).T
    for i in range(time.size):
        v = vehicle[i]
        first = departures.first[v]
        since = time[i] - departures.delay[v]
        if since < 0.0:
            rows[i, 0] = departures.law[first, 0]
            rows[i, 1] = 0.0
            rows[i, 2] = 0.0
            rows[i, 3] = 0.0
            continue

        # the same instant of the first round
        begin = departures.loop_start[v]
        period = departures.loop_period[v]
        if since > begin and period < math.inf:
            since = begin + np.fmod(since - begin, period)

        piece = last_not_above(departures.start, first, departures.first[v + 1], since)
        run = since - departures.start[piece]
        speed = departures.law[piece, 1]
        acceleration = departures.law[piece, 2]
        jerk = departures.law[piece, 3]
        rows[i, 0] = departures.law[piece, 0] + run * (
            speed + run * (0.5 * acceleration + run * (jerk / 6.0))
        )
        rows[i, 1] = speed + run * (acceleration + 0.5 * run * jerk)
        rows[i, 2] = acceleration + run * jerk
        rows[i, 3] = jerk
    return rows


@kernel
def poses(
    placements: Placements, progress: Floats, points: Floats, ground: GroundRows, out: VehiclePoses
) -> None:
    """Write the poses of k vehicles -> out; see `attitude.poses`.

    progress (4, k) and points (6, k) come as rows. Vehicles go in blocks through three loops. What
    these hand on lies in one array, so that the loop in the middle becomes vector instructions.
    """
    block = np.empty((BLOCK_ROWS, BLOCK))
    orientation = out.orientation
    rates = out.angular_velocity
    k = placements.kind.size
    for start in range(0, k, BLOCK):
        count = min(BLOCK, k - start)
        place_on_ground(placements, progress, points, ground, out, start, count, block)

        # attitudes of the block
        for n in range(count):
            floor = block[ALONG, n], block[LEFT, n], block[ALONG_RATE, n], block[LEFT_RATE, n]
            tx = block[HEADING_X, n]
            ty = block[HEADING_Y, n]
            yaw_rate = block[YAW_RATE, n]
            qx, qy, qz, qw, rate_x, rate_y, rate_z = attitude_of_floor(floor, tx, ty, yaw_rate)
            block[QX, n] = qx
            block[QY, n] = qy
            block[QZ, n] = qz
            block[QW, n] = qw
            block[RATE_X, n] = rate_x
            block[RATE_Y, n] = rate_y
            block[RATE_Z, n] = rate_z

        # the results, one row a vehicle
        for n in range(count):
            i = start + n
            orientation[i, 0] = block[QX, n]
            orientation[i, 1] = block[QY, n]
            orientation[i, 2] = block[QZ, n]
            orientation[i, 3] = block[QW, n]
            rates[i, 0] = block[RATE_X, n]
            rates[i, 1] = block[RATE_Y, n]
            rates[i, 2] = block[RATE_Z, n]


@inlined_kernel
def place_on_ground(
    placements: Placements,
    progress: Floats,
    points: Floats,
    ground: GroundRows,
    out: VehiclePoses,
    start: int,
    count: int,
    block: Floats,
) -> None:
    """Write position and velocity of a block of vehicles -> out, slopes of floors -> block."""
    kind, height, absolute = placements
    altitude, gradient, smooth, smooth_rate = ground
    position = out.position
    velocity = out.velocity
    per_gravity = 1.0 / GRAVITY
    for n in range(count):
        i = start + n
        speed = progress[1, i]
        acceleration = progress[2, i]
        tx = points[2, i]
        ty = points[3, i]
        yaw_rate = points[4, i] * speed
        lateral = yaw_rate * speed
        lateral_rate = 2.0 * yaw_rate * acceleration + points[5, i] * speed * speed * speed

        # at a height above the ground, or at an absolute altitude
        follows = not absolute[i] or height[i] <= altitude[i]
        position[i, 0] = points[0, i]
        position[i, 1] = points[1, i]
        velocity[i, 0] = speed * tx
        velocity[i, 1] = speed * ty
        if follows:
            position[i, 2] = altitude[i] + (0.0 if absolute[i] else height[i])
            velocity[i, 2] = speed * (gradient[0, i] * tx + gradient[1, i] * ty)
            along = smooth[0, i] * tx + smooth[1, i] * ty
            left = smooth[1, i] * tx - smooth[0, i] * ty
            along_rate = smooth_rate[0, i] * tx + smooth_rate[1, i] * ty + left * yaw_rate
            left_rate = smooth_rate[1, i] * tx - smooth_rate[0, i] * ty - along * yaw_rate
        else:
            position[i, 2] = height[i]
            velocity[i, 2] = 0.0
            along = left = along_rate = left_rate = 0.0

        # aircraft bank into their turns, multirotors lean with their acceleration
        if kind[i] == FIXED_WING:
            climb = 1.0 + along * along
            left = -climb * lateral * per_gravity
            left_rate = -(2.0 * along * along_rate * lateral + climb * lateral_rate) * per_gravity
        elif kind[i] != GROUND:
            along = -acceleration * per_gravity
            along_rate = -progress[3, i] * per_gravity
            left = -lateral * per_gravity
            left_rate = -lateral_rate * per_gravity

        block[ALONG, n] = along
        block[LEFT, n] = left
        block[ALONG_RATE, n] = along_rate
        block[LEFT_RATE, n] = left_rate
        block[HEADING_X, n] = tx
        block[HEADING_Y, n] = ty
        block[YAW_RATE, n] = yaw_rate


@inlined_kernel
def attitude_of_floor(
    floor: tuple[float, float, float, float], tx: float, ty: float, yaw_rate: float
) -> tuple[float, float, float, float, float, float, float]:
    """Return quaternion xyzw and body rates on a floor with slopes along and left of the heading.

    `floor` are the two slopes and their rates. No angle is computed: sines and cosines of the half
    angles follow from square roots.
    """
    along, left, along_rate, left_rate = floor

    # pitch and roll, and their rates
    a = math.sqrt(1.0 + along * along)
    b = math.sqrt(a * a + left * left)
    per_a = 1.0 / a
    per_b = 1.0 / b
    a_rate = along * along_rate * per_a
    cos_pitch = per_a
    sin_pitch = -along * per_a
    cos_roll = a * per_b
    sin_roll = left * per_b
    pitch_rate = -along_rate * per_a * per_a
    roll_rate = (left_rate * a - left * a_rate) * per_b * per_b

    # half angles; `more` is the larger of cosine and sine of half the heading
    more = math.sqrt(0.5 + 0.5 * abs(tx))
    cp = math.sqrt(0.5 + 0.5 * cos_pitch)
    cr = math.sqrt(0.5 + 0.5 * cos_roll)
    per_all = 0.5 / (more * cp * cr)
    less = abs(ty) * per_all * cp * cr
    sp = sin_pitch * per_all * more * cr
    sr = sin_roll * per_all * more * cp
    cy = more if tx >= 0.0 else less
    sy = (less if tx >= 0.0 else more) * (1.0 if ty >= 0.0 else -1.0)

    # quaternion, and rates about the body axes
    return (
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
        cr * cp * cy + sr * sp * sy,
        roll_rate - yaw_rate * sin_pitch,
        pitch_rate * cos_roll + yaw_rate * sin_roll * cos_pitch,
        -pitch_rate * sin_roll + yaw_rate * cos_roll * cos_pitch,
    )


@inlined_kernel
def wheel_offset(wheel: int, wheelbase: float, track: float) -> tuple[float, float]:
    """Return how far ahead and left of the origin a wheel of the vehicle is, body axes."""
    fore = 0.5 * wheelbase if wheel < 2 else -0.5 * wheelbase
    side = 0.5 * track if wheel % 2 == 0 else -0.5 * track
    return fore, side


@kernel
def wheel_arm(
    wheel: int, wheelbase: float, track: float, q: float, p: float
) -> tuple[float, float]:
    """Return how far ahead and left of the origin a wheel is, seen from above."""
    a = math.sqrt(1.0 + q * q)
    b = math.sqrt(a * a + p * p)
    fore, side = wheel_offset(wheel, wheelbase, track)
    return fore / a - side * p * q / (a * b), side * a / b


@kernel
def wheel_places(wheels: WheelBases, points: Floats, q: Floats, p: Floats) -> tuple[Floats, Floats]:
    """Return x and y of the wheels, (k, 4): front left, front right, rear left, rear right."""
    wheelbase, track = wheels
    x = np.empty((q.size, 4))
    y = np.empty((q.size, 4))
    for i in range(q.size):
        tx = points[i, 2]
        ty = points[i, 3]
        for wheel in range(4):
            ahead, left = wheel_arm(wheel, wheelbase[i], track[i], q[i], p[i])
            x[i, wheel] = points[i, 0] + tx * ahead - ty * left
            y[i, wheel] = points[i, 1] + ty * ahead + tx * left
    return x, y


@kernel
def wheel_plane(wheels: WheelBases, h: Floats) -> Floats:
    """Return α, β, q and p, (k, 4), of the least-squares plane through heights h (k, 4)."""
    wheelbase, track = wheels
    plane = np.empty((wheelbase.size, 4))
    for i in range(wheelbase.size):
        # slope along the body
        alpha = (h[i, 0] + h[i, 1] - h[i, 2] - h[i, 3]) / (2.0 * wheelbase[i])
        alpha = min(max(alpha, -STEEPEST), STEEPEST)
        a = 1.0 / math.sqrt(1.0 - alpha * alpha)

        # slope across it, from the length of the inclined axis
        u = a * (h[i, 0] - h[i, 1] + h[i, 2] - h[i, 3]) / (2.0 * track[i])
        u = min(max(u, -STEEPEST), STEEPEST)
        plane[i, 0] = alpha
        plane[i, 1] = u / a
        plane[i, 2] = alpha * a
        plane[i, 3] = a * u / math.sqrt(1.0 - u * u)
    return plane


@kernel
def wheel_contact(
    wheels: WheelBases, ground: WheelGround, points: Floats, speed: Floats, plane: Floats
) -> Floats:
    """Return altitude, q, p, climb rate, rates of q and p, and gap, (k, 7).

    `plane` (k, 4) comes from `wheel_plane`. The formulas are in `attitude`.
    """
    h, under, middle, gradient = ground
    rows = np.empty((speed.size, 7))
    needed = np.empty(4)
    h_rate = np.empty(4)
    for i in range(speed.size):
        size = wheels.wheelbase[i], wheels.track[i]
        tilt = plane[i, 0], plane[i, 1]
        q = plane[i, 2]
        p = plane[i, 3]
        tx = points[i, 2]
        ty = points[i, 3]
        yaw_rate = points[i, 4] * speed[i]

        # the plane raised until no wheel is below the ground
        for wheel in range(4):
            needed[wheel] = height_at_origin(size, wheel, h[i, wheel], tilt)
        supporting = largest_of_four(needed)
        altitude = max(needed[supporting], middle[i])

        # The wheels' motion depends on the plane's rates, which follow from it. Two passes are
        # enough.
        q_rate = p_rate = 0.0
        tilt_rate = 0.0, 0.0
        for _ in range(2):
            turning = axis_rates(q, p, q_rate, p_rate)
            for wheel in range(4):
                ahead, aside = wheel_velocity(size, wheel, q, p, turning, speed[i], yaw_rate)
                along, left = along_heading(under[i, wheel, 0], under[i, wheel, 1], tx, ty)
                h_rate[wheel] = along * ahead + left * aside
            tilt_rate = plane_slopes(size, h_rate)
            q_rate, p_rate = slope_rates(q, p, tilt_rate)

        # climb of the point that carries the plane: the origin, or a wheel
        if middle[i] > needed[supporting]:
            climb = speed[i] * along_heading(gradient[i, 0], gradient[i, 1], tx, ty)[0]
        else:
            climb = height_at_origin(size, supporting, h_rate[supporting], tilt_rate)

        rows[i, 0] = altitude
        rows[i, 1] = q
        rows[i, 2] = p
        rows[i, 3] = climb
        rows[i, 4] = q_rate
        rows[i, 5] = p_rate
        rows[i, 6] = altitude - needed.min()
    return rows


@inlined_kernel
def height_at_origin(size: Pair, wheel: int, h: float, tilt: Pair) -> float:
    """Return the height at the origin of a plane that has the height h at a wheel.

    `size` are wheelbase and track, `tilt` are α and β. Rates of h, α and β give the height's rate.
    """
    fore, side = wheel_offset(wheel, size[0], size[1])
    return h - tilt[0] * fore - tilt[1] * side


@inlined_kernel
def largest_of_four(values: Floats) -> int:
    """Return the index of the largest of four numbers."""
    best = 0
    for i in range(1, 4):
        if values[i] > values[best]:
            best = i
    return best


@inlined_kernel
def along_heading(gx: float, gy: float, tx: float, ty: float) -> Pair:
    """Return the slopes along a heading (tx, ty) and to its left of ground with a gradient."""
    return gx * tx + gy * ty, gy * tx - gx * ty


@inlined_kernel
def plane_slopes(size: Pair, h: Floats) -> Pair:
    """Return α and β of the least-squares plane through heights at the wheels, or their rates."""
    alpha = (h[0] + h[1] - h[2] - h[3]) / (2.0 * size[0])
    beta = (h[0] - h[1] + h[2] - h[3]) / (2.0 * size[1])
    return alpha, beta


@inlined_kernel
def axis_rates(q: float, p: float, q_rate: float, p_rate: float) -> tuple[float, float, float]:
    """Return the rates of the horizontal parts of the body's axes, 1/s, heading frame.

    They are d/dt 1/a, of x_body, and d/dt -pq/(ab) and d/dt a/b, of y_body.
    """
    a = math.sqrt(1.0 + q * q)
    b = math.sqrt(a * a + p * p)
    a_rate = q * q_rate / a
    b_rate = (a * a_rate + p * p_rate) / b
    return (
        -a_rate / (a * a),
        (p * q * (a_rate / a + b_rate / b) - p_rate * q - p * q_rate) / (a * b),
        a_rate / b - a * b_rate / (b * b),
    )


@inlined_kernel
def wheel_velocity(
    size: Pair,
    wheel: int,
    q: float,
    p: float,
    turning: tuple[float, float, float],
    speed: float,
    yaw_rate: float,
) -> Pair:
    """Return the horizontal velocity of a wheel, ahead and to the left, m/s.

    It is that of the origin, of the turn about it, and of the body's axes, whose rates `turning`
    come from `axis_rates`.
    """
    fore, side = wheel_offset(wheel, size[0], size[1])
    ahead, left = wheel_arm(wheel, size[0], size[1], q, p)
    ahead_rate = speed - yaw_rate * left + fore * turning[0] + side * turning[1]
    return ahead_rate, yaw_rate * ahead + side * turning[2]


@inlined_kernel
def slope_rates(q: float, p: float, tilt_rate: Pair) -> Pair:
    """Return the rates of q = α/√(1-α²) and p = a·u/√(1-u²), u = a·β, from those of α and β."""
    alpha_rate, beta_rate = tilt_rate
    a = math.sqrt(1.0 + q * q)
    u = p / math.sqrt(a * a + p * p)
    root = math.sqrt(1.0 - u * u)
    q_rate = a * a * a * alpha_rate
    a_rate = q * q_rate / a
    u_rate = beta_rate * a + u / a * a_rate
    return q_rate, a_rate * u / root + a * u_rate / (root * root * root)
