"""Compiled loops over vehicles: points of paths, progress in time, poses. `numpy_path` has the same functions.

All of them stay in this one file, since numba's cache does not notice a change in another.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rfly_common.accel import kernel
from rfly_trajectory.attitude import FIXED_WING, GRAVITY, GROUND
from rfly_trajectory.motion import Departures
from rfly_trajectory.paths import ARC, SPIRAL, SPIRAL_TERMS, PathTable

Floats = NDArray[np.float64]

TINY = 1e-30
"""m: terms of a series that no coordinate can feel"""


@kernel()
def last_not_above(starts: Floats, first: int, end: int, value: float) -> int:
    """The largest index in first … end-1 with starts[index] <= value, and `first` where there is none."""
    low, high = first, end
    while high - low > 1:
        middle = (low + high) // 2
        if starts[middle] <= value:
            low = middle
        else:
            high = middle
    return low


@kernel()
def path_points(table: PathTable, path: NDArray[np.int64], s: Floats) -> Floats:
    """(k, 6) x, y, tangent x, tangent y, curvature, curvature rate at arc length s (k,) of the paths `path` (k,)."""
    points = np.empty((s.size, 6))
    for i in range(s.size):
        p = path[i]
        length = table.length[p]
        at = s[i]
        if table.closed[p]:
            at -= math.floor(at / length) * length
        at = min(max(at, 0.0), length)
        piece = last_not_above(table.start, table.first[p], table.first[p + 1], at)
        values = table.values[piece]
        if table.kind[piece] == ARC:
            run = at - table.start[piece]
            c, d = values[3], values[4]
            if values[2] == 0.0:
                points[i, 0] = values[0] + run * c
                points[i, 1] = values[1] + run * d
                points[i, 2] = c
                points[i, 3] = d
            else:
                half = 0.5 * values[2] * run
                sine, cosine = math.sin(half), math.cos(half)
                chord = 2.0 * sine / values[2]
                points[i, 0] = values[0] + chord * (c * cosine - d * sine)
                points[i, 1] = values[1] + chord * (d * cosine + c * sine)
                turn_sine, turn_cosine = 2.0 * sine * cosine, 1.0 - 2.0 * sine * sine
                points[i, 2] = c * turn_cosine - d * turn_sine
                points[i, 3] = d * turn_cosine + c * turn_sine
            points[i, 4] = values[2]
            points[i, 5] = 0.0
        elif table.kind[piece] == SPIRAL:
            run = at - values[2]
            angle = 0.5 * values[3] * run * run
            x = y = 0.0
            term = run
            for n in range(0, SPIRAL_TERMS, 2):
                x += term / (2 * n + 1)
                term *= angle / (n + 1)
                y += term / (2 * n + 3)
                term *= -angle / (n + 2)
                if abs(term) < TINY:
                    break
            c, d = values[4], values[5]
            sine, cosine = math.sin(angle), math.cos(angle)
            points[i, 0] = values[0] + c * x - d * y
            points[i, 1] = values[1] + d * x + c * y
            points[i, 2] = c * cosine - d * sine
            points[i, 3] = d * cosine + c * sine
            points[i, 4] = values[3] * run
            points[i, 5] = values[3]
        else:
            run = at - table.start[piece]
            x = x1 = x2 = x3 = y = y1 = y2 = y3 = 0.0
            for n in range(5, -1, -1):  # Horner's scheme for the polynomials and their derivatives at once
                x3 = x3 * run + 3.0 * x2
                x2 = x2 * run + 2.0 * x1
                x1 = x1 * run + x
                x = x * run + values[n]
                y3 = y3 * run + 3.0 * y2
                y2 = y2 * run + 2.0 * y1
                y1 = y1 * run + y
                y = y * run + values[6 + n]
            norm = math.hypot(x1, y1)
            points[i, 0] = x
            points[i, 1] = y
            points[i, 2] = x1 / norm
            points[i, 3] = y1 / norm
            points[i, 4] = (x1 * y2 - y1 * x2) / norm**3
            points[i, 5] = (x1 * y3 - y1 * x3) / norm**3 - 3.0 * points[i, 4] * (x1 * x2 + y1 * y2) / norm**2
    return points


@kernel()
def progress(departures: Departures, vehicle: NDArray[np.int64], time: Floats) -> Floats:
    """(k, 3) arc length s [m], its rate [m/s] and acceleration [m/s²] of the vehicles (k,) at the times (k,) [s]."""
    rows = np.empty((time.size, 3))
    for i in range(time.size):
        v = vehicle[i]
        first = departures.first[v]
        since = time[i] - departures.delay[v]
        if since < 0.0:
            rows[i, 0] = departures.law[first, 0]
            rows[i, 1] = 0.0
            rows[i, 2] = 0.0
            continue
        begin, period = departures.loop_start[v], departures.loop_period[v]
        if since > begin and period < math.inf:
            since = begin + np.fmod(since - begin, period)
        piece = last_not_above(departures.start, first, departures.first[v + 1], since)
        run = since - departures.start[piece]
        s, speed, acceleration = departures.law[piece, 0], departures.law[piece, 1], departures.law[piece, 2]
        rows[i, 0] = s + run * (speed + 0.5 * run * acceleration)
        rows[i, 1] = speed + run * acceleration
        rows[i, 2] = acceleration
    return rows


@kernel()
def poses(
    kind: NDArray[np.uint8],
    height: Floats,
    absolute: NDArray[np.bool_],
    progress: Floats,
    points: Floats,
    ground: Floats,
    gradient: Floats,
    smooth: Floats,
    smooth_rate: Floats,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Position (k, 3), quaternion xyzw (k, 4), velocity (k, 3), body rates FLU (k, 3); see `attitude.poses`.

    All arguments are (k, …). No angle is computed: sines and cosines of the half angles follow from square roots.
    """
    position, orientation = np.empty((kind.size, 3)), np.empty((kind.size, 4))
    velocity, rates = np.empty((kind.size, 3)), np.empty((kind.size, 3))
    for i in range(kind.size):
        speed, acceleration = progress[i, 1], progress[i, 2]
        tx, ty, curvature = points[i, 2], points[i, 3], points[i, 4]
        yaw_rate = curvature * speed
        lateral = yaw_rate * speed
        lateral_rate = 2.0 * yaw_rate * acceleration + points[i, 5] * speed * speed * speed
        follows = not absolute[i] or height[i] <= ground[i]
        position[i, 0] = points[i, 0]
        position[i, 1] = points[i, 1]
        velocity[i, 0] = speed * tx
        velocity[i, 1] = speed * ty
        if follows:
            position[i, 2] = ground[i] + (0.0 if absolute[i] else height[i])
            velocity[i, 2] = speed * (gradient[i, 0] * tx + gradient[i, 1] * ty)
            along = smooth[i, 0] * tx + smooth[i, 1] * ty
            left = smooth[i, 1] * tx - smooth[i, 0] * ty
            along_rate = smooth_rate[i, 0] * tx + smooth_rate[i, 1] * ty + left * yaw_rate
            left_rate = smooth_rate[i, 1] * tx - smooth_rate[i, 0] * ty - along * yaw_rate
        else:
            position[i, 2] = height[i]
            velocity[i, 2] = 0.0
            along = left = along_rate = left_rate = 0.0
        if kind[i] == FIXED_WING:
            climb = 1.0 + along * along
            left = -climb * lateral / GRAVITY
            left_rate = -(2.0 * along * along_rate * lateral + climb * lateral_rate) / GRAVITY
        elif kind[i] != GROUND:
            along = -acceleration / GRAVITY
            along_rate = 0.0
            left = -lateral / GRAVITY
            left_rate = -lateral_rate / GRAVITY

        a = math.sqrt(1.0 + along * along)
        b = math.sqrt(a * a + left * left)
        a_rate = along * along_rate / a
        cos_pitch, sin_pitch = 1.0 / a, -along / a
        cos_roll, sin_roll = a / b, left / b
        pitch_rate = -along_rate / (a * a)
        roll_rate = (left_rate * a - left * a_rate) / (b * b)
        if tx >= 0.0:
            cy = math.sqrt(0.5 + 0.5 * tx)
            sy = 0.5 * ty / cy
        else:
            sy = math.copysign(math.sqrt(0.5 - 0.5 * tx), ty)
            cy = 0.5 * ty / sy
        cp, cr = math.sqrt(0.5 + 0.5 * cos_pitch), math.sqrt(0.5 + 0.5 * cos_roll)
        sp, sr = 0.5 * sin_pitch / cp, 0.5 * sin_roll / cr
        orientation[i, 0] = sr * cp * cy - cr * sp * sy
        orientation[i, 1] = cr * sp * cy + sr * cp * sy
        orientation[i, 2] = cr * cp * sy - sr * sp * cy
        orientation[i, 3] = cr * cp * cy + sr * sp * sy
        rates[i, 0] = roll_rate - yaw_rate * sin_pitch
        rates[i, 1] = pitch_rate * cos_roll + yaw_rate * sin_roll * cos_pitch
        rates[i, 2] = -pitch_rate * sin_roll + yaw_rate * cos_roll * cos_pitch
    return position, orientation, velocity, rates
