# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""coptersim_node with real sockets and DDS, and a sender in CopterSim's place."""

from __future__ import annotations

import math
import socket
import struct
import subprocess
import sys
import time

import coptersim_datagrams as datagrams
import pytest
from node_harness import PATIENCE
from sensor_window import free_ports

pytestmark = pytest.mark.ros

# worked out with rotation matrices, see test_coptersim
QUAT = (0.0046427, 0.0101704, 0.0353386, 0.9993129)
VELOCITY = (-0.2133211, 1.2176115, -0.0664562)
ARM = datagrams.ARM_24
DISARM = datagrams.ARM_24[:8] + bytes(16)
STOP = struct.pack("<2i4f", 1234567890, 1, 0.0, 0.0, 0.0, 0.0)


class CopterSim:
    """CopterSim's place: sends states of vehicle 1, and takes commands."""

    def __init__(self):
        self.truth, self.state, self.time = free_ports(3)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.setblocking(False)
        self.commands = []

    def send(self, port, *packets, sender=None):
        for packet in packets:
            (sender or self.socket).sendto(packet, ("127.0.0.1", port))

    def poll(self):
        """The commands, and the time of each."""
        while True:
            try:
                self.commands.append((time.monotonic(), self.socket.recv(500)))
            except BlockingIOError:
                return [datagram for _, datagram in self.commands]


class Rig:
    """A running node, CopterSim's place, and a peer that hears it."""

    def __init__(self, domain, **parameters):
        from node_harness import NodeProcess, Peer

        self.coptersim = CopterSim()
        settings = {
            "truth_port": self.coptersim.truth,
            "state_port": self.coptersim.state,
            "time_port": self.coptersim.time,
            "offboard_port": self.coptersim.socket.getsockname()[1],
        } | parameters
        self.node = NodeProcess(
            "coptersim_node", domain, {key: str(value) for key, value in settings.items()}
        )
        self.peer = Peer(domain)

    def heard(self, port, packets, *received):
        """The newest message of each list, after the packets were sent often enough."""

        def once_more():
            self.coptersim.send(port, *packets)
            return all(received)

        self.peer.spin_until(once_more)
        return [messages[-1] for messages in received]

    def arm(self, is_armed=True):
        from std_srvs.srv import SetBool

        return self.peer.call(SetBool, "/coptersim_node/copter1/arm", data=is_armed)

    def commanded(self, ready):
        return self.peer.spin_until(lambda: ready(self.coptersim.poll()))

    def close(self):
        self.peer.close()
        self.node.__exit__()
        self.coptersim.socket.close()


@pytest.fixture
def rig(domain_id):
    made = []

    def make(**parameters):
        made.append(Rig(domain_id, **parameters))
        return made[-1]

    yield make
    for each in made:
        each.close()


def xyz(vector):
    return vector.x, vector.y, vector.z


def xyzw(quat):
    return quat.x, quat.y, quat.z, quat.w


def twist_stamped(x=0.0, y=0.0, z=0.0, turn=0.0, frame_id="base_link"):
    from geometry_msgs.msg import TwistStamped

    message = TwistStamped()
    message.header.frame_id = frame_id
    message.twist.linear.x = x
    message.twist.linear.y = y
    message.twist.linear.z = z
    message.twist.angular.z = turn
    return message


def pose_stamped(frame_id, x, y, z, yaw):
    from geometry_msgs.msg import PoseStamped

    message = PoseStamped()
    message.header.frame_id = frame_id
    message.pose.position.x = x
    message.pose.position.y = y
    message.pose.position.z = z
    message.pose.orientation.z = math.sin(0.5 * yaw)
    message.pose.orientation.w = math.cos(0.5 * yaw)
    return message


# --- states


