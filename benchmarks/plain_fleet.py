"""A fleet as a loop over vehicles in plain Python: what one writes without arrays, and writes well.

Everything that can be worked out before is: tables are tuples and lists of floats, which answer single look-ups quicker
than arrays, and pieces are found by `bisect`. It covers what the library's fleets do on wheel-less vehicles that are in
no formation: pieces of constant jerk, arcs, clothoids and polynomials, and the attitudes of the three kinds.
"""

from __future__ import annotations

import math
from bisect import bisect_right

from rfly_terrain.height_map.height_map import HeightMap
from rfly_trajectory.fleet.fleet import Vehicle
from rfly_trajectory.kernels.tables import ARC, SPIRAL

G = 9.80665
State = tuple[float, ...]


class PlainTerrain:
    """Heights as a list of rows."""

    def __init__(self, terrain: HeightMap) -> None:
        self.z = terrain.heights.astype(float).tolist()
        self.origin = terrain.origin_x, terrain.origin_y
        self.step = terrain.step_x, terrain.step_y
        self.last = terrain.rows - 2, terrain.columns - 2

    def surface(
        self, x: float, y: float, vx: float, vy: float
    ) -> tuple[float, float, float, float, float, float, float]:
        """Altitude, its gradient, the smooth gradient and its rate; inside the map, a cell from its edge."""
        (x0, y0), (dx, dy), (last_i, last_j), z = self.origin, self.step, self.last, self.z
        u, v = (x - x0) / dx, (y - y0) / dy
        i, j = min(max(int(u), 1), last_i - 1), min(max(int(v), 1), last_j - 1)
        a, b = u - i, v - j
        c, d = 1.0 - a, 1.0 - b
        before, near, far, after = z[i - 1], z[i], z[i + 1], z[i + 2]
        z00, z01, z10, z11 = near[j], near[j + 1], far[j], far[j + 1]
        altitude = c * (d * z00 + b * z01) + a * (d * z10 + b * z11)
        zx, zy = (d * (z10 - z00) + b * (z11 - z01)) / dx, (c * (z01 - z00) + a * (z11 - z10)) / dy
        dx2, dy2 = 2.0 * dx, 2.0 * dy
        x00, x01, x10, x11 = z10 - before[j], z11 - before[j + 1], after[j] - z00, after[j + 1] - z01
        y00, y01, y10, y11 = z01 - near[j - 1], near[j + 2] - z00, z11 - far[j - 1], far[j + 2] - z10
        sx = (c * (d * x00 + b * x01) + a * (d * x10 + b * x11)) / dx2
        sy = (c * (d * y00 + b * y01) + a * (d * y10 + b * y11)) / dy2
        va, vb = vx / dx, vy / dy
        rx = (va * (d * (x10 - x00) + b * (x11 - x01)) + vb * (c * (x01 - x00) + a * (x11 - x10))) / dx2
        ry = (va * (d * (y10 - y00) + b * (y11 - y01)) + vb * (c * (y01 - y00) + a * (y11 - y10))) / dy2
        return altitude, zx, zy, sx, sy, rx, ry


