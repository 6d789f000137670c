# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Costs of a whole map, against the same in C++ and with SciPy's filters.

grid_map's filters come with ROS alone; the C++ (`traversability.cpp`) works out the same numbers
without their layers between the filters.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import correlate, distance_transform_edt, maximum_filter

from benchmarks.bench_rays import one_core
from benchmarks.cpp import PEER, compiled, cpp_call, cpp_library
from benchmarks.harness import Row, measure, same
from rfly_common.kernels.parallel import cores
from rfly_terrain import HeightMap
from rfly_terrain.costmap.traversability import TraversabilityLimits, traversability

SIZE = 1_000
STEP = 0.5
LIMITS = TraversabilityLimits(25.0, 0.15, 0.4, vehicle_radius=1.0, half_wheelbase=1.5)
REACH = 3


def rows() -> Iterator[Row]:
    """Yield the costs of driving over a map of rough hills."""
    terrain = rough_hills()
    ours = traversability(terrain, LIMITS).cost
    if cpp_library() is not None:
        yield compared_with_cpp(terrain, ours)

    agree = agreement(ours, by_scipy(terrain))
    a, b = measure(lambda: traversability(terrain, LIMITS), lambda: by_scipy(terrain), 3)
    note = (
        f"disc of {REACH} cells, {np.mean(ours == 100):.0%} forbidden; "
        f"ours on {cores()} threads, float64 both"
    )
    yield Row(
        f"costs of driving over {SIZE:,}²",
        a,
        b,
        "SciPy's filters",
        1.0,
        None,
        agree,
        note,
    )


def agreement(ours: NDArray[Any], theirs: NDArray[Any]) -> str:
    """Return the text for `Row.agree`.

    A few values round the other way, or lie on a limit: sums of float64 in another order.
    """
    apart = int(np.count_nonzero(ours.astype(int) != theirs))
    return same(apart <= SIZE, f"{SIZE:,}² costs but for {apart}")


def compared_with_cpp(terrain: HeightMap, ours: NDArray[Any]) -> Row:
    """Compare with the same in C++, one core each."""
    z = np.ascontiguousarray(terrain.heights.T)
    cost = np.empty(z.shape, np.int8)
    limits = np.array([LIMITS.max_slope_deg, LIMITS.roughness_limit(STEP), LIMITS.step_limit(STEP)])
    margin = round(LIMITS.vehicle_radius / STEP)
    library = compiled("traversability")
    cpp = cpp_call(library.traversability, z, SIZE, SIZE, STEP, REACH, limits, margin, cost)
    cpp()
    agree = agreement(ours, cost)

    with one_core():
        a, b = measure(lambda: traversability(terrain, LIMITS), cpp, 5, clock=process_time)
    return Row(
        f"C++: costs of driving over {SIZE:,}²", a, b, PEER, 0.9, None, agree, "one core each"
    )


def rough_hills() -> HeightMap:
    """Return hills of 60 m with some roughness."""
    rng = np.random.default_rng(1)
    along = np.linspace(0, 1, SIZE)
    broad = 60 * np.sin(5 * along)[:, None] * np.cos(7 * along)
    small = 10 * np.sin(31 * along)[:, None] * np.sin(23 * along)
    heights = broad + small
    heights += rng.normal(0, 0.02, heights.shape)
    return HeightMap(heights, origin_x=0, origin_y=0, step_x=STEP, step_y=STEP)


def by_scipy(terrain: HeightMap) -> NDArray[Any]:
    """Return the costs as written with scipy.ndimage.

    It sums z, x z, y z and z² over the disc and finds the largest steps.
    """
    z = terrain.heights.T.astype(float)
    z -= z.mean()

    # a plane through each disc
    offset = np.arange(-REACH, REACH + 1)
    disc = (offset[:, None] ** 2 + offset**2 <= REACH * REACH).astype(float)
    count = disc.sum()
    spread = (disc * offset**2).sum()
    mean = correlate(z, disc) / count
    rise_x = correlate(z, disc * offset) / spread
    rise_y = correlate(z, disc * offset[:, None]) / spread
    squares = correlate(z * z, disc) / count - mean**2 - (rise_x**2 + rise_y**2) * spread / count

    # slope and roughness
    slope = np.degrees(np.arctan(np.hypot(rise_x, rise_y) / STEP))
    worst = np.maximum(
        slope / LIMITS.max_slope_deg,
        np.sqrt(np.maximum(squares, 0)) / LIMITS.roughness_limit(STEP),
    )

    # the largest step within the disc
    for axis in (0, 1):
        step = np.abs(np.diff(z, axis=axis, append=np.take(z, [-1], axis)))
        # the disc's border is 0 in its last row except in the middle
        pairs = disc * np.roll(disc, -1, axis)
        pairs[(slice(None),) * axis + (-1,)] = 0
        steepest = maximum_filter(step, footprint=pairs > 0)
        worst = np.maximum(worst, steepest / LIMITS.step_limit(STEP))

    # costs, with a border, and a margin around what is forbidden
    cost = np.where(worst >= 1, 100, np.rint(99 * np.minimum(worst, 1))).astype(int)
    inner = np.zeros(z.shape, bool)
    inner[REACH:-REACH, REACH:-REACH] = True
    cost[~inner] = -1
    cost[distance_transform_edt(cost != 100) * STEP <= LIMITS.vehicle_radius] = 100

    return np.asarray(cost)
