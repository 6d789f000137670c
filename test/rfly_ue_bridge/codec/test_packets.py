# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The machinery of packets: what a declaration and a table refuse, whatever the packets are."""

from __future__ import annotations

import struct

import pytest

from rfly_common.errors import PacketError
from rfly_ue_bridge.codec.packets import Field, PacketTable, PacketType


def test_declaration_with_a_wrong_size_is_refused():
    with pytest.raises(ValueError, match="the fields make 8 bytes, declared are 9"):
        PacketType("Wrong", 9, (1,), (Field("checksum", "i"), Field("x", "f")))


def test_a_checksum_of_two_bytes_can_be_declared():
    """One of RflySim's packets begins with a uint16; the checksum is a field like any other."""
    packet_type = PacketType("Small", 6, (12346,), (Field("checksum", "H"), Field("value", "I")))
    table = PacketTable([packet_type])
    assert table.decode(struct.pack("<HI", 12346, 7))["value"] == 7
    with pytest.raises(PacketError):
        table.decode(struct.pack("<HI", 12345, 7))


def test_two_packets_of_one_size_and_checksum_are_refused():
    one = PacketType("One", 4, (1, 2), (Field("checksum", "i"),))
    two = PacketType("Two", 4, (2,), (Field("checksum", "i"),))
    with pytest.raises(ValueError, match="One and Two"):
        PacketTable([one, two])
