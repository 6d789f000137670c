# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Datagrams ↔ MAVLink 2 messages of the dialect `common`, signed if there is a key.

pymavlink is the codec. Messages of common.xml that its `common` lacks, or has without extensions,
are declared here: https://mavlink.io/en/messages/common.html; a message's CRC_EXTRA follows from
its definition (https://mavlink.io/en/guide/serialization.html#crc_extra).
"""

from __future__ import annotations

import functools
import hashlib
import struct
import time
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from rfly_common.imports import require

Sender = tuple[int, int]
"""System and component."""
Address = tuple[str, int]
"""Host and port."""
AUTOPILOT_COMPONENT = 1
"""MAV_COMP_ID_AUTOPILOT1."""
_MAVLINK_2 = 0xFD
"""First byte of a MAVLink 2 message."""
_HEADER_BYTES = 10
"""Size of the header of MAVLink 2, bytes."""
_HEADER_BYTES_1 = 6
"""Size of the header of MAVLink 1, bytes."""
_TIMESYNC_BYTES = 16
"""Size of the payload of TIMESYNC without its extensions, bytes."""
_LARGEST_LEFTOVER = 1 << 16
"""Bytes already read after which a stream's buffer is shortened."""
_SIGNING_EPOCH = 1_420_070_400
"""Unix time, s, of 2015-01-01, from which signatures count time in units of 10 µs."""


@dataclass(frozen=True)
class Peer:
    """The other side of a transaction; several stations may have the same ids."""

    ids: Sender
    address: Address


class Send(Protocol):
    """Sends a message to one address, or to all stations."""

    def __call__(self, message: Any, to: Address | None = None) -> None:
        """Send it; `to` is the station that asked, None is all stations."""


def load_dialect() -> types.ModuleType:
    """Return pymavlink's `common`, MAVLink 2; raise ConfigError that says how to install it."""
    return require("pymavlink.dialects.v20.common", "MAVLink")


def sender_of(message: Any) -> Sender:
    """Return the sender of a message."""
    return message.get_srcSystem(), message.get_srcComponent()


def payload_of(message: Any, size: int) -> bytes:
    """Return the first `size` bytes of a received message's payload; those not sent are 0."""
    data = bytes(message.get_msgbuf())
    header = _HEADER_BYTES if data[0] == _MAVLINK_2 else _HEADER_BYTES_1
    return data[header : header + min(size, data[1])].ljust(size, b"\0")


def target_of(message: Any) -> Sender | None:
    """Return the addressed system and component, 0 for all; None for a message without them.

    TIMESYNC's are extensions, which pymavlink's `common` does not read.
    """
    if message.get_type() == "TIMESYNC" and not hasattr(message, "target_system"):
        system, component = payload_of(message, _TIMESYNC_BYTES + 2)[_TIMESYNC_BYTES:]
        return system, component

    if not hasattr(message, "target_system"):
        return None
    return message.target_system, getattr(message, "target_component", 0)


def peer_of(message: Any, address: Address) -> Peer:
    """Return the sender of a message that came from an address."""
    return Peer(sender_of(message), address)


def signing_key(passphrase: str) -> bytes:
    """Return the key of 32 bytes that ground stations make of a passphrase: its SHA-256."""
    return hashlib.sha256(passphrase.encode()).digest()


class Reader:
    """Messages of datagrams; with a key only those signed with it, each once."""

    def __init__(self, key: bytes = b"", clock: Callable[[], float] = time.time) -> None:
        self._parser = load_dialect().MAVLink(None)
        self._parser.robust_parsing = True
        self._clock = clock
        self.bad_data = 0
        """Number of places that held no message, or one with a missing or wrong signature."""

        if key:
            self._parser.signing.secret_key = key
            self._check = self._parser.check_signature
            self._parser.check_signature = self._check_signature

    def _check_signature(self, *message: Any) -> bool:
        """Check as pymavlink does; but a refused message makes no later ones of a stream old."""
        signing = self._parser.signing
        signing.timestamp = max(signing.timestamp, _signing_time(self._clock()))

        before = dict(signing.stream_timestamps)
        right = bool(self._check(*message))
        if not right:
            signing.stream_timestamps = before
        return right

    def read(self, datagram: bytes) -> list[Any]:
        """Return the complete messages in a datagram; none continues in the next one."""
        parser = self._parser
        messages = parser.parse_buffer(datagram) or []

        # forget the rest
        parser.buf = bytearray()
        parser.buf_index = 0
        parser.have_prefix_error = False

        whole = [
            message for message in messages if message.get_type() not in ("BAD_DATA", "UNKNOWN")
        ]
        self.bad_data += len(messages) - len(whole)
        return whole


class StreamReader:
    """Messages of a byte stream: one may begin in a piece and end in a later one."""

    def __init__(self) -> None:
        self.bad_data = 0
        """Places in the stream that held no message."""
        self.restart()

    def restart(self) -> None:
        """Forget a message that has begun, because another stream begins."""
        self._parser = load_dialect().MAVLink(None)
        self._parser.robust_parsing = True

    def read(self, data: bytes) -> list[Any]:
        """Return the messages that end in this piece of the stream."""
        parser = self._parser
        parsed = parser.parse_buffer(data) or []

        # pymavlink drops what it has read only if nothing is left over
        if parser.buf_index > _LARGEST_LEFTOVER:
            del parser.buf[: parser.buf_index]
            parser.buf_index = 0

        messages = [message for message in parsed if message.get_type() != "BAD_DATA"]
        self.bad_data += len(parsed) - len(messages)
        return messages


class Writer:
    """One system's messages as datagrams, numbered in order."""

    def __init__(
        self,
        system_id: int,
        key: bytes = b"",
        link_id: int = 0,
        clock: Callable[[], float] = time.time,
        component_id: int = AUTOPILOT_COMPONENT,
    ) -> None:
        self._packer = load_dialect().MAVLink(None, system_id, component_id)
        self._clock = clock
        if key:
            self._packer.signing.secret_key = key
            self._packer.signing.link_id = link_id
            self._packer.signing.sign_outgoing = True

    def write(self, message: Any) -> bytes:
        """Return the datagram of a message."""
        packer = self._packer
        packer.signing.timestamp = max(packer.signing.timestamp, _signing_time(self._clock()))
        data = bytes(message.pack(packer))
        packer.seq = (packer.seq + 1) % 256
        return data


def _signing_time(unix_s: float) -> int:
    """Return the time of a signature, in units of 10 µs."""
    return int((unix_s - _SIGNING_EPOCH) * 1e5)


class Layout(NamedTuple):
    """A message on the wire."""

    number: int
    crc_extra: int
    format: str
    """Format of `struct`: the fields in the order of the wire, largest types first."""


NEWER_MESSAGES = {
    "TIMESYNC": Layout(111, 34, "<qqBB"),
    "PROTOCOL_VERSION": Layout(300, 217, "<HHH8s8s"),
    "COMPONENT_METADATA": Layout(397, 182, "<II100s"),
    "AVAILABLE_MODES": Layout(435, 134, "<IIBBB35s"),
    "CURRENT_MODE": Layout(436, 193, "<IIB"),
    "AVAILABLE_MODES_MONITOR": Layout(437, 30, "<B"),
}


@functools.cache
def _message_class() -> type:
    base: Any = load_dialect().MAVLink_message

    class NewerMessage(base):
        """A message with its packed fields alone."""

        def __init__(self, name: str, payload: bytes) -> None:
            super().__init__(NEWER_MESSAGES[name].number, name)
            self._content = payload

        def pack(self, mav: Any, force_mavlink1: bool = False) -> bytes:
            crc_extra = NEWER_MESSAGES[self.get_type()].crc_extra
            return bytes(self._pack(mav, crc_extra, self._content, force_mavlink1))

    return NewerMessage


def newer_message(name: str, *fields: Any) -> Any:
    """Return a message that pymavlink can send; fields are in the order of the wire."""
    return _message_class()(name, struct.pack(NEWER_MESSAGES[name].format, *fields))


def message_number(name: str) -> int:
    """Return a message's number, whether pymavlink knows the message or not."""
    newer = NEWER_MESSAGES.get(name)
    return newer.number if newer else int(getattr(load_dialect(), f"MAVLINK_MSG_ID_{name}"))
