# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`cmd_vel` as Twist or TwistStamped, in the axes of the vehicle's body."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from geometry_msgs.msg import Twist, TwistStamped
from rclpy.node import Node
from rclpy.subscription import Subscription

from rfly_common.errors import FrameError
from rfly_common.ros.endpoints import steady_timer, subscription
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.qos import COMMANDS

LOOK_PERIOD_S = 0.5
"""Time between two looks at the types of the topic's publishers, s."""
_TYPES = {"geometry_msgs/msg/Twist": Twist, "geometry_msgs/msg/TwistStamped": TwistStamped}
_AT_BASE = ("", "base_link", "base_footprint")
_TELEOP = "teleop"
"""Beginning of the frames that teleoperation nodes make up: teleop_twist_joy."""
_SAME_PLACE_M = 0.01
_SAME_AXES = 0.01
"""Largest vector part of a quaternion that counts as no turn."""


class VelocityCommands:
    """Subscription to velocities in body axes, of the type that is published.

    A topic of one node has one type. Nav2, teleop_twist_keyboard and Gazebo publish Twist, newer
    controllers TwistStamped: the subscription changes to the type of its publishers. If both are
    published, it keeps its own, and the diagnostics name the others (`unmatched_peers`).
    """

    def __init__(
        self,
        node: Node,
        topic: str,
        base: str,
        frames: Frames,
        *,
        stamped: bool,
        take: Callable[[Twist], None],
        refuse: Callable[[str], None],
        hear: Callable[[TwistStamped], None] = lambda _: None,
    ) -> None:
        """Subscribe; `stamped` is the type before any is published.

        `take` gets a command in the axes of the frame `base`, `refuse` why one is in others. `hear`
        gets each message with a stamp first.
        """
        self._node = node
        self._topic = topic
        self._base = base
        self._prefix = base.removesuffix("base_link")
        self._frames = frames
        self._take = take
        self._refuse = refuse
        self._hear = hear
        self._kind: type[Twist | TwistStamped] = TwistStamped if stamped else Twist
        """Type that is taken."""
        self._subscription: Subscription | None = self._subscribe()
        """Subscription; None: the one of another type has to end first."""
        steady_timer(node, LOOK_PERIOD_S, self._follow_publishers)

    def _subscribe(self) -> Subscription:
        callback = self._on_stamped if self._kind is TwistStamped else self._take
        return subscription(self._node, self._kind, self._topic, callback, COMMANDS)

    def _follow_publishers(self) -> None:
        if self._subscription is None:
            self._subscription = self._subscribe()
            self._node.get_logger().info(
                f"{self._topic} is a {self._kind.__name__}, as it is published"
            )

        infos = self._node.get_publishers_info_by_topic(self._subscription.topic_name)
        published = {_TYPES[info.topic_type] for info in infos if info.topic_type in _TYPES}
        if published and self._kind not in published:
            # rclpy's executor of events keeps it until this callback has ended, and DDS refuses
            # two types of a topic in one participant: the next look makes the other one
            self._node.destroy_subscription(self._subscription)
            self._subscription = None
            self._kind = published.pop()

    def _on_stamped(self, message: TwistStamped) -> None:
        self._hear(message)
        frame_id = message.header.frame_id
        if self._is_at_base(frame_id):
            self._take(message.twist)
        else:
            self._refuse(
                f"header.frame_id is {frame_id!r}, expected {self._base}: it is in the body's axes"
            )

    def _is_at_base(self, frame_id: str) -> bool:
        """Return whether a frame has the place and axes of the body, by its name or by /tf."""
        word = frame_id.removeprefix(self._prefix)
        if word in _AT_BASE or word.startswith(_TELEOP):
            return True

        try:
            transform = self._frames.between(self._base, frame_id)
        except FrameError:
            return False
        x, y, _ = transform.translation
        turn = np.abs(transform.quat_xyzw[:3]).max()
        return bool(math.hypot(x, y) < _SAME_PLACE_M and turn < _SAME_AXES)
