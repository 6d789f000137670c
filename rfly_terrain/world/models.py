# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Models of objects: convex parts with a colour and a class.

They come from .glb and .obj meshes too, which needs trimesh.
"""

from __future__ import annotations

import dataclasses
import functools
import io
import json
import math
import os
import struct
from collections import Counter
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError, ShapeError
from rfly_common.files import read_regular
from rfly_common.imports import require
from rfly_common.untrusted_files.allowed_folders import is_below
from rfly_common.untrusted_files.reader_errors import reader_errors
from rfly_terrain.world.solids import checked_rows

CLASSES = (
    "unknown",
    "building",
    "vegetation",
    "rock",
    "wall",
    "pole",
    "vehicle",
    "person",
    "barrier",
    "bridge",
)
"""Classes of objects; the class id is the place in this list."""
Color = tuple[int, int, int]
"""Red, green, blue, 0 … 255."""
GREY: Color = (150, 150, 150)
SIDES = 16
"""Sides of the prism that stands for a cylinder. The cylinder lies within it; its radius is up to 2
% smaller.
"""
MAX_CORNERS = 256
"""Corners of a convex part, at most, as of a hull that collides."""
FLAT = 1e-6
"""Thickness over the largest extent, up to which a part has no volume."""

MAX_FILE_BYTES = 20_000_000
MAX_TRIANGLES = 200_000
MAX_PIECES = 200
MAX_NODES = 1_000
"""Nodes of a .glb, at most."""
_VECTORS = {"translation": 3, "rotation": 4, "scale": 3, "matrix": 16}
"""Numbers of the vectors of a node: glTF 2.0, section 5.25."""
MAX_NUMBER = 1e12
"""Largest number in a node's transform."""
_FORWARD_LEFT_UP = {".glb": (2, 0, 1), ".obj": (0, 1, 2)}
"""Axes of a file that point forward, left, up: glTF 2.0, section 3.4: z forward, x left, y up."""


@dataclass(frozen=True, eq=False)
class Model:
    """Shape of an object: x forward, y left, z up from the ground below it, m."""

    name: str
    """Name."""
    parts: tuple[Floats, ...]
    """Corners of each convex part, (v, 3) each."""
    class_id: int = 0
    """Class, a place in CLASSES."""
    color: Color = GREY
    """Colour: red, green, blue, 0 … 255."""
    vehicle_type: int = 0
    """Vehicle type, RflySim3D's ClassID; 0: none of its models, a box of that size in `rfly view`.
    """
    surface: Floats | None = None
    """Corners of the triangles that rays meet, (t, 3, 3); None: the faces of the parts."""
    part_colors: tuple[Color, ...] = ()
    """Colours of the parts; empty: all have `color`."""

    def __post_init__(self) -> None:
        """Raise ValueError for colours that do not fit the parts.

        There must be as many colours as parts, and no surface.
        """
        fits = len(self.part_colors) == len(self.parts) and self.surface is None
        if self.part_colors and not fits:
            surface = "" if self.surface is None else ", and a surface"
            raise ValueError(
                f"{self.name}: {len(self.part_colors)} part_colors for {len(self.parts)} "
                f"parts{surface}"
            )

    @property
    def colors(self) -> tuple[Color, ...]:
        """Colours of the parts."""
        return self.part_colors or (self.color,) * len(self.parts)

    @property
    def seen_colors(self) -> tuple[Color, ...]:
        """Colours of `seen`."""
        return self.part_colors or (self.color,) * len(self.seen)

    @property
    def seen(self) -> tuple[Floats, ...]:
        """Surfaces that rays meet: the surface, or each part."""
        return self.parts if self.surface is None else (self.surface,)

    @functools.cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """Lowest and highest x, y and z, (3,) each."""
        corners = np.concatenate(self.parts)
        return corners.min(axis=0), corners.max(axis=0)

    @functools.cached_property
    def is_box(self) -> bool:
        """True if it is one box along its own axes."""
        low, high = self.bounds
        corners = np.unique(self.parts[0], axis=0)
        is_single = self.surface is None and len(self.parts) == 1
        return (
            is_single and len(corners) == 8 and bool(((corners == low) | (corners == high)).all())
        )


@functools.lru_cache(maxsize=4096)
def scaled(model: Model, factor: float) -> Model:
    """Return the model, larger by a factor.

    The result is the same object for the same factor, so that its shapes are made once.
    """
    if factor == 1.0:
        return model
    surface = None if model.surface is None else _frozen(model.surface * factor)
    return dataclasses.replace(
        model, parts=tuple(_frozen(part * factor) for part in model.parts), surface=surface
    )


