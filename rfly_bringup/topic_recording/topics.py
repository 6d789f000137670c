# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Topics whose messages are passed on as bytes, and the choice among them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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


def renamings(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Return new names by old ones from texts such as `/a:=/b`. Raise ConfigError."""
    names = {}
    for text in texts:
        old, _, new = text.partition(":=")
        if not old or not new or ":=" in new:
            raise ConfigError(f"{option} {text!r}: expected OLD:=NEW")
        names[old] = new
    return names


class IdMap:
    """New ids of vehicles by those of a recording; others stay. `found` holds those that came."""

    def __init__(self, texts: Sequence[str] = (), most: int = 2**31 - 1) -> None:
        """Read texts such as `1:=101`. Raise ConfigError for ids below 1 or above `most`."""
        self._new: dict[int, int] = {}
        self.found = set[int]()
        for old, new in renamings("--id", texts).items():
            if not all(each.isdecimal() and 0 < int(each) <= most for each in (old, new)):
                raise ConfigError(f"--id '{old}:={new}': expected ids from 1 to {most}")
            self._new[int(old)] = int(new)

    def __bool__(self) -> bool:
        return bool(self._new)

    def of(self, ids: Iterable[int]) -> list[int]:
        """Return the ids to be used instead of these."""
        old = list(ids)
        self.found.update(self._new.keys() & set(old))
        return [self._new.get(each, each) for each in old]

    def notes(self) -> list[str]:
        """Return a line on ids that did not come, or none."""
        missing = sorted(self._new.keys() - self.found)
        return [f"no vehicle {', '.join(map(str, missing))} in the recording"] if missing else []


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
