# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Ground fit: vehicles set on the terrain as RflySim3D does where states ask for it (`fit_ground`).

A vehicle stands on the corners of its footprint. In the heading frame (x forward, y left) of
heights h at the corners (±a, ±b) the least-squares plane has the slopes q = Σ ±h / 4a forward and p
= Σ ±h / 4b to the left; it is raised until no corner, and not the origin, lies below the ground.
What stays upright stands on the ground under its origin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rfly_common.arrays import Bools, Floats
from rfly_common.frames import euler_to_quat, quat_to_euler

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap


FOOTPRINT = (0.7, 0.9)
"""Wheelbase and track as shares of length and width."""
_FORWARD = np.array([1.0, 1.0, -1.0, -1.0])
_LEFT = np.array([1.0, -1.0, 1.0, -1.0])


def stand_on_ground(
    terrain: HeightMap,
    position: Floats,
    orientation: Floats,
    centre_height: Floats,
    size: Floats,
    upright: Bools,
) -> tuple[Floats, Floats]:
    """Return (position, orientation) of n vehicles put on the ground.

    x, y and heading stay, height and slope are the ground's. position (n, 3) ENU, orientation (n,
    4) xyzw FLU -> ENU, centre_height (n,) m of the origin above the ground, size (n, 2) length and
    width, m. Upright vehicles (n,) keep their orientation.
    """
    yaw = np.asarray(quat_to_euler(orientation))[:, 2]
    half = size * FOOTPRINT / 2
    forward = half[:, :1] * _FORWARD
    left = half[:, 1:] * _LEFT
    cos = np.cos(yaw)[:, None]
    sin = np.sin(yaw)[:, None]
    x = position[:, :1] + forward * cos - left * sin
    y = position[:, 1:2] + forward * sin + left * cos
    corners = np.asarray(terrain.altitude(x.reshape(-1), y.reshape(-1)), float).reshape(x.shape)

    under = np.asarray(terrain.altitude(position[:, 0], position[:, 1]), float)
    q = (corners @ _FORWARD) / (4 * half[:, 0])
    p = (corners @ _LEFT) / (4 * half[:, 1])

    middle = corners.mean(axis=1)
    above = np.maximum(
        (corners - (middle[:, None] + forward * q[:, None] + left * p[:, None])).max(axis=1), 0.0
    )
    plane = np.maximum(middle + above, under)

    fitted = position.copy()
    fitted[:, 2] = np.where(
        upright, under + centre_height, plane + centre_height * np.sqrt(1 + q * q + p * p)
    )
    euler = np.column_stack([np.arctan2(p, np.sqrt(1 + q * q)), -np.arctan(q), yaw])
    return fitted, np.where(upright[:, None], orientation, euler_to_quat(euler))
