"""rfly_suite/PlacedObjectArray -> the convex parts of what stands in the scene."""

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
"""m; beyond this a corner is a mistake"""


def parts_of_solids(message: Any) -> tuple[list[list[Floats]], Ints]:
    """(corners (v, 3) of each part of each solid, (n,) which solid each object is, or -1).

    Raises PlacementError for arrays that contradict each other and for what no solid can be.
    """
    n = len(message.id)
    solid = np.asarray(message.solid, np.int64)
    counts = np.asarray(message.solid_parts, np.int64)
    sizes = np.asarray(message.part_vertices, np.int64)
    vertices = np.asarray(message.vertices, float)
    if not len(solid):  # from who knows boxes only
        solid = np.full(n, -1, np.int64)
    if len(solid) != n:
        raise PlacementError(
            f"placed_objects: solid: {len(solid)} numbers for {n} objects, expected {n} or none"
        )
    if ((solid < -1) | (solid >= len(counts))).any():
        raise PlacementError(
            f"placed_objects: solid: expected -1 … {len(counts) - 1}: there are {len(counts)} solids"
        )
    if (counts < 1).any() or counts.sum() != len(sizes):
        raise PlacementError(
            f"placed_objects: solid_parts: expected 1 and more, together {len(sizes)} parts"
        )
    if ((sizes < 4) | (sizes > MAX_CORNERS)).any():
        raise PlacementError(f"placed_objects: part_vertices: expected 4 … {MAX_CORNERS}")
    if 3 * sizes.sum() != len(vertices):
        raise PlacementError(
            f"placed_objects: vertices: {len(vertices)} numbers, expected {3 * sizes.sum()}"
        )
    if not (np.abs(vertices) <= MAX_DISTANCE).all():  # false for NaN too
        raise PlacementError(f"placed_objects: vertices: expected metres within {MAX_DISTANCE:.0f}")
    parts = (
        iter(np.split(vertices.reshape(-1, 3), np.cumsum(sizes)[:-1])) if len(sizes) else iter(())
    )
    return [[next(parts) for _ in range(count)] for count in counts.tolist()], solid


def surfaces_of_solids(message: Any) -> list[Floats | None]:
    """(t, 3, 3) triangles that rays meet of each solid; None: its parts' faces. Raises
    PlacementError as above.
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
        wanted = f"expected {9 * counts.sum()} numbers within {MAX_DISTANCE:.0f} m"
        raise PlacementError(f"placed_objects: triangles: {len(corners)} numbers, {wanted}")
    surfaces = np.split(corners.reshape(-1, 3, 3), np.cumsum(counts)[:-1])
    return [surface if count else None for surface, count in zip(surfaces, counts, strict=False)]


def paths_of_objects(message: Any, frame: FrameToWorld) -> tuple[MovingPath | None, ...]:
    """Along which each object moves, in ENU, None for one that stands still; () where all do.
    Raises as above.
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
            "placed_objects: path_corners: what moves is one of the solids, not a box"
        )
    lines = np.split(
        np.asarray(frame.points_to_enu(corners.reshape(-1, 3))), np.cumsum(counts)[:-1]
    )
    try:
        return tuple(
            MovingPath(line, speed, bool(loops), start) if len(line) else None
            for line, speed, start, loops in zip(
                lines, *(column.tolist() for column in columns), strict=True
            )
        )
    except ValueError as error:
        raise PlacementError(f"placed_objects: {error}") from None


def placed_objects_to_moving(message: Any, frame: FrameToWorld) -> MovingSolids | None:
    """What moves; None: nothing does. Raises PlacementError as above."""
    parts, solid = parts_of_solids(message)
    paths = paths_of_objects(message, frame)
    there = [(path, tuple(parts[solid[row]])) for row, path in enumerate(paths) if path is not None]
    return (
        MovingSolids(tuple(path for path, _ in there), tuple(each for _, each in there))
        if there
        else None
    )


def placed_objects_to_solids(message: Any, frame: FrameToWorld) -> Solids:
    """All that stands still in the scene, in ENU; `frame` is that of the message. Raises ValueError
    as above.
    """
    parts, solid = parts_of_solids(message)
    position, box = (
        np.reshape(values, (-1, 3)) for values in (message.position, message.box_origin)
    )
    turned = np.reshape(message.orientation, (-1, 4))
    position = frame.points_to_enu(position)
    box = frame.points_to_enu(box)
    turned = frame.quats_to_enu(turned)
    boxed = solid < 0
    if (
        len(turned) != len(boxed)
        or len(box) != len(boxed)
        or (len(position) != len(boxed) and not boxed.all())
    ):
        raise PlacementError(
            f"placed_objects: position, orientation or boxes are not those of {len(boxed)} objects"
        )
    half = np.reshape(message.box_half_extent, (-1, 3))
    if len(half) != len(boxed):
        raise PlacementError(
            f"placed_objects: box_half_extent: {len(half)} boxes for {len(boxed)} objects"
        )
    still = np.array(
        [path is None for path in paths_of_objects(message, frame)] or [True] * len(boxed), np.bool_
    )
    boxed, parted = boxed & still, ~boxed & still
    boxes = ObjectBoxes(box[boxed], half[boxed], turned[boxed])
    rotation = rotation_matrix(turned.reshape(-1, 4))
    placed = [
        part @ rotation[row].T + position[row]
        for row in np.flatnonzero(parted).tolist()
        for part in parts[solid[row]]
    ]
    first = np.concatenate([[0], np.cumsum([len(part) for part in placed])]).astype(np.int64)
    return joined([boxes, Solids(np.concatenate([np.empty((0, 3)), *placed]), first)])
