# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""link_node and mavlink_hil_node against sensor topics and controllers of the test; real DDS."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
import zlib

import pytest
from node_harness import PATIENCE

pytestmark = pytest.mark.ros


def frame(kind, sequence, time_s, payload):
    """Return a frame with a header made by hand."""
    body = struct.pack("<4sBBHQd", b"LAV1", kind, 0, len(payload), sequence, time_s) + payload
    return body + struct.pack("<I", zlib.crc32(body))


class Vehicle:
    """Sensor topics as amphibious_sim_node publishes them, made by hand."""

    def __init__(self, peer, qos, odometry):
        from geometry_msgs.msg import TwistStamped
        from nav_msgs.msg import Odometry
        from rfly_suite.msg import RotorCommand, WheelCommand, WheelLoads
        from sensor_msgs.msg import (
            FluidPressure,
            Imu,
            JointState,
            MagneticField,
            NavSatFix,
        )

        from rfly_common.ros.qos import COMMANDS

        self.rotors = peer.receive(RotorCommand, "cmd/rotors", COMMANDS)
        self.wheels = peer.receive(WheelCommand, "cmd/wheels", COMMANDS)
        topics = {
            "imu/data": Imu,
            odometry: Odometry,
            "joint_states": JointState,
            "wheel_loads": WheelLoads,
            "baro": FluidPressure,
            "imu/mag": MagneticField,
            "gps/fix": NavSatFix,
            "gps/vel": TwistStamped,
        }
        self.out = {topic: peer.publisher(of, topic, qos) for topic, of in topics.items()}
        self._of = topics
        self._odometry = odometry
        peer.spin_until(lambda: all(map(peer.node.count_publishers, ("cmd/rotors", "cmd/wheels"))))

    def publish(self, stamp_ns, gps=False):
        """A tick's: the IMU last, as nothing answers before it."""
        from rfly_common.ros.stamps import ns_to_stamp

        made = {topic: of() for topic, of in self._of.items()}
        for message in made.values():
            message.header.stamp = ns_to_stamp(stamp_ns)
        odometry = made[self._odometry]
        joints = made["joint_states"]
        imu = made["imu/data"]
        pose = odometry.pose.pose
        twist = odometry.twist.twist
        pose.position.x = 11.0
        pose.position.y = 12.0
        pose.position.z = 13.0
        # faces north
        pose.orientation.z = 0.5**0.5
        pose.orientation.w = 0.5**0.5
        twist.linear.x = 2.0
        joints.name = [f"wheel_{at}_joint" for at in ("fl", "fr", "rl", "rr")] + [
            "steer_fl_joint",
            "steer_fr_joint",
        ]
        joints.name += [f"strut_{at}_joint" for at in ("fl", "fr", "rl", "rr")] + [
            f"rotor_{k}_joint" for k in range(1, 7)
        ]
        joints.position = [0.0] * 4 + [0.1, 0.2] + [0.0] * 10
        joints.velocity = (
            [1.0, 2.0, 3.0, 4.0]
            + [float("nan")] * 2
            + [0.0] * 4
            + [-50.0, 51.0, -52.0, 53.0, -54.0, 55.0]
        )
        made["wheel_loads"].load = [70.0, 71.0, 72.0, 73.0]
        made["baro"].fluid_pressure = 95_000.0
        made["imu/mag"].magnetic_field.x = 2e-5
        imu.linear_acceleration.z = 9.75
        imu.angular_velocity.x = 0.25
        imu.orientation.w = 1.0
        fix = made.pop("gps/fix")
        velocity = made.pop("gps/vel")
        if gps:
            fix.status.status = 0  # a fix
            fix.latitude = 47.5
            fix.longitude = 8.25
            fix.altitude = 500.0
            fix.position_covariance = [4.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 9.0]
            velocity.twist.linear.x = 1.5
            self.out["gps/fix"].publish(fix)
            self.out["gps/vel"].publish(velocity)
        for topic in (*[topic for topic in made if topic != "imu/data"], "imu/data"):
            self.out[topic].publish(made[topic])


def frames_of(sock, kind, timeout_s=0.2):
    """The next frame of a type: its flags, time and numbers; None where none comes."""
    sock.settimeout(timeout_s)
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        try:
            data = sock.recv(2048)
        except TimeoutError:
            return None
        while data:  # by TCP several may come at once
            _, found, flags, length, _, time_s = struct.unpack_from("<4sBBHQd", data)
            if found == kind:
                return flags, time_s, struct.unpack_from(f"<{length // 8}d", data, 24)
            data = data[24 + length + 4 :]
    return None


