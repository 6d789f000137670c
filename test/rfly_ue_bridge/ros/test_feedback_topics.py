# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""RflySim3D's feedback in ROS: a running bridge, real DDS, and a RflySim3D of sockets.

Expected values are turned by hand: NED (n, e, d) is ENU (e, n, -d).
"""

from __future__ import annotations

import math
import socket
import struct
import time

import numpy as np
import pytest
from bridge_harness import Bridge, pose, time_packet, xyz
from feedback_datagrams import DATAGRAMS
from marks import exhaustively
from node_harness import NodeProcess, diagnostic, wait_until

pytestmark = pytest.mark.ros

TOPICS = {
    "CopterSimCrash": ("UeCrash", "ue_crash"),
    "PX4SILIntFloat": ("Px4SilData", "px4_sil"),
    "reqVeCrashData": ("UeVehicleReport", "ue_vehicle_report"),
    "CameraData (old)": ("UeCameraData", "ue_camera"),
    "CameraData": ("UeCameraData", "ue_camera"),
    "CoptReqData (old)": ("UeVehicleData", "ue_vehicle"),
    "CoptReqData": ("UeVehicleData", "ue_vehicle"),
    "ObjReqData (old)": ("UeObjectData", "ue_object"),
    "ObjReqData": ("UeObjectData", "ue_object"),
    "VisionSensorReqNew": ("UeGimbalRequest", "ue_gimbal"),
}


def datagram(name):
    return bytes.fromhex(DATAGRAMS[name][0])


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class FeedbackBridge(Bridge):
    """A bridge that listens, and the socket from which RflySim3D speaks to it."""

    def __init__(self, domain, **parameters):
        self.feedback_port = parameters.pop("feedback_port", None) or free_port()
        super().__init__(domain, feedback_port=self.feedback_port, **parameters)
        self.mouth = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def say(self, *datagrams):
        for data in datagrams:
            self.mouth.sendto(data, ("127.0.0.1", self.feedback_port))

    def feedback(self):
        """Level, message and values of the diagnostic."""
        return diagnostic(self.statuses, "feedback") or (None, "", {})

    def counted(self, reason):
        return int(self.feedback()[2].get(reason, -1))

    def listen(self, *names):
        """Lists that connected subscriptions to the topics of these packets fill."""
        import rfly_suite.msg

        lists = {}
        for name in names:
            type_name, topic = TOPICS[name]
            if topic not in lists:
                lists[topic] = self.peer.receive(getattr(rfly_suite.msg, type_name), topic, 100)
        self.peer.spin_until(lambda: all(self.peer.node.count_publishers(topic) for topic in lists))
        return lists

    def heard(self, name, data, lists):
        """Return the first message that a datagram causes; it is sent again until one comes.

         Discovery takes its time. A second apart: an answer to the last one must not be taken for
        that to the next.
        """
        topic = TOPICS[name][1]
        lists[topic].clear()
        said_at = -math.inf

        def answered():
            nonlocal said_at
            if time.monotonic() > said_at + 1.0:
                said_at = time.monotonic()
                self.say(data)
            return lists[topic]

        return self.peer.spin_until(answered)[0]

    def answer(self, replies, count=1):
        """Play RflySim3D: wait for `count` commands and answer each.

        `replies` maps commands to datagrams.
        """

        def ready():
            for data in self.window.poll()[self._seen :]:
                self._seen += 1
                self.commands.append(data[4:].rstrip(b"\0").decode())
                self.say(*replies.get(self.commands[-1], ()))
            return len(self.commands) >= count

        self.commands = []
        self._seen = 0
        self.window.clear()
        return ready

    def ask(self, **fields):
        from rfly_suite.srv import RequestObject

        client = self.peer.node.create_client(RequestObject, "request_object")
        self.peer.spin_until(client.service_is_ready)
        return client.call_async(RequestObject.Request(**fields))

    def close(self):
        self.mouth.close()
        super().close()


@pytest.fixture
def start(domain_id):
    running = []

    def make(**parameters):
        running.append(FeedbackBridge(domain_id, **parameters))
        return running[-1]

    yield make
    for bridge in running:
        bridge.close()


@pytest.fixture(scope="module")
def shared(shared_domain_id):
    bridge = FeedbackBridge(shared_domain_id)
    yield bridge
    bridge.close()


@pytest.fixture(scope="module")
def heard(shared):
    """The first message of each packet."""
    lists = shared.listen(*TOPICS)
    return {name: shared.heard(name, datagram(name), lists) for name in TOPICS}


def quat_of(euler_ned, to_world):
    """Return the rotation of body FLU into the world, by matrices.

    Yaw, pitch, roll of FRD in NED, then the axes of both ends exchanged.
    """
    (cr, cp, cy), (sr, sp, sy) = np.cos(euler_ned), np.sin(euler_ned)
    rx = np.array(
        [
            [1, 0, 0],
            [0, cr, -sr],
            [0, sr, cr],
        ]
    )
    ry = np.array(
        [
            [cp, 0, sp],
            [0, 1, 0],
            [-sp, 0, cp],
        ]
    )
    rz = np.array(
        [
            [cy, -sy, 0],
            [sy, cy, 0],
            [0, 0, 1],
        ]
    )
    return to_world @ rz @ ry @ rx @ np.diag([1, -1, -1])


def rotation(quat):
    x, y, z, w = quat
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


ENU = np.array(
    [
        [0, 1, 0],
        [1, 0, 0],
        [0, 0, -1],
    ]
)


def assert_orientation(message, euler, world=ENU):
    q = message.pose.orientation
    own = rotation((q.x, q.y, q.z, q.w))
    np.testing.assert_allclose(own, quat_of(euler, world), atol=1e-9)


@pytest.mark.parametrize("name", TOPICS)
def test_every_message_bears_the_bridges_frame_and_a_time(heard, name):
    header = heard[name].header
    assert header.frame_id == "map"
    assert header.stamp.sec > 1_600_000_000


def test_crash(heard):
    message = heard["CopterSimCrash"]
    assert (message.id, message.target_id) == (5, -3)


def test_sil(heard):
    message = heard["PX4SILIntFloat"]
    assert message.id == 7
    expected = [1, 2, 3, 4, 5, 6, 9, -1]
    assert list(message.ints) == expected
    assert list(message.floats) == [*range(1, 20), -20]


def test_vehicle_report(heard):
    message = heard["reqVeCrashData"]
    assert (message.id, message.vehicle_type, message.crash_type) == (
        1001,
        151,
        message.CRASH_GROUND,
    )
    assert (message.crashed_name, message.run_time) == ("Boden", 12.5)
    assert xyz(message.velocity) == [-2, 1, -3]
    assert xyz(message.pose.position) == [5, 4, 6]
    assert xyz(message.crash_position) == [8, 7, 9]
    assert xyz(message.target_position) == [11, 10, 12]
    assert_orientation(message, (0.5, 0.25, -0.125))

    expected = np.arange(1, 9) * 2 * math.pi
    np.testing.assert_allclose(message.motor_speed, expected, rtol=1e-6)
    assert list(message.ray) == [13, 14, 15, 16, 17, 18]


@pytest.mark.parametrize(
    ("name", "quat", "time"), [("CameraData (old)", [], 1.5), ("CameraData", [4, 5, 6, 7], 2.5)]
)
def test_camera(heard, name, quat, time):
    message = heard[name]
    assert (message.id, message.sensor_type, message.height, message.width) == (11, 2, 480, 640)
    assert message.fov_deg == 90
    assert xyz(message.pose.position) == [2, 1, 3]
    assert_orientation(message, (0.5, 0.25, -0.125))
    assert list(message.wire_quaternion) == quat
    assert message.timestamp == time


@pytest.mark.parametrize(
    ("name", "quat", "time"),
    [
        ("CoptReqData (old)", [], 3.5),
        ("CoptReqData", [4, 5, 6, 7], 4.5),
        ("ObjReqData (old)", [], 5.5),
        ("ObjReqData", [4, 5, 6, 7], 6.5),
    ],
)
def test_vehicle_and_object(heard, name, quat, time):
    message = heard[name]
    assert message.id == 12
    assert getattr(message, "name", "Ziel_ä") == "Ziel_ä"
    assert xyz(message.pose.position) == [10, 9, 11]
    assert_orientation(message, (0.75, -0.75, -0.375))
    assert list(message.wire_quaternion) == quat
    assert xyz(message.box_origin) == [13, 12, 14]
    assert xyz(message.box_extent) == [15, 16, 17]
    assert message.timestamp == time


def test_gimbal(heard):
    message = heard["VisionSensorReqNew"]
    numbers = (
        message.id,
        message.bitmask,
        message.sensor_type,
        message.target_id,
        message.mount_type,
    )

    assert numbers == (2, 0x8000000F, 3, 4, 5)
    assert (message.width, message.height, message.check_frequency) == (640, 480, 30)
    assert list(message.send_protocol) == [6, 7, 8, 9, 10, 11, 12, 65535]
    assert (message.fov_deg, message.angle_kind) == (90, 4)

    assert list(message.mount_position) == [1, 2, -3]
    assert list(message.mount_euler) == [0.5, 0.25, -0.125]
    assert list(message.mount_quaternion) == [5, 6, 7, 8]
    assert list(message.other_params) == [*range(9, 24), -24]


ANSWERS = {
    "RflyReqObjData 0 11 0": [datagram("CameraData")],
    "RflyReqObjData 1 12 0": [datagram("CoptReqData")],
    "RflyReqObjData 2 Ziel_ä 0": [datagram("CopterSimCrash"), datagram("ObjReqData (old)")],
}


@pytest.mark.parametrize(
    ("asked", "command", "position", "euler", "origin", "extent"),
    [
        (
            {"kind": 0, "id": 11},
            "RflyReqObjData 0 11 0",
            (2, 1, 3),
            (0.5, 0.25, -0.125),
            (0, 0, 0),
            (0, 0, 0),
        ),
        (
            {"kind": 1, "id": 12},
            "RflyReqObjData 1 12 0",
            (10, 9, 11),
            (0.75, -0.75, -0.375),
            (13, 12, 14),
            (15, 16, 17),
        ),
        (
            {"kind": 2, "name": "Ziel_ä"},
            "RflyReqObjData 2 Ziel_ä 0",
            (10, 9, 11),
            (0.75, -0.75, -0.375),
            (13, 12, 14),
            (15, 16, 17),
        ),
    ],
)
def test_request_is_answered(shared, asked, command, position, euler, origin, extent):
    ready = shared.answer(ANSWERS)
    future = shared.ask(timeout=60.0, **asked)
    shared.peer.spin_until(lambda: ready() and future.done())
    answer = future.result()
    assert (answer.success, answer.message) == (True, "")
    assert shared.commands == [command]
    p = answer.pose.pose.position
    q = answer.pose.pose.orientation
    assert (p.x, p.y, p.z) == position
    assert answer.pose.header.frame_id == "map"
    np.testing.assert_allclose(rotation((q.x, q.y, q.z, q.w)), quat_of(euler, ENU), atol=1e-9)
    assert (answer.box_origin.x, answer.box_origin.y, answer.box_origin.z) == origin
    assert (answer.box_extent.x, answer.box_extent.y, answer.box_extent.z) == extent


def test_requests_wait_side_by_side_and_poses_pass_them(shared):
    """Three requests wait, one of them until its timeout.

    A state is sent meanwhile, and the answers come in another order.
    """
    from bridge_harness import fleet

    ready = shared.answer({}, count=3)
    camera = shared.ask(kind=0, id=11, timeout=60.0)
    vehicle = shared.ask(kind=1, id=12, timeout=60.0)
    nobody = shared.ask(kind=1, id=99, timeout=1.0)
    shared.peer.spin_until(ready)
    assert sorted(shared.commands) == [
        "RflyReqObjData 0 11 0",
        "RflyReqObjData 1 12 0",
        "RflyReqObjData 1 99 0",
    ]
    sent = shared.shown("vehicle_states", fleet([4], position=[2.0, 1.0, 3.0]))
    assert len(sent[0]) == 112
    assert not vehicle.done()
    assert not camera.done()
    shared.say(datagram("CoptReqData"))
    shared.peer.spin_until(vehicle.done)
    shared.peer.spin_until(nobody.done)
    assert not camera.done()
    assert nobody.result().message == "no answer within 1 s to 'RflyReqObjData 1 99 0'"
    assert not nobody.result().success
    shared.say(datagram("CameraData"))
    shared.peer.spin_until(camera.done)
    assert vehicle.result().success
    assert camera.result().success


def test_one_answer_serves_all_who_asked_the_same(shared):
    ready = shared.answer({}, count=2)
    futures = [shared.ask(kind=1, id=12, timeout=60.0) for _ in range(2)]
    shared.peer.spin_until(ready)
    shared.say(datagram("CoptReqData"))
    shared.peer.spin_until(lambda: all(future.done() for future in futures))
    assert all(future.result().success for future in futures)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"kind": 7}, "kind: 7"),
        ({"kind": 2, "name": "two words"}, "name: 'two words'"),
        ({"kind": 2, "name": "a" * 300}, "at most 249"),
        ({"kind": 0, "timeout": -1.0}, "timeout: -1.0"),
        ({"kind": 0, "timeout": math.nan}, "timeout: nan"),
        ({"kind": 0, "timeout": 61.0}, "timeout: 61.0, expected 0 to 60 s"),
    ],
)
def test_request_that_cannot_be_asked_is_refused_at_once(shared, asked, named):
    shared.window.clear()
    future = shared.ask(**asked)
    shared.peer.spin_until(future.done)
    assert not future.result().success
    assert named in future.result().message
    assert shared.window.poll() == []


def test_losses_are_counted_and_said(shared):
    bad_name = datagram("ObjReqData")[:-32] + b"\xff" * 32
    not_finite = (
        datagram("CoptReqData")[:8] + struct.pack("<f", math.nan) + datagram("CoptReqData")[12:]
    )

    lists = shared.listen("CoptReqData", "ObjReqData")
    shared.heard("ObjReqData", datagram("ObjReqData"), lists)
    shared.heard("CoptReqData", datagram("CoptReqData"), lists)

    reasons = ("unknown_length", "wrong_checksum", "text", "not_finite")
    shared.peer.spin_until(lambda: shared.counted("received") >= 0)
    before = {reason: shared.counted(reason) for reason in reasons}

    shared.say(bytes(7), bytes(72), bad_name, not_finite)
    shared.peer.spin_until(
        lambda: all(shared.counted(reason) == before[reason] + 1 for reason in reasons)
    )

    level, message, _ = shared.feedback()
    assert level == 1
    assert "datagrams lost" in message or "CoptReqData with a number that is not finite" in message

    good = shared.heard("CoptReqData", datagram("CoptReqData"), lists)
    assert xyz(good.pose.position) == [10, 9, 11]


def test_what_nobody_wants_is_counted(start):
    bridge = start()
    bridge.peer.spin_until(lambda: bridge.counted("not_wanted") == 0)
    bridge.say(datagram("ObjReqData"), datagram("CameraData"))
    bridge.peer.spin_until(lambda: bridge.counted("not_wanted") == 2)
    assert "last heard" in bridge.feedback()[1]
    assert bridge.feedback()[0] == 0


def test_positions_in_map_ned_where_that_is_the_bridges_frame(start):
    bridge = start(frame_id="map_ned")
    lists = bridge.listen("CoptReqData", "reqVeCrashData")
    message = bridge.heard("CoptReqData", datagram("CoptReqData"), lists)
    assert message.header.frame_id == "map_ned"
    assert xyz(message.pose.position) == [9, 10, -11]
    assert xyz(message.box_origin) == [12, 13, -14]
    assert_orientation(message, (0.75, -0.75, -0.375), np.eye(3))
    report = bridge.heard("reqVeCrashData", datagram("reqVeCrashData"), lists)
    assert xyz(report.velocity) == [1, -2, 3]
    assert xyz(report.crash_position) == [7, 8, -9]


def test_a_taken_port_is_reported_poses_flow_and_the_port_is_taken_over(start):
    other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    other.bind(("127.0.0.1", 0))
    port = other.getsockname()[1]

    bridge = start(feedback_port=port, vehicles="[a]", **{"a.id": 3, "a.type": 5})
    bridge.peer.spin_until(lambda: bridge.feedback()[0] == 2)
    assert bridge.feedback()[1] == f"feedback port 127.0.0.1:{port}: another program holds it"

    expected = time_packet(3, 5, (1, 2, -3), (0, 0, 0))
    sent = bridge.shown("a/pose", pose())
    assert sent[0][:56] == expected[:56]
    assert sent[0][68:] == expected[68:]

    future = bridge.ask(kind=1, id=1)
    bridge.peer.spin_until(future.done)
    assert "another program holds it" in future.result().message

    other.close()
    bridge.peer.spin_until(lambda: bridge.feedback()[0] == 0)
    lists = bridge.listen("CopterSimCrash")
    assert bridge.heard("CopterSimCrash", datagram("CopterSimCrash"), lists).id == 5


def test_the_usual_port_is_left_to_the_bridge_of_the_usual_window(start, rflysim_ports):
    """A second graph's window is elsewhere, so that another's port is no error of it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 20006))
        bridge = start(feedback_port=20006)
        bridge.peer.spin_until(lambda: bridge.feedback()[0] == 0)
    where = f"127.0.0.1:{bridge.window.port} is elsewhere"
    assert bridge.feedback()[1] == (
        f"feedback port 127.0.0.1:20006: another program holds it; {where}"
    )
    assert "ERROR" not in bridge.node.output


