# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fragments of sensor data against headers written by hand from the wire table."""

from __future__ import annotations

import struct

import pytest

from rfly_common.errors import PacketError
from rfly_ue_bridge import encode_fragments
from rfly_ue_bridge.codec.sensor_payloads import Fragment, read_fragment

OLD = [
    "d2 02 96 49 78 ea 00 00 00 00 00 00 02 00 00 00 00 00 00 00 00 00 f0 3f",
    "d2 02 96 49 19 00 00 00 01 00 00 00 02 00 00 00 00 00 00 00 00 00 f0 3f",
]
NEW = [
    "d5 02 96 49 80 ea 00 00 00 00 00 00 02 00 00 00 05 00 00 00 00 00 00 00"
    "00 00 00 00 00 00 f0 3f",
    "d5 02 96 49 21 00 00 00 01 00 00 00 02 00 00 00 05 00 00 00 00 00 00 00"
    "00 00 00 00 00 00 f0 3f",
]
PAYLOAD = bytes(range(250)) * 240 + b"!"


@pytest.mark.parametrize(("headers", "frame"), [(OLD, None), (NEW, 5)])
def test_a_frame_of_60001_bytes_makes_two_fragments(headers, frame):
    datagrams = encode_fragments(PAYLOAD, 1.0, frame)
    parts = [PAYLOAD[:60_000], PAYLOAD[60_000:]]
    assert datagrams == [bytes.fromhex(h) + p for h, p in zip(headers, parts, strict=True)]
    for index, datagram in enumerate(datagrams):
        assert read_fragment(datagram) == Fragment(
            len(datagram), index, 2, frame, 1.0, parts[index]
        )


def test_an_empty_last_fragment_is_one():
    empty = "d2 02 96 49 18 00 00 00 01 00 00 00 02 00 00 00 00 00 00 00 00 00 f0 3f"
    assert read_fragment(bytes.fromhex(empty)) == Fragment(24, 1, 2, None, 1.0, b"")


def test_sizes_of_frames_at_their_limits():
    sizes = {0: [24], 60_000: [60_024], 60_001: [60_024, 25], 120_000: [60_024, 60_024]}
    for size, expected in sizes.items():
        assert [len(datagram) for datagram in encode_fragments(bytes(size), 1.0)] == expected


@pytest.mark.parametrize(
    ("datagram", "reason"),
    [
        (b"", "length"),
        (bytes.fromhex(OLD[0])[:23], "length"),
        (bytes.fromhex(NEW[0])[:31], "length"),
        (b"\0" + bytes.fromhex(OLD[0])[1:], "checksum"),
        (struct.pack("<4id", 1234567890, 24, 1, 1, 1.0), "header"),
        (struct.pack("<4id", 1234567890, 24, -1, 1, 1.0), "header"),
        (struct.pack("<4id", 1234567890, 24, 0, 0, 1.0), "header"),
        (struct.pack("<4id", 1234567890, 24, 0, 1001, 1.0), "header"),
        (struct.pack("<4id", 1234567890, 24, 0, 1, float("nan")), "header"),
    ],
)
def test_other_datagrams_are_refused(datagram, reason):
    with pytest.raises(PacketError) as caught:
        read_fragment(datagram)
    assert caught.value.reason == reason
