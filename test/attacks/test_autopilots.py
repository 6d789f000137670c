# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Autopilots that misbehave: their odd answers are odd, and the nodes stand them."""

from __future__ import annotations

import random
import struct

import pytest

from attacks import autopilots, odd_firmware
from rfly_amphibious.links.ardupilot_session import decode_servos
from rfly_common.errors import PacketError


def is_decoded(frame):
    try:
        return bool(decode_servos(frame).pulses)
    except PacketError:
        return False


def test_servo_frames_are_good_and_odd():
    frames = autopilots.servo_frames(random.Random(3), 500)
    heads = [struct.unpack_from("<HHI", frame) for frame in frames if len(frame) >= 8]
    assert {18458, 29569} < {magic for magic, _, _ in heads}
    assert len({len(frame) for frame in frames}) > 10
    decoded = [frame for frame in frames if is_decoded(frame)]
    assert 100 < len(decoded) < 400


def test_the_firmware_answers_as_the_session_reads_it_and_in_odd_ways():
    from rfly_amphibious.autopilots.betaflight_cli import _frames, attitude_of, status_of

    (status,) = _frames(bytearray(odd_firmware.answer(odd_firmware.MSP_STATUS_EX)))
    assert (
        status[0],
        status_of(status[1]).armed,
        status_of(status[1]).loop_time,
    ) == (
        150,
        False,
        0.001,
    )
    (attitude,) = _frames(bytearray(odd_firmware.answer(odd_firmware.MSP_ATTITUDE)))
    assert attitude_of(attitude[1])[:2] == (0.0, 0.0)
    rng = random.Random(3)
    answers = [b"".join(odd_firmware.odd_answers(rng, 108)) for _ in range(200)]
    assert answers.count(b"") > 5
    assert max(map(len, answers)) > 10_000
    assert any(
        answer.startswith(b"$M>") and not list(_frames(bytearray(answer))) for answer in answers
    )


@pytest.mark.ros
@pytest.mark.slow
def test_a_node_stands_it():
    """That of the two whose program is no guest of this machine."""
    result = autopilots.betaflight(random.Random(2), autopilots.SHORT_TRIES)
    assert result.failures == ()
    assert result.tried > autopilots.SHORT_TRIES
    assert result.largest_memory_mb > 50.0