def test_two_bridges_of_one_port_do_not_disturb_each_other(start, domain_id):
    """The first bridge keeps unicast; a later one reports that it does not get it.

    Multicast reaches all that joined, whatever their own address.
    """
    from rfly_suite.msg import UeCrash

    first = start(feedback_multicast_interface="127.0.0.1")
    first.peer.spin_until(lambda: first.feedback()[0] == 0)
    common = {"port": str(first.window.port), "feedback_port": str(first.feedback_port)}
    joined = {**common, "feedback_bind": "127.0.0.2", "feedback_multicast_interface": "127.0.0.1"}
    with (
        NodeProcess("ue_bridge_node", domain_id, joined, "-r", "__ns:=/second") as second,
        NodeProcess("ue_bridge_node", domain_id, common, "-r", "__ns:=/third") as third,
    ):
        first.peer.spin_until(lambda: "another program holds it" in third.output)
        first.peer.spin_until(lambda: "listening to RflySim3D on 127.0.0.2" in second.output)
        crashes = first.listen("CopterSimCrash")["ue_crash"]
        elsewhere = [
            first.peer.receive(UeCrash, f"/{name}/ue_crash", 100) for name in ("second", "third")
        ]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as group:
            group.setsockopt(
                socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1")
            )

            def both_heard():
                group.sendto(datagram("CopterSimCrash"), ("224.0.0.10", first.feedback_port))
                first.peer.spin_for(0.05)
                return crashes and elsewhere[0]

            first.peer.spin_until(both_heard)
        first.peer.spin_for(0.2)
        crashes.clear()
        elsewhere[0].clear()
        first.say(datagram("CopterSimCrash"))
        first.peer.spin_until(lambda: crashes)
        first.peer.spin_for(0.2)
        assert elsewhere == [[], []]


