# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink's file transfer protocol, the vehicle's side: a small folder that is read-only.

https://mavlink.io/en/services/ftp.html

Theory of operation: the folders and files that stations see are tables of names. A path is looked
up in them and is never joined to a path of this machine, so no path leads out of them. `/metadata`
has files made here, and `/logs` the files of a LogFolder. An open file is a session, which belongs
to the station that opened it. Replies are at once, but for two requests that may need long: bursts
and checksums go on in `tick`, a part at a time.
"""

from __future__ import annotations

import io
import os
import struct
import time as system_time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

from rfly_common.files import open_regular
from rfly_mavlink.dialect.wire import Address, Peer, Send, load_dialect, peer_of
from rfly_mavlink.stations.log_protocol import STILL_WRITTEN_S, Log, LogFolder

LOGS = "logs"
"""Folder of the logs."""
MOST_SESSIONS = 16
"""Number of files that are open at once, in all."""
MOST_SESSIONS_EACH = 4
"""Number of files that are open for one address."""
MOST_CHECKSUMS = 8
"""Number of checksums that are calculated at once."""
REPEATED_S = 5.0
"""Wall time, s, within which a request that comes again gets the same reply."""
MOST_REPLIES = 64
"""Number of replies that are kept, in case they have to be sent again."""
SESSION_S = 30.0
"""Wall time without a request, s, after which a file is closed."""
PACKETS_A_TICK = 40
"""Number of packets of bursts that are sent in one tick, to all stations together."""
CRC_BYTES_A_TICK = 1 << 20
"""Size of the parts in which checksums are calculated, bytes."""
LISTING_S = 1.0
"""Wall time, s, after which the folder of the logs is read again."""
DATA_BYTES = 239
"""Size of the largest data of a message, bytes."""
_PAYLOAD_BYTES = 251
_HEADER = struct.Struct("<HBBBBBxI")


class Nak(Exception):
    """A refused request, by the name of its MAV_FTP_ERR; FAILERRNO has a number of the system."""

    def __init__(self, error: str, number: int = 0) -> None:
        super().__init__(error)
        code = getattr(load_dialect(), f"MAV_FTP_ERR_{error}")
        self.data = bytes((code, number)) if error == "FAILERRNO" else bytes((code,))


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


@dataclass(frozen=True)
class _Entry:
    """A file that stations see."""

    size: int
    content: bytes = b""
    log: Log | None = None
    """The file on this machine; None: `content` is the file."""

    def open(self) -> BinaryIO:
        if self.log is None:
            return io.BytesIO(self.content)
        if self.log.path.is_symlink():
            raise Nak("FILENOTFOUND")
        try:
            return open_regular(self.log.path)
        except OSError as error:
            raise Nak("FAILERRNO", _errno(error)) from None


@dataclass
class _Session:
    """An open file."""

    peer: Peer
    file: BinaryIO
    size: int
    """Size when it was opened, bytes; what is appended later is left out."""
    used_at: float
    """Wall time of the last request, s."""
    burst: FtpPacket | None = None
    """The next packet of the burst that is under way."""
    chunk: int = DATA_BYTES
    """Size of the data in the burst's packets, bytes."""


@dataclass
class _Checksum:
    """A checksum that is being calculated."""

    request: FtpPacket
    file: BinaryIO
    left: int
    """Number of bytes that are not read yet."""
    value: int = 0


def file_crc(data: bytes, before: int = 0) -> int:
    """Return MAVLink's CRC32 of a file, whose part before `data` has a CRC32 already.

    The polynomial is zlib's, but it starts with 0 and is not inverted at its end.
    """
    return zlib.crc32(data, before ^ 0xFFFFFFFF) ^ 0xFFFFFFFF


