# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A window that shows a recording in place of datagrams, by a clock of the test."""

from __future__ import annotations

import struct
import threading

import pytest
from node_harness import PATIENCE
from optional_parts import late_module

from rfly_viewer.wire.listener import Playback

pytestmark = pytest.mark.needs("viser")
server = late_module("rfly_viewer.window.server")


def box(north, east):
    """Return a vehicle of type 9999 with id 34, half a metre up."""
    return struct.pack("<3i7f", 1_234_567_890, 34, 9999, 0.0, north, east, -0.5, 0.0, 0.0, 0.0)


def test_a_window_shows_what_was_recorded_at_its_time():
    now = 50.0
    recorded = [(1000.0, box(20, 0)), (1000.5, box(24, 6)), (1002.0, box(28, 6))]
    playback = Playback("box.pcap", recorded, lambda: now, speed=2.0)
    viewer = server.Viewer(server.Settings(http_port=0), playback)
    try:
        places = []
        for seconds in (0.0, 0.2, 0.25, 0.9, 1.0):
            now = 50.0 + seconds
            viewer.draw(seconds)
            places.append(viewer.state.vehicles["position_ned"].tolist())
    finally:
        viewer.close()
        # a process that ends while it works is aborted by the C++ library in it
        for thread in threading.enumerate():
            if thread.name == "rfly view: ground":
                thread.join(PATIENCE)
    first, second, third = [[20, 0, -0.5]], [[24, 6, -0.5]], [[28, 6, -0.5]]
    assert places == [first, first, second, second, third]
    assert viewer.state.vehicles.id.tolist() == [34]
