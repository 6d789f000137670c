# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""States of many vehicles as arrays, their checks, and their conversion to the ENU frame `map`."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Bools, Floats
from rfly_common.errors import VehicleStatesError
from rfly_common.frames import (
    ned_to_enu,
    quat_multiply,
    quat_ned_flu_to_ned_frd,
    quat_ned_frd_to_enu_flu,
    quat_rotate,
)

MAX_VEHICLES = 1_000_000
MAX_MOTORS = 8
QUATERNION_NORM_TOLERANCE = 1e-3
NOT_FINITE = "not_finite"
BAD_QUATERNION = "bad_quaternion"
TOO_FAR = "too_far"
FARTHEST = 1e8
"""Distance from the origin, m, twice around the Earth: a position beyond it is refused."""


_FIELDS: tuple[tuple[str, np.dtype[Any], int | None, float], ...] = (
    ("id", np.dtype(np.int32), None, 0),
    ("vehicle_type", np.dtype(np.int32), None, 0),
    ("position", np.dtype(np.float64), 3, 0),
    ("orientation", np.dtype(np.float64), 4, 0),
    ("velocity", np.dtype(np.float32), 3, 0),
    ("angular_velocity", np.dtype(np.float32), 3, 0),
    ("motor_speed", np.dtype(np.float32), 0, 0),
    ("scale", np.dtype(np.float32), 3, 1),
    ("fit_ground", np.dtype(np.bool_), None, 0),
)
"""Name, type, numbers of a vehicle (None: one, without an axis), default."""


@dataclass(frozen=True, eq=False)
class VehicleStates:
    """States of n vehicles at one instant, in one frame.

    Arrays that were empty on the wire are filled with their defaults. Raises VehicleStatesError if
    lengths disagree, an id repeats, or there are more than 8 motors.
    """

    id: NDArray[np.int32]
    """RflySim copterID, (n,)."""
    vehicle_type: NDArray[np.int32]
    """RflySim vehicleType, (n,)."""
    position: Floats
    """Positions, (n, 3), in `frame_id`, m."""
    orientation: Floats
    """Rotations from base_link (FLU) to `frame_id`, (n, 4), xyzw."""
    velocity: NDArray[np.float32] = None  # type: ignore[assignment]
    """Velocities, (n, 3), axes of `frame_id`, m/s; 0 by default."""
    angular_velocity: NDArray[np.float32] = None  # type: ignore[assignment]
    """Angular velocities, (n, 3), axes of base_link (FLU), rad/s; 0 by default."""
    motor_speed: NDArray[np.float32] = None  # type: ignore[assignment]
    """Motor speeds, (n, motors), rad/s; no motors by default."""
    scale: NDArray[np.float32] = None  # type: ignore[assignment]
    """Scales along the model's axes, (n, 3); 1 by default."""
    fit_ground: Bools = None  # type: ignore[assignment]
    """True if RflySim3D puts the model on its own ground, (n,); False by default."""
    frame_id: str = "map"
    source: str = ""
    """Fully qualified name of the publishing node."""
    stamp_ns: int = 0
    """Time of the states, ns of the node's clock; 0 means now."""

    def __post_init__(self) -> None:
        n = np.size(self.id)
        if n > MAX_VEHICLES:
            raise VehicleStatesError(
                f"id: {n} vehicles in one message, at most {MAX_VEHICLES} are taken"
            )

        for name, dtype, axis, default in _FIELDS:
            value = getattr(self, name)
            default_shape = (n,) if axis is None else (n, axis)
            if np.ma.is_masked(value):  # NumPy would take the numbers below the mask
                raise VehicleStatesError(f"{name}: some are masked, expected numbers")
            if type(value) is np.ndarray and value.dtype == dtype and value.shape == default_shape:
                continue

            if value is None:
                array = np.full(default_shape, default, dtype)
            elif np.issubdtype(dtype, np.integer):
                array = _whole_numbers(name, value, dtype)
            else:
                array = np.asarray(value, dtype)

            # the number of motors is free
            shape = default_shape
            if name == "motor_speed" and array.ndim == 2:
                if array.shape[1] > MAX_MOTORS:
                    raise VehicleStatesError(
                        f"{name}: {array.shape[1]} motors a vehicle, expected at most {MAX_MOTORS}"
                    )
                shape = (n, array.shape[1])

            # messages hold flat arrays; an array of rows has one for each vehicle
            if axis is not None and array.ndim == 2 and array.shape != shape:
                raise VehicleStatesError(f"{name}: shape {array.shape}, expected {shape}")
            if array.size != math.prod(shape):
                raise VehicleStatesError(
                    f"{name}: {array.size} numbers for {n} vehicles, expected {math.prod(shape)}"
                )
            object.__setattr__(self, name, array.reshape(shape))

        if n > 1 and _repeats(self.id):
            ids, counts = np.unique(self.id, return_counts=True)
            repeated = int(ids[np.argmax(counts)])
            raise VehicleStatesError(
                f"id: {repeated} is in the message {int(counts.max())} times, each id may come once"
            )

    def __len__(self) -> int:
        return len(self.id)

    def select(self, keep: NDArray[Any]) -> VehicleStates:
        """Return the vehicles that a mask or index array names, in that order."""
        return dataclasses.replace(
            self, **{name: getattr(self, name)[keep] for name, *_ in _FIELDS}
        )


