"""Which vehicles touch the ground or each other, by their boxes alone.

Ground: the point where a model stands (its origin less its centre height, along its own axis down) lies more than
GROUND_TOLERANCE_M under the terrain. Each other: the boxes around the turned models, along north, east and down,
overlap; looked at are the NEIGHBOURS vehicles whose middles are nearest. That is coarse: no shape, no time of impact,
no static objects.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from rfly_common.frames import flu_to_frd, quat_rotate
from rfly_terrain.height_map import HeightMap
from rfly_ue_bridge.from_rflysim3d import CRASH_GROUND, CRASH_NONE
from rfly_ue_bridge.viewer import models
from rfly_ue_bridge.viewer.vehicle_table import WorldPoses

GROUND_TOLERANCE_M = 0.1
NEIGHBOURS = 8


@dataclass(frozen=True, eq=False)
class Contacts:
    """For each vehicle of some poses, in their order."""

    crash_type: NDArray[np.int64]
    """-2 ground, 0 none, else the id of the vehicle that is touched; a vehicle counts before the ground"""
    point_ned: NDArray[np.float64]
    """(n, 3) m: the middle of the overlap, or the point under the ground; the vehicle's position without contact"""


def find_contacts(poses: WorldPoses, terrain: HeightMap) -> Contacts:
    """Contacts of all vehicles at one moment."""
    crash_type = np.full(len(poses), CRASH_NONE, np.int64)
    point = poses.position_ned.copy()
    if not len(poses):
        return Contacts(crash_type, point)
    below = np.zeros((len(poses), 3))
    below[:, 2] = models.CENTRE_HEIGHT[poses.kind] * poses.scale[:, 2]
    foot = poses.position_ned + quat_rotate(poses.quat_ned_frd, below)
    under = foot[:, 2] - terrain.altitude_ned(foot[:, 0], foot[:, 1]) > GROUND_TOLERANCE_M
    under &= terrain.inside(foot[:, 1], foot[:, 0])
    crash_type[under], point[under] = CRASH_GROUND, foot[under]
    low, high = world_boxes(poses)
    pairs = _overlaps(low, high)[::-1]  # of several the last one written counts: the nearest
    for one, other in ((pairs[:, 1], pairs[:, 0]), (pairs[:, 0], pairs[:, 1])):
        crash_type[one] = poses.id[other]
        point[one] = (np.maximum(low[one], low[other]) + np.minimum(high[one], high[other])) / 2
    return Contacts(crash_type, point)


def world_boxes(poses: WorldPoses) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(low, high), (n, 3) NED: boxes along the axes around each turned model."""
    low, high = (
        flu_to_frd(models.BOX_LOW[poses.kind]) * poses.scale,
        flu_to_frd(models.BOX_HIGH[poses.kind]) * poses.scale,
    )
    middle = poses.position_ned + quat_rotate(poses.quat_ned_frd, (low + high) / 2)
    half = np.abs(high - low) / 2
    axes = np.stack([quat_rotate(poses.quat_ned_frd, axis) for axis in np.eye(3)], axis=1)  # (n, body axis, ned)
    reach = (np.abs(axes) * half[..., None]).sum(axis=1)
    return middle - reach, middle + reach


def _overlaps(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.int64]:
    """(k, 2) rows of boxes that overlap, each row with its neighbours from near to far."""
    n = len(low)
    _, near = cKDTree((low + high) / 2).query((low + high) / 2, k=min(n, NEIGHBOURS + 1), p=np.inf)
    pairs = np.column_stack([np.repeat(np.arange(n), near.size // n), near.reshape(-1)])
    first, second = pairs[:, 0], pairs[:, 1]
    touching = (first != second) & ((low[first] < high[second]) & (low[second] < high[first])).all(axis=1)
    found: NDArray[np.int64] = pairs[touching]
    return found
