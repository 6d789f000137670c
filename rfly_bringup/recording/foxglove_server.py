"""ROS topics to Foxglove, live by WebSocket: messages as they come, with their definitions.

Foxglove's own SDK speaks the protocol. It needs foxglove-sdk, the extra `foxglove`.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from rfly_bringup.recording.topics import Topic
from rfly_common.errors import ConfigError
from rfly_common.imports import require

_STATIC_TRANSFORMS = "/tf_static"
_MAX_STATIC_TRANSFORMS = 100
"""Messages of /tf_static to keep, as each node publishes its own; other topics keep the last."""


class FoxgloveServer:
    """`Sink` that Foxglove connects to; it wants only topics that a client shows.

    Latched messages are sent again to clients that come later. Raise ConfigError for an address
    that is not free.
    """

    def __init__(self, host: str, port: int) -> None:
        foxglove = require("foxglove", "rfly view --foxglove")
        self._foxglove = foxglove
        self._context = foxglove.Context()
        self._channels: list[Any] = []
        self._latched: dict[int, deque[tuple[bytes, int]]] = {}
        """Latched messages by the SDK's channel number."""
        self.messages = 0
        try:
            self._server = foxglove.start_server(
                name="rfly", host=host, port=port, context=self._context, server_listener=self
            )
        except (RuntimeError, OSError) as error:
            raise ConfigError(
                f"{host}:{port}: no server for Foxglove can run here: {error}"
            ) from error

        self.address = f"ws://{host}:{self._server.port}"

    @property
    def topics(self) -> int:
        """Number of topics."""
        return len(self._channels)

    def add_topic(self, topic: Topic) -> int:
        """Offer a topic to Foxglove, and return its channel."""
        schema = self._foxglove.Schema(
            name=topic.type, encoding="ros2msg", data=topic.definition.encode()
        )
        channel = self._foxglove.Channel(
            topic.name, message_encoding="cdr", schema=schema, context=self._context
        )

        self._channels.append(channel)
        if topic.latched:
            self._latched[channel.id()] = deque(
                maxlen=_MAX_STATIC_TRANSFORMS if topic.name == _STATIC_TRANSFORMS else 1
            )
        return len(self._channels) - 1

    def wants(self, channel: int) -> bool:
        """Return whether a client shows the topic."""
        return bool(self._channels[channel].has_sinks())

    def write(self, channel: int, data: bytes, time_ns: int) -> None:
        """Send a message to all clients that show the topic."""
        target = self._channels[channel]
        latched = self._latched.get(target.id())
        if latched is not None:
            latched.append((data, time_ns))
        target.log(data, log_time=time_ns)
        self.messages += 1

    def on_subscribe(self, client: Any, channel: Any) -> None:
        """Send latched messages again; called by the SDK, in its own thread."""
        ours = next((each for each in self._channels if each.id() == channel.id), None)
        for data, time_ns in tuple(self._latched.get(channel.id, ())):
            if ours is not None:
                ours.log(data, log_time=time_ns)

    def on_unsubscribe(self, client: Any, channel: Any) -> None:
        """Do nothing; the SDK calls it, and nodes see the change by `wants`."""

    def close(self) -> None:
        """End the server."""
        self._server.stop()