def _whole_numbers(name: str, value: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return whole numbers as integers. Raise VehicleStatesError for others and too large ones."""
    array = np.asarray(value)
    with np.errstate(invalid="ignore"):  # of a NaN
        whole = array.astype(dtype)

    wrong = array[whole != array]
    if wrong.size:
        limits = np.iinfo(whole.dtype)
        raise VehicleStatesError(
            f"{name}: {wrong[0]}, expected whole numbers from {limits.min} to {limits.max}"
        )
    return whole


def msg_to_states(message: Any) -> VehicleStates:
    """Return the states of a VehicleStateArray of ROS or of a log, as views of its arrays.

    Raises VehicleStatesError if lengths disagree or an id repeats.
    """
    n = len(message.id)
    stamp = message.header.stamp

    return VehicleStates(
        id=np.asarray(message.id),
        vehicle_type=np.asarray(message.vehicle_type),
        position=np.asarray(message.position),
        orientation=np.asarray(message.orientation),
        velocity=_or_none(message.velocity),
        angular_velocity=_or_none(message.angular_velocity),
        motor_speed=_motor_speed(message.motor_speed, n, int(message.motors)),
        scale=_or_none(message.scale),
        fit_ground=_or_none(message.fit_ground),
        frame_id=message.header.frame_id,
        source=message.source,
        stamp_ns=stamp.sec * 1_000_000_000 + stamp.nanosec,
    )


def _or_none(values: Any) -> Any:
    """Return an array; None for an empty one. mcap-ros2-support reads uint8[] as bytes."""
    if isinstance(values, bytes):
        values = np.frombuffer(values, np.uint8)
    return np.asarray(values) if len(values) else None


def _motor_speed(values: Any, vehicles: int, motors: int) -> Any:
    if len(values) == 0:
        return np.zeros((vehicles, motors), np.float32)
    flat = np.asarray(values)
    if motors and flat.size == vehicles * motors:
        return flat.reshape(vehicles, motors)
    return flat  # VehicleStates names the disagreement


def usable_states(states: VehicleStates) -> tuple[Bools, dict[str, int]]:
    """Return a mask (n,) of the vehicles with possible numbers, and counts of the others by reason.

    Not usable: a NaN or infinity in position, orientation, velocity, motor speed or scale
    (`not_finite`), and a quaternion whose norm differs from 1 by more than
    QUATERNION_NORM_TOLERANCE (`bad_quaternion`).
    """
    with np.errstate(all="ignore"):
        # a good norm shows that orientations are finite
        arrays = (states.position, states.velocity, states.motor_speed, states.scale)
        norm = np.sqrt(np.einsum("ij,ij->i", states.orientation, states.orientation))
        good = np.abs(norm - 1.0) <= QUATERNION_NORM_TOLERANCE  # False for NaN too
    if good.all() and all(np.isfinite(array).all() for array in arrays):
        return good, {}

    # counts by reason
    finite = np.logical_and.reduce([np.isfinite(array).all(axis=1) for array in arrays])
    finite &= np.isfinite(states.orientation).all(axis=1)
    bad = ~good & np.isfinite(states.orientation).all(axis=1)
    usable = finite & good
    counts = {
        NOT_FINITE: int(np.count_nonzero(~usable & ~bad)),
        BAD_QUATERNION: int(np.count_nonzero(bad)),
    }
    return usable, {reason: count for reason, count in counts.items() if count}


def _repeats(ids: NDArray[np.int32]) -> bool:
    """Return whether a number comes twice; the usual ascending ids are recognised first."""
    if (ids[1:] > ids[:-1]).all():
        return False
    in_order = np.sort(ids)
    return bool((in_order[1:] == in_order[:-1]).any())


def states_to_enu(
    states: VehicleStates,
    axes: str,
    translation: ArrayLike | None = None,
    quat_xyzw: ArrayLike | None = None,
) -> tuple[VehicleStates, dict[str, int]]:
    """Return the usable vehicles in `map`, in their order, and counts of the others by reason.

    `axes` are the world frame's: enu or ned. For states in another frame, `translation` (3,) m and
    `quat_xyzw` (4,) are the transform of that frame into the world frame. Orientations come back
    with norm 1. Reasons: see `usable_states`.
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

    # into the world frame
    if quat_xyzw is not None:
        orientation = quat_multiply(np.asarray(quat_xyzw, float), orientation)
        position = quat_rotate(quat_xyzw, position)
        velocity = quat_rotate(quat_xyzw, velocity)
    if translation is not None:
        position = position + np.asarray(translation, float)

    if axes == "ned":
        position = ned_to_enu(position)
        velocity = ned_to_enu(velocity)
        orientation = quat_ned_frd_to_enu_flu(quat_ned_flu_to_ned_frd(orientation))

    in_map = dataclasses.replace(
        states, position=position, velocity=velocity, orientation=orientation, frame_id="map"
    )
    return in_map, dropped
