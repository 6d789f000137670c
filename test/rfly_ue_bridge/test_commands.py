"""Console commands: which packet, and what is refused."""

from __future__ import annotations

import pytest

from rfly_common.errors import CommandError
from rfly_ue_bridge.commands import changes_map, encode_command, encode_command_lan


def test_map_command_byte_by_byte():
    """The first experiment of RflySim's documentation: 4-byte checksum, text, zeros up to 56 bytes."""
    expected = bytes.fromhex("d2029649" + "52666c794368616e67654d617062794e616d652047726173736c616e6473") + bytes(22)
    assert encode_command("RflyChangeMapbyName Grasslands") == expected
    assert len(expected) == 56


@pytest.mark.parametrize(
    ("length", "size"),
    [(1, 56), (51, 56), (52, 256), (249, 256)],
)
def test_length_chooses_the_packet(length, size):
    datagram = encode_command("x" * length)
    assert len(datagram) == size
    assert datagram == bytes.fromhex("d2029649") + b"x" * length + bytes(size - 4 - length)


def test_length_counts_bytes_not_characters():
    """26 umlauts are 52 bytes of UTF-8: one too many for the short packet; 125 are 250, too many for any."""
    assert len(encode_command("ö" * 25)) == 56
    assert len(encode_command("ö" * 26)) == 256
    with pytest.raises(CommandError, match="250 bytes, at most 249"):
        encode_command("ö" * 125)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param("", "empty", id="empty"),
        pytest.param("  ", "empty", id="blank"),
        pytest.param("x" * 250, "at most 249", id="too-long"),
        pytest.param("t.MaxFPS\x0030", "zero character", id="zero-byte"),
        pytest.param("\ud800", "Unicode", id="lone-surrogate"),
    ],
)
def test_refused_commands(text, named):
    with pytest.raises(CommandError, match=named):
        encode_command(text)


def test_lan_command():
    assert encode_command_lan("x" * 91) == bytes.fromhex("d9029649") + b"x" * 91 + b"\0"
    with pytest.raises(CommandError, match="at most 91"):
        encode_command_lan("x" * 92)


def test_map_change_is_recognised_as_the_sdk_does():
    assert changes_map("RflyChangeMapbyName Grasslands")
    assert changes_map("say RflyChangeMapbyID 2")
    assert not changes_map("rflychangemapbyname Grasslands")
