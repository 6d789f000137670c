"""ue_bridge_node as robots and RflySim3D meet it: a running process, real DDS, a real UDP socket.

Expected bytes are packed here field by field from the wire table; angles are compared within one step of a float.
"""

from __future__ import annotations

import math
import socket
import struct
import time

import numpy as np
import pytest

pytestmark = pytest.mark.ros

H = math.sqrt(0.5)
EAST, NORTH = (0.0, 0.0, 0.0, 1.0), (0.0, 0.0, H, H)
MAP_COMMAND = struct.pack("<i52s", 1234567890, b"RflyChangeMapbyName Grasslands")


class Window:
    """What RflySim3D would receive."""

    def __init__(self, port=0):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", port))
        self.socket.setblocking(False)
        self.port = self.socket.getsockname()[1]
        self.datagrams = []

    def poll(self):
        """All datagrams so far."""
        while True:
            try:
                self.datagrams.append(self.socket.recv(65536))
            except BlockingIOError:
                return self.datagrams

    def clear(self):
        self.poll()
        self.datagrams.clear()


class Bridge:
    """A running bridge, a peer that talks to it and the windows that it sends to."""

    def __init__(self, domain, windows=1, **parameters):
        from diagnostic_msgs.msg import DiagnosticArray
        from node_harness import NodeProcess, Peer

        self.windows = [Window()]
        while len(self.windows) < windows:
            try:
                self.windows.append(Window(self.windows[-1].port + 1))
            except OSError:
                self.windows = [Window()]
        self.window = self.windows[0]
        settings = {"port": self.window.port, "windows": windows, **parameters}
        self.node = NodeProcess("ue_bridge_node", domain, {key: str(value) for key, value in settings.items()})
        self.peer = Peer(domain)
        self.statuses = self.peer.receive(DiagnosticArray, "/diagnostics", 10)
        self._publishers = {}

    def publisher(self, msg_type, topic):
        from rclpy.qos import DurabilityPolicy, QoSProfile

        if topic not in self._publishers:
            qos = QoSProfile(depth=10)
            if topic == "/tf_static":
                qos.durability = DurabilityPolicy.TRANSIENT_LOCAL
            self._publishers[topic] = self.peer.publisher(msg_type, topic, qos)
        return self._publishers[topic]

    def publish_until(self, topic, message, ready, timeout_s=15.0):
        """Publish again and again until `ready()`: a best-effort subscription may not be connected yet."""
        publisher = self.publisher(type(message), topic)
        last = 0.0

        def once_more():
            nonlocal last
            if time.monotonic() - last > 0.3:
                last = time.monotonic()
                publisher.publish(message)
            return ready()

        return self.peer.spin_until(once_more, timeout_s)

    def shown(self, topic, message, count=1):
        """The first datagrams that a message causes."""
        self.window.clear()
        found = self.publish_until(topic, message, lambda: len(self.window.poll()) >= count and self.window.datagrams)
        return [bytes(datagram) for datagram in found[:count]]

    def status(self):
        from node_harness import diagnostic

        return diagnostic(self.statuses, "bridge") or (None, "", {})

    def counted(self, reason):
        return int(self.status()[2].get(reason, 0))

    def dropped(self, topic, message, reason):
        """Publish until the counter of a reason rises; nothing may be sent. Returns the diagnostic's message."""
        self.publisher(type(message), topic)
        self.peer.spin_until(lambda: self.status()[2])
        self.window.clear()
        before = self.counted(reason)
        self.publish_until(topic, message, lambda: self.counted(reason) > before)
        assert self.window.poll() == []
        return self.status()[1]

    def close(self):
        self.peer.close()
        self.node.__exit__()
        for window in self.windows:
            window.socket.close()


@pytest.fixture
def start(domain_id):
    made = []

    def make(**parameters):
        made.append(Bridge(domain_id, **parameters))
        return made[-1]

    yield make
    for bridge in made:
        bridge.close()


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


def stamp(seconds):
    from builtin_interfaces.msg import Time

    return Time(sec=int(seconds), nanosec=round(seconds % 1 * 1e9))


