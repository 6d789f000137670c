# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Payloads of sensors against bytes written by hand from the wire table."""

from __future__ import annotations

import struct
from contextlib import suppress

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfly_common.errors import PacketError
from rfly_ue_bridge import (
    BOXES,
    SENSOR_TYPES,
    TARGETS,
    VisionSensor,
    decode_payload,
    depth_to_metres,
    encode_cloud,
    encode_image,
    encode_records,
)
from rfly_ue_bridge.codec.sensor_payloads import depth_to_millimetres

POSE = "00 00 80 3f 00 00 00 40 00 00 40 c0" + "00" * 8 + "00 00 c0 3f"
POSE_NUMBERS = (1.0, 2.0, -3.0, 0.0, 0.0, 1.5)
LIDAR = VisionSensor(0, 23, parameters=(100.0,))
COLOURS = np.arange(48 * 64 * 3, dtype=np.uint8).reshape(48, 64, 3)


def cloud(head, count, words):
    return bytes.fromhex(head) + struct.pack("<i", count) + bytes.fromhex(words)


A = cloud(POSE, 2, "cd 0c cd fc a4 00 00 00 d7 03 1f 05 b8 fe 00 00")
A_ENDS = cloud("00" * 24, 2, "ff 7f 00 00 00 00 00 00 01 80 00 40 00 20 ff 7f")
B = cloud(
    "01 00 00 00 01 00 00 00" + POSE, 2,
    "00 00 20 41 00 00 20 c0 00 00 00 3f 00 00 00 00"
    "00 00 40 40 00 00 80 40 00 00 80 bf 00 00 00 00",
)  # fmt: skip
B_ONE = cloud("02 00 00 00" + "00" * 28, 1, "00 00 80 3f 00 00 00 40 00 00 40 40 00 00 90 41")
CLOUD_7 = cloud("00" * 24, 1, "cd 0c 71 fd ec 01")
CLOUD_7_ENDS = cloud(
    "00 00 80 3f 00 00 00 40 00 00 40 c0" + "00" * 8 + "00 00 00 3f", 2,
    "ff 7f 00 00 01 80 00 40 00 20 00 f0",
)  # fmt: skip


@pytest.mark.parametrize(
    ("payload", "generation", "points"),
    [
        (A, "A", [(10.00092, -2.49947, 0.50050, 0), (2.99997, 4.00098, -1.00101, 0)]),
        (A_ENDS, "A", [(100, 0, 0, 0), (-100, 50.00153, 25.00076, 100)]),
        (B, "B", [(10, -2.5, 0.5, 0), (3, 4, -1, 0)]),
        (B_ONE, "B", [(1, 2, 3, 18)]),
        (A[:24] + b"\2\0\0\0" + A[28:34] + A[36:42], "0",
         [(10.00092, -2.49947, 0.50050, 0), (2.99997, 4.00098, -1.00101, 0)]),
        (bytes(28), "A", np.empty((0, 4))),
        (bytes(36), "B", np.empty((0, 4))),
    ],
)  # fmt: skip
def test_clouds_of_three_generations_are_told_by_their_length(payload, generation, points):
    content = decode_payload(LIDAR, payload)
    assert content.form == generation
    assert content.data.dtype == np.float32
    np.testing.assert_allclose(content.data, points, atol=1e-5)


def test_pose_of_a_cloud():
    for payload in (A, B):
        np.testing.assert_array_equal(decode_payload(LIDAR, payload).pose, POSE_NUMBERS)


@pytest.mark.parametrize(
    ("payload", "points"),
    [
        (CLOUD_7, [(10.00092, -1.99896, 1.50151)]),
        (CLOUD_7_ENDS, [(100, 0, -100), (50.00153, 25.00076, -12.50038)]),
    ],
)
def test_depth_clouds(payload, points):
    content = decode_payload(VisionSensor(0, 7, parameters=(100.0,)), payload)
    np.testing.assert_allclose(content.data, points, atol=1e-5)


