"""ROS topics to Foxglove, live by WebSocket: messages as they come, with their definitions.

Foxglove's own SDK speaks the protocol. Needs foxglove-sdk, the extra `foxglove`.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from rfly_bringup.recording.topics import Topic
from rfly_common.errors import ConfigError
from rfly_common.imports import require

_STATIC_TRANSFORMS = "/tf_static"
_KEPT_OF_THEM = 100
"""each of several nodes publishes its own; of other latched topics the last message counts"""


class FoxgloveServer:
    """A `Sink` that Foxglove connects to; topics that nobody looks at are not wanted.

    What is latched is sent again to who looks at it later. Raises ConfigError for an address that
    cannot be had.
    """

    def __init__(self, host: str, port: int) -> None:
        foxglove = require("foxglove", "rfly view --foxglove")
        self._foxglove = foxglove
        self._context = foxglove.Context()
        self._channels: list[Any] = []
        self._latched: dict[int, deque[tuple[bytes, int]]] = {}
        """by the SDK's number of the channel"""
        self.messages = 0
        try:
            self._server = foxglove.start_server(
                name="rfly", host=host, port=port, context=self._context, server_listener=self
            )
        except (RuntimeError, OSError) as error:
            raise ConfigError(
                f"{host}:{port}: no server for Foxglove can be had there: {error}"
            ) from error
        self.address = f"ws://{host}:{self._server.port}"

    @property
    def topics(self) -> int:
        """How many there are."""
        return len(self._channels)

    def add_topic(self, topic: Topic) -> int:
        """Offered to Foxglove from now on."""
        schema = self._foxglove.Schema(
            name=topic.type, encoding="ros2msg", data=topic.definition.encode()
        )
        channel = self._foxglove.Channel(
            topic.name, message_encoding="cdr", schema=schema, context=self._context
        )
        self._channels.append(channel)
        if topic.latched:
            self._latched[channel.id()] = deque(
                maxlen=_KEPT_OF_THEM if topic.name == _STATIC_TRANSFORMS else 1
            )
        return len(self._channels) - 1

    def wants(self, channel: int) -> bool:
        """True while somebody looks at it."""
        return bool(self._channels[channel].has_sinks())

    def write(self, channel: int, data: bytes, time_ns: int) -> None:
        """To all that look at the topic."""
        target = self._channels[channel]
        kept = self._latched.get(target.id())
        if kept is not None:
            kept.append((data, time_ns))
        target.log(data, log_time=time_ns)
        self.messages += 1

    def on_subscribe(self, client: Any, channel: Any) -> None:
        """The SDK calls it, in a thread of its own: what is latched is sent again."""
        ours = next((each for each in self._channels if each.id() == channel.id), None)
        for data, time_ns in tuple(self._latched.get(channel.id, ())):
            if ours is not None:
                ours.log(data, log_time=time_ns)

    def on_unsubscribe(self, client: Any, channel: Any) -> None:
        """The SDK calls it; nodes see it by `wants`. A client's other wishes are none that we
        grant.
        """

    def close(self) -> None:
        """End the server."""
        self._server.stop()
