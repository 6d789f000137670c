# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Places that are clear of the objects of a world, for the courses of episodes.

A place is clear if no object lies within CLEARANCE plus the vehicle's reach of it, at any height:
seen from above, and by the box around each convex part. So a vehicle at a clear place can also
climb until it is above all objects, and comes down at the next one: targets can be reached.
Between two neighbouring points of a path, which are TRACK_STEP apart, its middle keeps the reach.
"""

from __future__ import annotations

import math
from typing import Any

from rfly_amphibious.dynamics.obstacle_contacts import is_near, parts_near
from rfly_amphibious.dynamics.obstacles import Obstacles, obstacles_of
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_amphibious.vehicle.state_layout import POSITION
from rfly_amphibious.vehicle.vehicle_record import hull_ellipsoids
from rfly_common.arrays import Bools, Floats
from rfly_common.kernels.jit import inlined_kernel, kernel
from rfly_lab.learning.episodes import TRACK_STEP
from rfly_terrain.world.solids import Solids

CLEARANCE = 0.5 * TRACK_STEP
"""Least distance of a vehicle's reach from an object where an episode begins or leads, m."""


def kept_clear(solids: Solids | None, params: VehicleParameters) -> tuple[Obstacles | None, float]:
    """Return the objects to keep clear of, and how far a vehicle's middle keeps from them, m."""
    distance = params.reach + CLEARANCE
    return obstacles_of(solids, distance, hull_ellipsoids(params)), distance


@inlined_kernel
def is_clear(obstacles: Any, distance: float, x: float, y: float) -> bool:
    """Return whether no object is within a distance of a place, at any height."""
    place = (x, y, math.inf)
    begin, end = parts_near(obstacles, place)
    for m in range(begin, end):
        if is_near(place, distance, obstacles.parts, obstacles.lists[m]):
            return False
    return True


@inlined_kernel
def course_is_clear(obstacles: Any, distance: float, state: Floats, targets: Floats) -> bool:
    """Return whether the place of a state and all targets (targets, 3) are clear."""
    if obstacles is None:
        return True
    if not is_clear(obstacles, distance, state[POSITION], state[POSITION + 1]):
        return False
    for t in range(targets.shape[0]):
        if not is_clear(obstacles, distance, targets[t, 0], targets[t, 1]):
            return False
    return True


@kernel
def find_clear(obstacles: Any, distance: float, places: Floats, clear: Bools) -> None:
    """Write to `clear` (n,) whether places (n, 2 or more) are clear."""
    for n in range(places.shape[0]):
        clear[n] = obstacles is None or is_clear(obstacles, distance, places[n, 0], places[n, 1])
