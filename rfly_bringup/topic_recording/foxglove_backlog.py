# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Messages for Foxglove's clients, held once for all of them, and each client's place among them.

Theory of operation: new messages go to the end of one queue of bounded size, and latched ones also
to a store by channel. A client has a position in the queue. When the queue is full, its oldest
message goes, whoever still waits for it: a slow client misses messages, but its latched ones are
made up for. No client has a queue of its own, so a thousand need no more memory than one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

MAX_QUEUED_BYTES = 16 << 20
"""Bytes in the queue; the newest message stays in it, however large it is."""
MAX_QUEUED_MESSAGES = 4096


@dataclass(frozen=True, eq=False)
class QueuedMessage:
    """One message of a topic."""

    number: int
    """Place among all messages of the server, from 0 up."""
    channel: int
    data: bytes
    time_ns: int


class Backlog:
    """The queue, and the latched messages of each channel."""

    def __init__(self) -> None:
        self._queue: deque[QueuedMessage] = deque()
        self._queued_bytes = 0
        self._latched: dict[int, deque[QueuedMessage]] = {}
        self.end = 0
        """Number of the next message."""

    @property
    def start(self) -> int:
        """Number of the oldest message in the queue, `end` if there is none."""
        return self.end - len(self._queue)

    def latch(self, channel: int, depth: int) -> None:
        """Keep the channel's last messages for clients that come later."""
        self._latched[channel] = deque(maxlen=depth)

    def append(self, channel: int, data: bytes, time_ns: int) -> None:
        """Add a message; the oldest ones make room."""
        message = QueuedMessage(self.end, channel, data, time_ns)
        self._queue.append(message)
        self._queued_bytes += len(data)
        self.end += 1
        if channel in self._latched:
            self._latched[channel].append(message)

        while len(self._queue) > 1 and (
            self._queued_bytes > MAX_QUEUED_BYTES or len(self._queue) > MAX_QUEUED_MESSAGES
        ):
            self._queued_bytes -= len(self._queue.popleft().data)

    def __getitem__(self, number: int) -> QueuedMessage:
        return self._queue[number - self.start]

    def latched(self, channel: int) -> deque[QueuedMessage]:
        """Return the channel's latched messages, the oldest first."""
        return self._latched.get(channel, deque())

    def holds(self, message: QueuedMessage) -> bool:
        """Return whether a message would be in memory without the client that it is sent to."""
        return message.number >= self.start or message in self.latched(message.channel)


@dataclass(eq=False)
class BacklogReader:
    """One client's place in the backlog."""

    position: int
    """Number of the message that it looks at next."""
    subscriptions: dict[int, int] = field(default_factory=dict)
    """Subscriptions' numbers by channel."""
    missed: int = 0
    """Messages that left the queue before their turn."""
    _sent: dict[int, int] = field(default_factory=dict)
    """Number of the newest message sent, by channel."""
    _latched_due: bool = False
    """True if latched messages before the position may be owed."""

    def subscribe(self, channel: int, subscription: int) -> None:
        """Want a channel's messages, and its latched ones first."""
        self.subscriptions[channel] = subscription
        self._sent[channel] = -1
        self._latched_due = True

    def unsubscribe(self, subscriptions: frozenset[int]) -> list[int]:
        """End subscriptions, and return their channels."""
        ended = [
            channel
            for channel, subscription in self.subscriptions.items()
            if subscription in subscriptions
        ]
        for channel in ended:
            del self.subscriptions[channel], self._sent[channel]
        return ended

    def take(self, backlog: Backlog) -> QueuedMessage | None:
        """Return the next message for this client, None if it has them all."""
        if self.position < backlog.start:
            self.missed += backlog.start - self.position
            self.position = backlog.start
            self._latched_due = True

        if self._latched_due:
            for channel in self.subscriptions:
                for message in backlog.latched(channel):
                    if self._sent[channel] < message.number < self.position:
                        return self._take(message)
            self._latched_due = False

        while self.position < backlog.end:
            message = backlog[self.position]
            self.position += 1
            if self._sent.get(message.channel, backlog.end) < message.number:
                return self._take(message)
        return None

    def _take(self, message: QueuedMessage) -> QueuedMessage:
        self._sent[message.channel] = message.number
        return message
