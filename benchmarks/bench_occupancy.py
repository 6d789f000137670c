# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rays, inflation and paths on occupancy maps, against plain Python, range_libc, SciPy and C++.

range_libc (Walsh and Karaman, "CDDT: fast approximate 2D ray casting for accelerated localization",
ICRA 2018) comes as no package. Two of its methods, Bresenham's line and ray marching over a
distance transform, are compiled here with numba, in float32 and for one thread as in the original.
Its approximate method, CDDT, is not among the rows.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from benchmarks.harness import Row, agreement, measure, same
from rfly_common.kernels.parallel import cores
from rfly_terrain import BinaryOccupancyMap
from rfly_terrain.occupancy.rays import clearance_of

SIZE = 2_000
RESOLUTION = 20
RAYS = 10_000
MAX_RANGE = 30.0
LOOPED = 100
"""Number of rays of a Python loop whose time is scaled to all rays."""
ROUGHLY = 3.0
"""Tolerance of the peers' sampled walks, in cells.

It holds for all except MISSED of the rays.
"""
MISSED = 0.03


def rows() -> Iterator[Row]:
    """Yield rays and inflation on a map of boxes."""
    matrix = some_map()
    rng = np.random.default_rng(3)
    starts = rng.uniform(0.0, SIZE / RESOLUTION, (RAYS, 2))
    angles = rng.uniform(-math.pi, math.pi, RAYS)
    yield from compared_with_python(matrix, starts, angles)
    yield from compared_with_range_libc(matrix, starts, angles)
    yield from inflation(matrix)


def some_map() -> NDArray[np.bool_]:
    """Return boxes of up to 3 m on 100 m x 100 m."""
    rng = np.random.default_rng(0)
    matrix = np.zeros((SIZE, SIZE), bool)
    for row, column, height, width in rng.integers(
        (0, 0, 2, 2), (SIZE, SIZE, 60, 60), (300, 4)
    ).tolist():
        matrix[row : row + height, column : column + width] = True
    return matrix


def compared_with_python(
    matrix: NDArray[np.bool_], starts: NDArray[Any], angles: NDArray[Any]
) -> Iterator[Row]:
    """Yield the cells under rays and their first hits, compared with a walk in plain Python.

    It is the walk of Amanatides and Woo as one would write it, over a list of lists, with what a
    corner needs.
    """
    m = BinaryOccupancyMap.from_matrix(matrix, RESOLUTION)
    ends = starts + MAX_RANGE * np.stack((np.cos(angles), np.sin(angles)), axis=1)
    from_below = matrix[::-1].tolist()
    segments = (np.hstack((starts, ends)) * RESOLUTION).tolist()[:LOOPED]

    def cells() -> Any:
        return m.raycast_many(starts, ends)

    def plain_cells() -> list[list[tuple[int, int]]]:
        return [walk(None, *segment) for segment in segments]

    # the same cells
    ours = cells()
    lists = ours.cells[: ours.offsets[LOOPED]].tolist()
    of_ray = [
        {tuple(cell) for cell in lists[ours.offsets[n] : ours.offsets[n + 1]]}
        for n in range(LOOPED)
    ]
    walked = [{(SIZE - 1 - v, u) for u, v in path} for path in plain_cells()]
    equal = of_ray == walked

    a, b = measure(cells, plain_cells, 5)
    size = ours.cells.shape

    def memory() -> None:
        np.empty(size, np.int32).fill(1)

    writing, _ = measure(memory, memory, 5)
    note = (
        f"{len(ours.cells):,} cells, whose memory alone takes {writing * 1e3:.0f} ms to get and to "
        f"write to; the loop is timed for {LOOPED} rays; ours on {cores()} threads, float64, "
        "nothing built before"
    )
    agree = same(equal, f"the cells of {LOOPED} rays")
    yield Row(
        f"cells under {RAYS:,} rays",
        a,
        b * RAYS / LOOPED,
        "plain Python traversal",
        100,
        None,
        agree,
        note,
    )

    # first hits
    poses = np.column_stack((starts, angles))

    def hits() -> NDArray[Any]:
        return m.ray_intersection(poses, [0.0], MAX_RANGE)

    def plain_hits() -> list[list[tuple[int, int]]]:
        return [walk(from_below, *segment) for segment in segments]

    # the points lie in the cells where the walks end
    ends_of_walks = np.array([path[-1] for path in plain_hits()])
    hits_of_ours = hits()[:LOOPED, 0] * RESOLUTION
    hit = ~np.isnan(hits_of_ours[:, 0])
    outside = np.maximum(ends_of_walks - hits_of_ours, hits_of_ours - ends_of_walks - 1.0)[hit]
    agree = agreement(np.maximum(outside, 0.0), np.zeros_like(outside), 1e-6, "cells")

    a, b = measure(hits, plain_hits, 9)
    note = f"{hit.mean():.0%} hit; {RAYS / a:,.0f} rays/s"
    yield Row(
        f"first hits of {RAYS:,} rays",
        a,
        b * RAYS / LOOPED,
        "plain Python traversal",
        100,
        None,
        agree,
        note,
    )


