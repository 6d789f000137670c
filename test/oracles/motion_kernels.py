# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Oracle of `rfly_trajectory.kernels.motion_kernels`: whole arrays instead of loops."""

from __future__ import annotations

import numpy as np

from rfly_common.arrays import Floats, Ints
from rfly_common.frames import euler_to_quat
from rfly_common.physics import GRAVITY
from rfly_trajectory.kernels.tables import (
    ARC,
    FIXED_WING,
    GROUND,
    POLYNOMIAL,
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


def path_points(table: PathTable, path: Ints, s: Floats) -> Floats:
    """Return x, y, tangent x and y, curvature, curvature rate at arc lengths s (k,), (k, 6)."""
    _, at, piece = _on_path(table, path, s)
    kind = table.kind[piece]
    values = table.values[piece]
    start = table.start[piece]
    points = np.empty((s.size, 6))
    for which, function in ((ARC, _arc), (SPIRAL, _spiral), (POLYNOMIAL, _polynomial)):
        chosen = np.flatnonzero(kind == which)
        if chosen.size:
            points[chosen] = function(values[chosen], start[chosen], at[chosen])
    return points


def _on_path(
    table: PathTable | AltitudeTable, path: Ints, s: Floats
) -> tuple[Floats, Floats, Ints]:
    """The places s (k,) with whole laps of closed paths taken off; the same within the paths; the
    pieces there.
    """
    length = table.length[path]
    at = np.where(table.closed[path], s - np.floor(s / length) * length, s)
    inside = np.clip(at, 0.0, length)
    return at, inside, _last_not_above(table.first, table.start, path, inside, table.length)


def _last_not_above(first: Ints, start: Floats, row: Ints, value: Floats, extent: Floats) -> Ints:
    """The last piece of each `row` that starts at or before `value`; extent (rows,): no piece of a
    row starts after it.

    One search serves all rows: each row's starts are moved behind those of the rows before it. The
    sum may round a start by an ulp past the value, so the neighbours are asked again with the
    unmoved numbers.
    """
    base = np.concatenate([np.zeros(1), np.cumsum(extent + 1.0)])
    row_of_piece = np.repeat(np.arange(len(extent)), np.diff(first))
    found = (
        np.searchsorted(
            start + base[row_of_piece], base[row] + np.minimum(value, extent[row]), side="right"
        )
        - 1
    )
    low = first[row]
    high = first[row + 1] - 1
    found = np.clip(found, low, high)
    found = np.where((found > low) & (start[found] > value), found - 1, found)
    after = np.minimum(found + 1, high)

    return np.where(start[after] <= value, after, found)


def _arc(values: Floats, start: Floats, at: Floats) -> Floats:
    x, y, curvature, cosine, sine = values.T[:5]
    run = at - start
    heading = np.arctan2(sine, cosine)
    half = 0.5 * curvature * run
    chord = run * np.divide(np.sin(half), half, out=np.ones_like(half), where=half != 0.0)
    end = heading + curvature * run
    x = x + chord * np.cos(heading + half)
    y = y + chord * np.sin(heading + half)
    return np.stack(
        [
            x,
            y,
            np.cos(end),
            np.sin(end),
            curvature,
            np.zeros_like(x),
        ],
        axis=-1,
    )


def _spiral(values: Floats, start: Floats, at: Floats) -> Floats:
    x0, y0, origin, sharpness, cosine, sine = values.T[:6]
    run = at - origin
    angle = 0.5 * sharpness * run * run
    x = np.zeros_like(run)
    y = np.zeros_like(run)
    term = run

    for n in range(0, SPIRAL_TERMS, 2):
        x = x + term / (2 * n + 1)
        term = term * angle / (n + 1)
        y = y + term / (2 * n + 3)
        term = term * -angle / (n + 2)

    end = np.arctan2(sine, cosine) + angle

    return np.stack(
        [
            x0 + cosine * x - sine * y,
            y0 + sine * x + cosine * y,
            np.cos(end),
            np.sin(end),
            sharpness * run,
            sharpness,
        ],
        axis=-1,
    )


def _polynomial(values: Floats, start: Floats, at: Floats) -> Floats:
    p0, p1, p2, p3 = _derivatives(values, at - start, 3)
    norm = np.hypot(p1[:, 0], p1[:, 1])
    curvature = (p1[:, 0] * p2[:, 1] - p1[:, 1] * p2[:, 0]) / norm**3
    rate = (p1[:, 0] * p3[:, 1] - p1[:, 1] * p3[:, 0]) / norm**3 - 3.0 * curvature * (p1 * p2).sum(
        -1
    ) / norm**2
    return np.concatenate(
        [
            p0,
            p1 / norm[:, None],
            curvature[:, None],
            rate[:, None],
        ],
        axis=-1,
    )


def _derivatives(values: Floats, run: Floats, highest: int) -> list[Floats]:
    """Return x and y (k, 2) of POLYNOMIAL pieces and of each derivative, by Horner's scheme."""
    coefficients = values.reshape(-1, 2, 6)
    run = run[:, None]
    found = [np.zeros((len(values), 2)) for _ in range(highest + 1)]
    for n in range(5, -1, -1):
        for order in range(highest, 0, -1):
            found[order] = found[order] * run + order * found[order - 1]
        found[0] = found[0] * run + coefficients[:, :, n]
    return found


def curvature_bends(table: PathTable, path: Ints, s: Floats) -> Floats:
    """Return the second derivative of the curvature, (k,), 1/m³, at arc lengths s (k,) of paths."""
    _, at, piece = _on_path(table, path, s)
    _, p1, p2, p3, p4 = _derivatives(table.values[piece], at - table.start[piece], 4)
    bends = p2[:, 0] * p3[:, 1] - p2[:, 1] * p3[:, 0] + p1[:, 0] * p4[:, 1] - p1[:, 1] * p4[:, 0]
    return np.where(table.kind[piece] == POLYNOMIAL, bends, 0.0)


def altitudes(table: AltitudeTable, path: Ints, s: Floats) -> Floats:
    """Return z [m], its slope and the slope's rate [1/m] at s (k,) of paths (k,), as (k, 3)."""
    at, inside, piece = _on_path(table, path, s)
    run = inside - table.start[piece]
    a, b, c, d = table.values[piece].T
    slope = b + run * (2.0 * c + run * 3.0 * d)
    z = a + run * (b + run * (c + run * d)) + slope * (at - inside)
    return np.stack([z, slope, np.where(inside == at, 2.0 * c + run * 6.0 * d, 0.0)], axis=-1)


def progress(departures: Departures, vehicle: Ints, time: Floats) -> Floats:
    """Return arc length [m], rate [m/s], acceleration [m/s²] and jerk [m/s³] as (k, 4).

    They are those of the vehicles (k,) at the times (k,) [s].
    """
    since = time - departures.delay[vehicle]
    begin = departures.loop_start[vehicle]
    period = departures.loop_period[vehicle]
    loops = (since > begin) & np.isfinite(period)
    since[loops] = begin[loops] + np.fmod(since[loops] - begin[loops], period[loops])
    last_start = departures.start[departures.first[1:] - 1]
    piece = _last_not_above(
        departures.first, departures.start, vehicle, np.maximum(since, 0.0), last_start
    )
    run = since - departures.start[piece]
    s, speed, acceleration, jerk = departures.law[piece].T
    rows = np.stack(
        [
            s + run * (speed + run * (0.5 * acceleration + run * (jerk / 6.0))),
            speed + run * (acceleration + 0.5 * run * jerk),
            acceleration + run * jerk,
            jerk,
        ],
        axis=-1,
    )
    waiting = since < 0.0
    rows[waiting] = 0.0
    rows[waiting, 0] = departures.law[departures.first[vehicle[waiting]], 0]

    return rows


def poses(
    placements: Placements, progress: Floats, points: Floats, ground: GroundRows, made: VehiclePoses
) -> None:
    """Poses of k vehicles -> made; see `attitude.poses`. progress (4, k) and points (6, k) come as
    rows.
    """
    kind, height, absolute = placements
    gradient = ground.gradient.T
    smooth = ground.smooth.T
    smooth_rate = ground.smooth_rate.T
    speed, acceleration, jerk = progress[1:]
    x, y, tx, ty, curvature, curvature_rate = points
    yaw_rate = curvature * speed
    lateral = curvature * speed**2
    lateral_rate = 2.0 * curvature * speed * acceleration + curvature_rate * speed**3

    follows = ~absolute | (height <= ground.altitude)
    z = np.where(follows, ground.altitude + np.where(absolute, 0.0, height), height)
    climb_rate = np.where(follows, speed * (gradient[:, 0] * tx + gradient[:, 1] * ty), 0.0)
    along = np.where(follows, smooth[:, 0] * tx + smooth[:, 1] * ty, 0.0)
    left = np.where(follows, smooth[:, 1] * tx - smooth[:, 0] * ty, 0.0)
    along_rate = np.where(
        follows, smooth_rate[:, 0] * tx + smooth_rate[:, 1] * ty + left * yaw_rate, 0.0
    )
    left_rate = np.where(
        follows, smooth_rate[:, 1] * tx - smooth_rate[:, 0] * ty - along * yaw_rate, 0.0
    )

    wing = kind == FIXED_WING
    rotor = (kind != FIXED_WING) & (kind != GROUND)
    climb = 1.0 + along**2
    left = np.where(wing, -climb * lateral / GRAVITY, left)
    left_rate = np.where(
        wing, -(2.0 * along * along_rate * lateral + climb * lateral_rate) / GRAVITY, left_rate
    )
    along = np.where(rotor, -acceleration / GRAVITY, along)
    along_rate = np.where(rotor, -jerk / GRAVITY, along_rate)
    left = np.where(rotor, -lateral / GRAVITY, left)
    left_rate = np.where(rotor, -lateral_rate / GRAVITY, left_rate)

    a = np.sqrt(1.0 + along**2)
    a_rate = along * along_rate / a
    pitch = -np.arctan(along)
    roll = np.arctan(left / a)
    yaw = np.arctan2(ty, tx)
    pitch_rate = -along_rate / a**2
    roll_rate = (left_rate * a - left * a_rate) / (a**2 + left**2)
    made.position[:, 0] = x
    made.position[:, 1] = y
    made.position[:, 2] = z
    made.orientation[:] = euler_to_quat(np.stack([roll, pitch, yaw], axis=-1))
    made.velocity[:, 0] = speed * tx
    made.velocity[:, 1] = speed * ty
    made.velocity[:, 2] = climb_rate
    rates = made.angular_velocity
    rates[:, 0] = roll_rate - yaw_rate * np.sin(pitch)
    rates[:, 1] = pitch_rate * np.cos(roll) + yaw_rate * np.sin(roll) * np.cos(pitch)
    rates[:, 2] = -pitch_rate * np.sin(roll) + yaw_rate * np.cos(roll) * np.cos(pitch)


_FORE = np.array([1.0, 1.0, -1.0, -1.0])
_LEFT = np.array([1.0, -1.0, 1.0, -1.0])


def wheel_places(wheels: WheelBases, points: Floats, q: Floats, p: Floats) -> tuple[Floats, Floats]:
    """Return x and y of the wheels: front left and right, rear left and right; see `wheels`."""
    ahead, left = _wheel_arms(wheels, q, p)
    tx = points[:, 2, None]
    ty = points[:, 3, None]
    return points[:, 0, None] + tx * ahead - ty * left, points[:, 1, None] + ty * ahead + tx * left


def _wheel_arms(wheels: WheelBases, q: Floats, p: Floats) -> tuple[Floats, Floats]:
    """(k, 4) how far ahead and left of the origin the wheels are, seen from above."""
    a = np.sqrt(1.0 + q * q)
    b = np.sqrt(a * a + p * p)
    fore = 0.5 * wheels.wheelbase[:, None] * _FORE
    side = 0.5 * wheels.track[:, None] * _LEFT
    return fore / a[:, None] - side * (p * q / (a * b))[:, None], side * (a / b)[:, None]


def wheel_plane(wheels: WheelBases, h: Floats) -> Floats:
    """Return α, β, q and p, (k, 4), of the least-squares plane through heights h (k, 4)."""
    alpha = np.clip((h @ _FORE) / (2.0 * wheels.wheelbase), -STEEPEST, STEEPEST)
    a = 1.0 / np.sqrt(1.0 - alpha * alpha)
    u = np.clip(a * (h @ _LEFT) / (2.0 * wheels.track), -STEEPEST, STEEPEST)
    return np.stack([alpha, u / a, alpha * a, a * u / np.sqrt(1.0 - u * u)], axis=-1)


def wheel_contact(
    wheels: WheelBases, ground: WheelGround, points: Floats, speed: Floats, plane: Floats
) -> Floats:
    """(k, 7) altitude, q, p, climb rate, rates of q and p, gap; plane (k, 4) as `wheel_plane` gives
    it.
    """
    under = ground.gradient
    middle = ground.middle
    alpha, beta, q, p = plane.T
    fore = 0.5 * wheels.wheelbase[:, None] * _FORE
    side = 0.5 * wheels.track[:, None] * _LEFT
    needed = ground.altitude - alpha[:, None] * fore - beta[:, None] * side
    lowest = np.argmax(needed, axis=1)
    rows = np.arange(len(lowest))
    altitude = np.maximum(needed[rows, lowest], middle)

    tx = points[:, 2, None]
    ty = points[:, 3, None]
    along = under[..., 0] * tx + under[..., 1] * ty
    across = under[..., 1] * tx - under[..., 0] * ty
    yaw_rate = (points[:, 4] * speed)[:, None]
    ahead, left = _wheel_arms(wheels, q, p)
    a = np.sqrt(1.0 + q * q)
    b = np.sqrt(a * a + p * p)
    u = p / b
    root = np.sqrt(1.0 - u * u)
    q_rate = np.zeros_like(q)
    p_rate = np.zeros_like(p)
    for _ in range(2):  # how the wheels move depends on how the body turns
        a_rate = q * q_rate / a
        b_rate = (a * a_rate + p * p_rate) / b
        left_x_rate = (p * q * (a_rate / a + b_rate / b) - p_rate * q - p * q_rate) / (a * b)
        left_y_rate = a_rate / b - a * b_rate / b**2
        ahead_rate = (
            speed[:, None]
            - yaw_rate * left
            - fore * (a_rate / a**2)[:, None]
            + side * left_x_rate[:, None]
        )
        aside_rate = yaw_rate * ahead + side * left_y_rate[:, None]
        h_rate = along * ahead_rate + across * aside_rate
        alpha_rate = (h_rate @ _FORE) / (2.0 * wheels.wheelbase)
        beta_rate = (h_rate @ _LEFT) / (2.0 * wheels.track)
        q_rate = a**3 * alpha_rate
        a_rate = q * q_rate / a
        u_rate = beta_rate * a + u / a * a_rate
        p_rate = a_rate * u / root + a * u_rate / root**3
    climb = h_rate[rows, lowest] - alpha_rate * fore[rows, lowest] - beta_rate * side[rows, lowest]
    on_origin = middle > needed[rows, lowest]
    climb = np.where(
        on_origin, speed * (ground.middle_gradient * points[:, 2:4]).sum(axis=1), climb
    )
    gap = (altitude[:, None] - needed).max(axis=1)
    return np.stack([altitude, q, p, climb, q_rate, p_rate, gap], axis=-1)
