# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Picking: a ray from the mouse against the vehicles' boxes and the ground."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rfly_collision.shapes import vehicle_meshes as models
from rfly_common.arrays import Floats
from rfly_common.frames import enu_to_ned, flu_to_frd, quat_conjugate, quat_rotate
from rfly_terrain.height_map.height_map import HeightMap
from rfly_viewer.scene.vehicle_table import WorldPoses


@dataclass(frozen=True)
class Click:
    """Double click, NED in m, as RflySim3D shows it."""

    point: tuple[float, float, float]
    """Point where the ray hit."""
    vehicle_id: int | None = None
    object_position: tuple[float, float, float] | None = None
    """Origin of the vehicle that was hit."""


def pick(
    terrain: HeightMap, poses: WorldPoses, origin_enu: ArrayLike, direction_enu: ArrayLike
) -> Click | None:
    """Return what a ray meets first; None for the sky."""
    origin = np.asarray(origin_enu, np.float64)
    direction = np.asarray(direction_enu, np.float64)
    direction = direction / np.linalg.norm(direction)

    ground = ground_distance(terrain, origin, direction)
    distance = vehicle_distances(poses, origin, direction)
    row = int(np.argmin(distance)) if len(distance) else -1

    if row >= 0 and distance[row] < (np.inf if ground is None else ground):
        x, y, z = poses.position_ned[row].tolist()
        return Click(_ned(origin + distance[row] * direction), int(poses.id[row]), (x, y, z))
    return None if ground is None else Click(_ned(origin + ground * direction))


def _ned(point_enu: Floats) -> tuple[float, float, float]:
    x, y, z = enu_to_ned(point_enu).tolist()
    return x, y, z


def vehicle_distances(poses: WorldPoses, origin: Floats, direction: Floats) -> Floats:
    """Return the distances along the ray to the vehicles' boxes, (n,) m; inf where it misses.

    The slab method, in each vehicle's axes.
    """
    away = quat_conjugate(poses.quat_ned_frd)
    start = flu_to_frd(quat_rotate(away, enu_to_ned(origin) - poses.position_ned))
    along = flu_to_frd(quat_rotate(away, np.broadcast_to(enu_to_ned(direction), start.shape)))

    low = models.BOX_LOW[poses.kind] * poses.scale
    high = models.BOX_HIGH[poses.kind] * poses.scale
    with np.errstate(divide="ignore", invalid="ignore"):
        to_low = (low - start) / along
        to_high = (high - start) / along

    enters = np.nanmax(np.minimum(to_low, to_high), axis=1, initial=0.0)
    leaves = np.nanmin(np.maximum(to_low, to_high), axis=1, initial=np.inf)
    parallel_outside = ((along == 0) & ((start < low) | (start > high))).any(axis=1)
    return np.where((enters <= leaves) & ~parallel_outside, enters, np.inf)


def ground_distance(terrain: HeightMap, origin: Floats, direction: Floats) -> float | None:
    """Return the distance along the ray to the ground of the map, m.

    None where the ray meets no ground, begins in it, or has no direction.
    """
    if not (np.isfinite(origin).all() and np.isfinite(direction).all() and np.any(direction)):
        return None
    distance: float = terrain.cast(origin, direction)
    return distance if 0.0 < distance < np.inf else None