def walk(
    occupied: list[list[bool]] | None, u0: float, v0: float, u1: float, v1: float
) -> list[tuple[int, int]]:
    """Return the cells from one point to the other, up to the first occupied one.

    They are (column, row from below), and only those on the map.
    """
    # the first cell, and the way to its next borders
    u = math.floor(u0)
    v = math.floor(v0)
    end_u = math.floor(u1)
    end_v = math.floor(v1)
    step_u = 1 if u1 > u0 else -1
    step_v = 1 if v1 > v0 else -1
    along_u = abs(1.0 / (u1 - u0))
    along_v = abs(1.0 / (v1 - v0))
    t_u = along_u * ((u + 1 - u0) if u1 > u0 else (u0 - u))
    t_v = along_v * ((v + 1 - v0) if v1 > v0 else (v0 - v))
    cells = []

    while True:
        if 0 <= u < SIZE and 0 <= v < SIZE:
            cells.append((u, v))
            if occupied is not None and occupied[v][u]:
                break
        elif cells:
            break
        if (u, v) == (end_u, end_v):
            break

        # into the cell of the nearest border; through a corner into both
        v_later_than_u = t_v - t_u
        if -1e-12 <= v_later_than_u <= 1e-12:
            cells += [(u + step_u, v), (u, v + step_v)]
            u = u + step_u
            v = v + step_v
            t_u = t_u + along_u
            t_v = t_v + along_v
        elif v_later_than_u > 0:
            u += step_u
            t_u += along_u
        else:
            v += step_v
            t_v += along_v

    return cells


def compared_with_range_libc(
    matrix: NDArray[np.bool_], starts: NDArray[Any], angles: NDArray[Any]
) -> Iterator[Row]:
    """Yield distances of first hits on one core, every structure built before."""
    ray_marching, bresenham = compiled_peers()
    poses = np.column_stack((starts, angles))
    queries = np.column_stack((starts * RESOLUTION, angles)).astype(np.float32)
    from_below = np.ascontiguousarray(matrix[::-1])

    # both structures
    begin = time.perf_counter()
    distance = distance_transform_edt(~from_below).astype(np.float32)
    their_build = time.perf_counter() - begin
    begin = time.perf_counter()
    clearance_of(matrix)
    our_build = time.perf_counter() - begin
    m = BinaryOccupancyMap.from_matrix(matrix, RESOLUTION)
    longest = np.float32(MAX_RANGE * RESOLUTION)
    out = np.empty(RAYS, np.float32)

    def ours() -> NDArray[Any]:
        return m.ray_intersection(poses, [0.0], MAX_RANGE)

    # ours, in cells
    ranges = np.hypot(*(ours()[:, 0] - starts).T) * RESOLUTION
    ranges = np.where(np.isnan(ranges), longest, ranges)

    for name, function, field in (
        ("ray marching", ray_marching, distance),
        ("Bresenham's line", bresenham, from_below),
    ):

        def peer(function: Callable[..., None] = function, field: NDArray[Any] = field) -> None:
            function(field, queries, longest, out)

        peer()
        off = float(np.mean(np.abs(out - ranges) > ROUGHLY))
        agree = same(off <= MISSED, f"within {ROUGHLY:g} cells, but for {off:.1%} of the rays")

        with one_core():
            ours()
            a, b = measure(ours, peer, 15)
        note = f"one core each; built before in {our_build * 1e3:.0f} ms"
        if field is distance:
            note += f", theirs in {their_build * 1e3:.0f} ms (SciPy)"
        yield Row(
            f"first hits of {RAYS:,} rays",
            a,
            b,
            f"range_libc's {name}, in numba",
            1.0,
            None,
            agree,
            note,
        )


