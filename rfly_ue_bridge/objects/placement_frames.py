"""Frame conversion of placements: ENU, NED, and frames with a fixed transform to them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats
from rfly_common.errors import FrameError
from rfly_common.frames import (
    enu_to_ned,
    ned_to_enu,
    quat_conjugate,
    quat_enu_flu_to_ned_frd,
    quat_multiply,
    quat_ned_frd_to_ned_flu,
    quat_rotate,
)
from rfly_ue_bridge.objects.placement import from_ned

VERTICAL_TOLERANCE = 1e-6


class FrameAxes(NamedTuple):
    """A frame: the axes (enu or ned) of the world frame that it hangs on, and the transform into that one."""

    axes: str
    translation: ArrayLike | None = None
    """(3,) m; None: the frame is the world frame itself"""
    quat_xyzw: ArrayLike | None = None


def place_in_enu(x: float, y: float, yaw: float, frame: FrameAxes, name: str) -> dict[str, Any]:
    """x, y (m) and yaw (rad about the frame's z, from its x) as x east, y north, yaw counter-clockwise from east.

    Raises FrameError for a frame whose z axis is not vertical: there x and y alone name no point of the ground.
    """
    if frame.translation is None or frame.quat_xyzw is None:
        return from_ned(x, y, yaw) if frame.axes == "ned" else {"x": x, "y": y, "yaw": yaw}
    vertical = quat_rotate(frame.quat_xyzw, (0.0, 0.0, 1.0))
    if math.hypot(float(vertical[0]), float(vertical[1])) > VERTICAL_TOLERANCE:
        raise FrameError(f"frame {name!r}: its z axis is not vertical, so x and y alone name no point of the ground")
    point = quat_rotate(frame.quat_xyzw, (x, y, 0.0)) + np.asarray(frame.translation, float)
    ahead = quat_rotate(frame.quat_xyzw, (math.cos(yaw), math.sin(yaw), 0.0))
    if frame.axes == "ned":
        point, ahead = ned_to_enu(point), ned_to_enu(ahead)
    return {"x": float(point[0]), "y": float(point[1]), "yaw": math.atan2(float(ahead[1]), float(ahead[0]))}


def poses_in_frame(position_enu: ArrayLike, yaw: ArrayLike, frame: FrameAxes) -> tuple[Floats, Floats]:
    """(n, 3) positions, (n,) yaws in ENU -> positions and orientations (n, 4) xyzw, base_link (FLU) into the frame."""
    position = np.asarray(position_enu, float)
    half = np.asarray(yaw, float) / 2
    zero = np.zeros_like(half)
    orientation = np.stack([zero, zero, np.sin(half), np.cos(half)], axis=-1)
    if frame.axes == "ned":
        position = np.asarray(enu_to_ned(position)) + 0.0
        orientation = np.asarray(quat_ned_frd_to_ned_flu(quat_enu_flu_to_ned_frd(orientation)))
    if frame.translation is not None and frame.quat_xyzw is not None:
        back = np.broadcast_to(quat_conjugate(frame.quat_xyzw), orientation.shape)
        position = np.asarray(quat_rotate(back, position - np.asarray(frame.translation, float)))
        orientation = np.asarray(quat_multiply(back, orientation))
    return position, orientation
