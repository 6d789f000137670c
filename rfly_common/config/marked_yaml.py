"""Safe YAML loader whose values remember their line numbers.

Built from PyYAML's events, so it takes what `yaml.safe_load` takes (anchors, aliases and merge keys
too) and refuses what that lets pass: repeated keys, numbers that are not finite, deep nesting, and
aliases that multiply into millions of values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import yaml

from rfly_common.errors import ConfigError

MAX_DEPTH = 20
MAX_VALUES = 2_000_000
"""values in a file, each alias counted with all that it stands for"""

MAX_NUMBER_LENGTH = 100

MOST_TEXT = 500
"""characters of an error's text: it may quote a value of any length"""

_MAX_KNOWN = 10_000

_LOADER = getattr(
    yaml, "CSafeLoader", yaml.SafeLoader
)  # libyaml, ten times as fast, where PyYAML was built with it

Key = str | int


def key_path(path: Iterable[Key]) -> str:
    """`vehicles[2].shape.radius`."""
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
    return text


class Document(NamedTuple):
    """A parsed file."""

    value: Any
    """dict, list, str, int, float, bool or None"""
    lines: dict[int, dict[Key, int]]
    """of each dict and list, by its id(): the line (from 1) of each key or element"""
    first_line: int
    file: str = ""
    """what errors call it"""

    def location(self, path: Sequence[Key]) -> str:
        """`file:line: key` of a value."""
        return f"{self.file}:{self.line(path)}: {key_path(path)}"

    def error(self, path: Sequence[Key], text: str) -> ConfigError:
        """The error to raise for a value: where it is, and what is wrong with it."""
        short = text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 1]}…"
        return ConfigError(f"{self.location(path)}: {short}")

    def line(self, path: Sequence[Key]) -> int:
        """The line of the value that the path of keys and indices leads to, or of the nearest one
        above that exists.
        """
        line = self.first_line
        value = self.value
        for key in path:
            line = self.lines.get(id(value), {}).get(key, line)
            try:
                value = value[key]
            except (KeyError, IndexError, TypeError):
                break
        return line


class _Open(NamedTuple):
    """A mapping or sequence whose end has not come yet."""

    value: Any
    line: int
    lines: dict[Key, int]
    anchor: str | None
    keys: list[tuple[Key, int]]
    """the key that waits for its value; none or one"""
    merged: list[Any]


def parse_yaml(text: str, file: str) -> Document:
    """The one document of a YAML text. Raises ConfigError that names `file` and line."""
    try:
        return _Builder(file).build(yaml.parse(text, Loader=_LOADER))
    except yaml.YAMLError as error:
        raise ConfigError(_yaml_error(error, file)) from None


def _yaml_error(error: yaml.YAMLError, file: str) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    context = getattr(error, "context", None)
    where = f"{file}:{mark.line + 1}" if mark is not None else file
    return f"{where}: not valid YAML: {' '.join(f'{problem} {context or str()}'.split())}"


