# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Topics of an estimate: `odometry/filtered`, `odometry/global`, and the vehicle's place on /tf.

They are part of state_estimator_node.
"""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.publisher import Publisher
from tf2_msgs.msg import TFMessage

from rfly_amphibious.description.footprint import footprint
from rfly_amphibious.sensors.sample_messages import frame_of
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.estimation.odometry_frame import OdometryFrame
from rfly_autonomy.ros.estimate_msgs import estimate_to_odometry, unknown_odometry
from rfly_common.arrays import Floats
from rfly_common.ros.endpoints import publisher
from rfly_common.ros.frame_lookup import transform_to_msg
from rfly_common.ros.qos import STATE_OUT, TF
from rfly_common.ros.stamps import ns_to_stamp
from rfly_common.transform_buffer import WORLD, Transform
from rfly_terrain.height_map.height_map import HeightMap

TF_RATE = 50
"""Rate of /tf, Hz."""


class EstimateTopics:
    """Publishers of one vehicle's estimates.

    The estimate is published in `map` and, if subscribed, in the vehicle's `odom`, where it never
    jumps. With `tf` its transforms are published too. The last messages are kept for repetition.
    """

    def __init__(self, node: Node, vehicle: str, *, tf: bool) -> None:
        self._vehicle = vehicle
        self._answer: list[tuple[Publisher, Odometry]] = []
        self._transformed_ns = -1
        self._odom = frame_of(vehicle, "odom")
        self._filtered = publisher(node, Odometry, "odometry/filtered", STATE_OUT)
        self._global = publisher(node, Odometry, "odometry/global", STATE_OUT)
        self._tf = publisher(node, TFMessage, "/tf", TF) if tf else None
        self._odometry_frame = OdometryFrame()

    def reset(self) -> None:
        """Forget the past, as the time went back."""
        self._transformed_ns = -1
        self._odometry_frame.reset()

    def publish(
        self,
        estimate: Estimate | None,
        stamp_ns: int,
        terrain: HeightMap | None,
        rates: Floats,
    ) -> None:
        """Publish an estimate, None if nothing is known yet; `terrain` is for base_footprint.

        `rates` (3, 3): covariance of the estimate's rates, body axes, (rad/s)². The one in `map`
        comes first: in lock-step the controllers, and so the simulation, wait for it.
        """
        self._answer = []
        self._publish(self._global, estimate, stamp_ns, WORLD, rates)

        if estimate is not None:
            self._odometry_frame.update(estimate)
        if self._filtered.get_subscription_count():
            self._publish(
                self._filtered,
                None if estimate is None else self._odometry_frame.local(),
                stamp_ns,
                self._odom,
                rates,
            )

        # transforms
        due = stamp_ns - self._transformed_ns >= 1e9 / TF_RATE - 1000
        if self._tf is not None and estimate is not None and due:
            self._transformed_ns = stamp_ns
            place, odom = self._odometry_frame.transforms()
            ground = Transform(
                *map(np.array, footprint(estimate.position, estimate.orientation, terrain))
            )
            below = odom.inverse() @ ground
            transforms = [
                (WORLD, "odom", odom),
                ("odom", "base_link", place),
                ("odom", "base_footprint", below),
            ]
            self._tf.publish(
                TFMessage(transforms=[self._transform(stamp_ns, *frames) for frames in transforms])
            )

    def publish_again(self) -> None:
        """Publish the last messages again."""
        for output, message in self._answer:
            output.publish(message)

    def _publish(
        self,
        output: Publisher,
        estimate: Estimate | None,
        stamp_ns: int,
        frame: str,
        rates: Floats,
    ) -> None:
        vehicle = self._vehicle
        message = (
            unknown_odometry(vehicle, frame)
            if estimate is None
            else estimate_to_odometry(estimate, vehicle, frame, rates=rates)
        )

        message.header.stamp = ns_to_stamp(stamp_ns)
        output.publish(message)
        self._answer.append((output, message))

    def _transform(
        self, stamp_ns: int, parent: str, child: str, pose: Transform
    ) -> TransformStamped:
        parent = parent if parent == WORLD else frame_of(self._vehicle, parent)
        return transform_to_msg(
            parent, frame_of(self._vehicle, child), pose.translation, pose.quat_xyzw, stamp_ns
        )
