# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Convex shapes of bodies: sphere, capsule, box and convex hull.

The terrain is a shape of the scene, not of a body. Sizes are metres; axes are those of the body
(FLU, as base_link). Shapes are immutable and refuse what has no volume. Each is a core, the convex
hull of some points, and a radius around it: a point, a line, or a polyhedron with radius 0. A
`ShapeTable` has shapes as flat arrays for the kernels.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats, Ints
from rfly_common.errors import ShapeError

Offset: TypeAlias = tuple[float, float, float]

MAX_VERTICES = 256
"""Largest number of corners of a hull: the work of two hulls grows with the square of their edges.
"""

FLAT = 1e-6
"""Relative flatness, in largest extents: thinner hulls count as flat, and faces that differ by less
count as one.
"""

ROUND = 0
"""Kind of spheres and capsules: a core of one or two points with a radius."""
BOX = 1
"""Kind of boxes."""
HULL = 2

TOUCHING = 1e-7
"""Distance below which two bodies touch, with depth 0, m.

A body that lies on another does not lift off by rounding.
"""


class _Solid:
    """Checks and converts the fields of a shape by their names."""

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            object.__setattr__(self, name, _CHECKS[name](f"{type(self).__name__}.{name}", value))


@dataclass(frozen=True)
class Sphere(_Solid):
    """A sphere about `offset`."""

    radius: float
    """Radius, m."""
    offset: Offset = (0.0, 0.0, 0.0)
    """Middle, body axes, m."""


@dataclass(frozen=True)
class Capsule(_Solid):
    """A cylinder along body x with half spheres at both ends."""

    radius: float
    """Radius, m."""
    length: float
    """Length of the cylinder alone, m: the whole capsule is length + 2·radius long."""
    offset: Offset = (0.0, 0.0, 0.0)
    """Middle, body axes, m."""


@dataclass(frozen=True)
class Box(_Solid):
    """A box along the body's axes."""

    size: tuple[float, float, float]
    """Full lengths along body x, y, z, m."""
    offset: Offset = (0.0, 0.0, 0.0)
    """Middle, body axes, m."""


@dataclass(frozen=True, eq=False)
class ConvexHull(_Solid):
    """The convex hull of points; those that are no corner of it are dropped."""

    vertices: Floats
    """Corners of the hull only, (n, 3), body axes before the offset, m; read-only."""
    offset: Offset = (0.0, 0.0, 0.0)
    """Translation of all vertices, body axes, m."""

    @classmethod
    def of_corners(cls, vertices: Floats) -> ConvexHull:
        """Return the hull of points (n, 3) that are all corners of it, as the caller knows.

        It is not checked: the check loads SciPy, for which a node that only draws has no use.
        """
        hull = object.__new__(cls)
        corners = np.array(vertices, np.float64)
        corners.flags.writeable = False
        object.__setattr__(hull, "vertices", corners)
        object.__setattr__(hull, "offset", (0.0, 0.0, 0.0))
        return hull


@dataclass(frozen=True, eq=False)
class TriangleMesh:
    """Surface as rays see it, from both sides; it need not be closed.

    Contacts are with a model's convex parts instead.
    """

    triangles: Floats
    """Corners, (t, 3, 3), body axes, m."""


Shape: TypeAlias = Sphere | Capsule | Box | ConvexHull
"""Convex shape in the axes of its body."""


class Polyhedron(NamedTuple):
    """The core of a shape in body axes, offset included."""

    vertices: Floats
    """Vertices, (v, 3), m."""
    planes: Floats
    """Faces, (f, 4): outward unit normal, and distance from the body's origin along it.

    Points and lines have none.
    """
    edges: Ints
    """Edges, (e, 4): both vertices, and both faces (-1 for a line)."""
    triangles: Ints
    """Vertices of the faces' triangles, (t, 3)."""


def radius_of(shape: Shape) -> float:
    """Return the radius around the core, m; 0 for boxes and hulls."""
    return shape.radius if isinstance(shape, Sphere | Capsule) else 0.0


def core_of(shape: Shape) -> Polyhedron:
    """Return the core, whose radius is `radius_of`."""
    if isinstance(shape, Sphere):
        core = Polyhedron(
            np.zeros((1, 3)),
            np.empty((0, 4)),
            np.empty((0, 4), np.int64),
            np.empty((0, 3), np.int64),
        )
    elif isinstance(shape, Capsule):
        ends = np.array([(-0.5 * shape.length, 0.0, 0.0), (0.5 * shape.length, 0.0, 0.0)])
        edge = np.array([(0, 1, -1, -1)], np.int64)
        core = Polyhedron(ends, np.empty((0, 4)), edge, np.empty((0, 3), np.int64))
    elif isinstance(shape, Box):
        unit = _unit_box()
        size = np.array(shape.size)
        planes = unit.planes * 1.0
        planes[:, 3] = np.abs(unit.planes[:, :3]) @ size / 2
        core = Polyhedron(unit.vertices * size, planes, unit.edges, unit.triangles)
    else:
        hull = _hull(shape.vertices)
        core = _polyhedron(shape.vertices, hull.equations, hull.simplices)

    # moved by the offset
    offset = np.array(shape.offset)
    planes = core.planes.copy()
    planes[:, 3] += planes[:, :3] @ offset
    return core._replace(vertices=core.vertices + offset, planes=planes)