def pose(position=(2.0, 1.0, 3.0), quat=NORTH, frame="map", seconds=0.0):
    from geometry_msgs.msg import PoseStamped

    message = PoseStamped()
    message.header.frame_id, message.header.stamp = frame, stamp(seconds)
    fill_pose(message.pose, position, quat)
    return message


def fill_pose(pose, position, quat):
    pose.position.x, pose.position.y, pose.position.z = position
    q = pose.orientation
    q.x, q.y, q.z, q.w = (float(value) for value in quat)


def odometry(position, quat, linear, child, frame="map"):
    from nav_msgs.msg import Odometry

    message = Odometry(child_frame_id=child)
    message.header.frame_id = frame
    fill_pose(message.pose.pose, position, quat)
    linear_out = message.twist.twist.linear
    linear_out.x, linear_out.y, linear_out.z = linear
    return message


def fleet(ids, source="/fleet", frame="map", seconds=0.0, **arrays):
    from rfly_suite.msg import VehicleStateArray

    n = len(ids)
    message = VehicleStateArray(source=source, id=ids, vehicle_type=arrays.pop("vehicle_type", [3] * n))
    message.header.frame_id, message.header.stamp = frame, stamp(seconds)
    message.position = arrays.pop("position", [0.0] * (3 * n))
    message.orientation = arrays.pop("orientation", list(NORTH) * n)
    for name, values in arrays.items():
        setattr(message, name, values)
    return message


def time_packet(vehicle_id, vehicle_type, position, euler, velocity=(0, 0, 0), motors=()):
    motors = [*motors, *[0.0] * (8 - len(motors))]
    fields = (vehicle_id, vehicle_type, 0, 0, 0, *motors, *velocity, *euler, *position, -1.0)
    return struct.pack("<6i14f4d", 1234567891, *fields)


def assert_same(datagram, expected, angles_at=56, tolerance=2.5e-7):
    """Byte by byte but for the three angles, which may differ by a rounding of the trigonometry."""
    assert len(datagram) == len(expected)
    rest = slice(0, angles_at), slice(angles_at + 12, None)
    assert [datagram[part].hex() for part in rest] == [expected[part].hex() for part in rest]
    got, want = (struct.unpack_from("<3f", data, angles_at) for data in (datagram, expected))
    np.testing.assert_allclose(got, want, atol=tolerance)


