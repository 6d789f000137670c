# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MCAP files of ROS 2 messages, with rosbag2's channels (`cdr`) and schemas (`ros2msg`).

Specification: mcap.dev/spec and mcap.dev/spec/registry ("ros2"). They need mcap, the extra `log`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import yaml

from rfly_bringup.recording.topics import Topic
from rfly_common.errors import CaptureError, ConfigError, TruncatedCaptureError
from rfly_common.files import Closing, open_regular
from rfly_common.imports import require
from rfly_common.untrusted_files.mcap_chunks import check_chunk, check_chunks
from rfly_common.untrusted_files.reader_errors import reader_errors

MAGIC = b"\x89MCAP0\r\n"
_PURPOSE = "recording and replaying MCAP files"
_FOR_EVER = {"sec": 9223372036, "nsec": 854775807}
"""RMW_DURATION_INFINITE of rmw."""

# rmw_qos_…_policy_e: rosbag2 reads these numbers in every release, the names from Jazzy up
_KEEP_LAST = 1
_RELIABLE = 1
_BEST_EFFORT = 2
_TRANSIENT_LOCAL = 1
_VOLATILE = 2
_AUTOMATIC = 1


def is_mcap(path: Path) -> bool:
    """Return whether a file begins as MCAP does, even if it was cut. Raise OSError."""
    with open_regular(path) as file:
        return file.read(len(MAGIC)) == MAGIC


class McapWriter:
    """Writer of a file; after `flush` all messages are readable, even if the process is killed.

    Raise ConfigError for a file that exists (without `overwrite`), OSError for one that cannot be
    written.
    """

    def __init__(self, path: Path, *, overwrite: bool = False) -> None:
        require("mcap", _PURPOSE)
        from mcap.writer import Writer

        try:
            self._file = path.open("wb" if overwrite else "xb")
        except FileExistsError:
            raise ConfigError(f"{path} exists; choose another name, or overwrite it") from None

        self.path = path
        self.messages = 0
        self._schemas: dict[str, int] = {}
        self._sequence: list[int] = [0]
        self._writer = Writer(self._file)
        self._writer.start(profile="ros2", library="rfly_suite")

    @property
    def size(self) -> int:
        """Bytes in the file, without the last messages since `flush`."""
        return self.path.stat().st_size if self._file.closed else self._file.tell()

    @property
    def topics(self) -> int:
        """Number of topics."""
        return len(self._sequence) - 1

    def add_topic(self, topic: Topic) -> int:
        """Add a topic, and return the number of its channel, from 1 up."""
        if topic.type not in self._schemas:
            data = topic.definition.encode()
            self._schemas[topic.type] = self._writer.register_schema(topic.type, "ros2msg", data)

        self._sequence.append(0)
        metadata = {"offered_qos_profiles": _qos_text(topic)}
        channel: int = self._writer.register_channel(
            topic.name, "cdr", self._schemas[topic.type], metadata
        )
        return channel

    def write(self, channel: int, data: bytes, time_ns: int) -> None:
        """Write one serialised message. Raise OSError if the disk is full."""
        sequence = self._sequence[channel]
        self._sequence[channel] += 1
        self.messages += 1
        self._writer.add_message(channel, time_ns, data, time_ns, sequence)

    def flush(self) -> None:
        """Pass everything to the system; a chunk ends here, so once a second is enough."""
        self._writer.flush()

    def close(self) -> None:
        """End the file with its index, once.

        Raise OSError if that cannot be written; flushed messages stay readable.
        """
        if not self._file.closed:
            with self._file:
                self._writer.finish()


def _qos_text(topic: Topic) -> str:
    """Return the profiles that `ros2 bag play` publishes with, in YAML."""
    profile = {
        "history": _KEEP_LAST,
        "depth": 10,
        "reliability": _RELIABLE if topic.reliable else _BEST_EFFORT,
        "durability": _TRANSIENT_LOCAL if topic.latched else _VOLATILE,
        "deadline": _FOR_EVER,
        "lifespan": _FOR_EVER,
        "liveliness": _AUTOMATIC,
        "liveliness_lease_duration": _FOR_EVER,
        "avoid_ros_namespace_conventions": False,
    }
    return str(yaml.safe_dump([profile], sort_keys=False))


@dataclass(frozen=True)
class RecordedMessage:
    """One message of a file."""

    time_ns: int
    """Time of receipt."""
    channel: int
    data: bytes


