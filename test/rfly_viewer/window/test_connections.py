# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Browsers that send nonsense, read nothing or are too many.

`rfly view` is a process; the bytes are made here.
"""

from __future__ import annotations

import base64
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest
from node_harness import PATIENCE
from optional_parts import late_module

from attacks.peers import CAMERA

pytestmark = pytest.mark.needs("viser")

connections = late_module("rfly_viewer.window.connections")

CLICK = {
    "type": "ScenePointerMessage",
    "event_type": "click",
    "ray_origin": [0, 0, 9],
    "ray_direction": [0, 0, -1],
    "screen_pos": [[0.5, 0.5]],
    "modifier": None,
}
VALUES = {"slider": 1, "box": True, "text": "a"}
NAN = float("nan")
INF = float("inf")


def packed(message):
    import msgspec

    return msgspec.msgpack.encode(message)


@pytest.mark.parametrize(
    ("message", "understood"),
    [
        (CAMERA, True),
        (CLICK, True),
        ({"type": "GuiUpdateMessage", "uuid": "slider", "updates": {"value": 3}}, True),
        (
            {"type": "GuiUpdateMessage", "uuid": "text", "updates": {"value": "RflyShowText a"}},
            True,
        ),
        ({"type": "GuiFormSubmitMessage", "uuid": "x"}, True),
        ({**CAMERA, "image_height": 0}, False),
        ({**CAMERA, "fov": 0.0}, False),
        ({**CAMERA, "wxyz": [0, 0, 0, 0]}, False),
        ({**CAMERA, "position": [NAN, 0, 0]}, False),
        ({**CAMERA, "position": [0, INF, 0]}, False),
        ({**CAMERA, "position": [0, 0]}, False),
        ({**CAMERA, "more": 1}, False),
        ({**CLICK, "ray_origin": None}, False),
        ({**CLICK, "screen_pos": []}, False),
        ({**CLICK, "ray_direction": [0, 0, 0]}, False),
        ({"type": "GuiUpdateMessage", "uuid": "slider", "updates": {"value": "x"}}, False),
        ({"type": "GuiUpdateMessage", "uuid": "slider", "updates": {"value": NAN}}, False),
        ({"type": "GuiUpdateMessage", "uuid": "text", "updates": {"value": 1}}, False),
        ({"type": "GuiUpdateMessage", "uuid": "none such", "updates": {"value": 1}}, False),
        ({"type": "GuiUpdateMessage", "uuid": "box", "updates": {"label": "x"}}, False),
        ({"type": "ShareUrlRequest"}, False),
        ({"type": "FileTransferStartUpload", "uuid": "x"}, False),
        ([1, 2], False),
    ],
)
def test_only_what_the_page_sends_is_understood(message, understood):
    assert connections.is_understood(packed(message), VALUES.get) is understood


def test_other_bytes_are_not_understood():
    rng = random.Random(1)
    good = packed(CAMERA)
    for _ in range(2000):
        at = rng.randrange(len(good))
        assert isinstance(
            connections.is_understood(
                good[:at] + rng.randbytes(rng.randrange(4)) + good[at:], VALUES.get
            ),
            bool,
        )
    assert not connections.is_understood("a text frame", VALUES.get)
    assert not connections.is_understood(b"\x93" * 50_000, VALUES.get)
    assert not connections.is_understood(packed({**CAMERA, "more": "x" * 70_000}), VALUES.get)


class View:
    """`rfly view` on ports of its own."""

    def __init__(self, folder: Path) -> None:
        self.errors = (folder / "stderr").open("w+b")

        with socket.socket(type=socket.SOCK_DGRAM) as free:
            free.bind(("127.0.0.1", 0))
            udp_port = free.getsockname()[1]

        program = "from rfly_bringup.cli.entry_point import rfly; rfly()"
        options = ["view", "--port", "0", "--udp-port", str(udp_port)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *options],
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )
        assert self.process.stdout is not None
        found = re.search(
            r"http://127\.0\.0\.1:(\d+) shows UDP 127\.0\.0\.1:(\d+)",
            self.process.stdout.readline(),
        )
        assert found is not None
        self.http_port, self.udp_port = map(int, found.groups())

    def browser(self, upgrade: bool = True) -> socket.socket:
        """A WebSocket after its handshake; OSError where it is refused."""
        opened = socket.create_connection(("127.0.0.1", self.http_port), timeout=PATIENCE)
        key = base64.b64encode(os.urandom(16)).decode()
        opened.sendall(
            f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{self.http_port}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Protocol: viser-v{version('viser')}\r\n\r\n".encode()
        )
        answer = opened.recv(12)
        if answer != b"HTTP/1.1 101":
            opened.close()
            raise ConnectionRefusedError(answer)
        return opened

    def memory_mb(self) -> float:
        """Resident."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def end(self) -> str:
        """End the viewer by Ctrl-C, and return what it wrote to stderr.

        A viewer that a busy machine keeps from ending in time is ended by its watchdog (130).
        """
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(PATIENCE) in (0, 128 + signal.SIGINT)
        self.errors.seek(0)
        return self.errors.read().decode()


