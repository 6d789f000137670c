# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The node ue_bridge_node: a running process, real DDS, a real UDP socket.

Expected bytes are packed here field by field from the wire table; angles are compared within one
step of a float.
"""

from __future__ import annotations

import math
import struct
import time

import pytest
from bridge_harness import (
    EAST,
    NORTH,
    Bridge,
    H,
    Window,
    assert_same,
    call,
    fleet,
    odometry,
    pose,
    time_packet,
    transform,
    vehicle_state,
)

pytestmark = pytest.mark.ros

MAP_COMMAND = struct.pack("<i52s", 1234567890, b"RflyChangeMapbyName Grasslands")


@pytest.fixture(scope="module")
def bridge(shared_domain_id):
    vehicles = {
        "vehicles": "[car,boat,lorry,drone]",
        "car.id": 7,
        "boat.id": 8,
        "boat.type": 150,
        "boat.message": "odometry",
        "boat.topic": "harbour/odom",
        "lorry.id": 9,
        "lorry.fit_ground": "true",
        "drone.id": 10,
        "drone.message": "vehicle_state",
    }

    bridge = Bridge(shared_domain_id, **vehicles)
    yield bridge
    bridge.close()


@pytest.mark.parametrize(
    ("frame", "position", "quat", "position_ned", "euler"),
    [
        pytest.param("map", (2.0, 1.0, 3.0), NORTH, (1.0, 2.0, -3.0), (0, 0, 0), id="enu-north"),
        pytest.param(
            "map", (2.0, 1.0, 3.0), EAST, (1.0, 2.0, -3.0), (0, 0, math.pi / 2), id="enu-east"
        ),
        pytest.param(
            "", (2.5, -1.0, 0.25), NORTH, (-1.0, 2.5, -0.25), (0, 0, 0), id="no-frame-means-map"
        ),
        pytest.param(
            "map_ned", (1.0, 2.0, -3.0), (1, 0, 0, 0), (1.0, 2.0, -3.0), (0, 0, 0), id="ned-north"
        ),
        pytest.param(
            "map_ned",
            (1.0, 2.0, -3.0),
            (H, H, 0, 0),
            (1.0, 2.0, -3.0),
            (0, 0, math.pi / 2),
            id="ned-east",
        ),
        pytest.param(
            "map",
            (0.5, 0.0, 1.0),
            (0, math.sin(0.1), 0, math.cos(0.1)),
            (0, 0.5, -1.0),
            (0, -0.2, math.pi / 2),
            id="nose-down",
        ),
    ],
)
def test_pose_to_exact_bytes(bridge, frame, position, quat, position_ned, euler):
    datagram = bridge.shown("car/pose", pose(position, quat, frame))[0]
    assert_same(datagram, time_packet(7, 3, position_ned, euler))


def test_pose_at_rest_to_the_last_byte(bridge):
    """Spelled by hand: id 7, type 3, position 1, 2, -3, nothing else but runnedTime -1."""
    head = "d3029649" "07000000" "03000000" + "00" * 68  # fmt: skip
    tail = "000000000000f03f" "0000000000000040" "00000000000008c0" "000000000000f0bf"  # fmt: skip
    assert (
        bridge.shown(
            "car/pose", pose(quat=(1, 0, 0, 0), frame="map_ned", position=(1.0, 2.0, -3.0))
        )[0].hex()
        == head + tail
    )


@pytest.mark.parametrize(
    ("topic", "frame"), [("/tf", "car/odom"), ("/tf_static", "car/odom_fixed")]
)
def test_other_frames_go_through_tf(bridge, topic, frame):
    """Frame odom lies 10 m east and is turned left by 90°: its x is north, its y west."""
    bridge.publisher(type(transform("a", "b", (0.0, 0.0, 0.0), EAST)), topic).publish(
        transform("map", frame, (10.0, 0.0, 0.0), NORTH)
    )
    datagram = bridge.shown("car/pose", pose((1.0, 2.0, 3.0), EAST, frame))[0]
    north, east, down, _ = struct.unpack_from("<4d", datagram, 80)
    assert (north, east, down) == pytest.approx((1.0, 8.0, -3.0), abs=1e-12)
    assert struct.unpack_from("<3f", datagram, 68) == pytest.approx((0.0, 0.0, 0.0), abs=1e-6)


def test_frame_that_nothing_connects_is_named(bridge):
    bridge.dropped("car/pose", pose(frame="moon"), "unknown_frame", "car/pose", "moon")


@pytest.mark.parametrize(
    ("child", "linear"),
    [("boat/base_link", (3.0, 1.0, 0.5)), ("boat/base_link_frd", (3.0, -1.0, -0.5))],
)
def test_odometry_twist_is_turned_to_ned(bridge, child, linear):
    """Heading east: 3 forward is 3 east, 1 to the left is 1 north, 0.5 up is -0.5 down."""
    datagram = bridge.shown("harbour/odom", odometry((2.0, 1.0, 3.0), EAST, linear, child))[0]
    expected = time_packet(
        8,
        150,
        (1.0, 2.0, -3.0),
        (0, 0, math.pi / 2),
        velocity=(1.0, 3.0, -0.5),
    )
    assert_same(datagram, expected)


def test_fit_ground_of_a_pose(bridge):
    datagram = bridge.shown("lorry/pose", pose())[0]
    expected = struct.pack("<3i7f", 1234567891, 9, 3, 0.0, 1.0, 2.0, -3.0, 0.0, 0.0, 0.0)
    assert_same(datagram, expected, angles_at=28)


def test_vehicle_state_with_velocity_and_motors(bridge):
    message = vehicle_state(velocity=[5.0, 4.0, -6.0], motor_speed=[2 * math.pi, 100 * math.pi])
    expected = time_packet(
        10, 5, (1.0, 2.0, -3.0), (0, 0, 0), velocity=(4, 5, 6), motors=(60.0, 3000.0)
    )
    assert_same(bridge.shown("drone/state", message)[0], expected)


def test_vehicle_state_with_scale_and_on_the_ground(bridge):
    message = vehicle_state(scale=[2.0, 1.0, 0.5], fit_ground=True, motor_speed=[0.0, 2 * math.pi])
    expected = struct.pack(
        "<3i10f", 1234567891, 10, 5, 30.0, 1.0, 2.0, -3.0, 0, 0, 0, 2.0, 1.0, 0.5
    )
    assert_same(bridge.shown("drone/state", message)[0], expected, angles_at=28)


def test_vehicle_state_of_another_id_is_dropped(bridge):
    bridge.dropped("drone/state", vehicle_state(vehicle_id=11), "wrong_id", "id 11, expected 10")


def test_small_fleet_leaves_singly_in_message_order(bridge):
    message = fleet(
        [1002, 1001],
        position=[2.0, 1.0, 3.0, 4.0, 5.0, 6.0],
        vehicle_type=[200150, 3],
        velocity=[1.0, 2.0, 3.0, 0.0, 0.0, 0.0],
        motors=1,
        motor_speed=[2 * math.pi, 0.0],
        fit_ground=[0, 1],
    )

    first, second = bridge.shown("vehicle_states", message, count=2)
    expected = time_packet(
        1002, 200150, (1.0, 2.0, -3.0), (0, 0, 0), velocity=(2, 1, -3), motors=(60.0,)
    )

    assert_same(first, expected)
    assert_same(
        second,
        struct.pack("<3i7f", 1234567891, 1001, 3, 0.0, 5.0, 4.0, -6.0, 0, 0, 0),
        angles_at=28,
    )


def test_large_fleet_leaves_as_fleet_packets(bridge):
    """130 vehicles in NED: two packets of one series; the one of type 200150 goes singly."""
    n = 130
    ids = list(range(2001, 2001 + n))
    types = [3] * n
    types[50] = 200150

    message = fleet(
        ids,
        source="/large",
        frame="map_ned",
        vehicle_type=types,
        orientation=[1.0, 0.0, 0.0, 0.0] * n,
        position=[float(value) for value in range(3 * n)],
    )
    first, second, single = bridge.shown("vehicle_states", message, count=3)

    slots = [i for i in range(n) if i != 50]
    expected = []
    for chunk in (slots[:100], slots[100:]):
        pad = 100 - len(chunk)
        places = [float(3 * i + k) for i in chunk for k in range(3)] + [0.0] * (3 * pad)
        expected.append(
            struct.pack(
                "<i200H600f300H100f",
                1234567890,
                *[ids[i] for i in chunk],
                *[0] * pad,
                *[3] * len(chunk),
                *[0] * pad,
                *places,
                *[0.0] * 300,
                *[100] * (3 * len(chunk)),
                *[0] * (3 * pad),
                *[0.0] * 100,
            )
        )

    assert [first, second] == expected
    assert single == time_packet(2051, 200150, (150.0, 151.0, 152.0), (0, 0, 0))


def test_bad_vehicle_of_a_fleet_is_left_out(bridge):
    message = fleet([31, 32], source="/partly", position=[math.nan, 0.0, 0.0, 2.0, 1.0, 3.0])
    before = bridge.counted("not_finite")
    assert_same(
        bridge.shown("vehicle_states", message)[0],
        time_packet(32, 3, (1.0, 2.0, -3.0), (0, 0, 0)),
        angles_at=68,
    )
    bridge.peer.spin_until(lambda: bridge.counted("not_finite") > before)


@pytest.mark.parametrize(
    "arrays",
    [
        pytest.param({"position": [0.0] * 5}, id="position-too-short"),
        pytest.param({"velocity": [0.0]}, id="velocity-too-short"),
        pytest.param({"ids": [41, 41]}, id="id-twice"),
        pytest.param({"motors": 3, "motor_speed": [0.0] * 5}, id="motors-disagree"),
        pytest.param({"motors": 9, "motor_speed": [0.0] * 18}, id="nine-motors"),
    ],
)
def test_messages_that_contradict_themselves_are_dropped_whole(bridge, arrays):
    message = fleet(**{"ids": [41, 42], **arrays}, source="/odd")
    bridge.dropped("vehicle_states", message, "inconsistent", "/odd")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"position": (math.nan, 0.0, 0.0)}, "not_finite", id="nan"),
        pytest.param({"position": (0.0, 0.0, math.inf)}, "not_finite", id="infinite"),
        pytest.param({"position": (0.0, 1e30, 0.0)}, "too_far", id="absurd"),
        pytest.param({"quat": (0, 0, math.nan, 1)}, "not_finite", id="nan-quaternion"),
        pytest.param({"quat": (0, 0, 0, 0)}, "bad_quaternion", id="zero-quaternion"),
        pytest.param({"quat": (0, 0, 0, 1.0011)}, "bad_quaternion", id="norm-too-large"),
    ],
)
def test_bad_poses_are_dropped_and_counted(bridge, changes, reason):
    bridge.dropped("car/pose", pose(**changes), reason, "car/pose")


def test_slightly_wrong_norm_is_normalised(bridge):
    datagram = bridge.shown("car/pose", pose(quat=(0, 0, 1.0009 * H, 1.0009 * H)))[0]
    assert_same(datagram, time_packet(7, 3, (1.0, 2.0, -3.0), (0, 0, 0)))


def test_odometry_with_nan_twist_is_dropped(bridge):
    message = odometry((0.0, 0.0, 0.0), EAST, (math.nan, 0.0, 0.0), "base_link")
    bridge.dropped("harbour/odom", message, "not_finite")


def test_removed_vehicles_are_deleted_three_times_and_live_again(bridge):
    """The command's bytes are RflySim's manual's; a source that sends again brings it back."""
    from rfly_suite.msg import VehicleStateArray

    from rfly_common.ros.qos import FLEET_OUT

    state = fleet([61], source="/leaver", position=[2.0, 1.0, 3.0])
    bridge.shown("vehicle_states", state)
    gone = bridge.peer.publisher(VehicleStateArray, "removed_vehicles", FLEET_OUT)
    bridge.window.clear()
    gone.publish(state)
    bridge.peer.spin_until(lambda: deletes(bridge, 61) == 3)
    assert_same(
        *bridge.shown("vehicle_states", state), time_packet(61, 3, (1.0, 2.0, -3.0), (0, 0, 0))
    )
    bridge.window.clear()
    gone.publish(
        fleet([61], source="/intruder", position=[9.0, 9.0, 9.0])
    )  # another's vehicle: stays
    gone.publish(fleet([62], source="/intruder"))
    bridge.peer.spin_until(lambda: deletes(bridge, 62) == 3)  # all, before the next test looks
    assert deletes(bridge, 61) == 0


