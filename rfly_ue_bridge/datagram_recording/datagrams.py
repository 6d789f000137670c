# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""UDP datagrams in the frames of a capture: link layers, IPv4 with fragments, UDP.

Link types are those of https://www.tcpdump.org/linktypes.html: Ethernet with VLAN tags, Linux
"cooked" (version 1 and 2), BSD loopback, and bare IP. Frames of other link types, IPv6 and
everything that is not UDP are counted and left out.

Fragments are reassembled (RFC 791), since the fleet packet of 3804 bytes crosses any Ethernet in
three pieces. The checksum of a reassembled datagram is verified, because an identification that is
used again may mix the pieces of two. Checksums of other datagrams are not: on the machine that
sends, the network card has not filled them in yet.

This is our own code: of the libraries that read captures, dpkt 1.9 takes the first interface of a
pcapng file for all, python-pcapng reads no pcap and no file that was cut short, and scapy, which
is under the GPL, joins fragments without a time limit.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import NamedTuple

from rfly_common.errors import CaptureError
from rfly_common.untrusted_files.reader_errors import LeftOut
from rfly_ue_bridge.codec.addresses import MAX_UDP_PAYLOAD

MAX_PENDING = 256
"""Incomplete IPv4 datagrams that are kept; beyond that the oldest is dropped."""
REASSEMBLY_NS = 30_000_000_000
"""Time after the first piece at which the others are no longer awaited, ns; Linux's too."""
MAX_PIECES = 64
"""Pieces of one datagram; a datagram of 65,535 bytes has 45 on Ethernet."""

# link types
ETHERNET = 1
LINUX_COOKED = 113
LINUX_COOKED_2 = 276
BSD_NULL = 0
BSD_LOOP = 108
IPV4 = 228
RAW = 101

# 12 and 14: what some systems wrote for bare IP; 229: IPv6 only
_RAW_TYPES = frozenset({RAW, IPV4, 12, 14, 229})
_NULL_TYPES = frozenset({BSD_NULL, BSD_LOOP})
_ETHERTYPES = {ETHERNET: (12, 14), LINUX_COOKED: (14, 16), LINUX_COOKED_2: (0, 20)}
"""Offsets of the type of the payload and of the payload, by link type."""
_KNOWN = frozenset({*_RAW_TYPES, *_NULL_TYPES, *_ETHERTYPES})
_VLAN_TAGS = frozenset({0x8100, 0x88A8, 0x9100})

_MAX_VLAN_TAGS = 4
_ETHERTYPE_IPV4 = 0x0800
_AF_INET = 2
_UDP = 17
_MORE_FRAGMENTS = 0x2000
_FRAGMENT_OFFSET = 0x1FFF
_MAX_LENGTH = 65535

_IPV4_HEADER = Struct(">BBHHHBBH4s4s")
_UDP_HEADER = Struct(">HHHH")
_UINT16 = Struct(">H")


class CapturedFrame(NamedTuple):
    """One record of a capture file."""

    time_ns: int
    """Time since 1970, UTC, ns."""
    link_type: int
    data: bytes
    """Frame, which may be cut short by the capture's snapshot length."""


class RecordedDatagram(NamedTuple):
    """One UDP datagram, its time and its ends."""

    time_ns: int
    """Time since 1970, UTC, ns."""
    source: tuple[str, int]
    """IPv4 address and port."""
    destination: tuple[str, int]
    payload: bytes


