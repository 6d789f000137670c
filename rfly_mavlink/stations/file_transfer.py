# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink's file transfer protocol, the vehicle's side: a folder of metadata that is read-only.

https://mavlink.io/en/services/ftp.html

Theory of operation: a path is looked up in a table of names and is never joined to a path of this
machine, so no path leads anywhere. A station has one open file, as with PX4; opening another one
replaces it. Every request may come again, as its reply may be lost. Logs have a protocol of their
own.

The files are MAVLink's component metadata: JSON that names and explains a vehicle's parameters.
https://mavlink.io/en/services/component_information.html
"""

from __future__ import annotations

import dataclasses
import json
import os
import struct
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

from rfly_mavlink.dialect.wire import Address, Peer, Send, load_dialect, newer_message, peer_of
from rfly_mavlink.stations.parameter_protocol import ControllerGains, FixedParameter, Tunables

MOST_SESSIONS = 16
"""Number of files that are open at once; the oldest is closed for one more."""
PACKETS_A_BURST = 40
"""Number of packets of a burst, after which the station asks for the rest."""
DATA_BYTES = 239
"""Size of the largest data of a message, bytes."""
_PAYLOAD_BYTES = 251
_HEADER = struct.Struct("<HBBBBBxI")

VERSION = (0, 1, 0)
"""Version of the package."""
INTERFACE_VERSION = (1, 16, 0)
"""PX4's version whose modes, commands and encodings the vehicle follows."""
FOLDER = "metadata"
"""Folder of the files."""
GENERAL = "general.json"
"""File that names the other ones."""
PARAMETERS = "parameters.json"
"""File of the parameters."""
_TYPE_PARAMETER = 1
"""COMP_METADATA_TYPE_PARAMETER."""
_FORMAT_VERSION = 1
"""Version of both files' formats, as PX4 writes and QGroundControl reads them."""


