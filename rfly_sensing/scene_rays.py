# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Ray casting in a scene: ground, other vehicles, placed objects."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rfly_collision.shapes.shape import Shape, ShapeTable, TriangleMesh, table_of
from rfly_common.arrays import Floats, Ints
from rfly_common.frames import rotation_matrix
from rfly_common.kernels.parallel import in_chunks
from rfly_sensing import scene_ray_kernels as kernels
from rfly_sensing.box_tree import BoxTree, box_tree
from rfly_sensing.scene_ray_kernels import Hits, MeshArrays, PlacedMeshes, RayBatch

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.imagery.imagery import Imagery

CHUNK = 2_048
"""Rays that a thread takes at once, about a millisecond of work."""
TRIANGLES = 4
"""Triangles in a leaf of a mesh's tree."""
PIECES = 2
"""Pieces in a leaf of a scene's tree."""
PIECE = 256
"""Most triangles of a piece. A mesh is cut into pieces, so that rays look only at some of them."""

GROUND = -1
"""The ground in `Hits.body`."""
NOTHING = -2
"""No hit in `Hits.body`."""


@dataclass(frozen=True, eq=False)
class SceneBodies:
    """b bodies, each with one shape and in even motion. ENU, SI."""

    shapes: tuple[Shape | TriangleMesh, ...]
    shape_index: Ints
    """Index of each body's shape, (b,)."""
    position: Floats
    """Positions of the origins, m, (b, 3)."""
    orientation: Floats
    """Quaternions x y z w, body (FLU) -> ENU, (b, 4)."""
    velocity: Floats
    """Velocities, m/s, (b, 3)."""
    time: Floats
    """Times at which the bodies are at these positions, s, (b,)."""
    id: Ints
    """Ids of vehicles and objects, as the caller likes, (b,)."""
    color: Floats | None = None
    """Red, green, blue, 0 … 1, (b, 3). NaN, or None for all: a colour of the id."""
    class_id: Ints | None = None
    """Places in `rfly_terrain.world.models.CLASSES`, (b,); None: unknown."""
    parts: tuple[SceneBodies, ...] = ()
    """Scenes that were joined to this one. The tree of one that stands still is built once."""

    def __len__(self) -> int:
        return len(self.position)

    @functools.cached_property
    def is_still(self) -> bool:
        """True if no body moves."""
        return not self.velocity.any()

    @functools.cached_property
    def pieces(self) -> _Pieces:
        """Pieces of bodies that stand still, at all times."""
        return _pieces(self, 0.0, 0.0)


def joined(parts: Sequence[SceneBodies]) -> SceneBodies:
    """Return the scene of all bodies of several scenes."""
    shapes = tuple(shape for part in parts for shape in part.shapes)
    starts = np.cumsum([0, *(len(part.shapes) for part in parts)])
    index = [part.shape_index + start for part, start in zip(parts, starts, strict=False)]
    position, orientation, velocity, time, number = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("position", "orientation", "velocity", "time", "id")
    )

    # colours and classes that some scenes leave out
    color = None
    if any(part.color is not None for part in parts):
        color = np.concatenate(
            [np.full((len(p), 3), np.nan) if p.color is None else p.color for p in parts]
        )
    class_id = np.concatenate(
        [np.zeros(len(p), np.int64) if p.class_id is None else p.class_id for p in parts]
    )
    flat = tuple(one for part in parts for one in part.parts or (part,))
    return SceneBodies(
        shapes,
        np.concatenate(index),
        position,
        orientation,
        velocity,
        time,
        number,
        color,
        class_id,
        flat,
    )


