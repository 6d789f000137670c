"""Picking: a ray from the mouse against the vehicles' boxes and the ground."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rfly_collision.models import vehicle_models as models
from rfly_common.arrays import Floats
from rfly_common.frames import enu_to_ned, flu_to_frd, quat_conjugate, quat_rotate
from rfly_terrain.height_map.height_map import HeightMap
from rfly_ue_bridge.viewer.vehicle_table import WorldPoses

_STEPS = 4096
_REFINE = 40


@dataclass(frozen=True)
class Click:
    """A double click, NED in m, as RflySim3D shows it."""

    point: tuple[float, float, float]
    """where the ray hit"""
    vehicle_id: int | None = None
    object_position: tuple[float, float, float] | None = None
    """the origin of the vehicle that was hit"""


def pick(terrain: HeightMap, poses: WorldPoses, origin_enu: ArrayLike, direction_enu: ArrayLike) -> Click | None:
    """What a ray meets first; None for the sky."""
    origin, direction = np.asarray(origin_enu, np.float64), np.asarray(direction_enu, np.float64)
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
    """(n,) m along the ray to each vehicle's box; inf where it misses. The slab method, in each vehicle's axes."""
    away = quat_conjugate(poses.quat_ned_frd)
    start = flu_to_frd(quat_rotate(away, enu_to_ned(origin) - poses.position_ned))
    along = flu_to_frd(quat_rotate(away, np.broadcast_to(enu_to_ned(direction), start.shape)))
    low, high = models.BOX_LOW[poses.kind] * poses.scale, models.BOX_HIGH[poses.kind] * poses.scale
    with np.errstate(divide="ignore", invalid="ignore"):
        to_low, to_high = (low - start) / along, (high - start) / along
    enters = np.nanmax(np.minimum(to_low, to_high), axis=1, initial=0.0)
    leaves = np.nanmin(np.maximum(to_low, to_high), axis=1, initial=np.inf)
    parallel_outside = ((along == 0) & ((start < low) | (start > high))).any(axis=1)
    return np.where((enters <= leaves) & ~parallel_outside, enters, np.inf)


def ground_distance(terrain: HeightMap, origin: Floats, direction: Floats, farthest: float = np.inf) -> float | None:
    """m along the ray to the first crossing of the ground of the map; None where there is none.

    Looked for in steps of about half a cell where the ray is over the map and among its heights, then halved.
    """
    x_min, x_max, y_min, y_max = terrain.bounds
    low = np.array((x_min, y_min, terrain.z_min - 1.0))
    high = np.array((x_max, y_max, terrain.z_max + 1.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        to_low, to_high = (low - origin) / direction, (high - origin) / direction
    if ((direction == 0) & ((origin < low) | (origin > high))).any():
        return None
    start = float(np.nanmax(np.minimum(to_low, to_high), initial=0.0))
    stop = min(float(np.nanmin(np.maximum(to_low, to_high), initial=np.inf)), farthest)
    if not start < stop < np.inf:
        return None
    step = 0.5 * min(abs(terrain.step_x), abs(terrain.step_y))
    t = np.linspace(start, stop, int(np.clip((stop - start) / step, 2, _STEPS)) + 1)
    above = _height_above(terrain, origin, direction, t) > 0
    crossings = np.flatnonzero(above[:-1] & ~above[1:])
    if not len(crossings):
        return None
    before, after = t[crossings[0]], t[crossings[0] + 1]
    for _ in range(_REFINE):
        middle = (before + after) / 2
        if _height_above(terrain, origin, direction, np.array([middle]))[0] > 0:
            before = middle
        else:
            after = middle
    return float(after)


def _height_above(terrain: HeightMap, origin: Floats, direction: Floats, t: Floats) -> Floats:
    points = origin + t[:, None] * direction
    height: Floats = points[:, 2] - terrain.altitude(points[:, 0], points[:, 1])
    return height
