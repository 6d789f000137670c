# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Viewpoints of cameras in RflySim3D's terms and in a browser's.

RflySim3D has NED, looking along body x; a browser has ENU, position and look-at point. It works
without viser.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats
from rfly_common.frames import (
    QUAT_FLU_OPTICAL_XYZW,
    enu_to_ned,
    euler_to_quat,
    ned_to_enu,
    quat_conjugate,
    quat_enu_flu_to_ned_frd,
    quat_multiply,
    quat_ned_frd_to_enu_flu,
    quat_rotate,
    quat_to_euler,
)
from rfly_terrain.height_map.height_map import HeightMap

_STRAIGHT_DOWN_RAD = math.radians(88.0)
_LEVEL_RAD = math.radians(0.1)


@dataclass(frozen=True, eq=False)
class Viewpoint:
    """Position and angles of a camera in RflySim3D's terms."""

    position_ned: Floats
    euler: Floats
    """Roll, pitch, yaw of the camera's FRD axes in NED, rad; it looks along x."""

    def moved_by(self, other: Viewpoint) -> Viewpoint:
        """Return the viewpoint with the numbers of another added, in NED.

        RflyCameraPosAngAdd adds them like this.
        """
        return Viewpoint(self.position_ned + other.position_ned, self.euler + other.euler)

    @property
    def position_enu(self) -> Floats:
        """Position in ENU, (3,) m."""
        return np.asarray(ned_to_enu(self.position_ned), np.float64)

    def axes_enu(self) -> tuple[Floats, Floats]:
        """Return (forward, up), unit vectors in ENU."""
        quat = quat_ned_frd_to_enu_flu(euler_to_quat(self.euler))
        axes = quat_rotate(quat, np.array(((1.0, 0.0, 0.0), (0.0, 0.0, 1.0)))).astype(np.float64)
        return axes[0], axes[1]

    def up_enu(self) -> Floats:
        """Return the axis about which a mouse turns the view.

        It is the vertical, unless the camera is rolled or looks straight down or up.
        """
        roll, pitch, _ = self.euler
        if abs(roll) < _LEVEL_RAD and abs(pitch) < _STRAIGHT_DOWN_RAD:
            return np.array((0.0, 0.0, 1.0))
        return self.axes_enu()[1]


def on_board(position_ned: Floats, quat_ned_frd: Floats, mount: Viewpoint) -> Viewpoint:
    """Return the viewpoint of a camera on a vehicle.

    The mount's position is forward, right, down (m), its angles are relative to the body.
    """
    turned = quat_multiply(quat_ned_frd, euler_to_quat(mount.euler))
    position = np.asarray(position_ned + quat_rotate(quat_ned_frd, mount.position_ned), np.float64)
    return Viewpoint(position, np.asarray(quat_to_euler(turned), np.float64))


def from_browser(position_enu: ArrayLike, optical_wxyz: ArrayLike) -> Viewpoint:
    """Return the viewpoint of a camera from its position and the rotation of its axes into ENU.

    The axes are optical ones: x right, y down, z ahead.
    """
    wxyz = np.asarray(optical_wxyz, np.float64)
    optical = np.roll(wxyz, -1)
    flu = quat_multiply(optical, quat_conjugate(np.array(QUAT_FLU_OPTICAL_XYZW)))
    return Viewpoint(
        np.asarray(enu_to_ned(np.asarray(position_enu, np.float64)), np.float64),
        np.asarray(quat_to_euler(quat_enu_flu_to_ned_frd(flu)), np.float64),
    )


def vertical_fov(horizontal: float, aspect: float) -> float:
    """Return the vertical angle of view (rad) of a picture with this ratio of width to height."""
    return 2.0 * math.atan(math.tan(horizontal / 2.0) / aspect)


def overview(
    low_enu: ArrayLike, high_enu: ArrayLike, vertical: float, elevation_deg: float = 32.0
) -> tuple[Floats, Floats]:
    """Return (position, point looked at) in ENU that show all of a box.

    The view is from the south-south-east, at an angle of elevation above the horizon.
    """
    low = np.asarray(low_enu, np.float64)
    high = np.asarray(high_enu, np.float64)
    middle = (low + high) / 2
    radius = float(np.linalg.norm(high - low)) / 2

    elevation = math.radians(elevation_deg)
    azimuth = math.radians(160.0)
    back = np.array(
        (
            math.sin(azimuth) * math.cos(elevation),
            math.cos(azimuth) * math.cos(elevation),
            math.sin(elevation),
        )
    )

    distance = max(radius, 8.0) / math.sin(min(vertical, 1.2) / 2) * 0.9
    return middle + back * distance, middle


ALL_VEHICLES = -1
"""Stands for the id of a followed vehicle: the cameras follow the middle of all vehicles."""
FROM_BEHIND_M = (-12.0, -12.0, 7.0)
"""Vector from a followed vehicle to its camera, ENU, m."""
_SAME_M = 0.01
_CLEARANCE_M = 3.0
_REMEMBERED = 200
"""Places of the vehicle that are kept: some seconds, longer than a browser's report takes."""


class FollowingCamera:
    """Camera of one browser that follows a vehicle.

    A browser's report is late, and its two points may be of two moments, if one was read while the
    other was replaced. Only a report that belongs to exactly one place of the vehicle was made by
    the mouse.
    """

    def __init__(self, back: ArrayLike = FROM_BEHIND_M) -> None:
        self._back: Floats = np.array(back, np.float64)
        """Vector from the vehicle to the camera, ENU, m."""
        self._targets: deque[Floats] = deque(maxlen=_REMEMBERED)
        self._places: deque[Floats] = deque(maxlen=_REMEMBERED)
        """Places of the camera that were sent to the browser, one for each target."""

    def place(
        self,
        target: Floats,
        position: Floats,
        look_at: Floats,
        terrain: HeightMap | None = None,
    ) -> Floats:
        """Return where the camera goes, (3,) m, which is above the terrain, if there is one.

        The vehicle is at `target` now; the browser reports the camera's `position` and `look_at`.
        """
        moved_by_mouse = _is_among(look_at, self._targets) and not _is_among(position, self._places)
        if moved_by_mouse:
            self._back = position - look_at

        place = np.asarray(target + self._back, np.float64)
        if terrain is not None:
            ground = float(terrain.altitude(float(place[0]), float(place[1])))
            place[2] = max(place[2], ground + _CLEARANCE_M)

        self._targets.append(np.array(target))
        self._places.append(place)
        return place


def _is_among(point: Floats, points: deque[Floats]) -> bool:
    """Return whether a point is one of these, within `_SAME_M`."""
    if not points:
        return False
    return bool((np.linalg.norm(np.array(points) - point, axis=1) < _SAME_M).any())
