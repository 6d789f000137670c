"""Compiled ray casting against a bilinear height map.

A ray is o + t·d with d of length 1, so that t is metres. In rows u and columns v it is a straight
line as well, and over one cell of the map the height of the ray above the ground is a quadratic in t:

    S(a, b) = z00 + A·a + B·b + K·a·b,  a, b = u - i, v - j,  A = z10 - z00, B = z01 - z00, K = z11 - z10 - z01 + z00
    f(t) = z(t) - S = c + m·t + q·t²,   m = dz - A·du - B·dv - K·(a·dv + b·du),  q = -K·du·dv

The ray hits where f comes down to 0. Which cells are looked at follows from a pyramid of maxima (`ray_pyramid.py`):
from block to block of the largest size that the ray passes above, down to single cells where it may touch. The times
at which a ray crosses the lines of the grid come from one formula for blocks of all sizes and for cells, so that they
share their borders without a gap.

- `ground`: a `ground.Ground`. `high`: the highest height.
- `maxima`: all levels of the pyramid, one after the other; `levels`: (n, 2) int64, where each begins and its columns.
- No fastmath, which drops the checks for NaN. Releases the GIL.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rfly_common.kernels.jit import kernel
from rfly_terrain.height_map.bilinear import unit_normal
from rfly_terrain.height_map.ground import Ground

NEVER = 1e300
"""stands for 1 / 0: cells a ray moves along an axis per metre, turned over, where it does not move along it"""
PARALLEL = 1e-100
"""rows or columns per metre below which a ray does not move along that axis: no map is long enough to tell"""


@kernel(nogil=True, error_model="numpy")
def cast(
    ground: Ground,
    high: float,
    maxima: Any,
    levels: Any,
    bits: int,
    start_level: int,
    origins: Any,
    directions: Any,
    max_range: Any,
    ranges: Any,
    normals: Any,
) -> bool:
    """Ranges -> ranges (n,), inf for a miss; where normals is (n, 3) and not (0, 3) the unit normals, NaN for a miss.

    origins, directions (n or 1, 3), max_range (n or 1,): one serves all rays. Returns False where a number is not
    finite, a direction is 0 or a max_range is NaN or negative; the caller then looks which one.
    """
    origin_x, origin_y, step_x, step_y = ground.origin_x, ground.origin_y, ground.step_x, ground.step_y
    slack_u, slack_v, rows, columns = ground.slack_u, ground.slack_v, ground.rows, ground.columns
    last_u, last_v = float(rows - 1), float(columns - 1)
    last_i, last_j = rows - 2, columns - 2
    top = levels.shape[0] - 1
    flat = ground.heights
    width = np.uint64(columns)
    one = np.uint64(1)
    o_stride = 1 if origins.shape[0] > 1 else 0
    d_stride = 1 if directions.shape[0] > 1 else 0
    r_stride = 1 if max_range.size > 1 else 0
    want_normals = normals.shape[0] > 0
    good = True
    for n in range(ranges.size):
        ranges[n] = np.inf
        if want_normals:
            normals[n, 0] = np.nan
            normals[n, 1] = np.nan
            normals[n, 2] = np.nan
        dx: float = np.float64(directions[n * d_stride, 0])
        dy: float = np.float64(directions[n * d_stride, 1])
        dz: float = np.float64(directions[n * d_stride, 2])
        x: float = np.float64(origins[n * o_stride, 0])
        y: float = np.float64(origins[n * o_stride, 1])
        z: float = np.float64(origins[n * o_stride, 2])
        limit = max_range[n * r_stride]
        square = dx * dx + dy * dy + dz * dz
        if not (1e-200 < square < 1e200):
            largest = max(abs(dx), abs(dy), abs(dz))
            if not (0.0 < largest < np.inf) or square != square:
                good = False
                continue
            dx, dy, dz = dx / largest, dy / largest, dz / largest
            square = dx * dx + dy * dy + dz * dz
        if not (abs(x) < np.inf and abs(y) < np.inf and abs(z) < np.inf and limit >= 0.0):
            good = False
            continue
        norm = np.sqrt(square)
        dx, dy, dz = dx / norm, dy / norm, dz / norm
        u, v = (x - origin_x) / step_x, (y - origin_y) / step_y
        du, dv = dx / step_x, dy / step_y
        # a point on the edge may seem to lie outside by rounding
        if u < 0.0 and u >= -slack_u:
            u = 0.0
        elif u > last_u and u <= last_u + slack_u:
            u = last_u
        if v < 0.0 and v >= -slack_v:
            v = 0.0
        elif v > last_v and v <= last_v + slack_v:
            v = last_v
        # the part of the ray over the map and not above its highest point
        first, last = 0.0, limit
        if abs(du) > PARALLEL:
            per_u = 1.0 / du
            near, far = (0.0 - u) * per_u, (last_u - u) * per_u
            if du < 0.0:
                near, far = far, near
            first, last = max(first, near), min(last, far)
        else:
            du = 0.0
            if u < 0.0 or u > last_u:
                continue
            per_u = NEVER if u < last_u else -NEVER
        if abs(dv) > PARALLEL:
            per_v = 1.0 / dv
            near, far = (0.0 - v) * per_v, (last_v - v) * per_v
            if dv < 0.0:
                near, far = far, near
            first, last = max(first, near), min(last, far)
        else:
            dv = 0.0
            if v < 0.0 or v > last_v:
                continue
            per_v = NEVER if v < last_v else -NEVER
        from_above = False
        if z > high:
            if dz >= 0.0:
                continue
            down = (high - z) / dz
            from_above = down >= first
            first = max(first, down)
        if dz > 0.0:
            last = min(last, (high - z) / dz)
        if first > last:
            continue
        if first > 0.0:
            # times count from here: far origins cost no precision
            u, v, z = u + first * du, v + first * dv, high if from_above else z + first * dz
            u, v = min(max(u, 0.0), last_u), min(max(v, 0.0), last_v)
        up_u, up_v = 1 if per_u > 0.0 else 0, 1 if per_v > 0.0 else 0
        # by the formula of all lines of the grid: no block beyond the map can be entered by rounding
        edge_u, edge_v = ((last_u if up_u else 0.0) - u) * per_u, ((last_v if up_v else 0.0) - v) * per_v
        end = min(last - first, edge_u, edge_v)

        i, j = min(int(u), last_i), min(int(v), last_j)
        if up_u == 0 and i > 0 and np.float64(i) == u:
            i -= 1
        if up_v == 0 and j > 0 and np.float64(j) == v:
            j -= 1
        turn_u, turn_v = 2 * up_u - 1, 2 * up_v - 1
        t = 0.0
        level = min(start_level, top)
        shift = bits + level
        bi, bj = i >> shift, j >> shift
        begin, wide = levels[np.uint64(level), 0], levels[np.uint64(level), 1]
        while True:
            t_u = (np.float64((bi + up_u) << shift) - u) * per_u
            t_v = (np.float64((bj + up_v) << shift) - v) * per_v
            leave = min(t_u, t_v, end)
            lowest = z + dz * (leave if dz < 0.0 else t)
            if lowest <= maxima[np.uint64(begin + bi * wide + bj)]:
                if level > 0:
                    level -= 1
                    shift -= 1
                    begin, wide = levels[np.uint64(level), 0], levels[np.uint64(level), 1]
                    middle_u = (np.float64((2 * bi + 1) << shift) - u) * per_u
                    middle_v = (np.float64((2 * bj + 1) << shift) - v) * per_v
                    bi = 2 * bi + (up_u if t >= middle_u else 1 - up_u)
                    bj = 2 * bj + (up_v if t >= middle_v else 1 - up_v)
                    continue
                # cell by cell through the block
                i = min(max(int(u + t * du), bi << bits), (bi + 1 << bits) - 1, last_i)
                j = min(max(int(v + t * dv), bj << bits), (bj + 1 << bits) - 1, last_j)
                done = False
                cell_u = (np.float64(i + up_u) - u) * per_u
                cell_v = (np.float64(j + up_v) - v) * per_v
                while True:
                    out = max(min(cell_u, cell_v, end), t)
                    k = np.uint64(i) * width + np.uint64(j)
                    z00, z01 = flat[k], flat[k + one]
                    z10, z11 = flat[k + width], flat[k + width + one]
                    lowest = z + dz * (out if dz < 0.0 else t)
                    if lowest <= max(z00, z01, z10, z11):
                        a, b = u + t * du - i, v + t * dv - j
                        along_u, along_v = np.float64(z10) - z00, np.float64(z01) - z00
                        twist = (np.float64(z11) - z10) - along_v
                        slope_u, slope_v = along_u + twist * b, along_v + twist * a
                        c = z + t * dz - (z00 + along_u * a + slope_v * b)
                        span = out - t
                        m = dz - slope_u * du - slope_v * dv
                        q = -twist * du * dv
                        step = -1.0
                        if c <= 0.0:
                            step = 0.0
                        else:
                            below = c + (m + q * span) * span <= 0.0
                            # above at both ends it may dip between them: then f is convex with its lowest point there
                            if below or (q > 0.0 and m < 0.0 and -m < 2.0 * q * span):
                                root = m * m - 4.0 * q * c
                                if below or root >= 0.0:
                                    root = np.sqrt(max(root, 0.0))
                                    step = (2.0 * c) / (root - m) if m < 0.0 else (m + root) / (-2.0 * q)
                                    step = step if step < span else span
                        if step >= 0.0:
                            ranges[n] = first + t + step
                            if want_normals:
                                a, b = a + step * du, b + step * dv
                                slope_x = (along_u + twist * b) / step_x
                                slope_y = (along_v + twist * a) / step_y
                                normals[n, 0], normals[n, 1], normals[n, 2] = unit_normal(slope_x, slope_y)
                            done = True
                            break
                    if out >= end:
                        done = True
                        break
                    t = out
                    if cell_u <= cell_v:
                        i += turn_u
                        if (i >> bits) != bi:
                            break
                        cell_u = (np.float64(i + up_u) - u) * per_u
                    else:
                        j += turn_v
                        if (j >> bits) != bj:
                            break
                        cell_v = (np.float64(j + up_v) - v) * per_v
                if done:
                    break
                # no larger block next: where the ray is near the ground it would have to look into that too
                bi, bj = i >> bits, j >> bits
                continue
            if leave >= end:
                break
            t = leave
            new_i, new_j = bi, bj
            if t_u <= t_v:
                new_i += turn_u
            else:
                new_j += turn_v
            if level < top and ((new_i ^ bi) | (new_j ^ bj)) > 1:
                # into another parent: its blocks may be passed in one step
                level += 1
                shift += 1
                begin, wide = levels[np.uint64(level), 0], levels[np.uint64(level), 1]
                new_i >>= 1
                new_j >>= 1
            bi, bj = new_i, new_j
    return good
