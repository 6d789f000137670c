# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly sensors listen` as a user runs it, with a sender in RflySim3D's place."""

from __future__ import annotations

import struct
import subprocess
import time

import cv2
import numpy as np
import pytest
from command_line import mistake
from node_harness import PATIENCE, Rfly, wait_until
from sensor_window import SensorWindow, write_config

from rfly_ue_bridge import encode_cloud, encode_fragments, encode_image

PIXELS = np.full((48, 64, 3), 90, np.uint8)
POINTS = np.array([(1.0, 2.0, 3.0, 4.0)], np.float32)


def listening(*words):
    """`rfly sensors listen` in a process."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return Rfly("sensors", "listen", *words, text=True, **streams)


def test_what_arrives_is_shown_and_saved(tmp_path):
    lidar = {"TypeID": 23, "otherParams": [100] + [0] * 15}
    config = write_config(tmp_path, {}, {"TypeID": 2}, lidar)
    window = SensorWindow()
    saved = tmp_path / "frames"
    process = listening(config, "--port", window.port, "--count", 4, "--save", saved)
    wait_until(lambda: (window.poll(), len(window.sensors) == 3)[1])

    jpeg = encode_image(PIXELS)
    depth = np.full((48, 64), 1234, np.uint16)
    window.send(0, jpeg, 1.0, 1)
    window.send_raw(0, encode_fragments(jpeg, 1.1, 2)[0][:-1])
    window.send(0, jpeg, 1.2, 3)
    window.send(1, encode_image(depth, "raw"), 1.0, 1)
    window.send(2, encode_cloud(POINTS), 1.0, 1)
    output, _ = process.communicate(timeout=PATIENCE)
    window.close()

    assert process.returncode == 0, output
    assert "SDK leaves this sensor out" in output
    rows = {line.split()[0]: line for line in output.splitlines() if line[:1].isdigit()}
    assert "RGB camera" in rows["0"]
    assert "length 1" in rows["0"]
    assert "Livox Mid-360" in rows["2"]
    assert (saved / "sensor0_000001.jpg").read_bytes() == jpeg
    assert len(list(saved.iterdir())) == 4
    picture = cv2.imread(str(saved / "sensor1_000001.png"), cv2.IMREAD_UNCHANGED)
    np.testing.assert_array_equal(picture, depth)
    np.testing.assert_array_equal(np.load(saved / "sensor2_000001.npy"), POINTS)

    log = tmp_path / "again.mcap"
    again = listening(config, "--port", window.port, "--save", saved, "--mcap", log)
    output, _ = again.communicate(timeout=PATIENCE)
    assert (again.returncode, "holds frames already" in output) == (2, True)
    assert not log.exists()


@pytest.mark.needs("mcap_ros2")
def test_what_arrives_is_recorded_for_foxglove(tmp_path):
    """An independent reader decodes the messages by the definitions in the file."""
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    lidar = {"TypeID": 23, "otherParams": [100] + [0] * 15}
    finder = {"TypeID": 5, "otherParams": [200] + [0] * 15}
    config = write_config(tmp_path, {}, {"TypeID": 2}, lidar, finder)
    window = SensorWindow()
    file = tmp_path / "flight.mcap"
    process = listening(config, "--port", window.port, "--count", 4, "--mcap", file)
    wait_until(lambda: (window.poll(), len(window.sensors) == 4)[1])

    jpeg = encode_image(PIXELS)
    depth = np.full((48, 64), 1234, np.uint16)
    before = time.time()
    window.send(0, jpeg, 1.0, 1)
    window.send(1, encode_image(depth, "raw"), 1.0, 1)
    window.send(2, encode_cloud(POINTS), 1.0, 1)
    window.send(3, struct.pack("<fi12f", 12.5, 2, *[0.0] * 12), 1.0, 1)
    output, _ = process.communicate(timeout=PATIENCE)
    window.close()
    assert process.returncode == 0, output

    with file.open("rb") as opened:
        reader = make_reader(opened, decoder_factories=[DecoderFactory()])
        read = {channel.topic: ros for _, channel, _, ros in reader.iter_decoded_messages()}
    assert set(read) == {
        "/rflysim/sensor0/img_rgb/compressed",
        "/rflysim/sensor1/img_depth",
        "/rflysim/sensor2/mid360_lidar",
        "/rflysim/sensor3/range",
    }
    picture = read["/rflysim/sensor0/img_rgb/compressed"]
    assert (picture.format, bytes(picture.data)) == ("jpeg", jpeg)
    assert before - 1.0 < picture.header.stamp.sec < time.time() + 1.0
    image = read["/rflysim/sensor1/img_depth"]
    assert (image.height, image.width, image.encoding, image.step) == (48, 64, "mono16", 128)
    assert bytes(image.data) == depth.tobytes()
    cloud = read["/rflysim/sensor2/mid360_lidar"]
    assert [(field.name, field.offset) for field in cloud.fields][:3] == [
        ("x", 0),
        ("y", 4),
        ("z", 8),
    ]
    np.testing.assert_allclose(
        np.frombuffer(bytes(cloud.data), np.float32), POINTS.ravel(), atol=100 / 32767
    )
    assert read["/rflysim/sensor3/range"].range == 12.5


def test_a_silent_sensor_is_an_exit_code_of_1(tmp_path):
    process = listening(write_config(tmp_path, {}), "--no-request", "--duration", 0.5)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "no data yet" in output


def test_a_wrong_file_is_one_line(tmp_path, monkeypatch, capsys):
    config = tmp_path / "Config.json"
    config.write_text('{"VisionSensors": [{"TypeID": 1}]}')
    line = mistake(["sensors", "listen", str(config)], monkeypatch, capsys)
    assert "SendProtocol" in line
    assert "No such file" in mistake(["sensors", "listen", "nowhere"], monkeypatch, capsys)
