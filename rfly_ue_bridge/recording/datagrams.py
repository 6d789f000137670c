# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""UDP datagrams in the frames of a capture: link layers, IPv4 with fragments, UDP.

Link types are those of https://www.tcpdump.org/linktypes.html: Ethernet with VLAN tags, Linux
"cooked" (version 1 and 2), BSD loopback, and bare IP. IPv6 and everything that is not UDP is
counted and left out.

Fragments are reassembled (RFC 791), since the fleet packet of 3804 bytes crosses any Ethernet in
three pieces. UDP checksums are not checked: on the machine that sends, the network card has not
filled them in yet.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import NamedTuple

from rfly_common.errors import CaptureError
from rfly_ue_bridge.codec.addresses import MAX_UDP_PAYLOAD

MAX_PENDING = 256
"""Incomplete IPv4 datagrams that are kept; beyond that the oldest is dropped."""
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

_RAW_TYPES = frozenset({RAW, IPV4, 12, 14})  # 12 and 14: what some systems wrote for bare IP
_VLAN_TAGS = frozenset({0x8100, 0x88A8, 0x9100})

_MAX_VLAN_TAGS = 4
_ETHERTYPE_IPV4 = 0x0800
_AF_INET = 2
_UDP = 17
_MORE_FRAGMENTS = 0x2000
_FRAGMENT_OFFSET = 0x1FFF


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
        self.skipped: Counter[str] = Counter()
        """Numbers of not_ipv4, not_udp, cut_short, malformed and incomplete_fragments."""
        self._pending: dict[tuple[bytes, bytes, int], _Fragments] = {}

    def datagrams(self, frames: Iterable[CapturedFrame]) -> Iterator[RecordedDatagram]:
        """Yield every UDP datagram of the frames, at the time of its last piece.

        CaptureError: an unknown link type.
        """
        for frame in frames:
            datagram = self.take(frame)
            if datagram is not None:
                yield datagram
        self.drop_pending()

    def take(self, frame: CapturedFrame) -> RecordedDatagram | None:
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
            key = (source, destination, number)
            offset = 8 * (flags & _FRAGMENT_OFFSET)
            more = bool(flags & _MORE_FRAGMENTS)
            reassembled = self._add_fragment(key, offset, body, more)
            if reassembled is None:
                return None
            body = reassembled

        return self._take_udp(
            time_ns, socket.inet_ntoa(source), socket.inet_ntoa(destination), body
        )

    def _take_udp(
        self, time_ns: int, source: str, destination: str, body: bytes
    ) -> RecordedDatagram | None:
        if len(body) < _UDP_HEADER.size:
            return self._skip("malformed")

        source_port, port, length, _ = _UDP_HEADER.unpack_from(body)
        if not _UDP_HEADER.size <= length <= len(body):
            return self._skip("malformed")
        return RecordedDatagram(
            time_ns, (source, source_port), (destination, port), body[_UDP_HEADER.size : length]
        )

    def _add_fragment(
        self, key: tuple[bytes, bytes, int], offset: int, body: bytes, more: bool
    ) -> bytes | None:
        fragments = self._pending.get(key)
        if fragments is None:
            if len(self._pending) >= MAX_PENDING:
                del self._pending[next(iter(self._pending))]
                self.skipped["incomplete_fragments"] += 1
            fragments = self._pending[key] = _Fragments()

        if not fragments.add(offset, body, more):
            del self._pending[key]
            self.skipped["malformed"] += 1
            return None

        reassembled = fragments.reassembled()
        if reassembled is not None:
            del self._pending[key]
        return reassembled

    def _skip(self, reason: str) -> RecordedDatagram | None:
        self.skipped[reason] += 1
        return None


class _Fragments:
    """Pieces of one IPv4 datagram."""

    def __init__(self) -> None:
        self._bodies: dict[int, bytes] = {}
        self._length: int | None = None

    def add(self, offset: int, body: bytes, more: bool) -> bool:
        """Add a piece.

        Return False for pieces that no honest sender makes: they overlap, reach too far, or are too
        many.
        """
        if offset in self._bodies and self._bodies[offset] == body:
            return True  # seen twice, as on a capture of all interfaces
        end = offset + len(body)
        if not body or end > 65535 or len(self._bodies) >= MAX_PIECES or (more and len(body) % 8):
            return False
        if any(
            offset < start + len(piece) and start < end for start, piece in self._bodies.items()
        ):
            return False

        if not more:
            if self._length is not None:
                return False
            self._length = end
        self._bodies[offset] = body
        last_end = max(start + len(piece) for start, piece in self._bodies.items())
        return self._length is None or last_end <= self._length

    def reassembled(self) -> bytes | None:
        if self._length is None or sum(map(len, self._bodies.values())) < self._length:
            return None
        return b"".join(self._bodies[offset] for offset in sorted(self._bodies))


def _start_of_ipv4(link_type: int, data: bytes) -> int | None:
    """Return the offset of the IPv4 header, or None if the frame holds something else.

    CaptureError: an unknown link type.
    """
    if link_type == ETHERNET:
        return _after_ethertype(data, 12)
    if link_type in _RAW_TYPES:
        return 0 if data and data[0] >> 4 == 4 else None
    if link_type == LINUX_COOKED:
        return _after_ethertype(data, 14)
    if link_type == LINUX_COOKED_2:
        return 20 if data[:2] == b"\x08\x00" else None
    if link_type in (BSD_NULL, BSD_LOOP):
        # the family in the byte order of the machine that captured
        families = (int.from_bytes(data[:4], "little"), int.from_bytes(data[:4], "big"))
        return 4 if _AF_INET in families else None

    known = "Ethernet (1), Linux cooked (113, 276), loopback (0, 108) and bare IP (101, 228)"
    raise CaptureError(f"link type {link_type} is not known here; known are {known}")


def _after_ethertype(data: bytes, position: int) -> int | None:
    for _ in range(_MAX_VLAN_TAGS + 1):
        if len(data) < position + 2:
            return None
        (ethertype,) = _UINT16.unpack_from(data, position)
        if ethertype == _ETHERTYPE_IPV4:
            return position + 2
        if ethertype not in _VLAN_TAGS:
            return None
        position += 4
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
    pseudo_header = b"".join((*addresses, b"\0\x11", _UINT16.pack(udp_length)))
    udp_checksum = _ones_complement_sum(b"".join((pseudo_header, udp, payload))) or 0xFFFF

    return b"".join((header, udp[:6], _UINT16.pack(udp_checksum), payload))


def _ones_complement_sum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071) of data that is not all zeros.

    2^16 is 1 modulo 65535, so the sum of all 16-bit words is the whole number that the bytes make,
    modulo 65535.
    """
    if len(data) % 2:
        data += b"\0"
    return 0xFFFF - (int.from_bytes(data, "big") % 0xFFFF or 0xFFFF)
