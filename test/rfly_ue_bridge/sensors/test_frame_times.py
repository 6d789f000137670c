# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Stamps from CopterSim's clock, with and without its heart-beat."""

from __future__ import annotations

import struct

import pytest

from rfly_ue_bridge.codec.coptersim import IMU_DATA, RFLY_TIME_STMP, encode_imu_request
from rfly_ue_bridge.sensors.frame_times import FrameTimes, SimulationStarts

BEAT = bytes.fromhex("15cd5b07010000000068e5cf8b010000d498e5cf8b0100007d00000000000000")
"""Vehicle 1, start 1,700,000,000.000 s, 12.5 s later, number 125."""


def test_packets_of_coptersim():
    assert RFLY_TIME_STMP.unpack(BEAT) == {
        "checksum": 123456789,
        "copterID": 1,
        "SysStartTime": 1_700_000_000_000,
        "SysCurrentTime": 1_700_000_012_500,
        "HeartCount": 125,
    }
    request = encode_imu_request(31000, (192, 168, 1, 20), 200)
    assert request == bytes.fromhex("39300000c8001879c0a80114") + bytes(24)
    rest = IMU_DATA.unpack(bytes.fromhex("da029649") + bytes(20) + b"\xc3\xf5\x1c\xc1" + bytes(12))
    assert rest["acc"] == pytest.approx((0.0, 0.0, -9.81))


def test_the_start_by_a_heart_beat_of_a_right_and_a_wrong_clock():
    starts = SimulationStarts()
    assert starts.of(1) is None
    assert starts.hear(BEAT, 1_700_000_012.6)
    assert starts.of(1) == 1_700_000_000.0
    assert starts.of(7) == 1_700_000_000.0  # the only one that is known
    assert starts.hear(BEAT, 1_800_000_000.0)
    assert starts.of(1) == pytest.approx(1_799_999_987.5)
    assert not starts.hear(BEAT[:-1], 0.0)
    assert not starts.hear(struct.pack("<i", 123456788) + BEAT[4:], 0.0)


def test_without_a_heart_beat_the_quickest_frame_counts():
    times = FrameTimes()
    assert times.stamp(1.0, 101.05, None) == pytest.approx(101.05)
    assert times.stamp(1.1, 101.12, None) == pytest.approx(101.12)  # took 20 ms
    assert times.stamp(1.2, 101.30, None) == pytest.approx(101.22)
    assert times.stamp(1.3, 101.40, 100.0) == pytest.approx(101.3)  # the heart-beat is heard


def test_a_quick_frame_is_forgotten_after_two_windows():
    """The clocks drift."""
    times = FrameTimes()
    times.stamp(1.0, 101.0, None)
    for k in range(2, 13):
        stamp = times.stamp(float(k), 100.2 + k, None)
    assert stamp == pytest.approx(112.2)


def test_a_restarted_simulation_has_another_start():
    times = FrameTimes()
    times.stamp(50.0, 150.0, None)
    assert times.stamp(0.1, 160.0, None) == pytest.approx(160.0)


def test_a_time_that_does_not_advance_gives_the_arrival():
    times = FrameTimes()
    times.stamp(5.0, 100.0, 90.0)
    assert not times.stands_still
    assert times.stamp(5.0, 100.1, 90.0) == 100.1
    assert times.stands_still
    assert FrameTimes().stamp(-1.0, 7.0, 90.0) == 7.0


@pytest.mark.parametrize(
    ("start_ms", "current_ms"),
    [
        (2**62, 2**62),  # its machine's clock counts as wrong: the difference is 0, as at a start
        (2**62, 1_700_000_012_500),
        (-(2**62), 1_700_000_012_500),
        (-(2**63), 2**63 - 1),
        (1_700_000_020_000, 1_700_000_012_500),
    ],
)
def test_an_impossible_heart_beat_is_none(start_ms, current_ms):
    starts = SimulationStarts()
    beat = BEAT[:8] + struct.pack("<2q", start_ms, current_ms) + BEAT[24:]
    is_start = start_ms == current_ms
    assert starts.hear(beat, 1_700_000_012.6) == is_start
    assert starts.of(1) == (pytest.approx(1_700_000_012.6) if is_start else None)
