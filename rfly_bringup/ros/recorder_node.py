# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""recorder_node: topics of the graph to an MCAP file, as they come."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from rclpy.node import Node

from rfly_bringup.ros.node_parameters import RecorderParameters
from rfly_bringup.ros.topic_taps import TopicTaps
from rfly_bringup.topic_recording.mcap_file import McapWriter
from rfly_bringup.topic_recording.topics import TopicChoice
from rfly_common.errors import ConfigError
from rfly_common.ros.diagnostics import ERROR, OK, WARN, Diagnostics
from rfly_common.ros.endpoints import steady_timer
from rfly_common.ros.parameters import declare_parameters
from rfly_common.untrusted_files.mcap_reader import Topic

REFRESH_S = 0.5
"""Period of looks at the graph, s, and longest time that a message stays in memory."""


PICTURES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")
"""Types of topics with pictures, which would soon fill a recording."""


class RecorderNode(Node):
    """Node that writes every message of the chosen topics.

    The file is complete when the node has been destroyed.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("recorder_node", **options)
        self._settings = declare_parameters(self, RecorderParameters)
        self._pictures: set[int] = set()
        """Channels that are left out."""
        self.ended = ""
        """Reason for the recording's end, "" while it runs."""

        choice = TopicChoice(self._settings.topics, self._settings.exclude)
        text = self._settings.file or "rfly_{time}.mcap"
        path = Path(text.replace("{time}", f"{datetime.now():%Y-%m-%d_%H-%M-%S}"))
        try:
            self.writer = McapWriter(path, overwrite=self._settings.overwrite)
        except OSError as error:
            raise ConfigError(f"parameter file: {path}: {error.strerror}") from error

        self._taps = TopicTaps(self, self, choice)
        self._diagnostics = Diagnostics(
            self, "recording", str(path), refresh=self._update_diagnostics, check_peers=False
        )
        steady_timer(self, REFRESH_S, self._on_timer)
        self.get_logger().info(f"recording to {path}")

    @property
    def left_out(self) -> list[str]:
        """Topics that cannot be recorded, each with the reason."""
        return [f"{name}: {reason}" for name, reason in self._taps.left_out.items()]

    def add_topic(self, topic: Topic) -> int:
        """Return the channel of a topic, as a `Sink`."""
        channel = self.writer.add_topic(topic)
        is_asked_for = self._settings.pictures or self._settings.topics
        if topic.type in PICTURES and not is_asked_for:
            self._pictures.add(channel)
            self.get_logger().info(f"{topic.name}: pictures are left out without pictures:=true")
        return channel

    def wants(self, channel: int) -> bool:
        """Return True for the messages to record, as a `Sink`."""
        return channel not in self._pictures

    def write(self, channel: int, data: bytes, time_ns: int) -> None:
        """Write a message, as a `Sink`."""
        if not self.ended:
            try:
                self.writer.write(channel, data, time_ns)
            except OSError as error:
                self._end(f"{self.writer.path}: {error.strerror}")

    def _on_timer(self) -> None:
        if self.ended:
            return
        self._taps.refresh()
        try:
            self.writer.flush()
        except OSError as error:
            self._end(f"{self.writer.path}: {error.strerror}")
            return
        if 0.0 < self._settings.max_size * 1e6 <= self.writer.size:
            self._end(f"{self.writer.path} has {self._settings.max_size:g} MB (max_size)")

    def _end(self, reason: str) -> None:
        self.ended = reason
        self.get_logger().error(f"the recording has ended: {reason}")

    def _update_diagnostics(self) -> None:
        left_out = "; ".join(self.left_out)
        self._diagnostics.set_first(
            [
                (self.ended, ERROR, lambda: f"the recording has ended: {self.ended}"),
                (left_out, WARN, lambda: f"topics left out: {left_out}"),
                (True, OK, "recording"),
            ],
            topics=self.writer.topics,
            messages=self.writer.messages,
            bytes=self.writer.size,
        )

    def close(self) -> None:
        """End the file."""
        try:
            self.writer.close()
        except OSError as error:
            self.get_logger().error(
                f"{self.writer.path}: {error.strerror}; what came before is readable"
            )

    def destroy_node(self) -> None:
        """End the file, which then holds all that the system had for this node."""
        if hasattr(self, "writer"):
            self.close()
        super().destroy_node()
