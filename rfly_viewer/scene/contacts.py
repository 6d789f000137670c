# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Contacts of the vehicles that the window shows, with each other and with the ground.

They are those of a Scene of `rfly_collision`. The ground counts where a shape lies more than
GROUND_TOLERANCE_M within it: vehicles that stand or have landed do not crash. Vehicles that are
kept on the ground stand along its slope here. There are no static objects.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from rfly_collision.narrow_phase.bodies import TERRAIN, Bodies
from rfly_collision.shapes.vehicle_meshes import SHAPES
from rfly_collision.world.collision_world import MAX_DISTANCE, SCALES
from rfly_collision.world.ground_fit import stand_on_ground
from rfly_collision.world.scene import Scene, contacts_or_ground
from rfly_common.arrays import Floats, Ints
from rfly_common.frames import enu_to_ned, ned_to_enu, quat_ned_frd_to_enu_flu
from rfly_terrain.height_map.height_map import HeightMap
from rfly_ue_bridge.codec.from_rflysim3d import CRASH_GROUND, CRASH_NONE
from rfly_viewer.scene.vehicle_table import WorldPoses

GROUND_TOLERANCE_M = 0.1
"""Depth in the ground up to which a shape stands on it, m."""
MAX_PAIRS = 20_000
"""Pairs of overlapping boxes up to which vehicles are tested against each other.

More (200 vehicles in one place) are tested against the ground only.
"""


@dataclass(frozen=True, eq=False)
class VehicleContacts:
    """Contact of each vehicle of some poses, in their order."""

    crash_type: Ints
    """-2 ground, 0 none, else the id of the vehicle that is touched deepest.

    A vehicle counts before the ground.
    """
    point_ned: Floats
    """Middle of the contact, (n, 3), m; the vehicle's position without one."""


def find_contacts(poses: WorldPoses, terrain: HeightMap) -> VehicleContacts:
    """Return the contacts of all vehicles at one moment."""
    crash_type = np.full(len(poses), CRASH_NONE, np.int64)
    point = poses.position_ned.copy()

    # vehicles of a size and at a place that can be tested
    size = np.abs(poses.scale)
    testable = ((size >= SCALES[0]) & (size <= SCALES[1])).all(axis=1)
    rows = np.flatnonzero(testable & (np.abs(poses.position_ned) < MAX_DISTANCE).all(axis=1))
    bodies = _bodies(poses, rows, terrain)
    found, _ = contacts_or_ground(_scene(terrain), bodies)
    owner = rows[bodies.group]
    position = np.asarray(enu_to_ned(found.position))

    # with the ground
    on_ground = (found.b == TERRAIN) & (found.depth > GROUND_TOLERANCE_M)
    deep = owner[found.a[on_ground]]
    crash_type[deep] = CRASH_GROUND
    point[deep] = position[on_ground]

    # with other vehicles: the deepest contact is written last, and counts
    pairs = np.flatnonzero(found.b != TERRAIN)
    pairs = pairs[np.argsort(found.depth[pairs], kind="stable")]
    ends = np.column_stack((found.a[pairs], found.b[pairs]))
    touching = owner[ends.reshape(-1)]
    touched = owner[ends[:, ::-1].reshape(-1)]
    crash_type[touching] = poses.id[touched]
    point[touching] = position[np.repeat(pairs, 2)]

    return VehicleContacts(crash_type, point)


def _bodies(poses: WorldPoses, rows: Ints, terrain: HeightMap) -> Bodies:
    """Return the shapes of some vehicles at their poses.

    Those that are kept on the ground stand on its slope.
    """
    position, orientation = standing_poses(poses, rows, terrain)
    shapes, index, row = SHAPES.touching(poses.kind[rows], poses.scale[rows])
    return Bodies(shapes, index, position[row], orientation[row], group=row)


def standing_poses(poses: WorldPoses, rows: Ints, terrain: HeightMap) -> tuple[Floats, Floats]:
    """Return positions (n, 3), m, and attitudes (n, 4), FLU -> ENU, of some vehicles.

    Those that are kept on the ground stand on its slope.
    """
    kind = poses.kind[rows]
    scale = poses.scale[rows]
    position: Any = np.asarray(ned_to_enu(poses.position_ned[rows]))
    orientation: Any = np.asarray(quat_ned_frd_to_enu_flu(poses.quat_ned_frd[rows]))

    fit = np.flatnonzero(poses.on_ground[rows])
    if len(fit):
        position[fit], orientation[fit] = stand_on_ground(
            terrain,
            position[fit],
            orientation[fit],
            SHAPES.column("centre_height")[kind[fit]] * scale[fit, 2],
            SHAPES.footprint[kind[fit]] * np.abs(scale[fit, :2]),
            SHAPES.column("upright")[kind[fit]] > 0,
        )
    return position, orientation


@functools.lru_cache(maxsize=1)
def _scene(terrain: HeightMap) -> Scene:
    return Scene(terrain, "void", MAX_PAIRS)
