"""A fleet of 1,000 vehicles at one instant, beside the loop over vehicles that one would write first."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from benchmarks.harness import Row, agreement, measure
from rfly_terrain.height_map import HeightMap
from rfly_trajectory.fleet import Fleet, Vehicle
from rfly_trajectory.motion import SpeedProfile
from rfly_trajectory.shapes import Circle
from rfly_trajectory.warm_up import warm_up

VEHICLES = 1_000
TIME = 123.4


def rows() -> Iterator[Row]:
    warm_up()
    terrain = HeightMap.load("JacksboroFault")
    rng = np.random.default_rng(11)
    circles = [
        (*rng.uniform(-2000, 2000, 2), rng.uniform(20, 500), rng.uniform(2, 20), rng.uniform(0, 60))
        for _ in range(VEHICLES)
    ]
    vehicles = [
        Vehicle(f"v{i}", i + 1, 3, Circle((x, y), radius).path(), SpeedProfile(speed), "repeat", delay=delay)
        for i, (x, y, radius, speed, delay) in enumerate(circles)
    ]
    fleet = Fleet(vehicles, terrain)
    heights = terrain.heights.tolist()  # a list answers single look-ups faster than an array

    def loop() -> list[tuple[float, ...]]:
        return [_plain_state(terrain, heights, TIME, *circle) for circle in circles]

    states = fleet.sample(TIME)
    ours = np.column_stack([states.position, states.orientation, states.velocity, states.angular_velocity])
    ours_s, loop_s = measure(lambda: fleet.sample(TIME), loop, 15, ours_calls=5)
    yield Row(
        f"fleet of {VEHICLES} over the terrain, one instant",
        ours_s,
        loop_s,
        "loop over vehicles, math",
        target_ratio=20.0,
        agree=agreement(ours, loop(), 2e-6, "m, m/s, rad/s"),
        note=f"{1e6 * ours_s / VEHICLES:.2g} µs a vehicle; the loop does circles only",
    )


def _plain_state(
    terrain: HeightMap, heights: list[list[float]], t: float, x0: float, y0: float, r: float, v: float, delay: float
) -> tuple[float, ...]:
    """Position, quaternion, velocity, body rates of one car on a circle, written out with plain floats."""
    angle = max(t - delay, 0.0) * v / r
    x, y = x0 + r * math.cos(angle), y0 + r * math.sin(angle)
    tx, ty = -math.sin(angle), math.cos(angle)
    u, w = (x - terrain.origin_x) / terrain.step_x, (y - terrain.origin_y) / terrain.step_y
    i, j = min(max(int(u), 0), terrain.rows - 2), min(max(int(w), 0), terrain.columns - 2)
    a, b = u - i, w - j
    z00, z01, z10, z11 = heights[i][j], heights[i][j + 1], heights[i + 1][j], heights[i + 1][j + 1]
    z = (1 - a) * ((1 - b) * z00 + b * z01) + a * ((1 - b) * z10 + b * z11)
    zx = ((1 - b) * (z10 - z00) + b * (z11 - z01)) / terrain.step_x
    zy = ((1 - a) * (z01 - z00) + a * (z11 - z10)) / terrain.step_y
    gx = [[(heights[k + 1][m] - heights[k - 1][m]) / (2 * terrain.step_x) for m in (j, j + 1)] for k in (i, i + 1)]
    gy = [[(heights[k][m + 1] - heights[k][m - 1]) / (2 * terrain.step_y) for m in (j, j + 1)] for k in (i, i + 1)]
    g, rate = [], []
    for (c00, c01), (c10, c11) in (gx, gy):
        g.append((1 - a) * ((1 - b) * c00 + b * c01) + a * ((1 - b) * c10 + b * c11))
        along_x = ((1 - b) * (c10 - c00) + b * (c11 - c01)) / terrain.step_x
        along_y = ((1 - a) * (c01 - c00) + a * (c11 - c10)) / terrain.step_y
        rate.append(v * (along_x * tx + along_y * ty))
    yaw_rate = v / r
    q, p = g[0] * tx + g[1] * ty, g[1] * tx - g[0] * ty
    q_rate = rate[0] * tx + rate[1] * ty + p * yaw_rate
    p_rate = rate[1] * tx - rate[0] * ty - q * yaw_rate
    n = math.sqrt(1 + q * q)
    pitch, roll, yaw = -math.atan(q), math.atan(p / n), math.atan2(ty, tx)
    pitch_rate = -q_rate / (n * n)
    roll_rate = (p_rate * n - p * q * q_rate / n) / (n * n + p * p)
    cy, sy, cp, sp, cr, sr = (f(0.5 * e) for e in (yaw, pitch, roll) for f in (math.cos, math.sin))
    return (
        x,
        y,
        z,
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
        cr * cp * cy + sr * sp * sy,
        v * tx,
        v * ty,
        v * (zx * tx + zy * ty),
        roll_rate - yaw_rate * math.sin(pitch),
        pitch_rate * math.cos(roll) + yaw_rate * math.sin(roll) * math.cos(pitch),
        -pitch_rate * math.sin(roll) + yaw_rate * math.cos(roll) * math.cos(pitch),
    )
