# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Frames from fragments that are lost, doubled, reordered, mixed and spoilt."""

from __future__ import annotations

import math
import struct
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rfly_ue_bridge import FrameAssembler, VisionSensor, encode_fragments, encode_image

BYTES = VisionSensor(3, 99)
"""A sensor of an unknown kind, whose frames are plain bytes."""
MAGIC = 1234567890


def fragments(payload, time, frame=None, size=10):
    """The datagrams of a payload in small parts."""
    parts = [payload[k : k + size] for k in range(0, len(payload), size)]
    datagrams = []
    for index, part in enumerate(parts):
        place = (index, len(parts))
        if frame is None:
            head = struct.pack("<4id", MAGIC, 24 + len(part), *place, time)
        else:
            head = struct.pack("<6id", MAGIC + 3, 32 + len(part), *place, frame, 0, time)
        datagrams.append(head + part)
    return datagrams


def payload(number, length=35):
    return bytes((number * 37 + k * 11) % 251 for k in range(length))


def payloads(assembler, datagrams, step=0.001):
    """The payloads of the frames that a stream gives."""
    found = []
    for k, datagram in enumerate(datagrams):
        found += [frame.payload for frame in assembler.add(datagram, k * step)]
    return found


BOTH = pytest.mark.parametrize("numbered", [False, True], ids=["24 bytes", "32 bytes"])


def stream(numbered, count, length=35):
    """Fragments of frames 0, 1, … at 10 Hz."""
    return [fragments(payload(k, length), 0.1 * k, k if numbered else None) for k in range(count)]


def test_a_frame_has_number_kind_time_and_data():
    pixels = np.full((48, 64, 3), 200, np.uint8)
    camera = VisionSensor(4, 1, width=64, height=48)
    assembler = FrameAssembler(camera)
    (datagram,) = encode_fragments(encode_image(pixels, "png"), 12.5, 7)
    (frame,) = assembler.add(datagram, 3.0)
    assert (frame.seq_id, frame.type_id, frame.time, frame.arrival) == (4, 1, 12.5, 3.0)
    assert frame.form == "png"
    np.testing.assert_array_equal(frame.data, pixels)


@BOTH
def test_frames_come_in_any_order_of_their_fragments(numbered):
    frames = stream(numbered, 3)
    mixed = [frames[0][k] for k in (2, 0, 3, 1)]
    mixed += [frames[1][3], frames[2][0], *frames[1][:3], *reversed(frames[2][1:])]
    assert payloads(FrameAssembler(BYTES), mixed) == [payload(0), payload(1), payload(2)]


@BOTH
def test_doubled_fragments_and_frames_come_once(numbered):
    frames = stream(numbered, 3)
    doubled = [datagram for frame in frames for datagram in (*frame, *frame)]
    doubled += frames[2] + frames[1]
    assembler = FrameAssembler(BYTES)
    assert payloads(assembler, doubled) == [payload(0), payload(1), payload(2)]
    assert assembler.counters["incomplete"] == 0
    assert assembler.counters["duplicates"] + assembler.counters["late"] >= 16


@BOTH
def test_a_lost_fragment_loses_its_frame_only(numbered):
    frames = stream(numbered, 3)
    assembler = FrameAssembler(BYTES)
    assert payloads(assembler, frames[0] + frames[1][:2] + frames[2]) == [payload(0), payload(2)]
    assert (assembler.counters["frames"], assembler.counters["incomplete"]) == (2, 1)


@BOTH
def test_an_old_frame_is_given_up_when_a_newer_one_is_complete(numbered):
    frames = stream(numbered, 2)
    late = frames[0][:3] + frames[1] + frames[0][3:]
    assembler = FrameAssembler(BYTES)
    assert payloads(assembler, late) == [payload(1)]
    assert (assembler.counters["incomplete"], assembler.counters["late"]) == (1, 1)


