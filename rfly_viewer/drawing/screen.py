"""Where things are on a browser's screen: smallest sizes of far vehicles, and labels that leave
each other room.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.frames import ned_to_enu, quat_conjugate, quat_rotate
from rfly_viewer.models.vehicle_models import BOX_HIGH, BOX_LOW
from rfly_viewer.scene.vehicle_table import WorldPoses

SMALLEST_PX = 8.0
"""length of the longest side of a vehicle's box that it is drawn with from any distance"""
_STEPS = 4
"""in which a far vehicle grows to the double, so that not every move of a camera sends all sizes
anew
"""
_SMALLEST_M = 0.01
_STAYS = 0.8
"""A label that is shown counts as so much nearer, so that two at one distance do not take turns."""


@dataclass(frozen=True, eq=False)
class Screen:
    """The camera of one browser."""

    position: Floats
    """ENU, m"""
    optical_wxyz: Floats
    """rotation of its axes (x right, y down, z ahead) into ENU"""
    focal_px: float

    @classmethod
    def of(cls, camera: Any) -> Screen:
        """That of viser's camera of a client."""
        return cls(camera.position, camera.wxyz, camera.image_height / 2 / math.tan(camera.fov / 2))

    def pixels(self, points: Floats) -> tuple[Floats, Floats]:
        """((n, 2) right and down from the picture's middle, (n,) m ahead of the camera) of (n, 3)
        points in ENU.
        """
        away = quat_conjugate(np.roll(self.optical_wxyz, -1))
        seen = np.asarray(quat_rotate(away, points - self.position), np.float64)
        ahead = seen[:, 2]
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.focal_px * seen[:, :2] / ahead[:, None], ahead


def drawn_enlarged(poses: WorldPoses, screens: Iterable[Screen], enlarge: float) -> Floats:
    """(n,) how many times its size each vehicle is drawn: `enlarge`, or more where it would be
    under SMALLEST_PX.

    All browsers show one scene: the nearest camera decides, so that nothing is too large in any.
    """
    at = ned_to_enu(poses.position_ned)
    metres_per_pixel = np.full(len(poses), np.inf)
    for screen in screens:
        metres_per_pixel = np.minimum(
            metres_per_pixel, np.linalg.norm(at - screen.position, axis=1) / screen.focal_px
        )
    metres_per_pixel[np.isinf(metres_per_pixel)] = 0.0
    size = np.abs((BOX_HIGH - BOX_LOW)[poses.kind] * poses.scale).max(axis=1)
    wanted = SMALLEST_PX * metres_per_pixel / np.maximum(size, _SMALLEST_M)
    stepped = np.exp2(np.ceil(np.log2(np.maximum(wanted, 1.0)) * _STEPS) / _STEPS)
    return np.where(wanted > enlarge, stepped, enlarge)


def labels_with_room(screen: Screen, feet: Floats, size_px: Floats, shown_before: Bools) -> Bools:
    """(n,) which labels are shown: of those that cover each other the one of the nearest vehicle.

    `feet` (n, 3) ENU are the middles of the labels' lower edges, `size_px` (n, 2) their widths and
    heights.
    """
    at, ahead = screen.pixels(feet)
    at[:, 1] -= size_px[:, 1] / 2
    in_front = ahead > 0
    apart = np.abs(at[:, None] - at[None])
    covers: Bools = np.all(apart < (size_px[:, None] + size_px[None]) / 2, axis=2)
    order: Ints = np.argsort(np.where(shown_before, _STAYS, 1.0) * ahead, kind="stable")
    shown = np.zeros(len(feet), bool)
    for row in order[in_front[order]].tolist():
        shown[row] = not (covers[row] & shown).any()
    return shown
