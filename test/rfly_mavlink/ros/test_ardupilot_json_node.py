# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""ardupilot_json_node with a stand-in for ArduPilot, through a real socket and real DDS."""

from __future__ import annotations

import itertools
import socket
import statistics

import pytest
from ardupilot_double import ArdupilotDouble, HoverLaw

pytestmark = pytest.mark.ros


def port_of(node, peer):
    peer.spin_until(lambda: "listening for ArduPilot" in node.output)
    return int(node.output.split("udp 127.0.0.1:")[1].split()[0])


def test_each_tick_is_answered_by_the_frame_after_its_state(domain_id):
    """Sensor topics made by hand: rest before the first one, then a frame for each state.

    Frames may be lost, doubled, late, and restarted.
    """
    from diagnostic_msgs.msg import DiagnosticArray
    from geometry_msgs.msg import Vector3Stamped
    from nav_msgs.msg import Odometry
    from node_harness import NodeProcess, Peer, diagnostic
    from rfly_suite.msg import RotorCommand, SimulationTick, WheelCommand
    from sensor_msgs.msg import Imu, Range

    from rfly_common.ros.qos import COMMANDS, STATE_OUT, sensor_qos
    from rfly_common.ros.stamps import ns_to_stamp

    with NodeProcess("ardupilot_json_node", domain_id, {"port": "0", "lock_step": "true"}) as node:
        peer = Peer(domain_id)
        ardupilot = None
        try:
            ardupilot = ArdupilotDouble(port_of(node, peer), lambda _: [])
            told = peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)
            rotors = peer.receive(RotorCommand, "cmd/rotors", COMMANDS)
            wheels = peer.receive(WheelCommand, "cmd/wheels", COMMANDS)
            qos = sensor_qos(True)
            topics = {"imu/data": Imu, "ground_truth/odom": Odometry}
            topics |= {"height_above_ground": Range, "environment/wind": Vector3Stamped}
            indices = dict(
                zip(topics, (SimulationTick.IMU, SimulationTick.GROUND_TRUTH), strict=False)
            )
            indices |= {
                "height_above_ground": SimulationTick.HEIGHT,
                "environment/wind": SimulationTick.WIND,
            }
            out = {topic: peer.publisher(of, topic, qos) for topic, of in topics.items()}
            ticks = peer.publisher(SimulationTick, "simulation_tick", STATE_OUT)
            peer.spin_until(
                lambda: all(map(peer.node.count_publishers, ("cmd/rotors", "cmd/wheels")))
            )

            def tick(stamp_ns, sensed=True):
                message = SimulationTick()
                message.header.stamp = ns_to_stamp(stamp_ns)
                made = {topic: of() for topic, of in topics.items()}
                for each in made.values():
                    each.header.stamp = ns_to_stamp(stamp_ns)
                imu = made["imu/data"]
                truth = made["ground_truth/odom"]
                imu.linear_acceleration.x = 0.5
                imu.linear_acceleration.z = 9.75
                imu.angular_velocity.y = 0.25
                imu.orientation.w = 1.0
                truth.pose.pose.position.x = 11.0
                truth.pose.pose.position.y = 12.0
                truth.pose.pose.position.z = 13.0
                truth.pose.pose.orientation.z = truth.pose.pose.orientation.w = (
                    0.5**0.5
                )  # faces north
                truth.twist.twist.linear.x = 2.0
                made["height_above_ground"].range = 12.5
                made["environment/wind"].vector.y = -3.0
                for topic in made if sensed else ():
                    message.count[indices[topic]] = 1
                    out[topic].publish(made[topic])
                ticks.publish(message)

            def frame(count, *pulses, size=16):
                ardupilot.send(ardupilot.datagram(count, [*pulses, *[0] * (size - len(pulses))]))

            def answer():
                return peer.spin_until(lambda: ardupilot.receive(0.02))

            tick(0, sensed=False)
            frame(10, 1500)
            peer.spin_until(
                lambda: rotors and wheels
            )  # nothing is sensed yet: rest, whatever the pulses are
            assert list(rotors[0].value) == [0.0] * 4
            assert min(wheels[0].brake_torque) == 15.0
            tick(4_000_000)
            state = answer()
            assert state["timestamp"] == 0.004
            assert state["imu"] == {"gyro": [0.0, -0.25, 0.0], "accel_body": [0.5, 0.0, -9.75]}
            assert state["position"] == [12.0, 11.0, -13.0]
            assert [abs(q) for q in state["quaternion"]] == pytest.approx([1.0, 0.0, 0.0, 0.0])
            assert state["velocity"] == pytest.approx([2.0, 0.0, 0.0])
            assert state["velocity_wind"] == [-3.0, 0.0, 0.0]
            assert state["airspeed"] == pytest.approx(5.0)
            assert state["rng_1"] == 12.5
            assert len(rotors) == 1
            frame(11, 1500, 2000, 900, 1250)
            peer.spin_until(lambda: len(rotors) == len(wheels) == 2)
            assert list(rotors[1].value) == [175.0, 350.0, 0.0, 87.5]
            assert rotors[1].header.stamp.nanosec == 4_000_000
            assert min(wheels[1].brake_torque) == 15.0  # no output for the wheels
            frame(11, 1999)  # doubled
            frame(10, 1999)  # late, of before
            for garbage in (
                b"",
                b"\x1a",
                bytes(40),
                ardupilot.datagram(9, [1999] * 16)[:-1],
                bytes(1400),
            ):
                ardupilot.send(garbage)
            assert ardupilot.receive(0.2) is None
            tick(8_000_000)
            assert answer()["timestamp"] == 0.008
            frame(12, *[1000] * 8, 1750, 2000, 1000, size=32)
            peer.spin_until(lambda: len(wheels) == 3)
            assert wheels[2].steering_angle == pytest.approx(0.25)
            assert list(wheels[2].drive_torque) == [12.0] * 4
            assert max(wheels[2].brake_torque) == 0.0
            tick(12_000_000)
            assert answer()["timestamp"] == 0.012  # let it be lost: ArduPilot asks again
            peer.spin_for(0.6)
            frame(12, 1999, size=32)
            assert answer()["timestamp"] == 0.012
            peer.spin_until(
                lambda: told and "simulated time stands" in diagnostic(told, "ardupilot")[1]
            )
            frame(
                0, 1000
            )  # ArduPilot was started anew: what it asks for rests, and it goes on from there
            peer.spin_until(lambda: len(rotors) == 4)
            assert max(rotors[3].value) == 0.0
            tick(16_000_000)
            assert answer()["timestamp"] == 0.016
            tick(16_000_000, sensed=False)  # told again, and nobody has answered yet
            assert ardupilot.receive(0.2) is None
            frame(1, 1500)
            peer.spin_until(lambda: len(rotors) == 5)
            tick(16_000_000, sensed=False)
            peer.spin_until(lambda: len(rotors) == 6)  # the command was lost on its way
            counted = {
                "starts": "2",
                "late": "1",
                "doubled": "2",
                "replies_sent_again": "1",
                "no_frame": "5",
            }
            counted |= {"frames": "5", "frame_rate": "250"}
            peer.spin_until(lambda: diagnostic(told, "ardupilot")[2].items() >= counted.items())
            assert diagnostic(told, "ardupilot")[0] == 0

            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as rival:
                frame(2, 1500)
                rival.sendto(ardupilot.datagram(0, [1999] * 16), ardupilot._to)
                peer.spin_until(lambda: "sends servo outputs too and is ignored" in node.output)
                peer.spin_until(
                    lambda: "sends here too and is ignored" in diagnostic(told, "ardupilot")[1]
                )
                assert diagnostic(told, "ardupilot")[0] == 1
        finally:
            if ardupilot is not None:
                ardupilot.close()
            peer.close()
        assert node.stop() == 0, node.output


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_hover_through_noise_and_bad_datagrams(domain_id):
    """The stand-in climbs to 5 m and stays there, in lock-step with the simulation; then it is
    started once more.
    """
    from node_harness import NodeProcess, Peer

    simulation = {
        "vehicle": "scale_quad",
        "ground": "level",
        "lock_step": "true",
        "real_time_factor": "0.0",
    }
    with (
        NodeProcess("amphibious_sim_node", domain_id, simulation) as simulator,
        NodeProcess("ardupilot_json_node", domain_id, {"port": "0", "lock_step": "true"}) as node,
    ):
        peer = Peer(domain_id)
        ardupilot = None
        try:
            ardupilot = ArdupilotDouble(port_of(node, peer), HoverLaw((0.0, 0.0, -5.0)), seed=4)
            peer.spin_until(lambda: "stands on" in simulator.output)
            times = []
            places = []
            for number in range(2400):
                state = ardupilot.step(
                    twice=number % 50 == 7,
                    late=number % 50 == 17,
                    garbage=number % 50 == 27,
                    lose_frame=number == 1111,
                    lose_reply=number == 1777,
                )
                times.append(state["timestamp"])
                places.append(state["position"])
                if number == 100:
                    ardupilot.restart()
            assert ardupilot.sent_again >= 2  # more on a busy machine
            steps = {round(1e3 * (after - before)) for before, after in itertools.pairwise(times)}
            assert steps == {4}  # nothing of all this has cost or doubled a tick
            hover = places[-600:]
            for axis, goal in enumerate((0.0, 0.0, -5.0)):
                along = [place[axis] for place in hover]
                assert statistics.fmean(along) == pytest.approx(goal, abs=0.2)
                assert statistics.pstdev(along) < 0.2
        finally:
            if ardupilot is not None:
                ardupilot.close()
            peer.close()
        assert (simulator.stop(), node.stop()) == (0, 0), simulator.output + node.output
