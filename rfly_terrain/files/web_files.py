# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Files on web servers and object stores; only the parts that are needed are read.

A `WebPlace` is made only of an address that the user allows; any other text is a path. GDAL's own
network stays off: it follows redirects to any host and remembers failures. Here no redirect is
followed, no password is sent, and size and time of a request are limited.
"""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv6Address
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from rfly_common.errors import ConfigError
from rfly_common.files import Closing
from rfly_common.untrusted_files.reader_errors import terrain_file_errors
from rfly_terrain.map_files.search import is_web

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse
    from socket import socket

REQUEST_S = 10.0
"""Time of a request, from the connection to the last byte, s."""
FEWEST_BYTES = 1 << 14
"""Bytes that a request asks for, at least: all of a raster's tags."""
MOST_BYTES = 1 << 28
"""Bytes that are read of a file while it is open, at most."""
MOST_AT_ONCE = 1 << 16
"""Bytes between two checks of the time, at most."""
_ADDRESS = re.compile(
    r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?(/[A-Za-z0-9._~%+/-]*)?"
)
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


@dataclass(frozen=True)
class WebPlace:
    """Address of a file or folder on a server that may be asked."""

    url: str
    """http or https, a host, and perhaps a port and a path, without a slash at the end."""

    @classmethod
    def allowed(cls, url: str) -> WebPlace:
        """Return the place of an address. Raises ConfigError, whose text has no password of it."""
        if not (_ADDRESS.fullmatch(url) and _can_be_asked(url)):
            raise ConfigError(
                "address of a map server: expected http(s)://HOST[:PORT]/FOLDER, without user, "
                "password, ? and #"
            )
        return cls(url.rstrip("/"))

    def below(self, name: str) -> WebPlace | None:
        """Return the place of a relative or whole address, None if it is not below this one."""
        if is_web(name):
            if not name.startswith(f"{self.url}/"):
                return None
            name = unquote(name[len(self.url) + 1 :])
        name = name.rstrip("/")
        steps = name.split("/")
        if {"", ".", ".."} & set(steps) or re.search(r"[\\?#%:\x00-\x1f]", name):
            return None
        return self / name

    def __truediv__(self, name: str) -> WebPlace:
        return WebPlace(f"{self.url}/{quote(name)}")

    def __fspath__(self) -> str:
        return self.url

    def __str__(self) -> str:
        return self.url

    @property
    def suffix(self) -> str:
        """Ending of the name, such as ".tif"."""
        return PurePosixPath(urlsplit(self.url).path).suffix

    @property
    def name(self) -> str:
        """Name without folders, no character escaped."""
        return PurePosixPath(unquote(urlsplit(self.url).path)).name

    def read(self, max_bytes: int) -> bytes:
        """Return the content of a file. Raises OSError, also if it is larger than max_bytes."""
        with WebFile(self) as file:
            data = file.part(0, max_bytes + 1)
        if len(data) > max_bytes:
            raise OSError(f"larger than {max_bytes:,} bytes")
        return data

    def exists(self) -> bool:
        """Return whether the server has the file. Raises OSError if it does not say so."""
        try:
            with WebFile(self) as file:
                file.part(0, 1)
        except FileNotFoundError:
            return False
        return True


