# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""TransformBroadcaster: transforms that change, on /tf."""

from __future__ import annotations

from collections.abc import Iterable

from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile
from tf2_msgs.msg import TFMessage


def as_list(transform: TransformStamped | Iterable[TransformStamped]) -> list[TransformStamped]:
    """Return one transform or several as a list."""
    return [transform] if isinstance(transform, TransformStamped) else list(transform)


class TransformBroadcaster:
    """Publisher of transforms that change."""

    def __init__(self, node: Node, qos: QoSProfile | int | None = None) -> None:
        """Publish on /tf, reliable with depth 100 unless `qos` states something else."""
        self.pub_tf = node.create_publisher(
            TFMessage, "/tf", QoSProfile(depth=100) if qos is None else qos
        )

    def sendTransform(self, transform: TransformStamped | Iterable[TransformStamped]) -> None:
        """Publish one transform or several."""
        self.pub_tf.publish(TFMessage(transforms=as_list(transform)))
