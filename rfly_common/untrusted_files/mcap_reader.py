# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Serialised messages of ROS 2 in MCAP files: whole ones, cut ones, foreign ones.

Types are defined as `ros2msg`, as IDL, or not at all. Specification: mcap.dev/spec and
mcap.dev/spec/registry ("ros2"). They need mcap, the extra `log`.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, BinaryIO

from rfly_common.config.marked_yaml import parse_yaml
from rfly_common.errors import CaptureError, ConfigError, TruncatedCaptureError
from rfly_common.files import Closing, open_regular
from rfly_common.imports import require
from rfly_common.untrusted_files.reader_errors import LeftOut, reader_errors

_SEPARATOR = "=" * 80 + "\n"


def definition_of(kind: str, encoding: str, text: str) -> str:
    """Return the schema `ros2msg` of a type, recorded as `text`.

    IDL is converted, and a type that was recorded without a definition (until ROS 2 Humble) has
    that of ROS's own packages; both need rosbags, the extra `bags`. Return "" if none is known.
    """
    if encoding == "ros2msg" and text:
        return text
    try:
        require("rosbags", "reading definitions in IDL")
        with reader_errors(CaptureError):
            store = _store_of(text) if text else _humble()
            return str(store.generate_msgdef(kind, ros_version=2)[0])
    except (ConfigError, CaptureError):
        return ""


def _store_of(idl: str) -> Any:
    """Return a store of the types in a text of IDL, with rosbag2's headings or without."""
    from rosbags.typesys import Stores, get_types_from_idl, get_typestore

    parts = [idl]
    if idl.startswith(f"{_SEPARATOR}IDL: "):
        parts = [part.partition("\n")[2] for part in idl.split(_SEPARATOR)[1:]]
    store = get_typestore(Stores.EMPTY)
    types: dict[str, Any] = {}
    for part in parts:
        types |= get_types_from_idl(part)
    store.register(types)
    return store


@cache
def _humble() -> Any:
    """Return ROS 2 Humble's types, the last whose recordings have no definitions."""
    from rosbags.typesys import Stores, get_typestore

    return get_typestore(Stores.ROS2_HUMBLE)


MAGIC = b"\x89MCAP0\r\n"
MOST_CHUNK_BYTES = 256_000_000
"""Bytes of an unpacked chunk; rosbag2 and this suite write a megabyte."""
_MOST_QOS = 100_000
"""Characters of a channel's QoS that are read; a profile has 400."""
_FOOTER = struct.Struct("<9xQ8xI8x")
"""Start of the summary and its CRC (0: none), between the record's head and the last magic."""

# rmw_qos_…_policy_e: rosbag2 reads these numbers in every release, the names from Jazzy up
_RELIABLE = (1, "reliable")
_TRANSIENT_LOCAL = (1, "transient_local")


@dataclass(frozen=True)
class Topic:
    """Facts of a topic that recordings and viewers need."""

    name: str
    """Name with its leading slash."""
    type: str
    """Type, such as `rfly_suite/msg/TerrainMap`."""
    definition: str
    """Schema `ros2msg`: the text of the type and, after lines of =, of all types within it.

    Empty if the recording has none.
    """
    latched: bool = False
    """Transient local durability: late subscribers get the last messages."""
    reliable: bool = True


@dataclass(frozen=True)
class RecordedMessage:
    """One message of a recording."""

    time_ns: int
    """Time of receipt."""
    channel: int
    data: bytes


