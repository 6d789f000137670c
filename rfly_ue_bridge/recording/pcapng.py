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
from rfly_ue_bridge.recording.datagrams import CapturedFrame

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
    head = start + read_exactly(file, 4, 4, at)
    while head:
        if len(head) < 8:
            raise TruncatedCaptureError(
                f"ends at byte {at + len(head)}, within the block that begins at byte {at}"
            )
        if head[:4] == SECTION_HEADER:
            magic = read_exactly(file, 4, at + 8, at)
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
            body = read_exactly(file, length, at + read, at)
        elif kind in (_SIMPLE_PACKET, _OLD_PACKET):
            name = (
                "a simple packet block, which has no time"
                if kind == _SIMPLE_PACKET
                else "an obsolete packet block"
            )
            raise CaptureError(f"at byte {at} is {name}; save the file anew with Wireshark")
        else:
            _skip(file, length, at + read, at)
        (again,) = struct.unpack(f"{order}I", read_exactly(file, 4, at + total - 4, at))
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


def read_exactly(
    file: BinaryIO, size: int, position: int, begin: int, what: str = "block"
) -> bytes:
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
        read_exactly(file, step, position, block)
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