def test_a_depth_cloud_without_a_scale_is_refused():
    with pytest.raises(PacketError, match="otherParams"):
        decode_payload(VisionSensor(0, 7), CLOUD_7)


def test_written_clouds_are_the_bytes_written_by_hand():
    points = [(10, -2.5, 0.5, 0), (3, 4, -1, 0)]
    assert encode_cloud(points, 100.0, POSE_NUMBERS) == A
    assert encode_cloud(points, None, POSE_NUMBERS, copter_id=1, world_pose=True) == B
    assert encode_cloud([(100, 0, 0, 0), (-100, 50, 25, 100)], 100.0) == A_ENDS
    assert encode_cloud([(10, -2, 1.5)], 100.0) == CLOUD_7


def test_range_finder():
    hit = bytes.fromhex(
        "00 00 48 41 02 00 00 00 00 00 80 3f 00 00 00 40 00 00 40 c0" + "00" * 8 +
        "00 00 c0 3f 00 00 80 3f 00 00 68 41 00 00 40 c0 00 00 c0 3f 00 00 70 41 00 00 60 c0"
    )  # fmt: skip
    record = decode_payload(VisionSensor(0, 5), hit).data
    assert (record["distance"], record["copter_id"]) == (12.5, 2)
    assert record["origin"].tolist() == [1.0, 2.0, -3.0]
    assert record["euler"].tolist() == [0.0, 0.0, 1.5]
    assert record["impact"].tolist() == [1.0, 14.5, -3.0]
    assert record["box_center"].tolist() == [1.5, 15.0, -3.5]

    nothing = decode_payload(VisionSensor(0, 5), bytes.fromhex("00004843ffffffff") + bytes(48))
    assert (nothing.data["distance"], nothing.data["copter_id"]) == (200.0, -1)


def test_detector_and_radar():
    boxes = bytes.fromhex(
        "02 00 00 00 02 00 00 00 66 66 66 3f 00 00 c8 42 00 00 48 42 00 00 34 43 00 00 f0 42"
        "07 00 00 00 00 00 00 3f 00 00 00 00 00 00 00 00 00 c0 1f 44 00 80 ef 43"
    )
    data = decode_payload(VisionSensor(0, 30), boxes).data
    assert data["copter_id"].tolist() == [2, 7]
    assert data["score"] == pytest.approx([0.9, 0.5])
    assert data["min"].tolist() == [[100, 50], [0, 0]]
    assert data["max"].tolist() == [[180, 120], [639, 479]]
    assert encode_records(data) == boxes

    targets = bytes.fromhex(
        "02 00 00 00 02 00 00 00 00 00 20 41 00 00 40 c0 00 00 00 3f"
        "03 00 00 00 00 00 a0 41 00 00 80 40 00 00 80 bf"
    )
    data = decode_payload(VisionSensor(0, 31), targets).data
    assert data["copter_id"].tolist() == [2, 3]
    assert data["position"].tolist() == [[10, -3, 0.5], [20, 4, -1]]
    for type_id, kind in ((30, BOXES), (31, TARGETS)):
        nothing = decode_payload(VisionSensor(0, type_id), bytes(4)).data
        assert (len(nothing), nothing.dtype) == (0, kind)


def test_raw_pictures():
    depth = VisionSensor(0, 2, width=2, height=2)
    counts = decode_payload(depth, bytes.fromhex("e8 03 c4 09 ff ff 00 00")).data
    assert counts.tolist() == [[1000, 2500], [65535, 0]]
    metres = depth_to_metres(counts, depth)
    assert metres.dtype == np.float32
    np.testing.assert_allclose(metres, [[1.0, 2.5], [np.nan, 0.0]])
    assert depth_to_millimetres(counts, depth).tolist() == [[1000, 2500], [0, 0]]

    coarse = VisionSensor(0, 2, width=2, height=2, parameters=(0.0, 0.0, 0.01))
    np.testing.assert_allclose(depth_to_metres(counts, coarse), [[10.0, 25.0], [np.nan, 0.0]])
    assert depth_to_millimetres(counts, coarse).tolist() == [[10000, 25000], [0, 0]]
    assert depth_to_millimetres(np.full((1, 1), 6554, np.uint16), coarse).tolist() == [[0]]

    rgb = VisionSensor(0, 1, width=2, height=1)
    pixels = decode_payload(rgb, bytes.fromhex("ff 00 00 00 00 ff")).data
    assert pixels.tolist() == [[[255, 0, 0], [0, 0, 255]]]


