"""Meshes from .glb and .obj files: the convex hulls of their connected pieces. Needs trimesh."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError, ShapeError
from rfly_common.files import read_regular
from rfly_common.imports import require
from rfly_common.readers.asked_files import is_below
from rfly_terrain.world.models import has_volume, hull_part

MAX_FILE_BYTES = 20_000_000
MAX_TRIANGLES = 200_000
MAX_PIECES = 200
_FORWARD_LEFT_UP = {".glb": (2, 0, 1), ".obj": (0, 1, 2)}
"""which of a file's axes point forward, left and up: glTF 2.0, section 3.4, has z forward, x left and y up"""


def mesh_parts(name: str, folder: str) -> list[Floats]:
    """(v, 3) corners of each convex part, m, in the model's axes; of a file below the folder.

    A part is the hull of what hangs together: a house with wings is made of several pieces. Pieces without a volume are
    left out. An .obj is taken as it is, with z up. Raises ConfigError that names the file and what is wrong.
    """
    ending = os.path.splitext(name)[1].lower()
    if ending not in _FORWARD_LEFT_UP:
        raise ConfigError(f"mesh {name!r}: expected a file that ends in {' or '.join(_FORWARD_LEFT_UP)}")
    path = os.path.realpath(os.path.join(folder, name))
    if not folder or not is_below(path, folder):
        raise ConfigError(f"mesh {name!r}: expected a file in the folder of the world's file, or below it")
    try:
        data = read_regular(path, MAX_FILE_BYTES)
    except OSError as error:
        raise ConfigError(f"mesh {name!r}: {error.strerror}") from None
    vertices, triangles = _read(name, data, ending)
    pieces = [piece for piece in _pieces(vertices, triangles) if has_volume(piece)]
    if not 1 <= len(pieces) <= MAX_PIECES:
        raise ConfigError(f"mesh {name!r}: {len(pieces)} pieces with a volume, expected 1 … {MAX_PIECES}")
    try:
        return [hull_part(piece) for piece in pieces]
    except ShapeError as error:
        raise ConfigError(f"mesh {name!r}: {error}") from None


def _read(name: str, data: bytes, ending: str) -> tuple[Floats, Any]:
    """(v, 3) vertices in the model's axes, and (t, 3) triangles."""
    trimesh = require("trimesh", "a mesh in a world")
    try:
        # a stream and no resolver: what the file refers to elsewhere is not read
        mesh = trimesh.load(io.BytesIO(data), file_type=ending[1:], force="mesh", process=False, skip_materials=True)
        vertices, triangles = np.array(mesh.vertices, float), np.array(mesh.faces, np.int64)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, NotImplementedError, OSError) as error:
        raise ConfigError(f"mesh {name!r}: cannot be read as {ending}: {' '.join(str(error).split())[:200]}") from None
    if vertices.ndim != 2 or triangles.ndim != 2 or not len(triangles):
        raise ConfigError(f"mesh {name!r}: has no triangles")
    if len(triangles) > MAX_TRIANGLES:
        raise ConfigError(f"mesh {name!r}: {len(triangles):,} triangles, expected at most {MAX_TRIANGLES:,}")
    if not np.isfinite(vertices).all() or np.abs(vertices).max() > 1e6:
        raise ConfigError(f"mesh {name!r}: expected vertices within 1,000 km of its origin")
    return vertices[:, _FORWARD_LEFT_UP[ending]], triangles


def _pieces(vertices: Floats, triangles: Any) -> list[Floats]:
    """(v, 3) the places of what hangs together: triangles that share a corner's place."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    places, which = np.unique(vertices, axis=0, return_inverse=True)
    corner = which.reshape(-1)[triangles]
    ends = np.concatenate([corner[:, :2], corner[:, 1:]])
    graph = coo_array((np.ones(len(ends), np.int8), (ends[:, 0], ends[:, 1])), shape=(len(places),) * 2)
    _, label = connected_components(graph, directed=False)
    used = np.unique(corner)
    order = used[np.argsort(label[used], kind="stable")]
    return np.split(places[order], np.flatnonzero(np.diff(label[order])) + 1)
