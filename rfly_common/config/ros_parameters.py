# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""ROS parameter files: sections of nodes, with the place and type of each parameter. No ROS.

The rules are those of rcl's parser, which reads a file when a node starts. Its errors name neither
key nor remedy; this reader's do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from rfly_common.config.documents import decode_text, read_limited
from rfly_common.config.marked_yaml import YAML_LOADER, yaml_error
from rfly_common.errors import ConfigError
from rfly_common.files import StrPath

MAX_FILE_BYTES = 1_000_000
_MAX_DEPTH = 100
"""Levels of nesting."""
_PARAMETERS = "ros__parameters"
_INTEGER_DIGITS = 19
"""Longest text of an integer; what is longer does not fit into 64 bits and becomes a float."""

_BOOLS = frozenset(
    word
    for lower in ("yes", "true", "on", "no", "false", "off", "y", "n")
    for word in (lower, lower.capitalize(), lower.upper())
)
_INTEGER = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
_FLOAT = re.compile(
    r"[+-]?(\.(inf|Inf|INF)|(?i:inf(inity)?|nan)|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)|\.(nan|NaN|NAN)"
)
_STRING_TAG = "tag:yaml.org,2002:str"
_NODE_NAME = re.compile(r"/?((\*\*?|[A-Za-z_]\w*)/)*(\*\*?|[A-Za-z_]\w*)", re.ASCII)


class ParameterValue(NamedTuple):
    """Type of a parameter's value in a file, and its line."""

    type: Any
    """Type: bool, int, float, str, a list of one of them, or `list` for an empty one."""
    line: int


class NodeSection(NamedTuple):
    """Parameters of the nodes that a name fits."""

    node: str
    """Full name, in which `*` stands for any word and `**` for any words, none too."""
    line: int
    parameters: dict[str, ParameterValue]

    @property
    def is_for_all(self) -> bool:
        """Return whether any node of some namespace is meant, whatever its name."""
        return self.node.endswith("*")

    def fits(self, full_name: str) -> bool:
        """Return whether a node such as /site/mission_node takes these parameters."""
        pattern = re.escape(self.node).replace(r"/\*\*", r"(/\w+)*").replace(r"/\*", r"/\w+")
        return re.fullmatch(pattern, full_name) is not None


def read_parameter_file(path: StrPath) -> list[NodeSection]:
    """Return the sections of a ROS parameter file.

    Raises ConfigError with file and line for one that no node could read.
    """
    data = read_limited(path, "cannot be read:", MAX_FILE_BYTES)
    return list(_Reader(decode_text(data, str(path)), str(path)).sections())


class _Reader:
    """A recursive-descent reader of YAML's events."""

    def __init__(self, text: str, file: str) -> None:
        self._events = yaml.parse(text, Loader=YAML_LOADER)
        self._text = text
        self._file = file
        self._depth = 0

    def sections(self) -> Iterator[NodeSection]:
        """Yield the sections of all documents."""
        while not isinstance(event := self._next(), yaml.StreamEndEvent):
            if isinstance(event, yaml.MappingStartEvent):
                yield from self._sections_below("", 0)
            elif isinstance(event, yaml.NodeEvent):
                raise self._error(event, f"expected names of nodes, with {_PARAMETERS} below each")

    def _sections_below(self, name: str, line: int) -> Iterator[NodeSection]:
        """Yield the sections of a mapping whose keys are namespaces and names of nodes.

        `name` and `line` are those of the keys above it.
        """
        while not isinstance(key := self._next(), yaml.MappingEndEvent):
            word = self._word(key)
            path = f"{name}/{word}" if name else word
            if not isinstance(self._next(), yaml.MappingStartEvent):
                raise self._error(
                    key,
                    f"{path}: a value, expected NODE: {{{_PARAMETERS}: {{PARAMETER: VALUE}}}}",
                )

            if word != _PARAMETERS:
                yield from self._sections_below(path, key.start_mark.line + 1)
                continue
            if not _NODE_NAME.fullmatch(name):
                raise self._error(
                    key,
                    f"{_PARAMETERS} of {name!r}: expected the name of a node above it: words of "
                    "letters, digits and _, or * and **, joined by /",
                )
            section = NodeSection(f"/{name.lstrip('/')}", line, {})
            self._read_parameters("", section.parameters)
            yield section

    def _read_parameters(self, prefix: str, parameters: dict[str, ParameterValue]) -> None:
        """Read a mapping of parameters, in which a mapping is a group of them."""
        while not isinstance(key := self._next(), yaml.MappingEndEvent):
            name = prefix + self._word(key)
            line = key.start_mark.line + 1

            value = self._next()
            if isinstance(value, yaml.MappingStartEvent):
                self._read_parameters(f"{name}.", parameters)
            elif isinstance(value, yaml.SequenceStartEvent):
                parameters[name] = ParameterValue(self._list_type(name), line)
            else:
                parameters[name] = ParameterValue(self._scalar_type(name, value), line)

    def _list_type(self, name: str) -> Any:
        types: list[type] = []
        while not isinstance(element := self._next(), yaml.SequenceEndEvent):
            types.append(self._scalar_type(name, element))
            if types[-1] is not types[0]:
                kinds = f"{types[0].__name__} and {types[-1].__name__}"
                raise self._error(
                    element,
                    f"{name}: elements of the types {kinds}, expected one type (1.0 is a float)",
                )
        return list[types[0]] if types else list  # type: ignore[valid-type]

    def _scalar_type(self, name: str, event: Any) -> type:
        """Return the type that rcl gives a scalar."""
        if not isinstance(event, yaml.ScalarEvent):
            raise self._error(event, f"{name}: expected a number, a word, true or false")
        if event.tag == _STRING_TAG or event.style in ("'", '"'):
            return str
        if not event.value:
            raise self._error(event, f"{name}: no value; an empty text is ''")
        if event.value in _BOOLS:
            return bool
        if _INTEGER.fullmatch(event.value) and len(event.value) <= _INTEGER_DIGITS:
            return int
        return float if _FLOAT.fullmatch(event.value) else str

    def _word(self, event: Any) -> str:
        if not isinstance(event, yaml.ScalarEvent) or not event.value:
            raise self._error(event, "a key must be a word")
        return str(event.value)

    def _next(self) -> Any:
        """Return the next event. Raise ConfigError for what rcl reads in no place."""
        try:
            event = next(self._events)
        except yaml.YAMLError as error:
            raise ConfigError(yaml_error(error, self._file, self._text)) from None

        if isinstance(event, yaml.AliasEvent):
            raise self._error(event, f"alias *{event.anchor}: ROS reads no aliases")
        self._depth += isinstance(event, yaml.CollectionStartEvent)
        self._depth -= isinstance(event, yaml.CollectionEndEvent)
        if self._depth > _MAX_DEPTH:
            raise self._error(event, f"nested more than {_MAX_DEPTH} levels deep")
        return event

    def _error(self, event: Any, text: str) -> ConfigError:
        return ConfigError(f"{self._file}:{event.start_mark.line + 1}: {text}")
