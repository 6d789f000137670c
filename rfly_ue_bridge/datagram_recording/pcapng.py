# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Reader of pcapng, Wireshark's own format of capture files.

A pcapng file is a row of blocks: type, total length, body, total length again. A section header
block gives the byte order of the blocks after it, an interface block a link type and a unit of
time, and an enhanced packet block holds one frame. All other blocks (names, statistics, comments,
keys) are skipped. https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcapng/
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from rfly_common.errors import CaptureError, TruncatedCaptureError
from rfly_ue_bridge.datagram_recording.datagrams import CapturedFrame

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