def test_a_frame_is_given_up_after_half_a_second():
    assembler = FrameAssembler(BYTES)
    first, *others = fragments(payload(0), 1.0, 0)
    assert assembler.add(first, 0.0) == []
    assert [frame for datagram in others for frame in assembler.add(datagram, 0.51)] == []
    assert assembler.counters["incomplete"] == 1


@BOTH
def test_a_restarted_simulation_is_heard_at_once_or_after_a_pause(numbered):
    before = fragments(payload(0), 100.0, 7 if numbered else None)
    after = fragments(payload(1), 0.5, 0 if numbered else None)
    assert payloads(FrameAssembler(BYTES), before + after) == [payload(0), payload(1)]

    assembler = FrameAssembler(BYTES)
    just_before = fragments(payload(2), 0.9, 3 if numbered else None)
    assert payloads(assembler, just_before) == [payload(2)]
    assert [frame for datagram in after for frame in assembler.add(datagram, 0.2)] == []
    assert [f.payload for d in after for f in assembler.add(d, 1.0)] == [payload(1)]


def test_a_repeated_frame_number_is_a_repeated_picture():
    again = fragments(payload(0), 0.1, 0)
    assembler = FrameAssembler(BYTES)
    assert payloads(assembler, fragments(payload(0), 0.0, 0) + again) == [payload(0)]
    assert assembler.counters["duplicates"] == 4


def test_frame_numbers_may_overflow():
    frames = [fragments(payload(k), k * 0.1, n) for k, n in enumerate((2**31 - 1, -(2**31), -5))]
    assert len(payloads(FrameAssembler(BYTES), [*chain.from_iterable(frames)])) == 3


@BOTH
def test_two_different_fragments_in_one_place_give_the_frame_up(numbered):
    (frame,) = stream(numbered, 1)
    spoilt = frame[0][:-1] + b"\xff"
    assembler = FrameAssembler(BYTES)
    assert payloads(assembler, [frame[0], spoilt, *frame[1:], spoilt]) == []
    assert assembler.counters["contradictions"] == 1


@BOTH
def test_truncated_and_grown_datagrams_do_not_count(numbered):
    (frame,) = stream(numbered, 1)
    spoilt = [datagram[:-3] for datagram in frame] + [datagram + b"abc" for datagram in frame]
    assembler = FrameAssembler(BYTES)
    assert payloads(assembler, [*spoilt, *frame]) == [payload(0)]


@BOTH
@pytest.mark.parametrize("meaning", ["payload", "frame"])
def test_other_readings_of_the_length(numbered, meaning):
    (frame,) = stream(numbered, 1)
    head = 32 if numbered else 24
    for k, datagram in enumerate(frame):
        length = len(datagram) - head if meaning == "payload" else 35
        frame[k] = datagram[:4] + struct.pack("<i", length) + datagram[8:]
    assert payloads(FrameAssembler(BYTES), frame) == [payload(0)]
    wrong = [datagram[:4] + struct.pack("<i", 36) + datagram[8:] for datagram in frame]
    assembler = FrameAssembler(BYTES)
    assert payloads(assembler, wrong) == []
    assert assembler.counters["length"] == 4


def test_a_time_that_stands_still_tells_frames_apart_by_their_order():
    """A vehicle that only pose packets move may have no time."""
    frames = [fragments(payload(k), -1.0) for k in range(4)]
    assembler = FrameAssembler(BYTES)
    assert payloads(assembler, [*chain.from_iterable(frames)]) == [payload(k) for k in range(4)]
    assert assembler.counters["repeated_time"] == 3


def test_frames_without_a_time_of_their_own_are_not_mixed():
    first, second, third = (fragments(payload(k), -1.0) for k in range(3))
    assembler = FrameAssembler(BYTES)
    assert payloads(assembler, first) == [payload(0)]
    for k, datagram in enumerate(second[:2] + third[2:]):  # a pause where datagrams were lost
        assert assembler.add(datagram, 0.1 + 0.03 * k) == []
    assert [f.payload for d in third for f in assembler.add(d, 0.3)] == [payload(2)]


