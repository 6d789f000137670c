# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Reference for collision tests: slow, in double precision, by Qhull, least squares and sampling.

Only the fields of the collision library's shapes are used here, and none of its methods: two bodies
are compared through the hull of all differences of their points, depths in the ground are maximised
over points of the plane.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear
from scipy.spatial import ConvexHull as QuickHull
from scipy.spatial.transform import Rotation

from rfly_collision import Bodies, Box, Capsule, ConvexHull, Shape, Sphere
from rfly_terrain import HeightMap

Floats = NDArray[np.float64]

RASTER = 61
"""Points on each side of the first raster."""

LEVEL = (0.0, 0.0, 0.0, 1.0)


def body(
    shape: Shape, position: Any, quat: Any = LEVEL, velocity: Any = (0, 0, 0), turn: Any = (0, 0, 0)
) -> Bodies:
    """Return one body."""
    return bodies_of([(shape, position, quat, velocity, turn)])


def bodies_of(rows: Any, **more: Any) -> Bodies:
    """Return Bodies of tuples (shape, position[, quaternion[, velocity[, angular velocity]]])."""
    rows = [(*row, *(LEVEL, (0, 0, 0), (0, 0, 0))[len(row) - 2 :]) for row in rows]
    columns = [np.array(column, float) for column in list(zip(*rows, strict=True))[1:]]
    shapes = {id(row[0]): row[0] for row in rows}
    index = {key: number for number, key in enumerate(shapes)}
    return Bodies(tuple(shapes.values()), [index[id(row[0])] for row in rows], *columns, **more)


@dataclass
class Solid:
    """A convex body in the world: the hull of points, and a radius around it."""

    points: Floats
    radius: float
    _planes: Floats | None = None

    def planes(self) -> Floats:
        """Return (f, 4) normals out of the faces and minus their distances from 0."""
        if self._planes is None:
            self._planes = QuickHull(self.points).equations
        return self._planes

    def outside(self, point: Floats) -> float:
        """Return a value above 0, m, for a point outside of the body."""
        if len(self.points) > 2:
            planes = self.planes()
            return float((planes[:, :3] @ point + planes[:, 3]).max())
        along = self.points[-1] - self.points[0]
        t = np.clip((point - self.points[0]) @ along / max(along @ along, 1e-300), 0, 1)
        return float(np.linalg.norm(point - self.points[0] - t * along)) - self.radius


def solid(shape: Shape, position: Any, quat: Any = LEVEL) -> Solid:
    if isinstance(shape, Box):
        points = np.array(list(itertools.product((-0.5, 0.5), repeat=3))) * shape.size
    elif isinstance(shape, Capsule):
        points = np.array([(-shape.length / 2, 0, 0), (shape.length / 2, 0, 0)])
    elif isinstance(shape, ConvexHull):
        points = shape.vertices
    else:
        points = np.zeros((1, 3))
    world = Rotation.from_quat(quat).apply(points + np.array(shape.offset)) + np.array(position)
    return Solid(world, shape.radius if isinstance(shape, Sphere | Capsule) else 0.0)


@dataclass
class Overlap:
    depth: float
    """Depth of the shortest way out, m; negative: minus the distance."""
    normals: Floats
    """Directions from b to a, (k, 3), of the ways out that are at most 1e-5 m longer."""


def overlap(a: Solid, b: Solid) -> Overlap:
    """Return the overlap by the hull of all differences of points.

    It is the least distance of 0 from the hull's faces, or of the hull from 0. The point of a hull
    that is nearest to 0 is found by least squares (C. Lawson and R. Hanson, "Solving Least Squares
    Problems", chapter 23; not by SciPy's nnls, which ends too early in version 1.15).
    """
    differences = (b.points[:, None] - a.points[None]).reshape(-1, 3)
    radii = a.radius + b.radius
    if np.linalg.matrix_rank(differences - differences[0], 1e-9) == 3:
        planes = QuickHull(differences).equations
        if (planes[:, 3] < 0).all():
            least = -planes[:, 3]
            return Overlap(float(least.min()) + radii, planes[least < least.min() + 1e-5, :3])

    share = lsq_linear(
        np.vstack([differences.T, np.ones(len(differences))]),
        np.array([0.0, 0.0, 0.0, 1.0]),
        bounds=(0, np.inf),
        method="bvls",
    ).x
    nearest = differences.T @ share / share.sum()
    distance = float(np.linalg.norm(nearest))

    return Overlap(radii - distance, -nearest[None] / distance)