def test_a_join_that_fails_is_a_warning_and_unicast_works(start):
    bridge = start(feedback_multicast_interface="203.0.113.7")
    bridge.peer.spin_until(lambda: bridge.feedback()[0] == 1)
    assert "224.0.0.10 on 203.0.113.7" in bridge.feedback()[1]
    lists = bridge.listen("CopterSimCrash")
    assert bridge.heard("CopterSimCrash", datagram("CopterSimCrash"), lists).id == 5


def test_only_allowed_senders_are_heard(start):
    bridge = start(feedback_allow="[10.1.0.0/16]")
    bridge.peer.spin_until(lambda: bridge.counted("not_allowed") == 0)
    bridge.say(datagram("CopterSimCrash"))
    bridge.peer.spin_until(lambda: bridge.counted("not_allowed") == 1)


def test_vehicle_data_is_asked_for_until_it_comes(start):
    bridge = start(request_vehicle_data="true")
    command = struct.pack("<i52s", 1234567890, b"RflyReqVehicleData 1")
    bridge.peer.spin_until(lambda: bridge.window.poll().count(command) == 1)
    bridge.peer.spin_until(
        lambda: bridge.window.poll().count(command) == 2
    )  # RflySim3D was not there yet
    assert set(bridge.window.datagrams) == {command}