def test_the_truth_as_topics(rig):
    from geometry_msgs.msg import PoseStamped
    from nav_msgs.msg import Odometry
    from sensor_msgs.msg import JointState
    from tf2_msgs.msg import TFMessage

    made = rig()
    odometry, pose, joints, tf = made.heard(
        made.coptersim.truth,
        [datagrams.TRUTH_168],
        made.peer.receive(Odometry, "/copter1/truth/odometry", 10),
        made.peer.receive(PoseStamped, "/copter1/pose", 10),
        made.peer.receive(JointState, "/copter1/truth/joint_states", 10),
        made.peer.receive(TFMessage, "/tf", 10),
    )
    assert (odometry.header.frame_id, odometry.child_frame_id) == ("map", "copter1/base_link")
    assert xyz(odometry.pose.pose.position) == (5.0, 10.0, 2.5)
    assert xyzw(odometry.pose.pose.orientation) == pytest.approx(QUAT, abs=1e-6)
    assert xyz(odometry.twist.twist.linear) == pytest.approx(VELOCITY, abs=1e-6)
    assert xyz(odometry.twist.twist.angular) == pytest.approx((0.0, 0.0, -0.1))
    assert not odometry.twist.covariance.any()

    assert (pose.header.frame_id, pose.pose) == ("map", odometry.pose.pose)
    # 5000 rpm
    assert list(joints.velocity) == pytest.approx([523.5988] * 4 + [0.0] * 4)
    (transform,) = tf.transforms
    assert (transform.header.frame_id, transform.child_frame_id) == ("map", "copter1/base_link")
    assert xyz(transform.transform.translation) == (5.0, 10.0, 2.5)


def test_a_truth_without_rates_says_so(rig):
    from nav_msgs.msg import Odometry
    from sensor_msgs.msg import NavSatFix

    made = rig()
    odometry, fix = made.heard(
        made.coptersim.truth,
        [datagrams.TRUTH_112],
        made.peer.receive(Odometry, "/copter1/truth/odometry", 10),
        made.peer.receive(NavSatFix, "/copter1/truth/fix", 10),
    )
    assert odometry.twist.covariance[35] == 1e6
    assert (fix.latitude, fix.longitude) == pytest.approx((47.397742, 8.545594), abs=1e-9)
    assert fix.altitude == 488.0


def test_the_order_of_the_place_follows_the_origin(rig):
    from sensor_msgs.msg import NavSatFix

    made = rig()
    received = made.peer.receive(NavSatFix, "/copter1/truth/fix", 10)
    origin = datagrams.ORIGIN[:8] + struct.pack("<3d", 47.4, 8.5, 400.0)
    (fix,) = made.heard(made.coptersim.truth, [origin, datagrams.TRUTH_168], received)
    assert (fix.latitude, fix.longitude, fix.altitude) == (47.397742, 8.545594, 488.0)


def test_the_estimate_starts_at_the_vehicles_home(rig):
    from nav_msgs.msg import Odometry
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from tf2_msgs.msg import TFMessage

    # 0.001 degrees north of the map's origin, and 8 m higher
    made = rig(geo_origin="[47.396742, 8.545594, 480.0]")
    latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    odometry, tf = made.heard(
        made.coptersim.state,
        [datagrams.STATE_52],
        made.peer.receive(Odometry, "/copter1/estimate/odometry", 10),
        made.peer.receive(TFMessage, "/tf_static", latched),
    )
    assert odometry.header.frame_id == "copter1/odom"
    assert odometry.child_frame_id == "copter1/base_link"
    assert xyz(odometry.pose.pose.position) == (5.0, 10.0, 2.5)
    assert xyzw(odometry.pose.pose.orientation) == pytest.approx(QUAT, abs=1e-6)
    assert xyz(odometry.twist.twist.linear) == pytest.approx(VELOCITY, abs=1e-6)

    (transform,) = tf.transforms
    assert transform.child_frame_id == "copter1/odom"
    # a degree of latitude is 111,178 m there
    start = xyz(transform.transform.translation)
    assert start == pytest.approx((0.0, 111.178, 8.0), abs=0.02)