@pytest.mark.parametrize(
    ("frame", "position", "quat", "position_ned", "euler"),
    [
        pytest.param("map", (2.0, 1.0, 3.0), NORTH, (1.0, 2.0, -3.0), (0, 0, 0), id="enu-north"),
        pytest.param("map", (2.0, 1.0, 3.0), EAST, (1.0, 2.0, -3.0), (0, 0, math.pi / 2), id="enu-east"),
        pytest.param("", (2.5, -1.0, 0.25), NORTH, (-1.0, 2.5, -0.25), (0, 0, 0), id="no-frame-means-map"),
        pytest.param("map_ned", (1.0, 2.0, -3.0), (1, 0, 0, 0), (1.0, 2.0, -3.0), (0, 0, 0), id="ned-north"),
        pytest.param("map_ned", (1.0, 2.0, -3.0), (H, H, 0, 0), (1.0, 2.0, -3.0), (0, 0, math.pi / 2), id="ned-east"),
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
        bridge.shown("car/pose", pose(quat=(1, 0, 0, 0), frame="map_ned", position=(1.0, 2.0, -3.0)))[0].hex()
        == head + tail
    )


def transform(parent, child, translation, quat, seconds=0.0):
    from geometry_msgs.msg import TransformStamped
    from tf2_msgs.msg import TFMessage

    edge = TransformStamped(child_frame_id=child)
    edge.header.frame_id, edge.header.stamp = parent, stamp(seconds)
    t, q = edge.transform.translation, edge.transform.rotation
    t.x, t.y, t.z = translation
    q.x, q.y, q.z, q.w = (float(value) for value in quat)
    return TFMessage(transforms=[edge])


@pytest.mark.parametrize(("topic", "frame"), [("/tf", "car/odom"), ("/tf_static", "car/odom_fixed")])
def test_other_frames_go_through_tf(bridge, topic, frame):
    """odom lies 10 m east and is turned left by 90°: its x is north, its y west."""
    bridge.publisher(type(transform("a", "b", (0.0, 0.0, 0.0), EAST)), topic).publish(
        transform("map", frame, (10.0, 0.0, 0.0), NORTH)
    )
    datagram = bridge.shown("car/pose", pose((1.0, 2.0, 3.0), EAST, frame))[0]
    north, east, down, _ = struct.unpack_from("<4d", datagram, 80)
    assert (north, east, down) == pytest.approx((1.0, 8.0, -3.0), abs=1e-12)
    assert struct.unpack_from("<3f", datagram, 68) == pytest.approx((0.0, 0.0, 0.0), abs=1e-6)


def test_frame_that_nothing_connects_is_named(bridge):
    text = bridge.dropped("car/pose", pose(frame="moon"), "unknown_frame")
    assert "car/pose" in text
    assert "moon" in text


@pytest.mark.parametrize(
    ("child", "linear"), [("boat/base_link", (3.0, 1.0, 0.5)), ("boat/base_link_frd", (3.0, -1.0, -0.5))]
)
def test_odometry_twist_is_turned_to_ned(bridge, child, linear):
    """Heading east: 3 forward is 3 east, 1 to the left is 1 north, 0.5 up is -0.5 down."""
    datagram = bridge.shown("harbour/odom", odometry((2.0, 1.0, 3.0), EAST, linear, child))[0]
    expected = time_packet(8, 150, (1.0, 2.0, -3.0), (0, 0, math.pi / 2), velocity=(1.0, 3.0, -0.5))
    assert_same(datagram, expected, angles_at=68)


def test_fit_ground_of_a_pose(bridge):
    datagram = bridge.shown("lorry/pose", pose())[0]
    expected = struct.pack("<3i7f", 1234567891, 9, 3, 0.0, 1.0, 2.0, -3.0, 0.0, 0.0, 0.0)
    assert_same(datagram, expected, angles_at=28)


def vehicle_state(vehicle_id=10, **fields):
    from rfly_suite.msg import VehicleState

    message = VehicleState(id=vehicle_id, vehicle_type=5)
    message.header.frame_id = "map"
    message.position, message.orientation = [2.0, 1.0, 3.0], [float(value) for value in NORTH]
    for name, value in fields.items():
        setattr(message, name, value)
    return message


def test_vehicle_state_with_velocity_and_motors(bridge):
    message = vehicle_state(velocity=[5.0, 4.0, -6.0], motor_speed=[2 * math.pi, 100 * math.pi])
    expected = time_packet(10, 5, (1.0, 2.0, -3.0), (0, 0, 0), velocity=(4, 5, 6), motors=(60.0, 3000.0))
    assert_same(bridge.shown("drone/state", message)[0], expected, angles_at=68)


def test_vehicle_state_with_scale_and_on_the_ground(bridge):
    message = vehicle_state(scale=[2.0, 1.0, 0.5], fit_ground=True, motor_speed=[0.0, 2 * math.pi])
    expected = struct.pack("<3i10f", 1234567891, 10, 5, 30.0, 1.0, 2.0, -3.0, 0, 0, 0, 2.0, 1.0, 0.5)
    assert_same(bridge.shown("drone/state", message)[0], expected, angles_at=28)


def test_vehicle_state_of_another_id_is_dropped(bridge):
    text = bridge.dropped("drone/state", vehicle_state(vehicle_id=11), "wrong_id")
    assert "id 11, expected 10" in text


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
    expected = time_packet(1002, 200150, (1.0, 2.0, -3.0), (0, 0, 0), velocity=(2, 1, -3), motors=(60.0,))
    assert_same(first, expected, angles_at=68)
    assert_same(second, struct.pack("<3i7f", 1234567891, 1001, 3, 0.0, 5.0, 4.0, -6.0, 0, 0, 0), angles_at=28)


def test_large_fleet_leaves_as_fleet_packets(bridge):
    """130 vehicles in NED: two packets of one series; the one of type 200150 goes singly."""
    n = 130
    ids = list(range(2001, 2001 + n))
    types = [3] * n
    types[50] = 200150
    message = fleet(
        ids, source="/large", frame="map_ned", vehicle_type=types, orientation=[1.0, 0.0, 0.0, 0.0] * n,
        position=[float(value) for value in range(3 * n)],
    )  # fmt: skip
    first, second, single = bridge.shown("vehicle_states", message, count=3)
    slots = [i for i in range(n) if i != 50]
    expected = []
    for chunk in (slots[:100], slots[100:]):
        pad = 100 - len(chunk)
        places = [float(3 * i + k) for i in chunk for k in range(3)] + [0.0] * (3 * pad)
        expected.append(
            struct.pack(
                "<i200H600f300H100f", 1234567890, *[ids[i] for i in chunk], *[0] * pad, *[3] * len(chunk), *[0] * pad,
                *places, *[0.0] * 300, *[100] * (3 * len(chunk)), *[0] * (3 * pad), *[0.0] * 100,
            )
        )  # fmt: skip
    assert [first, second] == expected
    assert single == time_packet(2051, 200150, (150.0, 151.0, 152.0), (0, 0, 0))


def test_bad_vehicle_of_a_fleet_is_left_out(bridge):
    message = fleet([31, 32], source="/partly", position=[math.nan, 0.0, 0.0, 2.0, 1.0, 3.0])
    before = bridge.counted("not_finite")
    assert_same(
        bridge.shown("vehicle_states", message)[0], time_packet(32, 3, (1.0, 2.0, -3.0), (0, 0, 0)), angles_at=68
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
    message = fleet(arrays.pop("ids", [41, 42]), source="/odd", **arrays)
    assert "/odd" in bridge.dropped("vehicle_states", message, "inconsistent")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"position": (math.nan, 0.0, 0.0)}, "not_finite", id="nan"),
        pytest.param({"position": (0.0, 0.0, math.inf)}, "not_finite", id="infinite"),
        pytest.param({"quat": (0, 0, math.nan, 1)}, "not_finite", id="nan-quaternion"),
        pytest.param({"quat": (0, 0, 0, 0)}, "bad_quaternion", id="zero-quaternion"),
        pytest.param({"quat": (0, 0, 0, 1.0011)}, "bad_quaternion", id="norm-too-large"),
    ],
)
def test_bad_poses_are_dropped_and_counted(bridge, changes, reason):
    assert "car/pose" in bridge.dropped("car/pose", pose(**changes), reason)


