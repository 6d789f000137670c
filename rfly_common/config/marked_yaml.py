# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Safe YAML loader whose values remember their line numbers, and the writer for it.

Words have the values of YAML 1.2's core schema (https://yaml.org/spec/1.2.2, section 10.3.2):
`off`, `yes` and `1:30` are text, `010` is ten and `1e2` a hundred, an int as it has no point. The
loader is built from PyYAML's events, so it accepts the notation that `yaml.safe_load` does
(anchors, aliases and merge keys too). It refuses repeated keys, numbers that are not finite, deep
nesting, and aliases that multiply into millions of values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import yaml

from rfly_common.errors import ConfigError, Key, key_path

MAX_DEPTH = 20
"""Levels of nesting."""
MAX_VALUES = 2_000_000
"""Values in a file; each alias counts with all that it stands for."""

MAX_NUMBER_LENGTH = 100
"""Characters of a number."""

_LARGEST_WHOLE = 2.0**53
"""Numbers below it have all their digits."""

MOST_TEXT = 500
"""Characters of an error's text, which may quote a value of any length."""

_MAX_KNOWN = 10_000
"""Words whose values are remembered."""

_CORE_SCHEMA: dict[str, tuple[re.Pattern[str], Callable[[str], Any]]] = {
    "null": (re.compile(r"~|null|Null|NULL|"), lambda _: None),
    "bool": (
        re.compile(r"true|True|TRUE|false|False|FALSE"),
        lambda word: word.lower() == "true",
    ),
    "int": (
        re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"),
        lambda word: int(word, 0 if word[:2] in ("0o", "0x") else 10),
    ),
    "float": (
        re.compile(
            r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
            r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
        ),
        lambda word: float(word.lower().replace(".inf", "inf").replace(".nan", "nan")),
    ),
}
"""Form and value of the plain words that are no text; the first form that matches counts."""

YAML_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's loader, ten times as fast, if PyYAML was built with it."""


class Document(NamedTuple):
    """A parsed file."""

    value: Any
    """Value of the document: dict, list, str, int, float, bool or None."""
    lines: dict[int, dict[Key, int]]
    """Lines (from 1) of keys or elements, for the id() of each dict and list."""
    first_line: int
    file: str = ""
    """Name of the file in errors."""

    def location(self, path: Sequence[Key]) -> str:
        """Return `file:line: key` of a value."""
        return f"{self.file}:{self.line(path)}: {key_path(path)}"

    def error(self, path: Sequence[Key], text: str) -> ConfigError:
        """Return the error to raise for a value: its place, and what is wrong with it."""
        short = text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 1]}…"
        return ConfigError(f"{self.location(path)}: {short}")

    def located(self, error: ConfigError, path: Sequence[Key]) -> ConfigError:
        """Return an error about the value at a path, or about a part of it, with its place."""
        return self.error((*path, *error.key), error.text)

    def line(self, path: Sequence[Key]) -> int:
        """Return the line of the value at a path, or of the nearest existing value above it."""
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
    """A mapping or sequence that is not complete yet."""

    value: Any
    line: int
    lines: dict[Key, int]
    anchor: str | None
    keys: list[tuple[Key, int]]
    """Key that waits for its value; none or one."""
    merged: list[Any]
    """Mappings that the key << merges into this one."""


def parse_yaml(text: str, file: str) -> Document:
    """Return the one document of a YAML text. Raises ConfigError that names `file` and line."""
    try:
        return _Builder(file).build(yaml.parse(text, Loader=YAML_LOADER))
    except yaml.YAMLError as error:
        raise ConfigError(yaml_error(error, file, text)) from None


def yaml_error(error: yaml.YAMLError, file: str, text: str) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    context = getattr(error, "context", None)
    words = " ".join(f"{problem} {context or ''}".split())
    if mark is None:
        return f"{file}: not valid YAML: {words}"

    # the mark may be behind the last line with text
    lines = text.rstrip().splitlines() or [""]
    number = min(mark.line, len(lines) - 1)
    line = lines[number]
    indent = line[: len(line) - len(line.lstrip())]
    hint = "; indent with spaces, not with tabs" if "\t" in indent else ""
    return f"{file}:{number + 1}: not valid YAML: {words}{hint}"


class _Builder:
    """A state machine that builds a document from PyYAML's events."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._lines: dict[int, dict[Key, int]] = {}
        self._sizes: list[int] = []
        """Values so far in each open container."""
        self._document: tuple[Any, int] | None = None
        self._known: dict[Any, Any] = {}
        """Values of words so far: interpreting words takes most of the time."""

    def build(self, events: Iterator[Any]) -> Document:
        """Return the document of the events."""
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
        type_tag = "map" if isinstance(container, dict) else "seq"
        if event.tag not in (None, "!", f"tag:yaml.org,2002:{type_tag}"):
            raise self._error(line, f"tag {event.tag!r} has no meaning here")

        self._stack.append(_Open(container, line, {}, event.anchor, [], []))
        self._sizes.append(1)
        self._lines[id(container)] = self._stack[-1].lines
        if self._document is None:
            self._document = (container, line)

    def _end(self) -> None:
        """Complete the innermost container, with merged keys that it does not have itself."""
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
        """Add a complete value to the innermost open container."""
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
        """Return the path of the next value; a key that is being read is not in it."""
        path: list[Key] = []
        for parent in self._stack:
            if isinstance(parent.value, list):
                path.append(len(parent.value))
            else:
                path.extend(key for key, _ in parent.keys)
        return path

    def _scalar(self, event: Any) -> Any:
        """Return a scalar's value by its tag, or without one by YAML 1.2's core schema."""
        text = event.value
        if event.tag is None:
            kind = core_kind(text) if event.implicit[0] else "str"
        else:
            kind = event.tag.removeprefix("tag:yaml.org,2002:")
        if kind in ("str", "!"):
            return text
        if kind not in _CORE_SCHEMA:
            raise ConfigError(f"tag {event.tag!r} has no meaning here")

        if len(text) > MAX_NUMBER_LENGTH:
            raise ConfigError(f"{text[:40]}… is too long for a number")
        form, value_of = _CORE_SCHEMA[kind]
        if not form.fullmatch(text):
            raise ConfigError(f"{text[:40]!r} is not of the type {kind}")

        value = value_of(text)
        if isinstance(value, int) and abs(value) > 2**63:
            raise ConfigError(f"{text[:40]} is too large")
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{text[:40]} is not a finite number")
        is_whole = kind == "float" and "." not in text and value.is_integer()
        return int(value) if is_whole and abs(value) < _LARGEST_WHOLE else value

    def _error(self, line: int, text: str) -> ConfigError:
        return ConfigError(f"{self._file}:{line}: {text}")


def core_kind(text: str) -> str:
    """Return what a plain word is: null, bool, int, float or str."""
    return next((kind for kind, (form, _) in _CORE_SCHEMA.items() if form.fullmatch(text)), "str")


class _Dumper(yaml.SafeDumper):
    """PyYAML's writer, which also quotes a text that would be a number in YAML 1.2."""


for _kind in ("int", "float"):
    _Dumper.add_implicit_resolver(
        f"tag:yaml.org,2002:{_kind}",
        re.compile(rf"({_CORE_SCHEMA[_kind][0].pattern})\Z"),
        list("-+.0123456789"),
    )


def dump_yaml(value: Any, **style: Any) -> str:
    """Return YAML that `parse_yaml` and every reader of YAML 1.1 read alike."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, **style)
    return text