def test_the_estimate_of_udp_mode_0_has_accuracies(rig):
    from nav_msgs.msg import Odometry

    made = rig()
    received = made.peer.receive(Odometry, "/copter1/estimate/odometry", 10)
    (odometry,) = made.heard(made.coptersim.state, [datagrams.STATE_120], received)
    covariance = odometry.pose.covariance
    assert [covariance[k] for k in (0, 7, 14)] == pytest.approx([0.16, 0.16, 0.36])


def test_collisions_are_reported(rig):
    from rfly_suite.msg import UeCrash

    made = rig()
    received = made.peer.receive(UeCrash, "/copter1/crash", 10)
    (crash,) = made.heard(made.coptersim.truth, [datagrams.CRASH], received)
    assert (crash.id, crash.target_id) == (1, 2)
    received.clear()
    made.peer.spin_until(
        lambda: (
            made.coptersim.send(made.coptersim.state, datagrams.CRASH_52)
            or any(message.target_id == 3 for message in received)
        )
    )


@pytest.mark.parametrize("clock", ["heartbeat", "truth"])
def test_the_simulations_time_as_clock(rig, clock):
    from rclpy.qos import qos_profile_sensor_data
    from rosgraph_msgs.msg import Clock

    made = rig(clock=clock)
    received = made.peer.receive(Clock, "/clock", qos_profile_sensor_data)
    start_ms = 1_700_000_000_000
    beat = struct.pack("<2i3q", 123456789, 1, start_ms, start_ms + 50_250, 1)
    other = struct.pack("<2i3q", 123456789, 2, start_ms, start_ms + 99_000, 1)
    if clock == "heartbeat":
        (message,) = made.heard(made.coptersim.time, [other, beat], received)
        assert (message.clock.sec, message.clock.nanosec) == (50, 250_000_000)
    else:
        (message,) = made.heard(made.coptersim.truth, [datagrams.TRUTH_168], received)
        assert (message.clock.sec, message.clock.nanosec) == (12, 500_000_000)


def with_extreme_numbers(datagram):
    """The datagram with each of its words of eight or four bytes set to extreme numbers."""
    extremes = [
        *(struct.pack("<d", x) for x in (math.nan, math.inf, -math.inf, 1e300, -1e300, 2.0**62)),
        *(struct.pack("<f", x) for x in (math.nan, math.inf, 3e38)),
        *(struct.pack("<q", x) for x in (2**63 - 1, -(2**63))),
    ]
    for extreme in extremes:
        for at in range(4, len(datagram) - len(extreme) + 1, 4):
            yield datagram[:at] + extreme + datagram[at + len(extreme) :]


def test_no_number_ends_the_receiving_thread(rig):
    from nav_msgs.msg import Odometry
    from rclpy.qos import qos_profile_sensor_data

    made = rig(stamp="simulation", clock="heartbeat")
    coptersim = made.coptersim
    received = made.peer.receive(Odometry, "/copter1/truth/odometry", qos_profile_sensor_data)
    estimates = made.peer.receive(Odometry, "/copter1/estimate/odometry", qos_profile_sensor_data)
    now_ms = time.time_ns() // 1_000_000
    beat = struct.pack("<2i3q", 123456789, 1, now_ms - 20_000, now_ms, 1)

    def heard_again():
        received.clear()
        estimates.clear()
        coptersim.send(coptersim.time, beat)
        made.heard(coptersim.state, [datagrams.STATE_120], estimates)
        return made.heard(coptersim.truth, [datagrams.TRUTH_168], received)

    heard_again()
    threads = made.node.threads()
    truths = (datagrams.TRUTH_168, datagrams.TRUTH_112, datagrams.TRUTH_200, datagrams.ORIGIN)
    for port, packets in (
        (coptersim.truth, truths),
        (coptersim.state, (datagrams.STATE_52, datagrams.STATE_120)),
        (coptersim.time, (beat,)),
    ):
        for packet in packets:
            coptersim.send(port, *with_extreme_numbers(packet))

    (message,) = heard_again()
    # 12.5 s after the start, or its arrival, as the time stands still
    assert message.header.stamp.sec == pytest.approx(now_ms / 1000, abs=60.0)
    assert threads <= made.node.threads()
    assert "dropped, by an error" not in made.node.output


