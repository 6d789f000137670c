# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Limits of browsers: number of connections, unsent data, and the form of messages.

viser answers its own page and trusts all messages: a message of another form ends in a traceback,
and for a browser that reads nothing it keeps everything that is to be sent. Here a message reaches
viser only if it has the form that the page sends.
"""

from __future__ import annotations

import asyncio
import functools
import http
import logging
import time
import warnings
from collections.abc import Callable
from typing import Annotated, Any, Literal
from unittest import mock

import msgspec
import rich
import viser
import viser._client_autobuild
import websockets.asyncio.server
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from rfly_common.sockets.web_sockets import (
    LimitedConnection,
    NoHandshakeErrors,
    OpenConnections,
    is_loopback,
    is_own_page,
)

MAX_BROWSERS = 8
"""Open WebSockets; each holds the scene about twice while it is sent, some 50 MB."""
MAX_QUEUED_BYTES = 256 << 20
"""Bytes that wait to be sent, of all browsers together; a scene with its ground has some 10 MB."""
MAX_MESSAGE_BYTES = 65_536
"""Largest message, bytes."""
MAX_MESSAGES_PER_S = 300
"""Messages a second from one browser; faster ones wait in the network."""

_NO_LIGHTS = b"""<head><script>
{
  // The page lights the scene by a picture of its own, with shadows, until it is told not to.
  const { set } = Object.getOwnPropertyDescriptor(Node.prototype, "textContent");
  Object.defineProperty(HTMLScriptElement.prototype, "textContent", {
    set(text) {
      set.call(this, text.replace(
        "enableDefaultLights:!0,enableDefaultLightsShadows:!0,environmentMap:null",
        "enableDefaultLights:!1,enableDefaultLightsShadows:!1,environmentMap:{hdri_data:null}"));
    }
  });
}
</script>"""
"""Begin of the page. Without a graphics card its lights would take half a second before the ground.

The page unpacks its script into an element. One that is written otherwise stays as it is.
"""

_Number = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]
"""Number without NaN, for which no comparison holds."""
_Triple = tuple[_Number, _Number, _Number]
_Pixels = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
_Word = Annotated[str, msgspec.Meta(max_length=200)]
_Share = Annotated[float, msgspec.Meta(ge=-10.0, le=10.0)]
_Modifier = Annotated[str, msgspec.Meta(max_length=40)] | None


class _Message(msgspec.Struct, tag_field="type", forbid_unknown_fields=True):
    """Message that the page of viser 1.x sends; the name of the class is the message's."""


class ViewerCameraMessage(_Message):
    wxyz: tuple[_Number, _Number, _Number, _Number]
    position: _Triple
    fov: Annotated[float, msgspec.Meta(gt=0.0, lt=3.1)]
    near: _Number
    far: _Number
    image_height: _Pixels
    image_width: _Pixels
    look_at: _Triple
    up_direction: _Triple

    def fits(self) -> bool:
        return 0.9 < sum(part * part for part in self.wxyz) < 1.1


class ScenePointerMessage(_Message):
    event_type: Literal["click"]
    ray_origin: _Triple
    ray_direction: _Triple
    screen_pos: Annotated[
        tuple[tuple[_Share, _Share], ...], msgspec.Meta(min_length=1, max_length=1)
    ]
    modifier: _Modifier = None

    def fits(self) -> bool:
        return 0.9 < sum(part * part for part in self.ray_direction) < 1.1


class GuiUpdateMessage(_Message):
    uuid: _Word
    updates: dict[Literal["value"], bool | _Number | Annotated[str, msgspec.Meta(max_length=1000)]]


class GuiFormSubmitMessage(_Message):
    uuid: _Word


class GuiFormDirtyMessage(_Message):
    uuid: _Word


class CommandTriggerMessage(_Message):
    uuid: _Word


_DECODER = msgspec.msgpack.Decoder(
    ViewerCameraMessage
    | ScenePointerMessage
    | GuiUpdateMessage
    | GuiFormSubmitMessage
    | GuiFormDirtyMessage
    | CommandTriggerMessage
)


def is_understood(data: bytes | str, present_value: Callable[[str], Any]) -> bool:
    """Return whether viser can take a message.

    `present_value` returns the value of the control with a uuid, None if there is none. A control
    takes a value of its own kind: a number no text, and a text no number.
    """
    if isinstance(data, str) or len(data) > MAX_MESSAGE_BYTES:
        return False

    try:
        message = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False

    if isinstance(message, ViewerCameraMessage | ScenePointerMessage):
        return message.fits()
    if isinstance(message, GuiUpdateMessage):
        wanted = _kind(present_value(message.uuid))
        return all(_kind(value) == wanted for value in message.updates.values())
    return True


