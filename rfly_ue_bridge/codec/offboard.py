# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Commands for a vehicle that CopterSim simulates, for UDP 20100 + 2 (CopterID - 1).

Which packet CopterSim reads depends on the UDP mode with which it was started: 24 bytes in mode 1
(UDP_Simple), 120 bytes in mode 0 (UDP_Full). In the other modes it reads MAVLink.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from rfly_ue_bridge.codec.packets import Field, PacketTable, PacketType


class ControlMode(IntEnum):
    """Meaning of a command's four numbers, RflySim's ctrlMode."""

    VELOCITY_NED = 0
    """North, east, down, m/s, and yaw rate, rad/s."""
    VELOCITY_BODY = 1
    """Forward, right, down, m/s, and yaw rate, rad/s."""
    POSITION_NED = 2
    """North, east, down of the start point, m, and yaw, rad."""
    ARM = 9
    """1 arms, 0 disarms; then three zeros."""


OFFBOARD_SHORT = PacketType(
    "inOffboardShortData", 24, (1234567890,),
    (
        Field("checksum", "i"),
        Field("ctrlMode", "i"),
        Field("controls", "4f", "by ctrlMode; NED or FRD"),
    ),
)  # fmt: skip
"""Command in UDP mode 1."""

OFFBOARD_FRAME = PacketType(
    "inHILCMDData", 120, (80,),
    (
        Field("tg", "i", "3"),
        Field("len", "i", "80"),
        Field("time", "I", "ms"),
        Field("copterID", "I"),
        Field("type_mask", "I", "what is ignored, as in MAVLink"),
        Field("frame", "I", "1 local NED, 8 body"),
        Field("controls", "16f", "position, velocity, acceleration (3 each), yaw, yaw rate, 0 …"),
        Field("unused", "32B"),
    ),
    mark="len",
)  # fmt: skip
"""Command in UDP mode 0."""

OFFBOARD = PacketTable((OFFBOARD_SHORT, OFFBOARD_FRAME))
"""Packets on UDP 20100 …"""

_TARGET = 3
_YAW = 9
_YAW_RATE = 10
_LOCAL_NED = 1
_BODY = 8
_ONLY_VELOCITY_AND_YAW_RATE = 0x7C7
_ONLY_POSITION_AND_YAW = 0xBF8


def encode_offboard(mode: int, controls: Sequence[float]) -> bytes:
    """Return the command of UDP mode 1; `controls` (4,) as in `ControlMode`."""
    return OFFBOARD_SHORT.pack({"checksum": 1234567890, "ctrlMode": mode, "controls": controls})


def encode_offboard_frame(
    mode: ControlMode, controls: Sequence[float], copter_id: int, time_ms: int
) -> bytes:
    """Return the command of UDP mode 0; `controls` (4,) as in `ControlMode`.

    `time_ms` counts from any start. ValueError for a mode that the packet cannot express.
    """
    numbers = [0.0] * 16
    if mode in (ControlMode.VELOCITY_NED, ControlMode.VELOCITY_BODY):
        numbers[3:6] = controls[:3]
        numbers[_YAW_RATE] = controls[3]
        mask = _ONLY_VELOCITY_AND_YAW_RATE
    elif mode == ControlMode.POSITION_NED:
        numbers[0:3] = controls[:3]
        numbers[_YAW] = controls[3]
        mask = _ONLY_POSITION_AND_YAW
    else:
        raise ValueError(f"{mode!r}: UDP mode 0 has no packet for it")

    frame = _BODY if mode == ControlMode.VELOCITY_BODY else _LOCAL_NED
    packet = OFFBOARD_FRAME.make(
        tg=_TARGET,
        time=time_ms,
        copterID=copter_id,
        type_mask=mask,
        frame=frame,
        controls=numbers,
        unused=bytes(32),
    )
    return packet.encode()