@functools.cache
def _unit_box() -> Polyhedron:
    """Return the box with edges of 1 m.

    Without Qhull: to import SciPy's takes a node 25 MB and a tenth of a second.
    """
    vertices = np.array(list(itertools.product((-0.5, 0.5), repeat=3)))
    equations = []
    triangles = []
    for axis, side in itertools.product(range(3), (-0.5, 0.5)):
        a, b, c, d = np.flatnonzero(vertices[:, axis] == side)
        triangles += [(a, b, c), (b, c, d)]
        normal = np.zeros(3)
        normal[axis] = math.copysign(1.0, side)
        equations += 2 * [(*normal, -0.5)]
    return _polyhedron(vertices, np.array(equations), np.array(triangles))


def _polyhedron(vertices: Floats, equations: Floats, triangles: Ints) -> Polyhedron:
    """Return faces, edges and triangles of points that are all corners of their hull.

    `equations`: (t, 4), n · p + d = 0 of the plane of each triangle (t, 3), n outwards. Triangles
    in one plane are one face.
    """
    scale = float(np.ptp(vertices, axis=0).max())
    inside = vertices.mean(axis=0)

    # faces: triangles in one plane belong together
    planes: list[Floats] = []
    face_of = np.empty(len(triangles), np.int64)
    for index, equation in enumerate(equations):
        for known, plane in enumerate(planes):
            if (
                np.linalg.norm(plane[:3] - equation[:3]) < 10 * FLAT
                and abs(plane[3] + equation[3]) < 10 * FLAT * scale
            ):
                face_of[index] = known
                break
        else:
            face_of[index] = len(planes)
            planes.append(np.append(equation[:3], -equation[3]))

    # edges: sides of two different faces
    faces_at: dict[tuple[int, int], list[int]] = {}
    for face, corners in zip(face_of.tolist(), triangles.tolist(), strict=True):
        for one, other in itertools.combinations(sorted(corners), 2):
            faces_at.setdefault((one, other), []).append(face)
    edges = [
        (*ends, *faces)
        for ends, faces in sorted(faces_at.items())
        if len(faces) == 2 and faces[0] != faces[1]
    ]

    table = np.array(planes)
    table[:, 3] = (table[:, :3] @ vertices.T).max(axis=1)  # no corner lies outside by rounding
    assert (table[:, :3] @ inside < table[:, 3]).all()
    return Polyhedron(vertices, table, np.array(edges, np.int64), triangles.astype(np.int64))


def _corners(name: str, points: ArrayLike) -> Floats:
    try:
        array = np.array(points, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{name}: expected numbers of shape (n, 3), got {points!r:.80}") from None

    if array.ndim != 2 or array.shape[1] != 3:
        raise ShapeError(f"{name}: expected shape (n, 3), got {array.shape}")

    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        row, axis = bad[0].tolist()
        raise ShapeError(f"{name}[{row}, {axis}] is {array[row, axis]}, expected finite metres")
    if len(array) < 4:
        raise ShapeError(f"{name}: {len(array)} points enclose no volume, expected 4 or more")

    # volume
    singular = np.linalg.svd(array - array.mean(axis=0), compute_uv=False)
    if not singular[2] > FLAT * singular[0]:
        raise ShapeError(f"{name}: the points lie in one plane or line and enclose no volume")

    corners = array[np.sort(_hull(array).vertices)]
    if len(corners) > MAX_VERTICES:
        raise ShapeError(
            f"{name}: the hull has {len(corners)} corners, expected at most {MAX_VERTICES}; thin "
            "it out"
        )
    corners.flags.writeable = False
    return corners


def _hull(points: Floats) -> Any:
    from scipy.spatial import ConvexHull as QuickHull
    from scipy.spatial import QhullError

    try:
        return QuickHull(points)
    except QhullError as error:
        reason = str(error).strip().splitlines()[0]
        raise ShapeError(
            f"ConvexHull.vertices: no hull can be built around them ({reason})"
        ) from None


def _metres(name: str, value: Any, above: float = -math.inf) -> float:
    try:
        number = None if isinstance(value, str | bytes | bool | np.bool_) else float(value)
    except (TypeError, ValueError):
        number = None
    if number is None or not above < number < math.inf:
        expected = (
            "finite metres" if above == -math.inf else f"more than {above:g} and finite metres"
        )
        raise ShapeError(
            f"{name} is {repr(value) if number is None else number}, expected {expected}"
        )
    return number


def _three(name: str, value: Any, above: float = -math.inf) -> Offset:
    try:
        x, y, z = value
    except (TypeError, ValueError):
        raise ShapeError(f"{name} is {value!r}, expected three numbers x, y, z in metres") from None
    return (
        _metres(f"{name}[0]", x, above),
        _metres(f"{name}[1]", y, above),
        _metres(f"{name}[2]", z, above),
    )


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "radius": functools.partial(_metres, above=0.0),
    "length": functools.partial(_metres, above=0.0),
    "size": functools.partial(_three, above=0.0),
    "offset": _three,
    "vertices": _corners,
}


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
