# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Reading of pcapng files, spelled out block by block.

The format is https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html.
"""

from __future__ import annotations

import pytest

from rfly_common.errors import CaptureError, TruncatedCaptureError
from rfly_ue_bridge.datagram_recording.datagrams import RecordedDatagram
from rfly_ue_bridge.datagram_recording.pcap import RecordingReader

IP_HI = "4500 001f 0000 4000 40 11 3ccc 7f000001 7f000001  1234 4e2a 000b 180e 686921"
HI = (("127.0.0.1", 0x1234), ("127.0.0.1", 20010), b"hi!")

SECTION = "0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000"
RAW_MICROSECONDS = "01000000 14000000 6500 0000 00000400 14000000"
# if_name "lo", if_tsresol 10^-9, end of options
RAW_NANOSECONDS = (
    "01000000 2c000000 6500 0000 00000400 "
    "0200 0200 6c6f0000 0900 0100 09000000 0000 0000 00000000 2c000000"
)
STATISTICS = "05000000 18000000 00000000 00000000 00000000 18000000"


def packet(interface="00000000", ticks="00000000 02000000"):
    """31 bytes of frame, 1 of padding; the upper half of the time comes first."""
    return f"06000000 40000000 {interface} {ticks} 1f000000 1f000000 {IP_HI} 00 40000000"


def read(tmp_path, *parts):
    path = tmp_path / "recording.pcapng"
    path.write_bytes(bytes.fromhex("".join(parts)))
    with RecordingReader(path) as recording:
        return list(recording)


def test_a_packet_of_wiresharks_default_format(tmp_path):
    """Microseconds where the interface says nothing else; other blocks are passed over."""
    found = read(tmp_path, SECTION, RAW_MICROSECONDS, STATISTICS, packet(), STATISTICS)
    assert found == [RecordedDatagram(2000, *HI)]


def test_each_interface_has_its_own_unit_of_time(tmp_path):
    found = read(
        tmp_path,
        SECTION,
        RAW_MICROSECONDS,
        RAW_NANOSECONDS,
        packet("01000000"),
        packet(ticks="01000000" * 2),
    )
    expected = [2, (2**32 + 1) * 1000]
    assert [datagram.time_ns for datagram in found] == expected


def test_units_of_time_may_be_powers_of_two_with_an_offset(tmp_path):
    """Resolution 0x82 is a quarter of a second; the offset is 100 s."""
    interface = (
        "01000000 2c000000 6500 0000 00000400 "
        "0900 0100 82000000 0e00 0800 6400000000000000 00000000 2c000000"
    )
    found = read(tmp_path, SECTION, interface, packet(ticks="00000000 03000000"))
    assert found[0].time_ns == 100_750_000_000


def test_a_big_endian_section_after_a_little_endian_one(tmp_path):
    """Sections bring their own byte order and interfaces."""
    section = "0a0d0d0a 0000001c 1a2b3c4d 0001 0000 ffffffffffffffff 0000001c"
    interface = "00000001 00000014 0001 0000 00040000 00000014"
    frame = "020000000001 020000000002 0800" + IP_HI
    block = (
        f"00000006 00000050 00000000 00000000 00000005 0000002d 0000002d {frame} 000000 00000050"
    )
    found = read(tmp_path, SECTION, RAW_MICROSECONDS, packet(), section, interface, block)
    assert found == [RecordedDatagram(2000, *HI), RecordedDatagram(5000, *HI)]


def test_an_interface_of_another_kind_ends_nothing(tmp_path):
    """Frames of Bluetooth (link type 201) are counted; the others are read."""
    bluetooth = "01000000 14000000 c900 0000 00000400 14000000"
    path = tmp_path / "recording.pcapng"
    path.write_bytes(
        bytes.fromhex(
            SECTION
            + RAW_MICROSECONDS
            + bluetooth
            + packet("01000000")
            + packet()
            + packet("01000000")
            + packet(ticks="00000000 03000000")
        )
    )
    with RecordingReader(path) as recording:
        assert list(recording) == [RecordedDatagram(2000, *HI), RecordedDatagram(3000, *HI)]
        assert recording.skipped == {"link_type_201": 2}


@pytest.mark.parametrize("cut", [1, 5, 30, 57, 63])
def test_a_file_cut_short_hands_out_what_is_whole(tmp_path, cut):
    whole = bytes.fromhex(SECTION + RAW_MICROSECONDS + packet() + packet())
    path = tmp_path / "recording.pcapng"
    path.write_bytes(whole[:-cut])
    with RecordingReader(path) as recording:
        datagrams = iter(recording)
        assert next(datagrams) == RecordedDatagram(2000, *HI)
        with pytest.raises(
            TruncatedCaptureError, match=f"ends at byte {len(whole) - cut}, .* begins at byte 112$"
        ):
            next(datagrams)


@pytest.mark.parametrize(
    ("blocks", "named"),
    [
        pytest.param([SECTION.replace("4d3c2b1a", "4d3c2b1b")], "4d 3c 2b 1b", id="byte-order"),
        pytest.param(
            [SECTION, "01000000 15000000"], "byte 28 says it has 21 bytes", id="no-multiple-of-4"
        ),
        pytest.param([SECTION, "05000000 08000000"], "says it has 8 bytes", id="too-short"),
        pytest.param([SECTION, "06000000 04001000"], "1048580 bytes", id="packet-too-long"),
        pytest.param([SECTION, "99000000 f0ffffff"], "4294967280 bytes", id="other-too-long"),
        pytest.param([SECTION, STATISTICS[:-8] + "19000000"], "says 25", id="lengths"),
        pytest.param([SECTION, packet()], "interface 0; described are 0", id="no-interface"),
        pytest.param(
            [SECTION, RAW_MICROSECONDS, packet("01000000")], "interface 1", id="unknown-interface"
        ),
        pytest.param(
            [SECTION, RAW_MICROSECONDS, packet().replace("1f000000", "2f000000", 1)],
            "47 bytes",
            id="kept",
        ),
        pytest.param(
            [SECTION, "03000000 10000000 00000000 10000000"],
            "simple packet block",
            id="simple-packet",
        ),
        pytest.param(
            [SECTION, "01000000 10000000 65000000 10000000"],
            "4 bytes of body",
            id="short-interface",
        ),
        pytest.param(
            [SECTION, RAW_MICROSECONDS, "06000000 10000000 00000000 10000000"],
            "4 bytes of body",
            id="short",
        ),
        pytest.param(
            [SECTION, RAW_NANOSECONDS.replace("0900 0100 09", "0900 0100 13")],
            "unit",
            id="time-unit",
        ),
        pytest.param(
            [SECTION, RAW_MICROSECONDS * 1025], "interface 1025", id="very-many-interfaces"
        ),
    ],
)
def test_what_is_wrong_is_refused_by_name(tmp_path, blocks, named):
    with pytest.raises(CaptureError, match=named):
        read(tmp_path, *blocks)