@dataclass(frozen=True, eq=False)
class SceneRays:
    """The ground (None: level at z = 0) and the bodies at one time."""

    terrain: HeightMap | None = None
    bodies: SceneBodies | None = None
    imagery: Imagery | None = None
    """Picture of the ground, for colour cameras."""

    def cast(
        self,
        origins: Floats,
        directions: Floats,
        max_range: float,
        times: Floats | float = 0.0,
        *,
        ground: bool = True,
    ) -> Hits:
        """Return the nearest hit of each ray within `max_range`, m.

        `origins` (n, 3) m and unit `directions` (n, 3), ENU; `times` (n,) s or one for all: when
        each ray is sent, for bodies that move. A ray that begins in something meets it at 0.
        Without `ground` it meets bodies alone.
        """
        if not ground:
            ranges = np.full(len(origins), np.inf)
            normals = np.full((len(origins), 3), np.nan)
        elif self.terrain is not None:
            ranges, normals = self.terrain.cast(origins, directions, max_range, normals=True)
        else:
            ranges, normals = _level_ground(origins, directions, max_range)
        body = np.where(np.isfinite(ranges), GROUND, NOTHING)

        if self.bodies is not None and len(self.bodies):
            when = np.empty(len(origins))
            when[:] = times
            rays = RayBatch(
                np.ascontiguousarray(origins),
                np.ascontiguousarray(directions),
                when,
                float(max_range),
            )
            first = 0
            for part in self.bodies.parts or (self.bodies,):
                if len(part):
                    _cast_at_bodies(part, first, rays, Hits(ranges, normals, body))
                first += len(part)
        return Hits(ranges, normals, body)


