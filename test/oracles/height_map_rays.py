# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Oracle of `rfly_terrain.height_map.ray_kernels`: rays against a bilinear height map.

All rays of a block take one step at a time, each in its own part of the map; those that are done
leave the arrays.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rfly_terrain.height_map.ground import GroundGrid
from rfly_terrain.height_map.ray_kernels import NEVER, PARALLEL, Rays
from rfly_terrain.height_map.ray_pyramid import BLOCK_BITS, Pyramid

Array = NDArray[Any]

_BLOCK = 4_096


def cast(
    ground: GroundGrid,
    high: float,
    pyramid: Pyramid,
    start_level: int,
    rays: Rays,
    ranges: Array,
    normals: Array,
) -> bool:
    """Write ranges (n,), and unit normals (n, 3) or none (0, 3); see `ray_kernels.cast`."""
    ranges[:] = np.inf
    normals[:] = np.nan
    good = True

    for start in range(0, ranges.size, _BLOCK):
        part = slice(start, min(start + _BLOCK, ranges.size))
        count = part.stop - start
        inputs = [
            np.broadcast_to(
                array if len(array) == 1 else array[part], (count, *array.shape[1:])
            ).astype(np.float64)
            for array in rays
        ]
        with np.errstate(all="ignore"):  # what is not finite is reported, not computed
            running, all_good = _start(ground, high, *inputs)
            good &= all_good
            _traverse(running, ground, pyramid, start_level, ranges[part], normals[part])

    return good


class _Rays(SimpleNamespace):
    """One-dimensional arrays of the same length, one element a ray, by name."""

    def keep(self, where: Array) -> _Rays:
        return _Rays(**{name: array[where] for name, array in vars(self).items()})

    def put(self, where: Array, values: dict[str, Array]) -> None:
        for name, array in values.items():
            vars(self)[name][where] = array


def _start(
    ground: GroundGrid, high: float, origins: Array, directions: Array, limit: Array
) -> tuple[_Rays, bool]:
    """Return the rays that may hit, from where they enter the map, and whether all are valid."""
    g = ground

    # unit directions; extreme ones are scaled first
    d = directions.copy()
    square = d[:, 0] * d[:, 0] + d[:, 1] * d[:, 1] + d[:, 2] * d[:, 2]
    largest = np.abs(d).max(axis=1)
    odd = ~((square > 1e-200) & (square < 1e200))
    fit = ~odd | ((largest > 0.0) & (largest < np.inf))
    d[odd] /= largest[odd, None]
    square = d[:, 0] * d[:, 0] + d[:, 1] * d[:, 1] + d[:, 2] * d[:, 2]
    fit &= np.isfinite(origins).all(axis=1) & (limit >= 0.0)

    dx, dy, dz = (d / np.sqrt(square)[:, None]).T
    x, y, z = origins.T
    first = np.zeros(len(d))
    last = limit.copy()
    possible = fit.copy()
    axes = []

    # the part of each ray over the map
    for at, along, origin, step, slack, end in (
        (x, dx, g.origin_x, g.step_x, g.slack_u, float(g.rows - 1)),
        (y, dy, g.origin_y, g.step_y, g.slack_v, float(g.columns - 1)),
    ):
        u = (at - origin) / step
        du = along / step
        u = np.where((u < 0.0) & (u >= -slack), 0.0, u)
        u = np.where((u > end) & (u <= end + slack), end, u)
        moves = np.abs(du) > PARALLEL
        per = np.where(moves, 1.0 / du, np.where(u < end, NEVER, -NEVER))
        near = (0.0 - u) * per
        far = (end - u) * per
        near, far = np.where(du < 0.0, far, near), np.where(du < 0.0, near, far)
        first = np.where(moves, np.maximum(first, near), first)
        last = np.where(moves, np.minimum(last, far), last)
        possible &= moves | ((u >= 0.0) & (u <= end))
        axes.append((u, np.where(moves, du, 0.0), per, end))

    # and below its highest point
    above = z > high
    possible &= ~(above & (dz >= 0.0))
    down = (high - z) / dz
    from_above = above & (down >= first)
    first = np.where(above, np.maximum(first, down), first)
    last = np.where(dz > 0.0, np.minimum(last, (high - z) / dz), last)
    possible &= first <= last

    later = first > 0.0
    values = {
        "ray": np.arange(len(d)),
        "first": first,
        "end": last - first,
        "t": np.zeros(len(d)),
        "z": np.where(later, np.where(from_above, high, z + first * dz), z),
        "dz": dz,
    }

    # the place and the cell where the ray begins
    for name, cell, (u, du, per, end) in zip("uv", "ij", axes, strict=True):
        at = np.where(later, np.minimum(np.maximum(u + first * du, 0.0), end), u)
        up = (per > 0.0).astype(np.int64)
        index = np.minimum(np.where(possible, at, 0.0).astype(np.int64), int(end) - 1)
        index -= (up == 0) & (index > 0) & (index == at)
        values["end"] = np.minimum(values["end"], (np.where(up, end, 0.0) - at) * per)
        values |= {
            name: at,
            f"d{name}": du,
            f"per_{name}": per,
            f"up_{name}": up,
            cell: index,
        }

    return _Rays(**values).keep(possible), bool(fit.all())