class DatagramExtractor:
    """Extractor of UDP datagrams from frames; `skipped` counts the other frames, by reason."""

    def __init__(self) -> None:
        self.skipped = LeftOut()
        """Numbers by reason.

        not_ipv4, not_udp, cut_short, malformed, incomplete_fragments, bad_checksum, and link_type_
        with the number of a type that is not read.
        """
        self._pending: dict[tuple[bytes, bytes, int], _Fragments] = {}

    def datagrams(self, frames: Iterable[CapturedFrame]) -> Iterator[RecordedDatagram]:
        """Yield every UDP datagram of the frames, at the time of its last piece.

        CaptureError, at the end: all frames are of link types that are not read.
        """
        others = set[int]()
        only_others = True
        for frame in frames:
            if frame.link_type in _KNOWN:
                only_others = False
                datagram = self._take(frame)
                if datagram is not None:
                    yield datagram
            else:
                others.add(frame.link_type)
                self.skipped[f"link_type_{frame.link_type}"] += 1
        self.drop_pending()

        if others and only_others:
            numbers = ", ".join(map(str, sorted(others)))
            raise CaptureError(
                f"link type {numbers} is not known here; known are Ethernet (1), "
                "Linux cooked (113, 276), loopback (0, 108) and bare IP (101, 228)"
            )

    def _take(self, frame: CapturedFrame) -> RecordedDatagram | None:
        """Return the datagram that this frame holds or completes, if any."""
        start = _start_of_ipv4(frame.link_type, frame.data)
        if start is None:
            self.skipped["not_ipv4"] += 1
            return None
        return self._take_ipv4(frame.time_ns, frame.data, start)

    def drop_pending(self) -> None:
        """Count the incomplete datagrams and forget them: no more frames will come."""
        if self._pending:
            self.skipped["incomplete_fragments"] += len(self._pending)
            self._pending.clear()

    def _take_ipv4(self, time_ns: int, data: bytes, start: int) -> RecordedDatagram | None:
        if len(data) < start + _IPV4_HEADER.size:
            return self._skip("cut_short")
        first, _, total, number, flags, _, protocol, _, source, destination = (
            _IPV4_HEADER.unpack_from(data, start)
        )

        header = 4 * (first & 15)
        if first >> 4 != 4:
            return self._skip("not_ipv4")
        if header < _IPV4_HEADER.size or (total and total < header):
            return self._skip("malformed")
        if protocol != _UDP:
            return self._skip("not_udp")
        # length 0: the network card was to cut it into packets
        end = start + total if total else len(data)
        if end > len(data):
            return self._skip("cut_short")

        body = data[start + header : end]
        if flags & (_MORE_FRAGMENTS | _FRAGMENT_OFFSET):
            piece = _Piece(8 * (flags & _FRAGMENT_OFFSET), body, bool(flags & _MORE_FRAGMENTS))
            reassembled = self._reassemble((source, destination, number), piece, time_ns)
            if reassembled is None:
                return None
            return self._take_udp(time_ns, source, destination, reassembled, verify=True)
        return self._take_udp(time_ns, source, destination, body, verify=False)

    def _take_udp(
        self, time_ns: int, source: bytes, destination: bytes, body: bytes, *, verify: bool
    ) -> RecordedDatagram | None:
        if len(body) < _UDP_HEADER.size:
            return self._skip("malformed")

        source_port, port, length, checksum = _UDP_HEADER.unpack_from(body)
        if not _UDP_HEADER.size <= length <= len(body):
            return self._skip("malformed")
        # 0: without a checksum
        if verify and checksum and _udp_sum(source, destination, body[:length]):
            return self._skip("bad_checksum")

        return RecordedDatagram(
            time_ns,
            (socket.inet_ntoa(source), source_port),
            (socket.inet_ntoa(destination), port),
            body[_UDP_HEADER.size : length],
        )

    def _reassemble(
        self, key: tuple[bytes, bytes, int], piece: _Piece, time_ns: int
    ) -> bytes | None:
        """Add a piece, and return the datagram that it completes, if any.

        Pieces that are old, or that this one contradicts, are of another datagram, whose
        identification has come round again: they are forgotten.
        """
        if not piece.is_possible:
            self._pending.pop(key, None)
            self.skipped["malformed"] += 1
            return None

        fragments = self._pending.get(key)
        if fragments is not None and not fragments.awaits(piece, time_ns):
            del self._pending[key]
            self.skipped["incomplete_fragments"] += 1
            fragments = None
        if fragments is None:
            if len(self._pending) >= MAX_PENDING:
                del self._pending[next(iter(self._pending))]
                self.skipped["incomplete_fragments"] += 1
            fragments = self._pending[key] = _Fragments(time_ns)

        reassembled = fragments.add(piece)
        if reassembled is not None:
            del self._pending[key]
        return reassembled

    def _skip(self, reason: str) -> RecordedDatagram | None:
        self.skipped[reason] += 1
        return None


class _Piece(NamedTuple):
    """Piece of an IPv4 datagram."""

    begin: int
    body: bytes
    more: bool
    """True if others follow."""

    @property
    def end(self) -> int:
        return self.begin + len(self.body)

    @property
    def is_possible(self) -> bool:
        """False for a piece that no honest sender makes."""
        whole = not (self.more and len(self.body) % 8)
        return bool(self.body) and self.end <= _MAX_LENGTH and whole