class _Builder:
    def __init__(self, file: str) -> None:
        self._file = file
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._lines: dict[int, dict[Key, int]] = {}
        self._sizes: list[int] = []  # of the open containers: values so far
        self._document: tuple[Any, int] | None = None
        self._scalars = yaml.SafeLoader("")
        self._known: dict[Any, Any] = {}
        """values of words that came before: what a word means takes most of the time"""

    def build(self, events: Iterator[Any]) -> Document:
        documents = 0
        for event in events:
            line = event.start_mark.line + 1
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._error(line, "a second document begins; one file holds one")
            elif isinstance(event, yaml.ScalarEvent):
                word = (event.value, event.tag, event.implicit)
                try:
                    value = self._known[word] if word in self._known else self._scalar(event)
                except ConfigError as error:
                    key = key_path(self._path())
                    raise self._error(line, f"{key}: {error}" if key else str(error)) from None
                if len(self._known) < _MAX_KNOWN:
                    self._known[word] = value
                self._remember(event.anchor, value, 1)
                self._put(value, line, 1)
            elif isinstance(event, yaml.AliasEvent):
                if event.anchor not in self._anchors:
                    raise self._error(
                        line, f"alias *{event.anchor}: no anchor of this name ends before it"
                    )
                value, size = self._anchors[event.anchor]
                self._put(value, line, size)
            elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                self._begin({} if isinstance(event, yaml.MappingStartEvent) else [], event, line)
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                self._end()
        if self._document is None:
            raise ConfigError(f"{self._file}: the file is empty")
        return Document(self._document[0], self._lines, self._document[1], self._file)

    def _begin(self, container: Any, event: Any, line: int) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise self._error(line, f"nested more than {MAX_DEPTH} levels deep")
        if self._waits_for_key():
            raise self._error(line, "a key must be a plain word")
        if event.tag not in (
            None,
            "!",
            f"tag:yaml.org,2002:{'map' if isinstance(container, dict) else 'seq'}",
        ):
            raise self._error(line, f"tag {event.tag!r} has no meaning here")
        self._stack.append(_Open(container, line, {}, event.anchor, [], []))
        self._sizes.append(1)
        self._lines[id(container)] = self._stack[-1].lines
        if self._document is None:
            self._document = (container, line)

    def _end(self) -> None:
        done = self._stack.pop()
        size = self._sizes.pop()
        for base in done.merged:
            for key, value in base.items():
                if key not in done.value:
                    done.value[key] = value
                    done.lines[key] = self._lines[id(base)][key]
        self._remember(done.anchor, done.value, size)
        if self._stack:
            self._put(done.value, done.line, size)

    def _put(self, value: Any, line: int, size: int) -> None:
        """A finished value goes where the innermost open container waits for one."""
        if not self._stack:
            if self._document is None:
                self._document = (value, line)
            return
        self._sizes[-1] += size
        if self._sizes[-1] > MAX_VALUES:
            raise self._error(line, f"more than {MAX_VALUES} values")
        parent = self._stack[-1]
        if isinstance(parent.value, list):
            parent.lines[len(parent.value)] = line
            parent.value.append(value)
        elif not parent.keys:
            if not isinstance(value, str):
                raise self._error(line, f"key {value!r}: a key must be a word")
            if value in parent.value:
                raise self._error(
                    line, f"key {value!r}: it is already on line {parent.lines[value]}"
                )
            parent.keys.append((value, line))
        else:
            key, key_line = parent.keys.pop()
            if key == "<<":
                parent.merged.extend(self._bases(value, key_line))
            else:
                parent.value[key] = value
                parent.lines[key] = key_line

    def _bases(self, value: Any, line: int) -> list[Any]:
        bases = value if isinstance(value, list) else [value]
        if not all(isinstance(base, dict) for base in bases):
            raise self._error(line, "<<: expected a mapping, or a list of them, to merge")
        return bases

    def _waits_for_key(self) -> bool:
        return (
            bool(self._stack)
            and isinstance(self._stack[-1].value, dict)
            and not self._stack[-1].keys
        )

    def _remember(self, anchor: str | None, value: Any, size: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = (value, size)

    def _path(self) -> list[Key]:
        """Where the next value goes; a key that is read now is not in it."""
        return [
            key
            for parent in self._stack
            for key in (
                [len(parent.value)]
                if isinstance(parent.value, list)
                else [key for key, _ in parent.keys]
            )
        ]

    def _scalar(self, event: Any) -> Any:
        """By the rules of YAML 1.1 as PyYAML has them; dates stay text."""
        tag = event.tag or self._scalars.resolve(yaml.ScalarNode, event.value, event.implicit)
        node = yaml.ScalarNode(tag, event.value)
        kind = tag.rpartition(":")[2]
        if kind in ("str", "timestamp", "merge", "value"):
            return event.value
        if kind not in ("int", "float", "bool", "null"):
            raise ConfigError(f"tag {tag!r} has no meaning here")
        if len(event.value) > MAX_NUMBER_LENGTH:
            raise ConfigError(f"{event.value[:40]}… is too long for a number")
        try:
            value = getattr(self._scalars, f"construct_yaml_{kind}")(node)
        except (ValueError, KeyError, IndexError, OverflowError):
            raise ConfigError(f"{event.value[:40]!r} is not of the type {kind}") from None
        if isinstance(value, int) and abs(value) > 2**63:
            raise ConfigError(f"{event.value[:40]} is too large")
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{event.value[:40]} is not a finite number")
        return value

    def _error(self, line: int, text: str) -> ConfigError:
        return ConfigError(f"{self._file}:{line}: {text}")
