# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Effect of the panel's controls on the picture.

The viewer runs in this process, so that they can be set.
"""

from __future__ import annotations

import socket
import struct
import threading
import time

import numpy as np
import pytest
from chromium_harness import Chromium
from node_harness import PATIENCE, wait_until
from optional_parts import late_module

from rfly_viewer.scene.state_batches import StateBatch
from rfly_viewer.window.chromium import chromium_program

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs("viser"),
    pytest.mark.skipif(chromium_program() is None, reason="the program chromium is not installed"),
]

server = late_module("rfly_viewer.window.server")

WIDTH = 900
HEIGHT = 450
RED = 34


def is_red(picture, x, y):
    red, green, blue = picture[y - 1 : y + 2, x - 1 : x + 2].reshape(-1, 3).mean(axis=0)
    return red > 90 and red > 1.6 * green and red > 1.6 * blue


def test_trails_are_drawn_while_they_are_wanted():
    """Red 34 moves north by 1 m in each 0.3 s: three segments; none once the box is unticked."""
    viewer = server.Viewer(server.Settings(map="", http_port=0, udp_port=0, shadows=False))
    try:
        for step in range(4):
            batch = StateBatch(
                np.array([RED]),
                np.array([3]),
                np.array([[300.0 + step, -200.0, 0.0]]),
                np.zeros((1, 3)),
                np.full((1, 3), np.nan),
                np.full((1, 3), np.nan),
                np.zeros(1),
                np.zeros(1),
                np.array([True]),
            )
            viewer.state.apply(batch, 0.3 * step)
            viewer.draw(0.3 * step)
        trail = viewer._trails._handle
        ends = [[[-200.0, 300.0 + step], [-200.0, 301.0 + step]] for step in range(3)]
        np.testing.assert_allclose(trail.points[..., :2], ends)
        red, green, blue = trail.colors[0, 0].astype(int)
        assert red > 2 * max(green, blue)

        viewer.panel._boxes["trails"].value = False
        viewer.draw(1.5)
        assert viewer._trails._handle is None
    finally:
        viewer.close()


@pytest.mark.exhaustive
def test_following_and_trails():
    """The followed vehicle stays in the middle of the picture.

    Its trail is a line in its colour.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    viewer = server.Viewer(
        server.Settings(http_port=0, udp_port=port, shadows=False, feedback_port=9)
    )
    thread = threading.Thread(target=viewer.run)
    thread.start()
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def pose(x, y):
        raw = struct.pack("<3i7f", 1234567890, RED, 9999, 0.0, x, y, -0.5, 0.0, 0.0, 0.0)
        sender.sendto(raw, ("127.0.0.1", port))

    try:
        with Chromium(WIDTH, HEIGHT) as page:
            page.open(viewer.address)
            wait_until(
                lambda: page.evaluate("document.querySelector('canvas') !== null"), "the scene"
            )
            viewer.panel._boxes["ids"].value = False
            pose(0.0, 0.0)
            wait_until(lambda: str(RED) in viewer.panel._follow.options, "the choice")
            viewer.panel._follow.value = str(RED)
            wait_until(
                lambda: is_red(page.picture(), WIDTH // 2, HEIGHT // 2),
                "the vehicle in the middle",
            )
            pose(300.0, -200.0)
            wait_until(lambda: viewer._poses.position_ned[0, 0] == 300.0, "the move")
            wait_until(
                lambda: is_red(page.picture(), WIDTH // 2, HEIGHT // 2),
                "the middle after the move",
            )

            viewer.panel._follow.value = "nobody"
            # straight down from 20 m, north on top: 450 / 20 pixels a metre with 90 degrees across
            for text in (b"RflyCameraPosAng 300 -200 -20 0 -90 0", b"RflyCameraFovDegrees 90"):
                sender.sendto(struct.pack("<i52s", 1234567890, text), ("127.0.0.1", port))
            for step in range(8):
                pose(300.0 + step, -200.0)
                time.sleep(0.3)  # a trail is made of places a quarter of a second apart
            pose(300.0, -205.0)
            on_the_way = (WIDTH // 2, HEIGHT // 2 - round(4.5 * WIDTH / 2 / 20))
            wait_until(lambda: is_red(page.picture(), *on_the_way), "the way of the vehicle")
            viewer.panel._boxes["trails"].value = False
            wait_until(lambda: not is_red(page.picture(), *on_the_way), "the end of the trails")
    finally:
        sender.close()
        viewer.stop()
        thread.join()


def test_who_is_followed_from_the_start_once_it_appears():
    """Another vehicle that comes first is not followed, and the user may choose another."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    viewer = server.Viewer(
        server.Settings(http_port=0, udp_port=port, shadows=False, feedback_port=9, follow=RED)
    )
    thread = threading.Thread(target=viewer.run)
    thread.start()
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:

            def pose(vehicle_id):
                raw = struct.pack(
                    "<3i7f", 1234567890, vehicle_id, 9999, 0.0, 1.0, 2.0, -0.5, 0.0, 0.0, 0.0
                )
                sender.sendto(raw, ("127.0.0.1", port))

            pose(48)
            wait_until(lambda: "48" in viewer.panel._follow.options, "the first vehicle")
            assert viewer.panel.followed is None
            pose(RED)
            wait_until(lambda: viewer.panel.followed == RED, "the vehicle to follow")
            viewer.panel._follow.value = "nobody"
            pose(49)
            wait_until(lambda: "49" in viewer.panel._follow.options, "the third vehicle")
            assert viewer.panel.followed is None
    finally:
        viewer.stop()
        thread.join(PATIENCE)
