# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Batch decoding of vehicle state datagrams to arrays; single packets for all others.

Datagrams of one size are read with one `frombuffer`, so 5,000 a second cost little more than 50.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Bools, Floats, Ints, Rows
from rfly_common.errors import PacketError
from rfly_ue_bridge.codec.packets import Packet, PacketType
from rfly_ue_bridge.codec.to_rflysim3d import (
    CHECKSUM_GROUND,
    SOUT2_SIMULATOR_FRAME,
    TO_RFLYSIM3D,
)

MAX_COORDINATE_M = 1e6
"""Largest position or scale; one beyond is damaged, and a browser draws in float32."""


@dataclass(frozen=True, eq=False)
class StateBatch(Rows):
    """States of n vehicles, each id once (the last one counts)."""

    id: Ints
    vehicle_type: Ints
    position_ned: Floats
    """Positions, (n, 3), m."""
    euler: Floats
    """Roll, pitch, yaw of FRD in NED, (n, 3), rad."""
    velocity_ned: Floats
    """Velocities, (n, 3), m/s; NaN where the packet carries none."""
    scale: Floats
    """Scales, (n, 3); NaN where the packet carries none."""
    motor_speed_rpm: Floats
    """Mean speed of the motors that turn, (n,), rpm; of a land-air vehicle: of its rotors."""
    wheel_speed_rpm: Floats
    """Mean speed of a land-air vehicle's wheels, (n,), rpm, positive = forward; else 0."""
    on_ground: Bools
    """True if the vehicle is kept on the ground, whatever its z."""

    def scaled(self, factor: float) -> StateBatch:
        """Return the states with positions times `factor`, without those that leave the world."""
        if factor == 1.0:
            return self
        position = factor * self.position_ned
        inside = (np.abs(position) <= MAX_COORDINATE_M).all(axis=1)
        return dataclasses.replace(self, position_ned=position).select(inside)


