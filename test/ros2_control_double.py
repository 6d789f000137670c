# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Double of ros2_control: JointStateTopicSystem's messages, and the kinematics of its controllers.

The rules of the messages are those of joint_state_topic_hardware_interface 1.1.
"""

import math
from typing import NamedTuple
from xml.etree import ElementTree as ET

NAN = math.nan


class Message(NamedTuple):
    """Fields of a JointState."""

    name: list
    position: list
    velocity: list


class JointStateTopicSystem:
    """Hardware interface that is made from the tag <ros2_control> of a URDF.

    `commands`, by interfaces such as "wheel_rl_joint/velocity", are NaN until a controller sets
    them.
    """

    def __init__(self, urdf):
        tag = ET.fromstring(urdf).find("ros2_control")
        self.plugin = tag.findtext("hardware/plugin")
        self.params = {each.get("name"): each.text for each in tag.findall("hardware/param")}
        self.joints = {}
        self.states = {}
        for joint in tag.findall("joint"):
            name = joint.get("name")
            self.joints[name] = [each.get("name") for each in joint.findall("command_interface")]
            for state in joint.findall("state_interface"):
                self.states[f"{name}/{state.get('name')}"] = NAN
        self.commands = {
            f"{name}/{each}": NAN for name, interfaces in self.joints.items() for each in interfaces
        }

    def read(self, names, position, velocity):
        """Take the states of a message; a joint without the state interface is an error."""
        for i, name in enumerate(names):
            for kind, values in (("position", position), ("velocity", velocity)):
                if name in self.joints and math.isfinite(values[i]):
                    assert f"{name}/{kind}" in self.states
                    self.states[f"{name}/{kind}"] = values[i]

    def write(self, threshold=None):
        """Return the message of one cycle, None while all commands equal their states."""
        if threshold is None:
            threshold = float(self.params.get("trigger_joint_command_threshold", 1e-5))
        apart = sum(abs(self.states[each] - command) for each, command in self.commands.items())
        if apart <= threshold:
            return None

        message = Message([], [], [])
        for name, interfaces in self.joints.items():
            message.name.append(name)
            for each in interfaces:
                getattr(message, each).append(self.commands[f"{name}/{each}"])
        return message


def ackermann(speed, yaw_rate, wheelbase, track, radius):
    """Return commands of rear wheels and front steering for a speed, m/s, and a yaw rate, rad/s.

    Each wheel rolls on its own circle about the centre of the turn, on the rear axle's line.
    """
    turn = speed / yaw_rate
    return {
        "wheel_rl_joint/velocity": yaw_rate * (turn - track / 2.0) / radius,
        "wheel_rr_joint/velocity": yaw_rate * (turn + track / 2.0) / radius,
        "steer_fl_joint/position": math.atan(wheelbase / (turn - track / 2.0)),
        "steer_fr_joint/position": math.atan(wheelbase / (turn + track / 2.0)),
    }
