# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The bounded queue of frames."""

from __future__ import annotations

import threading

import pytest
from node_harness import PATIENCE

from rfly_ue_bridge.sensors.frame_assembler import FrameQueue


@pytest.mark.parametrize(
    ("sizes", "dropped", "kept"),
    [
        ([1, 1, 1], [], [0, 1, 2]),
        ([1, 1, 1, 1, 1], [0, 1], [2, 3, 4]),  # at most three
        ([40, 40, 40], [0], [1, 2]),  # 100 bytes at most
        ([10, 10, 500], [0, 1], [2]),  # the newest stays, however large
        ([500, 10], [0], [1]),
    ],
)
def test_the_oldest_are_dropped_and_given_back(sizes, dropped, kept):
    frames = FrameQueue(3, 100)
    gone = [item for number, size in enumerate(sizes) for item in frames.put(number, size)]
    assert gone == dropped
    assert [frames.get(0.0) for _ in kept] == kept
    assert frames.get(0.0) is None


def test_the_end_wakes_who_waits():
    frames = FrameQueue(3)
    got = []
    thread = threading.Thread(target=lambda: got.append(frames.get()))
    thread.start()
    frames.close()
    thread.join(PATIENCE)
    assert got == [None]
