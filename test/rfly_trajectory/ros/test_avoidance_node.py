# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The avoidance_node as a process, with robots on two wheels that the test simulates.

The test writes /clock, and goes on when the commands of an instant have come: nothing depends on
the machine's speed.
"""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from node_harness import NodeProcess, diagnostic
from unicycles import Unicycles, wish_to

pytestmark = pytest.mark.ros

STEP_NS = 50_000_000
RADIUS = 0.35
USUAL = {
    "use_sim_time": "true",
    "robot_defaults.acceleration": "2.0",
    "robot_defaults.braking": "2.0",
    "robot_defaults.max_speed": "2.0",
    "robot_defaults.latency": "0.05",
}


class Robots:
    """Unicycles with topics as a Nav2 user has them, in step with the node."""

    def __init__(self, peer, names, poses, *, message="odometry"):
        from geometry_msgs.msg import PoseStamped, TwistStamped
        from nav_msgs.msg import Odometry
        from rosgraph_msgs.msg import Clock

        from rfly_common.ros.qos import CLOCK, COMMANDS, STATE_OUT

        self.peer = peer
        self.names = names
        self.plant = Unicycles(poses, gain=2.0, brake=2.0)
        self.message = message
        self.now = 10 * 10**9
        self._clock = peer.publisher(Clock, "/clock", CLOCK)
        kind = Odometry if message == "odometry" else PoseStamped
        topic = "odom" if message == "odometry" else "pose"
        self._poses = [peer.publisher(kind, f"{name}/{topic}", STATE_OUT) for name in names]
        self._wishes = [
            peer.publisher(TwistStamped, f"{name}/cmd_vel_wish", COMMANDS) for name in names
        ]
        self._safe = [peer.receive(TwistStamped, f"{name}/cmd_vel", COMMANDS) for name in names]

    def pose_message(self, row):
        from geometry_msgs.msg import PoseStamped
        from nav_msgs.msg import Odometry

        from rfly_common.ros.stamps import ns_to_stamp

        x, y, yaw = self.plant.pose[row].tolist()
        message = Odometry() if self.message == "odometry" else PoseStamped()
        message.header.frame_id = "map"
        message.header.stamp = ns_to_stamp(self.now)
        pose = message.pose.pose if self.message == "odometry" else message.pose
        pose.position.x, pose.position.y = x, y
        pose.orientation.z, pose.orientation.w = math.sin(0.5 * yaw), math.cos(0.5 * yaw)
        if self.message == "odometry":
            message.child_frame_id = f"{self.names[row]}/base_link"
            message.twist.twist.linear.x = float(self.plant.speed[row])
            message.twist.twist.angular.z = float(self.plant.yaw_rate[row])
        return message

    def step(self, goals, *, hears=None, wishes=True, extra=lambda: None):
        """Let one period pass: poses and wishes out, the clock on, and commands carried out."""
        from geometry_msgs.msg import TwistStamped
        from rosgraph_msgs.msg import Clock

        from rfly_common.ros.stamps import ns_to_stamp, stamp_to_ns

        for row in range(len(self.names)):
            if hears is None or hears[row]:
                self._poses[row].publish(self.pose_message(row))
            if wishes:
                wish = TwistStamped()
                wish.header.frame_id = "base_link"
                speed, rate = wish_to(self.plant.pose[row], goals[row], 1.5)
                wish.twist.linear.x, wish.twist.angular.z = float(speed), float(rate)
                self._wishes[row].publish(wish)
        extra()
        self.now += STEP_NS
        told_at = 0.0

        def all_have_commands():
            nonlocal told_at
            if time.monotonic() > told_at + 0.5:  # nodes read /clock by best effort
                told_at = time.monotonic()
                self._clock.publish(Clock(clock=ns_to_stamp(self.now)))
            return all(
                received and stamp_to_ns(received[-1].header.stamp) >= self.now
                for received in self._safe
            )

        self.peer.spin_until(all_have_commands)
        commands = [received[-1].twist for received in self._safe]
        for received in self._safe:
            received.clear()
        speeds = [twist.linear.x for twist in commands]
        rates = [twist.angular.z for twist in commands]
        self.plant.drive(speeds, rates, 1e-9 * STEP_NS)
        return speeds


@pytest.fixture
def hears_much():
    return True


def told(peer, messages, text):
    """Wait until the diagnostics say this, and return (level, message, values)."""

    def said():
        status = diagnostic(messages, "avoidance")
        return status if status and text in f"{status[1]} {status[2]}" else None

    return peer.spin_until(said)


def test_robots_that_would_meet_pass_though_a_fifth_of_their_poses_is_lost(peer, domain_id):
    goals = [(8.0, 0.0), (0.0, 0.1)]
    heard = np.random.default_rng(3).random((400, 2)) >= 0.2
    parameters = {**USUAL, "robots": "[a, b]"}
    with NodeProcess("avoidance_node", domain_id, parameters):
        robots = Robots(peer, ["a", "b"], [(0.0, 0.0, 0.0), (8.0, 0.1, math.pi)])
        for tick in range(300):
            robots.step(goals, hears=heard[tick])
    assert robots.plant.least > 2.0 * RADIUS
    assert np.hypot(*(robots.plant.pose[:, :2] - goals).T).max() < 0.6


def test_a_vehicle_that_does_not_give_way_is_avoided_and_a_lost_pose_stops(peer, domain_id):
    """The vehicle of vehicle_states crosses with 1 m/s; later the robot's poses end."""
    from diagnostic_msgs.msg import DiagnosticArray
    from rfly_suite.msg import VehicleStateArray

    from rfly_common.ros.qos import FLEET_OUT, STATE_OUT
    from rfly_common.ros.vehicle_msgs import states_to_msg
    from rfly_common.vehicle_states import VehicleStates

    parameters = {
        **USUAL,
        "robots": "[a]",
        "a.message": "pose",
        "others_acceleration": "0.2",
        "others_speed": "0.5",
    }
    with NodeProcess("avoidance_node", domain_id, parameters):
        status = peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)
        robots = Robots(peer, ["a"], [(0.0, 0.0, 0.0)], message="pose")
        states = peer.publisher(VehicleStateArray, "vehicle_states", FLEET_OUT)
        place = np.array([[8.0, -8.0, 0.0]])

        def cross():
            place[0, 1] += 1e-9 * STEP_NS
            robots.plant.note(place[0, :2])
            message = VehicleStates(
                id=np.array([7]),
                vehicle_type=np.array([30]),
                position=place,
                orientation=np.array([[0.0, 0.0, 0.0, 1.0]]),
                velocity=np.array([[0.0, 1.0, 0.0]]),
                source="/walker",
                stamp_ns=robots.now,
            )
            states.publish(states_to_msg(message))

        for _ in range(320):
            robots.step([(18.0, 0.0)], extra=cross)
        walker = 0.3
        assert robots.plant.least > RADIUS + walker
        assert robots.plant.pose[0, 0] > 8.0

        # its poses end
        robots.plant.pose[0] = (0.0, 0.0, 0.0)
        robots.plant.speed[0] = 0.0
        for _ in range(20):
            robots.step([(90.0, 0.0)])
        assert robots.plant.speed[0] > 0.5
        for _ in range(30):
            robots.step([(90.0, 0.0)], hears=[False])
        assert robots.plant.speed[0] == pytest.approx(0.0, abs=1e-3)
        level, _, values = told(peer, status, "stopped, as its pose is old: a (1.")
        assert level == 1
        assert "7" in values["old_others"]


