# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Choice of packet for each vehicle, and packing of whole fleets.

| vehicle                           | packet                                                   |
| --------------------------------- | -------------------------------------------------------- |
| by itself                         | SOut2SimulatorSimpleTime (current)                       |
| by itself, kept on the ground     | SOut2SimulatorSimple, checksum 1234567891                |
| by itself, a scale other than 1   | SOut2SimulatorSimple1, 1234567891 if kept on the ground  |
| in a fleet of more than 20        | Multi3DData100New, 100 in each; those that are kept on   |
|                                   | the ground in packets of their own                       |

Ids, types and scales of the fleet packet are uint16; a vehicle that does not fit goes by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Bools
from rfly_ue_bridge.codec.ned_states import NedStates
from rfly_ue_bridge.codec.packets import PacketType
from rfly_ue_bridge.codec.to_rflysim3d import (
    CHECKSUM,
    CHECKSUM_GROUND,
    CHECKSUM_TIME,
    MULTI3D_DATA_2_NEW,
    MULTI3D_DATA_100_NEW,
    SOUT2_SIMULATOR_SIMPLE,
    SOUT2_SIMULATOR_SIMPLE1,
    SOUT2_SIMULATOR_SIMPLE_TIME,
)

Packets = Literal["auto", "single", "batch"]

SINGLY_UP_TO = 20
"""Number of vehicles up to which `auto` sends the vehicles of a message one by one."""
NO_TIME = -1.0
"""Value of runnedTime in a packet that carries no time."""

MAX_UINT16 = 65535
"""Largest id and type in a fleet packet."""
MAX_SCALE = 655.35
"""Largest scale in a fleet packet, which holds hundredths as uint16."""
_MIN_FLEET_SCALE = np.float32(0.005)
"""Scales up to this round to 0 hundredths, which would make the vehicle vanish."""

_NO_GPS = (0, 0, 0)
_NO_MOTORS = (0.0,) * 8
_NO_VELOCITY = (0.0, 0.0, 0.0)
_pack_time = SOUT2_SIMULATOR_SIMPLE_TIME.struct.pack


@dataclass(frozen=True, eq=False)
class DatagramRun:
    """Consecutive datagrams of one size in one buffer."""

    buffer: memoryview
    size: int

    def __len__(self) -> int:
        return len(self.buffer) // self.size

    def __iter__(self) -> Iterator[memoryview]:
        buffer = self.buffer
        size = self.size
        return (buffer[start : start + size] for start in range(0, len(buffer), size))


def encode_pose(
    vehicle_id: int,
    vehicle_type: int,
    position_ned: tuple[float, float, float],
    euler: tuple[float, float, float],
) -> bytes:
    """Return one vehicle without velocity and motors as current SOut2SimulatorSimpleTime.

    This is the quick way for a pose. Position in m NED; roll, pitch, yaw in rad of FRD in NED. The
    caller has made sure that the numbers are finite.
    """
    (x, y, z), (roll, pitch, yaw) = position_ned, euler
    return _pack_time(
        CHECKSUM_TIME, vehicle_id, vehicle_type, *_NO_GPS, *_NO_MOTORS, *_NO_VELOCITY,
        # -0.0 becomes 0, as in `states_to_ned`
        roll + 0.0, pitch + 0.0, yaw + 0.0, x + 0.0, y + 0.0, z + 0.0,
        NO_TIME,
    )  # fmt: skip


def encode_states(
    states: NedStates, *, in_fleet: bool, with_motors: bool = False
) -> list[DatagramRun]:
    """Return all datagrams of the vehicles, in their order.

    If `in_fleet`, the fleet packets come first, and then the vehicles that do not fit them. A fleet
    packet holds 100 vehicles with their mean motor speeds, or 20 `with_motors`, the speed of each.
    """
    if not in_fleet:
        return _encode_singly(states)
    fits = _fits_fleet_packet(states)
    packet_type = MULTI3D_DATA_2_NEW if with_motors else MULTI3D_DATA_100_NEW
    if fits.all():
        return _encode_fleet(states, packet_type)
    fleet = _encode_fleet(states.select(fits), packet_type)
    return fleet + _encode_singly(states.select(~fits))


def goes_in_fleet(vehicles: int, packets: Packets) -> bool:
    """Return whether a message of this many vehicles leaves as fleet packets, by `packets`."""
    return packets == "batch" or (packets == "auto" and vehicles > SINGLY_UP_TO)


def datagrams(runs: Iterable[DatagramRun]) -> list[bytes]:
    """Return every datagram by itself."""
    return [bytes(datagram) for run in runs for datagram in run]


