"""Height and attitude of vehicles that move along plane paths over a terrain.

In the heading frame (x along the horizontal direction of travel, y left, z up) a vehicle's floor is the plane
z = q x + p y. Its axes are then x_body = (1, 0, q) / √(1+q²), z_body = (-q, -p, 1) / √(1+q²+p²), y_body = z × x, which
as rotations yaw, pitch, roll (intrinsic z-y'-x'') is

    pitch = -atan q,     roll = atan(p / √(1+q²)),     yaw = heading of the path.

What q and p are depends on the kind of vehicle:

- GROUND: the slope of the smooth terrain along and to the left of the heading. z_body is the smooth normal, and x_body
  is the vertical projection of the path's tangent into that plane, so the horizontal heading is kept exactly.
- FIXED_WING: q is the slope of climb, p = -(1+q²) a_lateral / g: a coordinated turn, tan roll = V ψ' / g with the
  airspeed V (Beard and McLain, Small Unmanned Aircraft, 2012, section 9.2).
- MULTIROTOR: z_body is the direction of thrust, g up plus the horizontal acceleration: q = -a_along / g,
  p = -a_left / g (differential flatness; Mellinger and Kumar, ICRA 2011). Vertical acceleration is left out: over a
  bilinear terrain it is a jolt at each cell's border and next to nothing inside.

Body rates follow from the time derivatives of q, p and the heading; with yaw, pitch and roll rates they are

    (roll' - yaw' sin pitch,  pitch' cos roll + yaw' sin roll cos pitch,  -pitch' sin roll + yaw' cos roll cos pitch).

The height itself and the vertical speed follow the exact (bilinear) ground, which has kinks at the cells' borders;
the attitude follows its smooth gradient, which has none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Bools, Floats
from rfly_trajectory.kernels import KERNELS
from rfly_trajectory.kernels.tables import GroundRows, Placements, Poses


class Terrain(NamedTuple):
    """The ground under k points."""

    altitude: Floats
    """(k,) z up, m"""
    gradient: Floats
    """(k, 2) dz/dx, dz/dy of the exact ground"""
    smooth_gradient: Floats
    """(k, 2)"""
    smooth_gradient_rate: Floats
    """(k, 2) its derivative by time along the vehicle's motion, 1/s"""


def poses(
    kind: NDArray[np.uint8],
    height: Floats,
    absolute: Bools,
    progress: Floats,
    points: Floats,
    terrain: Terrain,
    rate_type: type[np.floating[Any]] = np.float64,
) -> Poses:
    """Poses of k vehicles; velocities and body rates in numbers of `rate_type`.

    kind (k,) GROUND, MULTIROTOR or FIXED_WING; height (k,) [m] above the ground, or z where `absolute` (k,) is true (a
    z below the ground is raised to it); progress (k, 4) as `motion.progress` and points (k, 6) as `paths.path_points`
    give them.
    """
    k = len(kind)
    made = Poses(np.empty((k, 3)), np.empty((k, 4)), np.empty((k, 3), rate_type), np.empty((k, 3), rate_type))
    # as rows, contiguous for one vehicle as for many: numba compiles for each layout that it meets
    progress, points = np.ascontiguousarray(progress.T), np.ascontiguousarray(points.T)
    altitude, gradient, smooth, smooth_rate = terrain
    gradient, smooth = np.ascontiguousarray(gradient.T), np.ascontiguousarray(smooth.T)
    ground = GroundRows(altitude, gradient, smooth, np.ascontiguousarray(smooth_rate.T))
    KERNELS.choose().poses(Placements(kind, height, absolute), progress, points, ground, made)
    return made