class McapReader(Closing):
    """Messages of a file in the order of time, as often as it is iterated.

    `topics` holds their topics by channel number. A file without an index is read in its own order:
    one whose writer was killed up to its end, where iterating it ends with a TruncatedCaptureError.
    Messages other than ROS 2's are left out; `left_out` says why, by topic.

    With `recovering`, topics and counts are those of all undamaged chunks, not only of those before
    the first damaged one.

    Raise CaptureError for a file that cannot be read.
    """

    def __init__(self, path: Path, *, recovering: bool = False) -> None:
        require("mcap", "reading MCAP files")

        self.path = path
        self._file: BinaryIO = open_regular(path)
        self.position = 0
        """Messages read in this pass."""
        self.readable_bytes = 0
        """End of the last record that was read whole, of a file without an end."""

        summary = self._summary()
        self.is_whole = summary is not None and _has_index(summary)
        """True if the file has its end, with an index of all messages and their topics."""
        if self.is_whole:
            channels = summary.channels
            schemas = summary.schemas
            self.counts: dict[int, int] = summary.statistics.channel_message_counts
            """Number of messages by channel."""
            for index in summary.chunk_indexes:
                _check_chunk(path, index.uncompressed_size)
        else:
            channels, schemas, self.counts = self._scan(LeftOut() if recovering else None)

        self.descriptions: tuple[Any, ...] = (*schemas.values(), *channels.values())
        """Records of schemas and channels."""
        self.size = sum(self.counts.values())
        """Number of messages in the file."""
        self.topics: dict[int, Topic] = {}
        self.left_out: dict[str, str] = {}
        """Reasons by topic."""
        for number in self.counts.keys() - channels.keys():
            self.left_out[f"channel {number}"] = "no record describes its messages"
        for number, channel in channels.items():
            schema = schemas.get(channel.schema_id)
            reason = _why_left_out(channel, schema)
            if reason:
                self.left_out[channel.topic] = reason
            else:
                self.topics[number] = _topic(channel, schema)

    def __iter__(self) -> Iterator[RecordedMessage]:
        """Yield the messages of ROS 2 topics."""
        return self.messages(self.topics)

    def messages(self, channels: Collection[int]) -> Iterator[RecordedMessage]:
        """Yield the messages of some channels."""
        from mcap.records import Message

        self.position = 0
        for record in self._in_time_order() if self.is_whole else self.records():
            if isinstance(record, Message):
                self.position += 1
                if record.channel_id in channels:
                    yield RecordedMessage(record.log_time, record.channel_id, record.data)

    def metadata(self, name: str) -> dict[str, str]:
        """Return the entries of the metadata of a name; none if there are none."""
        from mcap.reader import SeekingReader
        from mcap.records import Metadata

        self._file.seek(0)
        records: Iterator[Any] = self.records(LeftOut())
        if self.is_whole:
            records = SeekingReader(self._file).iter_metadata()
        with (
            suppress(TruncatedCaptureError),
            reader_errors(lambda text: CaptureError(f"{self.path}: {text}")),
        ):
            for record in records:
                if isinstance(record, Metadata) and record.name == name:
                    return dict(record.metadata)
        return {}

    def _in_time_order(self) -> Iterator[Any]:
        """Yield the messages of a complete file in the order of time."""
        from mcap.reader import SeekingReader

        self._file.seek(0)
        with reader_errors(
            lambda text: CaptureError(
                f"{self.path}: damaged before byte {self._file.tell()}: {text}; rfly record "
                "--recover copies the rest"
            )
        ):
            for _, _, message in SeekingReader(self._file, validate_crcs=True).iter_messages():
                yield message

    def records(self, damaged: LeftOut | None = None) -> Iterator[Any]:
        """Yield the records of a file in its order, without those of its index and summary.

        Damaged ones are left out if `damaged` is given, which counts their bytes. Raise
        TruncatedCaptureError where the file has no end, or at a damaged place.
        """
        from mcap.data_stream import ReadDataStream
        from mcap.exceptions import EndOfFile, InvalidMagic
        from mcap.opcode import Opcode
        from mcap.stream_reader import read_magic

        copied = (
            Opcode.SCHEMA,
            Opcode.CHANNEL,
            Opcode.MESSAGE,
            Opcode.CHUNK,
            Opcode.ATTACHMENT,
            Opcode.METADATA,
        )
        self._file.seek(0)
        self.readable_bytes = 0
        size = os.fstat(self._file.fileno()).st_size
        stream = ReadDataStream(self._file, calculate_crc=True)

        with reader_errors(
            lambda _: TruncatedCaptureError(
                f"{self.path} has no end, as if its writer was killed: it can be read to byte "
                f"{self.readable_bytes}; rfly record --recover makes a whole file of it"
            )
        ):
            try:
                read_magic(stream)
            except InvalidMagic as error:
                self._file.close()
                raise CaptureError(f"{self.path}: no MCAP file: its first bytes differ") from error

            while True:
                checksum = stream.checksum()
                head = stream.read(9)
                kind, length = struct.unpack("<BQ", head)
                body = stream.read(length) if length <= size else b""
                if len(body) < length:
                    raise EndOfFile
                if kind == Opcode.DATA_END:
                    if int.from_bytes(body[:4], "little") not in (0, checksum):
                        raise ValueError("the checksum of the data differs")
                    self._file.seek(-len(MAGIC), os.SEEK_END)
                    if self._file.read() != MAGIC:
                        raise EndOfFile
                    return

                # a record is parsed by itself, so that a damaged one does not move the next
                if kind in copied and damaged is not None:
                    yield from _undamaged(self.path, head + body, damaged)
                elif kind in copied:
                    yield from _unpacked(self.path, head + body)
                self.readable_bytes = self._file.tell()

    def _summary(self) -> Any:
        """Return the summary; None if there is none, or if it is damaged."""
        from mcap.reader import SeekingReader

        try:
            with (
                reader_errors(CaptureError),
                mmap(self._file.fileno(), 0, access=ACCESS_READ) as data,
            ):
                summary = SeekingReader(self._file).get_summary()
                start, crc = _FOOTER.unpack(data[-_FOOTER.size :])
                # the CRC covers all before itself; the last magic follows it
                sound = not crc or crc == zlib.crc32(memoryview(data)[start : -4 - len(MAGIC)])
                return summary if sound else None
        except CaptureError:
            return None

    def _scan(
        self, damaged: LeftOut | None
    ) -> tuple[dict[int, Any], dict[int, Any], dict[int, int]]:
        """Return (channels, schemas, number of messages by channel) of a file without a summary."""
        from mcap.records import Channel, Message, Schema

        channels = dict[int, Any]()
        schemas = dict[int, Any]()
        messages = Counter[int]()
        try:
            for record in self.records(damaged):
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


