# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""rfly_suite/PlacedObjectArray -> the convex parts of the objects in the scene."""

from __future__ import annotations

from typing import Any

import numpy as np

from rfly_common.arrays import Floats, Ints
from rfly_common.errors import PlacementError
from rfly_common.frames import rotation_matrix
from rfly_common.transform_buffer import FrameToWorld
from rfly_terrain.world.models import MAX_CORNERS
from rfly_terrain.world.moving import MovingPath, MovingSolids
from rfly_terrain.world.solids import ObjectBoxes, Solids, joined

MAX_DISTANCE = 1e7
"""Largest coordinate, m; a corner beyond it is a mistake."""


def parts_of_solids(message: Any) -> tuple[list[list[Floats]], Ints]:
    """Return the corners of each part of each solid, and the number of each object's solid.

    Corners are (v, 3), numbers (n,), -1 for objects without a solid. Raises PlacementError for
    arrays that contradict each other, and for impossible solids.
    """
    n = len(message.id)
    solid = np.asarray(message.solid, np.int64)
    counts = np.asarray(message.solid_parts, np.int64)
    sizes = np.asarray(message.part_vertices, np.int64)
    vertices = np.asarray(message.vertices, float)
    if not len(solid):  # a publisher that knows boxes only
        solid = np.full(n, -1, np.int64)

    # sizes and indices
    if len(solid) != n:
        raise PlacementError(
            f"placed_objects: solid: {len(solid)} numbers for {n} objects, expected {n} or none"
        )
    if ((solid < -1) | (solid >= len(counts))).any():
        raise PlacementError(
            f"placed_objects: solid: expected -1 … {len(counts) - 1}: "
            f"there are {len(counts)} solids"
        )
    if (counts < 1).any() or counts.sum() != len(sizes):
        raise PlacementError(
            f"placed_objects: solid_parts: expected 1 and more, together {len(sizes)} parts"
        )
    if ((sizes < 4) | (sizes > MAX_CORNERS)).any():
        raise PlacementError(f"placed_objects: part_vertices: expected 4 … {MAX_CORNERS}")

    # corners
    if 3 * sizes.sum() != len(vertices):
        raise PlacementError(
            f"placed_objects: vertices: {len(vertices)} numbers, expected {3 * sizes.sum()}"
        )
    if not (np.abs(vertices) <= MAX_DISTANCE).all():  # false for NaN too
        raise PlacementError(f"placed_objects: vertices: expected metres within {MAX_DISTANCE:.0f}")

    # solids by their parts
    parts = np.split(vertices.reshape(-1, 3), np.cumsum(sizes)[:-1]) if len(sizes) else []
    part = iter(parts)
    return [[next(part) for _ in range(count)] for count in counts.tolist()], solid


def surfaces_of_solids(message: Any) -> list[Floats | None]:
    """Return the triangles (t, 3, 3) of each solid that rays meet; None: its parts' faces.

    Raises PlacementError like `parts_of_solids`.
    """
    counts = np.asarray(message.solid_triangles, np.int64)
    corners = np.asarray(message.triangles, float)
    if not len(counts):
        counts = np.zeros(len(message.solid_parts), np.int64)
    if len(counts) != len(message.solid_parts) or (counts < 0).any():
        raise PlacementError(
            f"placed_objects: solid_triangles: expected {len(message.solid_parts)} counts or none"
        )
    if 9 * counts.sum() != len(corners) or not (np.abs(corners) <= MAX_DISTANCE).all():
        expected = f"expected {9 * counts.sum()} numbers within {MAX_DISTANCE:.0f} m"
        raise PlacementError(f"placed_objects: triangles: {len(corners)} numbers, {expected}")

    surfaces = np.split(corners.reshape(-1, 3, 3), np.cumsum(counts)[:-1])
    return [surface if count else None for surface, count in zip(surfaces, counts, strict=False)]