# --- diagnostics


def test_silence_readiness_and_refused_datagrams_are_reported(rig):
    from diagnostic_msgs.msg import DiagnosticArray
    from node_harness import diagnostic

    made = rig()
    coptersim = made.coptersim
    statuses = made.peer.receive(DiagnosticArray, "/diagnostics", 10)
    _level, message, values = made.peer.spin_until(
        lambda: (s := diagnostic(statuses, "copter1")) and s[0] == 3 and s
    )
    assert f"no truth on port {coptersim.truth} yet" in message
    assert (values["reason"], values["subject"]) == ("no_coptersim_data", str(coptersim.truth))
    assert values["ready"] == "False"

    # a foreign id, another packet, an impossible number
    nan = datagrams.TRUTH_168[:16] + struct.pack("<f", math.nan) + datagrams.TRUTH_168[20:]
    foreign = datagrams.TRUTH_168[:4] + struct.pack("<i", 2) + datagrams.TRUTH_168[8:]
    coptersim.send(coptersim.truth, foreign, b"x" * 168, b"", nan)
    coptersim.send(coptersim.state, b"\xfd" + bytes(30), datagrams.READY_52)

    def well():
        coptersim.send(coptersim.truth, datagrams.TRUTH_112)
        coptersim.send(coptersim.state, datagrams.STATE_52)
        status = diagnostic(statuses, "copter1")
        return status and status[0] == 0 and status

    _level, message, values = made.peer.spin_until(well)
    assert message == "estimate ready"
    counts = [values[f"truth_{k}"] for k in ("wrong_id", "checksum", "length", "not_finite")]
    assert counts == ["1"] * 4
    assert (values["estimate_mavlink"], values["ready"]) == ("1", "True")
    assert float(values["truth_rate_hz"]) > 0.0
    assert "offboard" not in values


def test_other_senders_are_not_read(rig):
    from diagnostic_msgs.msg import DiagnosticArray
    from nav_msgs.msg import Odometry
    from node_harness import diagnostic

    made = rig(allow="[127.0.0.1]")
    coptersim = made.coptersim
    received = made.peer.receive(Odometry, "/copter1/truth/odometry", 10)
    statuses = made.peer.receive(DiagnosticArray, "/diagnostics", 10)
    stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    stranger.bind(("127.0.0.2", 0))

    def counted():
        coptersim.send(coptersim.truth, datagrams.TRUTH_168, sender=stranger)
        status = diagnostic(statuses, "copter1")
        return status and int(status[2]["not_allowed"]) > 3

    with stranger:
        made.peer.spin_until(counted)
    assert not received
    made.heard(coptersim.truth, [datagrams.TRUTH_168], received)


# --- commands


def test_without_the_parameter_offboard_nothing_is_sent(rig):
    made = rig()
    from nav_msgs.msg import Odometry

    made.heard(
        made.coptersim.truth,
        [datagrams.TRUTH_168],
        made.peer.receive(Odometry, "/copter1/truth/odometry", 10),
    )
    assert made.peer.node.count_subscribers("/copter1/cmd_vel") == 0
    services = dict(made.peer.node.get_service_names_and_types())
    assert "/coptersim_node/list_parameters" in services
    assert "/coptersim_node/copter1/arm" not in services
    assert made.coptersim.poll() == []