def box_part(length: float, width: float, height: float) -> Floats:
    """Return the corners of a box that stands on z = 0, (8, 3), m."""
    half = np.array([length / 2, width / 2])
    corners = [
        (x * half[0], y * half[1], z * height) for x in (-1, 1) for y in (-1, 1) for z in (0, 1)
    ]
    return _frozen(np.array(corners, float))


def cylinder_part(radius: float, height: float, top_radius: float | None = None) -> Floats:
    """Return the corners of the prism around a cylinder that stands on z = 0, (32, 3), m.

    With another radius on top it is a prism around a cone; (17, 3) if that radius is 0.
    """
    angle = (np.arange(SIDES) + 0.5) * (2.0 * math.pi / SIDES)
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) / math.cos(math.pi / SIDES)
    top = radius if top_radius is None else top_radius
    upper = np.zeros((1, 2)) if top == 0.0 else top * ring
    lower = radius * ring
    corners = [
        np.column_stack([lower, np.full(len(lower), 0.0)]),
        np.column_stack([upper, np.full(len(upper), height)]),
    ]
    return _frozen(np.concatenate(corners))


def hull_part(points: ArrayLike) -> Floats:
    """Return the points that are corners of their convex hull, (v, 3).

    Raises ShapeError if they enclose no volume, or have too many corners.
    """
    from scipy.spatial import ConvexHull, QhullError

    try:
        array = checked_rows("points", points, 3)
    except ValueError as error:
        raise ShapeError(str(error)) from None
    if not has_volume(array):
        raise ShapeError(f"{len(array)} points that lie in one plane or line enclose no volume")
    try:
        corners = array[np.sort(ConvexHull(array).vertices)]
    except QhullError as error:
        raise ShapeError(
            f"no hull can be built around the points ({str(error).strip().splitlines()[0]})"
        ) from None
    if len(corners) > MAX_CORNERS:
        raise ShapeError(
            f"the hull has {len(corners)} corners, expected at most {MAX_CORNERS}: thin it out"
        )
    return _frozen(corners)


def has_volume(points: Floats) -> bool:
    """Return whether points (n, 3) do not lie in one plane."""
    if len(points) < 4:
        return False
    extents = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return bool(extents[2] > FLAT * extents[0])


def part_triangles(part: Floats) -> Floats:
    """Return the triangles of a convex part, (t, 3, 3), counter-clockwise from outside."""
    from scipy.spatial import ConvexHull

    hull = ConvexHull(part)
    corners: Floats = part[hull.simplices]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inwards = np.einsum("ij,ij->i", across, hull.equations[:, :3]) < 0
    corners[inwards] = corners[inwards][:, [0, 2, 1]]
    return corners


def placed_part(part: Floats, offset: ArrayLike, yaw: float) -> Floats:
    """Return the part, or a surface, turned about z and then moved.

    It turns by the yaw (rad, counter-clockwise from above) and moves by (x, y, z), m.
    """
    c = math.cos(yaw)
    s = math.sin(yaw)
    turned = part if yaw == 0.0 else part @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
    return _frozen(turned + np.asarray(offset, float))


def _frozen(array: Floats) -> Floats:
    """Return the array, read-only."""
    array.flags.writeable = False
    return array


def part_faces(part: Floats) -> Floats:
    """Return the corners of the triangles around a convex part, (t, 3, 3)."""
    from scipy.spatial import ConvexHull

    return np.asarray(part[ConvexHull(part).simplices], float)


def mesh_parts(name: str, folder: str) -> tuple[list[Floats], Floats]:
    """Return the corners of each convex part of a file, and those of all triangles.

    They are (v, 3) and (t, 3, 3), m, in the model's axes; the file is below the folder. A part is
    the hull of connected triangles: a house with wings consists of several pieces. Pieces without a
    volume are left out. An .obj is read with z up. Raises ConfigError with the file and its fault.
    """
    ending = os.path.splitext(name)[1].lower()
    if ending not in _FORWARD_LEFT_UP:
        raise ConfigError(
            f"mesh {name!r}: expected a file that ends in {' or '.join(_FORWARD_LEFT_UP)}"
        )
    path = os.path.realpath(os.path.join(folder, name))
    if not folder or not is_below(path, folder):
        raise ConfigError(
            f"mesh {name!r}: expected a file in the folder of the world's file, or below it"
        )

    try:
        data = read_regular(path, MAX_FILE_BYTES)
    except OSError as error:
        raise ConfigError(f"mesh {name!r}: {error.strerror}") from None
    vertices, triangles = _read(name, data, ending)

    pieces = [piece for piece in _pieces(vertices, triangles) if has_volume(piece)]
    if not 1 <= len(pieces) <= MAX_PIECES:
        raise ConfigError(
            f"mesh {name!r}: {len(pieces)} pieces with a volume, expected 1 … {MAX_PIECES}"
        )

    try:
        return [hull_part(piece) for piece in pieces], vertices[triangles]
    except ShapeError as error:
        raise ConfigError(f"mesh {name!r}: {error}") from None


