"""viser server restricted to its own page."""

from __future__ import annotations

import functools
import http
import ipaddress
import logging
from collections.abc import Callable
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import rich
import viser
import viser._client_autobuild
import websockets.asyncio.server
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from rfly_ue_bridge.viewer.connections import MAX_MESSAGE_BYTES, BrowserConnections, NoHandshakeErrors


class _LocalServer(viser.ViserServer):
    """Without viser's tunnel through a public server, which a browser could ask for too."""

    def request_share_url(self, verbose: bool = True) -> str | None:
        """None: there is no such address."""
        return None


def open_server(host: str, port: int) -> tuple[viser.ViserServer, BrowserConnections]:
    """A server on this address, or on the next free port above, and its connections; it says nothing on the terminal.

    Its WebSocket takes requests of its own page only: other pages in the same browser, which may ask any address of
    this machine, are refused. How many may connect and what they may say is in `connections`.
    """
    rich.get_console().quiet = True
    logging.getLogger("websockets.server").addFilter(NoHandshakeErrors())
    connections = BrowserConnections()
    serve = functools.partial(_serve, websockets.asyncio.server.serve, _is_loopback(host), connections)
    # viser offers no way to see a request's headers, or to leave out the rebuilding of the page that its wheel brings
    with (
        mock.patch.object(websockets.asyncio.server, "serve", serve),
        mock.patch.object(viser._client_autobuild, "ensure_client_is_built", return_value=None),
    ):
        server = _LocalServer(host, port, label="rfly view", verbose=False)
    server.gui.configure_theme(show_logo=False, show_share_button=False)
    controls = server.gui._gui_input_handle_from_uuid
    connections.present_value = lambda uuid: controls[uuid].value if uuid in controls else None
    return server, connections


def _serve(
    serve: Callable[..., Any], loopback: bool, connections: BrowserConnections, *arguments: Any, **options: Any
) -> Any:
    """`websockets.asyncio.server.serve` with the checks before viser's own handling of a request and of messages."""
    inner = options["process_request"]

    def process_request(connection: Any, request: Request) -> Response | None:
        if not is_own_page(request.headers.get("Host", ""), request.headers.get("Origin"), loopback):
            return Response(http.HTTPStatus.FORBIDDEN, "FORBIDDEN", Headers(), b"only for the viewer's own page\n")
        if request.headers.get("Upgrade", "").lower() == "websocket":
            if not connections.room_for_browser():
                connections.counters["refused"] += 1
                return Response(http.HTTPStatus.SERVICE_UNAVAILABLE, "BUSY", Headers(), b"too many browsers\n")
            connection.browsing = True
        answer: Response | None = inner(connection, request)
        return answer

    limits = {"create_connection": connections.connection, "max_size": MAX_MESSAGE_BYTES}
    return serve(*arguments, **{**options, **limits, "process_request": process_request})


def is_own_page(host: str, origin: str | None, loopback: bool) -> bool:
    """Whether a request comes from the page of this server, or from no page at all (`origin` None).

    A server on loopback is also asked by its own name only: a foreign name that was made to lead here is refused.
    """
    if origin is not None and urlsplit(origin).netloc != host:
        return False
    return not loopback or _is_loopback(urlsplit(f"//{host}").hostname or "")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