def _level_ground(origins: Floats, directions: Floats, max_range: float) -> tuple[Floats, Floats]:
    height = origins[:, 2]
    down = -directions[:, 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        ranges = np.where(down > 0.0, height / down, np.inf)
    ranges[height <= 0.0] = 0.0
    ranges[ranges > max_range] = np.inf
    normals = np.zeros((len(ranges), 3))
    normals[:, 2] = 1.0
    normals[np.isinf(ranges)] = np.nan
    return ranges, normals


class _RayShapes(NamedTuple):
    """The q pieces of shapes that rays can meet, shape after shape."""

    table: ShapeTable
    """Table of the convex shapes."""
    meshes: MeshArrays
    first: Ints
    """First piece of each shape, (k + 1,)."""
    row: Ints
    """Row of each piece, as in `PlacedMeshes.shape`, (q,)."""
    low: Floats
    """Lowest corners of boxes around the pieces, body axes, (q, 3)."""
    high: Floats


@functools.lru_cache(maxsize=8)
def _ray_shapes(shapes: tuple[Shape | TriangleMesh, ...]) -> _RayShapes:
    convex = [shape for shape in shapes if not isinstance(shape, TriangleMesh)]
    cut = [_cut(shape.triangles) if isinstance(shape, TriangleMesh) else [] for shape in shapes]
    cut_up = [piece for pieces in cut for piece in pieces]
    is_mesh = np.array([isinstance(shape, TriangleMesh) for shape in shapes])
    counts = np.where(is_mesh, [len(pieces) for pieces in cut], 1)
    of_mesh = np.repeat(is_mesh, counts)

    # boxes of the pieces
    table = table_of(convex)
    low = np.empty((len(of_mesh), 3))
    high = np.empty((len(of_mesh), 3))
    if convex:
        starts = table.first[:-1, 0]
        low[~of_mesh] = np.minimum.reduceat(table.vertices, starts) - table.radius[:, None]
        high[~of_mesh] = np.maximum.reduceat(table.vertices, starts) + table.radius[:, None]
    low[of_mesh] = np.array([each.min(axis=(0, 1)) for each in cut_up]).reshape(-1, 3)
    high[of_mesh] = np.array([each.max(axis=(0, 1)) for each in cut_up]).reshape(-1, 3)

    row = np.where(of_mesh, -np.cumsum(of_mesh), np.cumsum(~of_mesh) - 1)
    first = np.concatenate([[0], np.cumsum(counts)])
    return _RayShapes(table, _meshes(cut_up), first, row, low, high)


def _cut(triangles: Floats) -> list[Floats]:
    """Cut a mesh (n, 3, 3) into pieces (t, 3, 3) of triangles that lie together."""
    tree = box_tree(triangles.min(axis=1), triangles.max(axis=1), PIECE)
    leaves = np.flatnonzero(tree.held)
    ends = tree.link[leaves] + tree.held[leaves]
    return [
        triangles[tree.items[begin:end]] for begin, end in zip(tree.link[leaves], ends, strict=True)
    ]


def _meshes(pieces: Sequence[Floats]) -> MeshArrays:
    """Return the arrays of pieces with triangles (t, 3, 3)."""
    trees = [box_tree(each.min(axis=1), each.max(axis=1), TRIANGLES) for each in pieces]
    nodes = np.cumsum([0, *(len(tree.link) for tree in trees)])
    items = np.cumsum([0, *map(len, pieces)])
    triangles = [
        np.empty((0, 3, 3)),
        *(each[tree.items] for each, tree in zip(pieces, trees, strict=True)),
    ]

    # edges from the first corners
    corners = np.concatenate(triangles)
    corners[:, 1:] -= corners[:, :1]

    # links within all trees
    links = [
        np.where(t.held > 0, t.link + i, t.link + n)
        for t, n, i in zip(trees, nodes, items, strict=False)
    ]
    none = np.empty(0, np.int64)
    return MeshArrays(
        nodes[:-1].astype(np.int64),
        np.concatenate([np.empty((0, 6)), *(tree.boxes for tree in trees)]),
        np.concatenate([none, *links]),
        np.concatenate([none, *(tree.held for tree in trees)]),
        corners.reshape(-1, 9),
    )


@dataclass(frozen=True, eq=False)
class _Pieces:
    """The p pieces of bodies in a span of time."""

    placed: PlacedMeshes
    low: Floats
    """Lowest corners of boxes around the pieces' paths, (p, 3)."""
    high: Floats

    @functools.cached_property
    def tree(self) -> BoxTree:
        """Tree over all pieces."""
        return box_tree(self.low, self.high, PIECES)

    def near(self, rays: RayBatch, ranges: Floats) -> BoxTree | None:
        """Return a tree over the pieces that rays up to `ranges` (m) may meet, or None."""
        chosen = np.empty(len(self.low), np.int64)
        chosen = chosen[: kernels.reached(rays, ranges, self.low, self.high, chosen)]
        if 2 * len(chosen) > len(self.low):
            return self.tree
        if not len(chosen):
            return None
        tree = box_tree(self.low[chosen], self.high[chosen], PIECES)
        return tree._replace(items=chosen[tree.items])


def _pieces(bodies: SceneBodies, begin: float, end: float) -> _Pieces:
    """Return the pieces of bodies from begin to end, s."""
    shapes = _ray_shapes(bodies.shapes)
    middle = 0.5 * (begin + end)
    span = 0.5 * (end - begin)
    counts = np.diff(shapes.first)[bodies.shape_index]
    body = np.repeat(np.arange(len(bodies)), counts)
    piece = np.arange(len(body)) + np.repeat(
        shapes.first[bodies.shape_index] - np.cumsum(counts) + counts, counts
    )

    # poses, and boxes around the paths
    position = (bodies.position + bodies.velocity * (middle - bodies.time)[:, None])[body]
    rotation = np.ascontiguousarray(rotation_matrix(bodies.orientation))[body]
    velocity = np.asarray(bodies.velocity, np.float64)[body]
    low = shapes.low[piece]
    high = shapes.high[piece]
    centre = position + np.einsum("nij,nj->ni", rotation, 0.5 * (low + high))
    half = np.einsum("nij,nj->ni", np.abs(rotation), 0.5 * (high - low)) + span * np.abs(velocity)
    placed = PlacedMeshes(middle, body, shapes.row[piece], position, rotation, velocity)
    return _Pieces(placed, centre - half, centre + half)


def _cast_at_bodies(bodies: SceneBodies, first: int, rays: RayBatch, hits: Hits) -> None:
    """Put the nearer hits of bodies into `hits`, in which the first of them has number `first`."""
    shapes = _ray_shapes(bodies.shapes)
    times = rays.times
    if bodies.is_still:
        pieces = bodies.pieces
    else:
        pieces = _pieces(bodies, float(times.min()), float(times.max()))
    placed = pieces.placed._replace(body=pieces.placed.body + first)

    def work(start: int, stop: int) -> None:
        rows = slice(start, stop)
        chunk = RayBatch(rays.origins[rows], rays.directions[rows], times[rows], rays.max_range)
        chunk_hits = Hits(hits.ranges[rows], hits.normals[rows], hits.body[rows])
        tree = pieces.near(chunk, chunk_hits.ranges)
        if tree is not None:
            kernels.nearest_bodies(chunk, placed, tree, shapes.table, shapes.meshes, chunk_hits)

    in_chunks(work, len(times), CHUNK)
