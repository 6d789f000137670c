# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Capture files of tcpdump and Wireshark: classic pcap is written and read, pcapng read.

A classic pcap file has 24 bytes of header (magic, version, zone, accuracy, snapshot length, link
type). Each record has 16 bytes (seconds, microseconds or nanoseconds, bytes kept, bytes on the
wire) and its data. The magic gives the byte order and the unit of time.
https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcap/

A pcapng file is a row of blocks: type, total length, body, total length again. A section header
block gives the byte order of the blocks after it, an interface block a link type and a unit of
time, and an enhanced packet block holds one frame. All other blocks (names, statistics, comments,
keys) are skipped. https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcapng/

Files are written little-endian, with nanoseconds, as bare IPv4 (link type 101): none of our
interfaces has an Ethernet address.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

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

MAX_FRAME = 262_144
"""Largest record, bytes; tcpdump and Wireshark set the same limit."""
SNAPSHOT_LENGTH = 65_535
"""Snapshot length that our files state, bytes."""

_NANOSECOND_MAGIC = 0xA1B23C4D
_MICROSECOND_MAGIC = 0xA1B2C3D4
_FILE_HEADER = struct.Struct("<IHHiIII")
_RECORD_HEADER = struct.Struct("<IIII")
_LAST_SECOND = 2**32 - 1

SECTION_HEADER = b"\n\r\r\n"
"""First bytes of every pcapng file, in either byte order."""
MAX_BLOCK = 1 << 20
"""Largest block that is read, bytes."""
MAX_SKIPPED_BLOCK = 1 << 28
"""Largest block that is skipped, bytes."""
MAX_INTERFACES = 1024

# types of blocks
_SECTION = 0x0A0D0D0A
_INTERFACE = 1
_OLD_PACKET = 2
_SIMPLE_PACKET = 3
_ENHANCED_PACKET = 6

_READ = frozenset({_INTERFACE, _ENHANCED_PACKET})
_WITHOUT_TIME_OR_OLD = {
    _SIMPLE_PACKET: "a simple packet block, which has no time",
    _OLD_PACKET: "an obsolete packet block",
}
_BYTE_ORDER_MAGIC = 0x1A2B3C4D

# by byte order
_HEAD = {order: struct.Struct(f"{order}II") for order in "<>"}
_TOTAL = {order: struct.Struct(f"{order}I") for order in "<>"}
_PACKET = {order: struct.Struct(f"{order}IIIII") for order in "<>"}

# options of an interface block
_OPTION_END = 0
_OPTION_RESOLUTION = 9
_OPTION_OFFSET = 14

_CHUNK = 1 << 16


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


class _Interface(NamedTuple):
    """Interface on which frames were captured."""

    link_type: int
    ticks_per_second: int
    offset_s: int


def read_pcapng(file: BinaryIO, start: bytes) -> Iterator[CapturedFrame]:
    """Yield the frames, after `start` (the first 4 bytes) has been read.

    Errors as `pcap.read_frames`.
    """
    order = "<"
    begin = 0
    interfaces: list[_Interface] = []
    head = start + read_exactly(file, 4, 4, begin)
    while head:
        if len(head) < 8:
            raise TruncatedCaptureError(
                f"ends at byte {begin + len(head)}, within the block that begins at byte {begin}"
            )
        if head[:4] == SECTION_HEADER:
            order = _byte_order(read_exactly(file, 4, begin + 8, begin), begin)
            interfaces = []

        kind, total, body = _read_block(file, head, order, begin)
        if kind == _ENHANCED_PACKET:
            yield _frame(body, order, interfaces, begin)
        elif kind == _INTERFACE:
            if len(interfaces) >= MAX_INTERFACES:
                raise CaptureError(
                    f"the block at byte {begin} is interface {MAX_INTERFACES + 1}; "
                    f"at most {MAX_INTERFACES} are read"
                )
            interfaces.append(_interface(body, order, begin))

        begin += total
        head = file.read(8)


def read_exactly(
    file: BinaryIO, size: int, position: int, begin: int, unit: str = "block"
) -> bytes:
    """Return the next bytes, which begin at `position` in the file.

    TruncatedCaptureError where there are fewer: it names the end of the file, and the unit (block
    or record) that begins at `begin`.
    """
    data = file.read(size)
    if len(data) < size:
        end = position + len(data)
        raise TruncatedCaptureError(
            f"ends at byte {end}, within the {unit} that begins at byte {begin}"
        )
    return data


