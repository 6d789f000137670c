"""Topics of an estimate: `odometry/filtered`, and where the vehicle is on /tf. Part of state_estimator_node."""

from __future__ import annotations

from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from tf2_msgs.msg import TFMessage

from rfly_amphibious.description.footprint import footprint
from rfly_amphibious.estimation.estimate import Estimate
from rfly_amphibious.ros.amphibious_msgs import WORLD, estimate_to_odometry, frame_of, unknown_odometry
from rfly_common.ros.endpoints import publisher
from rfly_common.ros.qos import STATE_OUT, TF, TF_STATIC_OUT
from rfly_common.ros.stamps import ns_to_stamp
from rfly_terrain.height_map.height_map import HeightMap

TF_RATE = 50
"""Hz"""


class EstimateTopics:
    """Publishes estimates of one vehicle, and with `tf` its transforms; keeps the last message for who asks again."""

    def __init__(self, node: Node, vehicle: str, *, tf: bool) -> None:
        self._vehicle = vehicle
        self._answer: Odometry | None = None
        self.answer_ns = -1
        """stamp of the last message, -1 before"""
        self._transformed_ns = -1
        self._odometry = publisher(node, Odometry, "odometry/filtered", STATE_OUT)
        self._tf = publisher(node, TFMessage, "/tf", TF) if tf else None
        if tf:
            self._static = publisher(node, TFMessage, "/tf_static", TF_STATIC_OUT)
            self._static.publish(TFMessage(transforms=[self._transform(0, WORLD, self._frame("odom"))]))

    def reset(self) -> None:
        """The time went back."""
        self._transformed_ns = -1

    def publish(self, estimate: Estimate | None, stamp_ns: int, terrain: HeightMap | None) -> None:
        """An estimate, None where nothing is known yet; `terrain` for base_footprint."""
        message = unknown_odometry(self._vehicle) if estimate is None else estimate_to_odometry(estimate, self._vehicle)
        message.header.stamp = ns_to_stamp(stamp_ns)
        self._answer, self.answer_ns = message, stamp_ns
        self._odometry.publish(message)
        if self._tf is not None and estimate is not None and stamp_ns - self._transformed_ns >= 1e9 / TF_RATE - 1000:
            self._transformed_ns = stamp_ns
            self._publish_transforms(estimate, message, terrain)

    def publish_again(self, stamp_ns: int) -> bool:
        """The last message once more where it is of this time; whether it was."""
        if self._answer is None or stamp_ns != self.answer_ns:
            return False
        self._odometry.publish(self._answer)
        return True

    def _publish_transforms(self, estimate: Estimate, message: Odometry, terrain: HeightMap | None) -> None:
        assert self._tf is not None
        stamp_ns = self._transformed_ns
        place = self._transform(stamp_ns, self._frame("odom"), self._frame("base_link"))
        pose = message.pose.pose
        t = place.transform.translation
        t.x, t.y, t.z = pose.position.x, pose.position.y, pose.position.z
        place.transform.rotation = pose.orientation
        below = self._transform(stamp_ns, self._frame("odom"), self._frame("base_footprint"))
        point, turned = footprint(estimate.position, estimate.orientation, terrain)
        t, q = below.transform.translation, below.transform.rotation
        t.x, t.y, t.z = point
        q.x, q.y, q.z, q.w = turned
        self._tf.publish(TFMessage(transforms=[place, below]))

    def _frame(self, name: str) -> str:
        return frame_of(self._vehicle, name)

    def _transform(self, stamp_ns: int, parent: str, child: str) -> TransformStamped:
        made = TransformStamped(child_frame_id=child)
        made.header.stamp, made.header.frame_id = ns_to_stamp(stamp_ns), parent
        return made
