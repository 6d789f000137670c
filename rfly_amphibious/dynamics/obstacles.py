"""What stands on the ground as flat arrays for the kernels: convex parts, and which of them are
near a place.
"""

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
STEP_MARGIN = 0.25
"""m beyond a vehicle's reach that the cells' lists hold: so far it may go in a step without being
looked for anew
"""
FLAT_COSINE = 1.0 - 1e-12
"""of two triangles' normals: more, and the side between them is no edge"""


class Parts(NamedTuple):
    """n convex parts, ENU, m. Few arrays: each costs something in each call that takes it along."""

    bounds: Floats
    """(n, 6) least x, y, z of each part, then the largest"""
    first: Ints
    """(n + 1, 2) rows of `faces` where the planes and the edges of each part begin"""
    faces: Floats
    """(f, 6) of each part the planes, then the edges: unit normal out of a face, its distance from
    the origin along that, 0, 0; both ends of an edge
    """


class Obstacles(NamedTuple):
    """Convex parts, ENU, m, and a grid of cells, each with a list of the parts that a vehicle in it
    may touch.
    """

    origin_x: float
    """least x of the grid"""
    origin_y: float
    cell: float
    """side of a cell"""
    rows: int
    """cells along x"""
    columns: int
    """cells along y"""
    lists: Ints
    """(cells + 1,) where each cell's list begins in this array, column by column and then row by
    row; then the lists
    """
    parts: Parts
    """those that stand, then those that move and are near, where they are at the begin of the next
    steps
    """
    standing: int
    """how many stand"""
    velocity: Floats
    """Velocities of the parts that move, (m, 3), m/s, world."""
    hull: NDArray[np.void]
    """Ellipsoids of the vehicle's hull, records of `vehicle_record.HULL`."""


def obstacles_of(solids: Solids | None, reach: float, hull: NDArray[np.void]) -> Obstacles | None:
    """For vehicles that reach so far (m) from their positions; None where nothing can be touched.

    What has no volume is left out.
    """
    reach += STEP_MARGIN
    groups = [] if solids is None else np.split(solids.vertices, solids.first[1:-1])
    found = [_faces(corners.tobytes()) for corners in groups]
    parts = _parts([part for part in found if part is not None])
    n = len(parts.bounds)
    low = parts.bounds[:, :3]
    high = parts.bounds[:, 3:]
    if not n:
        return None
    begin = low[:, :2].min(axis=0) - reach
    end = high[:, :2].max(axis=0) + reach
    cell = max(
        reach,
        math.sqrt(float(np.prod(end - begin)) / MAX_CELLS),
        float(np.max(end - begin)) / MAX_CELLS,
    )
    rows, columns = (np.floor((end - begin) / cell).astype(np.int64) + 1).tolist()
    from_cell = np.floor((low[:, :2] - reach - begin) / cell).astype(np.int64)
    to_cell = np.floor((high[:, :2] + reach - begin) / cell).astype(np.int64)
    wide = to_cell - from_cell + 1
    times = wide.prod(axis=1)
    which = np.repeat(np.arange(n), times)
    place = np.arange(len(which)) - np.repeat(np.cumsum(times) - times, times)
    row = from_cell[which, 0] + place // wide[which, 1]
    column = from_cell[which, 1] + place % wide[which, 1]
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
        np.concatenate([begins, which[order]]),
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
    """The same among parts of bodies that move."""
    parts = []
    velocities = []
    for corners, place, rotation, velocity in bodies:
        found = _faces(corners.tobytes())
        if found is not None:
            planes, edges = found
            normals = planes[:, :3] @ rotation.T
            planes = np.column_stack([normals, planes[:, 3] + normals @ place])
            parts.append((planes, (edges.reshape(-1, 3) @ rotation.T + place).reshape(-1, 6)))
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
    """Of the planes (f, 4) and edges (e, 6) of each."""
    corners = [edges.reshape(-1, 3) for _, edges in parts]
    bounds = np.array(
        [np.concatenate([each.min(axis=0), each.max(axis=0)]) for each in corners]
    ).reshape(-1, 6)
    sizes = np.array(
        [(len(planes), len(planes) + len(edges)) for planes, edges in parts], np.int64
    ).reshape(-1, 2)
    begins = np.concatenate([[0], np.cumsum(sizes[:, 1])])
    first = np.column_stack([begins, begins + np.append(sizes[:, 0], 0)])
    faces = [
        np.concatenate([np.column_stack([planes, np.zeros((len(planes), 2))]), edges])
        for planes, edges in parts
    ]
    return Parts(bounds, first, np.concatenate([np.empty((0, 6)), *faces]))


@functools.lru_cache(maxsize=8192)  # a millisecond each, where one of many objects has moved
def _faces(corners: bytes) -> tuple[Floats, Floats] | None:
    """(planes (f, 4), edges (e, 6)) of the hull of points (v, 3); None where they enclose no
    volume.
    """
    from scipy.spatial import ConvexHull, QhullError

    vertices = np.frombuffer(corners).reshape(-1, 3)
    if len(vertices) < 4:
        return None
    middle = vertices.mean(axis=0)  # Qhull's tolerances grow with the distance from the origin
    try:
        hull = ConvexHull(vertices - middle)
    except QhullError:
        return None
    normals = hull.equations[:, :3]
    simplices = hull.simplices
    triangle, corner = np.nonzero(
        hull.neighbors > np.arange(len(simplices))[:, None]
    )  # each pair of neighbours once
    beside = hull.neighbors[triangle, corner]
    sharp = np.einsum("ij,ij->i", normals[triangle], normals[beside]) < FLAT_COSINE
    ends = simplices[triangle[sharp][:, None], (corner[sharp][:, None] + (1, 2)) % 3]
    different = np.unique(normals.round(7), axis=0, return_index=True)[1]
    planes = np.column_stack([normals[different], (normals[different] @ vertices.T).max(axis=1)])
    return planes, vertices[ends].reshape(-1, 6)