def test_slightly_wrong_norm_is_normalised(bridge):
    datagram = bridge.shown("car/pose", pose(quat=(0, 0, 1.0009 * H, 1.0009 * H)))[0]
    assert_same(datagram, time_packet(7, 3, (1.0, 2.0, -3.0), (0, 0, 0)))


def test_odometry_with_nan_twist_is_dropped(bridge):
    message = odometry((0.0, 0.0, 0.0), EAST, (math.nan, 0.0, 0.0), "base_link")
    bridge.dropped("harbour/odom", message, "not_finite")


def test_configured_id_is_ignored_in_vehicle_states(bridge):
    text = bridge.dropped("vehicle_states", fleet([7], source="/intruder"), "configured")
    assert "car/pose" in text
    assert "/intruder" in text


def test_first_source_keeps_an_id_and_a_diagnostic_names_both(bridge):
    """The second one gets it when the first has been silent for a second."""
    first, second = fleet([77], source="/first"), fleet([77], source="/second", position=[2.0, 1.0, 3.0])
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
    assert "vehicle 77 comes from /first; what /second says" in text
    from_second = struct.pack("<3d", 1.0, 2.0, -3.0)
    assert all(from_second not in datagram for datagram in bridge.window.poll())
    bridge.publish_until(
        "vehicle_states", second, lambda: any(from_second in datagram for datagram in bridge.window.poll())
    )


