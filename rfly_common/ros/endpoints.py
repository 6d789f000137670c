# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Publishers and subscriptions whose QoS users can override, peers that match none, and timers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from inspect import iscoroutinefunction
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.exceptions import ParameterException
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.service import Service
from rclpy.subscription import Subscription
from rclpy.timer import Timer

from rfly_common.config.checks import check_choice
from rfly_common.diagnostic_reasons import Notice, Reason
from rfly_common.errors import ConfigError
from rfly_common.ros.callback_errors import guarded

# rclpy's own warning of an incompatible peer is an event of each endpoint, which Python looks at
# after every wake-up: a third of a pose's way through a node. `unmatched_peers` says the same, and
# names the peer.
_NO_PUBLISHER_EVENTS = PublisherEventCallbacks(use_default_callbacks=False)
_NO_SUBSCRIPTION_EVENTS = SubscriptionEventCallbacks(use_default_callbacks=False)


_POLICIES = {
    kind.name.lower(): kind for kind in QoSOverridingOptions.with_default_policies().policy_kinds
}
"""Policies that a parameter can override, by name."""

REQUEST_EVERY_S = 10.0
"""Time between two requests, s."""


def publisher(node: Node, msg_type: Any, topic: str, qos: QoSProfile) -> Publisher:
    """Create a publisher whose QoS a user can override at the node's start.

    The parameters are `qos_overrides.<topic>.publisher.…`, and only those that the user gives
    exist. Raises ConfigError for an invalid one.
    """
    with _overrides(node, topic, "publisher") as overrides:
        return node.create_publisher(
            msg_type,
            topic,
            copy(qos),  # rclpy writes the overrides into the profile, which other topics share
            event_callbacks=_NO_PUBLISHER_EVENTS,
            qos_overriding_options=overrides,
        )


def subscription(
    node: Node, msg_type: Any, topic: str, callback: Callable[[Any], Any], qos: QoSProfile
) -> Subscription:
    """Create a subscription whose QoS a user can override at the node's start.

    The parameters are `qos_overrides.<topic>.subscription.…`, and only those that the user gives
    exist. Raises ConfigError for an invalid one. An error in the callback does not end the node:
    see `callback_errors`.
    """
    with _overrides(node, topic, "subscription") as overrides:
        return node.create_subscription(
            msg_type,
            topic,
            guarded(node, callback),
            copy(qos),
            callback_group=ReentrantCallbackGroup() if iscoroutinefunction(callback) else None,
            event_callbacks=_NO_SUBSCRIPTION_EVENTS,
            qos_overriding_options=overrides,
        )


def steady_timer(node: Node, period_s: float, callback: Callable[[], Any]) -> Timer:
    """Create a timer that a simulation's clock, which may pause, does not concern."""
    return node.create_timer(period_s, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))


def waiting_service(
    node: Node, srv_type: Any, name: str, callback: Callable[[Any, Any], Any]
) -> Service:
    """Create a service whose `async` callback may wait for long work.

    Meanwhile the node serves everything else. The service needs a separate callback group: while it
    waits, rclpy calls nothing else of its group, by default the node's. The callback may be called
    again before it has answered.
    """
    return node.create_service(srv_type, name, callback, callback_group=ReentrantCallbackGroup())


@contextmanager
def _overrides(node: Node, topic: str, end: str) -> Iterator[QoSOverridingOptions]:
    """Yield the policies that the user overrides for one end of a topic.

    Raises ConfigError for an unknown policy and, instead of rclpy's errors, for an invalid value.
    """
    prefix = f"qos_overrides.{node.resolve_topic_name(topic)}.{end}."
    overrides = {
        name.removeprefix(prefix): parameter.value
        for name, parameter in node._parameter_overrides.items()
        if name.startswith(prefix)
    }

    for policy in overrides:
        check_choice(f"parameter {prefix}POLICY", policy, tuple(_POLICIES))

    try:
        yield QoSOverridingOptions([_POLICIES[policy] for policy in overrides])
    except (RuntimeError, ValueError, ParameterException) as error:
        if not overrides:
            raise
        text = ", ".join(f"{prefix}{policy}: {value!r}" for policy, value in overrides.items())
        raise ConfigError(
            f"parameter {text}: {error}; expected depth: a number, "
            "reliability: reliable or best_effort, history: keep_last or keep_all"
        ) from error


def unmatched_peers(node: Node) -> list[Notice]:
    """Return other nodes' publishers and subscriptions that share a topic, but not type or QoS."""
    own_name = node.get_fully_qualified_name()
    found = []

    for reader in node.subscriptions:
        for peer in node.get_publishers_info_by_topic(reader.topic_name):
            why = _conflict(reader, peer, offered=peer.qos_profile, requested=reader.qos_profile)
            if why:
                name = _node_name(peer)
                text = f"{reader.topic_name}: nothing gets from {name}: {why}"
                ends = f"{reader.topic_name} {name} {own_name}"
                found.append(Notice(text, Reason.PEER_MISMATCH, ends))

    for writer in node.publishers:
        for peer in node.get_subscriptions_info_by_topic(writer.topic_name):
            why = _conflict(writer, peer, offered=writer.qos_profile, requested=peer.qos_profile)
            if why:
                name = _node_name(peer)
                text = f"{writer.topic_name}: nothing gets to {name}: {why}"
                ends = f"{writer.topic_name} {own_name} {name}"
                found.append(Notice(text, Reason.PEER_MISMATCH, ends))

    return found


def _node_name(peer: Any) -> str:
    return f"{peer.node_namespace.rstrip('/')}/{peer.node_name}"


def _conflict(ours: Any, peer: Any, *, offered: QoSProfile, requested: QoSProfile) -> str:
    """Return why nothing flows between an end of this node and a peer; "" if it does."""
    our_type = f"{ours.msg_type.__module__.split('.')[0]}/msg/{ours.msg_type.__name__}"
    if peer.topic_type != our_type:
        return f"its type is {peer.topic_type}"
    return _qos_conflict(offered, requested)


def _qos_conflict(offered: QoSProfile, requested: QoSProfile) -> str:
    """Return which QoS a publisher offers less of than a subscription requests; "" if none.

    Other policies than these two are not set by this suite.
    """
    if (
        requested.reliability == ReliabilityPolicy.RELIABLE
        and offered.reliability == ReliabilityPolicy.BEST_EFFORT
    ):
        return "the publisher is best effort, the subscription reliable"
    if (
        requested.durability == DurabilityPolicy.TRANSIENT_LOCAL
        and offered.durability == DurabilityPolicy.VOLATILE
    ):
        return "the publisher is volatile, the subscription transient local"
    return ""


class GoalResult:
    """The result of an accepted goal of an `ActionClient`, with the interface of a future.

    It is requested every REQUEST_EVERY_S: DDS loses the response of a server that has not yet
    discovered the client (rmw_fastrtps waits 0.1 s for it), and a client that asked once would wait
    for ever.
    """

    def __init__(self, goal: Any) -> None:
        self._goal = goal
        self._requests: list[Any] = []
        self._requested_at = 0.0
        self.done()

    def done(self) -> bool:
        """Return whether the result has arrived; request it again if that takes long."""
        if not self._requests or time.monotonic() > self._requested_at + REQUEST_EVERY_S:
            self._requests.append(self._goal.get_result_async())
            self._requested_at = time.monotonic()
        return any(future.done() for future in self._requests)

    def result(self) -> Any:
        """Return the result after it has arrived."""
        return next(future.result() for future in self._requests if future.done())
