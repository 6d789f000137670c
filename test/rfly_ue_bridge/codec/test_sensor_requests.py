# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sensor requests against datagrams written by hand from the wire table."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from rfly_common.errors import ConfigError, PacketError
from rfly_ue_bridge import RequestLayout, VisionSensor, encode_request, read_request
from rfly_ue_bridge.codec.to_rflysim3d import decode

H = math.sqrt(0.5)
HEAD = "39 30 00 00 01 00 01 00 00 00 80 02 e0 01 1e 00 01 00 7f 00 00 00 00 00 01 00 0f 27"
FRONT_44 = HEAD + "00 00 00 00 00 00 b4 42 9a 99 99 3e 9a 99 19 be"
FRONT = VisionSensor(0, 1, position=(0.3, -0.15, 0.0))
MID360 = VisionSensor(
    10, 23, target=2, width=64, height=272, rate=10, address=(192, 168, 1, 20), port=10009,
    fov_deg=0.0, position=(0.0, 0.0, -0.1), parameters=(100.0,),
)  # fmt: skip
DOWN = VisionSensor(2, 1, port=9997, position=(0.0, 0.0, 0.1), euler_deg=(0.0, -90.0, 0.0))
GIMBAL = VisionSensor(
    0, 9, position=(5.0, 0.0, -0.5), parameters=(-90.0, 20.0, 120.0, 120.0, 4.0, 200.0)
)
TURNED = VisionSensor(
    1, 1, position=(0.3, 0.0, 0.0), euler_or_quat=1.0, quat_xyzw=(0.0, -H, 0.0, H)
)


def zeros(count):
    return "00" * count


CASES = [
    (FRONT, RequestLayout.CURRENT, 144, FRONT_44 + zeros(100)),
    (
        MID360, RequestLayout.CURRENT, 144,
        "39 30 0a 00 17 00 02 00 00 00 40 00 10 01 0a 00 01 00 c0 00 a8 00 01 00 14 00 19 27"
        + zeros(16) + "cd cc cc bd" + zeros(32) + "00 00 c8 42" + zeros(60),
    ),
    (FRONT, RequestLayout.OLD, 92, FRONT_44 + zeros(48)),
    (
        DOWN, RequestLayout.OLD, 92,
        "39 30 02 00 01 00 01 00 00 00 80 02 e0 01 1e 00 01 00 7f 00 00 00 00 00 01 00 0d 27"
        "00 00 00 00 00 00 b4 42" + zeros(8) + "cd cc cc 3d" + zeros(4) + "00 00 b4 c2" + zeros(36),
    ),
    (
        GIMBAL, RequestLayout.CURRENT, 148,
        "39 30 00 00 00 00 00 00 09 00 01 00 00 00 80 02 e0 01 1e 00 01 00 7f 00 00 00 00 00 01 00"
        "0f 27 00 00 00 00 00 00 b4 42 00 00 a0 40 00 00 00 00 00 00 00 bf" + zeros(32)
        + "00 00 b4 c2 00 00 a0 41 00 00 f0 42 00 00 f0 42 00 00 80 40 00 00 48 43" + zeros(40),
    ),
    (
        TURNED, RequestLayout.NEW, 148,
        "3a 30 01 00 00 00 00 00 01 00 01 00 00 00 80 02 e0 01 1e 00 01 00 7f 00 00 00 00 00 01 00"
        "10 27 00 00 00 00 00 00 b4 42 9a 99 99 3e" + zeros(8) + "00 00 80 3f" + zeros(12)
        + "f3 04 35 3f 00 00 00 00 f3 04 35 bf 00 00 00 00" + zeros(64),
    ),
]  # fmt: skip
"""Sensor, layout, bytes, and the datagram."""


@pytest.mark.parametrize(("sensor", "layout", "size", "written"), CASES)
def test_requests_are_the_bytes_written_by_hand(sensor, layout, size, written):
    datagram = encode_request(sensor, layout)
    assert len(datagram) == size
    assert datagram.hex() == bytes.fromhex(written).hex()


@pytest.mark.parametrize(("sensor", "layout", "size", "written"), CASES)
def test_what_is_read_from_a_request_makes_the_same_request(sensor, layout, size, written):
    read = read_request(bytes.fromhex(written))
    assert encode_request(read, layout) == bytes.fromhex(written)
    integers = ("seq_id", "type_id", "target", "width", "height", "rate", "address", "port")
    assert [getattr(read, name) for name in integers] == [getattr(sensor, n) for n in integers]
    assert read.position == pytest.approx(sensor.position)
    assert read.parameters == sensor.parameters


def test_attitude_is_by_angles_or_by_quaternion():
    """Pitch -90°: half of -90° about y."""
    half = math.sin(math.radians(-45.0))
    assert DOWN.attitude_xyzw == pytest.approx((0.0, half, 0.0, -half))
    assert TURNED.attitude_xyzw == pytest.approx((0.0, half, 0.0, -half))


def test_the_old_layout_turns_a_quaternion_into_angles():
    read = read_request(encode_request(TURNED, RequestLayout.OLD))
    assert read.euler_deg == pytest.approx((0.0, -90.0, 0.0), abs=1e-4)


def test_the_old_layout_refuses_what_it_cannot_hold():
    with pytest.raises(ConfigError, match="otherParams"):
        encode_request(replace(FRONT, parameters=(0.0,) * 8 + (1.0,)), RequestLayout.OLD)


@pytest.mark.parametrize("wrong", [{"width": 65536}, {"rate": -1}, {"target": 70000}])
def test_numbers_that_do_not_fit_are_named(wrong):
    with pytest.raises(ConfigError, match="sensor 0: VisionSensorReq"):
        encode_request(replace(FRONT, **wrong))


def test_the_reader_refuses_other_datagrams():
    request = encode_request(FRONT)
    for datagram, reason in (
        (request[:-1], "length"),
        (b"\0" + request[1:], "checksum"),
        (request[:18] + b"\0\1" + request[20:], "value"),  # 256 in the address
        (request[:32] + b"\0\0\xc0\x7f" + request[36:], "value"),  # an angle that is NaN
    ):
        with pytest.raises(PacketError) as caught:
            read_request(datagram)
        assert caught.value.reason == reason


def test_port_0_is_9999_plus_the_number():
    request = bytearray(encode_request(MID360))
    request[26:28] = b"\0\0"
    assert read_request(bytes(request)).port == 10009


def test_listen_names_the_newest_request():
    assert decode(encode_request(TURNED, RequestLayout.NEW)).name == "VisionSensorReqNew"
