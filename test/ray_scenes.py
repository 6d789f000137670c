# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rays over ground by dense samples, and scenes of both."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_terrain import HeightMap

DOWN = (0.0, 0.0, -1.0)
UP = np.array((0.0, 0.0, 1.0))


def above_ground(terrain: HeightMap, points: np.ndarray) -> np.ndarray:
    """Return z minus the bilinear height at (…, 3) points by its four weights; inf off the map."""
    u = (points[..., 0] - terrain.origin_x) / terrain.step_x
    v = (points[..., 1] - terrain.origin_y) / terrain.step_y
    # to within rounding: what crosses the very edge is on it
    on_x = (u >= -1e-9) & (u <= terrain.rows - 1 + 1e-9)
    on_y = (v >= -1e-9) & (v <= terrain.columns - 1 + 1e-9)

    i = np.clip(np.floor(u), 0, terrain.rows - 2).astype(int)
    j = np.clip(np.floor(v), 0, terrain.columns - 2).astype(int)
    a = u - i
    b = v - j
    z = terrain.heights.astype(float)
    ground = z[i, j] * (1 - a) * (1 - b)
    ground += z[i + 1, j] * a * (1 - b)
    ground += z[i, j + 1] * (1 - a) * b
    ground += z[i + 1, j + 1] * a * b
    return np.where(on_x & on_y, points[..., 2] - ground, np.inf)


def sampled_ranges(
    terrain: HeightMap,
    origins: np.ndarray,
    directions: np.ndarray,
    limit: float,
    samples: int = 200,
) -> tuple[np.ndarray, np.ndarray]:
    """Return (range, smallest |height| of a dip) of each ray between 0 and limit metres.

    The range is the first root of the height along the ray. Where the samples come close to the
    ground without reaching it, the lowest point is searched between them.
    """
    unit = units(directions)

    def height(ray: Any, t: np.ndarray) -> np.ndarray:
        return above_ground(terrain, origins[ray] + t[..., None] * unit[ray])

    # evenly, and where the rays cross lines of the grid: there the ground has its kinks
    evenly = np.linspace(0.0, limit, samples)
    times = [np.broadcast_to(evenly, (len(unit), samples))]
    for axis, origin, step, count in (
        (0, terrain.origin_x, terrain.step_x, terrain.rows),
        (1, terrain.origin_y, terrain.step_y, terrain.columns),
    ):
        lines = origin + step * np.arange(count)
        with np.errstate(divide="ignore", invalid="ignore"):
            crossed = (lines - origins[:, axis, None]) / unit[:, axis, None]
        times.append(np.clip(np.nan_to_num(crossed), 0.0, limit))

    t = np.sort(np.concatenate(times, axis=1), axis=1)
    every_ray = np.arange(len(unit))
    heights = height(every_ray[:, None], t)

    # between which samples each ray first meets the ground
    low = np.full(len(unit), np.nan)
    high = np.full(len(unit), np.nan)
    in_ground = heights <= 0.0
    first = np.argmax(in_ground, axis=1)
    hits = in_ground.any(axis=1)
    high[hits] = t[every_ray, first][hits]
    low[hits] = t[every_ray, np.maximum(first - 1, 0)][hits]

    # between two samples above the ground the height, a quadratic there, may dip: its lowest point
    # is searched
    before = heights[:, :-1]
    after = heights[:, 1:]
    lower = np.minimum(before, after)
    ray, k = np.nonzero((lower > 0.0) & (lower < 0.01 * limit))
    first_z = before[ray, k]
    middle_z = height(ray, (t[ray, k] + t[ray, k + 1]) / 2)
    last_z = after[ray, k]
    with np.errstate(invalid="ignore"):
        falls_first = 4 * middle_z < 3 * first_z + last_z
        rises_last = 4 * middle_z < first_z + 3 * last_z
    dips = falls_first & rises_last

    # golden section to the lowest point of each dip
    ray = ray[dips]
    k = k[dips]
    start_of_dip = t[ray, k]
    left = start_of_dip
    right = t[ray, k + 1]
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(36):
        one = right - golden * (right - left)
        two = left + golden * (right - left)
        lower = height(ray, one) < height(ray, two)
        left = np.where(lower, left, one)
        right = np.where(lower, two, right)

    # a dip that reaches the ground before the first sample below it comes first
    lowest = (left + right) / 2
    depth = height(ray, lowest)
    closest = np.full(len(unit), np.inf)
    np.minimum.at(closest, ray, np.abs(depth))
    for n in np.flatnonzero(depth <= 0.0):
        if not lowest[n] >= high[ray[n]]:
            low[ray[n]] = start_of_dip[n]
            high[ray[n]] = lowest[n]

    # bisection to the range
    hits = np.isfinite(high)
    hit_rays = np.flatnonzero(hits)
    left = low[hits]
    right = high[hits]
    left = np.where(height(hit_rays, left) <= 0.0, right, left)  # starts in the ground
    for _ in range(45):
        centre = (left + right) / 2
        below = height(hit_rays, centre) <= 0.0
        left = np.where(below, left, centre)
        right = np.where(below, centre, right)

    ranges = np.full(len(unit), np.inf)
    ranges[hit_rays] = right
    return ranges, closest


