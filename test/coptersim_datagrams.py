# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""CopterSim's datagrams as bytes, from a public description of its protocol."""

from __future__ import annotations

TRUTH_168 = (
    bytes.fromhex(
        "15cd5b07 01000000 03000000 00000000 9a99993f 9a9999be cdcc4c3d 0ad7233c "
        "0ad7a3bc 0000c03f b1503b3f 00000000 00000000 567d2e3f 00409c45 00409c45 "
        "00409c45 00409c45"
    )
    + bytes(24)
    + bytes.fromhex(
        "c3f51cc1 00000000 00000000 cdcccc3d 00000000 00002940 00000000 00002440 "
        "00000000 00001440 00000000 000004c0 a3c9c518 58172140 711fb935 e9b24740 "
        "00000000 00807e40"
    )
)
"""Id 1, type 3, VelE 1.2 -0.3 0.05, euler 0.01 -0.02 1.5, 4 motors at 5000 rpm, AccB z -9.81,
RateB z 0.1, 12.5 s, PosE 10 5 -2.5, PosGPS 8.545594 47.397742 488."""
TRUTH_112 = (
    bytes.fromhex(
        "d3029649 01000000 03000000 4c52401c 44f41705 40720700 00007a44 00007a44 00007a44 00007a44"
    )
    + bytes(16)
    + bytes.fromhex(
        "9a99993f 9a9999be cdcc4c3d 0ad7233c 0ad7a3bc 0000c03f 00000000 00002440 "
        "00000000 00001440 00000000 000004c0 00000000 00002940"
    )
)
"""The same with PosGpsInt 473977420 85455940 488000, and 4 motors at 1000 rpm."""
TRUTH_200 = (
    bytes.fromhex(
        "ffffffff 98000000 01000000 03000000 00000000 00002940 9a99993f 9a9999be "
        "cdcc4c3d 00002041 0000a040 000020c0 0ad7233c 0ad7a3bc 0000c03f 0000803f"
    )
    + bytes(52)
    + bytes.fromhex(
        "c3f51cc1 00000000 00000000 cdcccc3d 00000000 a3c9c518 58172140 711fb935 "
        "e9b24740 00000000 00807e40"
    )
    + bytes(40)
)
"""The same without motors."""
ORIGIN = bytes.fromhex("d2029649 01000000 55ccf742 b7134440 a0877f7d 99105d40 00000000 00004940")
"""Id 1: 40.1540302, 116.2593683, 50."""
CRASH = bytes.fromhex("d2029649 01000000 02000000")
"""Vehicle 1 with 2."""
STATE_52 = bytes.fromhex(
    "d2029649 4c52401c 44f41705 40720700 0ad7233c 0ad7a3bc 0000c03f 00002041 "
    "0000a040 000020c0 9a99993f 9a9999be cdcc4c3d"
)
"""Home 47.397742 8.545594 488, euler 0.01 -0.02 1.5, pos 10 5 -2.5, vel 1.2 -0.3 0.05."""
READY_52 = bytes.fromhex("d3029649") + bytes(48)
"""The estimator is ready."""
CRASH_52 = bytes.fromhex("d4029649 00000000 03000000") + bytes(40)
"""Collision with 3."""
STATE_120 = bytes.fromhex(
    "ffffffff 70000000 88130000 01000000 4c52401c 44f41705 40720700 78000000 "
    "e2ffffff 05000000 a850401c 98f01705 40720700 c4090000 905f0100 0c000000 "
    "03000000 00000000 0ad7233c 0ad7a3bc 0000c03f 00002041 0000a040 000020c0 "
    "9a99993f 9a9999be cdcc4c3d cdcccc3e 9a99193f 0000803f"
)
"""The same estimate from home 47.3977 8.5455 488, 5000 ms, id 1, ready."""
VELOCITY_24 = bytes.fromhex("d2029649 00000000 0000c03f 000000bf 00000000 cdcc4c3e")
"""NED 1.5 -0.5 0, yaw rate 0.2."""
POSITION_24 = bytes.fromhex("d2029649 02000000 00002041 0000a040 000000c1 c3f5c83f")
"""NED 10 5 -8, yaw 1.57."""
ARM_24 = bytes.fromhex("d2029649 09000000 0000803f") + bytes(12)
"""Arm."""
TAKE_OFF_24 = bytes.fromhex("d2029649 0b000000 00000000 00000000 000020c1 00000000")
"""Mode 11: take-off to -10."""
VELOCITY_120 = (
    bytes.fromhex("03000000 50000000 d2040000 01000000 c7070000 01000000")
    + bytes(12)
    + bytes.fromhex("0000c03f 000000bf")
    + bytes(20)
    + bytes.fromhex("cdcc4c3e")
    + bytes(52)
)
"""The same velocity, id 1, 1234 ms."""
POSITION_120 = (
    bytes.fromhex(
        "03000000 50000000 d0070000 02000000 f80b0000 01000000 00002041 0000a040 000000c1"
    )
    + bytes(24)
    + bytes.fromhex("c3f5c83f")
    + bytes(56)
)
"""The same position, id 2, 2000 ms."""
