"""Publishers and subscriptions whose QoS a user can override, and the peers that match none of
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from inspect import iscoroutinefunction
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.exceptions import ParameterException
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.service import Service
from rclpy.subscription import Subscription

from rfly_common.diagnostic_reasons import Notice, Reason
from rfly_common.errors import ConfigError
from rfly_common.ros.callback_errors import guarded

# rclpy's own warning of an incompatible peer is an event of each endpoint, which Python looks at
# after every wake-up: a third of a pose's way through a node. `unmatched_peers` says the same, and
# names the peer.
_NO_PUBLISHER_EVENTS = PublisherEventCallbacks(use_default_callbacks=False)
_NO_SUBSCRIPTION_EVENTS = SubscriptionEventCallbacks(use_default_callbacks=False)


def publisher(node: Node, msg_type: Any, topic: str, qos: QoSProfile) -> Publisher:
    """A publisher whose QoS a user can override by parameter (`qos_overrides.<topic>.publisher.…`).

    Raises ConfigError that names an override that is none.
    """
    with _overrides(node, topic, "publisher"):
        return node.create_publisher(
            msg_type,
            topic,
            copy(qos),  # rclpy writes the overrides into the profile, which other topics share
            event_callbacks=_NO_PUBLISHER_EVENTS,
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )


def subscription(
    node: Node, msg_type: Any, topic: str, callback: Callable[[Any], Any], qos: QoSProfile
) -> Subscription:
    """A subscription whose QoS a user can override by parameter
    (`qos_overrides.<topic>.subscription.…`).

    What the callback raises does not end the node: see `callback_errors`. Raises ConfigError that
    names an override that is none.
    """
    with _overrides(node, topic, "subscription"):
        return node.create_subscription(
            msg_type,
            topic,
            guarded(node, callback),
            copy(qos),
            callback_group=ReentrantCallbackGroup() if iscoroutinefunction(callback) else None,
            event_callbacks=_NO_SUBSCRIPTION_EVENTS,
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )


def destroy_endpoint(node: Node, endpoint: Publisher | Subscription) -> None:
    """Take a publisher or subscription of ours off the graph, and its overrides' parameters, which
    rclpy would keep.
    """
    prefix = f"qos_overrides.{endpoint.topic_name}.{type(endpoint).__name__.lower()}."
    if isinstance(endpoint, Publisher):
        node.destroy_publisher(endpoint)
    else:
        node.destroy_subscription(endpoint)
    for policy in QoSOverridingOptions.with_default_policies().policy_kinds:
        name = f"{prefix}{policy.name.lower()}"  # read-only: rclpy undeclares none
        node._parameters.pop(name, None)
        node._descriptors.pop(name, None)


def waiting_service(
    node: Node, srv_type: Any, name: str, callback: Callable[[Any, Any], Any]
) -> Service:
    """A service whose `async` callback waits for long work: everything else of the node is served
    meanwhile.

    It needs a callback group of its own: while it waits, rclpy calls nothing else of its group, the
    node's by default. The callback may be called again before it has answered.
    """
    return node.create_service(srv_type, name, callback, callback_group=ReentrantCallbackGroup())


@contextmanager
def _overrides(node: Node, topic: str, end: str) -> Iterator[None]:
    """What rclpy says of an override that it can't take, as a ConfigError."""
    try:
        yield
    except (RuntimeError, ValueError, ParameterException) as error:
        name = f"qos_overrides.{node.resolve_topic_name(topic)}.{end}."
        given = [
            f"{key}: {p.value!r}"
            for key, p in node._parameter_overrides.items()
            if key.startswith(name)
        ]
        if not given:
            raise
        raise ConfigError(
            f"parameter {', '.join(given)}: {error}; expected depth: a number, reliability: reliable or "
            "best_effort, history: keep_last or keep_all"
        ) from error


def unmatched_peers(node: Node) -> list[Notice]:
    """Publishers and subscriptions of other nodes that share a topic with this node, but neither
    type nor QoS.
    """
    found = []
    ends_of_ours: list[tuple[Any, str]] = [(s, "from") for s in node.subscriptions]
    ends_of_ours += [(p, "to") for p in node.publishers]
    for ours, direction in ends_of_ours:
        topic = ours.topic_name
        our_type = f"{ours.msg_type.__module__.split('.')[0]}/msg/{ours.msg_type.__name__}"
        infos = (
            node.get_publishers_info_by_topic
            if direction == "from"
            else node.get_subscriptions_info_by_topic
        )
        for peer in infos(topic):
            name = f"{peer.node_namespace.rstrip('/')}/{peer.node_name}"
            ends = (
                (peer.qos_profile, ours.qos_profile)
                if direction == "from"
                else (ours.qos_profile, peer.qos_profile)
            )
            reason = (
                f"its type is {peer.topic_type}"
                if peer.topic_type != our_type
                else _qos_conflict(*ends)
            )
            if reason:
                own = node.get_fully_qualified_name()
                pair = f"{name} {own}" if direction == "from" else f"{own} {name}"
                text = f"{topic}: nothing gets {direction} {name}: {reason}"
                found.append(Notice(text, Reason.PEER_MISMATCH, f"{topic} {pair}"))
    return found


def _qos_conflict(offered: QoSProfile, requested: QoSProfile) -> str:
    """What a publisher offers less of than a subscription requests; "" if nothing (we set no other
    policy).
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
