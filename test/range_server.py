# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A web server that serves parts of files, in the process of the test."""

from __future__ import annotations

import http.server
import re
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any


class RangeServer:
    """Server of a folder; `answer` may answer a request instead, and returns whether it has.

    `asked` has the path and the Range of each request. With `tls` it speaks https.
    """

    def __init__(
        self,
        folder: Path,
        answer: Callable[[Any], bool] = lambda handler: False,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        server = self
        self.folder = folder
        self.answer = answer
        self.asked: list[tuple[str, str | None]] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                server.asked.append((self.path, self.headers.get("Range")))
                if not server.answer(self):
                    send_part(self, server.folder)

            def log_message(self, *_: Any) -> None:
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        if tls is not None:
            self.http.socket = tls.wrap_socket(self.http.socket, server_side=True)
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.http.server_port}"
        self._thread = threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> RangeServer:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.http.shutdown()
        self.http.server_close()
        self._thread.join()


def send_part(handler: Any, folder: Path) -> None:
    """Answer as RFC 9110 has it: 206 with one range, 404, 416."""
    file = folder / handler.path.lstrip("/")
    if not file.is_file():
        handler.send_error(404)
        return
    data = file.read_bytes()
    first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", handler.headers["Range"]).groups())
    if first >= len(data):
        handler.send_error(416)
        return
    part = data[first : last + 1]
    send(
        handler,
        206,
        part,
        {"Content-Range": f"bytes {first}-{first + len(part) - 1}/{len(data)}"},
    )


def send(handler: Any, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
    """Answer with a status, headers and content."""
    handler.send_response(status)
    for key, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
        handler.send_header(key, value)
    handler.end_headers()
    handler.wfile.write(content)
