# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Recordings of ROS 2 topics: MCAP files, .db3 files, and folders of `ros2 bag record`.

MCAP files need the extra `log`, .db3 files rosbags, the extra `bags`.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml

from rfly_common.config.documents import read_limited
from rfly_common.errors import CaptureError, TruncatedCaptureError
from rfly_common.files import Closing, open_regular
from rfly_common.imports import require
from rfly_common.untrusted_files.mcap_reader import (
    MAGIC,
    MOST_CHUNK_BYTES,
    McapReader,
    RecordedMessage,
    Topic,
    definition_of,
)
from rfly_common.untrusted_files.reader_errors import reader_errors

METADATA = "metadata.yaml"
_MOST_METADATA = 16_000_000
"""Bytes of metadata.yaml; a bag of 1,000 topics and files has 500 kB."""
_LEAST_FREE = 1_000_000_000
"""Space on the disk that unpacked files leave, bytes."""
_BLOCK = 1 << 20

_SQLITE = b"SQLite format 3\0"
_ROS1 = b"#ROSBAG "
_ZSTD = b"\x28\xb5\x2f\xfd"
_ENDINGS = (".mcap", ".db3", ".mcap.zstd", ".db3.zstd")


def is_bag(path: Path) -> bool:
    """Return whether a path is a folder, or a file that begins as a recording of topics does.

    An empty file, of a recorder that was killed, goes by its ending. Raise OSError.
    """
    if path.is_dir():
        return True
    start = _start(path)
    is_named = not start and path.name.lower().endswith(_ENDINGS)
    return is_named or start.startswith((MAGIC, _SQLITE, _ROS1, _ZSTD))


def open_bag(path: Path) -> Bag:
    """Open a recording. Raise CaptureError for one that cannot be read, OSError."""
    return Bag(path, _files_in(path) if path.is_dir() else [path])


class Bag(Closing):
    """Messages of a recording in one or several files, as often as it is iterated.

    `topics` holds their topics by number. Iterating a file whose writer was killed ends with a
    TruncatedCaptureError, after all other files.
    """

    def __init__(self, path: Path, files: Sequence[Path]) -> None:
        self.path = path
        self.topics: dict[int, Topic] = {}
        self.counts: dict[int, int] = {}
        """Number of messages by topic."""
        self.left_out: dict[str, str] = {}
        """Reasons by topic, of messages that are none of ROS 2."""
        self.position = 0
        """Messages read in this pass."""

        self._stack = ExitStack()
        self._parts: list[McapReader | Db3Reader] = []
        self._numbers: list[dict[int, int]] = []
        """Numbers of topics by those of each file."""
        try:
            for file in files:
                part = _open_file(file, self._stack)
                self._stack.callback(part.close)
                self._add(part)
        except BaseException:
            self._stack.close()
            raise
        self.size = sum(self.counts.values())
        """Number of messages."""

    def _add(self, part: McapReader | Db3Reader) -> None:
        known = {(t.name, t.type, t.definition): number for number, t in self.topics.items()}
        numbers = {}
        for channel, topic in part.topics.items():
            number = known.setdefault((topic.name, topic.type, topic.definition), len(known))
            self.topics.setdefault(number, topic)
            self.counts[number] = self.counts.get(number, 0) + part.counts.get(channel, 0)
            numbers[channel] = number
        self.left_out |= part.left_out
        self._parts.append(part)
        self._numbers.append(numbers)

    def __iter__(self) -> Iterator[RecordedMessage]:
        """Yield all messages."""
        return self.messages(self.topics)

    def messages(self, topics: Collection[int]) -> Iterator[RecordedMessage]:
        """Yield the messages of some topics, file by file."""
        self.position = 0
        cut: TruncatedCaptureError | None = None
        for part, numbers in zip(self._parts, self._numbers, strict=True):
            before = self.position
            wanted = [channel for channel, number in numbers.items() if number in topics]
            try:
                for message in part.messages(wanted):
                    self.position = before + part.position
                    data = message.data
                    if data.startswith(_ZSTD):
                        data = _unpacked(part.path, data)
                    yield RecordedMessage(message.time_ns, numbers[message.channel], data)
            except TruncatedCaptureError as error:
                cut = cut or error
        if cut is not None:
            raise cut

    def metadata(self, name: str) -> dict[str, str]:
        """Return the entries of an MCAP file's metadata of a name; none if there are none."""
        for part in self._parts:
            found = part.metadata(name)
            if found:
                return found
        return {}

    def close(self) -> None:
        """Close all files, and remove those that were unpacked."""
        self._stack.close()


