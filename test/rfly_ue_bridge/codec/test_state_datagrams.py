# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicle states to datagrams.

Every frame rule has a signed example, every packet rule a test; a slow, obvious oracle does the
rest.
"""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rfly_common.vehicle_states import VehicleStates
from rfly_ue_bridge.codec.ned_states import body_to_frame, states_to_ned
from rfly_ue_bridge.codec.state_datagrams import (
    datagrams,
    encode_pose,
    encode_states,
    goes_in_fleet,
)
from rfly_ue_bridge.codec.to_rflysim3d import decode

H = math.sqrt(0.5)
C15 = math.cos(math.radians(15))
S15 = math.sin(math.radians(15))
C05 = math.cos(math.radians(5))
S05 = math.sin(math.radians(5))


def make(n=1, **changes):
    values = {
        "id": np.arange(1, n + 1),
        "vehicle_type": np.full(n, 3),
        "position": np.zeros((n, 3)),
        "orientation": np.tile([0.0, 0.0, 0.0, 1.0], (n, 1)),
    }
    return VehicleStates(**{**values, **changes})


def encode(states, axes="enu", packets="auto", **transform):
    ned, dropped = states_to_ned(states, axes, **transform)
    return datagrams(encode_states(ned, in_fleet=goes_in_fleet(len(states), packets))), dropped


def only(states, axes="enu", **transform):
    packets, dropped = encode(states, axes, **transform)
    assert dropped == {}
    assert len(packets) == 1
    return decode(packets[0])


@pytest.mark.parametrize(
    ("axes", "quat", "euler_deg"),
    [
        # ENU: yaw counter-clockwise from east
        pytest.param("enu", (0, 0, 0, 1), (0, 0, 90), id="enu-heading-east"),
        pytest.param("enu", (0, 0, H, H), (0, 0, 0), id="enu-heading-north"),
        pytest.param("enu", (0, 0, 1, 0), (0, 0, -90), id="enu-heading-west"),
        pytest.param("enu", (0, 0, -H, H), (0, 0, 180), id="enu-heading-south"),
        # about the body's left axis by +30°: nose down; about the forward axis by +30°: right side
        # down
        pytest.param("enu", (0, S15, 0, C15), (0, -30, 90), id="enu-nose-down-is-negative-pitch"),
        pytest.param(
            "enu", (S15, 0, 0, C15), (30, 0, 90), id="enu-right-side-down-is-positive-roll"
        ),
        # the same three in NED: half a turn about north is level and heading north
        pytest.param("ned", (1, 0, 0, 0), (0, 0, 0), id="ned-level-north"),
        pytest.param("ned", (H, H, 0, 0), (0, 0, 90), id="ned-level-east"),
        pytest.param("ned", (C15, 0, -S15, 0), (0, 30, 0), id="ned-nose-up-is-positive-pitch"),
    ],
)
def test_attitude(axes, quat, euler_deg):
    """Roll, pitch, yaw of FRD in NED for an orientation of base_link (FLU) in the frame."""
    got = np.degrees(only(make(orientation=np.array([quat], float)), axes)["AngEuler"])
    difference = (got - np.array(euler_deg) + 180) % 360 - 180
    np.testing.assert_allclose(difference, 0, atol=1e-5)


def test_enu_position_to_exact_bytes():
    """East 2, north 1, up 3, heading north is NED 1, 2, -3 and yaw 0.

    The current time packet is compared to its last byte.
    """
    states = make(
        id=[1001],
        vehicle_type=[200150],
        position=[[2.0, 1.0, 3.0]],
        orientation=[[0, 0, 0, 1.0]],
        velocity=[[5.0, 4.0, 6.0]],
        motor_speed=np.array([[0.0, math.pi / 30, 100 * math.pi]], np.float32),
    )
    packets, _ = encode(states)
    expected = (
        "d3029649" "e9030000" "d60d0300"  # checksum 1234567891, id 1001, type 200150
        + "00000000" * 3  # no GPS
        # 0, 1, 3000 rpm; 5 motors that the vehicle has not
        + "00000000" "0000803f" "00803b45" + "00000000" * 5
        + "00008040" "0000a040" "0000c0c0"  # velocity 4, 5, -6
        + "00000000" "00000000" "db0fc93f"  # yaw pi/2 = 0x3fc90fdb: heading east
        + "000000000000f03f" "0000000000000040" "00000000000008c0"  # position 1, 2, -3
        + "000000000000f0bf"  # runnedTime -1
    )  # fmt: skip
    assert [p.hex() for p in packets] == [expected]


@pytest.mark.parametrize("n", [1, 19, 20, 21, 45])
def test_twenty_vehicles_with_eight_motors_a_packet(n):
    """One vehicle after the other, filled with zeros, packed by the format of the wire table."""
    speeds = np.arange(8.0 * n, dtype=np.float32).reshape(n, 8)
    place = np.arange(3.0 * n).reshape(n, 3)
    ned, _ = states_to_ned(make(n, position=place, motor_speed=speeds), "ned")
    columns = (
        (1, ned.id),
        (1, ned.vehicle_type),
        (3, ned.position_ned),
        (3, ned.euler),
        (3, np.full((n, 3), 100)),
        (8, ned.motor_speed_rpm),
    )

    expected = []
    for start in range(0, n, 20):
        values = [1234567890]
        for count, column in columns:
            part = column[start : start + 20].reshape(-1).tolist()
            values += part + [0] * (20 * count - len(part))
        expected.append(struct.pack("<i40H120f60H160f", *values))
    assert datagrams(encode_states(ned, in_fleet=True, with_motors=True)) == expected


def test_ned_position_and_velocity_stay_as_they_are():
    packet = only(
        make(
            position=[[1.0, 2.0, -3.0]], velocity=[[4.0, 5.0, -6.0]], orientation=[[1.0, 0, 0, 0]]
        ),
        "ned",
    )
    assert packet["PosE"] == (1.0, 2.0, -3.0)
    assert packet["VelE"] == (4.0, 5.0, -6.0)


def test_other_frame_is_moved_by_its_transform():
    """A frame at (10, 0, 0) in ENU, turned left by 90°: its x axis is north, its y axis west."""
    states = make(
        position=[[1.0, 2.0, 3.0]], velocity=[[1.0, 0.0, 0.0]], orientation=[[0.0, 0.0, 0.0, 1.0]]
    )
    packet = only(states, translation=(10.0, 0.0, 0.0), quat_xyzw=(0, 0, H, H))
    assert packet["PosE"] == pytest.approx((1.0, 8.0, -3.0), abs=1e-12)  # east 10 - 2, north 1
    assert packet["VelE"] == pytest.approx((1.0, 0.0, 0.0), abs=1e-7)
    assert packet["AngEuler"] == pytest.approx((0.0, 0.0, 0.0), abs=1e-7)


@pytest.mark.parametrize(
    ("child", "twist", "velocity"),
    [
        ("base_link", (1.0, 2.0, 3.0), (-2.0, 1.0, 3.0)),
        ("base_link_frd", (1.0, -2.0, -3.0), (-2.0, 1.0, 3.0)),
        ("", (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
    ],
)
def test_twist_is_turned_by_the_attitude(child, twist, velocity):
    """Velocity is turned; heading north in ENU, forward is north and left is west.

    The quaternion's norm does not scale it.
    """
    for norm in (1.0, 1.0009):
        got = body_to_frame(np.array([0, 0, H, H]) * norm, twist, child)
        np.testing.assert_allclose(got, velocity, atol=1e-12)


def test_packet_of_ground_and_scale():
    """The packet and its checksum say whether a vehicle is kept on the ground, or scaled."""
    states = make(
        4,
        fit_ground=[0, 1, 0, 1],
        scale=[
            [1, 1, 1],
            [1, 1, 1],
            [1, 1, 2],
            [0.5, 1, 1],
        ],
        motor_speed=np.full((4, 4), np.array([0, math.pi, math.pi, 2 * math.pi]), np.float32),
    )

    packets = [decode(p) for p in encode(states)[0]]
    expected = [
        ("SOut2SimulatorSimpleTime", 1234567891, 1),
        ("SOut2SimulatorSimple", 1234567891, 2),
        ("SOut2SimulatorSimple1", 1234567890, 3),
        ("SOut2SimulatorSimple1", 1234567891, 4),
    ]
    assert [(p.name, p["checksum"], p["copterID"]) for p in packets] == expected

    assert [p.keep_on_ground for p in packets] == [False, True, False, True]
    # the mean of 0, 30, 30, 60 rpm: of 4 motors, not of 8
    assert packets[1]["MotorRPMSMean"] == 30.0
    assert packets[3]["Scale"] == (0.5, 1.0, 1.0)
    assert packets[0]["MotorRPMS"] == (0.0, 30.0, 30.0, 60.0, 0.0, 0.0, 0.0, 0.0)


def test_ground_packet_byte_by_byte():
    states = make(
        id=[101],
        vehicle_type=[30],
        position=[[1.5, -16.0, 4.0]],
        fit_ground=[True],
        orientation=[[0, 0, H, H]],
    )
    expected = "d3029649650000001e00000000000000000080c10000c03f000080c0"
    assert encode(states)[0][0].hex() == expected + "00000000" * 3


@pytest.mark.parametrize(
    ("vehicles", "packets", "sizes"),
    [
        (20, "auto", [112] * 20),
        (21, "auto", [3804]),
        (100, "auto", [3804]),
        (101, "auto", [3804, 3804]),
        (250, "single", [112] * 250),
        (1, "batch", [3804]),
        (0, "auto", []),
        (0, "batch", []),
    ],
)
def test_twenty_go_singly_more_as_fleet(vehicles, packets, sizes):
    assert [len(p) for p in encode(make(vehicles), packets=packets)[0]] == sizes


def test_fleet_packets_keep_the_order_and_leave_unused_slots_empty():
    n = 230
    ids = np.random.default_rng(1).permutation(np.arange(1, n + 1))
    states = make(n, id=ids, position=np.arange(3.0 * n).reshape(n, 3), scale=np.full((n, 3), 1.5))

    packets = [decode(p) for p in encode(states)[0]]
    assert [p["checksum"] for p in packets] == [1234567890] * 3
    assert sum((p["copterID"] for p in packets), ()) == (*ids.tolist(), *[0] * 70)

    last = packets[-1]
    # NED x is north, the second of ENU
    expected = tuple(3.0 * np.arange(200, 230) + 1)
    assert last["PosE"][: 3 * 30 : 3] == expected

    for field, used in (
        ("vehicleType", 30),
        ("PosE", 90),
        ("AngEuler", 90),
        ("Scale", 90),
        ("MotorRPMSMean", 30),
    ):
        assert not any(last[field][used:]), field
    assert last["Scale"][:90] == (150,) * 90


def test_one_series_for_each_ground_flag():
    """Each series is in message order; first come those off the ground flag."""
    n = 240
    ground = np.arange(n) % 2 == 1
    packets = [decode(p) for p in encode(make(n, fit_ground=ground))[0]]
    expected = [
        (1234567890, 1, 100),
        (1234567890, 201, 20),
        (1234567891, 2, 100),
        (1234567891, 202, 20),
    ]
    assert [
        (p["checksum"], p["copterID"][0], sum(i > 0 for i in p["copterID"])) for p in packets
    ] == expected


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"id": 65536}, id="id-65536"),
        pytest.param({"id": 0}, id="id-0-means-unused"),
        pytest.param({"id": -1}, id="id-negative"),
        pytest.param({"vehicle_type": 200150}, id="type-200150"),
        pytest.param({"vehicle_type": -1}, id="type-negative"),
        pytest.param({"scale": (655.36, 1.0, 1.0)}, id="scale-655.36"),
        pytest.param({"scale": (1.0, 1.0, -1.0)}, id="mirrored"),
        pytest.param({"scale": (1.0, 0.004, 1.0)}, id="scale-that-would-round-to-0"),
    ],
)
def test_what_does_not_fit_the_fleet_packet_goes_singly(changes):
    states = make(30, scale=np.ones((30, 3)))
    arrays = {name: getattr(states, name).copy() for name in ("id", "vehicle_type", "scale")}
    for name, value in changes.items():
        arrays[name][7] = value
    packets = [decode(p) for p in encode(make(30, **arrays))[0]]
    expected = [3804, 52 if "scale" in changes else 112]
    assert [p.type.size for p in packets] == expected
    assert packets[0]["copterID"][:30] == (*range(1, 8), *range(9, 31), 0)
    assert packets[1]["copterID"] == changes.get("id", 8)


def test_largest_values_of_the_fleet_packet_still_fit():
    states = make(
        30,
        scale=np.full((30, 3), 655.35),
        vehicle_type=np.full(30, 65535),
        id=np.arange(65506, 65536),
    )
    packets = [decode(p) for p in encode(states)[0]]
    assert len(packets) == 1
    assert packets[0]["Scale"][:90] == (65535,) * 90
    assert packets[0]["copterID"][29] == 65535


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"position": (0.0, math.nan, 0.0)}, "not_finite", id="nan-position"),
        pytest.param({"position": (math.inf, 0.0, 0.0)}, "not_finite", id="infinite-position"),
        pytest.param(
            {"orientation": (0.0, 0.0, math.nan, 1.0)}, "not_finite", id="nan-orientation"
        ),
        pytest.param(
            {"orientation": (0.0, 0.0, 0.0, 1.0011)}, "bad_quaternion", id="norm-too-large"
        ),
        pytest.param(
            {"orientation": (0.0, 0.0, 0.0, 0.9989)}, "bad_quaternion", id="norm-too-small"
        ),
        pytest.param({"orientation": (0.0, 0.0, 0.0, 0.0)}, "bad_quaternion", id="zero-quaternion"),
        pytest.param({"velocity": (0.0, 0.0, math.nan)}, "not_finite", id="nan-velocity"),
        pytest.param({"motor_speed": (0.0, math.inf)}, "not_finite", id="infinite-motor"),
        pytest.param({"motor_speed": (0.0, 3e38)}, "not_finite", id="motor-beyond-float-in-rpm"),
        pytest.param({"scale": (1.0, math.nan, 1.0)}, "not_finite", id="nan-scale"),
        pytest.param({"position": (1e39, 0.0, 0.0)}, "too_far", id="position-beyond-float"),
        pytest.param({"position": (0.0, -1e30, 0.0)}, "too_far", id="position-absurd"),
        pytest.param({"position": (0.0, 0.0, 1.001e8)}, "too_far", id="position-just-too-far"),
    ],
)
@pytest.mark.parametrize("n", [2, 30])
def test_bad_vehicles_are_left_out_and_the_others_go(changes, reason, n):
    arrays = {
        "position": np.ones((n, 3)),
        "orientation": np.tile([0.0, 0.0, 0.0, 1.0], (n, 1)),
        "velocity": np.ones((n, 3), np.float32),
        "motor_speed": np.ones((n, 2), np.float32),
        "scale": np.ones((n, 3), np.float32),
        "fit_ground": np.zeros(n, bool),
    }
    for name, value in changes.items():
        arrays[name][1] = value
    packets, dropped = encode(make(n, **arrays), packets="single")
    assert dropped == {reason: 1}
    assert [decode(p)["copterID"] for p in packets] == [1, *range(3, n + 1)]


def test_a_far_position_goes_as_double():
    assert only(make(position=[[0.0, 99_999_999.5, 0.0]]))["PosE"][0] == 99_999_999.5


@pytest.mark.parametrize("norm", [0.9990001, 1.0, 1.0009999])
def test_slightly_wrong_norm_is_normalised(norm):
    right = only(make(orientation=[[0.1, 0.2, 0.3, math.sqrt(0.86)]]))
    other = only(make(orientation=np.array([[0.1, 0.2, 0.3, math.sqrt(0.86)]]) * norm))
    np.testing.assert_allclose(other["AngEuler"], right["AngEuler"], atol=1e-7)


@pytest.mark.parametrize("packets", ["single", "batch"])
def test_zeros_are_positive_zeros(packets):
    """A vehicle at rest in the origin, heading north, has only zeros, as the SDK sends them.

    A turned axis leaves no sign bit.
    """
    datagram = encode(make(orientation=[[0, 0, H, H]]), packets=packets)[0][0]
    body = datagram[12:104] if packets == "single" else datagram[404:1604]
    assert body == bytes(len(body))


def test_nothing_of_the_input_changes():
    states = make(30, position=np.full((30, 3), 5.0), velocity=np.full((30, 3), 2.0, np.float32))
    before = {
        name: getattr(states, name).copy()
        for name in ("id", "position", "orientation", "velocity", "scale")
    }
    encode(states)
    for name, array in before.items():
        np.testing.assert_array_equal(getattr(states, name), array)


def oracle(states):
    """Datagrams of single packets by `struct.pack`, from rotation matrices (ENU)."""
    out = []
    for i in range(len(states)):
        x, y, z, w = states.orientation[i] / np.linalg.norm(states.orientation[i])

        # the rotation matrix, in ENU and FLU
        enu_flu = np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
            ]
        )

        # the same in NED and FRD
        ned_enu = np.array(
            [
                [0, 1, 0],
                [1, 0, 0],
                [0, 0, -1.0],
            ]
        )
        r = ned_enu @ enu_flu @ np.diag([1.0, -1.0, -1.0])
        euler = (
            math.atan2(r[2, 1], r[2, 2]),
            math.asin(max(-1.0, min(1.0, -r[2, 0]))),
            math.atan2(r[1, 0], r[0, 0]),
        )

        position = ned_enu @ states.position[i]
        rpm = [float(m) * 60 / (2 * math.pi) for m in states.motor_speed[i]]
        mean = sum(rpm) / len(rpm) if rpm else 0.0
        head = int(states.id[i]), int(states.vehicle_type[i])
        ground = bool(states.fit_ground[i])
        scale = [float(s) for s in states.scale[i]]

        if scale != [1.0, 1.0, 1.0]:
            fields = (1234567891 if ground else 1234567890, *head, mean, *position, *euler, *scale)
            out.append(struct.pack("<3i10f", *fields))
        elif ground:
            out.append(struct.pack("<3i7f", 1234567891, *head, mean, *position, *euler))
        else:
            motors = (rpm + [0.0] * 8)[:8]
            velocity = ned_enu @ states.velocity[i].astype(float)
            fields = (1234567891, *head, 0, 0, 0, *motors, *velocity, *euler, *position, -1.0)
            out.append(struct.pack("<6i14f4d", *fields))
    return out


_metres = st.floats(-1e6, 1e6)


@st.composite
def fleets(draw):
    n = draw(st.integers(1, 40))
    motors = draw(st.integers(0, 8))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)

    q = random.normal(size=(n, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)

    return make(
        n,
        id=random.permutation(100_000)[:n],
        vehicle_type=random.integers(0, 300_000, n),
        position=random.normal(scale=draw(st.sampled_from([1e-3, 1.0, 1e5])), size=(n, 3)),
        orientation=q * random.uniform(0.9995, 1.0005, (n, 1)),
        velocity=random.normal(size=(n, 3)).astype(np.float32),
        motor_speed=random.uniform(0, 1000, (n, motors)).astype(np.float32),
        scale=np.where(random.random((n, 1)) < 0.5, 1.0, random.uniform(0.1, 10, (n, 3))).astype(
            np.float32
        ),
        fit_ground=random.random(n) < 0.5,
    )


def _differs_only_by_rounding(ours, theirs):
    a = decode(ours)
    b = decode(theirs)
    assert a.type is b.type
    for name, value in a.values.items():
        if name == "AngEuler":
            difference = (np.array(value) - np.array(b[name]) + math.pi) % (2 * math.pi) - math.pi
            np.testing.assert_allclose(
                difference, 0, atol=2e-6
            )  # asin near ±90° in the oracle, float on the wire
        else:
            np.testing.assert_allclose(value, b[name], rtol=1.2e-7, atol=0)


@given(fleets())
@settings(deadline=None)
def test_single_packets_agree_with_the_slow_obvious_way(states):
    packets, dropped = encode(states, packets="single")
    expected = oracle(states)
    assert dropped == {}
    assert [len(p) for p in packets] == [len(p) for p in expected]
    for ours, theirs in zip(packets, expected, strict=True):
        _differs_only_by_rounding(ours, theirs)


@given(fleets())
@settings(deadline=None)
def test_fleet_packets_hold_what_the_single_ones_hold(states):
    """Each vehicle comes exactly once, with the numbers of its single packet rounded to float."""
    single = {p["copterID"]: p for p in map(decode, encode(states, packets="single")[0])}
    seen = []

    for packet in map(decode, encode(states, packets="batch")[0]):
        if packet.name != "Multi3DData100New":
            assert packet == single[packet["copterID"]]
            seen.append(packet["copterID"])
            continue

        for slot, vehicle_id in enumerate(packet["copterID"]):
            if vehicle_id == 0:
                continue
            alone = single[vehicle_id]
            seen.append(vehicle_id)

            assert packet.keep_on_ground == bool(states.fit_ground[states.id == vehicle_id][0])
            assert packet["vehicleType"][slot] == alone["vehicleType"]
            assert packet["PosE"][3 * slot : 3 * slot + 3] == tuple(
                np.float32(alone["PosE"]).tolist()
            )
            assert packet["AngEuler"][3 * slot : 3 * slot + 3] == alone["AngEuler"]
            scale = states.scale[states.id == vehicle_id][0]
            assert packet["Scale"][3 * slot : 3 * slot + 3] == tuple(
                round(float(s) * 100) for s in scale
            )

    assert sorted(seen) == sorted(single)


@given(st.tuples(_metres, _metres, _metres), st.tuples(*[st.floats(-math.pi, math.pi)] * 3))
def test_quick_pose_gives_the_same_bytes(position, euler):
    positive_zeros = [value + 0.0 for value in (*euler, *position)]
    expected = struct.pack(
        "<6i14f4d", 1234567891, 7, 3, 0, 0, 0, *[0.0] * 11, *positive_zeros, -1.0
    )
    assert encode_pose(7, 3, position, euler) == expected