def test_nothing_is_asked_and_nothing_opened_unless_told(start):
    bridge = Bridge(int(start().peer.node.context.get_domain_id()), feedback_port=0)
    try:
        bridge.peer.spin_until(
            lambda: any(
                "off: parameter feedback_port is 0" in s.message
                for m in bridge.statuses
                for s in m.status
            )
        )
        assert bridge.window.poll() == []
    finally:
        bridge.close()


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"feedback_bind": "everywhere"}, "parameter feedback_bind: 'everywhere'"),
        exhaustively(
            {"feedback_multicast_interface": "eth0"},
            "parameter feedback_multicast_interface: 'eth0'",
        ),
        exhaustively({"feedback_allow": "[one]"}, "parameter feedback_allow: 'one'"),
        exhaustively({"feedback_port": 70000}, "feedback_port"),
        ({"frame_id": "odom"}, "parameter frame_id: 'odom', expected one of map, map_ned"),
    ],
)
def test_settings_that_cannot_be_used_end_it_with_one_line(domain_id, parameters, named):
    with NodeProcess(
        "ue_bridge_node", domain_id, {key: str(value) for key, value in parameters.items()}
    ) as node:
        assert node.process.wait(20) == 2
        node.stop()
        assert named in node.output
        assert "Traceback" not in node.output


