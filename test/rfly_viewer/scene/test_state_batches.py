# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Runs of datagrams as arrays: every packet with a state, the order, and dropped ones."""

from __future__ import annotations

import struct
from collections import Counter

import numpy as np
import pytest

from rfly_viewer.scene.state_batches import StateBatch, read_batches


def simple(vehicle_id, x, checksum=1234567890):
    return struct.pack("<3i7f", checksum, vehicle_id, 3, 1200.0, x, 2.0, -3.0, 0.1, 0.2, 0.3)


def command(text):
    return struct.pack("<i52s", 1234567890, text)


def read(*datagrams):
    counters = Counter()
    return list(read_batches(datagrams, counters)), counters


def test_a_simple_packet_field_by_field():
    [batch], counters = read(simple(7, 1.5))
    assert (
        batch.id.tolist(),
        batch.vehicle_type.tolist(),
        batch.on_ground.tolist(),
    ) == (
        [7],
        [3],
        [False],
    )
    assert batch.position_ned.tolist() == [[1.5, 2.0, -3.0]]
    assert batch.euler[0] == pytest.approx([0.1, 0.2, 0.3], abs=1e-7)
    assert batch.motor_speed_rpm.tolist() == [1200.0]
    assert np.isnan(batch.scale).all()
    assert np.isnan(batch.velocity_ned).all()
    assert counters == {"SOut2SimulatorSimple": 1, "not_finite": 0}


def old_full(vehicle_id, x, length=152, tg=2):
    """The packet of 200 bytes that sendUE4PosFull of old SDKs sends, with C's alignment."""
    numbers = (*[4.0, 5.0, 6.0], *[x, 2.0, -3.0], *[0.1, 0.2, 0.3], *[0.0] * 4)
    body = struct.pack(
        "@2id27f3d", vehicle_id, 3, 12.5, *numbers, *[1200.0] * 8, *[0.0] * 6, 0.0, 0.0, 0.0
    )
    return struct.pack("<2i", tg, length) + body + bytes(192 - len(body))


def test_the_old_packet_of_200_bytes_is_told_by_its_length_field():
    datagrams = (old_full(7, 1.5), old_full(8, 2.5, length=151), old_full(9, 3.5, tg=-1))
    [batch], counters = read(*datagrams)
    assert batch.id.tolist() == [7, 9]
    assert batch.position_ned.tolist() == [[1.5, 2.0, -3.0], [3.5, 2.0, -3.0]]
    assert batch.velocity_ned.tolist() == [[4.0, 5.0, 6.0]] * 2
    assert batch.motor_speed_rpm.tolist() == [1200.0] * 2
    assert batch.on_ground.tolist() == [False] * 2
    assert counters == {"SOut2Simulator (old)": 2, "checksum": 1, "not_finite": 0}


def test_the_ground_variant_is_told_by_its_checksum():
    [batch], _ = read(simple(7, 1.5, 1234567891))
    assert batch.on_ground.tolist() == [True]


def test_the_current_time_packet_has_that_number_too_and_says_nothing_of_the_ground():
    rpm = [100.0, 300.0, *[0.0] * 6]
    head = (1234567891, 8, 5, 0, 0, 0)
    velocity = (4.0, 5.0, 6.0)
    euler = (0.0, 0.0, 1.0)
    position = (10.0, 20.0, -30.0)
    raw = struct.pack("<6i14f4d", *head, *rpm, *velocity, *euler, *position, -1.0)

    [batch], _ = read(raw)
    assert batch.on_ground.tolist() == [False]
    assert batch.position_ned.tolist() == [[10.0, 20.0, -30.0]]
    assert batch.velocity_ned.tolist() == [[4.0, 5.0, 6.0]]
    assert batch.motor_speed_rpm.tolist() == [200.0]  # the mean of the two motors that turn


def test_vehicle_apis_packet_has_its_doubles_behind_four_bytes_of_padding():
    head = struct.pack("<3i8f3f3f", 1234567890, 8, 5, *[1000.0] * 4, *[0.0] * 4, 1, 0, 0, 0, 0, 1.5)
    [batch], counters = read(head + b"\xff" * 4 + struct.pack("<4d", 10.0, 5.0, -2.5, 12.5))
    assert counters["SOut2SimulatorSimpleTime (VehicleApi)"] == 1
    assert batch.position_ned.tolist() == [[10.0, 5.0, -2.5]]
    assert batch.euler[0].tolist() == [0.0, 0.0, 1.5]
    assert batch.velocity_ned.tolist() == [[1.0, 0.0, 0.0]]
    assert batch.motor_speed_rpm.tolist() == [1000.0]


