# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Writer of MCAP files of ROS 2 messages, with rosbag2's channels (`cdr`) and schemas (`ros2msg`).

`recover` makes a whole file, with its index, of one whose writer was killed.

Specification: mcap.dev/spec and mcap.dev/spec/registry ("ros2"). They need mcap, the extra `log`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import yaml

from rfly_common.errors import CaptureError, ConfigError, TruncatedCaptureError
from rfly_common.files import check_ending, open_whole
from rfly_common.imports import require
from rfly_common.untrusted_files.mcap_reader import McapReader, Topic
from rfly_common.untrusted_files.reader_errors import LeftOut

_FOR_EVER = {"sec": 9223372036, "nsec": 854775807}
"""RMW_DURATION_INFINITE of rmw."""

# rmw_qos_…_policy_e: rosbag2 reads these numbers in every release, the names from Jazzy up
_KEEP_LAST = 1
_RELIABLE = 1
_BEST_EFFORT = 2
_TRANSIENT_LOCAL = 1
_VOLATILE = 2
_AUTOMATIC = 1


class McapWriter:
    """Writer of a file; after `flush` all messages are readable, even if the process is killed.

    Raise ConfigError for a file that exists (without `overwrite`), OSError for one that cannot be
    written.
    """

    def __init__(self, path: Path, *, overwrite: bool = False) -> None:
        require("mcap", "recording MCAP files")
        check_ending(path, ".mcap")
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
class Recovery:
    """Result of a recovery."""

    messages: int
    topics: int
    seconds: float
    """Time from the first message to the last, s."""
    left_out: LeftOut
    """Bytes from the end of the readable part, and messages, that are not in the new file."""


def recover(source: Path, target: Path, *, overwrite: bool = False) -> Recovery:
    """Write all that can be read of `source` into `target`, with an index; no message is changed.

    `target` appears when it is complete.

    Raise ConfigError for a file that is whole and sound, and for a target that exists (without
    `overwrite`), CaptureError for a file that is no recording or that holds no message, OSError if
    the disk is full.
    """
    check_ending(target, ".mcap")
    if target.exists() and (not overwrite or target.samefile(source)):
        raise ConfigError(f"{target} exists; choose another name, or overwrite it")

    with McapReader(source, recovering=True) as reader:
        if reader.is_whole and _is_sound(reader):
            raise ConfigError(f"{source} is whole: it has its index, and needs no recovery")

        with open_whole(target) as file:
            recovery = _copy(reader, file)
            if not recovery.messages:
                reason = recovery.left_out.text() or "nothing that could be recovered"
                raise CaptureError(f"{source} holds no message: {reason}")
            return recovery


def _is_sound(reader: McapReader) -> bool:
    """Return whether every message can be read."""
    try:
        for _ in reader:
            pass
    except CaptureError:
        return False
    return True


def _copy(reader: McapReader, file: IO[bytes]) -> Recovery:
    """Copy all records up to the end of the file."""
    copier = _Copier(file, reader.descriptions)
    try:
        for record in reader.records(copier.left_out):
            copier.copy(record)
    except TruncatedCaptureError as error:
        lost = reader.path.stat().st_size - reader.readable_bytes
        if lost:
            kind = f"bytes from byte {reader.readable_bytes}"
            reason = str(error.__cause__) or "the file ends within a record"
            copier.left_out.add(kind, reason, lost)
    return copier.finish()


class _Copier:
    """Records of one file to another, which numbers schemas and channels anew.

    Descriptions of the summary stand in for those that no record gave; only chunks have their CRC
    in every file.
    """

    def __init__(self, file: IO[bytes], summary: Sequence[Any]) -> None:
        from mcap.writer import Writer

        self._writer = Writer(file)
        self._writer.start(profile="ros2", library="rfly_suite")
        self._schemas = {0: 0}
        """Numbers in the new file by those in the old one; 0: no schema."""
        self._channels: dict[int, int] = {}
        self._summary = {(type(record), record.id): record for record in summary}
        self._messages = 0
        self.left_out = LeftOut()
        self._first_ns = 0
        self._last_ns = 0

    def copy(self, record: Any) -> None:
        """Copy one record; those of the index are made anew."""
        from mcap.records import Attachment, Channel, Message, Metadata, Schema

        writer = self._writer
        if isinstance(record, Schema) and record.id not in self._schemas:
            self._schemas[record.id] = writer.register_schema(
                record.name, record.encoding, record.data
            )
        elif isinstance(record, Channel) and record.id not in self._channels:
            self.copy(self._summary.get((Schema, record.schema_id)))
            schema = self._schemas.get(record.schema_id, 0)
            self._channels[record.id] = writer.register_channel(
                record.topic, record.message_encoding, schema, record.metadata
            )
        elif isinstance(record, Message):
            self._copy_message(record)
        elif isinstance(record, Attachment):
            writer.add_attachment(
                record.create_time, record.log_time, record.name, record.media_type, record.data
            )
        elif isinstance(record, Metadata):
            writer.add_metadata(record.name, record.metadata)

    def _copy_message(self, message: Any) -> None:
        from mcap.records import Channel

        if message.channel_id not in self._channels:
            self.copy(self._summary.get((Channel, message.channel_id)))
        if message.channel_id not in self._channels:
            kind = f"messages of channel {message.channel_id}"
            self.left_out.add(kind, "no record before them describes it")
            return

        time_ns = message.log_time
        is_first = not self._messages
        self._first_ns = time_ns if is_first else min(self._first_ns, time_ns)
        self._last_ns = time_ns if is_first else max(self._last_ns, time_ns)
        self._messages += 1
        channel = self._channels[message.channel_id]
        self._writer.add_message(
            channel, time_ns, message.data, message.publish_time, message.sequence
        )

    def finish(self) -> Recovery:
        """End the new file with its index."""
        for record in self._summary.values():
            self.copy(record)
        self._writer.finish()
        seconds = (self._last_ns - self._first_ns) / 1e9
        return Recovery(self._messages, len(self._channels), seconds, self.left_out)
