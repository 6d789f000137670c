# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A whole MCAP file, with its index, from one whose writer was killed."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rfly_common.errors import ConfigError, TruncatedCaptureError
from rfly_common.untrusted_files.mcap_reader import McapReader
from rfly_common.untrusted_files.reader_errors import LeftOut


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

    Raise ConfigError for a file that is whole already and for a target that exists (without
    `overwrite`), CaptureError for a file that is no recording, OSError if the disk is full.
    """
    if target.exists() and (not overwrite or target.samefile(source)):
        raise ConfigError(f"{target} exists; choose another name, or overwrite it")

    with McapReader(source) as reader:
        if reader.is_whole:
            raise ConfigError(f"{source} is whole: it has its index, and needs no recovery")

        with tempfile.NamedTemporaryFile(
            dir=target.parent, prefix=f".{target.name}.", delete=False
        ) as file:
            try:
                recovery = _copy(reader, file)
            except BaseException:
                os.unlink(file.name)
                raise

    umask = os.umask(0)
    os.umask(umask)
    os.chmod(file.name, 0o666 & ~umask)
    os.replace(file.name, target)
    return recovery


def _copy(reader: McapReader, file: IO[bytes]) -> Recovery:
    """Copy all records up to the end of the file."""
    copier = _Copier(file)
    try:
        for record in reader.records():
            copier.copy(record)
    except TruncatedCaptureError as error:
        lost = reader.path.stat().st_size - reader.readable_bytes
        if lost:
            kind = f"bytes from byte {reader.readable_bytes}"
            copier.left_out.add(kind, str(error.__cause__), lost)
    return copier.finish()


class _Copier:
    """Records of one file to another, which numbers schemas and channels anew."""

    def __init__(self, file: IO[bytes]) -> None:
        from mcap.writer import Writer

        self._writer = Writer(file)
        self._writer.start(profile="ros2", library="rfly_suite")
        self._schemas = {0: 0}
        """Numbers in the new file by those in the old one; 0: no schema."""
        self._channels: dict[int, int] = {}
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
        self._writer.finish()
        seconds = (self._last_ns - self._first_ns) / 1e9
        return Recovery(self._messages, len(self._channels), seconds, self.left_out)