@pytest.mark.parametrize("position", [(2e8, 1.0, 3.0), (math.nan, 0.0, 0.0)], ids=["far", "nan"])
def test_a_vehicle_is_removed_wherever_it_was(bridge, position):
    from rfly_suite.msg import VehicleStateArray

    from rfly_common.ros.qos import FLEET_OUT

    bridge.shown("vehicle_states", fleet([63], source="/far", position=[2.0, 1.0, 3.0]))
    gone = bridge.peer.publisher(VehicleStateArray, "removed_vehicles", FLEET_OUT)
    bridge.window.clear()
    gone.publish(fleet([63], source="/far", position=[*position]))
    bridge.peer.spin_until(lambda: deletes(bridge, 63) == 3)


def deletes(bridge, vehicle_id):
    command = struct.pack("<i52s", 1234567890, f"RflyDelVehicles {vehicle_id}".encode())
    return sum(bytes(datagram) == command for datagram in bridge.window.poll())


def test_configured_id_is_ignored_in_vehicle_states(bridge):
    bridge.dropped(
        "vehicle_states", fleet([7], source="/intruder"), "configured", "car/pose", "/intruder"
    )


def test_first_source_keeps_an_id_and_a_diagnostic_names_both(bridge):
    """The second one gets it when the first has been silent for a second."""
    first = fleet([77], source="/first")
    second = fleet([77], source="/second", position=[2.0, 1.0, 3.0])
    bridge.shown("vehicle_states", first)
    publisher = bridge.publisher(type(first), "vehicle_states")
    before = bridge.counted("other_source")
    bridge.window.clear()

    def both():
        publisher.publish(first)
        publisher.publish(second)
        return bridge.counted("other_source") > before

    bridge.peer.spin_until(both)
    level, text, _ = bridge.status()
    assert level == 1
    assert "vehicle 77 comes from /first; its states from /second" in text
    from_second = struct.pack("<3d", 1.0, 2.0, -3.0)
    assert all(from_second not in datagram for datagram in bridge.window.poll())
    bridge.publish_until(
        "vehicle_states",
        second,
        lambda: any(from_second in datagram for datagram in bridge.window.poll()),
    )


