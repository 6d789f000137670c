"""MAVLink's log protocol, the vehicle's side: recorded MCAP files are its logs, byte by byte as
they lie in a folder.

https://mavlink.io/en/messages/common.html, LOG_REQUEST_LIST and what follows; ids count from 0, as
PX4's do.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rfly_common.files import open_regular
from rfly_missions.mavlink.wire import load_dialect

PACKET_BYTES = 90
"""of LOG_DATA"""
PACKETS_A_TICK = 40
MOST_LOGS = 250
MOST_BYTES = 2**32 - 1
MOST_GAPS = 500
STILL_WRITTEN_S = 10.0
"""since its last change, for which a log is not erased"""


@dataclass(frozen=True)
class Log:
    """A file as it was when it was listed."""

    path: Path
    size: int
    changed: float
    """Unix time, s"""


class LogFolder:
    """The newest MCAP files of a folder, or of a file's folder; `may_erase`: a ground station may
    remove them.
    """

    def __init__(self, path: Path | None = None, may_erase: bool = False) -> None:
        self._folder = path if path is None or path.is_dir() else path.parent
        self.may_erase = may_erase

    def list(self) -> list[Log]:
        """Oldest first, without what is no file, or too long for the protocol."""
        found = []
        for path in self._folder.glob("*.mcap") if self._folder is not None else ():
            try:
                status = path.lstat()
            except OSError:  # removed meanwhile
                continue
            if path.is_file() and not path.is_symlink() and 0 < status.st_size <= MOST_BYTES:
                found.append(Log(path, status.st_size, status.st_mtime))
        return sorted(found, key=lambda log: (log.changed, log.path.name))[-MOST_LOGS:]


@dataclass
class _Range:
    """Bytes that were asked for and are not sent yet."""

    log_id: int
    path: Path
    """another list may have given its id to another log since"""
    at: int
    end: int


class LogProtocol:
    """Takes the messages of `HANDLED`; `tick` sends what was asked for, a part at a time."""

    HANDLED = frozenset({"LOG_REQUEST_LIST", "LOG_REQUEST_DATA", "LOG_REQUEST_END", "LOG_ERASE"})

    def __init__(
        self, folder: LogFolder, send: Callable[[Any], None], tell: Callable[[str], None]
    ) -> None:
        """`tell(text)`: why something was not done."""
        self._d = load_dialect()
        self._folder = folder
        self._send = send
        self._tell = tell
        self._logs: list[Log] = []
        self._wanted: list[_Range] = []

    def handle(self, message: Any, armed: bool) -> None:
        """One of HANDLED, for this vehicle."""
        kind = message.get_type()
        if kind == "LOG_REQUEST_LIST":
            self._send_list(message.start, message.end)
        elif kind == "LOG_REQUEST_DATA":
            self._want(message.id, message.ofs, message.count)
        elif kind == "LOG_REQUEST_END":
            self._wanted.clear()
        elif armed or not self._folder.may_erase:
            self._tell(
                "Logs are kept: it is armed"
                if armed
                else "Logs are kept: parameter erase_logs is false"
            )
        else:
            self._erase()

    def _send_list(self, start: int, end: int) -> None:
        self._logs = logs = self._folder.list()
        last = max(len(logs) - 1, 0)
        if not logs:
            self._send(self._d.MAVLink_log_entry_message(0, 0, 0, 0, 0))
        for number, log in list(enumerate(logs))[start : end + 1]:
            self._send(
                self._d.MAVLink_log_entry_message(
                    number, len(logs), last, int(log.changed), log.size
                )
            )

    def _want(self, log_id: int, start: int, count: int) -> None:
        """A packet at a time fills gaps; anything longer replaces what was asked for before."""
        if not self._logs:
            self._logs = self._folder.list()
        log = self._logs[log_id] if log_id < len(self._logs) else None
        if count > PACKET_BYTES or len(self._wanted) >= MOST_GAPS:
            self._wanted.clear()
        if log is None or start >= log.size:
            self._send_data(log_id, start, b"")
        else:
            self._wanted.append(_Range(log_id, log.path, start, min(start + count, log.size)))

    def tick(self) -> None:
        """Send the next part."""
        packets = PACKETS_A_TICK
        while self._wanted and packets > 0:
            wanted = self._wanted[0]
            length = min(wanted.end - wanted.at, packets * PACKET_BYTES)
            data = self._read(wanted.path, wanted.at, length)
            for start in range(0, len(data), PACKET_BYTES):
                self._send_data(
                    wanted.log_id, wanted.at + start, data[start : start + PACKET_BYTES]
                )
            packets -= max(1, -(-len(data) // PACKET_BYTES))
            wanted.at += len(data)
            if len(data) < length:  # it was cut meanwhile
                self._send_data(wanted.log_id, wanted.at, b"")
            if len(data) < length or wanted.at >= wanted.end:
                self._wanted.pop(0)

    def _read(self, path: Path, start: int, length: int) -> bytes:
        try:
            with open_regular(path) as file:
                file.seek(start)
                return file.read(length)
        except OSError as error:
            self._tell(f"{path.name}: {error.strerror or error}")
            return b""

    def _send_data(self, log_id: int, start: int, data: bytes) -> None:
        padded = list(data.ljust(PACKET_BYTES, b"\0"))
        self._send(self._d.MAVLink_log_data_message(log_id, start, len(data), padded))

    def _erase(self) -> None:
        """All that is listed, but for what somebody still writes."""
        self._wanted.clear()
        erased = 0
        for log in self._folder.list():
            if time.time() - log.changed < STILL_WRITTEN_S:
                continue
            try:
                log.path.unlink()
                erased += 1
            except OSError as error:
                self._tell(f"{log.path.name}: {error.strerror or error}")
        self._logs = []
        self._tell(f"{erased} logs erased")