def test_vehicles_of_the_future_grow_old_and_no_other_source_removes_them(peer):
    """A stamp is 100 s ahead: 5 s after its arrival the state is at least 5 s old."""
    from rfly_suite.msg import VehicleStateArray

    from rfly_common.ros.diagnostics import Diagnostics
    from rfly_common.ros.frame_lookup import Frames
    from rfly_common.ros.qos import FLEET_OUT
    from rfly_common.ros.vehicle_msgs import states_to_msg
    from rfly_common.state_sources import StampFilter
    from rfly_common.vehicle_states import VehicleStates
    from rfly_trajectory.ros.guarded_robot_topics import SeenVehicles
    from rfly_trajectory.ros.node_parameters import AvoidanceParameters

    node = peer.node
    parts = (Frames(node), StampFilter(), Diagnostics(node, "avoidance", ""))
    seen = SeenVehicles(node, AvoidanceParameters(), [8], *parts)
    states = peer.publisher(VehicleStateArray, "vehicle_states", FLEET_OUT)
    removed = peer.publisher(VehicleStateArray, "removed_vehicles", FLEET_OUT)

    def message(ids, source):
        n = len(ids)
        return states_to_msg(
            VehicleStates(
                id=np.array(ids),
                vehicle_type=np.full(n, 30),
                position=np.zeros((n, 3)),
                orientation=np.tile([0.0, 0.0, 0.0, 1.0], (n, 1)),
                source=source,
                stamp_ns=node.get_clock().now().nanoseconds + 100 * 10**9,
            )
        )

    states.publish(message([7, 8, 9], "/walkers"))
    peer.spin_until(lambda: len(seen) == 2)
    now_ns = node.get_clock().now().nanoseconds
    age = seen.vehicles(now_ns + 5 * 10**9, lambda x, y: 0.0 * x).age
    assert ((age >= 5.0) & (age < 100.0)).all()

    removed.publish(message([7, 9], "/somebody_else"))
    removed.publish(message([9], "/walkers"))
    peer.spin_until(lambda: len(seen) < 2)
    assert seen.silent(now_ns + 9 * 10**9, 1.0).tolist() == [7]