def _time(rays: _Rays, axis: str, line: Array) -> Array:
    """Return the times at which rays cross lines of the grid."""
    return (line.astype(np.float64) - getattr(rays, axis)) * getattr(rays, f"per_{axis}")


def _traverse(
    rays: _Rays,
    ground: GroundGrid,
    pyramid: Pyramid,
    start_level: int,
    ranges: Array,
    normals: Array,
) -> None:
    """Step from block to block, down where a ray may touch and up where it leaves a larger one."""
    top = len(pyramid.levels) - 1
    # a ray that ends where it begins, at the far edge, has no quarter there
    rays.level = np.where(rays.end > 0.0, min(start_level, top), 0)
    rays.i = rays.i >> (BLOCK_BITS + rays.level)
    rays.j = rays.j >> (BLOCK_BITS + rays.level)
    while rays.ray.size:
        shift = BLOCK_BITS + rays.level
        t_u = _time(rays, "u", (rays.i + rays.up_u) << shift)
        t_v = _time(rays, "v", (rays.j + rays.up_v) << shift)
        leave = np.minimum(np.minimum(t_u, t_v), rays.end)
        lowest = rays.z + rays.dz * np.where(rays.dz < 0.0, leave, rays.t)
        begin, wide = pyramid.levels[rays.level].T
        touches = lowest <= pyramid.maxima[begin + rays.i * wide + rays.j]
        down = touches & (rays.level > 0)
        inside = touches & (rays.level == 0)
        passed = ~touches
        done = passed & (leave >= rays.end)
        new_i = rays.i.copy()
        new_j = rays.j.copy()
        new_level = rays.level.copy()

        # down to the quarter in which the ray is
        half = shift - 1
        later_u = rays.t >= _time(rays, "u", (2 * rays.i + 1) << half)
        later_v = rays.t >= _time(rays, "v", (2 * rays.j + 1) << half)
        new_i = np.where(down, 2 * rays.i + np.where(later_u, rays.up_u, 1 - rays.up_u), new_i)
        new_j = np.where(down, 2 * rays.j + np.where(later_v, rays.up_v, 1 - rays.up_v), new_j)
        new_level[down] -= 1

        # or on to the next block
        rays.t = np.where(passed, leave, rays.t)
        new_i += np.where(passed & (t_u <= t_v), 2 * rays.up_u - 1, 0)
        new_j += np.where(passed & ~(t_u <= t_v), 2 * rays.up_v - 1, 0)
        if inside.any():
            finished, left = _through_block(rays.keep(inside), ground, ranges, normals)
            done[inside] = finished
            new_i[inside] = left.i >> BLOCK_BITS
            new_j[inside] = left.j >> BLOCK_BITS
            rays.t[inside] = left.t
        up = passed & (rays.level < top) & (((new_i ^ rays.i) | (new_j ^ rays.j)) > 1)
        rays.level = np.where(up, new_level + 1, new_level)
        rays.i = np.where(up, new_i >> 1, new_i)
        rays.j = np.where(up, new_j >> 1, new_j)
        rays = rays.keep(~done)


