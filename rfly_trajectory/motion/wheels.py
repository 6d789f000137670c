"""Ground vehicles on four wheels: height and attitude from the ground under each wheel.

In the heading frame of `attitude` (x along the way, y left) the wheels' plane is z = q x + p y about the vehicle's
origin, with a = √(1+q²) and b = √(a²+p²). The body's axes are x_body = (1, 0, q)/a and y_body = (-pq, a², p)/(ab), so
the wheel (s, t), each ±1, stands at the origin plus s·wheelbase/2·x_body + t·track/2·y_body.

Of heights h at the four wheels the least-squares plane rises by α = Σ s·h / (2 wheelbase) along x_body and by
β = Σ t·h / (2 track) along y_body, from which q = α/√(1-α²) and p = a·u/√(1-u²) with u = a·β. Where the wheels stand
depends on q and p: a few fixed-point steps settle it. Then the plane is raised until no wheel, and not the origin, is
below the ground. On level, evenly sloping and rolling ground all wheels touch; on twisted ground two do, and the
others are in the air by a gap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rfly_common.arrays import Floats
from rfly_trajectory.kernels import KERNELS
from rfly_trajectory.kernels.tables import WheelBases, WheelGround

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap


_STEPS = 5
"""each leaves about a quarter of the error: after five it is below 1 mm where slopes jump by 0.5 from cell to cell"""


class Contact(NamedTuple):
    """k vehicles on their wheels."""

    altitude: Floats
    """(k,) of the wheels' plane at the origin, m"""
    slope: Floats
    """(k, 2) q along the way and p to its left"""
    climb_rate: Floats
    """(k,) m/s"""
    slope_rate: Floats
    """(k, 2) 1/s"""
    gap: Floats
    """(k,) of the wheel that is farthest above the ground, m"""


def wheel_contact(
    terrain: HeightMap,
    wheelbase: Floats,
    track: Floats,
    points: Floats,
    speed: Floats,
    slope: Floats,
    middle: Floats,
    gradient: Floats,
) -> Contact:
    """Contact of k vehicles with wheelbase and track (k,) [m] at points (k, 6) as `path_points` gives them.

    speed (k,) m/s; slope (k, 2) is a first guess of q and p; middle (k,) [m] is what the wheels' plane at the origin is
    not to be below, and gradient (k, 2) the ground's there.
    """
    functions, wheels = KERNELS.choose(), WheelBases(wheelbase, track)
    q, p = np.ascontiguousarray(slope.T)
    for _ in range(_STEPS):
        x, y = functions.wheel_places(wheels, points, q, p)
        plane = functions.wheel_plane(wheels, _altitude(terrain, x, y))
        q, p = np.ascontiguousarray(plane[:, 2:].T)
    x, y = functions.wheel_places(wheels, points, q, p)
    under = terrain.gradient(x.reshape(-1), y.reshape(-1)).reshape(-1, 4, 2)
    ground = WheelGround(_altitude(terrain, x, y), under, middle, gradient)
    rows = functions.wheel_contact(wheels, ground, points, speed, plane)
    return Contact(rows[:, 0], rows[:, 1:3], rows[:, 3], rows[:, 4:6], rows[:, 6])


def _altitude(terrain: HeightMap, x: Floats, y: Floats) -> Floats:
    return np.asarray(terrain.altitude(x.reshape(-1), y.reshape(-1)), float).reshape(x.shape)
