# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""CopterSim's states against datagrams and values worked out by hand."""

from __future__ import annotations

import math
import struct

import coptersim_datagrams as datagrams
import pytest

from rfly_common.errors import PacketError
from rfly_ue_bridge.codec.coptersim import (
    ESTIMATE,
    TRUTH,
    estimated_motion,
    has_estimate,
    hit_vehicle,
    home_of,
    is_ready,
    origin_of,
    place_of,
    truth_motion,
)

TRUTHS = [datagrams.TRUTH_168, datagrams.TRUTH_112, datagrams.TRUTH_200]
ESTIMATES = [datagrams.STATE_52, datagrams.STATE_120]
HOMES = {52: (47.397742, 8.545594, 488.0), 120: (47.3977, 8.5455, 488.0)}

# roll 0.01, pitch 0.02, yaw π/2 - 1.5 of FLU in ENU, by products of rotation matrices
QUAT = [0.0046429, 0.0101699, 0.0353387, 0.9993128]
VELOCITY = [-0.2133211, 1.2176115, -0.0664562]
PLACE = (47.397742, 8.545594, 488.0)


@pytest.mark.parametrize("datagram", TRUTHS, ids=len)
def test_the_truth_is_in_enu_and_flu(datagram):
    packet = TRUTH.decode(datagram)
    motion = truth_motion(packet)
    assert (packet["copterID"], packet["vehicleType"], packet["runnedTime"]) == (1, 3, 12.5)
    assert motion.position == (5.0, 10.0, 2.5)
    assert motion.orientation == pytest.approx(QUAT, abs=1e-6)
    assert motion.velocity == pytest.approx(VELOCITY, abs=1e-6)
    rates = None if len(datagram) == 112 else pytest.approx((0.0, 0.0, -0.1))
    assert motion.rates == rates
    assert packet.encode() == datagram


@pytest.mark.parametrize("datagram", ESTIMATES, ids=len)
def test_the_estimate_is_from_the_start_point(datagram):
    packet = ESTIMATE.decode(datagram)
    motion = estimated_motion(packet)
    assert has_estimate(packet)
    assert motion.position == (5.0, 10.0, 2.5)
    assert motion.orientation == pytest.approx(QUAT, abs=1e-6)
    assert motion.velocity == pytest.approx(VELOCITY, abs=1e-6)
    assert motion.rates is None
    assert home_of(packet) == pytest.approx(HOMES[len(datagram)], abs=1e-9)
    assert packet.encode() == datagram


def test_the_fields_of_the_long_estimate():
    packet = ESTIMATE.decode(datagrams.STATE_120)
    assert (packet["time"], packet["copterID"], packet["satellites"]) == (5000, 1, 12)
    assert packet["GpsVel"] == (120, -30, 5)
    assert packet["hdg"] == 90000
    assert packet["accuracy"] == pytest.approx((0.4, 0.6))


def test_ready_and_collisions():
    ready = ESTIMATE.decode(datagrams.READY_52)
    crash = ESTIMATE.decode(datagrams.CRASH_52)
    states = [ESTIMATE.decode(datagram) for datagram in ESTIMATES]
    assert [is_ready(p) for p in (ready, crash, *states)] == [True, False, False, True]
    assert [has_estimate(p) for p in (ready, crash)] == [False, False]
    assert [hit_vehicle(p) for p in (ready, crash, *states)] == [None, 3, None, None]

    assert hit_vehicle(TRUTH.decode(datagrams.CRASH)) == 2
    assert hit_vehicle(TRUTH.decode(datagrams.TRUTH_168)) is None
    assert hit_vehicle(TRUTH.decode(struct.pack("<i", 4) + datagrams.TRUTH_200[4:])) == 4
    assert hit_vehicle(TRUTH.decode(datagrams.CRASH[:8] + struct.pack("<i", -2))) is None


def test_the_origin_of_the_map():
    packet = TRUTH.decode(datagrams.ORIGIN)
    assert origin_of(packet) == pytest.approx((40.1540302, 116.2593683, 50.0))


@pytest.mark.parametrize(
    ("first", "second", "origin", "expected"),
    [
        # nearness to the map's origin
        (8.545594, 47.397742, (47.4, 8.5, 0.0), (47.397742, 8.545594)),
        (47.397742, 8.545594, (47.4, 8.5, 0.0), (47.397742, 8.545594)),
        # a latitude is never above 90
        (116.26, 40.15, None, (40.15, 116.26)),
        (40.15, 116.26, None, (40.15, 116.26)),
        (116.26, 40.15, (47.4, 8.5, 0.0), (40.15, 116.26)),
        # nothing decides
        (8.545594, 47.397742, None, None),
        (8.545594, 47.397742, (40.15, 116.26, 50.0), None),
        (0.0, 0.0, (47.4, 8.5, 0.0), None),
        (math.nan, 8.5, (47.4, 8.5, 0.0), None),
    ],
)
def test_the_order_of_latitude_and_longitude(first, second, origin, expected):
    datagram = datagrams.TRUTH_168[:-24] + struct.pack("<3d", first, second, 488.0)
    place = place_of(TRUTH.decode(datagram), origin)
    assert place == (None if expected is None else (*expected, 488.0))


def test_a_place_in_integers_needs_no_origin():
    assert place_of(TRUTH.decode(datagrams.TRUTH_112), None) == pytest.approx(PLACE)
    unset = datagrams.TRUTH_112[:12] + bytes(12) + datagrams.TRUTH_112[24:]
    assert place_of(TRUTH.decode(unset), None) is None


@pytest.mark.parametrize(
    ("table", "datagram", "reason"),
    [
        (TRUTH, datagrams.TRUTH_168[:-1], "length"),
        (TRUTH, b"", "length"),
        (TRUTH, bytes(4) + datagrams.TRUTH_168[4:], "checksum"),
        (TRUTH, datagrams.TRUTH_200[:4] + bytes(4) + datagrams.TRUTH_200[8:], "checksum"),
        (ESTIMATE, datagrams.STATE_120[:4] + bytes(4) + datagrams.STATE_120[8:], "checksum"),
        (ESTIMATE, datagrams.TRUTH_168, "length"),
    ],
)
def test_other_bytes_are_refused(table, datagram, reason):
    with pytest.raises(PacketError) as caught:
        table.decode(datagram)
    assert caught.value.reason == reason


def test_numbers_that_are_not_finite_are_refused():
    nan = struct.pack("<f", math.nan)
    truth = TRUTH.decode(datagrams.TRUTH_168[:16] + nan + datagrams.TRUTH_168[20:])
    with pytest.raises(PacketError, match="NaN"):
        truth_motion(truth)
    estimate = ESTIMATE.decode(datagrams.STATE_52[:-4] + nan)
    with pytest.raises(PacketError, match="NaN"):
        estimated_motion(estimate)
