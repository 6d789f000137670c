# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Positions on a browser's screen: smallest sizes of far vehicles, and labels with room."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rfly_collision.shapes.vehicle_meshes import BOX_HIGH, BOX_LOW
from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.frames import ned_to_enu, quat_conjugate, quat_rotate
from rfly_viewer.scene.vehicle_table import WorldPoses

SMALLEST_PX = 8.0
"""Smallest length on the screen of the longest side of a vehicle's box, pixels."""
_STEPS = 4
"""Steps in which a far vehicle doubles its size.

They keep each movement of a camera from sending all sizes again.
"""
_SMALLEST_M = 0.01
_STAYS = 0.8
"""Factor on the distance of a label that is shown, so that two at one distance do not alternate."""


@dataclass(frozen=True, eq=False)
class Screen:
    """Camera of one browser."""

    position: Floats
    """Position, ENU, m."""
    optical_wxyz: Floats
    """Rotation of its axes (x right, y down, z ahead) into ENU."""
    focal_px: float

    @classmethod
    def of(cls, camera: Any) -> Screen:
        """Return the screen of a client's camera in viser."""
        return cls(camera.position, camera.wxyz, camera.image_height / 2 / math.tan(camera.fov / 2))

    def pixels(self, points: Floats) -> tuple[Floats, Floats]:
        """Return where (n, 3) points in ENU are on the screen, and how far away.

        They are (n, 2) pixels right and down from the picture's middle, and (n,) m ahead of the
        camera.
        """
        away = quat_conjugate(np.roll(self.optical_wxyz, -1))
        seen = np.asarray(quat_rotate(away, points - self.position), np.float64)
        ahead = seen[:, 2]
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.focal_px * seen[:, :2] / ahead[:, None], ahead


def drawn_enlarged(poses: WorldPoses, screens: Iterable[Screen], enlarge: float) -> Floats:
    """Return the magnification of each vehicle, (n,).

    The factor is `enlarge`, or more where a vehicle would be under SMALLEST_PX. All browsers show
    one scene: the nearest camera decides, so that no vehicle is too large in any of them.
    """
    position = ned_to_enu(poses.position_ned)
    metres_per_pixel = np.full(len(poses), np.inf)
    for screen in screens:
        distance = np.linalg.norm(position - screen.position, axis=1)
        metres_per_pixel = np.minimum(metres_per_pixel, distance / screen.focal_px)
    metres_per_pixel[np.isinf(metres_per_pixel)] = 0.0

    size = np.abs((BOX_HIGH - BOX_LOW)[poses.kind] * poses.scale).max(axis=1)
    wanted = SMALLEST_PX * metres_per_pixel / np.maximum(size, _SMALLEST_M)
    stepped = np.exp2(np.ceil(np.log2(np.maximum(wanted, 1.0)) * _STEPS) / _STEPS)
    return np.where(wanted > enlarge, stepped, enlarge)


def labels_with_room(screen: Screen, feet: Floats, size_px: Floats, shown_before: Bools) -> Bools:
    """Return which labels are shown, (n,).

    If labels cover each other, that of the nearest vehicle is shown. `feet` (n, 3) ENU are the
    middles of the labels' lower edges, `size_px` (n, 2) their widths and heights.
    """
    middle, ahead = screen.pixels(feet)
    middle[:, 1] -= size_px[:, 1] / 2
    in_front = ahead > 0
    apart = np.abs(middle[:, None] - middle[None])
    covers: Bools = np.all(apart < (size_px[:, None] + size_px[None]) / 2, axis=2)

    # the nearest first
    order: Ints = np.argsort(np.where(shown_before, _STAYS, 1.0) * ahead, kind="stable")
    shown = np.zeros(len(feet), bool)
    for row in order[in_front[order]].tolist():
        shown[row] = not (covers[row] & shown).any()
    return shown