def _kind(value: Any) -> Any:
    """Return the kind of a value: truth, number or text; None for anything else."""
    return next((kind for kind in (bool, (int, float), str) if isinstance(value, kind)), None)


class BrowserConnections(OpenConnections):
    """Browsers' connections to the page."""

    def __init__(self) -> None:
        super().__init__(MAX_QUEUED_BYTES)
        self.present_value: Callable[[str], Any] = lambda uuid: None

    def connection(self, *arguments: Any, **options: Any) -> BrowserConnection:
        """Return one more connection, for `websockets.asyncio.server.serve`."""
        return BrowserConnection(self, *arguments, **options)


class BrowserConnection(LimitedConnection):
    """Connection that passes on what viser understands, and not too much of it."""

    others: BrowserConnections

    def __init__(self, others: BrowserConnections, *arguments: Any, **options: Any) -> None:
        super().__init__(others, *arguments, **options)
        self._second = 0.0
        self._received = 0

    async def recv(self, decode: bool | None = None) -> Any:
        """Return the next message that viser understands."""
        while True:
            message = await super().recv(decode)
            await self._keep_rate()
            if is_understood(message, self.others.present_value):
                return message
            self.others.counters["not_understood"] += 1

    async def _keep_rate(self) -> None:
        now = time.monotonic()
        if now - self._second >= 1.0:
            self._second = now
            self._received = 0
        self._received += 1
        if self._received > MAX_MESSAGES_PER_S:
            await asyncio.sleep(self._second + 1.0 - now)


class _LocalServer(viser.ViserServer):
    """Server without viser's tunnel through a public server, which a browser could ask for too."""

    def request_share_url(self, verbose: bool = True) -> str | None:
        """Return None: there is no such address."""
        return None


def open_server(host: str, port: int) -> tuple[viser.ViserServer, BrowserConnections]:
    """Return a server on this address, or on the next free port above, and its connections.

    It prints nothing on the terminal. Its WebSocket takes requests of its own page only: other
    pages in the same browser, which may ask any address of this machine, are refused.
    """
    rich.get_console().quiet = True
    logging.getLogger("websockets.server").addFilter(NoHandshakeErrors())
    # a browser may go away while its panel is written: what is left of it harms nothing
    warnings.filterwarnings("ignore", "Queued a .* on a closed connection", UserWarning)

    connections = BrowserConnections()
    loopback = is_loopback(host)
    serve = functools.partial(_serve, websockets.asyncio.server.serve, loopback, connections)
    # viser offers no way to see a request's headers, or to skip the rebuilding of the page that its
    # wheel contains
    with (
        mock.patch.object(websockets.asyncio.server, "serve", serve),
        mock.patch.object(viser._client_autobuild, "ensure_client_is_built", return_value=None),
    ):
        server = _LocalServer(host, port, label="rfly view", verbose=False)

    server.gui.configure_theme(show_logo=False, show_share_button=False)
    controls = server.gui._gui_input_handle_from_uuid
    connections.present_value = lambda uuid: controls[uuid].value if uuid in controls else None
    return server, connections


def _without_lights(response: Response | None) -> Response | None:
    """Return the page so that it has no lights before it is told which."""
    if response is not None and response.headers.get("Content-Type", "").startswith("text/html"):
        response.body = response.body.replace(b"<head>", _NO_LIGHTS, 1)
        del response.headers["Content-Length"]
        response.headers["Content-Length"] = str(len(response.body))
    return response


def _serve(
    serve: Callable[..., Any],
    loopback: bool,
    connections: BrowserConnections,
    *arguments: Any,
    **options: Any,
) -> Any:
    """Serve as `websockets.asyncio.server.serve`, with checks before viser's own handling.

    Requests and messages are checked.
    """
    inner = options["process_request"]

    def process_request(connection: Any, request: Request) -> Response | None:
        host = request.headers.get("Host", "")
        if not is_own_page(host, request.headers.get("Origin"), loopback):
            return Response(
                http.HTTPStatus.FORBIDDEN,
                "FORBIDDEN",
                Headers(),
                b"only for the viewer's own page\n",
            )

        if request.headers.get("Upgrade", "").lower() == "websocket":
            if connections.serving() >= MAX_BROWSERS:
                connections.counters["refused"] += 1
                return Response(
                    http.HTTPStatus.SERVICE_UNAVAILABLE, "BUSY", Headers(), b"too many browsers\n"
                )
            connection.serving = True
        if "Accept-Encoding" in request.headers:  # the page is packed already
            del request.headers["Accept-Encoding"]
        return _without_lights(inner(connection, request))

    limits = {"create_connection": connections.connection, "max_size": MAX_MESSAGE_BYTES}
    return serve(*arguments, **{**options, **limits, "process_request": process_request})
