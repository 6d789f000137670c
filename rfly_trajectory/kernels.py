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
            half = 0.5 * values[3] * run
            chord = run * (math.sin(half) / half) if half != 0.0 else run
            heading = values[2] + values[3] * run
            points[i, 0] = values[0] + chord * math.cos(values[2] + half)
            points[i, 1] = values[1] + chord * math.sin(values[2] + half)
            points[i, 2] = math.cos(heading)
            points[i, 3] = math.sin(heading)
            points[i, 4] = values[3]
            points[i, 5] = 0.0
        elif table.kind[piece] == SPIRAL:
            run = at - values[3]
            angle = 0.5 * values[4] * run * run
            x = y = 0.0
            term = run
            for n in range(0, SPIRAL_TERMS, 2):
                x += term / (2 * n + 1)
                term *= angle / (n + 1)
                y += term / (2 * n + 3)
                term *= -angle / (n + 2)
            c, d = math.cos(values[2]), math.sin(values[2])
            heading = values[2] + angle
            points[i, 0] = values[0] + c * x - d * y
            points[i, 1] = values[1] + d * x + c * y
            points[i, 2] = math.cos(heading)
            points[i, 3] = math.sin(heading)
            points[i, 4] = values[4] * run
            points[i, 5] = values[4]
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
    tangent: Floats,
    curvature: Floats,
    curvature_rate: Floats,
    ground: Floats,
    gradient: Floats,
    smooth: Floats,
    smooth_rate: Floats,
) -> Floats:
    """(k, 9) z, vertical speed, quaternion xyzw, body rates FLU; all arguments (k, …), see `attitude.poses`."""
    rows = np.empty((kind.size, 9))
    for i in range(kind.size):
        speed, acceleration = progress[i, 1], progress[i, 2]
        tx, ty = tangent[i, 0], tangent[i, 1]
        yaw_rate = curvature[i] * speed
        lateral = curvature[i] * speed * speed
        lateral_rate = 2.0 * curvature[i] * speed * acceleration + curvature_rate[i] * speed * speed * speed
        follows = not absolute[i] or height[i] <= ground[i]
        if follows:
            rows[i, 0] = ground[i] + (0.0 if absolute[i] else height[i])
            rows[i, 1] = speed * (gradient[i, 0] * tx + gradient[i, 1] * ty)
            along = smooth[i, 0] * tx + smooth[i, 1] * ty
            left = smooth[i, 1] * tx - smooth[i, 0] * ty
            along_rate = smooth_rate[i, 0] * tx + smooth_rate[i, 1] * ty + left * yaw_rate
            left_rate = smooth_rate[i, 1] * tx - smooth_rate[i, 0] * ty - along * yaw_rate
        else:
            rows[i, 0] = height[i]
            rows[i, 1] = 0.0
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
        a_rate = along * along_rate / a
        pitch, roll = -math.atan(along), math.atan(left / a)
        pitch_rate = -along_rate / (a * a)
        roll_rate = (left_rate * a - left * a_rate) / (a * a + left * left)
        yaw = 0.5 * math.atan2(ty, tx)
        cy, sy = math.cos(yaw), math.sin(yaw)
        cp, sp = math.cos(0.5 * pitch), math.sin(0.5 * pitch)
        cr, sr = math.cos(0.5 * roll), math.sin(0.5 * roll)
        rows[i, 2] = sr * cp * cy - cr * sp * sy
        rows[i, 3] = cr * sp * cy + sr * cp * sy
        rows[i, 4] = cr * cp * sy - sr * sp * cy
        rows[i, 5] = cr * cp * cy + sr * sp * sy
        c_pitch, c_roll, s_roll = math.cos(pitch), math.cos(roll), math.sin(roll)
        rows[i, 6] = roll_rate - yaw_rate * math.sin(pitch)
        rows[i, 7] = pitch_rate * c_roll + yaw_rate * s_roll * c_pitch
        rows[i, 8] = -pitch_rate * s_roll + yaw_rate * c_roll * c_pitch
    return rows