def test_free_running_by_udp(domain_id):
    """Topics go out, frames come in and are published, and silence is reported."""
    from diagnostic_msgs.msg import DiagnosticArray
    from node_harness import NodeProcess, Peer, diagnostic

    from rfly_common.ros.qos import SENSORS, STATE_OUT

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as controller:
        controller.bind(("127.0.0.1", 0))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        parameters = {
            "port": str(port),
            "controller_port": str(controller.getsockname()[1]),
            "odometry": "filtered",
        }
        with NodeProcess("link_node", domain_id, parameters) as node:
            peer = Peer(domain_id)
            try:
                peer.spin_until(lambda: "listening for" in node.output)
                assert "attitude are the estimate, odometry/global" in node.output
                told = peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)
                vehicle = Vehicle(peer, SENSORS, "odometry/global")
                controller.sendto(frame(5, 0, 0.0, struct.pack("<I", 1)), ("127.0.0.1", port))
                peer.spin_until(
                    lambda: "supplies rotors" in (diagnostic(told, "link") or ("", ""))[1]
                )

                stamp = 0

                def told_of(kind):
                    nonlocal stamp
                    stamp += 4_000_000
                    vehicle.publish(stamp, gps=True)
                    return frames_of(controller, kind)

                flags, time_s, numbers = peer.spin_until(lambda: told_of(1))
                assert flags == 0
                assert round(time_s * 1e9) % 4_000_000 == 0
                assert numbers[:6] == (0.0, 0.0, 9.75, 0.25, 0.0, 0.0)
                assert numbers[6:10] == pytest.approx((0.5**0.5, 0.0, 0.0, 0.5**0.5))
                assert numbers[10:16] == pytest.approx((11.0, 12.0, 13.0, 0.0, 2.0, 0.0))
                assert numbers[16:22] == (1.0, 2.0, 3.0, 4.0, 0.1, 0.2)
                assert numbers[22:26] == (70.0, 71.0, 72.0, 73.0)
                assert numbers[26:32] == (50.0, 51.0, 52.0, 53.0, 54.0, 55.0)
                assert numbers[32:] == (95_000.0, 2e-5, 0.0, 0.0)
                _, _, gps = peer.spin_until(lambda: told_of(2))
                assert gps == (47.5, 8.25, 500.0, 1.5, 0.0, 0.0, 2.0, 3.0)

                speeds = struct.pack("<BB6x6d", 0, 6, *range(200, 206))
                controller.sendto(
                    frame(4, 1, time_s, bytes(72)), ("127.0.0.1", port)
                )  # not announced
                controller.sendto(frame(3, 2, time_s, speeds), ("127.0.0.1", port))
                peer.spin_until(lambda: vehicle.rotors)
                assert list(vehicle.rotors[0].value) == list(range(200, 206))
                assert vehicle.rotors[0].mode == 0
                assert vehicle.rotors[0].header.stamp.nanosec == round(time_s * 1e9)
                assert not vehicle.wheels

                def lost():
                    told_of(1)
                    _, text, values = diagnostic(told, "link") or (0, "", {})
                    return "link loss" in text and values.get("not_supplied") == "1"

                peer.spin_until(
                    lost
                )  # on a busy machine there was another loss before anything was supplied
                level, _, values = diagnostic(told, "link")
                assert level == 2
                assert float(values["age_ms"]) > 0.0

                def found_again():
                    controller.sendto(frame(3, stamp, stamp * 1e-9, speeds), ("127.0.0.1", port))
                    told_of(1)
                    return diagnostic(told, "link")[0] == 0

                peer.spin_until(found_again)
            finally:
                peer.close()
            assert node.stop() == 0, node.output


