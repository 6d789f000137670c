# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A recording in the place of a listener, by a clock of the test."""

from __future__ import annotations

import pytest

from rfly_viewer.wire.listener import Playback

RECORDED = [(100.0, b"a"), (100.5, b"b"), (100.5, b"c"), (102.0, b"d")]


@pytest.mark.parametrize("speed", [0.5, 1.0, 8.0])
def test_datagrams_are_due_at_their_times_after_the_first_look(speed):
    now = 7000.0
    playback = Playback("a.pcap", RECORDED, lambda: now, speed)
    taken = []
    for seconds in (0.0, 0.49, 0.5, 1.99, 2.0, 3.0):
        now = 7000.0 + seconds / speed
        taken.append(b"".join(playback.take()))
    assert taken == [b"a", b"", b"bc", b"", b"d", b""]
    assert not playback.arrived.is_set()


def test_an_empty_recording_has_ended():
    playback = Playback("a.pcap", [], lambda: 0.0)
    assert playback.take() == []
    assert not playback.arrived.is_set()
