# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Solids on the ground as flat arrays for the kernels: convex parts, and a grid to find them."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats, Ints
from rfly_terrain.world.moving import MovingPart
from rfly_terrain.world.solids import Solids

MAX_CELLS = 1_000_000
"""Most cells of the grid."""
STEP_MARGIN = 0.25
"""Distance beyond a vehicle's reach that the cells' lists hold, m. A vehicle may go this far in a
step without a new search."""
FLAT_COSINE = 1.0 - 1e-12
"""Cosine of the angle between two triangles above which the side between them is no edge."""


class Parts(NamedTuple):
    """n convex parts, ENU, m.

    There are few arrays because each costs time in each call that passes it.
    """

    bounds: Floats
    """Least x, y, z of each part, then the largest, (n, 6)."""
    first: Ints
    """Rows of `faces` where the planes and the edges of each part begin, (n + 1, 2)."""
    faces: Floats
    """Planes of each part, then its edges, (f, 6).

    A plane is its unit normal, out of the part, its distance from the origin along that, 0, 0; an
    edge is its two ends.
    """


class Obstacles(NamedTuple):
    """Convex parts, ENU, m, and a grid of cells with lists of the parts a vehicle may touch."""

    origin_x: float
    """Least x of the grid, m."""
    origin_y: float
    """Least y of the grid, m."""
    cell: float
    """Side of a cell, m."""
    rows: int
    """Number of cells along x."""
    columns: int
    """Number of cells along y."""
    lists: Ints
    """Index in this array where the list of each cell begins, (cells + 1,), then the lists.

    Cells are in the order of rows, each with its columns.
    """
    parts: Parts
    """Parts that stand, then those that move and are near.

    The latter are where they are at the begin of the next steps.
    """
    standing: int
    """Number of parts that stand."""
    velocity: Floats
    """Velocities of the parts that move, (m, 3), m/s, world."""
    hull: NDArray[np.void]
    """Ellipsoids of the vehicle's hull, records of `vehicle_record.HULL`."""


def obstacles_of(solids: Solids | None, reach: float, hull: NDArray[np.void]) -> Obstacles | None:
    """Return the solids for vehicles that reach this far (m) from their positions; None for none.

    Solids without a volume are left out.
    """
    reach += STEP_MARGIN
    groups = [] if solids is None else np.split(solids.vertices, solids.first[1:-1])
    hulls = [_faces(corners.tobytes()) for corners in groups]
    parts = _parts([part for part in hulls if part is not None])
    n = len(parts.bounds)
    if not n:
        return None

    # the grid
    low = parts.bounds[:, :2] - reach
    high = parts.bounds[:, 3:5] + reach
    begin = low.min(axis=0)
    size = high.max(axis=0) - begin
    most_of_area = math.sqrt(float(np.prod(size)) / MAX_CELLS)
    most_of_side = float(np.max(size)) / MAX_CELLS
    cell = max(reach, most_of_area, most_of_side)
    rows, columns = (np.floor(size / cell).astype(np.int64) + 1).tolist()

    # (part, cell) for each cell that a part lies in
    from_cell = np.floor((low - begin) / cell).astype(np.int64)
    to_cell = np.floor((high - begin) / cell).astype(np.int64)
    wide = to_cell - from_cell + 1
    times = wide.prod(axis=1)
    part = np.repeat(np.arange(n), times)
    place = np.arange(len(part)) - np.repeat(np.cumsum(times) - times, times)
    row = from_cell[part, 0] + place // wide[part, 1]
    column = from_cell[part, 1] + place % wide[part, 1]

    # lists, cell by cell
    cells = row * columns + column
    order = np.argsort(cells, kind="stable")
    begins = np.searchsorted(cells[order], np.arange(rows * columns + 1)) + rows * columns + 1
    x, y = begin.tolist()
    return Obstacles(
        x,
        y,
        cell,
        rows,
        columns,
        np.concatenate([begins, part[order]]),
        parts,
        n,
        np.empty((0, 3)),
        hull,
    )


def no_obstacles(hull: NDArray[np.void]) -> Obstacles:
    """Return obstacles for a hull without any part."""
    no_list = np.ones(1, np.int64)
    return Obstacles(0.0, 0.0, 1.0, 0, 0, no_list, _parts([]), 0, np.empty((0, 3)), hull)


def with_moving(obstacles: Obstacles, bodies: Iterable[MovingPart]) -> Obstacles:
    """Return the obstacles together with the parts of bodies that move."""
    parts = []
    velocities = []
    for corners, place, rotation, velocity in bodies:
        hull = _faces(corners.tobytes())
        if hull is None:
            continue
        planes, edges = hull
        normals = planes[:, :3] @ rotation.T
        planes = np.column_stack([normals, planes[:, 3] + normals @ place])
        edges = (edges.reshape(-1, 3) @ rotation.T + place).reshape(-1, 6)
        parts.append((planes, edges))
        velocities.append(velocity)

    more = _parts(parts)
    standing = obstacles.parts
    together = Parts(
        np.concatenate([standing.bounds, more.bounds]),
        np.concatenate([standing.first[:-1], more.first + len(standing.faces)]),
        np.concatenate([standing.faces, more.faces]),
    )
    return obstacles._replace(parts=together, velocity=np.array(velocities, float).reshape(-1, 3))


def _parts(parts: Sequence[tuple[Floats, Floats]]) -> Parts:
    """Return parts from the planes (f, 4) and edges (e, 6) of each."""
    corners = [edges.reshape(-1, 3) for _, edges in parts]
    bounds = [np.concatenate([each.min(axis=0), each.max(axis=0)]) for each in corners]

    # rows of planes and edges
    planes_of = np.array([len(planes) for planes, _ in parts], np.int64)
    edges_of = np.array([len(edges) for _, edges in parts], np.int64)
    begins = np.concatenate([[0], np.cumsum(planes_of + edges_of)])
    first = np.column_stack([begins, begins + np.append(planes_of, 0)])

    faces = [np.empty((0, 6))]
    for planes, edges in parts:
        faces += [np.column_stack([planes, np.zeros((len(planes), 2))]), edges]
    return Parts(np.array(bounds).reshape(-1, 6), first, np.concatenate(faces))


@functools.lru_cache(maxsize=8192)  # a millisecond each, where one of many objects has moved
def _faces(corners: bytes) -> tuple[Floats, Floats] | None:
    """Return (planes (f, 4), edges (e, 6)) of the hull of points (v, 3); None for a flat one."""
    from scipy.spatial import ConvexHull, QhullError

    vertices = np.frombuffer(corners).reshape(-1, 3)
    if len(vertices) < 4:
        return None
    # Qhull's tolerances grow with the distance from the origin
    middle = vertices.mean(axis=0)
    try:
        hull = ConvexHull(vertices - middle)
    except QhullError:
        return None

    # edges between triangles that are not in one plane, each pair of neighbours once
    normals = hull.equations[:, :3]
    simplices = hull.simplices
    triangle, corner = np.nonzero(hull.neighbors > np.arange(len(simplices))[:, None])
    neighbour = hull.neighbors[triangle, corner]
    cosine = np.einsum("ij,ij->i", normals[triangle], normals[neighbour])
    sharp = cosine < FLAT_COSINE
    ends = simplices[triangle[sharp][:, None], (corner[sharp][:, None] + (1, 2)) % 3]

    # one plane for all triangles in it
    different = np.unique(normals.round(7), axis=0, return_index=True)[1]
    planes = np.column_stack([normals[different], (normals[different] @ vertices.T).max(axis=1)])
    return planes, vertices[ends].reshape(-1, 6)
