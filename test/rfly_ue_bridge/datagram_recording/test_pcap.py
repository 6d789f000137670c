# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Recordings against files spelled out byte by byte.

The format is https://www.tcpdump.org/manpages/pcap-savefile.5.html.
"""

from __future__ import annotations

import io
import socket
import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfly_common.errors import CaptureError, TruncatedCaptureError
from rfly_ue_bridge.datagram_recording.datagrams import MAX_PENDING, RecordedDatagram, to_ipv4
from rfly_ue_bridge.datagram_recording.pcap import PcapWriter, RecordingReader

# 127.0.0.1:4660 -> 127.0.0.1:20010, "hi!". Both sums were added up by hand:
# header: 4500+001f+0000+4000+4011+7f00+0001+7f00+0001 = 1c332 -> c333, complement 3ccc
# UDP: 7f00+0001+7f00+0001+0011+000b + 1234+4e2a+000b + 6869+2100 = 1e7f0 -> e7f1, complement 180e
IP_HI = "4500 001f 0000 4000 40 11 3ccc 7f000001 7f000001  1234 4e2a 000b 180e 686921"
HI = (("127.0.0.1", 0x1234), ("127.0.0.1", 20010), b"hi!")

FILE_HEADER = "4d3cb2a1 0200 0400 00000000 00000000 ffff0000 65000000"
RECORD_HI = "01000000 02000000 1f000000 1f000000" + IP_HI

ETHERNET_HI = "020000000001 020000000002 0800" + IP_HI


def reader(tmp_path, *parts):
    path = tmp_path / "recording.pcap"
    path.write_bytes(
        b"".join(bytes.fromhex(part) if isinstance(part, str) else part for part in parts)
    )
    return RecordingReader(path)


def read(tmp_path, *parts):
    with reader(tmp_path, *parts) as recording:
        return list(recording)


def big_endian(link_type, *frames):
    """A pcap file of another kind of machine: big-endian, microseconds; frame n at n s and n µs."""
    parts = [struct.pack(">IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, link_type)]
    for number, frame in enumerate(frames):
        data = bytes.fromhex(frame) if isinstance(frame, str) else frame
        parts += [struct.pack(">IIII", number, number, len(data), len(data)), data]
    return b"".join(parts)


def test_what_is_written_is_a_pcap_file_to_the_byte():
    """Nanosecond magic, version 2.4, link type 101, and a whole IPv4 packet with its sums."""
    file = io.BytesIO()
    writer = PcapWriter(file)
    writer.write(RecordedDatagram(1_000_000_002, *HI))
    assert file.getvalue() == bytes.fromhex(FILE_HEADER + RECORD_HI)
    assert writer.bytes == 24 + 16 + 31


def test_the_written_file_is_read_back(tmp_path):
    assert read(tmp_path, FILE_HEADER, RECORD_HI) == [RecordedDatagram(1_000_000_002, *HI)]


@pytest.mark.parametrize(
    ("link_type", "frame"),
    [
        pytest.param(1, ETHERNET_HI, id="ethernet"),
        pytest.param(1, ETHERNET_HI + "00" * 15, id="ethernet-padded"),
        pytest.param(1, "020000000001 020000000002 8100 0007 0800" + IP_HI, id="vlan"),
        pytest.param(
            1, "020000000001 020000000002 88a8 0009 8100 0007 0800" + IP_HI, id="vlan-in-vlan"
        ),
        pytest.param(0x10000001, ETHERNET_HI, id="ethernet-with-flags-above-the-type"),
        pytest.param(113, "0000 0304 0006 000000000000 0000 0800" + IP_HI, id="linux-cooked"),
        pytest.param(
            276, "0800 0000 00000001 0304 00 06 0000000000000000" + IP_HI, id="linux-cooked-2"
        ),
        pytest.param(
            276,
            "8100 0000 00000001 0001 00 06 0000000000000000 0007 0800" + IP_HI,
            id="vlan-in-linux-cooked-2",
        ),
        pytest.param(
            113, "0000 0001 0006 000000000000 0000 8100 0007 0800" + IP_HI, id="vlan-in-cooked"
        ),
        pytest.param(0, "02000000" + IP_HI, id="loopback-of-a-little-endian-machine"),
        pytest.param(0, "00000002" + IP_HI, id="loopback-of-a-big-endian-machine"),
        pytest.param(108, "00000002" + IP_HI, id="loopback-of-openbsd"),
        pytest.param(101, IP_HI, id="bare-ip"),
        pytest.param(228, IP_HI, id="bare-ipv4"),
        pytest.param(12, IP_HI, id="bare-ip-of-old"),
        pytest.param(
            101, IP_HI.replace("4500 001f", "4600 0023").replace("  ", "01010101"), id="ip-options"
        ),
    ],
)
def test_link_types(tmp_path, link_type, frame):
    """The same datagram comes in every wrapping of tcpdump and Wireshark.

    Frame 1 of the big-endian file is at 1.000001 s.
    """
    expected = [RecordedDatagram(0, *HI), RecordedDatagram(1_000_001_000, *HI)]
    assert read(tmp_path, big_endian(link_type, frame, frame)) == expected


def test_an_unknown_link_type_is_named(tmp_path):
    with pytest.raises(CaptureError, match="link type 147"):
        read(tmp_path, big_endian(147, ETHERNET_HI))


def test_what_is_no_udp_over_ipv4_is_counted(tmp_path):
    frames = {
        "ARP": "ffffffffffff 020000000002 0806" + "00" * 28,
        "IPv6": "020000000001 020000000002 86dd 60000000" + "00" * 40,
        "TCP": ETHERNET_HI.replace("40 11", "40 06"),
        "cut by the snapshot length": bytes.fromhex(ETHERNET_HI)[:-2],
        "cut in the header": bytes.fromhex(ETHERNET_HI)[:30],
        "no frame at all": b"",
        "UDP length beyond the packet": ETHERNET_HI.replace("000b 180e", "000c 180e"),
        "UDP length below its header": ETHERNET_HI.replace("000b 180e", "0007 180e"),
        "header length below 20": ETHERNET_HI.replace("4500", "4400"),
        "good": ETHERNET_HI,
    }

    with reader(tmp_path, big_endian(1, *frames.values())) as recording:
        assert [datagram[1:] for datagram in recording] == [HI]
        assert recording.skipped == {"not_ipv4": 3, "not_udp": 1, "cut_short": 2, "malformed": 3}
        assert len(list(recording)) == 1
        assert recording.skipped.total() == 9  # counted anew, not twice


def test_udp_length_counts_where_the_packet_is_longer(tmp_path):
    assert (
        read(tmp_path, big_endian(101, IP_HI.replace("001f", "0021") + "abcd"))[0].payload == b"hi!"
    )


def fragment(body, offset, more, number=7):
    flags = (0x2000 if more else 0) | offset // 8
    header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), number, flags, 64, 17, 0)
    return header + socket.inet_aton("10.0.0.2") + socket.inet_aton("10.0.0.3") + body


PAYLOAD = bytes(index % 251 for index in range(3804))


def internet_sum(data):
    """Checksum of RFC 1071, word by word."""
    total = 0
    for high, low in zip(data[::2], [*data[1::2], 0], strict=False):
        total += high << 8 | low
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def udp(payload, checksum=None):
    """A UDP datagram from 10.0.0.2 to 10.0.0.3, with its right checksum by default."""
    length = 8 + len(payload)
    pseudo = bytes((10, 0, 0, 2, 10, 0, 0, 3, 0, 17)) + struct.pack(">H", length)
    if checksum is None:
        checksum = internet_sum(pseudo + struct.pack(">HHHH", 5000, 20010, length, 0) + payload)
    return struct.pack(">HHHH", 5000, 20010, length, checksum) + payload


def pieces_of(udp_datagram, number=7):
    return [
        fragment(udp_datagram[begin : begin + 1480], begin, begin < 2960, number)
        for begin in (0, 1480, 2960)
    ]


UDP = udp(PAYLOAD)
PIECES = pieces_of(UDP)
WHOLE = (("10.0.0.2", 5000), ("10.0.0.3", 20010), PAYLOAD)


@pytest.mark.parametrize(
    "order",
    [
        (0, 1, 2),
        (2, 0, 1),
        (1, 2, 0),
        (0, 0, 1, 2),
    ],
)
def test_fragments_are_put_together(tmp_path, order):
    """A fleet packet on Ethernet comes in three pieces, in any order.

    It counts at the time of the last one.
    """
    last = len(order) - 1
    with reader(tmp_path, big_endian(101, *(PIECES[i] for i in order))) as recording:
        assert list(recording) == [RecordedDatagram(last * 1_000_001_000, *WHOLE)]
        assert not recording.skipped


def test_fragments_of_two_datagrams_may_be_mixed(tmp_path):
    other = [fragment(UDP[:1480], 0, True, 8), fragment(UDP[1480:], 1480, False, 8)]
    mixed = [
        PIECES[0],
        other[0],
        PIECES[1],
        other[1],
        PIECES[2],
    ]
    assert [datagram[1:] for datagram in read(tmp_path, big_endian(101, *mixed))] == [WHOLE, WHOLE]


@pytest.mark.parametrize(
    ("pieces", "skipped"),
    [
        pytest.param([PIECES[0], PIECES[2]], {"incomplete_fragments": 1}, id="one-is-missing"),
        pytest.param(
            [PIECES[0], fragment(UDP[1472:], 1472, False)],
            {"incomplete_fragments": 2},
            id="overlap",
        ),
        pytest.param(
            [PIECES[0], fragment(UDP[1480:1488], 1480, False), PIECES[2]],
            {"malformed": 1, "incomplete_fragments": 1},
            id="an-early-end",
        ),
        pytest.param(
            [PIECES[0], PIECES[1], fragment(UDP[2960:-1] + b"x", 2960, False)],
            {"bad_checksum": 1},
            id="changed-on-the-way",
        ),
        pytest.param(
            [fragment(UDP[:1480], 65528, True)], {"malformed": 1}, id="beyond-the-longest"
        ),
        pytest.param([fragment(UDP[:1477], 0, True)], {"malformed": 1}, id="no-multiple-of-8"),
        pytest.param([fragment(b"", 0, True)], {"malformed": 1}, id="empty"),
        pytest.param(
            [PIECES[2], fragment(UDP[:8], 3816, True)],
            {"incomplete_fragments": 2},
            id="behind-the-last",
        ),
        pytest.param(
            [fragment(UDP[:8], 0, True, number) for number in range(MAX_PENDING + 5)],
            {"incomplete_fragments": MAX_PENDING + 5},
            id="very-many-begun",
        ),
    ],
)
def test_fragments_that_make_no_datagram(tmp_path, pieces, skipped):
    with reader(tmp_path, big_endian(101, *pieces)) as recording:
        assert list(recording) == []
        assert recording.skipped == skipped


def at_seconds(*frames):
    """A capture of bare IP with frames at times, s."""
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 101)]
    for time_s, frame in frames:
        parts += [struct.pack("<IIII", time_s, 0, len(frame), len(frame)), frame]
    return b"".join(parts)


OLD = pieces_of(udp(bytes([1]) * 3804, 0))
NEW = pieces_of(udp(bytes([2]) * 3804, 0))
OLD_SUMMED = pieces_of(udp(bytes([1]) * 3804))
NEW_SUMMED = pieces_of(udp(bytes([2]) * 3804))


@pytest.mark.parametrize(
    ("frames", "payloads", "skipped"),
    [
        pytest.param(
            [(1, OLD[1]), (1, OLD[2]), (661, NEW[0]), (661, NEW[1]), (661, NEW[2])],
            [2],
            {"incomplete_fragments": 1},
            id="first-piece-lost-eleven-minutes-before",
        ),
        pytest.param(
            [(1, OLD[0]), (1, OLD[1]), (661, NEW[0]), (661, NEW[1]), (661, NEW[2])],
            [2],
            {"incomplete_fragments": 1},
            id="last-piece-lost-eleven-minutes-before",
        ),
        pytest.param(
            [(1, OLD[0]), (1, OLD[1]), (2, NEW[0]), (2, NEW[1]), (2, NEW[2])],
            [2],
            {"incomplete_fragments": 1},
            id="last-piece-lost-a-second-before",
        ),
        pytest.param(
            [(1, OLD_SUMMED[1]), (1, OLD_SUMMED[2]), (2, NEW_SUMMED[0])],
            [],
            {"bad_checksum": 1},
            id="two-datagrams-mixed-within-a-second",
        ),
        pytest.param(
            [(1, OLD[0]), (31, OLD[1]), (31, OLD[2])], [1], {}, id="thirty-seconds-are-in-time"
        ),
        pytest.param(
            [(1, OLD[0]), (32, OLD[1]), (32, OLD[2])],
            [],
            {"incomplete_fragments": 2},
            id="a-second-more-is-not",
        ),
        pytest.param(
            [(661, OLD[0]), (1, OLD[1]), (1, OLD[2])],
            [],
            {"incomplete_fragments": 2},
            id="the-clock-was-set-back-between",
        ),
    ],
)
def test_an_identification_that_is_used_again(tmp_path, frames, payloads, skipped):
    """Pieces of two datagrams with one identification are never joined.

    30 s: Linux's net.ipv4.ipfrag_time, within RFC 791's bounds (15 to 120 s).
    """
    with reader(tmp_path, at_seconds(*frames)) as recording:
        assert [datagram.payload for datagram in recording] == [
            bytes([byte]) * 3804 for byte in payloads
        ]
        assert recording.skipped == skipped


@pytest.mark.parametrize("cut", range(1, 16 + 31))
def test_a_file_cut_short_hands_out_what_is_whole(tmp_path, cut):
    """… and then says at which byte it ends, and in which record."""
    whole = bytes.fromhex(FILE_HEADER + RECORD_HI + RECORD_HI)
    with reader(tmp_path, whole[:-cut]) as recording:
        datagrams = iter(recording)
        assert next(datagrams) == RecordedDatagram(1_000_000_002, *HI)
        with pytest.raises(
            TruncatedCaptureError, match=f"ends at byte {len(whole) - cut}, .* begins at byte 71$"
        ):
            next(datagrams)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        pytest.param("", "0 bytes are no recording", id="empty"),
        pytest.param("4d3cb2", "3 bytes are no recording", id="three-bytes"),
        pytest.param("89504e470d0a1a0a", "89 50 4e 47", id="png"),
        pytest.param("4d3cb2a1 0200 0400", "ends at byte 8", id="header-cut"),
        pytest.param(FILE_HEADER.replace("0200", "0300", 1), r"version 3\.4", id="version"),
        pytest.param(
            FILE_HEADER + "01000000 00000000 01000400 01000400",
            "262145 bytes",
            id="record-too-long",
        ),
        pytest.param(
            FILE_HEADER + "01000000 00ca9a3b 00000000 00000000", "1000000000 ns", id="nanoseconds"
        ),
    ],
)
def test_what_is_no_recording_is_refused_by_name(tmp_path, content, named):
    with pytest.raises(CaptureError, match=named) as caught:
        read(tmp_path, content)
    assert "recording.pcap: " in str(caught.value)


def test_limits_of_what_can_be_written():
    writer = PcapWriter(io.BytesIO())
    for wrong in (
        RecordedDatagram(-1, *HI),
        RecordedDatagram(2**32 * 10**9, *HI),
        RecordedDatagram(0, HI[0], HI[1], bytes(65508)),
        RecordedDatagram(0, ("::1", 5), HI[1], b""),
    ):
        with pytest.raises(ValueError):  # noqa: PT011  each names its own
            writer.write(wrong)
    assert writer.bytes == 24


addresses = st.tuples(st.ip_addresses(v=4).map(str), st.integers(0, 65535))
datagrams = st.builds(
    RecordedDatagram,
    st.integers(0, 2**32 * 10**9 - 1),
    addresses,
    addresses,
    st.binary(max_size=300),
)


@given(st.lists(datagrams, max_size=6))
def test_round_trip(tmp_path_factory, wanted):
    """Whatever is written comes back the same, times to the nanosecond."""
    path = tmp_path_factory.mktemp("pcap") / "a.pcap"
    with path.open("wb") as file:
        writer = PcapWriter(file)
        for datagram in wanted:
            writer.write(datagram)
    assert path.stat().st_size == writer.bytes
    with RecordingReader(path) as recording:
        assert list(recording) == wanted


@given(datagrams)
def test_sums_are_right(datagram):
    """Checksums are right: header, and UDP with its pseudo header, add up to 0xFFFF (RFC 1071)."""
    packet = to_ipv4(datagram)
    body = packet[20:]
    pseudo = packet[12:20] + struct.pack(">HH", 17, len(body))
    for covered in (packet[:20], pseudo + body):
        total = 0
        for high, low in zip(covered[::2], [*covered[1::2], 0], strict=False):
            total += high << 8 | low
            total = (total & 0xFFFF) + (total >> 16)
        assert total == 0xFFFF
    assert packet[26:28] != b"\0\0"  # would mean: no sum


@given(
    st.binary(max_size=400),
    st.sampled_from(["", FILE_HEADER, FILE_HEADER.replace("65", "01"), "0a0d0d0a"]),
)
def test_any_bytes_are_read_or_refused(tmp_path_factory, rest, start):
    path = tmp_path_factory.mktemp("pcap") / "a.pcap"
    path.write_bytes(bytes.fromhex(start) + rest)
    with RecordingReader(path) as recording, suppress(CaptureError):
        list(recording)