def land_air_rotors(vehicle_type: ArrayLike) -> Ints:
    """Return how many of each vehicle's motor channels are rotors, (n,).

    0 means that it is no land-air vehicle. The channels of rotors come before those of wheels. The
    number is in the vehicle type, a look of RflySim's class 3: 400003, 600003, 800003.
    """
    types = np.asarray(vehicle_type, np.int64)
    return np.where(np.isin(types, (400_003, 600_003, 800_003)), types // 100_000, 0)


_MARKS = {SOUT2_SIMULATOR_FRAME.size: 4}
"""Place of the checksum in a packet of a size, where it is not the first field, bytes."""


def read_batches(
    datagrams: Sequence[bytes], counters: Counter[str]
) -> Iterator[StateBatch | Packet]:
    """Yield the states and packets of a run of datagrams, in their order.

    States are gathered up to the next packet of another kind. `counters` counts by packet name and,
    for dropped datagrams, by reason: `length`, `checksum`, `text`, `not_finite`.
    """
    state_packets = {
        kind.name
        for kind in TO_RFLYSIM3D
        if {"vehicleType", "PosE"} <= {field.name for field in kind.fields}
    }
    pending: _Pending = {}
    kinds: dict[tuple[int, bytes], PacketType | str] = {}

    for number, datagram in enumerate(datagrams):
        mark = _MARKS.get(len(datagram), 0)
        key = (len(datagram), datagram[mark : mark + 4])
        kind = kinds.get(key)
        if kind is None:
            kind = kinds[key] = _kind_or_reason(datagram)
        if isinstance(kind, str):
            counters[kind] += 1
            continue

        if kind.name in state_packets:
            _, numbers, raw = pending.setdefault(key, (kind, [], []))
            numbers.append(number)
            raw.append(datagram)
            continue

        try:
            packet = kind.read(datagram)
        except PacketError as error:
            counters[error.reason] += 1
            continue

        counters[kind.name] += 1
        if pending:
            yield _gather(pending, counters)
            pending = {}
        yield packet

    if pending:
        yield _gather(pending, counters)


_Pending = dict[tuple[int, bytes], tuple[PacketType, list[int], list[bytes]]]
"""Pending states by length and checksum: packet type, orders of arrival, datagrams."""


def _kind_or_reason(datagram: bytes) -> PacketType | str:
    try:
        return TO_RFLYSIM3D.find(datagram)
    except PacketError as error:
        return error.reason


def _gather(pending: _Pending, counters: Counter[str]) -> StateBatch:
    """Return one batch of all pending states, the last of each id."""
    parts = []
    for kind, numbers, raw in pending.values():
        counters[kind.name] += len(raw)
        records = np.frombuffer(b"".join(raw), kind.dtype)
        parts.append(_columns(kind, records, np.asarray(numbers)))
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    # undamaged states
    position = columns["position_ned"]
    good = np.isfinite(position).all(axis=1) & np.isfinite(columns["euler"]).all(axis=1)
    good &= (np.abs(position) <= MAX_COORDINATE_M).all(axis=1)
    good &= ~(np.abs(columns["scale"]) > MAX_COORDINATE_M).any(axis=1)
    good &= np.isfinite(columns["motor_speed_rpm"]) & np.isfinite(columns["wheel_speed_rpm"])
    counters["not_finite"] += int(np.count_nonzero(~good))

    # in order of arrival, the last of each id
    order = np.argsort(columns.pop("order"), kind="stable")
    order = order[good[order]]
    ids = columns["id"][order]
    _, last = np.unique(ids[::-1], return_index=True)
    order = order[np.sort(len(ids) - 1 - last)]
    return StateBatch(**{name: column[order] for name, column in columns.items()})


def _columns(
    kind: PacketType, records: NDArray[Any], numbers: NDArray[Any]
) -> dict[str, NDArray[Any]]:
    """Return the columns of a StateBatch and `order`, for one packet type; without unused slots.

    A field of a fleet packet holds the values of all its vehicles, so its count over three is their
    number.
    """
    n = len(records)
    slots = max(records.dtype["copterID"].shape, (1,))[0]
    fields = records.dtype.names or ()

    def flat(name: str, width: int, missing: float = np.nan) -> Floats:
        if name not in fields:
            return np.full((n * slots, width), missing)
        with np.errstate(invalid="ignore"):  # a signalling NaN
            return records[name].reshape(n * slots, width).astype(np.float64)

    # speeds of motors and wheels
    types = records["vehicleType"].reshape(-1).astype(np.int64)
    wheel_rpm = np.zeros(n * slots)
    motor_name = next((name for name in ("MotorRPMS", "PWMs") if name in fields), "")
    if "MotorRPMSMean" in fields:
        rpm = flat("MotorRPMSMean", 1)[:, 0]
    elif motor_name:
        signed = flat(motor_name, 8)
        rotors = land_air_rotors(types)
        is_wheel = (np.arange(8) >= rotors[:, None]) & (rotors > 0)[:, None] & (signed != 0)
        wheels = np.maximum(is_wheel.sum(axis=1), 1)
        wheel_rpm = np.where(is_wheel, signed, 0.0).sum(axis=1) / wheels
        motors = np.where(is_wheel, 0.0, np.abs(signed))
        turning = np.count_nonzero(motors, axis=1)
        rpm = motors.sum(axis=1) / np.maximum(turning, 1)
    else:
        rpm = np.zeros(n * slots)

    ground = len(kind.checksums) > 1
    columns: dict[str, NDArray[Any]] = {
        "id": records["copterID"].reshape(-1).astype(np.int64),
        "vehicle_type": types,
        "position_ned": flat("PosE", 3),
        "euler": flat("AngEuler", 3),
        "velocity_ned": flat("VelE", 3),
        "scale": flat("Scale", 3) / (100.0 if slots > 1 else 1.0),
        "motor_speed_rpm": rpm,
        "wheel_speed_rpm": wheel_rpm,
        "on_ground": np.repeat((records[kind.mark] == CHECKSUM_GROUND) & ground, slots),
        "order": np.repeat(numbers, slots),
    }

    if slots == 1:
        return columns
    used = columns["id"] != 0
    return {name: column[used] for name, column in columns.items()}


def counted(counters: Counter[str]) -> tuple[int, int]:
    """Return (packets understood, datagrams dropped) of `read_batches`' counters."""
    dropped = sum(counters[reason] for reason in DROP_REASONS)
    return counters.total() - dropped, dropped


DROP_REASONS: Iterable[str] = ("length", "checksum", "text", "not_finite")