def test_stamps_that_go_back(bridge):
    """Late poses are dropped; a publisher whose clock was set back is shown again, and named."""
    from geometry_msgs.msg import PoseStamped

    now = time.time()
    publisher = bridge.publisher(PoseStamped, "car/pose")
    late = pose((7.0, 8.0, 9.0), seconds=now - 5.0)
    shown = struct.pack("<3d", 8.0, 7.0, -9.0)

    def newest_and_late():
        # the same instant once more is not older; its datagram comes first, as a late pose
        # that waits beside it would take its place
        assert bridge.shown("car/pose", pose(seconds=now))
        publisher.publish(late)
        bridge.peer.spin_for(0.1)
        assert not any(shown in datagram for datagram in bridge.window.poll())
        return bridge.counted("stale")

    bridge.peer.spin_until(newest_and_late)

    bridge.publish_until(
        "car/pose", late, lambda: any(shown in each for each in bridge.window.poll())
    )
    bridge.peer.spin_until(lambda: bridge.counted("clocks_set_back") == 1)
    assert "car/pose: its stamps went back by 5.000 s" in bridge.status()[1]
    assert bridge.shown("car/pose", pose())  # stamp 0 is now


def test_command_by_topic(bridge):
    from std_msgs.msg import String

    datagram = bridge.shown("ue_command", String(data="t.MaxFPS 30"))[0]
    assert datagram == struct.pack("<i52s", 1234567890, b"t.MaxFPS 30")


