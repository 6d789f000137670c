"""Topics of an estimate: `odometry/filtered`, and where the vehicle is on /tf. Part of state_estimator_node."""

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
    """Publishes estimates of one vehicle, and with `tf` its transforms; keeps the last message to repeat it."""

    def __init__(self, node: Node, vehicle: str, *, tf: bool) -> None:
        self._vehicle = vehicle
        self._answer: Odometry | None = None
        self.answer_ns = -1
        """stamp of the last message, -1 before"""
        self._transformed_ns = -1
        self._odometry = publisher(node, Odometry, "odometry/filtered", STATE_OUT)
        self._tf = publisher(node, TFMessage, "/tf", TF) if tf else None
        self._way = OdometryFrame()

    def reset(self) -> None:
        """The time went back."""
        self._transformed_ns = -1
        self._way.reset()

    def publish(self, estimate: Estimate | None, stamp_ns: int, terrain: HeightMap | None) -> None:
        """An estimate, None where nothing is known yet; `terrain` for base_footprint."""
        message = unknown_odometry(self._vehicle) if estimate is None else estimate_to_odometry(estimate, self._vehicle)
        message.header.stamp = ns_to_stamp(stamp_ns)
        self._answer, self.answer_ns = message, stamp_ns
        self._odometry.publish(message)
        if self._tf is not None and estimate is not None:
            place, odom = self._way.update(estimate)
            if stamp_ns - self._transformed_ns >= 1e9 / TF_RATE - 1000:
                self._transformed_ns = stamp_ns
                below = odom.inverse() @ _as_transform(footprint(estimate.position, estimate.orientation, terrain))
                moved = [(WORLD, "odom", odom), ("odom", "base_link", place), ("odom", "base_footprint", below)]
                self._tf.publish(TFMessage(transforms=[self._transform(stamp_ns, *frames) for frames in moved]))

    def publish_again(self, stamp_ns: int) -> bool:
        """The last message once more where it is of this time; whether it was."""
        if self._answer is None or stamp_ns != self.answer_ns:
            return False
        self._odometry.publish(self._answer)
        return True

    def _transform(self, stamp_ns: int, parent: str, child: str, pose: Transform) -> TransformStamped:
        parent = parent if parent == WORLD else frame_of(self._vehicle, parent)
        return transform_to_msg(parent, frame_of(self._vehicle, child), pose.translation, pose.quat_xyzw, stamp_ns)


def _as_transform(pose: tuple[Sequence[float], Sequence[float]]) -> Transform:
    position, quat_xyzw = pose
    return Transform(np.array(position), np.array(quat_xyzw))