def test_a_fleet_packet_leaves_unused_slots_out_and_scales_by_hundredths():
    ids = [0] * 100
    types = [0] * 100
    position = [0.0] * 300
    euler = [0.0] * 300
    scale = [100] * 300
    rpm = [0.0] * 100

    # one vehicle, in slot 2
    ids[2] = 44
    types[2] = 30
    rpm[2] = 60.0
    position[6:9] = [1.0, 2.0, 3.0]
    euler[6:9] = [0.5, 0.25, -1.0]
    scale[6:9] = [150, 200, 50]

    raw = struct.pack(
        "<i200H600f300H100f", 1234567891, *ids, *types, *position, *euler, *scale, *rpm
    )

    [batch], _ = read(raw)
    assert batch.id.tolist() == [44]
    assert batch.vehicle_type.tolist() == [30]
    assert batch.on_ground.tolist() == [True]
    assert batch.position_ned.tolist() == [[1.0, 2.0, 3.0]]
    assert batch.euler.tolist() == [[0.5, 0.25, -1.0]]
    assert batch.scale.tolist() == [[1.5, 2.0, 0.5]]
    assert batch.motor_speed_rpm.tolist() == [60.0]


def test_the_last_state_of_an_id_counts_whatever_packet_it_came_in():
    later = struct.pack(
        "<3i10f", 1234567890, 7, 3, 0.0, 9.0, 2.0, -3.0, 0.0, 0.0, 0.0, 2.0, 2.0, 2.0
    )
    [batch], _ = read(simple(7, 1.0), simple(8, 5.0), later)
    expected = {
        7: 9.0,
        8: 5.0,
    }
    assert dict(zip(batch.id.tolist(), batch.position_ned[:, 0].tolist(), strict=True)) == expected

    [batch], _ = read(later, simple(8, 5.0), simple(7, 1.0))
    expected = {
        7: 1.0,
        8: 5.0,
    }
    assert dict(zip(batch.id.tolist(), batch.position_ned[:, 0].tolist(), strict=True)) == expected


def test_a_command_stays_between_what_came_before_and_after():
    said, _ = read(simple(7, 1.0), command(b"RflyClearCapture"), simple(7, 2.0))
    assert [type(part) is StateBatch for part in said] == [True, False, True]
    assert said[0].position_ned[0, 0] == 1.0
    assert said[1]["text"] == "RflyClearCapture"
    assert said[2].position_ned[0, 0] == 2.0


@pytest.mark.parametrize(
    ("datagram", "reason"),
    [
        pytest.param(b"", "length", id="empty"),
        pytest.param(bytes(41), "length", id="no packet has 41 bytes"),
        pytest.param(bytes(40), "checksum", id="checksum 0"),
        pytest.param(command(b"\xff\xfe"), "text", id="not UTF-8"),
        pytest.param(simple(7, float("nan")), "not_finite", id="NaN"),
        pytest.param(simple(7, float("inf")), "not_finite", id="infinite"),
        pytest.param(simple(7, 3e6), "not_finite", id="beyond a million metres"),
    ],
)
def test_what_cannot_be_shown_is_counted_and_dropped(datagram, reason):
    said, counters = read(simple(1, 0.0), datagram, simple(2, 0.0))
    assert counters[reason] == 1
    assert [i for batch in said for i in batch.id.tolist()] == [1, 2]


@pytest.mark.parametrize(
    ("vehicle_type", "motors", "rotor_rpm", "wheel_rpm"),
    [
        (600003, [1000.0] * 5 + [1300.0, -100.0, -200.0], 1050.0, -150.0),
        (400003, [900.0] * 4 + [500.0, 300.0, 130.0, 70.0], 900.0, 250.0),
        (800003, [800.0] * 8, 800.0, 0.0),
        (
            3,
            [600.0] * 6 + [-300.0, 900.0],
            600.0,
            0.0,
        ),  # a multirotor has no wheels, whichever way its motors turn
    ],
)
def test_the_type_of_a_land_air_vehicle_says_which_motors_are_wheels(
    vehicle_type, motors, rotor_rpm, wheel_rpm
):
    raw = struct.pack(
        "<6i14f4d", 1234567891, 8, vehicle_type, 0, 0, 0, *motors, *[0.0] * 6, *[0.0] * 4
    )
    [batch], _ = read(raw)
    assert batch.motor_speed_rpm.tolist() == [rotor_rpm]
    assert batch.wheel_speed_rpm.tolist() == [wheel_rpm]
