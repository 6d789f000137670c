# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Foxglove's WebSocket protocol, the part that offers topics: texts and bytes, no sockets.

Specification: github.com/foxglove/ws-protocol, docs/spec.md. The names of the protocol are that
of today's apps and of their older versions and forks; both mean the same messages.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rfly_common.untrusted_files.mcap_reader import Topic

SUBPROTOCOLS = ("foxglove.sdk.v1", "foxglove.websocket.v1")
MAX_REQUEST_BYTES = 65_536
"""Largest message of a client; a subscription to 1,000 topics has half of that."""

_HEADER = struct.Struct("<BIQ")
"""Operation, number of the subscription, time since 1970, ns."""
_MESSAGE_DATA = 1
_ERROR = 2
"""Level of a status."""
_MAX_NUMBER = 2**32 - 1
"""Largest number of a subscription: it has to fit into a message's header."""


@dataclass(frozen=True)
class Subscribe:
    """Request for the messages of channels."""

    channels: dict[int, int]
    """Subscriptions' numbers by channel."""


@dataclass(frozen=True)
class Unsubscribe:
    """End of subscriptions."""

    subscriptions: frozenset[int]


def server_info(name: str, session: str) -> str:
    """Return the first message to a client. No capability: clients only look on."""
    return json.dumps({"op": "serverInfo", "name": name, "capabilities": [], "sessionId": session})


def advertisement(channels: Sequence[tuple[int, Topic]]) -> str:
    """Return the message that offers topics by channel number."""
    offers = [
        {
            "id": number,
            "topic": topic.name,
            "encoding": "cdr",
            "schemaName": topic.type,
            "schemaEncoding": "ros2msg",
            "schema": topic.definition,
        }
        for number, topic in channels
    ]
    return json.dumps({"op": "advertise", "channels": offers})


def error_status(text: str) -> str:
    """Return the message that shows an error to the user of a client."""
    return json.dumps({"op": "status", "level": _ERROR, "message": text})


def message_fragments(
    subscription: int, data: bytes, time_ns: int, fragment_bytes: int
) -> Iterator[bytes | memoryview]:
    """Yield a message of a topic in fragments, as copies of large ones would fill the memory."""
    first = fragment_bytes - _HEADER.size
    yield _HEADER.pack(_MESSAGE_DATA, subscription, time_ns) + data[:first]

    view = memoryview(data)
    for start in range(first, len(data), fragment_bytes):
        yield view[start : start + fragment_bytes]


def read_request(text: str | bytes) -> Subscribe | Unsubscribe:
    """Return a client's request. Raise ValueError, with a sentence, for anything else."""
    if isinstance(text, bytes):
        raise ValueError("binary messages are not taken: clients cannot publish here")
    try:
        request = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError("the request is no JSON") from error

    operation = request.get("op") if isinstance(request, dict) else None
    if operation == "subscribe":
        entries = _list(request, "subscriptions")
        if not all(isinstance(entry, dict) for entry in entries):
            raise ValueError("subscriptions: expected objects with id and channelId")
        return Subscribe(
            {_number(entry.get("channelId")): _number(entry.get("id")) for entry in entries}
        )
    if operation == "unsubscribe":
        return Unsubscribe(frozenset(map(_number, _list(request, "subscriptionIds"))))
    raise ValueError("unknown operation: only subscribe and unsubscribe are offered")


def _list(request: dict[str, Any], key: str) -> list[Any]:
    value = request.get(key)
    if not isinstance(value, list):
        raise ValueError(f"{key}: expected a list")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MAX_NUMBER:
        raise ValueError(f"expected a number from 0 to {_MAX_NUMBER} for each channel")
    return value
