# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink's log protocol, the vehicle's side: the logs are the MCAP files of a folder.

https://mavlink.io/en/messages/common.html, LOG_REQUEST_LIST and what follows; ids count from 0, as
PX4's do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rfly_common.files import open_regular
from rfly_mavlink.dialect.wire import Address, Send, load_dialect

PACKET_BYTES = 90
"""Size of the data in a LOG_DATA, bytes."""
PACKETS_A_TICK = 40
"""Number of packets that are sent in one tick, to all stations together."""
MOST_LOGS = 250
"""Number of logs that are listed."""
MOST_BYTES = 2**32 - 1
"""Size of the largest log that the protocol can name, bytes."""
MOST_GAPS = 500
"""Number of requested ranges of a station that are remembered."""


@dataclass(frozen=True)
class Log:
    """A file as it was when it was listed."""

    path: Path
    size: int
    """Bytes."""
    changed: float
    """Unix time of the last change, s."""


class LogFolder:
    """The newest MCAP files of a folder, or of a file's folder."""

    def __init__(self, path: Path | None = None) -> None:
        self._folder = path if path is None or path.is_dir() else path.parent

    def list(self) -> list[Log]:
        """Return the logs, oldest first, without files that are too long for the protocol."""
        logs = []
        for path in self._folder.glob("*.[mM][cC][aA][pP]") if self._folder else ():
            try:
                status = path.lstat()
            except OSError:  # removed meanwhile
                continue
            if path.is_file() and not path.is_symlink() and 0 < status.st_size <= MOST_BYTES:
                logs.append(Log(path, status.st_size, status.st_mtime))

        return sorted(logs, key=lambda log: (log.changed, log.path.name))[-MOST_LOGS:]


@dataclass
class _Range:
    """Bytes that were requested and are not sent yet."""

    log_id: int
    path: Path
    """Path of the log; a new list may give its id to another one."""
    start: int
    """First byte that has not been sent."""
    end: int
    """Byte after the last."""


class LogProtocol:
    """Answers to the messages of `HANDLED`; `tick` sends requested data, a part at a time."""

    HANDLED = frozenset({"LOG_REQUEST_LIST", "LOG_REQUEST_DATA", "LOG_REQUEST_END", "LOG_ERASE"})

    def __init__(self, folder: LogFolder, send: Send, report: Callable[[str], None]) -> None:
        """Start with no list; `report` receives the reasons of refusals."""
        self._d = load_dialect()
        self._folder = folder
        self._send = send
        self._report = report
        self._logs: list[Log] = []
        self._requested: dict[Address, list[_Range]] = {}

    def handle(self, message: Any, address: Address) -> None:
        """Take one of HANDLED, for this vehicle; `address` is its sender's."""
        kind = message.get_type()
        if kind == "LOG_REQUEST_LIST":
            self._send_list(message.start, message.end, address)
        elif kind == "LOG_REQUEST_DATA":
            self._request(message.id, message.ofs, message.count, address)
        elif kind == "LOG_REQUEST_END":
            self.forget(address)
        else:
            self._report("Logs are kept: stations cannot erase them")

    def forget(self, address: Address) -> None:
        """Forget the requests of a station."""
        self._requested.pop(address, None)

    def _send_list(self, start: int, end: int, address: Address) -> None:
        self._logs = logs = self._folder.list()
        last = max(len(logs) - 1, 0)
        if not logs:
            self._send(self._d.MAVLink_log_entry_message(0, 0, 0, 0, 0), address)

        for number, log in list(enumerate(logs))[start : end + 1]:
            time_utc = int(log.changed) if 0 <= log.changed < 2**32 else 0  # 0: unknown
            self._send(
                self._d.MAVLink_log_entry_message(number, len(logs), last, time_utc, log.size),
                address,
            )

    def _request(self, log_id: int, start: int, count: int, address: Address) -> None:
        """Add a range: a packet at a time fills gaps; a longer one replaces the requests before."""
        if not self._logs:
            self._logs = self._folder.list()
        log = self._logs[log_id] if log_id < len(self._logs) else None

        if count > PACKET_BYTES or len(self._requested.get(address, ())) >= MOST_GAPS:
            self.forget(address)
        if log is None or start >= log.size:
            self._send_data(log_id, start, b"", address)
        else:
            part = _Range(log_id, log.path, start, min(start + count, log.size))
            self._requested.setdefault(address, []).append(part)

    def tick(self) -> None:
        """Send each station the next part."""
        for address, parts in list(self._requested.items()):
            self._send_parts(address, parts, max(1, PACKETS_A_TICK // len(self._requested)))
            if not parts:
                self.forget(address)

    def _send_parts(self, address: Address, parts: list[_Range], packets: int) -> None:
        while parts and packets > 0:
            part = parts[0]
            length = min(part.end - part.start, packets * PACKET_BYTES)
            data = self._read(part.path, part.start, length)
            for offset in range(0, len(data), PACKET_BYTES):
                packet = data[offset : offset + PACKET_BYTES]
                self._send_data(part.log_id, part.start + offset, packet, address)

            packets -= max(1, -(-len(data) // PACKET_BYTES))
            part.start += len(data)
            if len(data) < length:  # the file has become shorter
                self._send_data(part.log_id, part.start, b"", address)
            if len(data) < length or part.start >= part.end:
                parts.pop(0)

    def _read(self, path: Path, start: int, length: int) -> bytes:
        try:
            with open_regular(path) as file:
                file.seek(start)
                return file.read(length)
        except OSError as error:
            self._report(f"{path.name}: {error.strerror or error}")
            return b""

    def _send_data(self, log_id: int, start: int, data: bytes, address: Address) -> None:
        padded = list(data.ljust(PACKET_BYTES, b"\0"))
        self._send(self._d.MAVLink_log_data_message(log_id, start, len(data), padded), address)