class Db3Reader(Closing):
    """Messages of a .db3 file, read by rosbags, with the attributes of `McapReader`."""

    def __init__(self, path: Path) -> None:
        require("rosbags", "reading .db3 files")
        from rosbags.interfaces import MessageDefinitionFormat
        from rosbags.rosbag2 import Reader

        self.path = path
        self.position = 0
        self._opened = ExitStack()
        open_regular(path).close()
        with reader_errors(self._refusal):
            self._reader: Any = self._opened.enter_context(Reader(path))
            self._connections: dict[int, Any] = {each.id: each for each in self._reader.connections}

            encodings = {
                MessageDefinitionFormat.MSG: "ros2msg",
                MessageDefinitionFormat.IDL: "ros2idl",
            }
            self.topics: dict[int, Topic] = {}
            self.left_out: dict[str, str] = {}
            for number, each in self._connections.items():
                encoding = each.ext.serialization_format
                if encoding != "cdr":
                    reason = f"its messages are {encoding!r}, expected 'cdr', ROS 2's"
                    self.left_out[each.topic] = reason
                    continue
                qos = each.ext.offered_qos_profiles
                self.topics[number] = Topic(
                    each.topic,
                    each.msgtype,
                    definition_of(
                        each.msgtype, encodings.get(each.msgdef.format, ""), each.msgdef.data
                    ),
                    bool(qos) and all(p.durability.name == "TRANSIENT_LOCAL" for p in qos),
                    all(p.reliability.name == "RELIABLE" for p in qos),
                )
            self.counts = {number: each.msgcount for number, each in self._connections.items()}

    def messages(self, channels: Collection[int]) -> Iterator[RecordedMessage]:
        """Yield the messages of some channels in the order of time."""
        self.position = 0
        wanted = [self._connections[number] for number in channels]
        if not wanted:
            return
        with reader_errors(self._refusal):
            for connection, time_ns, data in self._reader.messages(wanted):
                self.position += 1
                yield RecordedMessage(time_ns, connection.id, bytes(data))

    def metadata(self, _name: str) -> dict[str, str]:
        """Return nothing: only MCAP files have metadata of their own."""
        return {}

    def close(self) -> None:
        """Close the file."""
        self._opened.close()

    def _refusal(self, reason: str) -> CaptureError:
        return CaptureError(f"{self.path}: {reason}; expected a .db3 file of ros2 bag record")


def _files_in(folder: Path) -> list[Path]:
    """Return the files of a bag: those that metadata.yaml names, or all of one name and number.

    The recorder writes metadata.yaml at its end. Raise CaptureError.
    """
    described = folder / METADATA
    if described.exists():
        data = read_limited(described, "metadata", _MOST_METADATA)
        with reader_errors(
            lambda reason: CaptureError(f"{described}: {reason}; expected that of ros2 bag record")
        ):
            described_files = yaml.safe_load(data)["rosbag2_bagfile_information"]
            names = described_files["relative_file_paths"]
            files = [folder / Path(name).name for name in names]
        missing = [file.name for file in files if not file.exists()]
        if missing:
            raise CaptureError(f"{described} names {missing[0]}, which is not there")
        return files

    files = [file for file in folder.iterdir() if file.name.lower().endswith(_ENDINGS)]
    if not files:
        raise CaptureError(
            f"{folder}: neither {METADATA} nor an .mcap or .db3 file; "
            "expected a folder of ros2 bag record"
        )
    names = sorted({re.sub(r"_\d+$", "", file.name.partition(".")[0]) for file in files})
    if len(names) > 1:
        raise CaptureError(
            f"{folder}: no {METADATA}, and several recordings ({', '.join(names[:5])}); choose one"
        )
    return sorted(files, key=lambda file: [int(n) for n in re.findall(r"\d+", file.name)])


def _open_file(path: Path, stack: ExitStack) -> McapReader | Db3Reader:
    """Open one file; what has to be unpacked for it is removed with the stack."""
    if not path.is_file():
        open_regular(path).close()
    start = _start(path)
    if start.startswith(_ZSTD):
        path = _unpacked_file(path, stack)
        start = _start(path)
    if start.startswith(_ROS1):
        raise CaptureError(
            f"{path}: a bag of ROS 1; convert it: rosbags-convert --src {path} "
            f"--dst {path.with_suffix('')}"
        )
    return Db3Reader(path) if start.startswith(_SQLITE) else McapReader(path)


def _start(path: Path) -> bytes:
    with open_regular(path) as file:
        return file.read(len(_SQLITE))


def _unpacked_file(path: Path, stack: ExitStack) -> Path:
    """Unpack a file of `--compression-mode file` into a temporary folder. Raise CaptureError."""
    from zstandard import ZstdDecompressor

    require("mcap", "reading compressed bags")
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    target = folder / (path.stem if path.suffix.lower() == ".zstd" else path.name)
    with (
        open_regular(path) as file,
        target.open("wb") as out,
        reader_errors(lambda reason: CaptureError(f"{path}: {reason}; expected zstd")),
    ):
        for block in ZstdDecompressor().read_to_iter(file, write_size=_BLOCK):
            if shutil.disk_usage(folder).free < _LEAST_FREE:
                raise CaptureError(f"{path}: unpacked it is too large for the disk of {folder}")
            out.write(block)
    return target


def _unpacked(path: Path, data: bytes) -> bytes:
    """Unpack a message of `--compression-mode message`. Raise CaptureError."""
    from zstandard import ZstdDecompressor, frame_content_size

    with reader_errors(lambda reason: CaptureError(f"{path}: a packed message: {reason}")):
        size = frame_content_size(data)
        if size > MOST_CHUNK_BYTES:
            raise CaptureError(f"{path}: a message of {size:,} bytes, unpacked")
        return ZstdDecompressor().decompress(data, max_output_size=MOST_CHUNK_BYTES)