class Nak(Exception):
    """A refused request, by the name of its MAV_FTP_ERR."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.data = bytes((getattr(load_dialect(), f"MAV_FTP_ERR_{error}"),))


class FtpPacket(NamedTuple):
    """The payload of a FILE_TRANSFER_PROTOCOL."""

    seq: int
    session: int
    opcode: int
    size: int
    request: int
    """Opcode that is answered."""
    burst_complete: int
    offset: int
    data: bytes = b""

    @classmethod
    def of_payload(cls, payload: bytes) -> FtpPacket:
        """Return the packet in a payload; `data` is whole, `size` may say anything."""
        fields = _HEADER.unpack_from(payload)
        return cls._make((*fields, payload[_HEADER.size :]))

    def payload(self) -> bytes:
        """Return the payload."""
        return (_HEADER.pack(*self[:-1]) + self.data).ljust(_PAYLOAD_BYTES, b"\0")


class _OpenFile(NamedTuple):
    """What a station has opened."""

    session: int
    """Number that the station has proposed."""
    content: bytes


def file_crc(data: bytes) -> int:
    """Return MAVLink's CRC32 of a file.

    The polynomial is zlib's, but it starts with 0 and is not inverted at its end.
    """
    return zlib.crc32(data, 0xFFFFFFFF) ^ 0xFFFFFFFF


class FileTransfer:
    """Answers to the messages of `HANDLED`; `files` returns the files of the only folder."""

    HANDLED = frozenset({"FILE_TRANSFER_PROTOCOL"})

    def __init__(self, folder: str, files: Callable[[], dict[str, bytes]], send: Send) -> None:
        d = self._d = load_dialect()
        self._folder = folder
        self._files = files
        self._send = send
        self._sessions: dict[Peer, _OpenFile] = {}
        self._actions: dict[int, Callable[[FtpPacket, Peer], list[FtpPacket]]] = {
            d.MAV_FTP_OPCODE_NONE: lambda request, _: [_reply(request)],
            d.MAV_FTP_OPCODE_TERMINATESESSION: self._close,
            d.MAV_FTP_OPCODE_RESETSESSION: self._close,
            d.MAV_FTP_OPCODE_LISTDIRECTORY: self._list,
            d.MAV_FTP_OPCODE_OPENFILERO: self._open,
            d.MAV_FTP_OPCODE_READFILE: self._read,
            d.MAV_FTP_OPCODE_CALCFILECRC: self._checksum,
            d.MAV_FTP_OPCODE_BURSTREADFILE: self._burst,
        }
        changes = (
            d.MAV_FTP_OPCODE_CREATEFILE,
            d.MAV_FTP_OPCODE_WRITEFILE,
            d.MAV_FTP_OPCODE_REMOVEFILE,
            d.MAV_FTP_OPCODE_CREATEDIRECTORY,
            d.MAV_FTP_OPCODE_REMOVEDIRECTORY,
            d.MAV_FTP_OPCODE_OPENFILEWO,
            d.MAV_FTP_OPCODE_TRUNCATEFILE,
            d.MAV_FTP_OPCODE_RENAME,
        )
        self._refusals = dict.fromkeys(changes, "FILEPROTECTED")

    def handle(self, message: Any, address: Address) -> None:
        """Take one of HANDLED, for this vehicle; `address` is its sender's."""
        peer = peer_of(message, address)
        request = FtpPacket.of_payload(bytes(message.payload))
        if request.opcode in (self._d.MAV_FTP_OPCODE_ACK, self._d.MAV_FTP_OPCODE_NAK):
            return

        try:
            if request.opcode not in self._actions:
                raise Nak(self._refusals.get(request.opcode, "UNKNOWNCOMMAND"))
            replies = self._actions[request.opcode](request, peer)
        except Nak as refusal:
            replies = [_refused(_reply(request), refusal)]

        for reply in replies:
            self._send(
                self._d.MAVLink_file_transfer_protocol_message(0, *peer.ids, reply.payload()),
                peer.address,
            )

    def forget(self, address: Address) -> None:
        """Close the file of a station that is silent now."""
        for peer in [peer for peer in self._sessions if peer.address == address]:
            del self._sessions[peer]

    # --- folders and files

    def _list(self, request: FtpPacket, _: Peer) -> list[FtpPacket]:
        path = _path(request)
        if path not in ((), (self._folder,)):
            raise Nak("FILENOTFOUND")

        lines = [f"D{self._folder}"]
        if path:
            lines = [f"F{name}\t{len(content)}" for name, content in self._files().items()]
        data = "".join(f"{line}\0" for line in lines[request.offset :]).encode()
        if not data:
            raise Nak("EOF")
        return [_reply(request, data)]

    def _find(self, request: FtpPacket) -> bytes:
        folder, _, name = "/".join(_path(request)).partition("/")
        content = self._files().get(name)
        if folder != self._folder or content is None:
            raise Nak("FILENOTFOUND")
        return content

    def _checksum(self, request: FtpPacket, _: Peer) -> list[FtpPacket]:
        return [_reply(request, struct.pack("<I", file_crc(self._find(request))))]

    # --- sessions

    def _open(self, request: FtpPacket, peer: Peer) -> list[FtpPacket]:
        content = self._find(request)
        self._sessions.pop(peer, None)
        if len(self._sessions) >= MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[peer] = _OpenFile(request.session, content)
        return [_reply(request, struct.pack("<I", len(content)))]

    def _close(self, request: FtpPacket, peer: Peer) -> list[FtpPacket]:
        self._sessions.pop(peer, None)
        return [_reply(request)]

    def _content(self, request: FtpPacket, peer: Peer) -> bytes:
        opened = self._sessions.get(peer)
        if opened is None or opened.session != request.session:
            raise Nak("INVALIDSESSION")
        return opened.content

    def _read(self, request: FtpPacket, peer: Peer) -> list[FtpPacket]:
        content = self._content(request, peer)
        data = content[request.offset : request.offset + _chunk(request)]
        if not data:
            raise Nak("EOF")
        return [_reply(request, data)]

    def _burst(self, request: FtpPacket, peer: Peer) -> list[FtpPacket]:
        """Answer with many packets; the last one says that it is, or the end of the file does."""
        content = self._content(request, peer)
        starts = range(request.offset, len(content), _chunk(request))
        packets = [
            _reply(request, content[start : start + starts.step])._replace(
                seq=(request.seq + number) % 65536, offset=start
            )
            for number, start in enumerate(starts[:PACKETS_A_BURST], 1)
        ]
        if len(packets) < len(starts):
            return [*packets[:-1], packets[-1]._replace(burst_complete=1)]

        seq = (request.seq + len(packets) + 1) % 65536
        end = _refused(_reply(request), Nak("EOF"))
        offset = max(request.offset, len(content))
        return [*packets, end._replace(seq=seq, offset=offset, burst_complete=1)]