def _fits_fleet_packet(states: NedStates) -> Bools:
    ids = states.id
    types = states.vehicle_type
    scale = states.scale
    fits = (ids >= 1) & (ids <= MAX_UINT16) & (types >= 0) & (types <= MAX_UINT16)

    if not (scale == 1).all():
        fits &= (
            (scale <= np.float32(MAX_SCALE)) & ((scale > _MIN_FLEET_SCALE) | (scale == 0))
        ).all(axis=1)
    return fits


def _encode_fleet(states: NedStates, packet_type: PacketType) -> list[DatagramRun]:
    """Return n vehicles in as few fleet packets as hold them, in their order; unused slots are 0.

    Those that are kept on the ground come last, in packets of their own.
    """
    if not len(states):
        return []

    # usually all vehicles of a fleet are of one kind
    on_ground = np.count_nonzero(states.fit_ground)
    if on_ground in (0, len(states)):
        checksum = CHECKSUM_GROUND if on_ground else CHECKSUM
        return [_encode_one_kind(states, packet_type, checksum)]

    return [
        _encode_one_kind(states.select(~states.fit_ground), packet_type, CHECKSUM),
        _encode_one_kind(states.select(states.fit_ground), packet_type, CHECKSUM_GROUND),
    ]


def _encode_one_kind(states: NedStates, packet_type: PacketType, checksum: int) -> DatagramRun:
    columns = {
        "copterID": states.id,
        "vehicleType": states.vehicle_type,
        "PosE": states.position_ned,
        "AngEuler": states.euler,
        "Scale": np.rint(states.scale.astype(np.float64) * 100.0),
        "MotorRPMSMean": states.motor_speed_mean_rpm,
        "PWMs": states.motor_speed_rpm,
    }
    n = len(states)
    per_packet = packet_type.dtype["copterID"].shape[0]
    records = np.empty(-(-n // per_packet), packet_type.dtype)
    full = n // per_packet
    records[full:] = 0

    records["checksum"] = checksum
    for field in packet_type.fields[1:]:
        name = field.name
        values = columns[name]
        each = packet_type.dtype[name].shape[0] // per_packet
        slots = records[name].reshape(len(records), per_packet, each)
        rows = values.reshape(n, each)
        slots[:full] = rows[: full * per_packet].reshape(full, per_packet, each)
        if full < len(records):
            slots[full, : n - full * per_packet] = rows[full * per_packet :]

    return _run(records, packet_type)


def _encode_singly(states: NedStates) -> list[DatagramRun]:
    n = len(states)
    if n == 0:
        return []

    scaled = (states.scale != 1).any(axis=1)
    kinds = np.where(scaled, 2, states.fit_ground)  # 0 with time, 1 on the ground, 2 with scale
    if (kinds == kinds[0]).all():
        return [_encode_kind(states, int(kinds[0]))]

    # runs of one kind keep the vehicles' order
    bounds = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), n]
    encoded = {
        kind: _encode_kind(states.select(kinds == kind), kind) for kind in np.unique(kinds).tolist()
    }

    used = dict.fromkeys(encoded, 0)
    runs = []
    for start, stop in itertools.pairwise(bounds):
        kind = int(kinds[start])
        run = encoded[kind]
        first = used[kind]
        used[kind] = first + stop - start
        runs.append(DatagramRun(run.buffer[first * run.size : used[kind] * run.size], run.size))
    return runs


def _encode_kind(states: NedStates, kind: int) -> DatagramRun:
    packet_type = (SOUT2_SIMULATOR_SIMPLE_TIME, SOUT2_SIMULATOR_SIMPLE, SOUT2_SIMULATOR_SIMPLE1)[
        kind
    ]
    records = np.zeros(len(states), packet_type.dtype)

    records["copterID"] = states.id
    records["vehicleType"] = states.vehicle_type
    records["AngEuler"] = states.euler
    records["PosE"] = states.position_ned

    if packet_type is SOUT2_SIMULATOR_SIMPLE_TIME:
        records["checksum"] = CHECKSUM_TIME
        records["MotorRPMS"] = states.motor_speed_rpm
        records["VelE"] = states.velocity_ned
        records["runnedTime"] = NO_TIME
    else:
        records["checksum"] = np.where(states.fit_ground, CHECKSUM_GROUND, CHECKSUM)
        records["MotorRPMSMean"] = states.motor_speed_mean_rpm

    if packet_type is SOUT2_SIMULATOR_SIMPLE1:
        records["Scale"] = states.scale
    return _run(records, packet_type)


def _run(records: NDArray[Any], packet_type: PacketType) -> DatagramRun:
    return DatagramRun(records.view(np.uint8).data, packet_type.size)
