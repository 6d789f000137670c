# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Foreign robots that the bridge shows: parameters, and poses, odometry or states.

Part of ue_bridge_node.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rfly_suite.msg import VehicleState

from rfly_common.errors import ConfigError, VehicleStatesError
from rfly_common.frames import pose_enu_to_ned_euler, pose_ned_to_ned_euler
from rfly_common.ros.endpoints import subscription
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import STATE_IN
from rfly_common.ros.stamps import stamp_to_ns
from rfly_common.ros.vehicle_msgs import state_msg_to_states
from rfly_common.vehicle_states import FARTHEST, VehicleStates
from rfly_ue_bridge.codec.ned_states import body_to_frame
from rfly_ue_bridge.codec.state_datagrams import encode_pose
from rfly_ue_bridge.ros.node_parameters import RobotParameters
from rfly_ue_bridge.ros.state_topics import StateTopics

# squared norms of quaternions that are unit beyond doubt; others are measured exactly
LEAST_NORM_2 = 0.9981
GREATEST_NORM_2 = 1.0019

_MESSAGES = {"pose": PoseStamped, "odometry": Odometry, "vehicle_state": VehicleState}
_DEFAULT_TOPICS = {"pose": "pose", "odometry": "odom", "vehicle_state": "state"}


def pose_to_states(message: Any, robot: RobotParameters) -> VehicleStates:
    """Return the states of a PoseStamped, without velocity and motors, or of an Odometry.

    An Odometry's twist, which is in the body's axes (`child_frame_id`), is turned into those of the
    frame.
    """
    pose: Any = message.pose
    velocity: Any = None
    if robot.message == "odometry":
        pose = pose.pose
        q = pose.orientation
        v = message.twist.twist.linear
        velocity = body_to_frame((q.x, q.y, q.z, q.w), (v.x, v.y, v.z), message.child_frame_id)

    p = pose.position
    q = pose.orientation
    return VehicleStates(
        id=np.array([robot.id]),
        vehicle_type=np.array([robot.type]),
        position=np.array([p.x, p.y, p.z]),
        orientation=np.array([q.x, q.y, q.z, q.w]),
        velocity=velocity,
        fit_ground=np.array([robot.fit_ground]),
        frame_id=message.header.frame_id,
        stamp_ns=stamp_to_ns(message.header.stamp),
    )


def declare_robots(node: Node, names: Sequence[str]) -> dict[str, RobotParameters]:
    """Declare the parameters of each robot and return them by name.

    Raises ConfigError where an id is missing or used twice.
    """
    robots: dict[str, RobotParameters] = {}
    for name in names:
        topic = {
            "topic": lambda earlier, name=name: f"{name}/{_DEFAULT_TOPICS[earlier['message']]}"
        }
        robot = declare_parameters(node, RobotParameters, prefix=f"{name}.", defaults=topic)

        if robot.id == 0:
            raise ConfigError(
                f"parameter {name}.id: not set; expected the CopterID of the vehicle, 1 or more"
            )
        same = next((other for other in robots if robots[other].id == robot.id), None)
        if same is not None:
            raise ConfigError(f"parameter {name}.id: {robot.id} is the id of {same} already")
        robots[name] = robot
    return robots


class RobotTopics:
    """Subscriptions to each robot.

    A usual pose is sent in its callback, all else as a fleet of one.
    """

    def __init__(self, node: Node, robots: Sequence[RobotParameters], states: StateTopics) -> None:
        self._node = node
        self._states = states
        for robot in robots:
            if robot.message == "pose":
                callback = self._pose_callback(robot)
            else:
                callback = self._state_callback(robot)
            subscription(node, _MESSAGES[robot.message], robot.topic, callback, STATE_IN)

    def _pose_callback(self, robot: RobotParameters) -> Callable[[PoseStamped], None]:
        """Return the fast path for a pose in a world frame that may leave at once.

        It works with plain floats, sends one datagram, and does its bookkeeping afterwards. An
        unusual pose is left to the state callback, which gives the reasons. Between two poses the
        processor's caches forget this code, so each function called before `send` costs
        microseconds.
        """
        topic = robot.topic
        vehicle_id = robot.id
        vehicle_type = robot.type
        states = self._states
        clock = self._node.get_clock()
        steady_ns = time.monotonic_ns
        far = FARTHEST
        stamps = states.stamps
        outbox = states.outbox
        send = states.sender.send

        # frames whose poses convert directly
        conversions = dict.fromkeys(states.frames.enu_frames, pose_enu_to_ned_euler)
        conversions |= dict.fromkeys(states.frames.ned_frames, pose_ned_to_ned_euler)
        conversions[""] = conversions[states.own_frame]

        as_states = self._state_callback(robot)

        def on_pose(message: PoseStamped) -> None:
            header = message.header
            pose = message.pose
            stamp = header.stamp
            p = pose.position
            q = pose.orientation

            x = p.x
            y = p.y
            z = p.z
            qx = q.x
            qy = q.y
            qz = q.z
            qw = q.w

            # unusual poses, by the slow path
            to_ned = conversions.get(header.frame_id)
            if (
                to_ned is None
                or not outbox.idle
                or not LEAST_NORM_2 < qx * qx + qy * qy + qz * qz + qw * qw < GREATEST_NORM_2
                # false for NaN
                or not (-far <= x <= far and -far <= y <= far and -far <= z <= far)
            ):
                as_states(message)
                return

            # stamps that may be too old
            stamp_ns = stamp.sec * 1_000_000_000 + stamp.nanosec
            certain = stamps.is_newer(topic, stamp_ns)
            if not certain:
                reason = stamps.rejection_reason(
                    topic, stamp_ns, clock.now().nanoseconds, steady_ns()
                )
                if reason is not None:
                    states.heard_ns = steady_ns()
                    states.drop(reason, 1, topic, subject=topic)
                    return

            send(encode_pose(vehicle_id, vehicle_type, *to_ned(x, y, z, qx, qy, qz, qw)))
            states.heard_ns = steady_ns()
            if certain:
                stamps.rejection_reason(topic, stamp_ns, clock.now().nanoseconds, states.heard_ns)

        return as_states if robot.fit_ground else on_pose

    def _state_callback(self, robot: RobotParameters) -> Callable[[Any], None]:
        """Return the callback for everything else, which sends a fleet of one."""

        def on_message(message: Any) -> None:
            self._states.heard_ns = time.monotonic_ns()
            is_state = robot.message == "vehicle_state"
            if is_state and message.id != robot.id:
                what = f"{robot.topic}: id {message.id}, expected {robot.id}"
                self._states.drop("wrong_id", 1, what, subject=robot.topic)
                return

            try:
                states = (
                    state_msg_to_states(message) if is_state else pose_to_states(message, robot)
                )
            except VehicleStatesError as error:
                what = f"{robot.topic}: {error}"
                self._states.drop("inconsistent", 1, what, subject=robot.topic)
                return

            if self._states.in_time(states, robot.topic):
                self._states.send(states, robot.topic, in_fleet=False)

        return on_message