class FileTransfer:
    """Answers to FILE_TRANSFER_PROTOCOL, for one vehicle."""

    HANDLED = frozenset({"FILE_TRANSFER_PROTOCOL"})

    def __init__(
        self,
        metadata_folder: str,
        metadata: Callable[[], dict[str, bytes]],
        logs: LogFolder,
        send: Send,
    ) -> None:
        """Start; `metadata` returns the files of the folder `metadata_folder`."""
        self._d = load_dialect()
        self._metadata_folder = metadata_folder
        self._metadata = metadata
        self._logs = logs
        self._send = send
        self._listing: dict[str, _Entry] = {}
        self._listed_at = -float("inf")
        self._sessions: dict[tuple[Peer, int], _Session] = {}
        """Open files by station and number; stations may use the same numbers."""
        self._checksums: dict[Peer, _Checksum] = {}
        self._answered: dict[Peer, tuple[bytes, FtpPacket, float]] = {}
        """The last request of each station, its reply, and the wall time, s."""
        self._wall = 0.0
        self._armed = False

        d = self._d
        self._writing = frozenset(
            {
                d.MAV_FTP_OPCODE_CREATEFILE,
                d.MAV_FTP_OPCODE_WRITEFILE,
                d.MAV_FTP_OPCODE_CREATEDIRECTORY,
                d.MAV_FTP_OPCODE_REMOVEDIRECTORY,
                d.MAV_FTP_OPCODE_OPENFILEWO,
                d.MAV_FTP_OPCODE_TRUNCATEFILE,
                d.MAV_FTP_OPCODE_RENAME,
            }
        )
        """Requests that would change something, all refused."""
        self._actions: dict[int, Callable[[FtpPacket, Peer], FtpPacket | None]] = {
            d.MAV_FTP_OPCODE_NONE: lambda request, _: _reply(request),
            d.MAV_FTP_OPCODE_TERMINATESESSION: self._terminate,
            d.MAV_FTP_OPCODE_RESETSESSION: self._reset,
            d.MAV_FTP_OPCODE_LISTDIRECTORY: self._list,
            d.MAV_FTP_OPCODE_OPENFILERO: self._open,
            d.MAV_FTP_OPCODE_READFILE: self._read,
            d.MAV_FTP_OPCODE_REMOVEFILE: self._remove,
            d.MAV_FTP_OPCODE_CALCFILECRC: self._begin_checksum,
            d.MAV_FTP_OPCODE_BURSTREADFILE: self._begin_burst,
        }

    def handle(self, message: Any, wall: float, armed: bool, address: Address) -> None:
        """Take a request for this vehicle; `address` is its sender's."""
        peer = peer_of(message, address)
        payload = bytes(message.payload)
        request = FtpPacket.of_payload(payload)
        if request.opcode in (self._d.MAV_FTP_OPCODE_ACK, self._d.MAV_FTP_OPCODE_NAK):
            return

        # the reply was lost
        if peer in self._answered:
            asked, reply, replied_at = self._answered[peer]
            if asked == payload and wall - replied_at < REPEATED_S:
                self._reply_to(peer, reply)
                return

        self._wall = wall
        self._armed = armed
        try:
            answer = self._answer(request, peer)
        except Nak as refusal:
            answer = _reply(request, refusal.data, refused=True)

        self._answered.pop(peer, None)
        if answer is not None:
            self._answered[peer] = payload, answer, wall
            while len(self._answered) > MOST_REPLIES:
                del self._answered[next(iter(self._answered))]
            self._reply_to(peer, answer)

    def _answer(self, request: FtpPacket, peer: Peer) -> FtpPacket | None:
        if request.opcode in self._writing:
            raise Nak("FILEPROTECTED")
        if request.opcode not in self._actions:
            raise Nak("UNKNOWNCOMMAND")
        return self._actions[request.opcode](request, peer)

    def tick(self, wall: float) -> None:
        """Go on with bursts and checksums, and close files that are no longer read."""
        for key, session in list(self._sessions.items()):
            if session.burst is None and wall - session.used_at > SESSION_S:
                self._close(key)

        bursts = [session for session in self._sessions.values() if session.burst is not None]
        for session in bursts:
            self._send_burst(session, max(1, PACKETS_A_TICK // len(bursts)))
            session.used_at = wall
        for peer, checksum in list(self._checksums.items()):
            self._calculate(peer, checksum)

    def forget(self, address: Address) -> None:
        """Close the files of stations at an address, and forget what they requested."""
        for key in list(self._sessions):
            if key[0].address == address:
                self._close(key)
        for peer in [*self._checksums, *self._answered]:
            if peer.address == address:
                self._stop_checksum(peer)
                self._answered.pop(peer, None)

    def _reply_to(self, peer: Peer, reply: FtpPacket) -> None:
        message = self._d.MAVLink_file_transfer_protocol_message(0, *peer.ids, reply.payload())
        self._send(message, peer.address)

    # --- folders

    def _folder(self, name: str) -> dict[str, _Entry]:
        """Return the files of a folder by name; raise Nak if there is no such folder."""
        if name == self._metadata_folder:
            return {
                file: _Entry(len(content), content) for file, content in self._metadata().items()
            }
        if name != LOGS:
            raise Nak("FILENOTFOUND")

        if self._wall - self._listed_at > LISTING_S:
            self._listed_at = self._wall
            self._listing = {log.path.name: _Entry(log.size, log=log) for log in self._logs.list()}
        return self._listing

    def _find(self, path: tuple[str, ...]) -> _Entry:
        if len(path) != 2:
            raise Nak("FILENOTFOUND")
        entry = self._folder(path[0]).get(path[1])
        if entry is None:
            raise Nak("FILENOTFOUND")
        return entry

    def _list(self, request: FtpPacket, _: Peer) -> FtpPacket:
        path = _path(request)
        if not path:
            entries = [b"D" + name.encode() for name in (self._metadata_folder, LOGS)]
        elif len(path) == 1:
            entries = [_line(name, entry) for name, entry in self._folder(path[0]).items()]
        else:
            raise Nak("FILENOTFOUND")

        data = b""
        for entry in entries[request.offset :]:
            if len(data) + len(entry) + 1 > DATA_BYTES:
                break
            data += entry + b"\0"
        if not data:
            raise Nak("EOF")
        return _reply(request, data)

    def _remove(self, request: FtpPacket, _: Peer) -> FtpPacket:
        log = self._find(_path(request)).log
        is_written = log is not None and system_time.time() - log.changed < STILL_WRITTEN_S
        if log is None or is_written or self._armed or not self._logs.may_erase:
            raise Nak("FILEPROTECTED")
        try:
            log.path.unlink()
        except OSError as error:
            raise Nak("FAILERRNO", _errno(error)) from None
        self._listed_at = -float("inf")
        return _reply(request)

    # --- sessions

    def _open(self, request: FtpPacket, peer: Peer) -> FtpPacket:
        entry = self._find(_path(request))
        addresses = [owner.address for owner, _ in self._sessions]
        if addresses.count(peer.address) >= MOST_SESSIONS_EACH or len(addresses) >= MOST_SESSIONS:
            raise Nak("NOSESSIONSAVAILABLE")

        # the number that the station proposes: MAVProxy reads replies with no other one
        numbers = (request.session, *range(MOST_SESSIONS))
        number = next(each for each in numbers if (peer, each) not in self._sessions)
        self._sessions[peer, number] = _Session(peer, entry.open(), entry.size, self._wall)
        return _reply(request, struct.pack("<I", entry.size), session=number)

    def _session(self, request: FtpPacket, peer: Peer) -> _Session:
        session = self._sessions.get((peer, request.session))
        if session is None:
            raise Nak("INVALIDSESSION")
        session.used_at = self._wall
        return session

    def _terminate(self, request: FtpPacket, peer: Peer) -> FtpPacket:
        self._session(request, peer)
        self._close((peer, request.session))
        return _reply(request)

    def _reset(self, request: FtpPacket, peer: Peer) -> FtpPacket:
        """Close the station's own files."""
        for key in list(self._sessions):
            if key[0] == peer:
                self._close(key)
        self._stop_checksum(peer)
        return _reply(request)

    def _close(self, key: tuple[Peer, int]) -> None:
        self._sessions.pop(key).file.close()

    def _read(self, request: FtpPacket, peer: Peer) -> FtpPacket:
        session = self._session(request, peer)
        data = _part(session, request.offset, _chunk(request))
        if not data:
            raise Nak("EOF")
        return _reply(request, data)

    # --- bursts

    def _begin_burst(self, request: FtpPacket, peer: Peer) -> None:
        session = self._session(request, peer)
        session.burst = _reply(request)
        session.chunk = _chunk(request)

    def _send_burst(self, session: _Session, packets: int) -> None:
        for _ in range(packets):
            burst = session.burst
            if burst is None:
                return

            try:
                data = _part(session, burst.offset, session.chunk)
                refusal = Nak("EOF")
            except Nak as failure:
                data = b""
                refusal = failure

            if data:
                self._reply_to(session.peer, burst._replace(size=len(data), data=data))
                offset = burst.offset + len(data)
                session.burst = burst._replace(seq=(burst.seq + 1) % 65536, offset=offset)
            else:
                end = burst._replace(
                    opcode=self._d.MAV_FTP_OPCODE_NAK,
                    size=len(refusal.data),
                    data=refusal.data,
                    burst_complete=1,
                )
                self._reply_to(session.peer, end)
                session.burst = None

    # --- checksums

    def _begin_checksum(self, request: FtpPacket, peer: Peer) -> None:
        entry = self._find(_path(request))
        under_way = self._checksums.get(peer)
        if under_way is not None and under_way.request == request:
            return
        self._stop_checksum(peer)
        if len(self._checksums) >= MOST_CHECKSUMS:
            raise Nak("NOSESSIONSAVAILABLE")
        self._checksums[peer] = _Checksum(request, entry.open(), entry.size)

    def _stop_checksum(self, peer: Peer) -> None:
        if peer in self._checksums:
            self._checksums.pop(peer).file.close()

    def _calculate(self, peer: Peer, checksum: _Checksum) -> None:
        size = min(checksum.left, CRC_BYTES_A_TICK // len(self._checksums))
        request = checksum.request
        try:
            data = checksum.file.read(size)
            reply = _reply(request, struct.pack("<I", checksum.value))
        except OSError as error:
            data = b""
            refusal = Nak("FAILERRNO", _errno(error))
            reply = _reply(request, refusal.data, refused=True)

        checksum.left -= len(data)
        checksum.value = file_crc(data, checksum.value)
        if not data:
            self._stop_checksum(peer)
            self._reply_to(peer, reply)


def _reply(
    request: FtpPacket, data: bytes = b"", *, refused: bool = False, session: int | None = None
) -> FtpPacket:
    """Return the reply to a request; its sequence number is the next one."""
    d = load_dialect()
    return FtpPacket(
        (request.seq + 1) % 65536,
        request.session if session is None else session,
        d.MAV_FTP_OPCODE_NAK if refused else d.MAV_FTP_OPCODE_ACK,
        len(data),
        request.opcode,
        0,
        request.offset,
        data,
    )


def _path(request: FtpPacket) -> tuple[str, ...]:
    """Return the names in a path; raise Nak for one that names nothing here."""
    if request.size > DATA_BYTES:
        raise Nak("INVALIDDATASIZE")
    text = os.fsdecode(request.data[: request.size].rstrip(b"\0"))
    return tuple(name for name in text.split("/") if name)


def _chunk(request: FtpPacket) -> int:
    """Return the number of bytes that a request wants in a reply."""
    return min(request.size, DATA_BYTES) or DATA_BYTES


def _line(name: str, entry: _Entry) -> bytes:
    """Return a file's line in a listing; S is one that is left out, but counted."""
    line = b"F%s\t%d" % (os.fsencode(name), entry.size)
    is_whole = len(line) < DATA_BYTES and name.isprintable()
    return line if is_whole else b"S"


def _part(session: _Session, offset: int, size: int) -> bytes:
    try:
        session.file.seek(offset)
        return session.file.read(max(0, min(size, session.size - offset)))
    except OSError as error:
        raise Nak("FAILERRNO", _errno(error)) from None


def _errno(error: OSError) -> int:
    return (error.errno or 0) & 0xFF