class McapReader(Closing):
    """Messages of a file in the order of time, as often as it is iterated.

    `topics` holds their topics by channel number. A file whose writer was killed is read in its own
    order up to its end; iterating it then ends with a TruncatedCaptureError. Messages other than
    ROS 2's are left out.

    Raise CaptureError for a file that cannot be read.
    """

    def __init__(self, path: Path) -> None:
        require("mcap", _PURPOSE)
        from mcap.reader import SeekingReader

        self.path = path
        self._file: BinaryIO = open_regular(path)
        self.position = 0
        """Messages read in this pass."""

        channels: dict[int, Any]
        try:
            with reader_errors(CaptureError):
                summary = SeekingReader(self._file).get_summary()
                statistics = None if summary is None else summary.statistics
        except CaptureError:
            summary = None
            statistics = None

        self.is_whole = summary is not None and statistics is not None
        """True if the file has its end, with an index."""
        if summary is not None and statistics is not None:
            channels = summary.channels
            schemas = summary.schemas
            check_chunks(path, summary)
            self.counts: dict[int, int] = statistics.channel_message_counts
            """Number of messages by channel."""
        else:
            channels, schemas, self.counts = self._scan()

        self.size = sum(self.counts.values())
        """Number of messages in the file."""
        self.topics = {
            number: _topic(channel, schemas[channel.schema_id])
            for number, channel in channels.items()
            if channel.message_encoding == "cdr"
            and getattr(schemas.get(channel.schema_id), "encoding", "") == "ros2msg"
        }

    def __iter__(self) -> Iterator[RecordedMessage]:
        """Yield the messages of ROS 2 topics."""
        from mcap.records import Message

        self.position = 0
        for record in self._in_time_order() if self.is_whole else self.records():
            if isinstance(record, Message):
                self.position += 1
                if record.channel_id in self.topics:
                    yield RecordedMessage(record.log_time, record.channel_id, record.data)

    def _in_time_order(self) -> Iterator[Any]:
        """Yield the messages of a complete file in the order of time."""
        from mcap.reader import SeekingReader

        self._file.seek(0)
        with reader_errors(
            lambda text: CaptureError(
                f"{self.path}: damaged before byte {self._file.tell()}: {text}"
            )
        ):
            for _, _, message in SeekingReader(self._file, validate_crcs=True).iter_messages():
                yield message

    def records(self) -> Iterator[Any]:
        """Yield all records of a file without an end, in its order.

        Raise TruncatedCaptureError at the end.
        """
        from mcap.exceptions import InvalidMagic
        from mcap.records import Chunk
        from mcap.stream_reader import StreamReader, breakup_chunk

        self._file.seek(0)
        size = os.fstat(self._file.fileno()).st_size

        with reader_errors(
            lambda _: TruncatedCaptureError(
                f"{self.path} has no end, as if its writer was killed: it can be read to byte "
                f"{self._file.tell()}; rfly record --recover makes a whole file of it"
            )
        ):
            try:
                for record in StreamReader(
                    self._file,
                    emit_chunks=True,
                    validate_crcs=True,
                    record_size_limit=size,
                ).records:
                    if isinstance(record, Chunk):
                        check_chunk(self.path, record.uncompressed_size)
                        yield from breakup_chunk(record, validate_crc=True)
                    else:
                        yield record
            except InvalidMagic as error:
                self._file.close()
                raise CaptureError(f"{self.path}: no MCAP file: its first bytes differ") from error

    def _scan(self) -> tuple[dict[int, Any], dict[int, Any], dict[int, int]]:
        """Return (channels, schemas, number of messages by channel) of a file without a summary."""
        from mcap.records import Channel, Message, Schema

        channels = dict[int, Any]()
        schemas = dict[int, Any]()
        messages = Counter[int]()
        try:
            for record in self.records():
                if isinstance(record, Channel):
                    channels[record.id] = record
                elif isinstance(record, Schema):
                    schemas[record.id] = record
                elif isinstance(record, Message):
                    messages[record.channel_id] += 1
        except TruncatedCaptureError:
            pass
        return channels, schemas, messages

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _topic(channel: Any, schema: Any) -> Topic:
    """Return a channel's topic, with the QoS that our and rosbag2's files hold.

    It is latched only if all publishers were.
    """
    try:
        with reader_errors(CaptureError):
            profiles = yaml.safe_load(channel.metadata.get("offered_qos_profiles", "")) or []
            latched = bool(profiles) and all(
                p["durability"] in (_TRANSIENT_LOCAL, "transient_local") for p in profiles
            )
            reliable = all(p["reliability"] in (_RELIABLE, "reliable") for p in profiles)
    except CaptureError:
        latched = False
        reliable = True
    return Topic(
        channel.topic,
        schema.name,
        schema.data.decode(errors="replace"),
        latched,
        reliable,
    )