def test_raw_pixels_may_begin_as_a_jpeg():
    """A lilac first pixel, blue 255, green 216, red 255, is the mark of a jpeg."""
    raw = b"\xff\xd8\xff" + bytes(64 * 48 * 3 - 3)
    content = decode_payload(VisionSensor(0, 1, width=64, height=48), raw)
    assert (content.form, content.data[0, 0].tolist()) == ("raw", [255, 216, 255])


@pytest.mark.parametrize("type_id", [1, 4, 8, 9, 41])
@pytest.mark.parametrize("form", ["jpeg", "png", "raw"])
def test_colour_pictures_whatever_way_they_come(type_id, form):
    sensor = VisionSensor(0, type_id, width=64, height=48)
    content = decode_payload(sensor, encode_image(COLOURS, form))
    assert content.form == form
    assert content.data.shape == (48, 64, 3)
    if form != "jpeg":
        np.testing.assert_array_equal(content.data, COLOURS)


@pytest.mark.parametrize("form", ["png", "raw"])
def test_depth_keeps_16_bits(form):
    counts = np.arange(48 * 64, dtype=np.uint16).reshape(48, 64) * 21
    content = decode_payload(VisionSensor(0, 2, width=64, height=48), encode_image(counts, form))
    assert content.data.dtype == np.uint16
    np.testing.assert_array_equal(content.data, counts)


@pytest.mark.parametrize("type_id", [3, 40])
def test_grey_pictures_have_one_number_a_pixel(type_id):
    sensor = VisionSensor(0, type_id, width=64, height=48)
    for pixels in (COLOURS[..., 0], COLOURS):  # a window may send grey as colours
        assert decode_payload(sensor, encode_image(pixels, "png")).data.shape == (48, 64)


def bomb(width, height):
    """A png whose header claims more pixels than a computer has memory."""
    whole = encode_image(COLOURS, "png")
    return whole[:16] + struct.pack(">2I", width, height) + whole[24:]


def jpeg_of(width, height, before=b"", *, progressive=0):
    """A jpeg whose start of frame claims a size, with something between its begin and the rest."""
    whole = cv2.imencode(".jpg", COLOURS, [cv2.IMWRITE_JPEG_PROGRESSIVE, progressive])[1].tobytes()
    at = whole.index(b"\xff\xc2" if progressive else b"\xff\xc0")
    size = struct.pack(">2H", height, width)
    return whole[:2] + before + whole[2 : at + 5] + size + whole[at + 9 :]


DECOY = struct.pack(">BBHBHHB", 255, 0xC0, 17, 8, 48, 64, 3) + bytes(9)
"""A start of frame that claims the requested size."""


def hidden(marker):
    """The decoy in what a parser that takes a marker for a segment with a length jumps to."""
    comment = b"\xff\xfe" + struct.pack(">H", 2 + len(DECOY)) + DECOY
    return bytes((255, marker)) + comment


def many_scans(count):
    """A progressive jpeg whose last scan is there again and again: little to send, slow to read."""
    whole = jpeg_of(4000, 4000, progressive=1)
    scan = whole[whole.rindex(b"\xff\xda") : -2]
    return whole[:-2] + scan * count + whole[-2:]


