"""What is known of a topic whose messages are passed on as bytes, and the choice among topics."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rfly_common.errors import ConfigError


@dataclass(frozen=True)
class Topic:
    """A topic as recordings and viewers need it."""

    name: str
    """with its leading slash"""
    type: str
    """as `rfly_suite/msg/TerrainMap`"""
    definition: str
    """schema `ros2msg`: the text of the type and, after lines of =, of all types within it"""
    latched: bool = False
    """transient local durability: who comes late gets the last messages"""
    reliable: bool = True


class Sink(Protocol):
    """Takes serialised messages (CDR)."""

    def add_topic(self, topic: Topic) -> int:
        """The number by which `write` knows the topic."""

    def wants(self, channel: int) -> bool:
        """Whether messages of the topic are taken at present; nobody needs to make them otherwise."""

    def write(self, channel: int, data: bytes, time_ns: int) -> None:
        """One message, received at that time since 1970."""


@dataclass(frozen=True)
class RecordLimits:
    """When a recording ends by itself; 0: no limit."""

    number: int = 0
    """of datagrams or messages"""
    seconds: float = 0.0
    bytes: float = 0.0


class TopicChoice:
    """Topics by regular expressions that match a whole name: one of `wanted` (none: all), and none
    of `unwanted`.

    Raises ConfigError for an expression that is none.
    """

    def __init__(self, wanted: Sequence[str] = (), unwanted: Sequence[str] = ()) -> None:
        self._wanted = _compile(wanted)
        self._unwanted = _compile(unwanted)

    def __contains__(self, name: str) -> bool:
        chosen = not self._wanted or any(expression.fullmatch(name) for expression in self._wanted)
        return chosen and not any(expression.fullmatch(name) for expression in self._unwanted)


def _compile(expressions: Sequence[str]) -> list[re.Pattern[str]]:
    compiled = []
    for expression in expressions:
        try:
            compiled.append(re.compile(expression))
        except re.error as error:
            raise ConfigError(
                f"topics {expression!r}: {error}; expected a regular expression such as /.*/pose"
            ) from error
    return compiled
