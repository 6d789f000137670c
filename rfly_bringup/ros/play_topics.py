# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly replay FILE.mcap`: messages of a recording published again, each at its time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from rclpy.duration import Duration
from rclpy.exceptions import InvalidTopicNameException
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.serialization import deserialize_message, serialize_message

from rfly_bringup.ros.command_client import command_session
from rfly_bringup.ros.topic_taps import (
    message_class,
    message_definition,
    same_fields,
    topic_qos,
)
from rfly_bringup.topic_recording.topics import IdMap, TopicChoice
from rfly_common.errors import CaptureError, ConfigError
from rfly_common.startup import interrupt, stop_by_signal
from rfly_common.untrusted_files.bag_reader import Bag
from rfly_common.untrusted_files.reader_errors import LeftOut, reader_errors
from rfly_ue_bridge.datagram_recording.datagrams import RecordedDatagram
from rfly_ue_bridge.datagram_recording.replay import ReplayReport, replay

NOT_PLAYED = ("/rosout", "/parameter_events")
"""Topics about nodes that are not running now."""
_FIRST_S = 4.0
"""Longest wait for the first subscriber, s; Fast DDS repeats a lost announcement after 3 s."""
_OTHERS_S = 0.5
"""Further wait for the other subscribers, and for all of them to find the publishers, s."""
_LAST_S = 1.0
"""Longest wait for subscribers to acknowledge the last messages, s."""
_DEPTH = 100
_NOWHERE = ("", 0)
ID_FIELDS = {
    "rfly_suite/msg/ContactArray": ("id_a", "id_b"),
    "rfly_suite/msg/PlacedObjectArray": ("id",),
    "rfly_suite/msg/Px4SilData": ("id",),
    "rfly_suite/msg/UeCrash": ("id", "target_id"),
    "rfly_suite/msg/UeVehicleData": ("id",),
    "rfly_suite/msg/UeVehicleReport": ("id",),
    "rfly_suite/msg/VehicleState": ("id",),
    "rfly_suite/msg/VehicleStateArray": ("id",),
}
"""Fields with CopterIDs, by type."""


def play_topics(
    reader: Bag,
    choice: TopicChoice,
    names: dict[str, str],
    ids: IdMap,
    *,
    speed: float,
    passes: int,
    pause_s: float,
    progress: Callable[[ReplayReport, int], None],
) -> list[str]:
    """Publish until the end or Ctrl-C, and return lines on what was published and left out.

    `names`: new names of topics by those of the recording. Raise ConfigError for a recording
    without messages on these topics, CaptureError for one that cannot be read.
    """
    report = ReplayReport()
    with command_session(lambda: Node("rfly_replay", use_global_arguments=False)) as (node, _):
        publishers, notes = _publishers(node, reader, choice, names)
        messages = _Messages(reader, publishers, ids)
        with suppress(KeyboardInterrupt), stop_by_signal(interrupt):
            _wait_for_subscribers(list(publishers.values()))
            replay(
                messages,
                lambda channel, data: publishers[channel].publish(bytes(data)),
                ports=range(max(publishers) + 1),
                speed=speed,
                passes=passes,
                pause_s=pause_s,
                progress=progress,
                report=report,
            )
            # a publisher that goes takes its last messages from those who have not got them
            until = time.monotonic() + _LAST_S
            for publisher in publishers.values():
                remaining = max(0.0, until - time.monotonic())
                publisher.wait_for_all_acked(Duration(seconds=remaining))

    late = f"; late by {report.lateness.text(50)} (median)" if speed and report.sent else ""
    seconds = report.duration_ns / 1e9
    report_text = (
        f"published {report.sent} messages on {len(publishers)} topics in {seconds:.3f} s{late}"
    )
    cut = [f"{report.truncated}; what comes before it was published"] if report.truncated else []
    skipped = [messages.left_out.text()] if messages.left_out else []
    return [report_text, *cut, *skipped, *notes, *ids.notes()]


class _Messages:
    """Messages in the form of `replay`: a channel's number takes the place of a port."""

    def __init__(self, reader: Bag, publishers: dict[int, Publisher], ids: IdMap) -> None:
        self._reader = reader
        self._publishers = publishers
        self._ids = ids
        self.left_out = LeftOut()
        """Messages that cannot be read, so that they cannot get new ids."""

    def __iter__(self) -> Iterator[RecordedDatagram]:
        self.left_out.clear()
        for message in self._reader.messages(self._publishers):
            data = message.data
            topic = self._reader.topics[message.channel]
            if self._ids and topic.type in ID_FIELDS:
                try:
                    with reader_errors(CaptureError):
                        data = _with_new_ids(data, topic.type, self._ids)
                except CaptureError as error:
                    self.left_out.add(topic.name, str(error))
                    continue
            yield RecordedDatagram(message.time_ns, _NOWHERE, ("", message.channel), data)


def _with_new_ids(data: bytes, kind: str, ids: IdMap) -> bytes:
    """Return a serialised message with other vehicle ids."""
    message = deserialize_message(data, message_class(kind))
    for field in ID_FIELDS[kind]:
        value = getattr(message, field)
        new = ids.of([value] if isinstance(value, int) else value)
        setattr(message, field, new[0] if isinstance(value, int) else new)
    return bytes(serialize_message(message))


def _publishers(
    node: Node, reader: Bag, choice: TopicChoice, names: dict[str, str]
) -> tuple[dict[int, Publisher], list[str]]:
    """Return publishers by channel, and lines on topics that are left out. Raise ConfigError."""
    held = sorted(
        topic.name for channel, topic in reader.topics.items() if reader.counts.get(channel)
    )
    unknown = sorted(names.keys() - set(held))
    if unknown:
        raise ConfigError(
            f"{reader.path}: no messages on {unknown[0]} to be renamed; "
            f"there are {', '.join(held) or 'none at all'}"
        )

    publishers = dict[int, Publisher]()
    notes = [
        f"left out: {name[:100]!r}: {reason}"
        for name, reason in reader.left_out.items()
        if name in choice
    ]
    for channel, topic in reader.topics.items():
        if topic.name not in choice or topic.name in NOT_PLAYED or not reader.counts.get(channel):
            continue
        try:
            if not topic.definition:
                notes.append(
                    f"{topic.name}: recorded without its definition, published as the {topic.type} "
                    "that is installed here"
                )
            elif not same_fields(topic.definition, message_definition(topic.type)):
                raise ConfigError(f"{topic.type} was recorded with other fields than it has here")
            publishers[channel] = node.create_publisher(
                message_class(topic.type),
                names.get(topic.name, topic.name),
                topic_qos(topic, _DEPTH),
            )
        except (ConfigError, InvalidTopicNameException) as error:
            notes.append(f"left out: {topic.name[:100]!r}: {' '.join(str(error).split())}")

    if not publishers:
        found = "; ".join(notes) or f"there are {', '.join(held) or 'none at all'}"
        raise ConfigError(f"{reader.path}: no messages on topics to be published; {found}")
    return publishers, notes


def _wait_for_subscribers(publishers: list[Publisher]) -> None:
    """Wait for subscribers, without an error if none comes."""
    until = time.monotonic() + _FIRST_S
    while time.monotonic() < until and not any(
        each.get_subscription_count() for each in publishers
    ):
        time.sleep(0.02)
    time.sleep(_OTHERS_S)
