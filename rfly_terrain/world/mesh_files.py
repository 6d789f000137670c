# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Meshes of .glb and .obj files as convex parts and triangles. A mesh is read in whole or refused.

.glb needs trimesh, polygons of an .obj need mapbox_earcut.
"""

from __future__ import annotations

import io
import json
import os
import struct
from collections import Counter
from itertools import product
from typing import Any, TypeVar

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError, ShapeError
from rfly_common.files import read_regular
from rfly_common.imports import require
from rfly_common.untrusted_files.allowed_folders import is_below
from rfly_common.untrusted_files.reader_errors import reader_errors
from rfly_terrain.world.models import has_volume, hull_part

_Number = TypeVar("_Number", int, float)

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
MAX_FACE_CORNERS = 3_000
_VERTEX_NUMBERS = (3, 4, 6, 7)
"""Numbers of a vertex in an .obj: its place, with a weight, a colour, or both."""
_OBJ_SURFACES = ("call", "csh", "curv", "curv2", "surf")
_JSON = 0x4E4F534A
"""Type of the chunk with the tree: glTF 2.0, section 4.4.3."""
_FAN = 6
"""Mode of triangle fans: glTF 2.0, section 5.24."""
_INSTANCES = "EXT_mesh_gpu_instancing"
_HARMLESS_EXTENSIONS = (
    "EXT_lights",
    "EXT_texture",
    "KHR_lights",
    "KHR_materials",
    "KHR_mesh_quantization",
    "KHR_texture",
    "KHR_xmp",
)
"""Begins of the names of extensions that change no shape, or that are read."""
_LARGEST = {5120: 127, 5121: 255, 5122: 32_767, 5123: 65_535}
"""Largest number of the types of normalized numbers: glTF 2.0, section 3.6.2.2."""


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
    read = _read_glb if ending == ".glb" else _read_obj
    with reader_errors(
        lambda text: ConfigError(f"mesh {name!r}: cannot be read as {ending}: {text}")
    ):
        vertices, triangles = read(data)

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


def _read_obj(data: bytes) -> tuple[Floats, Any]:
    """Return vertices and triangles of an .obj. Raise ValueError with the line of a fault.

    trimesh is not used: it counts relative indices from the last vertex of the file, and fills the
    notches of polygons.
    """
    vertices: list[list[float]] = []
    polygons: dict[int, list[list[int]]] = {}
    triangles = 0
    begin = ""
    for number, line in enumerate(data.decode("utf-8-sig", "replace").splitlines(), 1):
        text = begin + line.partition("#")[0].rstrip()
        begin = f"{text[:-1]} " if text.endswith("\\") else ""
        key, *values = (not begin and text.split()) or [""]
        if key == "v":
            if len(values) not in _VERTEX_NUMBERS:
                raise ValueError(f"line {number}: {len(values)} numbers, expected x, y and z")
            vertices.append([_number(each, float, number) for each in values[:3]])
        elif key in ("f", "fo"):
            corners = [_number(each.partition("/")[0], int, number) for each in values]
            if 0 in corners or not 3 <= len(corners) <= MAX_FACE_CORNERS:
                raise ValueError(
                    f"line {number}: expected a face of 3 … {MAX_FACE_CORNERS:,} corners from 1"
                )
            # a relative index counts back from the last vertex so far
            indices = [each - 1 if each > 0 else len(vertices) + each for each in corners]
            polygons.setdefault(len(indices), []).append(indices)
            triangles += len(indices) - 2
        elif key in _OBJ_SURFACES:
            raise ValueError(f"line {number}: {key}: only faces are read, no curved surfaces")
        if max(triangles, len(vertices) / 3) > MAX_TRIANGLES:
            raise ValueError(f"line {number}: more than {MAX_TRIANGLES:,} triangles")

    points = np.array(vertices, float).reshape(-1, 3)
    if not np.isfinite(points).all():
        raise ValueError("a vertex is not finite")
    faces = [_triangles(points, np.array(group)) for group in polygons.values()]
    return points, np.concatenate([np.empty((0, 3), np.int64), *faces])


def _number(text: str, kind: type[_Number], line: int) -> _Number:
    """Return a text as a number. Raise ValueError with the line."""
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"line {line}: {text[:40]!r}, expected a number") from None


def _triangles(points: Floats, polygons: Any) -> Any:
    """Return the triangles, (t, 3), of polygons with the same number of corners, (p, n)."""
    if not ((polygons >= 0) & (polygons < len(points))).all():
        raise ValueError("a face has a vertex that does not exist")
    corners = points[polygons]
    edges = np.roll(corners, -1, axis=1) - corners
    normals = np.cross(corners - corners[:, :1], edges).sum(axis=1)
    if polygons.shape[1] == 3:
        return polygons

    # convex quadrangles are two triangles
    is_convex = np.zeros(len(polygons), bool)
    if polygons.shape[1] == 4:
        turns = np.cross(edges, np.roll(edges, -1, axis=1)) @ normals[:, :, None]
        is_convex = (turns >= 0.0).all(axis=(1, 2))
    halves = polygons[is_convex][:, [0, 1, 2, 0, 2, 3]].reshape(-1, 3)

    # seen along the axis that is nearest to its normal, a polygon keeps its shape
    earcut = require("mapbox_earcut", "a mesh in a world")
    cut = []
    for index in np.flatnonzero(~is_convex):
        flat = np.delete(corners[index], np.abs(normals[index]).argmax(), axis=1)
        found = earcut.triangulate_float64(flat, np.array([len(flat)], np.uint32))
        cut.append(polygons[index][np.asarray(found, np.int64)].reshape(-1, 3))
    return np.concatenate([halves, *cut])


def _read_glb(data: bytes) -> tuple[Floats, Any]:
    """Return vertices and triangles of a .glb. Raise ValueError for what trimesh does not read."""
    # two chunks, the first one JSON: glTF 2.0, section 4.4.3
    if data[:4] != b"glTF" or len(data) < 20:
        raise ValueError(f"begins with {data[:4]!r}, expected a binary glTF of two chunks")
    (length,) = struct.unpack_from("<I", data, 12)
    tree = json.loads(data[20 : 20 + length])
    _check_sizes(tree)
    _check_features(tree)
    _scale_normalized(tree)
    _drop_looks(tree)

    text = json.dumps(tree).encode()
    text += b" " * (-len(text) % 4)
    rest = data[20 + length :]
    head = struct.pack("<4sIIII", b"glTF", 2, 20 + len(text) + len(rest), len(text), _JSON)
    data = head + text + rest

    # a stream and no resolver: files that this one refers to are not read
    trimesh = require("trimesh", "a mesh in a world")
    mesh = trimesh.load(
        io.BytesIO(data), file_type="glb", force="mesh", process=False, skip_materials=True
    )
    return np.array(mesh.vertices, float), np.array(mesh.faces, np.int64).reshape(-1, 3)


def _check_features(tree: Any) -> None:
    """Raise ValueError for what trimesh leaves out, or reads as something else."""
    needed = tree.get("extensionsRequired", [])
    unknown = [each for each in needed if not each.startswith(_HARMLESS_EXTENSIONS)]
    if unknown:
        raise ValueError(f"it needs the extension {unknown[0]!r:.60}, which is not read")
    version = str(tree["asset"]["version"])
    needed = tree["asset"].get("minVersion", "2.0" if version.startswith("2.") else version)
    if needed != "2.0":
        raise ValueError(f"it needs glTF {needed!r:.20}, expected 2.0")
    if not tree.get("scenes"):
        raise ValueError("it has no scene, so none of its meshes has a place")

    accessors = tree.get("accessors", [])
    meshes = tree.get("meshes", [])
    nodes = tree.get("nodes", [])
    primitives = [each for mesh in meshes for each in mesh["primitives"]]
    used = [
        accessors[index]
        for each in primitives
        for index in (each.get("indices"), each["attributes"].get("POSITION"))
        if index is not None
    ]
    left_out = {
        "sparse accessors": any("sparse" in each for each in used),
        "accessors without data": any("bufferView" not in each for each in used),
        "triangle fans": any(each.get("mode") == _FAN for each in primitives),
        "skins": any("skin" in node for node in nodes),
        "morph targets with a weight": any(any(each.get("weights", ())) for each in meshes + nodes),
        f"instances ({_INSTANCES})": any(
            _INSTANCES in node.get("extensions", {}) for node in nodes
        ),
    }
    for what, is_there in left_out.items():
        if is_there:
            raise ValueError(f"it has {what}, which are not read; export plain triangles")


def _drop_looks(tree: Any) -> None:
    """Take out pictures, which must not be decoded here, and packed copies of plain triangles."""
    for key in ("images", "materials", "textures"):
        tree.pop(key, None)
    for mesh in tree.get("meshes", []):
        for primitive in mesh["primitives"]:
            primitive.pop("material", None)
            primitive.pop("extensions", None)


def _scale_normalized(tree: Any) -> None:
    """Give meshes of normalized whole numbers a node of their own, whose scale brings them to ±1.

    The largest number of the type stands for 1 (glTF 2.0, section 3.6.2.2), which trimesh does not
    know.
    """
    accessors = tree.get("accessors", [])
    scales = {}
    for index, mesh in enumerate(tree.get("meshes", [])):
        used = [accessors[each["attributes"]["POSITION"]] for each in mesh["primitives"]]
        found = {
            1.0 / _LARGEST[each["componentType"]] if each.get("normalized") else 1.0
            for each in used
        }
        if len(found) > 1:
            raise ValueError(f"mesh {index}: positions of several types; export floats")
        scales[index] = found.pop()

    nodes = tree.get("nodes", [])
    for node in list(nodes):
        scale = scales.get(node.get("mesh"), 1.0)
        if scale != 1.0:
            node["children"] = [*node.get("children", []), len(nodes)]
            nodes.append({"mesh": node.pop("mesh"), "scale": [scale] * 3})


def _check_sizes(tree: Any) -> None:
    """Raise ValueError for a .glb that would grow far beyond its size.

    Such files have numbers without data (zeros), thousands of nodes, meshes that many nodes or
    primitives share, or vectors of thousands of numbers, which trimesh turns into matrices.
    """
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
