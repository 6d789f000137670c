# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Shapes as flat arrays for the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rfly_collision.shapes.shape import Box, Capsule, Shape, Sphere, core_of, radius_of
from rfly_common.arrays import Floats, Ints

ROUND = 0
"""Kind of spheres and capsules: a core of one or two points with a radius."""
BOX = 1
"""Kind of boxes."""
HULL = 2

TOUCHING = 1e-7
"""Distance below which two bodies touch, with depth 0, m.

A body that lies on another does not lift off by rounding.
"""


class ShapeTable(NamedTuple):
    """k shapes as arrays.

    Lengths are metres, vectors are in body axes with the offset included; all arrays are read-only.
    """

    kind: Ints
    """ROUND, BOX or HULL, (k,)."""
    radius: Floats
    """Radius around the core, (k,), m."""
    reach: Floats
    """Distance from the body's origin to the farthest point of the core, (k,), m."""
    extent: Floats
    """Distance from the centre to the farthest vertex of the core, (k,), m."""
    centre: Floats
    """Mean of the core's vertices, (k, 3), m."""
    half: Floats
    """Half lengths of boxes, (k, 3), m; 0 for other shapes."""
    first: Ints
    """First vertex, plane, edge and triangle of each shape, (k + 1, 4).

    Those of the next shape are the end.
    """
    vertices: Floats
    """Vertices of the cores, (v, 3), m."""
    planes: Floats
    """Unit normal out of each face, and distance of the face from the origin along it, (f, 4)."""
    edges: Ints
    """Vertices and faces on both sides of each edge, (e, 4), as rows of `vertices` and `planes`.

    A capsule's edge has no faces: -1.
    """
    across: Floats
    """Normal of the second face x normal of the first, (e, 3); 0 for a capsule's edge."""
    triangles: Ints
    """Rows of `vertices`, (t, 3)."""
    most_vertices: int
    """Most vertices of one shape."""


def table_of(shapes: Sequence[Shape]) -> ShapeTable:
    """Return the table of shapes, in their order."""
    cores = [core_of(shape) for shape in shapes]
    sizes = np.array([[len(part) for part in core] for core in cores], np.int64).reshape(-1, 4)
    first = np.zeros((len(shapes) + 1, 4), np.int64)
    np.cumsum(sizes, axis=0, out=first[1:])

    planes = np.concatenate([np.empty((0, 4)), *(core.planes for core in cores)])
    edges = np.concatenate(
        [
            np.empty((0, 4), np.int64),
            *(_moved(core.edges, start) for core, start in zip(cores, first, strict=False)),
        ]
    )
    across = (
        np.cross(planes[edges[:, 3], :3], planes[edges[:, 2], :3])
        if len(planes)
        else np.zeros((len(edges), 3))
    )
    across[edges[:, 2] < 0] = 0.0

    triangles = [core.triangles + start[0] for core, start in zip(cores, first, strict=False)]
    table = ShapeTable(
        kind=np.array([_kind(shape) for shape in shapes], np.int64),
        radius=np.array([radius_of(shape) for shape in shapes], np.float64),
        reach=np.array([np.linalg.norm(core.vertices, axis=1).max() for core in cores], np.float64),
        extent=np.array(
            [
                np.linalg.norm(core.vertices - core.vertices.mean(axis=0), axis=1).max()
                for core in cores
            ]
        ),
        centre=np.array([core.vertices.mean(axis=0) for core in cores]).reshape(-1, 3),
        half=np.array(
            [
                np.array(shape.size) / 2 if isinstance(shape, Box) else np.zeros(3)
                for shape in shapes
            ]
        ).reshape(-1, 3),
        first=first,
        vertices=np.concatenate([np.empty((0, 3)), *(core.vertices for core in cores)]),
        planes=planes,
        edges=edges,
        across=across,
        triangles=np.concatenate([np.empty((0, 3), np.int64), *triangles]),
        most_vertices=int(sizes[:, 0].max(initial=1)),
    )

    for part in table[:-1]:
        part.flags.writeable = False
    return table


def _moved(edges: Ints, start: Ints) -> Ints:
    moved = edges + np.array([start[0], start[0], start[1], start[1]])
    moved[:, 2:][edges[:, 2:] < 0] = -1
    return moved


def _kind(shape: Shape) -> int:
    if isinstance(shape, Sphere | Capsule):
        return ROUND
    return BOX if isinstance(shape, Box) else HULL
