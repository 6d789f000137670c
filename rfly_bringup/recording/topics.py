# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Topics whose messages are passed on as bytes, and the choice among them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rfly_common.errors import ConfigError
from rfly_common.untrusted_files.mcap_reader import Topic


class Sink(Protocol):
    """Receiver of serialised messages (CDR)."""

    def add_topic(self, topic: Topic) -> int:
        """Add a topic, and return its number for `write`."""

    def wants(self, channel: int) -> bool:
        """Return whether messages of the topic are wanted now; otherwise none need be made."""

    def write(self, channel: int, data: bytes, time_ns: int) -> None:
        """Take one message, received at that time since 1970."""


@dataclass(frozen=True)
class RecordLimits:
    """Limits at which a recording ends; 0: no limit."""

    number: int = 0
    """Number of datagrams or messages."""
    seconds: float = 0.0
    bytes: float = 0.0


class TopicChoice:
    """Topics chosen by regular expressions for whole names.

    A topic matches one of `wanted` (none: all topics) and none of `unwanted`. Raises ConfigError
    for an expression that is wrong.
    """

    def __init__(self, wanted: Sequence[str] = (), unwanted: Sequence[str] = ()) -> None:
        self._wanted = _compile(wanted)
        self._unwanted = _compile(unwanted)

    def __contains__(self, name: str) -> bool:
        chosen = not self._wanted or any(expression.fullmatch(name) for expression in self._wanted)
        return chosen and not any(expression.fullmatch(name) for expression in self._unwanted)


def _compile(expressions: Sequence[str]) -> list[re.Pattern[str]]:
    """Return the expressions, compiled. Raise ConfigError."""
    compiled = []
    for expression in expressions:
        try:
            compiled.append(re.compile(expression))
        except re.error as error:
            raise ConfigError(
                f"topics {expression!r}: {error}; expected a regular expression such as /.*/pose"
            ) from error
    return compiled
