"""Ray casting in a scene: ground, other vehicles, placed objects."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rfly_amphibious.sensors import scene_ray_kernels as kernels
from rfly_amphibious.sensors.box_tree import BoxTree, box_tree
from rfly_amphibious.sensors.scene_ray_kernels import Hits, MeshArrays, PlacedMeshes, RayBatch
from rfly_collision.shapes.shape import Shape, TriangleMesh
from rfly_collision.shapes.shape_table import ShapeTable, table_of
from rfly_common.arrays import Floats, Ints
from rfly_common.frames import rotation_matrix
from rfly_common.kernels.parallel import in_chunks

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap

CHUNK = 2_048
"""rays a thread takes at once, about a millisecond of work"""
TRIANGLES = 4
PIECES = 2
"""in a leaf"""
PIECE = 256
"""triangles at most: a mesh is cut into pieces, so that rays look only at what lies on their way"""


GROUND = -1
"""in `Hits.body`"""
NOTHING = -2


@dataclass(frozen=True, eq=False)
class SceneBodies:
    """b bodies, each with one shape and in even motion. ENU, SI."""

    shapes: tuple[Shape | TriangleMesh, ...]
    shape_index: Ints
    """(b,) which of the shapes each has"""
    position: Floats
    """(b, 3) of the origins"""
    orientation: Floats
    """(b, 4) xyzw, body (FLU) -> ENU"""
    velocity: Floats
    """(b, 3) m/s"""
    time: Floats
    """(b,) s at which they are there"""
    id: Ints
    """(b,) of vehicles and objects, whatever the caller tells them apart by"""
    color: Floats | None = None
    """(b, 3) red, green, blue, 0 … 1; NaN, or None for all: one of the id"""
    class_id: Ints | None = None
    """(b,) what each is, a place in `rfly_terrain.world.models.CLASSES`; None: unknown"""
    parts: tuple[SceneBodies, ...] = ()
    """the scenes that were joined to this one: of one that stands still the tree is built once"""

    def __len__(self) -> int:
        return len(self.position)

    @functools.cached_property
    def is_still(self) -> bool:
        """Whether nothing moves."""
        return not self.velocity.any()

    @functools.cached_property
    def pieces(self) -> _Pieces:
        """Of bodies that stand still, at all times."""
        return _pieces(self, 0.0, 0.0)


def joined(parts: Sequence[SceneBodies]) -> SceneBodies:
    """All bodies of several scenes."""
    shapes = tuple(shape for part in parts for shape in part.shapes)
    starts = np.cumsum([0, *(len(part.shapes) for part in parts)])
    index = [part.shape_index + start for part, start in zip(parts, starts, strict=False)]
    position, orientation, velocity, time, number = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("position", "orientation", "velocity", "time", "id")
    )
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

    def cast(
        self,
        origins: Floats,
        directions: Floats,
        max_range: float,
        times: Floats | float = 0.0,
        *,
        ground: bool = True,
    ) -> Hits:
        """The nearest thing that each ray meets within `max_range` (m).

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
    """What rays can meet, as q pieces, shape after shape."""

    table: ShapeTable
    """of the convex shapes"""
    meshes: MeshArrays
    first: Ints
    """(k + 1,) where each shape's pieces begin"""
    row: Ints
    """(q,) as in `Placed.shape`"""
    low: Floats
    """(q, 3) of a box around each in body axes"""
    high: Floats


@functools.lru_cache(maxsize=8)
def _ray_shapes(shapes: tuple[Shape | TriangleMesh, ...]) -> _RayShapes:
    convex = [shape for shape in shapes if not isinstance(shape, TriangleMesh)]
    cut = [_cut(shape.triangles) if isinstance(shape, TriangleMesh) else [] for shape in shapes]
    cut_up = [piece for pieces in cut for piece in pieces]
    is_mesh = np.array([isinstance(shape, TriangleMesh) for shape in shapes])
    counts = np.where(is_mesh, [len(pieces) for pieces in cut], 1)
    of_mesh = np.repeat(is_mesh, counts)
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
    return _RayShapes(
        table, _meshes(cut_up), np.concatenate([[0], np.cumsum(counts)]), row, low, high
    )


def _cut(triangles: Floats) -> list[Floats]:
    """Pieces (t, 3, 3) of a mesh (n, 3, 3): what lies together."""
    tree = box_tree(triangles.min(axis=1), triangles.max(axis=1), PIECE)
    leaves = np.flatnonzero(tree.held)
    ends = tree.link[leaves] + tree.held[leaves]
    return [
        triangles[tree.items[begin:end]] for begin, end in zip(tree.link[leaves], ends, strict=True)
    ]


def _meshes(pieces: Sequence[Floats]) -> MeshArrays:
    """Of the triangles (t, 3, 3) of each."""
    trees = [box_tree(each.min(axis=1), each.max(axis=1), TRIANGLES) for each in pieces]
    nodes = np.cumsum([0, *(len(tree.link) for tree in trees)])
    items = np.cumsum([0, *map(len, pieces)])
    triangles = [
        np.empty((0, 3, 3)),
        *(each[tree.items] for each, tree in zip(pieces, trees, strict=True)),
    ]
    corners = np.concatenate(triangles)
    corners[:, 1:] -= corners[:, :1]
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
    """Where the p pieces of bodies are while rays are sent."""

    placed: PlacedMeshes
    low: Floats
    """(p, 3) of boxes around all that each passes through"""
    high: Floats

    @functools.cached_property
    def tree(self) -> BoxTree:
        """Over all of them."""
        return box_tree(self.low, self.high, PIECES)

    def near(self, rays: RayBatch, ranges: Floats) -> BoxTree | None:
        """Over those that rays up to `ranges` (m) may meet; None: none."""
        chosen = np.empty(len(self.low), np.int64)
        chosen = chosen[: kernels.reached(rays, ranges, self.low, self.high, chosen)]
        if 2 * len(chosen) > len(self.low):
            return self.tree
        if not len(chosen):
            return None
        tree = box_tree(self.low[chosen], self.high[chosen], PIECES)
        return tree._replace(items=chosen[tree.items])


def _pieces(bodies: SceneBodies, begin: float, end: float) -> _Pieces:
    """While rays are sent, from begin to end, s."""
    shapes = _ray_shapes(bodies.shapes)
    middle = 0.5 * (begin + end)
    span = 0.5 * (end - begin)
    counts = np.diff(shapes.first)[bodies.shape_index]
    body = np.repeat(np.arange(len(bodies)), counts)
    piece = np.arange(len(body)) + np.repeat(
        shapes.first[bodies.shape_index] - np.cumsum(counts) + counts, counts
    )
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
    """Puts the nearer hits of bodies into `hits`, which call the first of them `first`."""
    shapes = _ray_shapes(bodies.shapes)
    times = rays.times
    pieces = (
        bodies.pieces
        if bodies.is_still
        else _pieces(bodies, float(times.min()), float(times.max()))
    )
    placed = pieces.placed._replace(body=pieces.placed.body + first)

    def work(start: int, stop: int) -> None:
        rows = slice(start, stop)
        some = RayBatch(rays.origins[rows], rays.directions[rows], times[rows], rays.max_range)
        found = Hits(hits.ranges[rows], hits.normals[rows], hits.body[rows])
        tree = pieces.near(some, found.ranges)
        if tree is not None:
            kernels.nearest_bodies(some, placed, tree, shapes.table, shapes.meshes, found)

    in_chunks(work, len(times), CHUNK)