BOMBS = {
    "huge": (1, jpeg_of(65_500, 16_000)),
    "huge and progressive": (1, jpeg_of(65_500, 16_000, progressive=1)),
    "larger than requested": (1, jpeg_of(4097, 4097)),
    "behind TEM": (1, jpeg_of(65_500, 16_000, hidden(0x01))),
    **{f"behind RST{k}": (1, jpeg_of(65_500, 16_000, hidden(0xD0 + k))) for k in range(8)},
    "behind fill bytes": (1, jpeg_of(65_500, 16_000, b"\xff\xff\xff")),
    "behind noise": (1, jpeg_of(65_500, 16_000, b"\xff\xe0\0\2\1\2\3")),
    "behind a thumbnail": (1, jpeg_of(65_500, 16_000, b"\xff\xe1\0\x16" + DECOY)),
    "many scans": (1, many_scans(1000)),
    "huge png": (1, bomb(60_000, 60_000)),
    "huge png for a depth camera": (2, bomb(60_000, 60_000)),
    "second header in a png": (1, bomb(64, 48)[:33] + bomb(60_000, 60_000)[8:]),
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_would_take_much_memory_or_time_is_refused_before_it_is_decoded(name, monkeypatch):
    monkeypatch.setattr(cv2, "imdecode", lambda *_: pytest.fail("it is decoded"))
    type_id, payload = BOMBS[name]
    with pytest.raises(PacketError) as caught:
        decode_payload(VisionSensor(0, type_id, width=64, height=48), payload)
    assert caught.value.reason == "undecodable"


@pytest.mark.parametrize("progressive", [0, 1])
def test_a_picture_that_is_larger_than_requested_is_read(progressive):
    pixels = np.zeros((1080, 1920, 3), np.uint8)
    option = [cv2.IMWRITE_JPEG_PROGRESSIVE, progressive]
    jpeg = cv2.imencode(".jpg", pixels, option)[1].tobytes()
    assert decode_payload(VisionSensor(0, 1, width=64, height=48), jpeg).data.shape == pixels.shape


SPOILT = {
    "empty picture": (1, b""),
    "cut jpeg": (1, encode_image(COLOURS, "jpeg")[:-70]),
    "cut png": (1, encode_image(COLOURS, "png")[:-70]),
    "raw of another size": (1, bytes(64 * 48 * 3 - 1)),
    "depth of 8 bits": (2, encode_image(COLOURS[..., 0], "jpeg")),
    "huge png": (1, bomb(60_000, 60_000)),
    "png of no pixels": (1, bomb(0, 5)),
    "jpeg without a size": (1, b"\xff\xd8\xff\xd9" + bytes(20)),
    "cut cloud": (23, A[:-1]),
    "negative number of points": (23, A[:24] + b"\xff\xff\xff\xff"),
    "cloud without points": (23, bytes(27)),
    "cut range": (5, bytes(55)),
    "cut boxes": (30, bytes.fromhex("01000000") + bytes(23)),
    "negative number of targets": (31, b"\xff\xff\xff\xff"),
    "no number of targets": (31, b"\0"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_spoilt_payloads_are_refused(name):
    type_id, payload = SPOILT[name]
    sensor = VisionSensor(0, type_id, width=64, height=48, parameters=(100.0,))
    with pytest.raises(PacketError) as caught:
        decode_payload(sensor, payload)
    assert caught.value.reason == "undecodable"


@given(st.sampled_from([*SENSOR_TYPES, 99]), st.binary(max_size=200), st.booleans())
def test_any_bytes_are_read_or_refused(type_id, payload, as_file):
    head = encode_image(COLOURS, "jpeg")[:300] if as_file else b""
    sensor = VisionSensor(0, type_id, width=4, height=4)
    with suppress(PacketError):
        decode_payload(sensor, head + payload + b"\xff\xd9")


def test_a_picture_turned_by_its_camera_stays_as_it_is():
    """OpenCV would turn a jpeg by its Exif orientation; a robot's camera must not."""
    exif = b"\xff\xe1\x00\x22Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\1\0\6" + bytes(6)
    jpeg = encode_image(COLOURS, "jpeg")
    turned = jpeg[:2] + exif + jpeg[2:]
    plain = cv2.imdecode(np.frombuffer(turned, np.uint8), cv2.IMREAD_COLOR)
    assert plain.shape == (64, 48, 3)
    assert decode_payload(VisionSensor(0, 1), turned).data.shape == (48, 64, 3)