@pytest.fixture
def view(tmp_path):
    viewer = View(tmp_path)
    yield viewer
    viewer.process.kill()
    viewer.process.wait()
    viewer.process.stdout.close()
    viewer.errors.close()


def frame(data, opcode=2):
    """A WebSocket frame of a client, masked with zeros."""
    size = len(data)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
    return bytes([0x80 | opcode]) + length + bytes(4) + data


@pytest.mark.slow
def test_nonsense_leaves_no_trace_and_the_viewer_draws_on(view):
    """A browser that sends no HTTP, no WebSocket or no message does no harm.

    Messages have every form; a good one still counts afterwards.
    """
    rng = random.Random(2)

    for nonsense in (
        b"\x16\x03\x01\x02\x00",
        b"GET / HTTP/9.9\r\n\r\n",
        rng.randbytes(500),
        b"POST / HTTP/1.1\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", view.http_port), timeout=PATIENCE) as opened:
            opened.sendall(nonsense)

    with view.browser() as browser:
        browser.sendall(frame(packed(CAMERA)))
        for message in (
            {**CAMERA, "image_height": 0},
            {**CLICK, "ray_origin": None},
            {"type": 1},
            {},
            [1],
            "x",
            None,
        ):
            browser.sendall(frame(packed(message)))

        browser.sendall(frame(b"a text", opcode=1))
        for _ in range(100):
            browser.sendall(frame(rng.randbytes(rng.randrange(100))))
        browser.sendall(frame(packed(CLICK)))
        time.sleep(0.5)

    with view.browser() as browser:
        browser.sendall(b"\xff" * 100)  # no frame at all

    assert view.browser() is not None
    assert view.process.poll() is None
    assert view.end() == ""


@pytest.mark.slow
@pytest.mark.exhaustive
def test_browsers_that_read_nothing_are_few_and_are_cut(view):
    """100 of them: each is sent the whole scene, and takes none of it."""
    view.browser().close()
    before = view.memory_mb()

    waiting = []
    refused = 0
    for _ in range(100):
        try:
            waiting.append(view.browser())
        except OSError:
            refused += 1

    assert len(waiting) == connections.MAX_BROWSERS
    assert refused == 100 - connections.MAX_BROWSERS
    for browser in waiting:
        browser.sendall(frame(packed(CAMERA)))

    most = 0.0
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        most = max(most, view.memory_mb() - before)
        try:  # there is room again
            view.browser().close()
            break
        except OSError:
            time.sleep(0.2)
    else:
        pytest.fail("none of the browsers that read nothing had been cut")

    assert most < 500, f"{most:.0f} MB more"
    print(f"{most:.0f} MB more at most")
    assert view.end() == ""


def test_no_trace_of_websockets_is_logged(caplog):
    import logging

    connections = late_module("rfly_viewer.window.connections")
    logger = logging.getLogger("test_connections")
    logger.addFilter(connections.NoHandshakeErrors())
    for error in (ConnectionResetError(), EOFError(), ValueError("7 bytes")):
        try:
            raise error
        except (OSError, EOFError, ValueError):
            logger.error("unexpected internal error", exc_info=True)
    assert caplog.text.splitlines()[-1].endswith("unexpected internal error: ValueError: 7 bytes")
    assert len(caplog.text.splitlines()) == 1
