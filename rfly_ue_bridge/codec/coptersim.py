# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Packets of CopterSim that belong to RflySim3D's sensors: the IMU, and the start of its clock.

CopterSim has the IMU; RflySim3D only pictures and clouds. A request with port and address starts
it, as a sensor's does. All times are s of CopterSim's clock, which is 0 at its start.
"""

from __future__ import annotations

from rfly_ue_bridge.codec.packets import Field, PacketType

IMU_REQUEST = PacketType(
    "SensorReqCopterSim", 36, (12345,),
    (
        Field("checksum", "H"),
        Field("sensorType", "H", "0 = IMU"),
        Field("updateFreq", "H", "Hz"),
        Field("port", "H"),
        Field("IP", "4B", "address to which the data go; 127.0.0.1 = the sender's"),
        Field("Params", "6f", "0"),
    ),
)  # fmt: skip
"""Request to UDP 30100 + 2 (CopterID - 1)."""

IMU_DATA = PacketType(
    "imuDataCopter", 40, (1234567898,),
    (
        Field("checksum", "i"),
        Field("seq", "i"),
        Field("timestmp", "d", "s of simulation"),
        Field("acc", "3f", "m/s^2, FRD; -9.81 down at rest (not confirmed)"),
        Field("rate", "3f", "rad/s, FRD"),
    ),
)  # fmt: skip

RFLY_TIME_STMP = PacketType(
    "RflyTimeStmp", 32, (123456789,),
    (
        Field("checksum", "i"),
        Field("copterID", "i"),
        Field("SysStartTime", "q", "ms since 1970"),
        Field("SysCurrentTime", "q", "ms since 1970"),
        Field("HeartCount", "q"),
    ),
)  # fmt: skip
"""Heart-beat of CopterSim on UDP 20005."""


def encode_imu_request(port: int, address: tuple[int, int, int, int], rate: int) -> bytes:
    """Return the request for a vehicle's IMU at a rate, Hz, to an IPv4 address and port."""
    return IMU_REQUEST.pack_flat(0, rate, port, *address, *(0.0,) * 6)