def bilinear(terrain: HeightMap, x: Floats, y: Floats, void: bool = False) -> Floats:
    """Return the ground's height; off the map that of the edge, or (void) minus infinity."""
    u = (x - terrain.origin_x) / terrain.step_x
    v = (y - terrain.origin_y) / terrain.step_y
    slack = 1e-9  # a point on the edge may be rounded off the map
    inside = (
        (u >= -slack)
        & (u <= terrain.rows - 1 + slack)
        & (v >= -slack)
        & (v <= terrain.columns - 1 + slack)
    )
    u = np.clip(u, 0, terrain.rows - 1)
    v = np.clip(v, 0, terrain.columns - 1)
    i = np.minimum(u.astype(int), terrain.rows - 2)
    j = np.minimum(v.astype(int), terrain.columns - 2)
    a = u - i
    b = v - j
    h = terrain.heights.astype(float)
    z = (1 - a) * ((1 - b) * h[i, j] + b * h[i, j + 1]) + a * (
        (1 - b) * h[i + 1, j] + b * h[i + 1, j + 1]
    )

    return np.where(inside | (not void), z, -np.inf)


def lower_side(shape: Solid, x: Floats, y: Floats) -> Floats:
    """Return z of the lower surface of a polyhedron over points; infinity outside of it."""
    nx, ny, nz, d = shape.planes().T
    with np.errstate(divide="ignore"):
        z = -(d + np.multiply.outer(x, nx) + np.multiply.outer(y, ny)) / nz

    # below the upper and above the lower faces, and within the upright ones
    upright = np.abs(nz) < 1e-9
    low = np.where(nz < -1e-9, z, -np.inf).max(axis=-1)
    high = np.where(nz > 1e-9, z, np.inf).min(axis=-1)
    outside = ((np.multiply.outer(x, nx) + np.multiply.outer(y, ny) + d > 0) & upright).any(axis=-1)
    return np.where((low > high) | outside, np.inf, low)


def deepest_in_ground(terrain: HeightMap, shape: Solid, void: bool = False) -> tuple[float, Floats]:
    """Return the depth and the place (2,) x, y of the deepest point of a polyhedron.

    The depth is straight down. A raster is searched, then ever finer ones.
    """

    def depth(x: Floats, y: Floats) -> Floats:
        return bilinear(terrain, x, y, void) - lower_side(shape, x, y)

    return _largest(
        depth, shape.points[:, :2].min(axis=0), shape.points[:, :2].max(axis=0), shape.points[:, :2]
    )


def distance_to_ground(
    terrain: HeightMap, core: Floats, reach: float, void: bool = False
) -> tuple[float, Floats]:
    """Return the distance and the nearest point of the ground of a line (2, 3) above the ground.

    The point is searched up to `reach`.
    """
    p = core[0]
    along = core[1] - core[0]
    square = float(along @ along)

    def nearness(x: Floats, y: Floats) -> Floats:
        z = bilinear(terrain, x, y, void)
        points = np.stack([x, y, np.where(np.isfinite(z), z, 1e6)], axis=-1)
        t = np.clip((points - p) @ along / square, 0, 1) if square else np.zeros_like(x)
        return -np.linalg.norm(points - p - t[..., None] * along, axis=-1)

    low = core[:, :2].min(axis=0) - reach
    high = core[:, :2].max(axis=0) + reach
    near, place = _largest(nearness, low, high, core[:, :2])
    return -near, np.array([*place, float(bilinear(terrain, *place))])


def deepest_on_line(terrain: HeightMap, core: Floats, void: bool = False) -> float:
    """Return how far the deepest point of a line (2, 3) lies beneath the ground, straight down."""
    low = 0.0
    high = 1.0
    best = -np.inf

    for _ in range(4):
        t = np.linspace(low, high, 2001)
        points = core[0] + t[:, None] * (core[1] - core[0])
        below = bilinear(terrain, points[:, 0], points[:, 1], void) - points[:, 2]
        k = int(np.argmax(below))
        best = max(best, float(below[k]))
        low = t[max(k - 2, 0)]
        high = t[min(k + 2, 2000)]

    return best


def _largest(value: Any, low: Floats, high: Floats, extra: Floats) -> tuple[float, Floats]:
    """Return the largest value over a rectangle and the `extra` points, and its place.

    A raster is searched, then ever finer ones about its best places.
    """
    # values on a raster
    x, y = (np.linspace(low[k], high[k], RASTER) for k in range(2))
    grid = np.vstack([np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2), extra])
    found = value(grid[:, 0], grid[:, 1])
    cells = (high - low) / (RASTER - 1)

    # its best places that are apart from each other
    seeds: list[Floats] = []
    for k in np.argsort(-found)[:300]:
        if all((np.abs(grid[k] - seed) > 1.5 * cells).any() for seed in seeds):
            seeds.append(grid[k])
        if len(seeds) == 12:
            break

    # ever finer rasters about each of them
    places = np.array(seeds)
    width = 1.5 * cells
    square = np.stack(np.meshgrid(np.linspace(-1, 1, 7), np.linspace(-1, 1, 7)), axis=-1).reshape(
        -1, 2
    )
    while width.max() > 1e-9:
        around = places[:, None] + square * width
        values = value(around[..., 0].reshape(-1), around[..., 1].reshape(-1)).reshape(
            len(places), -1
        )
        places = around[np.arange(len(places)), values.argmax(axis=1)]
        width = 0.55 * width

    ends = value(places[:, 0], places[:, 1])
    return float(ends.max()), places[ends.argmax()]