def _read_block(file: BinaryIO, head: bytes, order: str, begin: int) -> tuple[int, int, bytes]:
    """Return type, total length and body of the block at `begin`.

    The body of a block that is skipped is empty.
    """
    kind, total = _HEAD[order].unpack(head)
    bytes_read = 12 if kind == _SECTION else 8
    limit = MAX_BLOCK if kind in _READ else MAX_SKIPPED_BLOCK
    if total < bytes_read + 4 or total % 4 or total > limit:
        raise CaptureError(
            f"the block at byte {begin} says it has {total} bytes; "
            f"expected {bytes_read + 4} to {limit}"
        )
    if kind in _WITHOUT_TIME_OR_OLD:
        raise CaptureError(
            f"at byte {begin} is {_WITHOUT_TIME_OR_OLD[kind]}; save the file anew with Wireshark"
        )

    position = begin + bytes_read
    if kind not in _READ:
        position = _skip(file, total - bytes_read - 4, position, begin)
    rest = read_exactly(file, begin + total - position, position, begin)

    (total_again,) = _TOTAL[order].unpack_from(rest, len(rest) - 4)
    if total_again != total:
        raise CaptureError(
            f"the block at byte {begin} has {total} bytes, and says {total_again} at its end"
        )
    return kind, total, rest[:-4]


def _skip(file: BinaryIO, size: int, position: int, begin: int) -> int:
    """Read on without keeping the bytes, and return the position after them."""
    while size:
        step = min(size, _CHUNK)
        read_exactly(file, step, position, begin)
        size -= step
        position += step
    return position


def _byte_order(magic: bytes, begin: int) -> str:
    for order in "<>":
        if struct.unpack(f"{order}I", magic)[0] == _BYTE_ORDER_MAGIC:
            return order
    raise CaptureError(
        f"the section at byte {begin} has the byte order mark {magic.hex(' ')}; "
        "expected 1a 2b 3c 4d"
    )


def _interface(body: bytes, order: str, begin: int) -> _Interface:
    if len(body) < 8:
        raise CaptureError(
            f"the interface block at byte {begin} has {len(body)} bytes of body; expected 8 or more"
        )
    (link_type,) = struct.unpack_from(f"{order}H", body)
    ticks_per_second = 1_000_000
    offset_s = 0

    # options: code, length, value, filled to a multiple of 4 bytes
    position = 8
    while position + 4 <= len(body):
        code, length = struct.unpack_from(f"{order}HH", body, position)
        value = body[position + 4 : position + 4 + length]
        if code == _OPTION_END or len(value) < length:
            break
        if code == _OPTION_RESOLUTION and length == 1:
            ticks_per_second = _ticks_per_second(value[0], begin)
        elif code == _OPTION_OFFSET and length == 8:
            (offset_s,) = struct.unpack(f"{order}q", value)
        position += 4 + -(-length // 4) * 4

    return _Interface(link_type, ticks_per_second, offset_s)


def _ticks_per_second(resolution: int, begin: int) -> int:
    """Return the unit of time: a negative power of 2 if the highest bit is set, else of 10."""
    base = 2 if resolution & 0x80 else 10
    exponent = resolution & 0x7F
    if exponent > (63 if base == 2 else 18):
        raise CaptureError(
            f"the interface block at byte {begin} counts time in too small a unit ({resolution})"
        )
    return base**exponent


def _frame(body: bytes, order: str, interfaces: list[_Interface], begin: int) -> CapturedFrame:
    if len(body) < 20:
        raise CaptureError(
            f"the packet block at byte {begin} has {len(body)} bytes of body; expected 20 or more"
        )
    number, high, low, captured, _ = _PACKET[order].unpack_from(body)
    if number >= len(interfaces):
        raise CaptureError(
            f"the packet block at byte {begin} is of interface {number}; "
            f"described are {len(interfaces)}"
        )
    if captured > len(body) - 20:
        raise CaptureError(
            f"the packet block at byte {begin} says it holds {captured} bytes; "
            f"there are {len(body) - 20}"
        )

    interface = interfaces[number]
    ticks = high << 32 | low
    since_offset_ns = ticks * 1_000_000_000 // interface.ticks_per_second
    time_ns = since_offset_ns + interface.offset_s * 1_000_000_000
    return CapturedFrame(time_ns, interface.link_type, body[20 : 20 + captured])
