# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Raw subscriptions to all topics of the graph that have a publisher, as bytes to a sink.

They are part of nodes. With them go message types by name, and their definitions in the form that
recordings carry.
"""

from __future__ import annotations

import importlib
import re
import time
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription

from rfly_bringup.topic_recording.topics import Sink, TopicChoice
from rfly_common.errors import ConfigError
from rfly_common.ros.callback_errors import guarded
from rfly_common.untrusted_files.mcap_reader import Topic

_TYPE = re.compile(r"([a-z][a-z0-9_]*)/msg/([A-Z][A-Za-z0-9]*)")
_SEPARATOR = "\n" + "=" * 80 + "\n"
_NESTED = re.compile(r"\b([a-z]\w*)/(\w+)")
_FIELD = re.compile(r"\s*([a-zA-Z][^\s#]*)\s+(\w+)(?!\w|\s*=)")
"""Type and name of a field; constants do not match."""


def message_class(kind: str) -> Any:
    """Return the class of a type such as `nav_msgs/msg/Path`. Raise ConfigError if not installed.

    Only packages with that message are imported, as a type's name may come from a file or from the
    graph.
    """
    named = _TYPE.fullmatch(kind)
    if named is None:
        raise ConfigError(
            f"{kind[:100]!r} is no message type, expected one such as nav_msgs/msg/Path"
        )

    try:
        _file(kind).stat()
        return getattr(importlib.import_module(f"{named[1]}.msg"), named[2])
    except (ImportError, AttributeError, OSError, PackageNotFoundError):
        raise ConfigError(
            f"the message type {kind} is not installed (ROS package {named[1]})"
        ) from None


@cache
def message_definition(kind: str) -> str:
    """Return the schema `ros2msg` of a type: its .msg file, then those of all types within it.

    Source: mcap.dev/spec/registry, "ros2msg". Raise ConfigError if a .msg file is not installed.
    """
    needed = [kind]
    for each in needed:  # the list grows during the loop
        fields = message_class(each).get_fields_and_field_types().values()
        nested = (
            f"{package}/msg/{name}" for text in fields for package, name in _NESTED.findall(text)
        )
        needed += [other for other in dict.fromkeys(nested) if other not in needed]

    parts = [
        _text(kind),
        *(f"MSG: {each.replace('/msg/', '/')}\n{_text(each)}" for each in needed[1:]),
    ]
    return _SEPARATOR.join(parts)


def same_fields(definition: str, other: str) -> bool:
    """Return whether two definitions describe the same bytes.

    Comments, constants and defaults may differ.
    """
    return _fields(definition) == _fields(other)


def _fields(definition: str) -> set[tuple[str, int, str, str]]:
    """Return (message type, index, field type, name) of all fields."""
    fields = set[tuple[str, int, str, str]]()
    name = ""
    index = 0
    for line in definition.splitlines():
        field = _FIELD.match(line)
        if line.startswith("MSG: "):
            name = line[5:].strip()
            index = 0
        elif field:
            index += 1
            fields.add((name, index, field[1].rpartition("/")[2], field[2]))
    return fields


def _text(kind: str) -> str:
    """Return the text of a type's .msg file. Raise ConfigError."""
    try:
        return _file(kind).read_text(encoding="utf-8")
    except (OSError, PackageNotFoundError):
        raise ConfigError(f"the definition of {kind} is not installed: share/{kind}.msg") from None


def _file(kind: str) -> Path:
    """Return the path of a type's .msg file."""
    package, folder, name = kind.split("/")
    return Path(get_package_share_directory(package)) / folder / f"{name}.msg"


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
