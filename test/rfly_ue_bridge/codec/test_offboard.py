# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Commands to CopterSim against datagrams written by hand."""

from __future__ import annotations

import struct

import coptersim_datagrams as datagrams
import pytest

from rfly_common.errors import PacketError
from rfly_ue_bridge.codec.coptersim import (
    OFFBOARD,
    ControlMode,
    encode_offboard,
    encode_offboard_frame,
)

VELOCITY = (1.5, -0.5, 0.0, 0.2)
POSITION = (10.0, 5.0, -8.0, 1.57)


@pytest.mark.parametrize(
    ("mode", "controls", "expected"),
    [
        (ControlMode.VELOCITY_NED, VELOCITY, datagrams.VELOCITY_24),
        (ControlMode.POSITION_NED, POSITION, datagrams.POSITION_24),
        (ControlMode.ARM, (1.0, 0.0, 0.0, 0.0), datagrams.ARM_24),
        (11, (0.0, 0.0, -10.0, 0.0), datagrams.TAKE_OFF_24),
    ],
)
def test_commands_of_udp_mode_1(mode, controls, expected):
    assert encode_offboard(mode, controls) == expected
    packet = OFFBOARD.decode(expected)
    assert packet["ctrlMode"] == mode
    assert packet["controls"] == pytest.approx(controls)


@pytest.mark.parametrize(
    ("mode", "controls", "copter_id", "time_ms", "expected"),
    [
        (ControlMode.VELOCITY_NED, VELOCITY, 1, 1234, datagrams.VELOCITY_120),
        (ControlMode.POSITION_NED, POSITION, 2, 2000, datagrams.POSITION_120),
    ],
)
def test_commands_of_udp_mode_0(mode, controls, copter_id, time_ms, expected):
    assert encode_offboard_frame(mode, controls, copter_id, time_ms) == expected
    assert OFFBOARD.decode(expected)["copterID"] == copter_id


def test_a_velocity_in_the_bodys_axes_of_udp_mode_0_has_frame_8():
    ned = datagrams.VELOCITY_120
    expected = ned[:20] + struct.pack("<I", 8) + ned[24:]
    assert encode_offboard_frame(ControlMode.VELOCITY_BODY, VELOCITY, 1, 1234) == expected


def test_udp_mode_0_cannot_arm():
    with pytest.raises(ValueError, match="ARM"):
        encode_offboard_frame(ControlMode.ARM, (1.0, 0.0, 0.0, 0.0), 1, 0)


def test_the_packet_of_node_commands_is_not_known():
    shell = struct.pack("<iid256s", 20240719, 1, 0.0, b"calc.exe")
    with pytest.raises(PacketError):
        OFFBOARD.decode(shell)
