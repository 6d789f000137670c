# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The packets that RflySim3D sends, against datagrams written by hand, in both directions."""

from __future__ import annotations

import pytest
from feedback_datagrams import CRASH, DATAGRAMS, OBJECT, VEHICLE_CRASH

from rfly_common.errors import PacketError
from rfly_ue_bridge.codec.from_rflysim3d import FROM_RFLYSIM3D


def test_every_packet_has_a_datagram_and_a_length_of_its_own():
    assert [packet_type.name for packet_type in FROM_RFLYSIM3D] == list(DATAGRAMS)
    expected = [12, 56, 64, 72, 80, 96, 112, 120, 148, 160]
    assert sorted(t.size for t in FROM_RFLYSIM3D) == expected


@pytest.mark.parametrize("name", DATAGRAMS)
def test_datagram_is_recognised_and_read(name):
    spelled, size, values = DATAGRAMS[name]
    datagram = bytes.fromhex(spelled)
    assert len(datagram) == size
    packet = FROM_RFLYSIM3D.decode(datagram)
    assert packet.name == name
    assert dict(packet.values) == values
    assert not packet.keep_on_ground


@pytest.mark.parametrize(
    "packet_type", FROM_RFLYSIM3D.types, ids=lambda packet_type: packet_type.name
)
def test_values_become_the_datagram(packet_type):
    spelled, _, values = DATAGRAMS[packet_type.name]
    fields = {name: value for name, value in values.items() if name != "checksum"}
    assert packet_type.make(**fields).encode().hex() == spelled


@pytest.mark.parametrize("name", DATAGRAMS)
def test_another_checksum_is_refused(name):
    datagram = bytes.fromhex(DATAGRAMS[name][0])
    with pytest.raises(PacketError) as caught:
        FROM_RFLYSIM3D.decode(bytes([datagram[0] ^ 1]) + datagram[1:])
    assert caught.value.reason == "checksum"
    with pytest.raises(PacketError) as caught:
        FROM_RFLYSIM3D.decode(datagram + b"\0")
    assert caught.value.reason == "length"


def test_zero_bytes_go_at_both_ends_of_a_name_only():
    name = b"\0\0Wand\0innen\0" + bytes(7)
    packet = FROM_RFLYSIM3D.decode(bytes.fromhex(VEHICLE_CRASH)[:-20] + name)
    assert packet["CrashedName"] == "Wand\0innen"


def test_a_name_may_fill_its_field():
    datagram = bytes.fromhex(OBJECT)[:-32] + b"a" * 32
    assert FROM_RFLYSIM3D.decode(datagram)["name"] == "a" * 32


def test_a_name_that_is_not_utf_8_is_refused_as_text():
    with pytest.raises(PacketError) as caught:
        FROM_RFLYSIM3D.decode(bytes.fromhex(OBJECT)[:-32] + b"\xff\xfe" + bytes(30))
    assert caught.value.reason == "text"


def test_crash_with_any_target_is_read():
    """The SDK's own listener ends at a target of 0 or more."""
    datagram = bytes.fromhex(CRASH)[:8] + (4).to_bytes(4, "little")
    assert FROM_RFLYSIM3D.decode(datagram)["targetID"] == 4