def paths_of_objects(message: Any, frame: FrameToWorld) -> tuple[MovingPath | None, ...]:
    """Return the path of each object, ENU; None for one that does not move; () if none does.

    Raises PlacementError like `parts_of_solids`.
    """
    counts = np.asarray(message.path_corners, np.int64)
    if not counts.any():
        return ()
    columns = [
        np.asarray(getattr(message, f"path_{name}"), float) for name in ("speed", "start", "loops")
    ]

    corners = np.asarray(message.path, float)
    if (counts < 0).any() or 3 * counts.sum() != len(corners):
        raise PlacementError(
            f"placed_objects: path: {len(corners)} numbers, expected {3 * counts.sum()}"
        )
    if any(len(column) != len(message.id) for column in (counts, *columns)):
        raise PlacementError(
            f"placed_objects: path_…: expected {len(message.id)} numbers each, or none"
        )
    solid = np.asarray(message.solid, np.int64)
    if len(solid) != len(counts) or (solid[counts > 0] < 0).any():
        raise PlacementError(
            "placed_objects: path_corners: a moving object must be one of the solids, not a box"
        )

    points = np.asarray(frame.points_to_enu(corners.reshape(-1, 3)))
    lines = np.split(points, np.cumsum(counts)[:-1])
    rows = zip(lines, *(column.tolist() for column in columns), strict=True)
    try:
        return tuple(
            MovingPath(line, speed, bool(loops), start) if len(line) else None
            for line, speed, start, loops in rows
        )
    except ValueError as error:
        raise PlacementError(f"placed_objects: {error}") from None


def placed_objects_to_moving(message: Any, frame: FrameToWorld) -> MovingSolids | None:
    """Return the moving objects; None without any. Raises PlacementError like `parts_of_solids`."""
    parts, solid = parts_of_solids(message)
    paths = paths_of_objects(message, frame)
    moving = [
        (path, tuple(parts[solid[row]])) for row, path in enumerate(paths) if path is not None
    ]
    if not moving:
        return None
    return MovingSolids(tuple(path for path, _ in moving), tuple(own for _, own in moving))


def placed_objects_to_solids(message: Any, frame: FrameToWorld) -> Solids:
    """Return all objects of the scene that do not move, ENU.

    `frame` is that of the message. Raises PlacementError like `parts_of_solids`.
    """
    parts, solid = parts_of_solids(message)
    position = frame.points_to_enu(np.reshape(message.position, (-1, 3)))
    box = frame.points_to_enu(np.reshape(message.box_origin, (-1, 3)))
    orientation = frame.quats_to_enu(np.reshape(message.orientation, (-1, 4)))
    boxed = solid < 0
    sizes_agree = len(orientation) == len(box) == len(boxed)
    if not sizes_agree or (len(position) != len(boxed) and not boxed.all()):
        raise PlacementError(
            f"placed_objects: position, orientation or boxes are not those of {len(boxed)} objects"
        )
    half = np.reshape(message.box_half_extent, (-1, 3))
    if len(half) != len(boxed):
        raise PlacementError(
            f"placed_objects: box_half_extent: {len(half)} boxes for {len(boxed)} objects"
        )

    # boxes, and the parts of solids
    is_still = [path is None for path in paths_of_objects(message, frame)]
    still = np.array(is_still or [True] * len(boxed), np.bool_)
    parted = ~boxed & still
    boxed &= still
    boxes = ObjectBoxes(box[boxed], half[boxed], orientation[boxed])
    rotation = rotation_matrix(orientation.reshape(-1, 4))
    placed = [
        part @ rotation[row].T + position[row]
        for row in np.flatnonzero(parted).tolist()
        for part in parts[solid[row]]
    ]
    first = np.concatenate([[0], np.cumsum([len(part) for part in placed])]).astype(np.int64)
    return joined([boxes, Solids(np.concatenate([np.empty((0, 3)), *placed]), first)])