def test_weather_by_topic(bridge):
    from rfly_suite.msg import Environment

    datagram = bridge.shown(
        "environment", Environment(light=0.6, visibility=60.0, cloud_cover=0.9, rain_rate=5.0)
    )[0]
    assert datagram == struct.pack("<i52s", 1234567890, b"RflySuiteWeather 0.6 60 0.9 5")
    bridge.dropped("environment", Environment(light=math.nan), "refused_commands")


def test_command_by_service(bridge):
    bridge.window.clear()
    for window in (-1, 0):
        response = call(bridge, "x" * 52, window)
        assert (response.success, response.message) == (True, "")
    bridge.peer.spin_until(lambda: len(bridge.window.poll()) == 2)
    assert bridge.window.datagrams == [struct.pack("<i252s", 1234567890, b"x" * 52)] * 2


def test_command_to_a_window_beyond_the_configured_ones(bridge):
    other = Window()
    response = call(bridge, "r.setres 720x405w", other.port - bridge.window.port)
    if other.port > bridge.window.port:
        assert response.success
        bridge.peer.spin_until(other.poll)
        assert other.datagrams == [struct.pack("<i52s", 1234567890, b"r.setres 720x405w")]
    other.socket.close()


@pytest.mark.parametrize(
    ("command", "window", "named"),
    [
        pytest.param("", -1, "empty", id="empty"),
        pytest.param("x" * 250, -1, "at most 249", id="too-long"),
        pytest.param("ö" * 125, -1, "250 bytes", id="too-long-in-bytes"),
        pytest.param("t.MaxFPS 30", -2, "window -2", id="window-below"),
        pytest.param("t.MaxFPS 30", 65536, "window 65536", id="window-above"),
    ],
)
def test_refused_commands(bridge, command, window, named):
    bridge.window.clear()
    response = call(bridge, command, window)
    assert not response.success
    assert named in response.message
    assert bridge.window.poll() == []


def test_poses_wait_while_rflysim3d_loads_a_map(bridge):
    """Poses wait for one second; then the newest of each vehicle leaves, and later ones at once."""
    bridge.shown("car/pose", pose())
    publisher = bridge.publisher(type(pose()), "car/pose")

    def newest_comes_alone():
        bridge.window.clear()
        asked_at = time.monotonic()
        assert call(bridge, "RflyChangeMapbyName Grasslands").success
        for step in range(5):
            publisher.publish(pose((0.0, float(step), 0.0)))
            bridge.peer.spin_for(0.05)

        bridge.peer.spin_until(lambda: len(bridge.window.poll()) >= 2)
        assert time.monotonic() - asked_at > 0.9
        assert bridge.window.datagrams[0] == MAP_COMMAND
        return struct.unpack_from("<d", bridge.window.datagrams[1], 80) == (4.0,)

    bridge.peer.spin_until(newest_comes_alone)  # again where five poses took a second
    bridge.peer.spin_until(lambda: int(bridge.status()[2]["superseded_states"]) >= 1)
    assert_same(bridge.shown("car/pose", pose())[0], time_packet(7, 3, (1.0, 2.0, -3.0), (0, 0, 0)))
