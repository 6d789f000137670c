# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""RflySim's MATLAB calls: their datagrams on a real socket, and MATLAB's way to write numbers."""

from __future__ import annotations

import inspect
import socket

import numpy as np
import pytest
from node_harness import PATIENCE

from rfly_ue_bridge.sdk.matlab_calls import RflyCameraPosAng, RflySendUE4CMD, num2str


@pytest.fixture
def sink(rflysim_host):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.bind((rflysim_host, 20010))
        opened.settimeout(PATIENCE)
        yield opened


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("r.setres 720x405w", "d2029649" + "722e736574726573203732307834303577" + "00" * 35),
        ("x" * 52, "d2029649" + "78" * 52),
        ("x" * 60, "d2029649" + "78" * 60),  # no length check: a longer datagram
        ("ö" * 26, "d2029649" + "c3b6" * 26),
    ],
)
def test_command_datagram(sink, rflysim_host, text, expected):
    assert RflySendUE4CMD(text, rflysim_host) is None
    assert sink.recv(1000).hex() == expected


def test_default_command(sink, rflysim_host):
    RflySendUE4CMD(host=rflysim_host)
    assert sink.recv(1000) == bytes.fromhex("d2029649") + b"RflyChangeMapbyName Grasslands" + bytes(
        22
    )


def test_defaults_are_matlabs_and_they_broadcast():
    for call in (RflySendUE4CMD, RflyCameraPosAng):
        assert inspect.signature(call).parameters["host"].default == "255.255.255.255"
    numbers = inspect.signature(RflyCameraPosAng).parameters
    expected = [(name, 0) for name in ("x", "y", "z", "roll", "pitch", "yaw")]
    assert [(n, p.default) for n, p in numbers.items()][:6] == expected


def test_a_broadcast_address_is_allowed(rflysim_ports):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind(("127.255.255.255", 20010))
        sink.settimeout(PATIENCE)
        RflySendUE4CMD("RflyClearCapture", "127.255.255.255")
        assert sink.recv(100)[4:20] == b"RflyClearCapture"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "RflyCameraPosAng 0 0 0 0 0 0"),
        ((1, 2.5), "RflyCameraPosAng 1 2.5 0 0 0 0"),
        (
            (-16.479, 1.45, -177.181, 0, -45, 1 / 3),
            "RflyCameraPosAng -16.479 1.45 -177.181 0 -45 0.33333",
        ),
    ],
)
def test_camera_always_sends_six_numbers(sink, rflysim_host, caplog, arguments, text):
    RflyCameraPosAng(*arguments, host=rflysim_host)
    datagram = sink.recv(1000)
    assert datagram[4:].rstrip(b"\0").decode() == text
    assert len(datagram) == 56
    assert not caplog.records


@pytest.mark.parametrize(
    ("arguments", "text", "size"),
    [
        (
            (-16.479, 1.45, -177.1812, 0, -45, 123.4567),
            "RflyCameraPosAng -16.479 1.45 -177.1812 0 -45 123.4567",
            256,
        ),
        ((1.5, 1.5, -20.25, 10.5, -45, 100.125), None, 56),
        ((-1234.5678,) * 6, "RflyCameraPosAng" + " -1234.5678" * 6, 256),
    ],
)
def test_a_long_camera_command_is_one_that_rflysim3d_understands(
    sink, rflysim_host, caplog, arguments, text, size
):
    """RflySim3D takes texts in 52 bytes (datagram 56) or in 252 (datagram 256), nothing between."""
    RflyCameraPosAng(*arguments, host=rflysim_host)
    datagram = sink.recv(1000)
    assert len(datagram) == size
    assert datagram[:4].hex() == "d2029649"
    assert text is None or datagram[4:].rstrip(b"\0").decode() == text
    assert [record.levelname for record in caplog.records] == ["WARNING"] * (size == 256)
    if size == 256:
        assert f"has {len(text)} bytes: sent as a long command" in caplog.text


def test_both_spellings_of_the_manual_are_the_same_call(sink, rflysim_host):
    from rfly_ue_bridge import RflySendUE4CMD, RflySendUECMD

    assert RflySendUECMD is RflySendUE4CMD
    RflySendUECMD("stat fps", rflysim_host)
    assert sink.recv(100)[4:].rstrip(b"\0") == b"stat fps"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (7, "7"),
        (-3.0, "-3"),
        (1e10, "10000000000"),
        (2.5, "2.5"),
        (1 / 3, "0.33333"),
        (-1 / 3, "-0.33333"),
        (177.18123, "177.1812"),
        (-177.18123, "-177.1812"),
        (3.14159265, "3.1416"),
        (0.00012345678, "0.00012346"),
        (0.000012345678, "1.2346e-05"),
        (9.99999, "10"),
        (12345.6789, "12345.6789"),
        (99999.123456, "99999.1235"),
        (123456789012.345, "123456789012.345"),
        (1234567890.5, "1234567890.5"),
        (0.1 + 0.2, "0.3"),
        (np.float64(2.5), "2.5"),
        (float("nan"), "NaN"),
        (float("inf"), "Inf"),
        (float("-inf"), "-Inf"),
    ],
)
def test_numbers_as_matlab_writes_them(number, text):
    assert num2str(number) == text
