# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The frames against bytes written by hand, and a reader that finds them in a stream."""

from __future__ import annotations

import itertools
import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfly_amphibious.simulation.commands import RotorCommand, WheelCommand
from rfly_common.errors import LinkFrameError
from rfly_mavlink.links.link_frames import (
    MAX_FRAME,
    MAX_PAYLOAD,
    FrameReader,
    FrameType,
    GpsReport,
    Heartbeat,
    StateReport,
    decode,
    encode,
)


def crc32(data):
    """Return the CRC-32 bit by bit: EDB88320, reflected, from all ones, inverted at the end."""
    remainder = 0xFFFFFFFF
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0xEDB88320 if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF


def framed(spelled):
    """Return the bytes of a header and payload in hex, with their CRC-32 behind."""
    body = bytes.fromhex(spelled)
    return body + crc32(body).to_bytes(4, "little")


STATE = StateReport(
    0.25,
    (1, 2, 3),
    (4, 5, 6),
    (7, 8, 9, 10),
    (11, 12, 13),
    (14, 15, 16),
    (17, 18, 19, 20),
    (21, 22),
    (23, 24, 25, 26),
    (27, 28, 29, 30, 31, 32),
    33,
    (34, 35, 36),
)
BY_HAND = {
    "heartbeat": (
        Heartbeat(1.5, 3),
        0,
        7,
        "4c415631 05 00 0400 0700000000000000 000000000000f83f 03000000",
    ),
    "rotor speeds": (
        RotorCommand(1.0, np.array((1.0, 2.0))),
        1,
        258,
        "4c415631 03 01 1800 0201000000000000 000000000000f03f "
        "00 02 000000000000 000000000000f03f 0000000000000040",
    ),
    "rotor torques": (
        RotorCommand(1.0, np.array((-1.0,)), torques=True),
        0,
        0,
        "4c415631 03 00 1000 0000000000000000 000000000000f03f 01 01 000000000000 000000000000f0bf",
    ),
    "chassis": (
        WheelCommand(2.0, 0.5, np.array((1.0, 2.0, 3.0, 4.0)), np.array((0.0, 0.0, 1.0, 1.0))),
        1,
        1,
        "4c415631 04 01 4800 0100000000000000 0000000000000040 000000000000e03f "
        "000000000000f03f 0000000000000040 0000000000000840 0000000000001040 "
        "0000000000000000 0000000000000000 000000000000f03f 000000000000f03f",
    ),
    "gps": (
        GpsReport(0.5, 1.0, 2.0, 3.0, (4.0, -1.0, 0.0), 1.0, 2.0),
        0,
        2**40,
        "4c415631 02 00 4000 0000000000010000 000000000000e03f "
        "000000000000f03f 0000000000000040 0000000000000840 "
        "0000000000001040 000000000000f0bf 0000000000000000 000000000000f03f 0000000000000040",
    ),
    "state": (
        STATE,
        1,
        3,
        "4c415631 01 01 2001 0300000000000000 000000000000d03f"
        + struct.pack("<36d", *range(1, 37)).hex(),
    ),
}


def plain(message):
    """Return values that can be compared: arrays as lists."""
    values = vars(message) if hasattr(message, "__dict__") else message._asdict()
    return {key: np.asarray(value).tolist() for key, value in values.items()}


@pytest.mark.parametrize("name", BY_HAND)
def test_bytes_by_hand(name):
    message, flags, sequence, spelled = BY_HAND[name]
    whole = framed(spelled)
    assert encode(message, sequence, flags).hex(" ") == whole.hex(" ")
    frame = decode(whole)
    assert (frame.flags, frame.sequence, plain(frame.message)) == (flags, sequence, plain(message))
    assert type(frame.message) is type(message)


def test_a_heartbeat_to_the_last_byte():
    """The check is right too: CRC-32 of "123456789" is CBF43926 in every table."""
    assert crc32(b"123456789") == 0xCBF43926
    assert encode(Heartbeat(0.0, 0), 0).hex() == framed("4c41563105000400" + "00" * 20).hex()


finite = st.floats(allow_nan=False, allow_infinity=False, width=64)


def doubles(count):
    return st.lists(finite, min_size=count, max_size=count).map(np.array)


any_message = st.one_of(
    st.builds(Heartbeat, finite, st.integers(0, 2**32 - 1)),
    st.builds(RotorCommand, finite, st.integers(1, 12).flatmap(doubles), st.booleans()),
    st.builds(WheelCommand, finite, finite, doubles(4), doubles(4)),
    st.builds(GpsReport, finite, finite, finite, finite, doubles(3), finite, finite),
    st.builds(
        StateReport,
        finite,
        doubles(3),
        doubles(3),
        doubles(4),
        doubles(3),
        doubles(3),
        doubles(4),
        doubles(2),
        doubles(4),
        st.integers(1, 12).flatmap(doubles),
        finite,
        doubles(3),
    ),
)


@given(any_message, st.integers(0, 2**64 - 1), st.integers(0, 255))
def test_round_trip(message, sequence, flags):
    frame = decode(encode(message, sequence, flags))
    assert (frame.sequence, frame.flags, plain(frame.message)) == (sequence, flags, plain(message))


