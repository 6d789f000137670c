"""Conversion of vehicle states from any frame to the ENU world frame `map`, without invalid ones."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.frames import (
    ned_to_enu,
    quat_multiply,
    quat_ned_flu_to_ned_frd,
    quat_ned_frd_to_enu_flu,
    quat_rotate,
)
from rfly_common.vehicle_states import VehicleStates, usable_states


def states_to_enu(
    states: VehicleStates, axes: str, translation: ArrayLike | None = None, quat_xyzw: ArrayLike | None = None
) -> tuple[VehicleStates, dict[str, int]]:
    """The usable vehicles in `map`, in their order, and how many were left out by reason (`usable_states`).

    `axes` are the world frame's: enu or ned. For states in another frame, `translation` (3,) m and `quat_xyzw` (4,)
    are the transform of that frame into the world frame. Orientations come back with norm 1.
    """
    if axes not in ("enu", "ned"):
        raise ValueError(f"axes: {axes!r}, expected 'enu' or 'ned'")
    usable, dropped = usable_states(states)
    if dropped:
        states = states.select(usable)
    position: Any = states.position
    velocity: Any = states.velocity.astype(float)
    norm = np.sqrt(np.einsum("ij,ij->i", states.orientation, states.orientation))
    orientation: Any = states.orientation / norm[:, None]
    if quat_xyzw is not None:
        orientation = quat_multiply(np.asarray(quat_xyzw, float), orientation)
        position, velocity = quat_rotate(quat_xyzw, position), quat_rotate(quat_xyzw, velocity)
    if translation is not None:
        position = position + np.asarray(translation, float)
    if axes == "ned":
        position, velocity = ned_to_enu(position), ned_to_enu(velocity)
        orientation = quat_ned_frd_to_enu_flu(quat_ned_flu_to_ned_frd(orientation))
    in_map = dataclasses.replace(states, position=position, velocity=velocity, orientation=orientation, frame_id="map")
    return in_map, dropped