def test_a_remote_host_with_a_deaf_ear_is_warned_of_once(domain_id):
    port = free_port()
    settings = {"host": "192.0.2.1", "feedback_port": str(port)}
    with NodeProcess("ue_bridge_node", domain_id, settings) as node:
        from node_harness import Peer

        peer = Peer(domain_id)
        try:
            peer.spin_until(lambda: "sending to 192.0.2.1" in node.output)
            warnings = [
                line
                for line in node.output.splitlines()
                if "WARN" in line and "feedback_bind" in line
            ]
            assert len(warnings) == 1
            assert "host is 192.0.2.1" in warnings[0]
        finally:
            peer.close()
        assert node.stop() == 0


def test_a_waiting_request_does_not_hold_up_the_end(start):
    bridge = start()
    ready = bridge.answer({})
    bridge.ask(kind=1, id=1, timeout=60.0)
    bridge.peer.spin_until(ready)
    assert bridge.node.stop() == 0
    assert "Traceback" not in bridge.node.output


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_flood_of_good_packets_leaves_states_their_way(start):
    """Everything is said ten times faster than it can be published; a state still gets through."""
    import threading
    import time

    bridge = start()
    lists = bridge.listen("reqVeCrashData")
    bridge.heard("reqVeCrashData", datagram("reqVeCrashData"), lists)
    stop = threading.Event()

    def flood():
        while not stop.is_set():
            bridge.say(*[datagram("reqVeCrashData")] * 100)
            time.sleep(0.002)

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        bridge.peer.spin_until(lambda: bridge.counted("overflow") > 0)
        from bridge_harness import fleet

        publisher = bridge.publisher(type(fleet([4])), "vehicle_states")
        for number in range(20):
            bridge.window.clear()
            publisher.publish(fleet([4], position=[1.0 + number, 2.0, 3.0]))
            wait_until(bridge.window.poll)
    finally:
        stop.set()
        thread.join()