@given(any_message, st.data())
def test_one_changed_bit_is_always_seen(message, data):
    whole = bytearray(encode(message, 5))
    bit = data.draw(st.integers(0, 8 * len(whole) - 1))
    whole[bit // 8] ^= 1 << bit % 8
    with pytest.raises(LinkFrameError) as raised:
        decode(bytes(whole))
    expected = "magic" if bit < 32 else "length" if 48 <= bit < 64 else "crc"
    assert raised.value.reason == (expected)


def header(kind=3, length=0, time=1.0, magic="4c415631"):
    return f"{magic} {kind:02x} 00" + struct.pack("<HQd", length, 0, time).hex()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "magic"),
        (b"LAV", "magic"),
        (framed(header(5, 4, magic="4c415632") + "00000000"), "magic"),
        (b"LAV1" + bytes(23), "length"),
        (framed(header(5, 4) + "00000000") + b"x", "length"),
        (framed(header(5, 8) + "00" * 8), "length"),
        (framed(header(4, 64) + "00" * 64), "length"),
        (framed(header(1, 29 * 8) + "00" * 29 * 8), "length"),
        (framed(header(2, 72) + "00" * 72), "length"),
        (framed(header(3, 16) + "0002" + "00" * 14), "length"),
        (framed(header(3, 4) + "00" * 4), "length"),
        (framed(header(3, 16) + "0201" + "00" * 14), "mode"),
        (framed(header(6)), "type"),
        (framed(header(0)), "type"),
        (framed(header(5, 4, math.nan) + "00000000"), "time"),
        (framed(header(5, 4, -math.inf) + "00000000"), "time"),
        (framed(header(5, MAX_PAYLOAD + 8) + "00" * (MAX_PAYLOAD + 8)), "length"),
    ],
)
def test_what_is_no_frame_is_named(data, reason):
    with pytest.raises(LinkFrameError) as raised:
        decode(data)
    assert raised.value.reason == reason


def test_what_does_not_fit_is_not_sent():
    with pytest.raises(ValueError, match="payload of 1032 bytes"):
        encode(RotorCommand(0.0, np.zeros(128)), 0)
    with pytest.raises(ValueError, match="drive_torque: 3 numbers, expected 4"):
        encode(WheelCommand(0.0, 0.0, np.zeros(3)), 0)


ONE = encode(Heartbeat(1.0, 1), 1)
OTHER = encode(RotorCommand(2.0, np.arange(6.0)), 2)


def sequences(frames):
    return [frame.sequence for frame in frames]


@given(st.lists(any_message, min_size=1, max_size=5), st.lists(st.integers(0, 500), max_size=8))
def test_a_stream_may_be_cut_anywhere(messages, cuts):
    stream = b"".join(encode(message, k) for k, message in enumerate(messages))
    reader = FrameReader()
    frames = []
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    for start, end in itertools.pairwise(edges):
        frames += reader.feed(stream[start:end])
    assert sequences(frames) == list(range(len(messages)))
    assert not any(reader.counters.values())


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_after_anything_it_goes_on_at_the_next_magic(before, between):
    """Garbage that contains a magic may swallow the bytes of its length, but nothing after them."""
    if b"LAV1" in before + b"|" + between:
        return
    reader = FrameReader()
    assert sequences(reader.feed(before + ONE + between + OTHER)) == [1, 2]
    assert reader.counters["magic"] == bool(before) + bool(between)


def test_a_magic_in_two_pieces_after_garbage():
    reader = FrameReader()
    assert reader.feed(b"LALALA" + ONE[:1]) == []
    assert sequences(reader.feed(ONE[1:2])) == []
    assert sequences(reader.feed(ONE[2:])) == [1]
    assert reader.counters["magic"] == 1


def test_a_broken_frame_does_not_take_the_next_with_it():
    """A frame that has lost bytes reaches into the next one, which is still found."""
    reader = FrameReader()
    assert sequences(reader.feed(OTHER[:40] + ONE + OTHER)) == [1, 2]
    assert reader.counters["crc"] == 1


def test_a_length_that_cannot_be_is_not_waited_for():
    reader = FrameReader()
    assert sequences(reader.feed(b"LAV1\x03\x00\xff\xff" + bytes(16) + ONE)) == [1]
    assert reader.counters["length"] == 1


def test_a_whole_frame_of_unknown_type_is_passed_over_as_one():
    reader = FrameReader()
    assert sequences(reader.feed(framed(header(9, 4) + "4c415631") + ONE)) == [1]
    assert {key: number for key, number in reader.counters.items() if number} == {"type": 1}


@given(st.lists(st.binary(max_size=3000), max_size=20))
def test_it_never_keeps_more_than_a_frame(chunks):
    reader = FrameReader()
    for chunk in chunks:
        reader.feed(chunk + b"LAV1\x01\x00\x00\x04")
        assert len(reader._rest) < MAX_FRAME


def test_the_heartbeats_type_is_that_of_the_document():
    assert FrameType.HEARTBEAT == 5