def _can_be_asked(url: str) -> bool:
    """Return whether host and port of an address have the form that a connection takes."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        host.encode("idna")  # labels of 1 to 63 characters
        if "[" in parts.netloc:
            IPv6Address(host)  # checked by urlsplit itself from Python 3.11.4 on
        return parts.port != 0  # raises for one above 65,535
    except ValueError:
        return False


class WebFile(Closing):
    """A file that is open, with one connection. Parts of it are read by range requests."""

    def __init__(self, place: WebPlace) -> None:
        self.place = place
        self.error: OSError | None = None
        """Reason why a part could not be read; after it none is."""
        self.size: int | None = None
        """Bytes of the file; None before the first part."""
        self._left = MOST_BYTES
        self._start = 0
        self._held = b""
        """Bytes that were read last, from `_start`."""
        self._connection: HTTPConnection | None = None

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def part(self, start: int, count: int) -> bytes:
        """Return some bytes, fewer at the end of the file. Raises OSError."""
        if self.size is not None:
            count = min(count, self.size - start)
        if count <= 0:
            return b""
        begin = start - self._start
        if not 0 <= begin <= begin + count <= len(self._held):
            if self.error is not None:
                raise self.error
            try:
                self._held = self._fetched(start, max(count, FEWEST_BYTES))
            except OSError as error:
                self.error = error
                raise
            self._start = start
            begin = 0
        return self._held[begin : begin + count]

    def _fetched(self, start: int, count: int) -> bytes:
        """Return bytes from the server."""
        from http.client import HTTPException

        if count > self._left:
            raise OSError(f"more than {MOST_BYTES:,} bytes would be read of it at once")
        self._left -= count
        try:
            response = self._response(start, count)
            size, expected = self._checked(response, start, count)
            data = bytearray()
            while len(data) < expected:
                piece = response.read1(min(expected - len(data), MOST_AT_ONCE))
                if not piece:
                    raise OSError("the server ended its answer too early")
                data += piece
            if response.read(1):  # also frees the connection for the next request
                raise OSError("the server sends more than was asked for")
        except TimeoutError:
            raise OSError(f"the server has not answered within {REQUEST_S:g} s") from None
        except HTTPException as error:
            raise OSError(f"the server's answer is no HTTP ({type(error).__name__})") from error
        self.size = size
        return bytes(data)

    def _response(self, start: int, count: int) -> HTTPResponse:
        """Ask for bytes, and return the answer without its content.

        A server may have closed a connection that was idle; it is asked again by a new one.
        """
        from http.client import HTTPConnection, HTTPSConnection

        parts = urlsplit(self.place.url)
        deadline = time.monotonic() + REQUEST_S
        was_idle = self._connection is not None
        if self._connection is None:
            kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
            self._connection = kind(parts.netloc)
        try:
            return self._asked(self._connection, start, count, deadline)
        except ConnectionError:
            self._connection.close()
            if not was_idle:
                raise
            return self._asked(self._connection, start, count, deadline)

    def _asked(
        self, connection: HTTPConnection, start: int, count: int, deadline: float
    ) -> HTTPResponse:
        """Ask for bytes on a connection, which is made if it is closed."""
        headers = {"Range": f"bytes={start}-{start + count - 1}", "Accept-Encoding": "identity"}
        connection.timeout = _time_left(deadline)
        if connection.sock is not None:
            connection.sock.settimeout(connection.timeout)
        connection.response_class = _response_until(deadline)  # type: ignore[assignment]
        connection.request("GET", urlsplit(self.place.url).path or "/", headers=headers)
        return connection.getresponse()

    def _checked(self, response: HTTPResponse, start: int, count: int) -> tuple[int, int]:
        """Return the bytes of the file and of the answer. Raises OSError for any other answer."""
        status = response.status
        if status in (404, 410):
            raise FileNotFoundError
        if 300 <= status < 400:
            raise OSError(f"the server redirects (status {status}), which is not followed")
        if status == 200:
            raise OSError("the server sends whole files only; it must support range requests")
        if status != 206:
            raise OSError(f"the server answers with status {status}")

        found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        first, last, size = map(int, found.groups()) if found else (-1, -1, -1)
        if (first, last) != (start, min(start + count, size) - 1):
            raise OSError("the server sends another part than was asked for")
        if self.size not in (None, size):
            raise OSError("the file has changed while it was read")
        return size, last + 1 - first


def _response_until(deadline: float) -> Callable[..., HTTPResponse]:
    """Return what makes the answers of a connection, which end at a monotonic time, s."""
    from http.client import HTTPResponse

    def response(sock: socket, *args: Any, **options: Any) -> HTTPResponse:
        made = HTTPResponse(sock, *args, **options)
        made.fp = io.BufferedReader(_TimedReader(sock, made.fp.detach(), deadline))
        return made

    return response


def _time_left(deadline: float) -> float:
    """Return the time until a monotonic time, s. Raises TimeoutError after it."""
    left = deadline - time.monotonic()
    if left <= 0.0:
        raise TimeoutError
    return left


class _TimedReader(io.RawIOBase):
    """A socket's file until a monotonic time, s, for head and content; then TimeoutError is raised.

    A socket's own limit is for each piece, so that a server which drips has no end.
    """

    def __init__(self, sock: socket, raw: io.RawIOBase, deadline: float) -> None:
        self._socket = sock
        self._raw = raw
        self._deadline = deadline

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Receive some bytes, and return their number."""
        self._socket.settimeout(_time_left(self._deadline))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """Close the socket's file, too."""
        self._raw.close()
        super().close()


class _Reader(io.RawIOBase):
    """A WebFile as GDAL reads it: nothing is raised, `WebFile.error` has the reason."""

    def __init__(self, file: WebFile) -> None:
        self._file = file
        self._position = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move, and return the new position."""
        if whence == io.SEEK_END:
            self._part(0, 1)
        bases = {io.SEEK_CUR: self._position, io.SEEK_END: self._file.size or 0}
        self._position = bases.get(whence, 0) + offset
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Return some bytes, none after an error."""
        data = self._part(self._position, MOST_BYTES if size < 0 else size)
        self._position += len(data)
        return data

    def _part(self, start: int, count: int) -> bytes:
        try:
            return self._file.part(start, count)
        except OSError:
            return b""


@contextmanager
def web_opener(place: WebPlace) -> Iterator[Callable[..., io.RawIOBase]]:
    """Yield an opener for rasterio. At the end, raise TerrainError if a part could not be read."""
    with WebFile(place) as file:

        def open_file(path: str, mode: str = "rb") -> _Reader:  # rasterio looks at these names
            return _Reader(file)

        try:
            yield open_file
        finally:
            if file.error is not None:
                with terrain_file_errors(place):
                    raise file.error