def _through_block(
    rays: _Rays, ground: GroundGrid, ranges: Array, normals: Array
) -> tuple[Array, _Rays]:
    """Step cell by cell through the smallest blocks.

    Return which rays are done, and where in cells and time the others left.
    """
    bi = rays.i
    bj = rays.j
    last_i = ground.rows - 2
    last_j = ground.columns - 2
    rays.i = np.minimum(
        np.maximum((rays.u + rays.t * rays.du).astype(np.int64), bi << BLOCK_BITS),
        np.minimum(((bi + 1) << BLOCK_BITS) - 1, last_i),
    )
    rays.j = np.minimum(
        np.maximum((rays.v + rays.t * rays.dv).astype(np.int64), bj << BLOCK_BITS),
        np.minimum(((bj + 1) << BLOCK_BITS) - 1, last_j),
    )
    rays.place = np.arange(rays.ray.size)
    finished = np.zeros(rays.ray.size, bool)
    left = _Rays(
        i=rays.i.copy(),
        j=rays.j.copy(),
        t=rays.t.copy(),
    )

    while rays.ray.size:
        cell_u = _time(rays, "u", rays.i + rays.up_u)
        cell_v = _time(rays, "v", rays.j + rays.up_v)
        out = np.maximum(np.minimum(np.minimum(cell_u, cell_v), rays.end), rays.t)
        hit = _meet_cell(rays, out, ground, ranges, normals)
        done = hit | (out >= rays.end)
        finished[rays.place] = done
        rays.t = np.where(done, rays.t, out)
        across = cell_u <= cell_v
        rays.i = rays.i + np.where(across, 2 * rays.up_u - 1, 0)
        rays.j = rays.j + np.where(across, 0, 2 * rays.up_v - 1)
        left.put(
            rays.place,
            {
                "i": rays.i,
                "j": rays.j,
                "t": rays.t,
            },
        )
        here = (rays.i >> BLOCK_BITS == bi[rays.place]) & (rays.j >> BLOCK_BITS == bj[rays.place])
        rays = rays.keep(~done & here)

    return finished, left


def _meet_cell(rays: _Rays, out: Array, ground: GroundGrid, ranges: Array, normals: Array) -> Array:
    """Return which rays hit the ground in their cell, from time t to `out`.

    Their ranges and normals are written.
    """
    flat = ground.heights
    columns = ground.columns
    k = rays.i * columns + rays.j
    z00, z01, z10, z11 = (
        flat[k + shift].astype(np.float64) for shift in (0, 1, columns, columns + 1)
    )
    lowest = rays.z + rays.dz * np.where(rays.dz < 0.0, out, rays.t)
    touches = lowest <= np.maximum(np.maximum(z00, z01), np.maximum(z10, z11))
    a = rays.u + rays.t * rays.du - rays.i
    b = rays.v + rays.t * rays.dv - rays.j
    along_u = z10 - z00
    along_v = z01 - z00
    twist = (z11 - z10) - along_v
    slope_u = along_u + twist * b
    slope_v = along_v + twist * a
    c = rays.z + rays.t * rays.dz - (z00 + along_u * a + slope_v * b)
    span = out - rays.t
    m = rays.dz - slope_u * rays.du - slope_v * rays.dv
    q = -twist * rays.du * rays.dv
    below = c + (m + q * span) * span <= 0.0
    root = m * m - 4.0 * q * c
    dips = (q > 0.0) & (m < 0.0) & (-m < 2.0 * q * span) & (root >= 0.0)
    root = np.sqrt(np.maximum(root, 0.0))
    step = np.where(m < 0.0, (2.0 * c) / (root - m), (m + root) / (-2.0 * q))
    step = np.where(step < span, step, span)
    step = np.where(c <= 0.0, 0.0, step)
    hit: Array = touches & ((c <= 0.0) | below | dips)
    rays = rays.keep(hit)
    step = step[hit]
    a = a[hit]
    b = b[hit]
    ranges[rays.ray] = rays.first + rays.t + step

    if len(normals):
        a = a + step * rays.du
        b = b + step * rays.dv
        slope_x = (along_u[hit] + twist[hit] * b) / ground.step_x
        slope_y = (along_v[hit] + twist[hit] * a) / ground.step_y
        norm = np.sqrt(slope_x * slope_x + slope_y * slope_y + 1.0)
        normals[rays.ray] = np.stack(
            [(0.0 - slope_x) / norm, (0.0 - slope_y) / norm, 1.0 / norm], axis=1
        )

    return hit