def test_stale_poses_are_dropped(bridge):
    now = time.time()
    assert bridge.shown("lorry/pose", pose(seconds=now))
    bridge.dropped("lorry/pose", pose(seconds=now - 0.001), "stale")
    assert bridge.shown("lorry/pose", pose(seconds=now))  # the same instant once more is not older
    assert bridge.shown("lorry/pose", pose())  # stamp 0 is now


def call(bridge, command, window=-1):
    from rfly_suite.srv import SendUeCommand

    return bridge.peer.call(SendUeCommand, "send_ue_command", command=command, window=window)


def test_command_by_topic(bridge):
    from std_msgs.msg import String

    datagram = bridge.shown("ue_command", String(data="t.MaxFPS 30"))[0]
    assert datagram == struct.pack("<i52s", 1234567890, b"t.MaxFPS 30")


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
    """For one second; then the newest pose of each vehicle goes, and later ones go at once."""
    bridge.shown("car/pose", pose())
    bridge.window.clear()
    assert call(bridge, "RflyChangeMapbyName Grasslands").success
    bridge.peer.spin_until(bridge.window.poll)
    sent_at = time.monotonic()
    assert bridge.window.datagrams == [MAP_COMMAND]
    publisher = bridge.publisher(type(pose()), "car/pose")
    for step in range(5):
        publisher.publish(pose((0.0, float(step), 0.0)))
        bridge.peer.spin_for(0.05)
    assert bridge.window.poll() == [MAP_COMMAND]
    bridge.peer.spin_until(lambda: len(bridge.window.poll()) == 2)
    assert 0.8 < time.monotonic() - sent_at < 3.0
    assert struct.unpack_from("<d", bridge.window.datagrams[1], 80) == (4.0,)
    bridge.peer.spin_until(lambda: int(bridge.status()[2]["superseded_states"]) >= 1)
    assert_same(bridge.shown("car/pose", pose())[0], time_packet(7, 3, (1.0, 2.0, -3.0), (0, 0, 0)))


def test_silence_is_a_stale_diagnostic(start):
    """STALE before the first input, OK while states come, STALE again when they stop."""
    bridge = start(vehicles="[car]", **{"car.id": 1})
    bridge.peer.spin_until(lambda: bridge.status()[0] == 3)
    assert "no states yet" in bridge.status()[1]
    bridge.publish_until("car/pose", pose(), lambda: bridge.status()[0] == 0)
    bridge.peer.spin_until(lambda: bridge.status()[0] == 3)
    assert "no states for" in bridge.status()[1]
    assert int(bridge.status()[2]["sent_datagrams"]) >= 1


def test_unreachable_window_does_not_stop_the_others(start):
    bridge = start(windows=2, vehicles="[car]", **{"car.id": 1})
    bridge.windows[1].socket.close()
    bridge.shown("car/pose", pose())
    bridge.publish_until("car/pose", pose(), lambda: "window_1_ECONNREFUSED" in bridge.status()[2])
    level, text, values = bridge.status()
    assert (level, "window 1 at 127.0.0.1" in text) == (1, True)
    assert "window_0_ECONNREFUSED" not in values
    assert len(bridge.shown("car/pose", pose())) == 1


def test_destination_that_the_system_refuses_does_not_stop_the_node(start):
    """A broadcast address without the parameter broadcast: said in the service's answer and in the diagnostic."""
    bridge = start(host="255.255.255.255", vehicles="[car]", **{"car.id": 1})
    response = call(bridge, "t.MaxFPS 30")
    assert not response.success
    assert "parameter broadcast" in response.message
    bridge.publish_until("car/pose", pose(), lambda: "parameter broadcast" in bridge.status()[1])
    assert bridge.node.process.poll() is None


def test_several_windows_and_fleet_packets_by_parameter(start):
    bridge = start(windows=3, packets="batch")
    bridge.shown("vehicle_states", fleet([1, 2, 3]))
    bridge.peer.spin_until(lambda: all(window.poll() for window in bridge.windows))
    assert [len(window.datagrams[0]) for window in bridge.windows] == [3804] * 3