def test_lock_step_by_tcp(domain_id):
    """The vehicle's tick is answered at rest before its sensors have spoken, then by the controller
    alone.
    """
    from diagnostic_msgs.msg import DiagnosticArray
    from node_harness import NodeProcess, Peer, diagnostic
    from rfly_suite.msg import SimulationTick

    from rfly_common.ros.qos import STATE_OUT, sensor_qos
    from rfly_common.ros.stamps import ns_to_stamp

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    parameters = {
        "transport": "tcp",
        "port": str(port),
        "lock_step": "true",
    }
    with NodeProcess("link_node", domain_id, parameters) as node:
        peer = Peer(domain_id)
        try:
            peer.spin_until(lambda: "listening for" in node.output)
            assert "attitude are the truth, ground_truth/odom" in node.output
            told = peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)
            vehicle = Vehicle(peer, sensor_qos(True), "ground_truth/odom")
            ticks = peer.publisher(SimulationTick, "simulation_tick", STATE_OUT)

            def tick(stamp_ns, *indices):
                message = SimulationTick()
                message.header.stamp = ns_to_stamp(stamp_ns)
                for index in indices:
                    message.count[index] = 1
                ticks.publish(message)

            tick(0)
            peer.spin_for(0.3)
            assert not vehicle.rotors  # nobody is there who could be waited for
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as controller:
                controller.sendall(frame(5, 0, 0.0, struct.pack("<I", 3)))
                peer.spin_until(lambda: vehicle.rotors and vehicle.wheels)
                assert list(vehicle.rotors[0].value) == [0.0] * 6
                assert min(vehicle.wheels[0].brake_torque) == 15.0
                vehicle.publish(4_000_000)
                peer.spin_for(0.2)
                assert frames_of(controller, 1) is None  # the tick has not ended
                tick(
                    4_000_000,
                    *(
                        getattr(SimulationTick, n)
                        for n in ("IMU", "MAGNETOMETER", "BAROMETER", "JOINTS")
                    ),
                )
                flags, time_s, numbers = peer.spin_until(lambda: frames_of(controller, 1))
                assert (flags, round(time_s * 1e9), len(numbers)) == (1, 4_000_000, 36)
                speeds = struct.pack("<BB6x6d", 0, 6, *range(200, 206))
                controller.sendall(frame(3, 1, 0.0, speeds) + frame(3, 2, time_s, speeds))
                peer.spin_until(lambda: len(vehicle.rotors) == 2)
                assert vehicle.rotors[1].header.stamp.nanosec == 4_000_000
                peer.spin_until(
                    lambda: "has not answered for" in (diagnostic(told, "link") or ("", ""))[1]
                )
                assert diagnostic(told, "link")[0] == 2
                tick(
                    4_000_000
                    # repeat the state, and the rotors' answer, which may have been lost
                )
                assert peer.spin_until(lambda: frames_of(controller, 1))[1] == time_s
                peer.spin_until(lambda: len(vehicle.rotors) == 3)
                controller.sendall(frame(4, 1, time_s, struct.pack("<9d", 0.25, *[1.0] * 8)))
                peer.spin_until(lambda: len(vehicle.wheels) == 2)
                assert vehicle.wheels[1].steering_angle == 0.25
                peer.spin_until(lambda: diagnostic(told, "link")[0] == 0)
            peer.spin_until(lambda: "no controller" in (diagnostic(told, "link") or ("", ""))[1])
            assert len(vehicle.rotors) == 3
        finally:
            peer.close()
        assert node.stop() == 0, node.output


class Autopilot:
    """An autopilot that answers HIL_SENSOR as configured, over its own socket."""

    def __init__(self, port):
        from pymavlink.dialects.v20 import common

        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self._socket.settimeout(0.02)
        self._mav = common.MAVLink(None, 1, 1)
        self.heard = []

    def answer(self, time_usec, rotors):
        message = self._mav.hil_actuator_controls_encode(
            time_usec, [rotors] * 6 + [0.0] * 10, 128, 1
        )
        self._socket.sendall(message.pack(self._mav))

    def times(self):
        """Return the times of all HIL_SENSOR messages, µs."""
        with contextlib.suppress(TimeoutError):
            self.heard += self._mav.parse_buffer(self._socket.recv(4096)) or []
        return [message.time_usec for message in self.heard if message.get_type() == "HIL_SENSOR"]

    def close(self):
        self._socket.close()


