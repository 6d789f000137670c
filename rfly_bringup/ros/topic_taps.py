# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Raw subscriptions to all topics of the graph that have a publisher, as bytes to a sink.

They are part of nodes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription

from rfly_bringup.ros.message_definitions import message_class, message_definition
from rfly_bringup.topic_recording.topics import Sink, TopicChoice
from rfly_common.errors import ConfigError
from rfly_common.ros.callback_errors import guarded
from rfly_common.untrusted_files.mcap_reader import Topic

_DEPTH = 100


@dataclass
class _Tap:
    """Topic, its channel, and its subscription while messages are wanted."""

    topic: Topic
    channel: int
    subscription: Subscription | None = None


class TopicTaps:
    """Subscriptions to the chosen topics; call `refresh` about twice a second for new ones.

    A subscription requests what all publishers of its topic offer, and is renewed if one offers
    less. Hidden topics (a part of the name begins with _) are left out, as in `ros2 bag`.
    """

    def __init__(self, node: Node, sink: Sink, choice: TopicChoice) -> None:
        self._node = node
        self._sink = sink
        self._choice = choice
        self._taps: dict[str, _Tap] = {}
        self.left_out: dict[str, str] = {}
        """Topics that cannot be passed on, with the reason."""

    def refresh(self) -> None:
        """Look for topics of the graph, and open or close their subscriptions."""
        for name, kinds in self._node.get_topic_names_and_types():
            if name not in self._choice or name in self.left_out or "/_" in name:
                continue
            offers = [info.qos_profile for info in self._node.get_publishers_info_by_topic(name)]
            if not offers:
                continue

            latched = all(offer.durability == DurabilityPolicy.TRANSIENT_LOCAL for offer in offers)
            reliable = all(offer.reliability == ReliabilityPolicy.RELIABLE for offer in offers)

            tap = self._taps.get(name)
            if tap is None:
                tap = self._add(name, kinds, latched, reliable)
            if tap is not None:
                offers_less = (tap.topic.latched and not latched) or (
                    tap.topic.reliable and not reliable
                )
                if offers_less:
                    tap.topic = replace(tap.topic, latched=latched, reliable=reliable)
                self._open_or_close(tap, offers_less)

    def _add(self, name: str, kinds: list[str], latched: bool, reliable: bool) -> _Tap | None:
        try:
            if len(kinds) > 1:
                raise ConfigError(f"it has several types: {', '.join(kinds)}")
            topic = Topic(name, kinds[0], message_definition(kinds[0]), latched, reliable)
        except ConfigError as error:
            self.left_out[name] = str(error)
            self._node.get_logger().warning(f"{name} is left out: {error}")
            return None
        self._taps[name] = _Tap(topic, self._sink.add_topic(topic))
        return self._taps[name]

    def _open_or_close(self, tap: _Tap, offers_less: bool) -> None:
        wanted = self._sink.wants(tap.channel)
        if tap.subscription is not None and (offers_less or not wanted):
            self._node.destroy_subscription(tap.subscription)
            tap.subscription = None
        if tap.subscription is None and wanted:
            tap.subscription = self._subscribe(tap.topic, tap.channel)

    def _subscribe(self, topic: Topic, channel: int) -> Subscription:
        def on_message(data: bytes) -> None:  # rclpy's events executor passes no times
            self._sink.write(channel, bytes(data), time.time_ns())

        qos = topic_qos(topic, _DEPTH)
        return self._node.create_subscription(
            message_class(topic.type), topic.name, guarded(self._node, on_message), qos, raw=True
        )


def topic_qos(topic: Topic, depth: int) -> QoSProfile:
    """Return the QoS for subscribing to a topic, or publishing it again."""
    return QoSProfile(
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE if topic.reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if topic.latched else DurabilityPolicy.VOLATILE,
    )
