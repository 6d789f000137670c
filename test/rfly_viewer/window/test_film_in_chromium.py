# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly view RECORDING --film`, drawn by a real Chromium; the file is read by its own format.

The camera is 20 m up and looks north, 45 degrees down, with 90 degrees across 640 pixels. It sees a
point n m north, e m east and 0.5 m up at x = 320 + 320 e √2 / (n + 19.5) and
y = 180 + 320 (19.5 - n) / (n + 19.5).
"""

from __future__ import annotations

import struct

import numpy as np
import pytest
from optional_parts import late_module
from PIL import Image

from rfly_bringup.cli.main import main
from rfly_ue_bridge.datagram_recording.datagrams import RecordedDatagram
from rfly_ue_bridge.datagram_recording.pcap import PcapWriter
from rfly_viewer.window.chromium import chromium_program

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium_program() is None, reason="the program chromium is not installed"),
]

film_module = late_module("rfly_viewer.window.film")

CAMERA = struct.pack("<i52s", 1_234_567_890, b"RflyCameraPosAng 0 0 -20 0 -45 0")
FOV = struct.pack("<i52s", 1_234_567_890, b"RflyCameraFovDegrees 90")


def box(north, east):
    """Return a red box of 1 m, id 34, vehicleType 9999."""
    return struct.pack("<3i7f", 1_234_567_890, 34, 9999, 0.0, north, east, -0.5, 0.0, 0.0, 0.0)


def chunks(data, start):
    """Yield names and contents of RIFF chunks."""
    while start < len(data):
        name, size = struct.unpack_from("<4sI", data, start)
        yield name, data[start + 8 : start + 8 + size]
        start += 8 + size + size % 2


@pytest.mark.exhaustive
def test_a_film_has_a_frame_each_tenth_of_a_second(tmp_path, monkeypatch, capsys):
    """Recorded are 0.6 s, shown twice as fast: frames at 0, 0.2, 0.4 and 0.6 s."""
    recording = tmp_path / "box.pcap"
    times = ((0.0, CAMERA), (0.0, FOV), (0.0, box(20, 0)), (0.5, box(24, 6)), (0.6, box(24, 6)))
    with recording.open("wb") as file:
        writer = PcapWriter(file)
        for seconds, payload in times:
            ends = (("127.0.0.1", 50_000), ("127.0.0.1", 20010))
            writer.write(RecordedDatagram(round(seconds * 1e9), *ends, payload))

    film = tmp_path / "box.webp"
    words = ["rfly", "view", str(recording), "--map", "", "--speed", "2", "--film", str(film)]
    monkeypatch.setattr("sys.argv", [*words, "--port", "0", "--no-shadows"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0, capsys.readouterr().err

    # the file
    data = film.read_bytes()
    assert (data[:4], data[8:12]) == (b"RIFF", b"WEBP")
    parts = list(chunks(data, 12))
    size = {name: content for name, content in parts if name == b"VP8X"}[b"VP8X"]
    assert [1 + int.from_bytes(size[at : at + 3], "little") for at in (4, 7)] == [640, 360]
    durations = [int.from_bytes(c[12:15], "little") for name, c in parts if name == b"ANMF"]
    assert sum(durations) == 400

    # the pictures: the box has moved in the last tenth
    places = [(320, 176)] * 3 + [(382, 147)]
    with Image.open(film) as pictures:
        shown = np.repeat(range(pictures.n_frames), np.array(durations) // 100)
        for frame, (x, y) in zip(shown, places, strict=True):
            pictures.seek(frame)
            picture = np.asarray(pictures.convert("RGB"), float)
            red, green, blue = picture[y - 2 : y + 3, x - 2 : x + 3].mean(axis=(0, 1))
            assert red > 90, frame
            assert red > 2 * max(green, blue), frame


@pytest.mark.parametrize(
    ("seconds", "speed", "frames"), [(0.0, 1.0, 1), (0.3, 1.0, 4), (128.6, 10.0, 129)]
)
def test_a_film_has_ten_frames_a_second(seconds, speed, frames):
    assert film_module.frames_of(seconds, speed) == frames
