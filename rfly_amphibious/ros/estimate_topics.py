"""Topics of an estimate: `odometry/filtered`, `odometry/global`, and where the vehicle is on /tf.

Part of state_estimator_node.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from tf2_msgs.msg import TFMessage

from rfly_amphibious.estimation.estimate import Estimate
from rfly_amphibious.estimation.odometry_frame import OdometryFrame, footprint
from rfly_amphibious.ros.amphibious_msgs import WORLD, estimate_to_odometry, frame_of, unknown_odometry
from rfly_common.ros.endpoints import publisher
from rfly_common.ros.frame_lookup import transform_to_msg
from rfly_common.ros.qos import STATE_OUT, TF
from rfly_common.ros.stamps import ns_to_stamp
from rfly_common.transform_buffer import Transform
from rfly_terrain.height_map.height_map import HeightMap

TF_RATE = 50
"""Hz"""


class EstimateTopics:
    """Publishes estimates of one vehicle, in `map` and in its `odom`, where it never jumps, and with `tf` its
    transforms; keeps the last messages to repeat them.
    """

    def __init__(self, node: Node, vehicle: str, *, tf: bool) -> None:
        self._vehicle = vehicle
        self._answer: tuple[Odometry, ...] = ()
        self.answer_ns = -1
        """stamp of the last message, -1 before"""
        self._transformed_ns = -1
        self._odom = frame_of(vehicle, "odom")
        self._outputs = (
            publisher(node, Odometry, "odometry/filtered", STATE_OUT),
            publisher(node, Odometry, "odometry/global", STATE_OUT),
        )
        self._tf = publisher(node, TFMessage, "/tf", TF) if tf else None
        self._way = OdometryFrame()

    def reset(self) -> None:
        """The time went back."""
        self._transformed_ns = -1
        self._way.reset()

    def publish(self, estimate: Estimate | None, stamp_ns: int, terrain: HeightMap | None) -> None:
        """An estimate, None where nothing is known yet; `terrain` for base_footprint."""
        if estimate is None:
            self._answer = tuple(unknown_odometry(self._vehicle, frame) for frame in (self._odom, WORLD))
        else:
            place, odom = self._way.update(estimate)
            local = estimate_to_odometry(self._way.local(estimate), self._vehicle, self._odom)
            self._answer = local, estimate_to_odometry(estimate, self._vehicle)
        for message in self._answer:
            message.header.stamp = ns_to_stamp(stamp_ns)
        self.answer_ns = stamp_ns
        self._publish_answer()
        due = stamp_ns - self._transformed_ns >= 1e9 / TF_RATE - 1000
        if self._tf is not None and estimate is not None and due:
            self._transformed_ns = stamp_ns
            below = odom.inverse() @ _as_transform(footprint(estimate.position, estimate.orientation, terrain))
            moved = [(WORLD, "odom", odom), ("odom", "base_link", place), ("odom", "base_footprint", below)]
            self._tf.publish(TFMessage(transforms=[self._transform(stamp_ns, *frames) for frames in moved]))

    def publish_again(self, stamp_ns: int) -> bool:
        """The last message once more where it is of this time; whether it was."""
        if not self._answer or stamp_ns != self.answer_ns:
            return False
        self._publish_answer()
        return True

    def _publish_answer(self) -> None:
        for output, message in zip(self._outputs, self._answer, strict=True):
            output.publish(message)

    def _transform(self, stamp_ns: int, parent: str, child: str, pose: Transform) -> TransformStamped:
        parent = parent if parent == WORLD else frame_of(self._vehicle, parent)
        return transform_to_msg(parent, frame_of(self._vehicle, child), pose.translation, pose.quat_xyzw, stamp_ns)


def _as_transform(pose: tuple[Sequence[float], Sequence[float]]) -> Transform:
    position, quat_xyzw = pose
    return Transform(np.array(position), np.array(quat_xyzw))
