# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Height and attitude of vehicles that move along plane paths over a terrain.

In the heading frame (x along the horizontal direction of travel, y left, z up) a vehicle's floor is
the plane z = q x + p y. Its axes are then x_body = (1, 0, q) / √(1+q²), z_body = (-q, -p, 1) /
√(1+q²+p²), y_body = z × x, which as rotations yaw, pitch, roll (intrinsic z-y'-x'') is

    pitch = -atan q,     roll = atan(p / √(1+q²)),     yaw = heading of the path.

What q and p are depends on the kind of vehicle:

- GROUND: the slope of the smooth terrain along the heading and to its left. z_body is the smooth
  normal, and x_body is the vertical projection of the path's tangent into that plane, so the
  horizontal heading is kept exactly.
- FIXED_WING: q is the slope of climb, p = -(1+q²) a_lateral / g: a coordinated turn,
  tan roll = V ψ' / g with the airspeed V (Beard and McLain, Small Unmanned Aircraft, 2012,
  section 9.2).
- MULTIROTOR: z_body is the direction of thrust, g up plus the horizontal acceleration:
  q = -a_along / g, p = -a_left / g (differential flatness; Mellinger and Kumar, ICRA 2011).
  Vertical acceleration is left out: over a bilinear terrain it is a jolt at each cell's border and
  next to nothing inside.

Body rates follow from the time derivatives of q, p and the heading. With yaw, pitch and roll rates
they are

    (roll' - yaw' sin pitch,
     pitch' cos roll + yaw' sin roll cos pitch,
     -pitch' sin roll + yaw' cos roll cos pitch).

The height itself and the vertical speed follow the exact (bilinear) ground, which has kinks at the
cells' borders; the attitude follows its smooth gradient, which has none.

Vehicles on four wheels stand on the ground under each wheel. Their plane is z = q x + p y about the
vehicle's origin, with a = √(1+q²) and b = √(a²+p²). The body's axes are x_body = (1, 0, q)/a and
y_body = (-pq, a², p)/(ab), so the wheel (s, t), each ±1, stands at the origin plus
s·wheelbase/2·x_body + t·track/2·y_body.

Of heights h at the four wheels the least-squares plane rises by α = Σ s·h / (2 wheelbase) along
x_body and by β = Σ t·h / (2 track) along y_body, from which q = α/√(1-α²) and p = a·u/√(1-u²) with
u = a·β. Where the wheels stand depends on q and p: a few fixed-point steps settle it. Then the
plane is raised until no wheel, and not the origin, is below the ground. On level, evenly sloping
and rolling ground all wheels touch; on twisted ground two do, and the others are in the air by a
gap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Bools, Floats
from rfly_trajectory.kernels.tables import (
    GroundRows,
    Placements,
    VehiclePoses,
    WheelBases,
    WheelGround,
)

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap


_STEPS = 5
"""Fixed-point steps. Each leaves about a quarter of the error.

After five the error is below 1 mm even where slopes jump by 0.5 from cell to cell.
"""


class WheelPlane(NamedTuple):
    """Contact of k vehicles with the ground under their wheels."""

    altitude: Floats
    """Altitude of the wheels' plane at the origin, (k,), m."""
    slope: Floats
    """Slopes of the wheels' plane, (k, 2): q along the way and p to its left."""
    climb_rate: Floats
    """Climb rates, (k,), m/s."""
    slope_rate: Floats
    """Rates of q and p, (k, 2), 1/s."""
    gap: Floats
    """Gap under the wheel that is highest above the ground, (k,), m."""


def wheel_contact(
    terrain: HeightMap,
    wheelbase: Floats,
    track: Floats,
    points: Floats,
    speed: Floats,
    slope: Floats,
    middle: Floats,
    gradient: Floats,
) -> WheelPlane:
    """Return the wheel contact of k vehicles at path points (k, 6), see `path_points`.

    wheelbase and track (k,) are in m, speed (k,) in m/s. slope (k, 2) is a first guess of q and p.
    The wheels' plane at the origin is kept above middle (k,), m, where the ground has the gradient
    (k, 2).
    """
    from rfly_trajectory.kernels import motion_kernels

    wheels = WheelBases(wheelbase, track)
    q, p = np.ascontiguousarray(slope.T)

    # slopes and wheel positions by fixed-point steps
    for _ in range(_STEPS):
        x, y = motion_kernels.wheel_places(wheels, points, q, p)
        plane = motion_kernels.wheel_plane(wheels, _altitude(terrain, x, y))
        q, p = np.ascontiguousarray(plane[:, 2:].T)

    # ground under the wheels in their final positions
    x, y = motion_kernels.wheel_places(wheels, points, q, p)
    under = terrain.gradient(x.reshape(-1), y.reshape(-1)).reshape(-1, 4, 2)
    ground = WheelGround(_altitude(terrain, x, y), under, middle, gradient)

    rows = motion_kernels.wheel_contact(wheels, ground, points, speed, plane)
    return WheelPlane(rows[:, 0], rows[:, 1:3], rows[:, 3], rows[:, 4:6], rows[:, 6])


def _altitude(terrain: HeightMap, x: Floats, y: Floats) -> Floats:
    return np.asarray(terrain.altitude(x.reshape(-1), y.reshape(-1)), float).reshape(x.shape)


class GroundPatch(NamedTuple):
    """Ground under k points."""

    altitude: Floats
    """Altitudes, (k,), z up, m."""
    gradient: Floats
    """Slopes dz/dx and dz/dy of the exact ground, (k, 2)."""
    smooth_gradient: Floats
    """Slopes of the smooth ground, (k, 2)."""
    smooth_gradient_rate: Floats
    """Rates of the smooth slopes along the vehicle's motion, (k, 2), 1/s."""


def poses(
    kind: NDArray[np.uint8],
    height: Floats,
    absolute: Bools,
    progress: Floats,
    points: Floats,
    terrain: GroundPatch,
    rate_type: type[np.floating[Any]] = np.float64,
) -> VehiclePoses:
    """Return the poses of k vehicles; velocities and body rates are numbers of `rate_type`.

    kind (k,) is GROUND, MULTIROTOR or FIXED_WING. height (k,), m, is above the ground, or is z
    where `absolute` (k,) is true (a z below the ground is raised to it). progress (k, 4) comes from
    `motion.progress`, points (k, 6) from `paths.path_points`.
    """
    from rfly_trajectory.kernels import motion_kernels

    k = len(kind)
    result = VehiclePoses(
        np.empty((k, 3)), np.empty((k, 4)), np.empty((k, 3), rate_type), np.empty((k, 3), rate_type)
    )

    # as rows, contiguous for one vehicle as for many: numba compiles for each memory layout
    progress = np.ascontiguousarray(progress.T)
    points = np.ascontiguousarray(points.T)
    altitude, gradient, smooth, smooth_rate = terrain
    gradient = np.ascontiguousarray(gradient.T)
    smooth = np.ascontiguousarray(smooth.T)
    ground = GroundRows(altitude, gradient, smooth, np.ascontiguousarray(smooth_rate.T))

    motion_kernels.poses(Placements(kind, height, absolute), progress, points, ground, result)
    return result