def agree(ranges: np.ndarray, expected: np.ndarray) -> np.ndarray:
    return np.isclose(ranges, expected, rtol=0, atol=1e-5)  # two misses are equal


def units(vectors: np.ndarray) -> np.ndarray:
    """Return vectors (n, 3) of length 1."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def random_points(rng: np.random.Generator, low: Any, high: Any, count: int) -> np.ndarray:
    """Return points (count, 3) in a box from its lowest to its highest corner."""
    columns = [rng.uniform(*limits, count) for limits in zip(low, high, strict=True)]
    return np.stack(columns, axis=1)


def scene(seed: int) -> tuple[HeightMap, np.ndarray, np.ndarray, float]:
    """Return a rough map and rays: free, grazing, at vertices, along grid lines, vertical."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(2, 14, 2)
    step_x, step_y = rng.choice([-1, 1], 2) * rng.uniform(0.3, 3.0, 2)
    rough = 10 ** rng.uniform(-1, 0.7)
    terrain = HeightMap(
        rng.normal(0, rough, (rows, columns)),
        origin_x=rng.normal(0, 10),
        origin_y=rng.normal(0, 10),
        step_x=step_x,
        step_y=step_y,
    )
    x_min, x_max, y_min, y_max = terrain.bounds
    size = math.hypot(x_max - x_min, y_max - y_min, terrain.z_max - terrain.z_min)

    def on_ground(count: int) -> np.ndarray:
        x = rng.uniform(x_min, x_max, count)
        y = rng.uniform(y_min, y_max, count)
        return np.stack([x, y, terrain.altitude(x, y)], axis=1)

    def random_units(count: int) -> np.ndarray:
        return units(rng.normal(size=(count, 3)))

    vertices = terrain.point_cloud().reshape(-1, 3).astype(float)
    origins = []
    directions = []

    def add(origin: np.ndarray, direction: np.ndarray) -> None:
        origins.append(origin)
        directions.append(direction)

    # free rays from above and towards the map
    place = rng.uniform((x_min, y_min), (x_max, y_max), (8, 2))
    start = np.column_stack([place, rng.uniform(-1, 3, 8) * rough])
    add(start, random_units(8))
    far_start = start + rng.normal(0, 1, (8, 3)) * size
    add(far_start, -random_units(8) - rng.normal(0, 0.2, (8, 3)))

    # tangents, from both sides of touching the ground
    touched = on_ground(8)
    gradient = terrain.gradient(touched[:, 0], touched[:, 1])
    heading = rng.uniform(0, 2 * np.pi, 8)
    along = np.stack([np.cos(heading), np.sin(heading), np.zeros(8)], axis=1)
    along[:, 2] = (along[:, :2] * gradient).sum(axis=1)
    along = units(along)
    lift = rng.choice([-1e-3, -1e-6, 1e-6, 1e-3], 8)
    distance = rng.uniform(0, 1, (8, 1)) * size / 3
    add(touched - along * distance + lift[:, None] * UP, along)

    # at vertices, but not at the map's own edge, where rounding decides whether a ray is over it:
    # see the tests of corners and edges
    inner_low = (x_min + 1e-6, y_min + 1e-6)
    inner_high = (x_max - 1e-6, y_max - 1e-6)
    aimed = vertices[rng.integers(0, len(vertices), 6)]
    aimed[:, :2] = np.clip(aimed[:, :2], inner_low, inner_high)
    away = random_units(6)
    away[:, 2] = np.abs(away[:, 2])
    lift = rng.choice([-1e-4, 1e-4], (6, 1))
    add(aimed + away * size / 3 + lift * UP, -away)

    # along the lines between vertices
    lines = vertices[rng.integers(0, len(vertices), 4)] + rough * UP
    above_low = lines[:, :2] > inner_low
    below_high = lines[:, :2] < inner_high
    inner = (above_low & below_high).all(axis=1)
    turn = rng.integers(0, 2, 4)[:, None]
    fall = rng.uniform(-0.5, 0.1, (4, 1))
    slanted = np.concatenate([turn, 1 - turn, fall], axis=1) * rng.choice([-1, 1])
    add(lines[inner], slanted[inner])

    # straight down
    start = on_ground(3) + rng.uniform(-0.5, 2, (3, 1)) * UP
    add(start, np.array(DOWN) * rng.uniform(0.1, 9, (3, 1)))
    return terrain, np.concatenate(origins), np.concatenate(directions), 2 * size