def _check_chunk(path: Path, size: int) -> None:
    """Raise CaptureError for a chunk of more than MOST_CHUNK_BYTES."""
    if size > MOST_CHUNK_BYTES:
        raise CaptureError(
            f"{path}: a chunk of {size:,} bytes, expected at most {MOST_CHUNK_BYTES:,}"
        )


def _unpacked(path: Path, framed: bytes) -> list[Any]:
    """Return a record, or those of a chunk."""
    from mcap.records import Chunk
    from mcap.stream_reader import StreamReader, breakup_chunk

    record = next(StreamReader(BytesIO(framed), skip_magic=True, emit_chunks=True).records)
    if not isinstance(record, Chunk):
        return [record]
    _check_chunk(path, record.uncompressed_size)
    return list(breakup_chunk(record, validate_crc=True))


def _undamaged(path: Path, framed: bytes, damaged: LeftOut) -> list[Any]:
    """Return a record, or those of a chunk; none, which is counted, if it cannot be unpacked."""
    from mcap.opcode import Opcode

    try:
        with reader_errors(CaptureError):
            return _unpacked(path, framed)
    except CaptureError as error:
        kind = "chunks" if framed[0] == Opcode.CHUNK else "records"
        damaged.add(f"bytes of damaged {kind}", str(error), len(framed))
        return []


def _has_index(summary: Any) -> bool:
    """Return whether a summary has all that it may have: counts, chunks, channels and schemas.

    Each of its parts is optional (mcap.dev/spec).
    """
    statistics = summary.statistics
    if statistics is None:
        return False
    if not statistics.message_count:
        return True
    counted = statistics.channel_message_counts
    described = all(
        number in summary.channels and summary.channels[number].schema_id in (0, *summary.schemas)
        for number in counted
    )
    return bool(counted) and bool(summary.chunk_indexes) and described


def _why_left_out(channel: Any, schema: Any) -> str:
    """Return why the messages of a channel are none of ROS 2; empty if they are."""
    if channel.message_encoding != "cdr":
        return f"its messages are {channel.message_encoding!r}, expected 'cdr', ROS 2's"
    if schema is None:
        return "it has no schema, so the type of its messages is unknown"
    if schema.encoding not in ("ros2msg", "ros2idl", "omgidl", ""):
        return f"its schema is {schema.encoding!r}, expected 'ros2msg'"
    return ""


def _topic(channel: Any, schema: Any) -> Topic:
    """Return a channel's topic, with the QoS that our and rosbag2's files hold.

    It is latched only if all publishers were.
    """
    try:
        with reader_errors(CaptureError):
            text = channel.metadata.get("offered_qos_profiles") or "[]"
            profiles = parse_yaml(text[:_MOST_QOS], "offered_qos_profiles").value
            latched = bool(profiles) and all(p["durability"] in _TRANSIENT_LOCAL for p in profiles)
            reliable = all(p["reliability"] in _RELIABLE for p in profiles)
    except (CaptureError, ConfigError):
        latched = False
        reliable = True
    definition = definition_of(schema.name, schema.encoding, schema.data.decode(errors="replace"))
    return Topic(channel.topic, schema.name, definition, latched, reliable)