def _read(name: str, data: bytes, ending: str) -> tuple[Floats, Any]:
    """Return vertices in the model's axes, (v, 3), and triangles, (t, 3)."""
    trimesh = require("trimesh", "a mesh in a world")
    with reader_errors(
        lambda text: ConfigError(f"mesh {name!r}: cannot be read as {ending}: {text}")
    ):
        if ending == ".glb":
            _check_sizes(data)
        # a stream and no resolver: files that this one refers to are not read
        mesh = trimesh.load(
            io.BytesIO(data), file_type=ending[1:], force="mesh", process=False, skip_materials=True
        )
        vertices = np.array(mesh.vertices, float)
        triangles = np.array(mesh.faces, np.int64).reshape(-1, 3)

    if vertices.ndim != 2 or vertices.shape[1] != 3 or not len(triangles):
        raise ConfigError(f"mesh {name!r}: has no triangles")
    if not (triangles < len(vertices)).all() or triangles.min() < 0:
        raise ConfigError(f"mesh {name!r}: a triangle has a vertex that does not exist")
    if len(triangles) > MAX_TRIANGLES:
        raise ConfigError(
            f"mesh {name!r}: {len(triangles):,} triangles, expected at most {MAX_TRIANGLES:,}"
        )
    if not np.isfinite(vertices).all() or np.abs(vertices).max() > 1e6:
        raise ConfigError(f"mesh {name!r}: expected vertices within 1,000 km of its origin")
    return vertices[:, _FORWARD_LEFT_UP[ending]], triangles


def _check_sizes(data: bytes) -> None:
    """Raise ValueError for a .glb that would grow far beyond its size.

    Such files have numbers without data (zeros), thousands of nodes, meshes that many nodes or
    primitives share, or vectors of thousands of numbers, which trimesh turns into matrices.
    """
    # the first chunk, JSON: glTF 2.0, section 4.4.3
    (length,) = struct.unpack_from("<I", data, 12)
    tree = json.loads(data[20 : 20 + length])

    counts = [max(0, accessor["count"]) for accessor in tree.get("accessors", [])]
    nodes = tree.get("nodes", [])
    children = sum(len(node.get("children", [])) for node in nodes)
    for node, (key, size) in product(nodes, _VECTORS.items()):
        if len(node.get(key, ())) not in (0, size):
            raise ValueError(f"a node's {key} of {len(node[key])} numbers, expected {size}")
        # JSON of other programs may hold NaN, which Python reads
        if not all(abs(number) <= MAX_NUMBER for number in node.get(key, ())):
            raise ValueError(f"a node's {key} {node[key]}: expected numbers up to {MAX_NUMBER:g}")
    for buffer in (*tree.get("buffers", []), *tree.get("images", [])):
        if not str(buffer.get("uri", "data:")).startswith("data:"):
            raise ValueError(
                f"it needs another file, {buffer['uri']!r:.100}; pack it into one .glb"
            )

    # numbers of shared meshes, once for each use
    uses = Counter(node.get("mesh") for node in nodes)
    numbers = sum(counts)
    shared = sum(
        max(1, uses[index]) * counts[each]
        for index, mesh in enumerate(tree.get("meshes", []))
        for part in mesh["primitives"]
        for each in (part.get("indices"), part.get("attributes", {}).get("POSITION"))
        if each is not None
    )
    too_many_nodes = len(nodes) > MAX_NODES or children > MAX_NODES
    if max(numbers, shared / 2) > 3 * MAX_TRIANGLES or too_many_nodes:
        raise ValueError(f"more than {3 * MAX_TRIANGLES:,} numbers or {MAX_NODES:,} nodes")


def _pieces(vertices: Floats, triangles: Any) -> list[Floats]:
    """Return the places of connected triangles, (v, 3) each.

    Triangles connect at the place of a corner.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    places, which = np.unique(vertices, axis=0, return_inverse=True)

    corner = which.reshape(-1)[triangles]
    ends = np.concatenate([corner[:, :2], corner[:, 1:]])
    graph = coo_array(
        (np.ones(len(ends), np.int8), (ends[:, 0], ends[:, 1])), shape=(len(places),) * 2
    )
    _, label = connected_components(graph, directed=False)

    used = np.unique(corner)
    order = used[np.argsort(label[used], kind="stable")]
    return np.split(places[order], np.flatnonzero(np.diff(label[order])) + 1)