def compiled_peers() -> tuple[Callable[..., None], Callable[..., None]]:
    """Return two kernels: ray marching, and Bresenham's line.

    They take a field, queries (n, 3) of column, row from below, and angle, the longest range, and
    the output (n,); all in cells and float32.
    """
    from numba import njit

    @njit(nogil=True, fastmath=True)
    def ray_marching(distance: Any, queries: Any, longest: Any, out: Any) -> None:
        rows, columns = distance.shape
        for n in range(len(queries)):
            x = queries[n, 0]
            y = queries[n, 1]
            cos = np.cos(queries[n, 2])
            sin = np.sin(queries[n, 2])
            t = np.float32(0.0)

            while t < longest:
                px = x + cos * t
                py = y + sin * t
                if not (0 <= px < columns and 0 <= py < rows):
                    t = longest
                    break
                nearest = distance[int(py), int(px)]
                if nearest <= 0.0:
                    break
                t += max(np.float32(0.999) * nearest, np.float32(1.0))

            out[n] = min(t, longest)

    @njit(nogil=True, fastmath=True)
    def bresenham(occupied: Any, queries: Any, longest: Any, out: Any) -> None:
        rows, columns = occupied.shape
        for n in range(len(queries)):
            u = int(queries[n, 0])
            v = int(queries[n, 1])
            u0 = u
            v0 = v
            u1 = int(queries[n, 0] + np.cos(queries[n, 2]) * longest)
            v1 = int(queries[n, 1] + np.sin(queries[n, 2]) * longest)
            du = abs(u1 - u)
            dv = abs(v1 - v)
            step_u = 1 if u1 > u else -1
            step_v = 1 if v1 > v else -1
            error = du - dv
            out[n] = longest

            for _ in range(max(du, dv) + 1):
                if not (0 <= u < columns and 0 <= v < rows):
                    break
                if occupied[v, u]:
                    out[n] = np.sqrt(np.float32((u - u0) * (u - u0) + (v - v0) * (v - v0)))
                    break
                twice = 2 * error
                if twice > -dv:
                    error -= dv
                    u += step_u
                if twice < du:
                    error += du
                    v += step_v

    return ray_marching, bresenham


@contextmanager
def one_core() -> Iterator[None]:
    """Run this process on one core, if the system allows it: our kernels then use one thread."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def inflation(matrix: NDArray[np.bool_]) -> Iterator[Row]:
    """Yield radii on either side of the change from dilation to distances."""
    for radius in (0.25, 2.0):
        cells = round(radius * RESOLUTION)

        def ours(radius: float = radius) -> BinaryOccupancyMap:
            m = BinaryOccupancyMap.from_matrix(matrix, RESOLUTION)
            m.inflate(radius)
            return m

        def peer(cells: int = cells) -> NDArray[Any]:
            return np.asarray(distance_transform_edt(~matrix) < cells + 0.5)

        agree = same(np.array_equal(ours().occupancy_matrix(), peer()), f"{SIZE:,}² cells")
        a, b = measure(ours, peer, 3)
        name = f"inflate {SIZE:,}² by {cells} cells"
        yield Row(
            name,
            a,
            b,
            "scipy distance_transform_edt < r + ½",
            1.0,
            None,
            agree,
            "with the map from its matrix",
        )
