# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of nodes as fields of dataclasses: type, default, unit, range, meaning. No ROS.

A node's parameters are frozen dataclasses whose fields are made by `parameter`. The module
`parameters` declares them to ROS; `docs/reference_pages.py` lists them.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rfly_common.errors import ConfigError

_KEY = "parameter"
TYPE_NAMES: dict[Any, str] = {bool: "bool", int: "integer", float: "double", str: "string"}
TYPE_NAMES |= {list[kind]: f"{name}[]" for kind, name in tuple(TYPE_NAMES.items())}  # type: ignore[valid-type]
"""ROS's names of the types of parameters."""


@dataclass(frozen=True)
class Parameter:
    """A node's parameter as it is known before any node runs."""

    name: str
    type: Any
    """Type: bool, int, float, str, or a list of one of them."""
    default: Any
    text: str
    unit: str
    low: float | None
    high: float | None
    choices: tuple[str, ...]
    changeable: bool
    """True if the parameter can change while the node runs."""
    shown: str
    """Text that documents show for a default that depends on something, else empty."""

    @property
    def description(self) -> str:
        """Meaning with its unit."""
        return f"{self.text}, {self.unit}" if self.unit else self.text


def parameter(
    default: Any,
    text: str,
    *,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    choices: Sequence[str] = (),
    changeable: bool = False,
    shown: str = "",
) -> Any:
    """Return a dataclass field that is a node's parameter.

    The field's annotation is its type; a list may be empty. A Literal of strings names the choices,
    as `choices` does. `shown` replaces the default in documents if a node computes it.
    """
    about = {"text": text, "unit": unit, "low": low, "high": high, "choices": tuple(choices)}
    about |= {"changeable": changeable, "shown": shown}
    if isinstance(default, list):
        return dataclasses.field(default_factory=lambda: list(default), metadata={_KEY: about})
    return dataclasses.field(default=default, metadata={_KEY: about})


def parameters_of(cls: type) -> Iterator[Parameter]:
    """Return the parameters that a dataclass declares, in its order."""
    types = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        default = (
            field.default
            if field.default_factory is dataclasses.MISSING
            else field.default_factory()
        )
        kind = types[field.name]
        about = dict(field.metadata[_KEY])
        if typing.get_origin(kind) is Literal:
            kind, about["choices"] = str, typing.get_args(kind)
        yield Parameter(field.name, kind, default, **about)


def check_ranges(record: Any) -> None:
    """Raise ConfigError for a value of a dataclass of numbers that its declaration excludes."""
    for each in parameters_of(type(record)):
        value = getattr(record, each.name)
        if not each.low <= value <= each.high:
            raise ConfigError(f"{each.name} is {value}, allowed: {each.low:g} … {each.high:g}")


@dataclass(frozen=True)
class FrameParameters:
    """Ids of world frames."""

    enu_frames: list[str] = parameter(["map"], "frame ids that are the ENU world frame itself")
    ned_frames: list[str] = parameter(["map_ned"], "frame ids that are the NED world frame itself")