def test_undecodable_frames_are_counted():
    assembler = FrameAssembler(VisionSensor(0, 1, width=64, height=48))
    assert assembler.add(encode_fragments(b"no picture", 0.0)[0], 0.0) == []
    assert (assembler.counters["frames"], assembler.counters["undecodable"]) == (1, 1)
    wide = encode_image(np.zeros((48, 80, 3), np.uint8))
    assert assembler.add(encode_fragments(wide, 0.1)[0], 0.1)[0].data.shape == (48, 80, 3)
    assert assembler.counters["unexpected_size"] == 1


@given(
    st.lists(
        st.binary(max_size=80) | st.sampled_from([*chain.from_iterable(stream(True, 3))]),
        max_size=40,
    )
)
def test_any_datagrams_leave_it_alive(datagrams):
    assembler = FrameAssembler(BYTES)
    found = payloads(assembler, datagrams)
    assert set(found) <= {payload(0), payload(1), payload(2)}
    assert assembler.counters["datagrams"] == len(datagrams)
    assert len(assembler._pending) <= 8


def obvious(events, frames):
    """Return what must come, by an oracle that looks at the whole past at each datagram.

    A frame comes when its last fragment arrives for the first time, unless a later frame has come.
    """
    seen = {k: set() for k in range(len(frames))}
    given_out = []
    for number, index in events:
        seen[number].add(index)
        is_complete = len(seen[number]) == len(frames[number])
        if is_complete and all(number > k for k in given_out):
            given_out.append(number)
    return given_out


@settings(max_examples=300)
@given(st.data(), st.booleans())
def test_frames_are_those_of_the_obvious_way(data, numbered):
    """Loss, doubling and any order within a window of a few frames, at 20 Hz."""
    lengths = data.draw(st.lists(st.integers(1, 45), min_size=1, max_size=6), label="lengths")
    frames = [
        fragments(payload(k, n), 0.05 * k, k if numbered else None) for k, n in enumerate(lengths)
    ]
    places = [(k, index) for k, frame in enumerate(frames) for index in range(len(frame))]
    copies = data.draw(
        st.lists(st.integers(0, 2), min_size=len(places), max_size=len(places)), label="copies"
    )
    events = [place for place, n in zip(places, copies, strict=True) for _ in range(n)]
    events = data.draw(st.permutations(events), label="order")

    assembler = FrameAssembler(BYTES)
    found = payloads(assembler, [frames[number][index] for number, index in events])
    assert found == [payload(k, lengths[k]) for k in obvious(events, frames)]


def test_incomplete_frames_are_forgotten_without_another_datagram():
    assembler = FrameAssembler(BYTES)
    for number in range(3):
        assembler.add(fragments(payload(number), 0.1 * number, number)[0], 10.0 + 0.1 * number)
    assembler.give_up_old(10.55)  # 0.5 s after the first one, not yet after the others
    assert assembler.counters["incomplete"] == 1
    assembler.give_up_old(11.0)
    assert assembler.counters["incomplete"] == 3


def test_incomplete_frames_have_few_bytes_together():
    """Each frame lacks one of its 1,000 fragments of 60,000 bytes."""
    assembler = FrameAssembler(BYTES)
    for number in range(3):
        part = bytes((number,)) * 60_000
        for index in range(999):
            head = struct.pack("<6id", MAGIC + 3, 60_032, index, 1_000, number, 0, float(number))
            assert assembler.add(head + part, 0.0) == []
    # 60 MB wait at most beside the 4 MB of the one before
    assert assembler.counters["incomplete"] == 2


@pytest.mark.parametrize("time", [math.nan, math.inf, -math.inf])
def test_a_time_that_is_no_number_is_refused(time):
    assembler = FrameAssembler(BYTES)
    assert payloads(assembler, fragments(payload(0), time, 0)) == []
    assert assembler.counters["header"] == 4
