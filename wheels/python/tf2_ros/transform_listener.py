# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""TransformListener: /tf and /tf_static into a Buffer."""

from __future__ import annotations

from contextlib import suppress
from threading import Thread

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from tf2_msgs.msg import TFMessage

from tf2_ros.buffer import Buffer

_AUTHORITY = "default_authority"


class TransformListener:
    """Subscriptions that fill a buffer."""

    def __init__(
        self,
        buffer: Buffer,
        node: Node,
        *,
        spin_thread: bool = False,
        qos: QoSProfile | int | None = None,
        static_qos: QoSProfile | int | None = None,
    ) -> None:
        """Subscribe; with `spin_thread` a thread of its own executes the node."""
        self.buffer = buffer
        self.node = node
        self.group = ReentrantCallbackGroup()  # a callback may wait for a transform
        latched = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.tf_sub = node.create_subscription(
            TFMessage,
            "/tf",
            self.callback,
            QoSProfile(depth=100) if qos is None else qos,
            callback_group=self.group,
        )
        self.tf_static_sub = node.create_subscription(
            TFMessage,
            "/tf_static",
            self.static_callback,
            latched if static_qos is None else static_qos,
            callback_group=self.group,
        )

        self.executor: SingleThreadedExecutor | None = None
        if spin_thread:
            self.executor = SingleThreadedExecutor(context=node.context)
            self.executor.add_node(node)
            self.dedicated_listener_thread = Thread(
                target=_spin, args=(self.executor,), daemon=True
            )
            self.dedicated_listener_thread.start()

    def unregister(self) -> None:
        """Unsubscribe."""
        self.node.destroy_subscription(self.tf_sub)
        self.node.destroy_subscription(self.tf_static_sub)

    def callback(self, data: TFMessage) -> None:
        """Take transforms that change."""
        for transform in data.transforms:
            self.buffer.set_transform(transform, _AUTHORITY)

    def static_callback(self, data: TFMessage) -> None:
        """Take transforms that stay."""
        for transform in data.transforms:
            self.buffer.set_transform_static(transform, _AUTHORITY)


def _spin(executor: SingleThreadedExecutor) -> None:
    """Spin until the context is shut down."""
    with suppress(ExternalShutdownException):
        executor.spin()
