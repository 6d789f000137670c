# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sensor topics of a vehicle in ROS: message classes, and indices in SimulationTick."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from rclpy.node import Node
from rfly_suite.msg import SimulationTick

from rfly_amphibious.sensors.sample_messages import SAMPLE_TOPICS, SampleMessages, variances_of
from rfly_amphibious.simulation.tick_gate import TickGate
from rfly_common.ros.endpoints import subscription
from rfly_common.ros.qos import STATE_OUT, sensor_qos
from rfly_common.ros.stamps import stamp_to_ns

if TYPE_CHECKING:
    from rfly_amphibious.sensors.sensor_suite import SensorSuite


class SensorTopic(NamedTuple):
    """Sensor topic in ROS."""

    kind: str
    """Kind of samples: a field of SensorSamples."""
    sensor: str
    """Sensor that makes them: a field of SensorParameters."""
    tick_index: int
    """Index in SimulationTick.count."""
    msg_type: Any


def _message_class(name: str) -> Any:
    """Return the class of a type such as `sensor_msgs/Imu`."""
    package, _, message = name.partition("/")
    return getattr(importlib.import_module(f"{package}.msg"), message)


SENSOR_TOPICS: Mapping[str, SensorTopic] = MappingProxyType(
    {
        topic: SensorTopic(
            each.kind,
            each.sensor,
            getattr(SimulationTick, each.kind.upper()),
            _message_class(each.type),
        )
        for topic, each in SAMPLE_TOPICS.items()
    }
)
"""Sensor topics, in the order in which a tick's messages are published."""


GUIDANCE_TOPICS = MappingProxyType(
    {"cmd/ackermann": 0, "cmd/pose": 1, "cmd/mode": 2, "cmd/assist": 3, "cmd/wrench": 4}
)
"""Commands of guidance_node and policy_node, and their indices in the count of `guidance_tick`."""


def subscribe_sensors(
    node: Node, topics: Iterable[str], take: Callable[[str, Any], None], *, lock_step: bool
) -> None:
    """Subscribe to sensor topics; `take(topic, message)` is called for each message."""
    qos = sensor_qos(lock_step)
    for topic in topics:
        subscription(node, SENSOR_TOPICS[topic].msg_type, topic, partial(take, topic), qos)


def subscribe_ticks(node: Node, gate: TickGate, topic: str = "simulation_tick") -> None:
    """Announce the ticks of a topic to a gate.

    Subscribe to it after the topics that are counted: once ticks arrive, so do their messages.
    """

    def on_tick(message: SimulationTick) -> None:
        gate.tick(stamp_to_ns(message.header.stamp), message.count)

    subscription(node, SimulationTick, topic, on_tick, STATE_OUT)


def sample_messages(suite: SensorSuite, vehicle: str, epoch_ns: int = 0) -> SampleMessages:
    """Return the messages from the samples of a suite; `epoch_ns`: stamp of simulation time 0."""
    params = suite.model.params
    known = variances_of(suite)
    return SampleMessages(_message_class, params, suite.parameters, vehicle, epoch_ns, known)
