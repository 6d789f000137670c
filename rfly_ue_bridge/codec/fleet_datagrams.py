# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Batch datagrams of fleets, straight from arrays: 100 vehicles a packet, or 20 with motor speeds.

Ids, types and scales that do not fit these packets, where they are uint16, are refused;
`encode_states` sends such vehicles singly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Bools
from rfly_ue_bridge.codec.ned_states import all_fit_float32
from rfly_ue_bridge.codec.state_datagrams import (
    MAX_SCALE,
    MAX_UINT16,
    DatagramRun,
    encode_fleet_columns,
)
from rfly_ue_bridge.codec.to_rflysim3d import MOTORS, MULTI3D_DATA_2_NEW, MULTI3D_DATA_100_NEW

_LARGEST_SCALE = np.float32(MAX_SCALE)


def encode_fleet(
    vehicle_id: ArrayLike,
    vehicle_type: ArrayLike,
    position_ned: ArrayLike,
    euler: ArrayLike = 0.0,
    *,
    scale: ArrayLike = 1.0,
    motor_speed_mean_rpm: ArrayLike = 0.0,
    fit_ground: ArrayLike = False,
) -> list[DatagramRun]:
    """Return n vehicles as Multi3DData100New, 100 in each.

    Those on the ground come last, in packets of their own. vehicle_id (n,) 1 to 65535, each once;
    vehicle_type (n,) 0 to 65535; position_ned (n, 3) m; euler (n, 3) rad, roll pitch yaw of FRD in
    NED; scale (n, 3) 0 to 655.35, sent in hundredths; motor_speed_mean_rpm (n,); fit_ground (n,).
    All but the ids may also be anything that broadcasts to their shape. Raises ValueError that
    names argument and limit.
    """
    ids, columns = _common(vehicle_id, vehicle_type, position_ned, euler, scale)
    columns["MotorRPMSMean"] = _floats("motor_speed_mean_rpm", motor_speed_mean_rpm, (len(ids),))
    return encode_fleet_columns(
        MULTI3D_DATA_100_NEW, columns, _booleans("fit_ground", fit_ground, (len(ids),))
    )


def encode_fleet_with_motors(
    vehicle_id: ArrayLike,
    vehicle_type: ArrayLike,
    position_ned: ArrayLike,
    euler: ArrayLike,
    motor_speed_rpm: ArrayLike,
    *,
    scale: ArrayLike = 1.0,
    fit_ground: ArrayLike = False,
) -> list[DatagramRun]:
    """Return n vehicles as Multi3DData2New, 20 in each: as `encode_fleet`, with single motors.

    motor_speed_rpm (n, m), m up to 8 motors. Motors that a vehicle does not have stand still.
    """
    ids, columns = _common(vehicle_id, vehicle_type, position_ned, euler, scale)
    motor_speeds = np.asarray(motor_speed_rpm)
    motors = motor_speeds.shape[-1] if motor_speeds.ndim else MOTORS
    if not 1 <= motors <= MOTORS:
        raise ValueError(f"motor_speed_rpm: {motors} motors, expected 1 to {MOTORS}")

    speeds = np.zeros((len(ids), MOTORS), np.float32)
    speeds[:, :motors] = _floats("motor_speed_rpm", motor_speeds, (len(ids), motors))

    columns["PWMs"] = speeds
    return encode_fleet_columns(
        MULTI3D_DATA_2_NEW, columns, _booleans("fit_ground", fit_ground, (len(ids),))
    )


def _common(
    vehicle_id: ArrayLike,
    vehicle_type: ArrayLike,
    position_ned: ArrayLike,
    euler: ArrayLike,
    scale: ArrayLike,
) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    id_array = np.asarray(vehicle_id)
    if id_array.ndim != 1:
        raise ValueError(f"vehicle_id: an array of {id_array.ndim} axes, expected one axis")
    n = len(id_array)

    # each id once, which ascending ids show
    ids = _integers("vehicle_id", id_array, id_array.shape, 1)
    ascending = (ids[1:] > ids[:-1]).all()
    if not (ids[:1] if ascending else ids).all():
        _refuse("vehicle_id", id_array, id_array < 1, f"1 to {MAX_UINT16}")
    if not ascending:
        present = np.zeros(MAX_UINT16 + 1, np.bool_)
        present[ids] = True
        if np.count_nonzero(present) != n:
            raise ValueError("vehicle_id: an id occurs twice, expected each once")

    # checked before broadcasting: it may be one number for all
    scales = _packable("scale", scale).astype(np.float32)
    if scales.size and (scales.min() < 0 or scales.max() > _LARGEST_SCALE):
        wrong = (scales < 0) | (scales > _LARGEST_SCALE)
        _refuse("scale", scales, wrong, f"0 to {MAX_SCALE}")
    hundredths = np.rint(scales.astype(np.float64) * 100.0).astype(np.uint16)

    return ids, {
        "copterID": ids,
        "vehicleType": _integers("vehicle_type", vehicle_type, (n,), 0),
        "PosE": _floats("position_ned", position_ned, (n, 3)),
        "AngEuler": _floats("euler", euler, (n, 3)),
        "Scale": _broadcast("scale", hundredths, (n, 3)),
    }


def _broadcast(name: str, value: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    array = np.asarray(value)
    if array.shape == shape:
        return array
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(f"{name}: shape {array.shape}, expected {shape}") from None


def _integers(name: str, value: ArrayLike, shape: tuple[int, ...], low: int) -> NDArray[Any]:
    array = _broadcast(name, value, shape)
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"{name}: {array.dtype}, expected whole numbers")
    if array.size:
        # the bits of all numbers together show the largest and a negative one in one look
        bits = np.bitwise_or.reduce(array, axis=None)
        if not 0 <= bits <= MAX_UINT16:
            _refuse(name, array, (array < low) | (array > MAX_UINT16), f"{low} to {MAX_UINT16}")
    return array.astype(np.uint16)


def _floats(name: str, value: ArrayLike, shape: tuple[int, ...]) -> NDArray[Any]:
    return _broadcast(name, _packable(name, value), shape)


def _packable(name: str, value: ArrayLike) -> NDArray[Any]:
    """Return numbers that fit a float32, unchanged: they become float32 in the packet itself."""
    array = np.asarray(value)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name}: {array.dtype}, expected numbers")
    if not all_fit_float32(array):
        with np.errstate(over="ignore"):
            wrong = ~np.isfinite(array.astype(np.float32))
        _refuse(name, array, wrong, "finite numbers up to 3.4e38")
    return array


def _booleans(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Bools:
    array = np.asarray(value)
    if array.ndim:  # one for all stays one
        array = _broadcast(name, array, shape)
    if array.dtype.kind != "b":
        raise ValueError(f"{name}: {array.dtype}, expected True or False")
    return array


def _refuse(name: str, array: NDArray[Any], wrong: Bools, expected: str) -> None:
    if wrong.any():
        index = np.argwhere(wrong)[0]
        raise ValueError(
            f"{name}: {array[tuple(index)]!s} at {index.tolist()}, expected {expected}"
        )
