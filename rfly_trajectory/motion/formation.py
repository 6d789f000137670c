# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Formations: offsets of a vehicle's copies from the leading point on the path.

An offset is (ahead, left) in metres. In the path frame it turns with the path: a member drives
`ahead` metres farther along the path, on the parallel curve `left` metres to its left (Frenet
coordinates). So a column follows one track through a turn, members on the outside drive faster, and
every heading is that of the member's own motion. With curvature κ and its rate κ' of the path, g =
1 - left·κ, and the path's speed v and acceleration a, a member has

    curvature κ/g,   curvature rate κ'/g³,   speed g·v,   acceleration g·a - left·κ'·v².

An open path continues straight before its start and after its end. In the world frame the offset is
a constant vector, and the whole path is moved by it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError

FORMATIONS = ("line", "column", "wedge", "ring", "grid", "custom")


def formation_offsets(
    kind: str,
    count: int,
    *,
    spacing: float = 0.0,
    angle_deg: float = 90.0,
    radius: float = 0.0,
    columns: int = 0,
    offsets: Sequence[Sequence[float]] = (),
) -> Floats:
    """Return the offsets (count, 2), m ahead and left, of the members in the order of the copies.

    - line: abreast, the first in the middle, the others left and right of it by turns, `spacing`
      apart.
    - column: one behind the other, `spacing` apart.
    - wedge: the first at the tip, the others on its left and right arm by turns. Neighbours on an
      arm are `spacing` apart, and the arms open backwards by `angle_deg`.
    - ring: evenly on a circle of `radius` about the path's point, the first ahead, the others
      counter-clockwise.
    - grid: rows of `columns` abreast (0: as square as possible) from left to right, the first row
      in front.
    - custom: `offsets` as given, one for each member.

    Raises ConfigError with the key for numbers that describe no formation.
    """
    number = np.arange(count, dtype=np.float64)
    ahead: Floats
    left: Floats

    # the first copy on an arm is on the left
    arm = (number + 1) // 2
    side = np.where(number % 2 == 1, 1.0, -1.0)

    if kind == "line":
        ahead = np.zeros(count)
        left = arm * side * spacing
    elif kind == "column":
        ahead = number * -spacing
        left = np.zeros(count)
    elif kind == "wedge":
        half = math.radians(angle_deg) / 2
        ahead = -arm * spacing * math.cos(half)
        left = arm * side * spacing * math.sin(half)
    elif kind == "ring":
        angle = 2.0 * math.pi * number / count
        ahead = radius * np.cos(angle)
        left = radius * np.sin(angle)
    elif kind == "grid":
        columns = columns or math.ceil(math.sqrt(count))
        ahead = -(number // columns) * spacing
        left = ((columns - 1) / 2 - number % columns) * spacing
    elif kind == "custom":
        if len(offsets) != count:
            raise ConfigError(
                f"got {len(offsets)}, expected {count}, one for each copy", key="offsets"
            )
        return np.array(offsets, float).reshape(count, 2)
    else:
        raise ConfigError(f"{kind!r} is not one of {', '.join(FORMATIONS)}", key="type")

    return np.stack([ahead, left], axis=-1) + 0.0  # no negative zeros


def extrapolate_straight(points: Floats, beyond: Floats) -> None:
    """Move points (k, 6) of open paths along their tangents by `beyond` (k,), m, in place."""
    points[:, :2] += beyond[:, None] * points[:, 2:4]
    points[beyond != 0.0, 4:] = 0.0


def offset_laterally(
    points: Floats, progress: Floats, left: Floats, bend: Floats | float = 0.0
) -> None:
    """Move points (k, 6) and progress (k, 4) of a path to a parallel curve.

    It lies `left` (k,) m to the path's left. Works in place. `progress` keeps the path's arc
    length. `bend` (k,) is the second derivative of the curvature, which affects the jerk alone.
    """
    curvature = points[:, 4].copy()
    rate = points[:, 5].copy()
    speed = progress[:, 1].copy()
    g = 1.0 - left * curvature

    # the parallel curve
    points[:, 0] -= left * points[:, 3]
    points[:, 1] += left * points[:, 2]
    points[:, 4] = curvature / g
    points[:, 5] = rate / g**3

    # its motion: the jerk first, as it needs the path's acceleration
    progress[:, 3] = g * progress[:, 3] - left * speed * (
        3.0 * rate * progress[:, 2] + bend * speed**2
    )
    progress[:, 1] = g * speed
    progress[:, 2] = g * progress[:, 2] - left * rate * speed**2
