# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Arrays to fleet packets, against `struct.pack` of one vehicle after the other.

Other tests are on values that must be refused.
"""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfly_ue_bridge.codec.fleet_datagrams import encode_fleet, encode_fleet_with_motors
from rfly_ue_bridge.codec.state_datagrams import datagrams
from rfly_ue_bridge.codec.to_rflysim3d import decode


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    return {
        "vehicle_id": rng.permutation(60_000)[:n] + 1,
        "vehicle_type": rng.integers(0, 65536, n),
        "position_ned": rng.normal(0, 500, (n, 3)),
        "euler": rng.normal(0, 1, (n, 3)),
        "scale": rng.integers(0, 65536, (n, 3)) / 100.0,
    }


def slow(arrays, per_packet, motors_per_vehicle, motors, ground):
    """One list after the other, filled with zeros, packed by the format of the wire table."""
    n = len(arrays["vehicle_id"])
    out = []
    counts = (1, 1, 3, 3, 3, motors_per_vehicle)
    fmt = f"<i{2 * per_packet}H{6 * per_packet}f{3 * per_packet}H{motors_per_vehicle * per_packet}f"
    scale = [[round(number * 100) for number in row] for row in arrays["scale"].tolist()]

    for start in range(0, n, per_packet):
        values = []
        rows = (
            arrays["vehicle_id"],
            arrays["vehicle_type"],
            arrays["position_ned"],
            arrays["euler"],
            scale,
            motors,
        )

        for count, column in zip(counts, rows, strict=True):
            part = np.asarray(column)[start : start + per_packet].reshape(-1).tolist()
            values += part + [0] * (count * per_packet - len(part))
        out.append(struct.pack(fmt, 1234567891 if ground else 1234567890, *values))
    return out


@pytest.mark.parametrize("ground", [False, True])
@pytest.mark.parametrize("n", [1, 99, 100, 101, 250])
def test_hundred_vehicles_a_packet(n, ground):
    arrays = make(n)
    mean = np.linspace(0, 9000, n)
    ours = datagrams(encode_fleet(**arrays, motor_speed_mean_rpm=mean, fit_ground=ground))
    assert ours == slow(arrays, 100, 1, mean, ground)
    assert {len(one) for one in ours} == {3804}


@pytest.mark.parametrize("ground", [False, True])
@pytest.mark.parametrize("n", [1, 19, 20, 21, 45])
def test_twenty_vehicles_with_eight_motors_a_packet(n, ground):
    arrays = make(n)
    motors = np.arange(8.0 * n).reshape(n, 8)
    ours = datagrams(encode_fleet_with_motors(**arrays, motor_speed_rpm=motors, fit_ground=ground))
    assert ours == slow(arrays, 20, 8, motors, ground)
    assert {len(one) for one in ours} == {1324}


def test_fewer_motors_leave_the_others_at_rest():
    packet = decode(
        datagrams(
            encode_fleet_with_motors([1, 2], 3, np.zeros((2, 3)), 0, [[1, 2, 3, 4], [5, 6, 7, 8]])
        )[0]
    )
    expected = (1, 2, 3, 4, 0, 0, 0, 0, 5, 6, 7, 8, 0, 0, 0, 0)
    assert packet["PWMs"][:16] == expected
    everywhere = decode(datagrams(encode_fleet_with_motors([1, 2], 3, np.zeros((2, 3)), 0, 900))[0])
    assert everywhere["PWMs"] == (900.0,) * 16 + (0.0,) * 144


def test_single_values_are_for_all():
    packet = decode(
        datagrams(encode_fleet([4, 5], 30, [1, 2, -3], [0, 0, 0.5], scale=[1, 2, 3]))[0]
    )
    assert packet["copterID"][:3] == (4, 5, 0)
    assert packet["vehicleType"][:3] == (30, 30, 0)
    assert packet["PosE"][:7] == (1, 2, -3, 1, 2, -3, 0)
    assert packet["AngEuler"][:7] == (0, 0, 0.5, 0, 0, 0.5, 0)
    assert packet["Scale"][:7] == (100, 200, 300, 100, 200, 300, 0)


def test_ground_and_air_go_in_packets_of_their_own():
    ground = np.array([True, False, True, False])
    packets = [
        decode(d)
        for d in datagrams(encode_fleet([1, 2, 3, 4], 3, np.eye(4)[:, :3], fit_ground=ground))
    ]
    expected = [
        (False, (2, 4, 0)),
        (True, (1, 3, 0)),
    ]
    assert [(p.keep_on_ground, p["copterID"][:3]) for p in packets] == expected
    assert packets[1]["PosE"][:6] == (1, 0, 0, 0, 0, 1)


def test_nobody_gives_no_datagram():
    assert datagrams(encode_fleet([], 3, np.zeros((0, 3)))) == []


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"vehicle_id": [1, 0]}, r"vehicle_id: 0 at \[1\], expected 1 to 65535"),
        ({"vehicle_id": [1, 65536]}, "vehicle_id: 65536"),
        ({"vehicle_id": [7, 7]}, "vehicle_id: an id occurs twice"),
        ({"vehicle_id": [1.0, 2.0]}, "vehicle_id: float64, expected whole numbers"),
        ({"vehicle_id": 5}, "vehicle_id: an array of 0 axes"),
        ({"vehicle_type": [3, 200150]}, r"vehicle_type: 200150 at \[1\], expected 0 to 65535"),
        ({"vehicle_type": [3, 3, 3]}, r"vehicle_type: shape \(3,\), expected \(2,\)"),
        ({"position_ned": np.zeros((3, 3))}, r"position_ned: shape \(3, 3\), expected \(2, 3\)"),
        ({"position_ned": [[0, 0, 0], [0, np.nan, 0]]}, r"position_ned: nan at \[1, 1\]"),
        ({"position_ned": [1e39, 0, 0]}, "position_ned: 1e[+]39"),
        ({"euler": [np.inf, 0, 0]}, "euler: inf"),
        ({"scale": 655.36}, "scale: 655.36.*, expected 0 to 655.35"),
        ({"scale": -1}, "scale: -1"),
        ({"scale": "big"}, "scale: <U3, expected numbers"),
        ({"motor_speed_mean_rpm": [1, 2, 3]}, "motor_speed_mean_rpm"),
        ({"fit_ground": [0, 1]}, "fit_ground: int64, expected True or False"),
    ],
)
def test_what_does_not_fit_is_named(changes, named):
    with pytest.raises(ValueError, match=named):
        encode_fleet(
            **{
                "vehicle_id": [1, 2],
                "vehicle_type": 3,
                "position_ned": np.zeros((2, 3)),
                **changes,
            }
        )


@pytest.mark.parametrize(
    "motors",
    [
        np.zeros((2, 9)),
        np.zeros((2, 0)),
        np.zeros((3, 4)),
        np.full((2, 4), np.nan),
    ],
)
def test_motors_that_do_not_fit(motors):
    with pytest.raises(ValueError, match="motor_speed_rpm"):
        encode_fleet_with_motors([1, 2], 3, np.zeros((2, 3)), 0, motors)


@given(st.integers(1, 230), st.integers(0, 2**31))
def test_round_trip(n, seed):
    arrays = make(n, seed)
    packets = [decode(d) for d in datagrams(encode_fleet(**arrays))]
    for field, name, count in (
        ("copterID", "vehicle_id", 1),
        ("PosE", "position_ned", 3),
        ("AngEuler", "euler", 3),
    ):
        read = np.concatenate([packet[field] for packet in packets])[: count * n]
        expected = arrays[name].reshape(-1).astype("f4" if count == 3 else "i8")
        np.testing.assert_array_equal(read, expected)