def test_rate_limit_sends_the_newest_in_the_end(start):
    bridge = start(rate_limit=2, packets="single", vehicles="[car]", **{"car.id": 1})
    for topic, make, at in (
        ("car/pose", lambda x: pose((0.0, x, 0.0)), 80),
        ("vehicle_states", lambda x: fleet([5], position=[0.0, x, 0.0]), 80),
    ):
        bridge.shown(topic, make(0.0))
        bridge.peer.spin_for(0.6)
        bridge.window.clear()
        start_at = time.monotonic()
        publisher = bridge.publisher(type(make(0.0)), topic)
        for step in range(1, 21):
            publisher.publish(make(float(step)))
            bridge.peer.spin_for(0.05)
        bridge.peer.spin_until(lambda at=at: struct.unpack_from("<d", bridge.window.poll()[-1], at) == (20.0,))
        assert len(bridge.window.datagrams) <= 2 + 2 * (time.monotonic() - start_at)
        assert len(bridge.window.datagrams) >= 2


def test_simulated_time_age_and_jump_back(start):
    """Stamps are judged by /clock: too old, then older than the last, then a clock that starts again."""
    from rosgraph_msgs.msg import Clock

    bridge = start(use_sim_time="true", max_age=5.0, vehicles="[car]", **{"car.id": 1})

    def clock(seconds):
        bridge.publisher(Clock, "/clock").publish(Clock(clock=stamp(seconds)))
        bridge.peer.spin_for(0.2)

    clock(100.0)
    bridge.publish_until("car/pose", pose(seconds=100.0), lambda: clock(100.0) or bridge.window.poll())
    bridge.dropped("car/pose", pose(seconds=99.0), "stale")
    bridge.dropped("car/pose", pose(seconds=90.0), "stale")
    clock(106.0)
    bridge.dropped("car/pose", pose(seconds=100.5), "too_old")
    clock(2.0)
    assert bridge.shown("car/pose", pose(seconds=1.0))


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        pytest.param({"vehicles": "[car]"}, "car.id", id="no-id"),
        pytest.param({"vehicles": "[car,bus]", "car.id": 3, "bus.id": 3}, "bus.id", id="same-id"),
        pytest.param({"vehicles": "[car]", "car.id": 3, "car.message": "twist"}, "car.message", id="message"),
        pytest.param({"host": "no.such.host.invalid"}, "no.such.host.invalid", id="host"),
        pytest.param({"windows": 0}, "windows", id="no-window"),
        pytest.param({"port": 65535, "windows": 2}, "65536", id="ports"),
        pytest.param({"packets": "some"}, "packets", id="packets"),
        pytest.param({"rate_limit": -1.0}, "rate_limit", id="negative-rate"),
        pytest.param({"multicast_interface": "eth0"}, "multicast_interface", id="interface"),
    ],
)
def test_parameters_that_cannot_work_end_the_start_with_one_line(domain_id, parameters, named):
    from node_harness import NodeProcess

    with NodeProcess("ue_bridge_node", domain_id, {key: str(value) for key, value in parameters.items()}) as node:
        assert node.process.wait(15) == 2
        node._reader.join(2)
        assert named in node.output
        assert "Traceback" not in node.output


def test_publisher_that_cannot_be_heard_is_named(start):
    """A best-effort publisher of vehicle_states, and a topic of another type: said by name, in log and diagnostic."""
    from nav_msgs.msg import Odometry
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from rfly_suite.msg import VehicleStateArray

    bridge = start(vehicles="[car]", **{"car.id": 1})
    best_effort = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    bridge.peer.node.create_publisher(VehicleStateArray, "vehicle_states", best_effort)
    bridge.peer.node.create_publisher(Odometry, "car/pose", 10)
    bridge.peer.spin_until(lambda: bridge.status()[2].get("unmatched_peers", "").count("/peer") == 2)
    text = bridge.status()[2]["unmatched_peers"]
    assert "/vehicle_states: nothing gets from /peer: the publisher is best effort" in text
    assert "/car/pose: nothing gets from /peer: its type is nav_msgs/msg/Odometry" in text
    assert text.split("; ")[0] in bridge.node.output