def test_nobody_moves_before_all_are_known_and_a_lost_wish_stops(peer, domain_id):
    from diagnostic_msgs.msg import DiagnosticArray

    from rfly_common.ros.qos import STATE_OUT

    parameters = {**USUAL, "robots": "[a, b]", "others": "[c]", "c.message": "tf"}
    goals = [(90.0, 0.0), (90.0, 5.0)]
    with NodeProcess("avoidance_node", domain_id, parameters):
        status = peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)
        robots = Robots(peer, ["a", "b"], [(0.0, 0.0, 0.0), (0.0, 5.0, 0.0)])
        for _ in range(10):
            assert robots.step(goals, hears=[True, False]) == [0.0, 0.0]
        told(peer, status, "no pose yet of b, c; robots stand until it comes")

        # c comes by its transform, near the way of neither
        from tf2_msgs.msg import TFMessage

        from rfly_common.ros.frame_lookup import transform_to_msg
        from rfly_common.ros.qos import TF

        transforms = peer.publisher(TFMessage, "/tf", TF)

        def show():
            frame = transform_to_msg(
                "map", "c/base_link", (-60.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), robots.now
            )
            transforms.publish(TFMessage(transforms=[frame]))

        speeds = [robots.step(goals, extra=show) for _ in range(40)]
        gained = np.diff(speeds, axis=0)
        assert gained.max() == pytest.approx(0.1), "robot_defaults.acceleration, 2 m/s², in a step"
        assert min(speeds[-1]) == pytest.approx(1.5)
        for _ in range(40):
            speeds = robots.step(goals, wishes=False, extra=show)
        assert speeds == [0.0, 0.0]
        told(peer, status, "'no_wish': 'a, b'")


def test_wrong_parameters_end_the_node(domain_id):
    for parameters, text in (
        ({"robots": "['9a']"}, "'9a' is no name of a vehicle"),
        ({"robots": "[a]", "others": "[a]"}, "'a' is named twice"),
        ({"robots": "[a]", "a.cmd_vel_topic": "a/cmd_vel_wish"}, "both are 'a/cmd_vel_wish'"),
        ({"robots": "[a]", "a.cmd_vel_topic": "/a/cmd_vel_wish"}, "both are '/a/cmd_vel_wish'"),
        ({"robots": "[a, b]", "b.cmd_vel_topic": "a/cmd_vel"}, "a.cmd_vel_topic, b.cmd_vel_topic"),
        ({"robots": "[a, b]", "b.cmd_vel_topic": "a/cmd_vel_wish"}, "parameters a.wish_topic, b."),
        ({"robots": "[a, b]", "b.topic": "/a/odom"}, "a.topic, b.topic: both are '/a/odom'"),
        (
            {
                "robots": "[a]",
                "others": "[c]",
                "a.message": "tf",
                "c.message": "tf",
                "c.base_frame": "a/base_link",
            },
            "a.base_frame, c.base_frame: both are 'a/base_link'",
        ),
        ({"robots": "[robot_defaults]"}, "'robot_defaults' is not free"),
        ({"robots": "[a]", "a.min_speed": "1.0"}, "a.min_speed: 1, expected 0 for what can stop"),
        ({"robots": "[a]", "a.kind": "fixed_wing"}, "expected more than 0 for a fixed wing"),
    ):
        with NodeProcess("avoidance_node", domain_id, parameters) as node:
            assert node.process.wait(120) == 2
            node._reader.join(120)
            assert text in node.output