def test_a_velocity_is_sent_until_it_is_silent_and_then_zero(rig):
    from rcl_interfaces.srv import GetParameters
    from rclpy.duration import Duration

    made = rig(offboard=True, command_timeout=0.4)
    velocity = made.peer.publisher(type(twist_stamped()), "/copter1/cmd_vel", 10)

    # nothing before it is armed, and nothing before the first command
    velocity.publish(twist_stamped(9.0))
    assert velocity.wait_for_all_acked(Duration(seconds=PATIENCE))
    made.peer.call(GetParameters, "/coptersim_node/get_parameters")  # what came before is done
    assert made.coptersim.poll() == []
    assert made.arm().success
    made.commanded(lambda commands: commands)
    made.peer.spin_for(0.3)
    assert set(made.coptersim.poll()) == {ARM}  # more than once if its answer was lost

    # forward 1.5, left 0.5, up 0.25, turning left: FRD
    velocity.publish(twist_stamped(1.5, 0.5, 0.25, 0.2, "copter1/base_link"))
    expected = struct.pack("<2i4f", 1234567890, 1, 1.5, -0.5, -0.25, -0.2)
    made.commanded(lambda commands: commands[-1] == STOP)
    moving = [when for when, datagram in made.coptersim.commands if datagram == expected]
    assert {datagram for _, datagram in made.coptersim.commands} == {ARM, expected, STOP}
    assert all(when > moving[-1] for when, datagram in made.coptersim.commands if datagram == STOP)
    assert 0.2 < moving[-1] - moving[0] < 5.0
    assert len(moving) >= 5
    made.commanded(lambda commands: commands.count(STOP) > 10)

    # disarmed: no more commands
    assert made.arm(False).success
    made.commanded(lambda commands: commands[-1] == DISARM)
    made.peer.spin_for(0.3)
    assert made.coptersim.poll()[-1] == DISARM


def test_a_commanded_vehicle_is_stopped_when_the_node_ends(rig):
    made = rig(offboard=True, command_timeout=60.0)
    velocity = made.peer.publisher(type(twist_stamped()), "/copter1/cmd_vel", 10)
    assert made.arm().success
    velocity.publish(twist_stamped(1.5))
    made.commanded(lambda commands: len(commands) > 5)
    assert made.arm().success  # once more, which changes nothing
    made.commanded(lambda commands: commands.count(ARM) == 2 and commands[-1] != ARM)
    assert made.node.stop() == 0
    assert made.coptersim.poll()[-1] == STOP
    assert made.coptersim.poll()[-2] != STOP


def test_commands_are_sent_at_thirty_hertz_at_least(rig):
    made = rig(offboard=True, command_timeout=60.0, command_rate=30.0)
    velocity = made.peer.publisher(type(twist_stamped()), "/copter1/cmd_vel", 10)
    assert made.arm().success
    velocity.publish(twist_stamped(1.5))
    made.commanded(lambda commands: len(commands) > 61)
    times = [when for when, _ in made.coptersim.commands[1:]]
    # 60 periods; a busy machine may be late
    assert (times[-1] - times[0]) / (len(times) - 1) < 2.0 / 30.0


def test_a_pose_is_relative_to_the_start_point(rig):
    made = rig(offboard=True, command_timeout=60.0, geo_origin="[47.397742, 8.545594, 480.0]")
    message = pose_stamped("copter1/odom", 5.0, 10.0, 8.0, math.pi / 2 - 1.57)
    poses = made.peer.publisher(type(message), "/copter1/cmd/pose", 10)
    assert made.arm().success
    poses.publish(message)
    made.commanded(lambda commands: len(commands) > 1)
    values = struct.unpack("<2i4f", made.coptersim.commands[-1][1])
    assert values[:2] == (1234567890, 2)
    assert values[2:] == pytest.approx((10.0, 5.0, -8.0, 1.57), abs=1e-6)

    # in the map it is unknown until the vehicle's home is, 8 m above the map's origin
    sent = made.coptersim.poll()[-1]
    poses.publish(pose_stamped("map", 5.0, 10.0, 8.0, 0.0))
    made.peer.spin_until(lambda: "the start point in the map is unknown" in made.node.output)
    assert made.coptersim.poll()[-1] == sent

    def moved():
        made.coptersim.send(made.coptersim.state, datagrams.STATE_52)
        poses.publish(pose_stamped("map", 5.0, 10.0, 8.0, 0.0))
        return made.coptersim.poll()[-1] != sent

    made.peer.spin_until(moved)
    values = struct.unpack("<2i4f", made.coptersim.commands[-1][1])
    assert values[2:] == pytest.approx((10.0, 5.0, 0.0, math.pi / 2), abs=1e-3)


