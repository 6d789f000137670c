# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""An autopilot that misbehaves: its frames are odd, and the node stands them."""

from __future__ import annotations

import random
import struct

import pytest

from attacks import autopilots
from rfly_common.errors import PacketError
from rfly_mavlink.links.ardupilot_session import decode_servos


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


@pytest.mark.ros
@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_node_stands_it():
    result = autopilots.ardupilot(random.Random(2), autopilots.SHORT_TRIES)
    assert result.failures == ()
    assert result.tried > autopilots.SHORT_TRIES
    assert result.largest_memory_mb > 50.0