class _Fragments:
    """Pieces of one IPv4 datagram; the first came at `since_ns`."""

    def __init__(self, since_ns: int) -> None:
        self._since_ns = since_ns
        self._pieces: dict[int, _Piece] = {}

    def awaits(self, piece: _Piece, time_ns: int) -> bool:
        """Return whether the piece can belong to these.

        It comes in time, overlaps none but its like (a capture of all interfaces has it twice), and
        none lies beyond the last.
        """
        if abs(time_ns - self._since_ns) > REASSEMBLY_NS:
            return False
        if self._pieces.get(piece.begin) == piece:
            return True
        return len(self._pieces) < MAX_PIECES and not any(
            (piece.begin < other.end and other.begin < piece.end)
            or (not piece.more and piece.begin < other.end)
            or (not other.more and other.begin < piece.end)
            for other in self._pieces.values()
        )

    def add(self, piece: _Piece) -> bytes | None:
        """Add a piece, and return the whole if it is complete."""
        self._pieces[piece.begin] = piece
        pieces = [self._pieces[begin] for begin in sorted(self._pieces)]
        length = sum(len(each.body) for each in pieces)
        if pieces[-1].more or pieces[-1].end > length:
            return None
        return b"".join(each.body for each in pieces)


def _start_of_ipv4(link_type: int, data: bytes) -> int | None:
    """Return the offset of the IPv4 header, or None if the frame holds something else."""
    if link_type in _RAW_TYPES:
        return 0 if data and data[0] >> 4 == 4 else None
    if link_type in _NULL_TYPES:
        # the family in the byte order of the machine that captured
        families = (int.from_bytes(data[:4], "little"), int.from_bytes(data[:4], "big"))
        return 4 if _AF_INET in families else None

    # a VLAN tag holds 2 bytes, and the type of what follows it
    at, start = _ETHERTYPES[link_type]
    for _ in range(_MAX_VLAN_TAGS + 1):
        if len(data) < at + 2:
            return None
        (ethertype,) = _UINT16.unpack_from(data, at)
        if ethertype == _ETHERTYPE_IPV4:
            return start
        if ethertype not in _VLAN_TAGS:
            return None
        at = start + 2
        start += 4
    return None


def to_ipv4(datagram: RecordedDatagram) -> bytes:
    """Return the datagram as a whole IPv4 packet with its checksums, not limited by a network.

    Raises ValueError for a payload above 65,507 bytes, or an address that is not IPv4.
    """
    source, source_port = datagram.source
    destination, port = datagram.destination
    payload = datagram.payload
    if len(payload) > MAX_UDP_PAYLOAD:
        raise ValueError(
            f"payload: {len(payload)} bytes, a UDP datagram holds at most {MAX_UDP_PAYLOAD}"
        )
    try:
        addresses = (socket.inet_aton(source), socket.inet_aton(destination))
    except OSError as error:
        raise ValueError(
            f"source {source!r}, destination {destination!r}: expected IPv4 addresses"
        ) from error

    # IPv4: no options, not to be fragmented, 64 hops
    udp_length = _UDP_HEADER.size + len(payload)
    total = _IPV4_HEADER.size + udp_length
    fields = (0x45, 0, total, 0, 0x4000, 64, _UDP)
    checksum = _ones_complement_sum(_IPV4_HEADER.pack(*fields, 0, *addresses))
    header = _IPV4_HEADER.pack(*fields, checksum, *addresses)

    # UDP: a checksum of 0 would mean "none" (RFC 768)
    udp = _UDP_HEADER.pack(source_port, port, udp_length, 0)
    udp_checksum = _udp_sum(*addresses, udp + payload) or 0xFFFF

    return b"".join((header, udp[:6], _UINT16.pack(udp_checksum), payload))


def _udp_sum(source: bytes, destination: bytes, udp: bytes) -> int:
    """Return the Internet checksum of a datagram with its pseudo header (RFC 768)."""
    return _ones_complement_sum(
        b"".join((source, destination, b"\0\x11", _UINT16.pack(len(udp)), udp))
    )


def _ones_complement_sum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071) of data that is not all zeros.

    2^16 is 1 modulo 65535, so the sum of all 16-bit words is the whole number that the bytes make,
    modulo 65535.
    """
    if len(data) % 2:
        data += b"\0"
    return 0xFFFF - (int.from_bytes(data, "big") % 0xFFFF or 0xFFFF)