def test_unusable_commands_are_refused(rig):
    made = rig(offboard=True)
    velocity = made.peer.publisher(type(twist_stamped()), "/copter1/cmd_vel", 10)
    assert made.arm().success
    made.commanded(lambda commands: commands)
    for forward in (1e39, math.nan):  # beyond the packet's float; one more is not logged at once
        velocity.publish(twist_stamped(forward))
    made.peer.spin_until(lambda: "expected finite numbers up to 1e+08" in made.node.output)

    def named():
        velocity.publish(twist_stamped(1.0, frame_id="map"))
        return "header.frame_id is 'map'" in made.node.output

    made.peer.spin_until(named)  # the log is throttled
    assert made.coptersim.poll() == [ARM]


def test_udp_mode_0_has_frames_and_cannot_arm(rig):
    from geometry_msgs.msg import Twist

    made = rig(offboard=True, udp_mode="full", stamped_cmd_vel=False, command_timeout=60.0)
    velocity = made.peer.publisher(Twist, "/copter1/cmd_vel", 10)
    assert "no packet that arms" in made.arm().message
    assert made.coptersim.poll() == []
    velocity.publish(twist_stamped(1.5, 0.5, 0.0, -0.2).twist)
    made.commanded(lambda commands: commands)
    sent = made.coptersim.commands[-1][1]
    expected = datagrams.VELOCITY_120
    assert sent[:8] + sent[12:20] == expected[:8] + expected[12:20]
    assert struct.unpack("<I", sent[20:24]) == (8,)
    assert sent[24:] == expected[24:]


def test_vehicle_three_has_its_own_ports(domain_id):
    from nav_msgs.msg import Odometry
    from node_harness import NodeProcess, Peer

    coptersim = CopterSim()
    parameters = {
        "vehicles": "[3]",
        "name": "uav{id}",
        "truth_port": str(coptersim.truth - 4),
        "state_port": str(coptersim.state - 4),
    }
    with NodeProcess("coptersim_node", domain_id, parameters), coptersim.socket:
        peer = Peer(domain_id)
        received = peer.receive(Odometry, "/uav3/truth/odometry", 10)
        truth = datagrams.TRUTH_168[:4] + struct.pack("<i", 3) + datagrams.TRUTH_168[8:]
        peer.spin_until(lambda: coptersim.send(coptersim.truth, truth) or received)
        peer.close()


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"vehicles": "[1, 1]"}, "parameter vehicles"),
        ({"vehicles": "[0]"}, "parameter vehicles"),
        ({"vehicles": "[1, 2]", "name": "uav"}, "parameter name"),
        ({"vehicles": "[3]", "truth_port": "65535"}, "parameter truth_port"),
        ({"truth_port": "29101", "state_port": "29101"}, "needed twice"),
        ({"geo_origin": "[1.0, 2.0]"}, "parameter geo_origin"),
        ({"allow": "[windows]"}, "windows"),
    ],
)
def test_a_wrong_configuration_ends_the_node_with_one_line(domain_id, parameters, named):
    from node_harness import NodeProcess

    with NodeProcess("coptersim_node", domain_id, parameters) as node:
        assert node.process.wait(60.0) == 2
        assert node.stop() == 2
    assert named in node.output
    assert "Traceback" not in node.output


def test_a_node_without_files_and_pictures_loads_no_reader_of_them():
    """OpenCV, Pillow and jsonschema took a third of its start."""
    code = (
        "import sys, rfly_ue_bridge.ros.coptersim_node; "
        "print(sorted({'cv2', 'PIL.Image', 'jsonschema'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert done.stdout == "[]\n"
