# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""StaticTransformBroadcaster: transforms that stay, on /tf_static."""

from __future__ import annotations

from collections.abc import Iterable

from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from tf2_msgs.msg import TFMessage

from tf2_ros.transform_broadcaster import as_list


class StaticTransformBroadcaster:
    """Publisher of transforms that stay; late subscribers receive all of them."""

    def __init__(self, node: Node, qos: QoSProfile | int | None = None) -> None:
        """Publish on /tf_static, reliable and transient local unless `qos` says otherwise."""
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.pub_tf = node.create_publisher(
            TFMessage, "/tf_static", latched if qos is None else qos
        )
        self.net_message = TFMessage()

    def sendTransform(self, transform: TransformStamped | Iterable[TransformStamped]) -> None:
        """Publish these transforms and all earlier ones; each child frame keeps its first."""
        known = {sent.child_frame_id for sent in self.net_message.transforms}
        for new in as_list(transform):
            if new.child_frame_id not in known:
                known.add(new.child_frame_id)
                self.net_message.transforms.append(new)
        self.pub_tf.publish(self.net_message)