@pytest.mark.needs("pymavlink")
@pytest.mark.parametrize("unanswered", ["wait", "resend", "go_on"])
def test_a_tick_that_an_autopilot_leaves_unanswered(domain_id, unanswered):
    """An unanswered tick does what the parameter says.

    Nothing happens, the tick is repeated, or the newest controls act although they are late.
    """
    from diagnostic_msgs.msg import DiagnosticArray
    from node_harness import NodeProcess, Peer, diagnostic
    from rfly_suite.msg import SimulationTick

    from rfly_common.ros.qos import STATE_OUT, sensor_qos
    from rfly_common.ros.stamps import ns_to_stamp

    parameters = {"port": "0", "lock_step": "true"} | (
        {} if unanswered == "go_on" else {"unanswered": unanswered}
    )
    with NodeProcess("mavlink_hil_node", domain_id, parameters) as node:
        peer = Peer(domain_id)
        autopilot = None
        try:
            peer.spin_until(lambda: "listening for" in node.output)
            assert "attitude are the truth, ground_truth/odom" in node.output
            autopilot = Autopilot(int(node.output.split("tcp 127.0.0.1:")[1].split()[0]))
            told = peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)
            vehicle = Vehicle(peer, sensor_qos(True), "ground_truth/odom")
            ticks = peer.publisher(SimulationTick, "simulation_tick", STATE_OUT)

            def tick(stamp_ns):
                vehicle.publish(stamp_ns)
                message = SimulationTick()
                message.header.stamp = ns_to_stamp(stamp_ns)
                for name in (
                    "IMU",
                    "MAGNETOMETER",
                    "BAROMETER",
                    "JOINTS",
                    "GROUND_TRUTH",
                ):
                    message.count[getattr(SimulationTick, name)] = 1
                ticks.publish(message)

            def says(text):
                return text in (diagnostic(told, "mavlink") or ("", ""))[1]

            autopilot.answer(0, 0.25)  # up from now on
            peer.spin_until(lambda: says("controls"))
            tick(4_000_000)
            peer.spin_until(lambda: autopilot.times() == [4000])
            pose = next(m for m in autopilot.heard if m.get_type() == "HIL_STATE_QUATERNION")
            assert pose.vy == 0
            assert pose.vx == 200  # the truth's 2 m/s to the north
            autopilot.answer(4000, 0.5)
            peer.spin_until(lambda: vehicle.rotors)
            assert vehicle.rotors[-1].value[0] == pytest.approx(175.0)  # half of 350 rad/s
            tick(8_000_000)
            peer.spin_until(lambda: autopilot.times() == [4000, 8000])
            if unanswered == "go_on":
                peer.spin_until(lambda: len(vehicle.rotors) == 2)
                assert vehicle.rotors[1].header.stamp.nanosec == 8_000_000
                assert vehicle.rotors[1].value[0] == pytest.approx(175.0)
                peer.spin_until(lambda: says("left ticks unanswered"))
                assert diagnostic(told, "mavlink")[2]["went_on"] == "1"
                autopilot.answer(8000, 0.75)  # late
                peer.spin_until(lambda: diagnostic(told, "mavlink")[2]["other_time"] == "2")
                tick(12_000_000)
                peer.spin_until(lambda: len(vehicle.rotors) == 3)
                assert vehicle.rotors[2].value[0] == pytest.approx(0.75 * 350.0)
                return
            peer.spin_until(lambda: says("simulated time stands"))
            if unanswered == "resend":
                peer.spin_until(lambda: autopilot.times()[2:] == [8000])
            else:
                peer.spin_for(0.3)
                assert autopilot.times() == [4000, 8000]
            assert len(vehicle.rotors) == 1
            autopilot.answer(8000, 0.75)
            peer.spin_until(lambda: len(vehicle.rotors) == 2)
        finally:
            if autopilot is not None:
                autopilot.close()
            peer.close()
        assert node.stop() == 0, node.output


@pytest.mark.parametrize(
    ("name", "parameters", "text"),
    [
        (
            "link_node",
            {"controller_host": "somewhere"},
            "controller_host: 'somewhere' is no IPv4 address",
        ),
        (
            "mavlink_hil_node",
            {"rotor_controls": "[0, 1, 2, 3, 4, 8]"},
            "control 8: two actuators cannot share it",
        ),
    ],
)
def test_what_cannot_be_is_told_in_one_line(domain_id, name, parameters, text):
    from node_harness import NodeProcess

    with NodeProcess(name, domain_id, parameters) as node:
        assert node.process.wait(PATIENCE) == 2
        node._reader.join(PATIENCE)
        assert text in node.output
        assert "Traceback" not in node.output
