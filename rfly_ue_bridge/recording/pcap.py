"""Capture files of tcpdump and Wireshark: classic pcap in and out; pcapng is read.

Classic pcap: 24 bytes of header (magic, version, zone, accuracy, snapshot length, link type), then
records of 16 bytes (seconds, microseconds or nanoseconds, bytes kept, bytes on the wire) with their
data. The magic tells byte order and unit of time.
https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcap/

We write nanoseconds, little-endian, bare IPv4 (link type 101): no interface of ours has an Ethernet
address to tell.

A pcapng file is a row of blocks: type, total length, body, total length again. A section header
block says the byte order of what follows, an interface block link type and unit of time, an
enhanced packet block is one frame. All other blocks (names, statistics, comments, keys) are passed
over. https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcapng/
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from rfly_common.errors import CaptureError, TruncatedCaptureError
from rfly_common.files import Closing, open_regular
from rfly_ue_bridge.recording.datagrams import (
    RAW,
    CapturedFrame,
    DatagramExtractor,
    RecordedDatagram,
    to_ipv4,
)

SECTION_HEADER = b"\n\r\r\n"
"""how every pcapng file begins, in either byte order"""
MAX_BLOCK = 1 << 20
"""bytes of a block that is read; what is passed over may be longer"""
MAX_PASSED_OVER = 1 << 28
MAX_INTERFACES = 1024

_SECTION = 0x0A0D0D0A
_INTERFACE = 1
_SIMPLE_PACKET = 3
_OLD_PACKET = 2
_ENHANCED_PACKET = 6
_BYTE_ORDER_MAGIC = 0x1A2B3C4D
_OPTION_END = 0
_OPTION_RESOLUTION = 9
_OPTION_OFFSET = 14
_CHUNK = 1 << 16


class _Interface(NamedTuple):
    link_type: int
    ticks_per_second: int
    offset_s: int


def read_pcapng(file: BinaryIO, start: bytes) -> Iterator[CapturedFrame]:
    """The frames, after `start` (the first 4 bytes) has been read. Errors as
    `pcap_files.read_frames`.
    """
    order = "<"
    at = 0
    interfaces: list[_Interface] = []
    head = start + _read(file, 4, 4, at)
    while head:
        if len(head) < 8:
            raise TruncatedCaptureError(
                f"ends at byte {at + len(head)}, within the block that begins at byte {at}"
            )
        if head[:4] == SECTION_HEADER:
            magic = _read(file, 4, at + 8, at)
            order = _order_of(magic, at)
            interfaces = []
        kind, total = struct.unpack(f"{order}II", head)
        read = 12 if kind == _SECTION else 8
        limit = MAX_BLOCK if kind in (_INTERFACE, _ENHANCED_PACKET) else MAX_PASSED_OVER
        if total < read + 4 or total % 4 or total > limit:
            raise CaptureError(
                f"the block at byte {at} says it has {total} bytes; expected {read + 4} to {limit}"
            )
        length = total - read - 4
        body = b""
        if kind in (_INTERFACE, _ENHANCED_PACKET):
            body = _read(file, length, at + read, at)
        elif kind in (_SIMPLE_PACKET, _OLD_PACKET):
            name = (
                "a simple packet block, which has no time"
                if kind == _SIMPLE_PACKET
                else "an obsolete packet block"
            )
            raise CaptureError(f"at byte {at} is {name}; save the file anew with Wireshark")
        else:
            _skip(file, length, at + read, at)
        (again,) = struct.unpack(f"{order}I", _read(file, 4, at + total - 4, at))
        if again != total:
            raise CaptureError(
                f"the block at byte {at} has {total} bytes, and says {again} at its end"
            )
        if kind == _ENHANCED_PACKET:
            yield _frame(body, order, interfaces, at)
        elif kind == _INTERFACE:
            if len(interfaces) >= MAX_INTERFACES:
                raise CaptureError(
                    f"the block at byte {at} is interface {MAX_INTERFACES + 1}; that many are not taken"
                )
            interfaces.append(_interface(body, order, at))
        at += total
        head = file.read(8)


def _read(file: BinaryIO, size: int, position: int, begin: int, what: str = "block") -> bytes:
    data = file.read(size)
    if len(data) < size:
        end = position + len(data)
        raise TruncatedCaptureError(
            f"ends at byte {end}, within the {what} that begins at byte {begin}"
        )
    return data


def _skip(file: BinaryIO, size: int, position: int, block: int) -> None:
    while size:
        step = min(size, _CHUNK)
        _read(file, step, position, block)
        size = size - step
        position = position + step


def _order_of(magic: bytes, at: int) -> str:
    for order in "<>":
        if struct.unpack(f"{order}I", magic)[0] == _BYTE_ORDER_MAGIC:
            return order
    raise CaptureError(
        f"the section at byte {at} has the byte order mark {magic.hex(' ')}; expected 1a 2b 3c 4d"
    )


def _interface(body: bytes, order: str, at: int) -> _Interface:
    if len(body) < 8:
        raise CaptureError(
            f"the interface block at byte {at} has {len(body)} bytes of body; expected 8 or more"
        )
    (link_type,) = struct.unpack_from(f"{order}H", body)
    ticks = 1_000_000
    offset_s = 0
    position = 8
    while position + 4 <= len(body):
        code, length = struct.unpack_from(f"{order}HH", body, position)
        value = body[position + 4 : position + 4 + length]
        if code == _OPTION_END or len(value) < length:
            break
        if code == _OPTION_RESOLUTION and length == 1:
            exponent = value[0] & 0x7F
            if exponent > (63 if value[0] & 0x80 else 18):
                raise CaptureError(
                    f"the interface block at byte {at} counts time in too small a unit ({value[0]})"
                )
            ticks = 2**exponent if value[0] & 0x80 else 10**exponent
        elif code == _OPTION_OFFSET and length == 8:
            (offset_s,) = struct.unpack(f"{order}q", value)
        position += 4 + -(-length // 4) * 4
    return _Interface(link_type, ticks, offset_s)


def _frame(body: bytes, order: str, interfaces: list[_Interface], at: int) -> CapturedFrame:
    if len(body) < 20:
        raise CaptureError(
            f"the packet block at byte {at} has {len(body)} bytes of body; expected 20 or more"
        )
    number, high, low, kept, _ = struct.unpack_from(f"{order}IIIII", body)
    if number >= len(interfaces):
        raise CaptureError(
            f"the packet block at byte {at} is of interface {number}; described are {len(interfaces)}"
        )
    if kept > len(body) - 20:
        raise CaptureError(
            f"the packet block at byte {at} says it holds {kept} bytes; there are {len(body) - 20}"
        )
    interface = interfaces[number]
    ticks = high << 32 | low
    time_ns = (
        ticks * 1_000_000_000 // interface.ticks_per_second + interface.offset_s * 1_000_000_000
    )
    return CapturedFrame(time_ns, interface.link_type, body[20 : 20 + kept])


MAX_FRAME = 262_144
"""bytes of one record; tcpdump and Wireshark set the same limit"""
SNAPSHOT_LENGTH = 65_535

_NANOSECOND_MAGIC = 0xA1B23C4D
_MICROSECOND_MAGIC = 0xA1B2C3D4
_FILE_HEADER = struct.Struct("<IHHiIII")
_RECORD_HEADER = struct.Struct("<IIII")
_LAST_SECOND = 2**32 - 1


class PcapWriter:
    """Writes UDP datagrams to a binary file, which `close` leaves open; each `write` is one whole
    record.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.bytes = _FILE_HEADER.size
        """written so far"""
        file.write(_FILE_HEADER.pack(_NANOSECOND_MAGIC, 2, 4, 0, 0, SNAPSHOT_LENGTH, RAW))

    def write(self, datagram: RecordedDatagram) -> None:
        """Append one datagram. ValueError for a time before 1970 or after 2106, and as `to_ipv4`."""
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
    """The UDP datagrams of a pcap or pcapng file, read while they are asked for, in the order of
    the file.

    Iterating raises CaptureError for what is no such file, and TruncatedCaptureError, which names
    the offset, after the last whole record of a file that ends within one.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.size = self.path.stat().st_size
        self._file: BinaryIO = open_regular(self.path)
        self._extractor = DatagramExtractor()

    @property
    def position(self) -> int:
        """Bytes read so far, for a progress bar."""
        return self._file.tell()

    @property
    def skipped(self) -> Counter[str]:
        """What is no UDP datagram over IPv4, by reason (see `DatagramExtractor.skipped`)."""
        return self._extractor.skipped

    def __iter__(self) -> Iterator[RecordedDatagram]:
        """From the beginning, each time."""
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
    """The records of a pcap or pcapng file. Raises CaptureError and TruncatedCaptureError as
    `RecordingReader`.
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
    at = _FILE_HEADER.size
    while head := file.read(record.size):
        if len(head) < record.size:
            raise TruncatedCaptureError(
                f"ends at byte {at + len(head)}, within the record that begins at byte {at}"
            )
        seconds, ticks, kept, _ = record.unpack(head)
        if kept > MAX_FRAME:
            raise CaptureError(
                f"the record at byte {at} says it has {kept} bytes; at most {MAX_FRAME} are possible"
            )
        if ticks * tick_ns >= 1_000_000_000:
            raise CaptureError(
                f"the record at byte {at} has {ticks * tick_ns} ns within its second"
            )
        data = _read(file, kept, at + record.size, at, "record")
        at += record.size + kept
        yield CapturedFrame(seconds * 1_000_000_000 + ticks * tick_ns, link_type, data)
