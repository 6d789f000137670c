# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Capture files of tcpdump and Wireshark: classic pcap is written and read, pcapng read.

A classic pcap file has 24 bytes of header (magic, version, zone, accuracy, snapshot length, link
type). Each record has 16 bytes (seconds, microseconds or nanoseconds, bytes kept, bytes on the
wire) and its data. The magic gives the byte order and the unit of time.
https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcap/

Files are written little-endian, with nanoseconds, as bare IPv4 (link type 101): none of our
interfaces has an Ethernet address.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from rfly_common.errors import CaptureError, TruncatedCaptureError
from rfly_common.files import Closing, open_regular
from rfly_common.untrusted_files.reader_errors import LeftOut
from rfly_ue_bridge.datagram_recording.datagrams import (
    RAW,
    CapturedFrame,
    DatagramExtractor,
    RecordedDatagram,
    to_ipv4,
)
from rfly_ue_bridge.datagram_recording.pcapng import SECTION_HEADER, read_exactly, read_pcapng

MAX_FRAME = 262_144
"""Largest record, bytes; tcpdump and Wireshark set the same limit."""
SNAPSHOT_LENGTH = 65_535
"""Snapshot length that our files state, bytes."""

_NANOSECOND_MAGIC = 0xA1B23C4D
_MICROSECOND_MAGIC = 0xA1B2C3D4
_FILE_HEADER = struct.Struct("<IHHiIII")
_RECORD_HEADER = struct.Struct("<IIII")
_LAST_SECOND = 2**32 - 1


class PcapWriter:
    """Writer of UDP datagrams to a binary file, which `close` leaves open.

    Each `write` is one whole record.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.bytes = _FILE_HEADER.size
        """Bytes written."""
        file.write(_FILE_HEADER.pack(_NANOSECOND_MAGIC, 2, 4, 0, 0, SNAPSHOT_LENGTH, RAW))

    def write(self, datagram: RecordedDatagram) -> None:
        """Append one datagram.

        ValueError for a time before 1970 or after 2106, and as `to_ipv4`.
        """
        seconds, nanoseconds = divmod(datagram.time_ns, 1_000_000_000)
        if not 0 <= seconds <= _LAST_SECOND:
            raise ValueError(
                f"time_ns: {datagram.time_ns}, a pcap file holds 0 to {_LAST_SECOND} s"
            )

        packet = to_ipv4(datagram)
        self._file.write(
            _RECORD_HEADER.pack(seconds, nanoseconds, len(packet), len(packet)) + packet
        )
        self.bytes += _RECORD_HEADER.size + len(packet)

    def flush(self) -> None:
        """Hand everything to the system, so that a reader sees it."""
        self._file.flush()


class RecordingReader(Closing):
    """UDP datagrams of a pcap or pcapng file, in the order of the file, read as they are needed.

    Iterating raises CaptureError for a file of another kind. If a file ends within a record, it
    raises TruncatedCaptureError, which names the offset, after the last whole record.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.size = self.path.stat().st_size
        self._file: BinaryIO = open_regular(self.path)
        self._extractor = DatagramExtractor()

    @property
    def position(self) -> int:
        """Bytes read, for a progress bar."""
        return self._file.tell()

    @property
    def skipped(self) -> LeftOut:
        """Number of frames without a UDP datagram over IPv4, by reason.

        The reasons are those of `DatagramExtractor.skipped`.
        """
        return self._extractor.skipped

    def __iter__(self) -> Iterator[RecordedDatagram]:
        """Yield the datagrams from the beginning, each time."""
        self._file.seek(0)
        self._extractor.skipped.clear()
        try:
            yield from self._extractor.datagrams(read_frames(self._file))
        except CaptureError as error:
            self._extractor.drop_pending()
            raise type(error)(f"{self.path}: {error}") from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_frames(file: BinaryIO) -> Iterator[CapturedFrame]:
    """Yield the records of a pcap or pcapng file.

    Raises CaptureError and TruncatedCaptureError as `RecordingReader`.
    """
    start = file.read(4)
    if len(start) < 4:
        raise TruncatedCaptureError(
            f"{len(start)} bytes are no recording; expected a pcap or pcapng file"
        )
    if start == SECTION_HEADER:
        yield from read_pcapng(file, start)
        return

    for order in "<>":
        (magic,) = struct.unpack(f"{order}I", start)
        if magic in (_MICROSECOND_MAGIC, _NANOSECOND_MAGIC):
            yield from _read_pcap(file, order, 1 if magic == _NANOSECOND_MAGIC else 1000)
            return
    raise CaptureError(f"begins with {start.hex(' ')}: neither a pcap nor a pcapng file")


def _read_pcap(file: BinaryIO, order: str, tick_ns: int) -> Iterator[CapturedFrame]:
    header = file.read(_FILE_HEADER.size - 4)
    if len(header) < _FILE_HEADER.size - 4:
        raise TruncatedCaptureError(
            f"ends at byte {4 + len(header)}, within the header of {_FILE_HEADER.size} bytes"
        )
    major, minor, _, _, _, network = struct.unpack(f"{order}HHiIII", header)
    if (major, minor) != (2, 4):
        raise CaptureError(f"pcap version {major}.{minor}; expected 2.4, the only one in use")
    link_type = network & 0xFFFF  # above are flags and the length of a frame check sequence

    record = struct.Struct(f"{order}IIII")
    begin = _FILE_HEADER.size
    while head := file.read(record.size):
        if len(head) < record.size:
            raise TruncatedCaptureError(
                f"ends at byte {begin + len(head)}, within the record that begins at byte {begin}"
            )
        seconds, ticks, captured, _ = record.unpack(head)
        if captured > MAX_FRAME:
            raise CaptureError(
                f"the record at byte {begin} says it has {captured} bytes; "
                f"at most {MAX_FRAME} are possible"
            )
        if ticks * tick_ns >= 1_000_000_000:
            raise CaptureError(
                f"the record at byte {begin} has {ticks * tick_ns} ns within its second"
            )

        data = read_exactly(file, captured, begin + record.size, begin, "record")
        begin += record.size + captured
        yield CapturedFrame(seconds * 1_000_000_000 + ticks * tick_ns, link_type, data)