class PlainVehicle:
    """One vehicle, its tables as plain numbers."""

    def __init__(self, vehicle: Vehicle, terrain: PlainTerrain) -> None:
        path, schedule = vehicle.path, vehicle.schedule
        self.surface = terrain.surface
        self.kind, self.height, self.absolute = vehicle.kind, vehicle.height, vehicle.absolute
        self.delay, self.shift = vehicle.delay, vehicle.shift
        self.begins = [piece[0] for piece in schedule.pieces]
        self.laws = [tuple(piece[1:]) for piece in schedule.pieces]
        self.loop_start, self.loop_period = schedule.loop_start, schedule.loop_period
        self.length, self.closed = path.length, path.closed
        self.starts = path.start.tolist()
        self.pieces = list(zip(path.kind.tolist(), map(tuple, path.values.tolist()), strict=True))

    def progress(self, t: float) -> tuple[float, float, float, float]:
        """Arc length, speed, acceleration, jerk."""
        since = t - self.delay
        if since < 0.0:
            return self.laws[0][0], 0.0, 0.0, 0.0
        if since > self.loop_start and self.loop_period < math.inf:
            since = self.loop_start + math.fmod(since - self.loop_start, self.loop_period)
        piece = bisect_right(self.begins, since) - 1
        run = since - self.begins[piece]
        s, speed, acceleration, jerk = self.laws[piece]
        return (
            s + run * (speed + run * (acceleration / 2.0 + run * jerk / 6.0)),
            speed + run * (acceleration + run * jerk / 2.0),
            acceleration + run * jerk,
            jerk,
        )

    def point(self, s: float) -> tuple[float, float, float, float, float, float]:
        """x, y, tangent x, tangent y, curvature, curvature rate."""
        if self.closed:
            s = s % self.length
        s = min(max(s, 0.0), self.length)
        piece = bisect_right(self.starts, s) - 1
        kind, values = self.pieces[piece]
        run = s - self.starts[piece]
        if kind == ARC:
            x, y, curvature, c, d = values[:5]
            if curvature == 0.0:
                return x + run * c, y + run * d, c, d, 0.0, 0.0
            turned = curvature * run
            sine, cosine = math.sin(turned), math.cos(turned)
            tx, ty = c * cosine - d * sine, d * cosine + c * sine
            return x + (ty - d) / curvature, y - (tx - c) / curvature, tx, ty, curvature, 0.0
        if kind == SPIRAL:
            x0, y0, origin, sharpness, c, d = values[:6]
            run = s - origin
            angle = 0.5 * sharpness * run * run
            x, y, term, n = 0.0, 0.0, run, 0
            while abs(term) > 1e-17:
                x += term / (2 * n + 1)
                term *= angle / (n + 1)
                y += term / (2 * n + 3)
                term *= -angle / (n + 2)
                n += 2
            sine, cosine = math.sin(angle), math.cos(angle)
            tx, ty = c * cosine - d * sine, d * cosine + c * sine
            return x0 + c * x - d * y, y0 + d * x + c * y, tx, ty, sharpness * run, sharpness
        a0, a1, a2, a3, a4, a5, b0, b1, b2, b3, b4, b5 = values
        x = a0 + run * (a1 + run * (a2 + run * (a3 + run * (a4 + run * a5))))
        y = b0 + run * (b1 + run * (b2 + run * (b3 + run * (b4 + run * b5))))
        x1 = a1 + run * (2 * a2 + run * (3 * a3 + run * (4 * a4 + run * 5 * a5)))
        y1 = b1 + run * (2 * b2 + run * (3 * b3 + run * (4 * b4 + run * 5 * b5)))
        x2 = 2 * a2 + run * (6 * a3 + run * (12 * a4 + run * 20 * a5))
        y2 = 2 * b2 + run * (6 * b3 + run * (12 * b4 + run * 20 * b5))
        x3, y3 = 6 * a3 + run * (24 * a4 + run * 60 * a5), 6 * b3 + run * (24 * b4 + run * 60 * b5)
        norm = math.sqrt(x1 * x1 + y1 * y1)
        cube = norm * norm * norm
        curvature = (x1 * y2 - y1 * x2) / cube
        rate = (x1 * y3 - y1 * x3) / cube - 3.0 * curvature * (x1 * x2 + y1 * y2) / (norm * norm)
        return x, y, x1 / norm, y1 / norm, curvature, rate

    def state(self, t: float) -> State:
        """Position, quaternion xyzw, velocity, body rates."""
        s, v, acceleration, jerk = self.progress(t)
        x, y, tx, ty, curvature, curvature_rate = self.point(s)
        x += self.shift[0]
        y += self.shift[1]
        ground, zx, zy, sx, sy, rx, ry = self.surface(x, y, v * tx, v * ty)
        yaw_rate = curvature * v
        lateral = yaw_rate * v
        lateral_rate = 2.0 * yaw_rate * acceleration + curvature_rate * v * v * v
        if self.absolute and self.height > ground:
            z, climb_rate, q, p, q_rate, p_rate = self.height, 0.0, 0.0, 0.0, 0.0, 0.0
        else:
            z, climb_rate = (ground if self.absolute else ground + self.height), v * (zx * tx + zy * ty)
            q, p = sx * tx + sy * ty, sy * tx - sx * ty
            q_rate = rx * tx + ry * ty + p * yaw_rate
            p_rate = ry * tx - rx * ty - q * yaw_rate
        if self.kind == "fixed_wing":
            climb = 1.0 + q * q
            p, p_rate = -climb * lateral / G, -(2.0 * q * q_rate * lateral + climb * lateral_rate) / G
        elif self.kind == "multirotor":
            q, q_rate, p, p_rate = -acceleration / G, -jerk / G, -lateral / G, -lateral_rate / G
        n = math.sqrt(1.0 + q * q)
        pitch, roll, yaw = -math.atan(q), math.atan(p / n), math.atan2(ty, tx)
        pitch_rate = -q_rate / (n * n)
        roll_rate = (p_rate * n - p * q * q_rate / n) / (n * n + p * p)
        cy, sy = math.cos(0.5 * yaw), math.sin(0.5 * yaw)
        cp, sp = math.cos(0.5 * pitch), math.sin(0.5 * pitch)
        cr, sr = math.cos(0.5 * roll), math.sin(0.5 * roll)
        cos_roll, sin_roll, sin_pitch, cos_pitch = math.cos(roll), math.sin(roll), -q / n, 1.0 / n
        return (
            x, y, z,
            sr * cp * cy - cr * sp * sy, cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy, cr * cp * cy + sr * sp * sy,
            v * tx, v * ty, climb_rate,
            roll_rate - yaw_rate * sin_pitch,
            pitch_rate * cos_roll + yaw_rate * sin_roll * cos_pitch,
            -pitch_rate * sin_roll + yaw_rate * cos_roll * cos_pitch,
        )  # fmt: skip