def _reply(request: FtpPacket, data: bytes = b"") -> FtpPacket:
    return FtpPacket(
        (request.seq + 1) % 65536,
        request.session,
        load_dialect().MAV_FTP_OPCODE_ACK,
        len(data),
        request.opcode,
        0,
        request.offset,
        data,
    )


def _refused(reply: FtpPacket, refusal: Nak) -> FtpPacket:
    nak = load_dialect().MAV_FTP_OPCODE_NAK
    return reply._replace(opcode=nak, size=len(refusal.data), data=refusal.data)


def _path(request: FtpPacket) -> tuple[str, ...]:
    """Return the names in a path."""
    if request.size > DATA_BYTES:
        raise Nak("INVALIDDATASIZE")
    text = os.fsdecode(request.data[: request.size].rstrip(b"\0"))
    return tuple(name for name in text.split("/") if name)


def _chunk(request: FtpPacket) -> int:
    return min(request.size, DATA_BYTES) or DATA_BYTES


def version_number(version: tuple[int, int, int]) -> int:
    """Return a version as in AUTOPILOT_VERSION, of FIRMWARE_VERSION_TYPE_DEV."""
    major, minor, patch = version
    return major << 24 | minor << 16 | patch << 8


class ComponentMetadata:
    """The metadata files of one vehicle; gains appear once its controller has reported them."""

    def __init__(
        self, uav_type: str, fixed: dict[str, FixedParameter], gains: ControllerGains
    ) -> None:
        self._uav_type = uav_type
        self._fixed = fixed
        self._gains = gains
        self._ranges: dict[str, tuple[float, float]] | None = None
        self._files: dict[str, bytes] = {}

    def files(self) -> dict[str, bytes]:
        """Return the files by name."""
        if self._ranges != self._gains.ranges:
            self._ranges = dict(self._gains.ranges)
            parameters = _json({"version": _FORMAT_VERSION, "parameters": self._parameters()})
            general = {
                "version": _FORMAT_VERSION,
                "vendorName": "rfly_suite",
                "modelName": self._uav_type,
                "firmwareVersion": ".".join(map(str, VERSION)),
                "metadataTypes": [
                    {
                        "type": _TYPE_PARAMETER,
                        "uri": f"mftp:///{FOLDER}/{PARAMETERS}",
                        "fileCrc": file_crc(parameters),
                    }
                ],
            }
            self._files = {GENERAL: _json(general), PARAMETERS: parameters}
        return self._files

    def message(self, ms: int) -> Any:
        """Return COMPONENT_METADATA."""
        uri = f"mftp:///{FOLDER}/{GENERAL}".encode()
        return newer_message("COMPONENT_METADATA", ms, file_crc(self.files()[GENERAL]), uri)

    def _parameters(self) -> list[dict[str, Any]]:
        tunables = [
            _parameter(
                field.metadata["name"],
                shortDesc=field.metadata["text"],
                units=field.metadata["unit"],
                default=field.default,
                min=field.metadata["low"],
                max=field.metadata["high"],
            )
            for field in dataclasses.fields(Tunables)
        ]
        gains = [
            _parameter(name, shortDesc=self._gains.texts.get(name, ""), min=low, max=high)
            for name, (low, high) in self._gains.ranges.items()
        ]
        fixed = [
            {
                "name": name,
                "type": "Int32",
                "group": name.split("_")[0],
                "shortDesc": parameter.text,
                "default": parameter.value,
                "readOnly": True,
            }
            for name, parameter in self._fixed.items()
        ]
        return [*tunables, *gains, *fixed]


def _parameter(name: str, **properties: Any) -> dict[str, Any]:
    group = name.split("_")[0]
    return {"name": name, "type": "Float", "group": group, "decimalPlaces": 3, **properties}


def _json(content: Any) -> bytes:
    return json.dumps(content, indent=1).encode()
